/*
 * Times calls of one process that has a GPU to itself, with the MPI alone or with libdtc_mpi preloaded: the same program. Messages go from the
 * process to itself, so nothing waits for another process, and the GPU never changes from one to another.
 *
 *     alone BLOCK [MOST]      vectors in blocks of BLOCK bytes at a stride of 512 or of twice as many, of 1 KiB to MOST bytes (64 MiB)
 *
 * Prints, for each number of bytes, microseconds of a copy within the GPU, of MPI_Sendrecv of contiguous bytes, of MPI_Pack of the vector, and
 * of MPI_Sendrecv and MPI_Alltoallw of the vector: the least of all rounds. What is packed and received is compared, every byte.
 */
#include "../interfaces/mpi/tests/programs/device.h"

enum { ROUNDS = 5, UNTOUCHED = 0xa5 };

/* Seconds that the calls of a round should take. */
static const double SECONDS = 0.01;

static unsigned char *sent, *received;
static long bytes, length, block, stride;
static MPI_Datatype rows;
static int (*copy_within)(uintptr_t, uintptr_t, size_t), (*wait_for_all)(void);

static void copy(void)
{
    CHECK(!copy_within((uintptr_t)received, (uintptr_t)sent, (size_t)bytes) && !wait_for_all(), "copy");
}

static void contiguous(void)
{
    MPI_Sendrecv(sent, (int)bytes, MPI_BYTE, 0, 0, received, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

static void pack(void)
{
    int position = 0;
    MPI_Pack(sent, 1, rows, received, (int)bytes, &position, MPI_COMM_SELF);
}

static void message(void)
{
    MPI_Sendrecv(sent, 1, rows, 0, 0, received, 1, rows, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

static void collective(void)
{
    int one = 1, zero = 0;
    MPI_Alltoallw(sent, &one, &zero, &rows, received, &one, &zero, &rows, MPI_COMM_SELF);
}

static double time_of(void call(void))
{
    double best = 1e9;
    int calls = 1, rounds = ROUNDS;
    for (int round = -1; round < rounds; round++) {
        double begin = MPI_Wtime();
        for (int at = 0; at < calls; at++) call();
        double time = (MPI_Wtime() - begin) / calls;
        /* The first call is slower, and tells how many make a round; one that takes long is not repeated. */
        if (round >= 0 || time > 0.5) best = time < best ? time : best;
        if (round < 0) calls = time < SECONDS / 300 ? 300 : time < SECONDS ? (int)(SECONDS / time) : 1;
        if (time > 0.5) break;
    }
    return best * 1e6;
}

static unsigned char byte_of(long at)
{
    return (unsigned char)(at * 167 + (at >> 8) * 13 + (at >> 16) * 5);
}

/* The bytes at which the first `bytes` of a vector lie. */
static long place_of_byte(long at)
{
    return at / block * stride + at % block;
}

static void compare(const char *what, void call(void), int is_packed, unsigned char *host)
{
    memset(host, UNTOUCHED, (size_t)length);
    CHECK(!cuda.MemcpyHtoD_v2((uintptr_t)received, host, (size_t)length), "copy");
    call();
    CHECK(!cuda.MemcpyDtoH_v2(host, (uintptr_t)received, (size_t)length), "copy");
    for (long at = 0; at < length; at++) {
        unsigned char expected = is_packed ? (at < bytes ? byte_of(place_of_byte(at)) : UNTOUCHED) : at % stride < block ? byte_of(at) : UNTOUCHED;
        CHECK(host[at] == expected, "%s, byte %ld: expected %d, found %d", what, at, expected, host[at]);
    }
}

static void measure(void)
{
    uintptr_t out, in;
    length = bytes / block * stride;
    unsigned char *host = malloc((size_t)length);
    CHECK(host && !cuda.MemAlloc_v2(&out, (size_t)length) && !cuda.MemAlloc_v2(&in, (size_t)length), "%ld bytes", length);
    sent = (unsigned char *)out, received = (unsigned char *)in;
    MPI_Type_vector((int)(bytes / block), (int)block, (int)stride, MPI_BYTE, &rows);
    MPI_Type_commit(&rows);
    for (long at = 0; at < length; at++) host[at] = byte_of(at);
    CHECK(!cuda.MemcpyHtoD_v2(out, host, (size_t)length), "copy");
    compare("pack", pack, 1, host), compare("message", message, 0, host), compare("collective", collective, 0, host);
    printf("%ld %ld", block, bytes);
    void (*const calls[])(void) = {copy, contiguous, pack, message, collective};
    for (int at = 0; at < 5; at++) printf(" %.1f", time_of(calls[at])), fflush(stdout);
    puts("");
    fflush(stdout);
    cuda.MemFree_v2(out), cuda.MemFree_v2(in);
    MPI_Type_free(&rows);
    free(host);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    block = argc > 1 ? atol(argv[1]) : 0;
    long most = argc > 2 ? atol(argv[2]) : 64L << 20;
    if (block < 1 || block > 1024 || ranks != 1) {
        fprintf(stderr, "usage: alone BLOCK [MOST], in one process\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    open_device(rank);
    void *found = dlsym(RTLD_DEFAULT, "cuMemcpyDtoD_v2"), *waits = dlsym(RTLD_DEFAULT, "cuCtxSynchronize");
    CHECK(found && waits, "a driver of CUDA");
    memcpy(&copy_within, &found, sizeof found);
    memcpy(&wait_for_all, &waits, sizeof waits);
    stride = block < 512 ? 512 : 2 * block;
    puts("block bytes copy contiguous pack message Alltoallw");
    for (bytes = 1024; bytes <= most; bytes *= 4) measure();
    MPI_Finalize();
    return 0;
}
