/* Nonblocking and persistent messages of derived datatypes, completed by every call that completes. 2 ranks or more. */
#include "programs.h"

#include "complete.h"

enum { TAG = 5 };

typedef int send_function(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
typedef int receive_function(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static int matched(void *memory, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm communicator, MPI_Request *request)
{
    MPI_Message message;
    MPI_Mprobe(source, tag, communicator, &message, MPI_STATUS_IGNORE);
    return MPI_Imrecv(memory, count, datatype, &message, request);
}

/*
 * Messages between ranks 0 and 1 in both directions: one of derived datatypes, one of numbers, whose request is the MPI's, and a
 * null request between them.
 */
static void exchange(send_function *send, receive_function *receive, MPI_Datatype out, int count, MPI_Datatype in, int room, enum way way,
                     int ignore)
{
    if (rank > 1) return;
    unsigned seed = (unsigned)(way * 2 + ignore);
    struct elements sent = elements(out, count, 10 + seed + (unsigned)rank * 100), theirs = elements(out, count, 10 + seed + (unsigned)!rank * 100);
    struct elements received = elements(in, room, 2), expected = elements(in, room, 2);
    struct elements mine = elements(MPI_INT, 50, 30 + (unsigned)rank), numbers = elements(MPI_INT, 50, 4);
    struct elements numbers_sent = elements(MPI_INT, 50, 30 + (unsigned)!rank);
    int size_out, size_in, found = -1;
    MPI_Type_size(out, &size_out);
    MPI_Type_size(in, &size_in);
    MPI_Request requests[6];
    MPI_Status statuses[6];
    memset(statuses, 0x5a, sizeof statuses);
    for (int at = 0; at < 6; at++) requests[at] = MPI_REQUEST_NULL;
    /* A message that is matched has to be sent first. */
    int late = receive == matched;
    if (!late) receive(received.memory, room, in, !rank, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(numbers.memory, 50, MPI_INT, !rank, TAG + 1, MPI_COMM_WORLD, &requests[2]);
    if (send == MPI_Irsend) MPI_Sendrecv(NULL, 0, MPI_INT, !rank, 9, NULL, 0, MPI_INT, !rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    send(sent.memory, count, out, !rank, TAG, MPI_COMM_WORLD, &requests[3]);
    MPI_Isend(mine.memory, 50, MPI_INT, !rank, TAG + 1, MPI_COMM_WORLD, &requests[5]);
    if (late) receive(received.memory, room, in, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &requests[0]);
    complete(way, 6, requests, ignore ? MPI_STATUSES_IGNORE : statuses);
    expect(theirs, expected, size_out * count);
    CHECK(same(received, expected), "%d elements, way %d", count, way);
    CHECK(!memcmp(numbers.memory, numbers_sent.memory, 200), "numbers, way %d", way);
    if (!ignore) {
        MPI_Get_count(&statuses[0], in, &found);
        CHECK(found == size_out * count / size_in, "%d, way %d", found, way);
        MPI_Get_elements(&statuses[0], MPI_BYTE, &found);
        CHECK(found == size_out * count, "%d, way %d", found, way);
        CHECK(statuses[0].MPI_SOURCE == !rank && statuses[0].MPI_TAG == TAG, "%d", statuses[0].MPI_SOURCE);
        MPI_Get_count(&statuses[2], MPI_INT, &found);
        CHECK(found == 50, "%d, way %d", found, way);
    }
    end(way, 6, requests);
    CHECK(same(received, expected), "after the end, way %d", way);
    drop(sent), drop(theirs), drop(received), drop(expected), drop(mine), drop(numbers), drop(numbers_sent);
}

static void pairs(void)
{
    send_function *sends[] = {MPI_Isend, MPI_Issend, MPI_Ibsend, MPI_Irsend, PMPI_Isend};
    receive_function *receives[] = {MPI_Irecv, matched, PMPI_Irecv};
    MPI_Datatype rows = vector(3000, 1, 3), wide = vector(300, 20, 31), longer = vector(100, 1, 2);
    for (int send = 0; send < 5; send++)
        for (int receive = 0; receive < 3; receive++)
            for (int way = 0; way < WAYS; way++)
                for (int ignore = 0; ignore < 2; ignore++) {
                    /* Ready sends need a receive that has begun. */
                    if (sends[send] == MPI_Irsend && receives[receive] == matched) continue;
                    exchange(sends[send], receives[receive], rows, 1, rows, 1, way, ignore);
                    exchange(sends[send], receives[receive], rows, 2, longer, 60, way, ignore);
                    exchange(sends[send], receives[receive], wide, 3, MPI_INT, 18000, way, ignore);
                    exchange(sends[send], receives[receive], longer, 60, rows, 7, way, ignore);
                    exchange(sends[send], receives[receive], wide, 0, wide, 3, way, ignore);
                }
    MPI_Type_free(&rows);
    MPI_Type_free(&wide);
    MPI_Type_free(&longer);
}

/* Many messages at once, whose datatypes are freed while they are under way, around the ring. */
static void many(enum way way, int ignore)
{
    enum { MESSAGES = 80 };
    struct elements sent[MESSAGES], received[MESSAGES], expected[MESSAGES];
    MPI_Request requests[2 * MESSAGES + 1];
    MPI_Status statuses[2 * MESSAGES + 1];
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    for (int at = 0; at < MESSAGES; at++) {
        MPI_Datatype out = vector(1000 + 50 * at, 1, 2), in = vector(500 + 25 * at, 2, 5);
        received[at] = elements(in, 1, 7), expected[at] = elements(in, 1, 7), sent[at] = elements(out, 1, (unsigned)(rank * 100 + at));
        struct elements theirs = elements(out, 1, (unsigned)(left * 100 + at));
        expect(theirs, expected[at], (1000 + 50 * at) * 4);
        drop(theirs);
        MPI_Irecv(received[at].memory, 1, in, left, at, MPI_COMM_WORLD, &requests[2 * at]);
        MPI_Isend(sent[at].memory, 1, out, right, at, MPI_COMM_WORLD, &requests[2 * at + 1]);
        MPI_Type_free(&in);
        MPI_Type_free(&out);
    }
    requests[2 * MESSAGES] = MPI_REQUEST_NULL;
    complete(way, 2 * MESSAGES + 1, requests, ignore ? MPI_STATUSES_IGNORE : statuses);
    for (int at = 0; at < MESSAGES; at++) {
        int found = -1;
        CHECK(same(received[at], expected[at]), "message %d, way %d", at, way);
        if (!ignore) MPI_Get_count(&statuses[2 * at], MPI_INT, &found);
        CHECK(ignore || found == 1000 + 50 * at, "%d of message %d, way %d", found, at, way);
    }
    end(way, 2 * MESSAGES + 1, requests);
    for (int at = 0; at < MESSAGES; at++) drop(sent[at]), drop(received[at]), drop(expected[at]);
}

typedef int init_function(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

typedef int init_function(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static void fill(struct elements elements, unsigned seed)
{
    for (long at = 0; at < elements.length; at++) elements.bytes[at] = byte_at(at, seed);
}

/* Persistent requests between ranks 0 and 1, started again with other data, and messages that are shorter than their receives. */
static void persistent(init_function *init, enum way way, int ignore)
{
    enum { RECEIVE, RECEIVE_NUMBER, SEND, SEND_NUMBER, REQUESTS };
    if (rank > 1) return;
    MPI_Datatype rows = vector(1500, 1, 2), unseen;
    MPI_Type_vector(3000, 1, 3, MPI_INT, &unseen);
    PMPI_Type_commit(&unseen);
    struct elements sent = elements(rows, 2, 1), theirs = elements(rows, 2, 1);
    struct elements received = elements(unseen, 2, 3), expected = elements(unseen, 2, 3);
    MPI_Request requests[REQUESTS];
    MPI_Status statuses[REQUESTS];
    int found = -1, number = -1, round;
    MPI_Recv_init(received.memory, 2, unseen, !rank, TAG, MPI_COMM_WORLD, &requests[RECEIVE]);
    init(sent.memory, 2, rows, !rank, TAG, MPI_COMM_WORLD, &requests[SEND]);
    MPI_Recv_init(&number, 1, MPI_INT, !rank, TAG + 1, MPI_COMM_WORLD, &requests[RECEIVE_NUMBER]);
    MPI_Send_init(&round, 1, MPI_INT, !rank, TAG + 1, MPI_COMM_WORLD, &requests[SEND_NUMBER]);
    /* Requests that have not been started are complete. */
    MPI_Waitall(REQUESTS, requests, statuses);
    MPI_Get_count(&statuses[RECEIVE], unseen, &found);
    CHECK(found == 0, "%d", found);
    for (round = 0; round < 4; round++) {
        fill(sent, (unsigned)(50 + 2 * round + rank));
        fill(theirs, (unsigned)(50 + 2 * round + !rank));
        expect(theirs, expected, 12000);
        if (round % 2) {
            for (int at = 0; at < SEND; at++) MPI_Start(&requests[at]);
        } else {
            MPI_Startall(SEND, requests);
        }
        MPI_Sendrecv(NULL, 0, MPI_INT, !rank, 9, NULL, 0, MPI_INT, !rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (round % 2) {
            MPI_Startall(2, &requests[SEND]);
        } else {
            for (int at = SEND; at < REQUESTS; at++) MPI_Start(&requests[at]);
        }
        complete(way, REQUESTS, requests, ignore ? MPI_STATUSES_IGNORE : statuses);
        CHECK(same(received, expected), "round %d, way %d", round, way);
        CHECK(number == round, "%d in round %d", number, round);
        if (!ignore) MPI_Get_count(&statuses[RECEIVE], unseen, &found);
        /* MPICH 5.0 ends persistent requests when it is asked for one of several. */
        CHECK(ignore || found == 1 || way == ASK_ANY || way == ASK_SOME, "%d, round %d, way %d", found, round, way);
        if (way >= ASK) MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE);
        CHECK(same(received, expected), "after the end, round %d, way %d", round, way);
    }
    for (int at = 0; at < REQUESTS; at++) {
        CHECK(requests[at] != MPI_REQUEST_NULL, "%d", at);
        MPI_Request_free(&requests[at]);
        CHECK(requests[at] == MPI_REQUEST_NULL, "%d", at);
    }
    drop(sent), drop(theirs), drop(received), drop(expected);
    MPI_Type_free(&rows);
    MPI_Type_free(&unseen);
}

/* Requests that are freed while they are active: their messages arrive. */
static void freed(void)
{
    if (rank > 1) return;
    MPI_Datatype rows = vector(100000, 1, 2);
    struct elements memory = elements(rows, 1, 1), sent = elements(rows, 1, 1), expected = elements(rows, 1, 2);
    MPI_Request requests[3];
    expect(sent, expected, 400000);
    if (rank == 0) {
        MPI_Isend(memory.memory, 1, rows, 1, TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Request_free(&requests[0]);
        MPI_Send_init(memory.memory, 1, rows, 1, TAG, MPI_COMM_WORLD, &requests[1]);
        MPI_Start(&requests[1]);
        MPI_Request_free(&requests[1]);
        CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL, "free");
        MPI_Recv(NULL, 0, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        struct elements first = elements(rows, 1, 2), second = elements(rows, 1, 2);
        MPI_Irecv(first.memory, 1, rows, 0, TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Request_free(&requests[0]);
        MPI_Recv(second.memory, 1, rows, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(same(second, expected), "second");
        /* What has been freed ends during later calls. */
        for (int number = 0, flag; !same(first, expected);) {
            MPI_Irecv(&number, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, &requests[0]);
            MPI_Send(&number, 1, MPI_INT, 1, 8, MPI_COMM_WORLD);
            for (flag = 0; !flag;) MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
        }
        MPI_Send(NULL, 0, MPI_INT, 0, 9, MPI_COMM_WORLD);
        drop(first), drop(second);
    }
    drop(memory), drop(sent), drop(expected);
    MPI_Type_free(&rows);
}

/* A receive that is cancelled leaves its memory alone. */
static void cancelled(void)
{
    MPI_Datatype rows = vector(3000, 1, 2);
    struct elements memory = elements(rows, 1, 1), before = elements(rows, 1, 1);
    for (int way = 0; way < WAYS; way++) {
        MPI_Request request;
        MPI_Status status;
        int flag = 0;
        MPI_Irecv(memory.memory, 1, rows, rank, 77, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        complete(way, 1, &request, &status);
        MPI_Test_cancelled(&status, &flag);
        CHECK(flag && same(memory, before), "way %d", way);
        end(way, 1, &request);
        MPI_Recv_init(memory.memory, 1, rows, rank, 77, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &flag);
        CHECK(flag && same(memory, before), "%d", flag);
        MPI_Request_free(&request);
    }
    drop(memory), drop(before);
    MPI_Type_free(&rows);
}

/* Messages that are too long, alone and among others: the MPI tells, as without dtc, and nothing is written behind the elements. */
static void errors(void)
{
    MPI_Datatype rows = vector(2000, 1, 2);
    MPI_Comm communicator;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
    MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int lengthy = 3; lengthy <= 600 && rank < 2; lengthy *= 200) {
        struct elements long_ones = elements(rows, lengthy, 6), fitting = elements(rows, 2, 8);
        for (int way = 0; way < 5; way++) {
            struct elements memory = elements(rows, 2, 7), other = elements(rows, 2, 9), expected = elements(rows, 2, 9);
            struct elements third = elements(rows, 2, 9);
            MPI_Request requests[] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
            MPI_Status statuses[3];
            int class = 0, result = 0, index = -1, flag = 0;
            expect(fitting, expected, 16000);
            if (rank == 1) {
                MPI_Irecv(other.memory, 2, rows, 0, TAG + 1, communicator, &requests[0]);
                MPI_Irecv(memory.memory, 2, rows, 0, TAG, communicator, &requests[1]);
                MPI_Irecv(third.memory, 2, rows, 0, TAG + 2, communicator, &requests[2]);
                MPI_Send(NULL, 0, MPI_INT, 0, 9, communicator);
                if (way < 3) MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
                if (way < 3) MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
                if (way == 0) result = MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
                if (way == 1) result = MPI_Waitany(3, requests, &index, MPI_STATUS_IGNORE);
                for (; way == 2 && !flag && !result;) result = MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE);
                if (way >= 3) {
                    MPI_Error_class(MPI_Waitall(3, requests, way == 3 ? statuses : MPI_STATUSES_IGNORE), &class);
                    CHECK(class == MPI_ERR_IN_STATUS, "%d", class);
                    /* Some MPIs leave others pending. */
                    for (int at = 0; at < 3; at += 2) {
                        MPI_Error_class(way == 3 ? statuses[at].MPI_ERROR : MPI_SUCCESS, &class);
                        CHECK(class == MPI_SUCCESS || class == MPI_ERR_PENDING, "%d", class);
                        MPI_Wait(&requests[at], MPI_STATUS_IGNORE);
                    }
                    if (way == 3) result = statuses[1].MPI_ERROR;
                }
                MPI_Error_class(result, &class);
                CHECK(way == 4 || class == MPI_ERR_TRUNCATE, "%d, way %d", class, way);
                CHECK(same(other, expected) && same(third, expected), "others, way %d", way);
                CHECK(memory.bytes[memory.length - 1] == byte_at(memory.length - 1, 7), "overrun");
            } else {
                MPI_Recv(NULL, 0, MPI_INT, 1, 9, communicator, MPI_STATUS_IGNORE);
                MPI_Isend(long_ones.memory, lengthy, rows, 1, TAG, communicator, &requests[0]);
                MPI_Isend(fitting.memory, 2, rows, 1, TAG + 1, communicator, &requests[1]);
                MPI_Isend(fitting.memory, 2, rows, 1, TAG + 2, communicator, &requests[2]);
                MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
                MPI_Isend(fitting.memory, -1, rows, 1, TAG, communicator, &requests[0]);
            }
            drop(memory), drop(other), drop(expected), drop(third);
        }
        drop(long_ones), drop(fitting);
    }
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Type_free(&rows);
    MPI_Comm_free(&communicator);
}

#if HAS_ISENDRECV
/* Exchanges around the ring, in place too, and one way. */
static void exchanges(enum way way)
{
    MPI_Datatype out = vector(4997, 1, 4), in = vector(4997, 1, 2);
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    struct elements sent = elements(out, 1, 10 + (unsigned)rank), theirs = elements(out, 1, 10 + (unsigned)left);
    struct elements received = elements(in, 2, 5), expected = elements(in, 2, 5);
    MPI_Request request;
    MPI_Status status;
    expect(theirs, expected, 19988);
    MPI_Isendrecv(sent.memory, 1, out, right, TAG, received.memory, 2, in, left, TAG, MPI_COMM_WORLD, &request);
    complete(way, 1, &request, &status);
    CHECK(same(received, expected), "way %d", way);
    end(way, 1, &request);
#if defined(OMPI_MAJOR_VERSION)
    /* MPICH does not tell. */
    int found = -1;
    MPI_Get_count(&status, in, &found);
    CHECK(found == 1 && status.MPI_SOURCE == left, "%d from %d, way %d", found, status.MPI_SOURCE, way);
#endif
    drop(expected);
    expected = elements(out, 1, 10 + (unsigned)rank);
    expect(theirs, expected, 19988);
    MPI_Isendrecv_replace(sent.memory, 1, out, right, TAG, left, TAG, MPI_COMM_WORLD, &request);
    complete(way, 1, &request, MPI_STATUSES_IGNORE);
    CHECK(same(sent, expected), "replace, way %d", way);
    end(way, 1, &request);
    MPI_Isendrecv(sent.memory, 1, out, MPI_PROC_NULL, TAG, received.memory, 2, in, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &request);
    complete(way, 1, &request, MPI_STATUSES_IGNORE);
    end(way, 1, &request);
    drop(sent), drop(theirs), drop(received), drop(expected);
    MPI_Type_free(&out);
    MPI_Type_free(&in);
}
#endif

#if MPI_VERSION >= 4
/* Counts of 64 bits. */
static void large_counts(void)
{
    MPI_Datatype rows = vector(3000, 1, 2);
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    struct elements sent = elements(rows, 2, 10 + (unsigned)rank), theirs = elements(rows, 2, 10 + (unsigned)left);
    struct elements received[3], expected = elements(rows, 2, 5);
    MPI_Request requests[6], *request = requests;
    MPI_Status statuses[6];
    expect(theirs, expected, 24000);
    for (int at = 0; at < 3; at++) received[at] = elements(rows, 2, 5);
    MPI_Irecv_c(received[0].memory, 2, rows, left, 0, MPI_COMM_WORLD, request++);
    MPI_Recv_init_c(received[1].memory, 2, rows, left, 1, MPI_COMM_WORLD, request++);
    MPI_Start(request - 1);
    MPI_Isend_c(sent.memory, 2, rows, right, 0, MPI_COMM_WORLD, request++);
    MPI_Ssend_init_c(sent.memory, 2, rows, right, 1, MPI_COMM_WORLD, request++);
    MPI_Start(request - 1);
    MPI_Issend_c(sent.memory, 2, rows, right, 2, MPI_COMM_WORLD, request++);
    MPI_Message message;
    MPI_Mprobe(left, 2, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv_c(received[2].memory, 2, rows, &message, request++);
    MPI_Waitall(6, requests, statuses);
    for (int at = 0; at < 3; at++) {
        MPI_Count found = -1;
        MPI_Get_count_c(&statuses[at == 2 ? 5 : at], rows, &found);
        CHECK(found == 2 && same(received[at], expected), "%d: %ld", at, (long)found);
        drop(received[at]);
    }
    MPI_Request_free(&requests[1]);
    MPI_Request_free(&requests[3]);
    /* To receives that have been posted. */
    for (int at = 0; at < 2; at++) {
        received[at] = elements(rows, 2, 5);
        MPI_Irecv_c(received[at].memory, 2, rows, left, at, MPI_COMM_WORLD, &requests[at]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Rsend_c(sent.memory, 2, rows, right, 0, MPI_COMM_WORLD);
    MPI_Irsend_c(sent.memory, 2, rows, right, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Waitall(3, requests, statuses);
    for (int at = 0; at < 2; at++) {
        CHECK(same(received[at], expected), "%d", at);
        drop(received[at]);
    }
    drop(sent), drop(theirs), drop(expected);
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
    /* Receives from any source end above. */
    MPI_Barrier(MPI_COMM_WORLD);
    for (int way = 0; way < WAYS; way++)
        for (int ignore = 0; ignore < 2; ignore++) {
            many(way, ignore);
            persistent(MPI_Send_init, way, ignore);
#if !defined(OMPI_MAJOR_VERSION) || OMPI_MAJOR_VERSION >= 5
            /* Open MPI 4.1 sends other data from the second start on. */
            persistent(MPI_Bsend_init, way, ignore);
#endif
            persistent(MPI_Ssend_init, way, ignore);
            persistent(MPI_Rsend_init, way, ignore);
        }
    freed();
    cancelled();
    errors();
#if HAS_ISENDRECV
    for (int way = 0; way < WAYS; way++) exchanges(way);
#endif
#if MPI_VERSION >= 4
    large_counts();
#endif
    MPI_Buffer_detach(&buffer, &room);
    free(buffer);
    if (rank == 0) puts("nonblocking: done");
    MPI_Finalize();
    return 0;
}
