/* Threads that make datatypes, send and receive with them, and free them at once (MPI_THREAD_MULTIPLE). 2 ranks. */
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 300 };

static int rank;

static void *work(void *argument)
{
    int thread = *(int *)argument;
    for (int round = 0; round < ROUNDS; round++) {
        int count = 1500 + thread * 100 + round;
        MPI_Datatype rows;
        MPI_Type_vector(2 * count, 1, 2, MPI_INT, &rows);
        MPI_Type_commit(&rows);
        unsigned seed = (unsigned)(thread * ROUNDS + round);
        struct elements sent = elements(rows, 1, seed), received = elements(rows, 1, 3), expected = elements(rows, 1, 3);
        for (int again = 0; again < 4; again++) {
            int number = -1, flag = 0;
            MPI_Request requests[2];
            if (again % 2 == 0) {
                if (rank == 0) MPI_Send(sent.memory, 1, rows, 1, thread, MPI_COMM_WORLD);
                if (rank == 1) MPI_Recv(received.memory, 1, rows, 0, thread, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                continue;
            }
            /* Handles of requests that have ended come again in other threads. */
            if (rank == 0) {
                MPI_Isend(&round, 1, MPI_INT, 1, THREADS + thread, MPI_COMM_WORLD, &requests[0]);
                MPI_Isend(sent.memory, 1, rows, 1, thread, MPI_COMM_WORLD, &requests[1]);
            } else {
                MPI_Irecv(&number, 1, MPI_INT, 0, THREADS + thread, MPI_COMM_WORLD, &requests[0]);
                MPI_Irecv(received.memory, 1, rows, 0, thread, MPI_COMM_WORLD, &requests[1]);
            }
            if (again == 1) MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            else while (!flag) MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
            CHECK(rank == 0 || number == round, "%d in round %d", number, round);
        }
        if (rank == 1) {
            expect(sent, expected, count * 8);
            CHECK(same(received, expected), "thread %d, round %d", thread, round);
        }
        drop(sent);
        drop(received);
        drop(expected);
        MPI_Type_free(&rows);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, numbers[THREADS];
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(provided == MPI_THREAD_MULTIPLE, "%d", provided);
    for (int at = 0; at < THREADS; at++) numbers[at] = at, pthread_create(&threads[at], NULL, work, &numbers[at]);
    for (int at = 0; at < THREADS; at++) pthread_join(threads[at], NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) puts("threads: done");
    MPI_Finalize();
    return 0;
}
