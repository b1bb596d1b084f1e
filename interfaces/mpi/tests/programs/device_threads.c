/* Two threads of each process in exchanges and messages of elements on a GPU at the same time, each in a communicator of its own. 2 ranks or more. */
#include "device.h"
#include <pthread.h>

enum { THREADS = 2, ROUNDS = 40, PAIRS = 16 };

static int rank, ranks;

/* Against the MPI on the host, with vectors of lengths that differ from call to call. */
static void exchange(MPI_Comm communicator, int round)
{
    int words = 100 + 997 * (round % 7), length = ranks * words * 12, counts[PAIRS], places[PAIRS];
    MPI_Datatype out_types[PAIRS], in_types[PAIRS];
    for (int at = 0; at < ranks; at++) {
        MPI_Type_vector(words, 1, 2, MPI_INT, &out_types[at]);
        MPI_Type_vector(words, 1, 3, MPI_INT, &in_types[at]);
        MPI_Type_commit(&out_types[at]), MPI_Type_commit(&in_types[at]);
        counts[at] = 1, places[at] = at * words * 12;
    }
    struct buffer out = buffer(MPI_BYTE, length, (unsigned)(rank + round), ON_DEVICE);
    struct buffer in = buffer(MPI_BYTE, length, 4, ON_DEVICE), expected = buffer(MPI_BYTE, length, 4, ON_HOST);
    PMPI_Alltoallw(out.host.memory, counts, places, out_types, expected.memory, counts, places, in_types, communicator);
    MPI_Alltoallw(out.memory, counts, places, out_types, in.memory, counts, places, in_types, communicator);
    download(&in);
    CHECK(same(in.host, expected.host), "round %d", round);
    release(&out), release(&in), release(&expected);
    for (int at = 0; at < ranks; at++) MPI_Type_free(&out_types[at]), MPI_Type_free(&in_types[at]);
}

/* Several messages around the ring, of lengths that differ, received on the GPU and on the host. */
static void message(MPI_Comm communicator, int round)
{
    enum { MESSAGES = 4 };
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks, words = 1500 + 997 * (round % 7), found;
    MPI_Datatype rows;
    MPI_Request requests[2 * MESSAGES];
    MPI_Status statuses[2 * MESSAGES];
    struct buffer out[MESSAGES], in[MESSAGES];
    MPI_Type_vector(words, 1, 2, MPI_INT, &rows);
    MPI_Type_commit(&rows);
    for (int at = 0; at < MESSAGES; at++) {
        out[at] = buffer(rows, 1 + at, (unsigned)(100 * rank + round + at), ON_DEVICE);
        in[at] = buffer(rows, 1 + at, 4, at % 2 ? ON_HOST : ON_DEVICE);
        MPI_Irecv(in[at].memory, 1 + at, rows, left, at, communicator, &requests[at]);
        MPI_Isend(out[at].memory, 1 + at, rows, right, at, communicator, &requests[MESSAGES + at]);
    }
    MPI_Waitall(2 * MESSAGES, requests, statuses);
    for (int at = 0; at < MESSAGES; at++) {
        struct elements sent = elements(rows, 1 + at, (unsigned)(100 * left + round + at)), expected = elements(rows, 1 + at, 4);
        expect(sent, expected, 4 * words * (1 + at));
        download(&in[at]);
        MPI_Get_count(&statuses[at], rows, &found);
        CHECK(same(in[at].host, expected) && found == 1 + at, "round %d, message %d", round, at);
        release(&out[at]), release(&in[at]), drop(sent), drop(expected);
    }
    MPI_Type_free(&rows);
}

static void *work(void *communicator)
{
    open_device(0);
    for (int round = 0; round < ROUNDS; round++) exchange(*(MPI_Comm *)communicator, round), message(*(MPI_Comm *)communicator, round);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Comm communicators[THREADS];
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(ranks <= PAIRS, "%d", ranks);
    open_device(0);
    for (int at = 0; at < THREADS; at++) MPI_Comm_dup(MPI_COMM_WORLD, &communicators[at]);
    /* An MPI without threads runs one after the other. */
    for (int at = 0; at < THREADS; at++) {
        pthread_create(&threads[at], NULL, work, &communicators[at]);
        if (provided < MPI_THREAD_MULTIPLE) pthread_join(threads[at], NULL);
    }
    for (int at = 0; at < THREADS && provided >= MPI_THREAD_MULTIPLE; at++) pthread_join(threads[at], NULL);
    for (int at = 0; at < THREADS; at++) MPI_Comm_free(&communicators[at]);
    if (rank == 0) puts("device_threads: done");
    MPI_Finalize();
    return 0;
}
