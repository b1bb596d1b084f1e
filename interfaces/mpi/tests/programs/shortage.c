/*
 * An emulated GPU that allocates less and less: each call returns an error and leaves its elements alone, or does all of its work; and it
 * works again when there is memory. Each process sends to itself, so that no process waits for one whose call has failed.
 */
#include "device.h"

enum { TAG = 5, ROUNDS = 50 };

/* How many more allocations of the driver succeed, below zero for all. */
static long *allocations_left;

/* Ends a round: what the call says, and whether all came, or nothing. */
static int verify(const char *call, long left, int result, struct buffer *received, struct elements before, struct elements after)
{
    *allocations_left = -1;
    download(received);
    const struct elements *expected = result == MPI_SUCCESS ? &after : &before;
    CHECK(same(received->host, *expected), "%s, %ld allocations, result %d", call, left, result);
    return result != MPI_SUCCESS;
}

static int collective(const struct buffer *sent, struct buffer *received, MPI_Datatype datatype)
{
    int one = 1, place = 0;
    return MPI_Alltoallw(sent->memory, &one, &place, &datatype, received->memory, &one, &place, &datatype, MPI_COMM_SELF);
}

/* The error of the first call that has one. */
static int persistent(const struct buffer *sent, struct buffer *received, MPI_Datatype datatype)
{
#if HAS_PERSISTENT_COLLECTIVES
    int one = 1, place = 0;
    MPI_Request request;
    int result = MPI_Alltoallw_init(sent->memory, &one, &place, &datatype, received->memory, &one, &place, &datatype, MPI_COMM_SELF,
                                    MPI_INFO_NULL, &request);
    if (result != MPI_SUCCESS) return result;
    result = MPI_Start(&request);
    if (result == MPI_SUCCESS) result = MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    return result;
#else
    return collective(sent, received, datatype);
#endif
}

static int later(const struct buffer *sent, struct buffer *received, MPI_Datatype datatype)
{
    MPI_Request requests[2];
    int result = MPI_Irecv(received->memory, 1, datatype, 0, TAG, MPI_COMM_SELF, &requests[0]);
    if (result != MPI_SUCCESS) return result;
    result = MPI_Isend(sent->memory, 1, datatype, 0, TAG, MPI_COMM_SELF, &requests[1]);
    if (result != MPI_SUCCESS) {
        MPI_Cancel(&requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        return result;
    }
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    return MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static int packed(const struct buffer *sent, struct buffer *received, MPI_Datatype datatype, int bytes)
{
    int position = 0;
    char *between = malloc((size_t)bytes);
    int result = MPI_Pack(sent->memory, 1, datatype, between, bytes, &position, MPI_COMM_SELF);
    position = 0;
    if (result == MPI_SUCCESS) result = MPI_Unpack(between, bytes, &position, received->memory, 1, datatype, MPI_COMM_SELF);
    free(between);
    return result;
}

int main(int argc, char **argv)
{
    int failed = 0, done = 0;
    begin(&argc, &argv);
    open_device(rank);
    void *library = dlopen(getenv("DTC_CUDA_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
    allocations_left = library ? dlsym(library, "stub_allocations_left") : NULL;
    CHECK(allocations_left, "%s", "an emulated driver");
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int round = 0; round < ROUNDS; round++) {
        /* Another size each time: what the calls before took does not fit. */
        int count = 1000 << round % 8, kind = round % 5, bytes = count * 4;
        MPI_Datatype rows = vector(count, 1, 2);
        struct buffer sent = buffer(rows, 1, 1, ON_DEVICE), received = buffer(rows, 1, 2, round % 3 ? ON_DEVICE : ON_HOST);
        struct elements before = elements(rows, 1, 2), after = elements(rows, 1, 2);
        expect(sent.host, after, bytes);
        *allocations_left = round / 5 % 5;
        long left = *allocations_left;
        int result = MPI_SUCCESS;
        if (kind == 0)
            result = MPI_Sendrecv(sent.memory, 1, rows, 0, TAG, received.memory, 1, rows, 0, TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        if (kind == 1) result = collective(&sent, &received, rows);
        if (kind == 2) result = later(&sent, &received, rows);
        if (kind == 3) result = packed(&sent, &received, rows, bytes);
        if (kind == 4) result = persistent(&sent, &received, rows);
        const char *names[] = {"MPI_Sendrecv", "MPI_Alltoallw", "MPI_Irecv and MPI_Isend", "MPI_Pack and MPI_Unpack", "MPI_Alltoallw_init"};
        if (verify(names[kind], left, result, &received, before, after)) failed++;
        else done++;
        /* With memory again. */
        refill(&received, 2);
        result = MPI_Sendrecv(sent.memory, 1, rows, 0, TAG, received.memory, 1, rows, 0, TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        CHECK(result == MPI_SUCCESS, "%d", result);
        verify("again", -1, result, &received, before, after);
        release(&sent), release(&received), drop(before), drop(after);
        MPI_Type_free(&rows);
    }
    printf("shortage: %d failed, %d done\n", failed, done);
    MPI_Finalize();
    return 0;
}
