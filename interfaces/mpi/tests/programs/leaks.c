/*
 * Does every call of messages, packs and exchanges again and again, from a process to itself, and tells how much the heap has grown: tenths
 * of a byte for each round, the least of three parts, since some things are made once, at any time. What an MPI itself loses is found
 * without the interposer.
 */
#include "programs.h"
#include <limits.h>
#include <malloc.h>

enum { TAG = 5, COUNT = 3000, WARM = 100, ROUNDS = 200, PARTS = 3 };

static struct elements sent, received;
static MPI_Comm ring;

/* A committed datatype of its own for each use. */
static MPI_Datatype fresh(void)
{
    return vector(COUNT, 1, 2);
}

typedef int send_function(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int later_function(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static void end(int way, int length, MPI_Request *requests)
{
    int flag = 0, index, ended = 0, indices[2], left = length;
    MPI_Status statuses[2];
    if (way == 0) for (int at = 0; at < length; at++) MPI_Wait(&requests[at], &statuses[0]);
    if (way == 1) for (int at = 0; at < length; at++) for (flag = 0; !flag;) MPI_Test(&requests[at], &flag, MPI_STATUS_IGNORE);
    if (way == 2) MPI_Waitall(length, requests, statuses);
    if (way == 3) while (!flag) MPI_Testall(length, requests, &flag, statuses);
    if (way == 4) for (; left; left--) MPI_Waitany(length, requests, &index, statuses);
    if (way == 5) for (; left; left -= flag) MPI_Testany(length, requests, &index, &flag, statuses);
    if (way == 6) for (; left; left -= ended) MPI_Waitsome(length, requests, &ended, indices, statuses);
    if (way == 7) for (; left; left -= ended) MPI_Testsome(length, requests, &ended, indices, statuses);
    if (way == 8) {
        while (!flag) MPI_Request_get_status(requests[0], &flag, statuses);
        MPI_Waitall(length, requests, statuses);
    }
#if HAS_GET_STATUS_OF_MANY
    if (way == 9) {
        while (!flag) MPI_Request_get_status_all(length, requests, &flag, statuses);
        for (flag = 0; !flag;) MPI_Request_get_status_any(length, requests, &index, &flag, statuses);
        for (ended = 0; !ended;) MPI_Request_get_status_some(length, requests, &ended, indices, statuses);
        MPI_Waitall(length, requests, statuses);
    }
#endif
}

enum { WAYS = 9 + HAS_GET_STATUS_OF_MANY };

static void messages(int round)
{
    static send_function *const sends[] = {MPI_Send, MPI_Ssend, MPI_Bsend, MPI_Rsend};
    static later_function *const later[] = {MPI_Isend, MPI_Issend, MPI_Ibsend, MPI_Irsend};
    MPI_Request requests[2];
    MPI_Message message;
    MPI_Status status;
    for (int kind = 0; kind < 4; kind++) {
        MPI_Datatype rows = fresh(), own;
        MPI_Type_dup(rows, &own);
        MPI_Irecv(received.memory, 1, rows, 0, TAG, MPI_COMM_SELF, &requests[0]);
        sends[kind](sent.memory, 1, rows, 0, TAG, MPI_COMM_SELF);
        MPI_Wait(&requests[0], &status);
        MPI_Irecv(received.memory, 1, own, 0, TAG, MPI_COMM_SELF, &requests[0]);
        later[kind](sent.memory, 1, own, 0, TAG, MPI_COMM_SELF, &requests[1]);
        /* While messages are under way. */
        MPI_Type_free(&own);
        end((round + kind) % WAYS, 2, requests);
        later[kind % 3](sent.memory, 1, rows, 0, TAG, MPI_COMM_SELF, &requests[0]);
        MPI_Mprobe(0, TAG, MPI_COMM_SELF, &message, &status);
        if (kind % 2) MPI_Mrecv(received.memory, 1, rows, &message, &status);
        else MPI_Imrecv(received.memory, 1, rows, &message, &requests[1]);
        end(2, kind % 2 ? 1 : 2, requests);
        MPI_Isend(sent.memory, 1, rows, 0, TAG, MPI_COMM_SELF, &requests[0]);
        MPI_Recv(received.memory, 1, rows, 0, TAG, MPI_COMM_SELF, &status);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        /* Freed while under way, and cancelled. */
        MPI_Isend(sent.memory, 1, rows, 0, TAG, MPI_COMM_SELF, &requests[0]);
        MPI_Request_free(&requests[0]);
        MPI_Recv(received.memory, 1, rows, 0, TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        MPI_Irecv(received.memory, 1, rows, 0, 77, MPI_COMM_SELF, &requests[0]);
        MPI_Cancel(&requests[0]);
        MPI_Wait(&requests[0], &status);
        MPI_Type_free(&rows);
    }
}

static void exchanges(int round)
{
    MPI_Datatype rows = fresh(), both[] = {rows, rows};
    int ones[] = {1, 1}, places[] = {0, 0}, position = 0;
    MPI_Aint addresses[] = {0, 0};
    MPI_Request request;
    static char packed[COUNT * 4];
    MPI_Sendrecv(sent.memory, 1, rows, 0, TAG, received.memory, 1, rows, 0, TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(sent.memory, 1, rows, 0, TAG, 0, TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
#if HAS_ISENDRECV
    MPI_Isendrecv(sent.memory, 1, rows, 0, TAG, received.memory, 1, rows, 0, TAG, MPI_COMM_SELF, &request);
    end(round % 4, 1, &request);
    MPI_Isendrecv_replace(sent.memory, 1, rows, 0, TAG, 0, TAG, MPI_COMM_SELF, &request);
    end(round % 4, 1, &request);
#endif
    MPI_Pack(sent.memory, 1, rows, packed, sizeof packed, &position, MPI_COMM_SELF);
    position = 0;
    MPI_Unpack(packed, sizeof packed, &position, received.memory, 1, rows, MPI_COMM_SELF);
    MPI_Alltoallw(sent.memory, ones, places, &rows, received.memory, ones, places, &rows, MPI_COMM_SELF);
    MPI_Ialltoallw(sent.memory, ones, places, &rows, received.memory, ones, places, &rows, MPI_COMM_SELF, &request);
    end(round % 4, 1, &request);
    /* To itself, and from nowhere at the ends. */
    MPI_Neighbor_alltoallw(sent.memory, ones, addresses, both, received.memory, ones, addresses, both, ring);
    MPI_Ineighbor_alltoallw(sent.memory, ones, addresses, both, received.memory, ones, addresses, both, ring, &request);
    end(round % 4, 1, &request);
    MPI_Type_free(&rows);
}

static void persistent(int round)
{
    static later_function *const made[] = {MPI_Send_init, MPI_Ssend_init, MPI_Bsend_init, MPI_Rsend_init};
    for (int kind = 0; kind < 4; kind++) {
        MPI_Datatype rows = fresh();
        MPI_Request requests[2];
        MPI_Recv_init(received.memory, 1, rows, 0, TAG, MPI_COMM_SELF, &requests[0]);
        made[kind](sent.memory, 1, rows, 0, TAG, MPI_COMM_SELF, &requests[1]);
        MPI_Type_free(&rows);
        for (int again = 0; again < 2; again++) {
            if (again) MPI_Startall(2, requests);
            else MPI_Start(&requests[0]), MPI_Start(&requests[1]);
            end((round + again) % 4, 2, requests);
        }
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
    }
}

#if HAS_PERSISTENT_COLLECTIVES
static void persistent_exchanges(int round)
{
    MPI_Datatype rows = fresh(), both[] = {rows, rows};
    int ones[] = {1, 1}, places[] = {0, 0};
    MPI_Aint addresses[] = {0, 0};
    MPI_Request requests[2];
    MPI_Alltoallw_init(sent.memory, ones, places, &rows, received.memory, ones, places, &rows, MPI_COMM_SELF, MPI_INFO_NULL, &requests[0]);
    MPI_Neighbor_alltoallw_init(sent.memory, ones, addresses, both, received.memory, ones, addresses, both, ring, MPI_INFO_NULL, &requests[1]);
    for (int again = 0; again < 2; again++) {
        MPI_Startall(2, requests);
        /* MPICH 4.0 and 5.0 report an error in MPI_Testall of these. */
        end((round + again) % 3, 2, requests);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Type_free(&rows);
}
#else
static void persistent_exchanges(int round) {}
#endif

int main(int argc, char **argv)
{
    int wide = 1, alone = 0, room = 1 << 20;
    long least = LONG_MAX;
    begin(&argc, &argv);
    void *attached = malloc((size_t)room);
    MPI_Buffer_attach(attached, room);
    MPI_Cart_create(MPI_COMM_SELF, 1, &wide, &alone, 0, &ring);
    MPI_Datatype rows = fresh();
    sent = elements(rows, 1, 1), received = elements(rows, 1, 2);
    for (int part = -1; part < PARTS; part++) {
        long before = (long)mallinfo2().uordblks;
        for (int round = 0; round < (part < 0 ? WARM : ROUNDS); round++)
            messages(round), exchanges(round), persistent(round), persistent_exchanges(round);
        long grown = (long)mallinfo2().uordblks - before;
        if (part >= 0 && grown < least) least = grown;
    }
    printf("leaks: %ld\n", least * 10 / ROUNDS);
    drop(sent), drop(received);
    MPI_Type_free(&rows);
    MPI_Comm_free(&ring);
    MPI_Buffer_detach(&attached, &room);
    free(attached);
    MPI_Finalize();
    return 0;
}
