/* Two threads of each process in exchanges of elements on a GPU at the same time, each in a communicator of its own. 2 ranks or more. */
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

static void *work(void *communicator)
{
    open_device(0);
    for (int round = 0; round < ROUNDS; round++) exchange(*(MPI_Comm *)communicator, round);
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
