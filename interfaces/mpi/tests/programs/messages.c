/* Blocking messages of derived datatypes: interposed at both sides, at the sender alone, and at the receiver alone. 2 ranks or more. */
#include "programs.h"

enum { TAG = 5 };

typedef int send_function(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int receive_function(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);

/* Receives with MPI_Mprobe and MPI_Mrecv. */
static int matched(void *memory, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm communicator, MPI_Status *status)
{
    MPI_Message message;
    MPI_Status probed;
    int size, known;
    MPI_Mprobe(source, tag, communicator, &message, &probed);
    MPI_Type_size(datatype, &size);
    MPI_Get_count(&probed, MPI_BYTE, &known);
    CHECK(known <= size * count, "%d", known);
    return MPI_Mrecv(memory, count, datatype, &message, status);
}

/* Receives after MPI_Probe. */
static int probed(void *memory, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm communicator, MPI_Status *status)
{
    MPI_Status found;
    int elements;
    MPI_Probe(source, tag, communicator, &found);
    MPI_Get_count(&found, datatype, &elements);
    CHECK(elements <= count && elements != MPI_UNDEFINED, "%d", elements);
    return MPI_Recv(memory, count, datatype, found.MPI_SOURCE, found.MPI_TAG, communicator, status);
}

/* One message from rank 0 to rank 1; the receiver has room for `room` elements. */
static void message(send_function *send, receive_function *receive, MPI_Datatype out, int count, MPI_Datatype in, int room, int source)
{
    struct elements sent = elements(out, count, 1);
    int size_out, size_in;
    MPI_Type_size(out, &size_out);
    MPI_Type_size(in, &size_in);
    if (rank == 0) CHECK(send(sent.memory, count, out, 1, TAG, MPI_COMM_WORLD) == MPI_SUCCESS, "send");
    if (rank == 1) {
        struct elements received = elements(in, room, 2), expected = elements(in, room, 2);
        MPI_Status status;
        int found = -1;
        memset(&status, 0x5a, sizeof status);
        CHECK(receive(received.memory, room, in, source, TAG, MPI_COMM_WORLD, &status) == MPI_SUCCESS, "receive");
        expect(sent, expected, size_out * count);
        CHECK(same(received, expected), "%d elements", count);
        MPI_Get_count(&status, in, &found);
        CHECK(found == size_out * count / size_in, "%d", found);
        MPI_Get_elements(&status, MPI_BYTE, &found);
        CHECK(found == size_out * count, "%d", found);
        CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == TAG, "%d %d", status.MPI_SOURCE, status.MPI_TAG);
        drop(received);
        drop(expected);
    }
    drop(sent);
    /* Messages may wait in the buffer of MPI_Bsend. */
    MPI_Barrier(MPI_COMM_WORLD);
}

static void pairs(void)
{
    send_function *sends[] = {MPI_Send, MPI_Ssend, MPI_Bsend, PMPI_Send};
    receive_function *receives[] = {MPI_Recv, matched, probed, PMPI_Recv};
    MPI_Datatype rows = vector(3000, 1, 3), wide = vector(300, 20, 31), mixed = structure(0);
    /* 30 of these have the bytes of rows. */
    MPI_Datatype longer = vector(100, 1, 2);
    for (int send = 0; send < 4; send++)
        for (int receive = 0; receive < 4; receive++)
            for (int source = 0; source < 2; source++) {
                int from = source ? MPI_ANY_SOURCE : 0;
                message(sends[send], receives[receive], rows, 1, rows, 1, from);
                message(sends[send], receives[receive], rows, 2, longer, 60, from);
                message(sends[send], receives[receive], wide, 3, MPI_INT, 18000, from);
                /* MPICH 4.0 sends too many bytes of such a struct from the buffer of MPI_Bsend. */
                if (sends[send] != MPI_Bsend) message(sends[send], receives[receive], mixed, 1000, mixed, 1700, from);
                message(sends[send], receives[receive], rows, 1, rows, 4, from);
                message(sends[send], receives[receive], longer, 60, rows, 7, from);
                message(sends[send], receives[receive], wide, 0, wide, 3, from);
            }
    MPI_Type_free(&rows);
    MPI_Type_free(&wide);
    MPI_Type_free(&mixed);
    MPI_Type_free(&longer);
}

static void ready_sends(void)
{
    MPI_Datatype rows = vector(4000, 1, 2);
    struct elements sent = elements(rows, 1, 3), received = elements(rows, 1, 4), expected = elements(rows, 1, 4);
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 1) MPI_Irecv(received.memory, 1, rows, 0, TAG, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) MPI_Rsend(sent.memory, 1, rows, 1, TAG, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(sent, expected, 16000);
    if (rank == 1) CHECK(same(received, expected), "ready");
    drop(sent);
    drop(received);
    drop(expected);
    MPI_Type_free(&rows);
}

static void exchanges(void)
{
    enum { BYTES = 19988, ELEMENTS = 1700, SIZE = 12 };
    MPI_Datatype out = vector(BYTES / 4, 1, 4), in = vector(3, 1, 2);
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks, found;
    struct elements sent = elements(out, 1, 10 + (unsigned)rank), theirs = elements(out, 1, 10 + (unsigned)left);
    for (int ignored = 0; ignored < 2; ignored++) {
        struct elements received = elements(in, ELEMENTS, 5);
        MPI_Status status;
        MPI_Sendrecv(sent.memory, 1, out, right, TAG, received.memory, ELEMENTS, in, left, TAG, MPI_COMM_WORLD,
                     ignored ? MPI_STATUS_IGNORE : &status);
        /* Of the last element, two numbers have come. */
        char *packed = malloc(BYTES), *again = malloc(SIZE * ELEMENTS);
        int position = 0;
        PMPI_Pack(theirs.memory, 1, out, packed, BYTES, &position, MPI_COMM_SELF);
        position = 0;
        PMPI_Pack(received.memory, ELEMENTS, in, again, SIZE * ELEMENTS, &position, MPI_COMM_SELF);
        CHECK(position == SIZE * ELEMENTS && !memcmp(packed, again, BYTES), "%d", position);
        struct elements untouched = elements(in, ELEMENTS, 5), expected = elements(in, ELEMENTS, 5);
        position = 0;
        PMPI_Pack(untouched.memory, ELEMENTS, in, again, SIZE * ELEMENTS, &position, MPI_COMM_SELF);
        memcpy(again, packed, BYTES);
        position = 0;
        PMPI_Unpack(again, SIZE * ELEMENTS, &position, expected.memory, ELEMENTS, in, MPI_COMM_SELF);
        CHECK(same(received, expected), "gaps and what did not come");
        if (!ignored) {
            MPI_Get_count(&status, MPI_BYTE, &found);
            CHECK(found == BYTES && status.MPI_SOURCE == left, "%d", found);
            MPI_Get_count(&status, in, &found);
            CHECK(found == MPI_UNDEFINED, "%d", found);
        }
        free(packed);
        free(again);
        drop(received);
        drop(untouched);
        drop(expected);
    }
    /* In place. */
    struct elements mine = elements(out, 1, 10 + (unsigned)rank), expected = elements(out, 1, 10 + (unsigned)rank);
    MPI_Sendrecv_replace(mine.memory, 1, out, right, TAG, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(theirs, expected, BYTES);
    CHECK(same(mine, expected), "replace");
    /* Nothing comes from nowhere, and goes there. */
    MPI_Status status;
    MPI_Sendrecv_replace(mine.memory, 1, out, MPI_PROC_NULL, TAG, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, out, &found);
    CHECK(same(mine, expected) && found == 0 && status.MPI_SOURCE == MPI_PROC_NULL, "%d", found);
    MPI_Send(mine.memory, 1, out, MPI_PROC_NULL, TAG, MPI_COMM_WORLD);
    MPI_Recv(mine.memory, 1, out, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, out, &found);
    CHECK(same(mine, expected) && found == 0 && status.MPI_SOURCE == MPI_PROC_NULL, "%d", found);
    MPI_Sendrecv(sent.memory, 1, out, rank == 0 ? 1 : MPI_PROC_NULL, TAG, mine.memory, 1, out, rank == 1 ? 0 : MPI_PROC_NULL, TAG,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) {
        struct elements zeroth = elements(out, 1, 10);
        expect(zeroth, expected, BYTES);
        drop(zeroth);
    }
    CHECK(same(mine, expected), "one way");
    drop(mine);
    drop(expected);
    drop(sent);
    drop(theirs);
    MPI_Type_free(&out);
    MPI_Type_free(&in);
}

/* Messages that are too long, datatypes that were not committed, ranks that are not there: the MPI tells, as without dtc. */
static void errors(void)
{
    MPI_Datatype rows = vector(2000, 1, 2), fresh;
    MPI_Comm communicator;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
    MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
    struct elements memory = elements(rows, 3, 6);
    int class = 0;
    if (rank == 0) MPI_Send(memory.memory, 3, rows, 1, TAG, communicator);
    if (rank == 1) {
        MPI_Error_class(MPI_Recv(memory.memory, 2, rows, 0, TAG, communicator, MPI_STATUS_IGNORE), &class);
        CHECK(class == MPI_ERR_TRUNCATE, "%d", class);
    }
    MPI_Error_class(MPI_Send(memory.memory, 3, rows, ranks, TAG, communicator), &class);
    CHECK(class == MPI_ERR_RANK, "%d", class);
    MPI_Error_class(MPI_Send(memory.memory, 3, rows, 0, -5, communicator), &class);
    CHECK(class == MPI_ERR_TAG, "%d", class);
    MPI_Error_class(MPI_Send(memory.memory, -1, rows, 0, TAG, communicator), &class);
    CHECK(class == MPI_ERR_COUNT, "%d", class);
    MPI_Type_vector(2000, 1, 2, MPI_INT, &fresh);
    for (int again = 0; again < 2; again++) {
        MPI_Error_class(MPI_Send(memory.memory, 1, fresh, MPI_PROC_NULL, TAG, communicator), &class);
        int expected;
        MPI_Error_class(PMPI_Send(memory.memory, 1, fresh, MPI_PROC_NULL, TAG, communicator), &expected);
        CHECK(class == expected, "%d and %d", class, expected);
    }
    int position = 0, theirs = 0;
    char packed[8000];
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int expected;
    MPI_Error_class(PMPI_Pack(memory.memory, 1, rows, packed, 7999, &theirs, communicator), &expected);
    MPI_Error_class(MPI_Pack(memory.memory, 1, rows, packed, 7999, &position, communicator), &class);
    CHECK(class == expected && position == theirs, "%d %d", class, position);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    drop(memory);
    MPI_Type_free(&fresh);
    MPI_Type_free(&rows);
    MPI_Comm_free(&communicator);
}

/* Handles come again with other types; duplicates and types that no MPI_Type_commit was seen for work. */
static void handles(void)
{
    for (int round = 0; round < 50; round++) {
        MPI_Datatype first = vector(1000 + round, 1, 2), duplicate, unseen;
        MPI_Type_dup(first, &duplicate);
        message(MPI_Send, MPI_Recv, first, 2, duplicate, 2, 0);
        MPI_Type_free(&first);
        message(MPI_Send, MPI_Recv, duplicate, 2, duplicate, 3, 0);
        MPI_Type_free(&duplicate);
        MPI_Type_vector(1500 - round, 2, 3, MPI_SHORT, &unseen);
        PMPI_Type_commit(&unseen);
        for (int again = 0; again < 3; again++) message(MPI_Send, MPI_Recv, unseen, 1, unseen, 1, 0);
        MPI_Type_free(&unseen);
    }
}

/* Types of absolute addresses. */
static void bottom(void)
{
    static int numbers[6000];
    MPI_Datatype rows = vector(3000, 1, 2), absolute;
    MPI_Aint place;
    int one = 1;
    MPI_Get_address(numbers, &place);
    MPI_Type_create_struct(1, &one, &place, &rows, &absolute);
    MPI_Type_commit(&absolute);
    for (int at = 0; at < 6000; at++) numbers[at] = rank == 0 ? at : -1;
    for (int again = 0; again < 2; again++) {
        if (rank == 0) MPI_Send(MPI_BOTTOM, 1, absolute, 1, TAG, MPI_COMM_WORLD);
        if (rank == 1) {
            MPI_Recv(MPI_BOTTOM, 1, absolute, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int at = 0; at < 6000; at++) CHECK(numbers[at] == (at % 2 ? -1 : at), "%d", at);
        }
    }
    MPI_Type_free(&absolute);
    MPI_Type_free(&rows);
}

#if MPI_VERSION >= 4
/* Counts of 64 bits, and types made with them. */
static void large_counts(void)
{
    MPI_Datatype rows;
    MPI_Type_vector_c(3000, 1, 2, MPI_INT, &rows);
    MPI_Type_commit(&rows);
    struct elements sent = elements(rows, 2, 7), received = elements(rows, 2, 8), expected = elements(rows, 2, 8);
    MPI_Count position = 0, found;
    MPI_Status status;
    char *packed = malloc(24000);
    expect(sent, expected, 24000);
    MPI_Pack_c(sent.memory, 2, rows, packed, 24000, &position, MPI_COMM_SELF);
    CHECK(position == 24000, "%ld", (long)position);
    position = 0;
    MPI_Unpack_c(packed, 24000, &position, received.memory, 2, rows, MPI_COMM_SELF);
    CHECK(position == 24000 && same(received, expected), "packed");
    for (int kind = 0; kind < 3; kind++) {
        MPI_Message message;
        drop(received);
        received = elements(rows, 2, 8);
        if (rank == 0 && kind == 0) MPI_Send_c(sent.memory, 2, rows, 1, TAG, MPI_COMM_WORLD);
        if (rank == 0 && kind == 1) MPI_Ssend_c(sent.memory, 2, rows, 1, TAG, MPI_COMM_WORLD);
        if (rank == 1 && kind == 0) MPI_Recv_c(received.memory, 2, rows, 0, TAG, MPI_COMM_WORLD, &status);
        if (rank == 1 && kind == 1) {
            MPI_Mprobe(0, TAG, MPI_COMM_WORLD, &message, &status);
            MPI_Mrecv_c(received.memory, 2, rows, &message, &status);
        }
        if (kind == 2)
            MPI_Sendrecv_c(sent.memory, 2, rows, rank == 0 ? 1 : MPI_PROC_NULL, TAG, received.memory, 2, rows,
                           rank == 1 ? 0 : MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &status);
        if (rank != 1) continue;
        MPI_Get_count_c(&status, rows, &found);
        CHECK(found == 2 && same(received, expected), "%d: %ld", kind, (long)found);
    }
    free(packed);
    drop(sent);
    drop(received);
    drop(expected);
    MPI_Type_free(&rows);
}
#endif

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(ranks >= 2, "%d", ranks);
    int room = 64 << 20;
    void *buffer = malloc((size_t)room);
    MPI_Buffer_attach(buffer, room);
    pairs();
    ready_sends();
    exchanges();
    errors();
    handles();
    bottom();
#if MPI_VERSION >= 4
    large_counts();
#endif
    MPI_Buffer_detach(&buffer, &room);
    free(buffer);
    if (rank == 0) puts("messages: done");
    MPI_Finalize();
    return 0;
}
