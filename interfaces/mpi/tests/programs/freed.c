/*
 * Datatypes that the program frees while their messages are under way, by several threads (MPI_THREAD_MULTIPLE): the MPI destroys them in
 * whichever thread makes progress. Then a datatype with several owners: MPI_Type_get_contents gives each thread the handle that the others
 * free. 2 ranks; THREADS tells how many threads, ROUNDS how often.
 */
#include "check.h"
#include <pthread.h>

enum { MOST_THREADS = 8, PIECE = sizeof(int), STRIDE = 2 * PIECE };

static int rank, threads, rounds;

/* A vector of `count` ints, at every second place: all MPIs have dtc move such pieces. */
static MPI_Datatype every_second(int count)
{
    MPI_Datatype made;
    MPI_Type_vector(count, 1, 2, MPI_INT, &made);
    MPI_Type_commit(&made);
    return made;
}

/* Sends to the other rank and receives from it; both datatypes are freed before the messages end. The first sizes are left to the MPI,
   the last is packed by dtc. */
static void *exchange(void *argument)
{
    static const int counts[] = {40, 200, 700, 2500};
    int thread = *(int *)argument;
    for (int round = 0; round < rounds; round++) {
        int count = counts[round % 4] + thread, seed = round * MOST_THREADS + thread;
        MPI_Datatype out = every_second(count), in = every_second(count), copy;
        MPI_Request requests[3];
        MPI_Status statuses[3];
        int number = -1;
        struct elements sent = elements(out, 1, (unsigned)seed * 2 + (unsigned)rank), received = elements(in, 1, 3);
        MPI_Type_dup(in, &copy);
        MPI_Irecv(received.memory, 1, round % 2 ? in : copy, 1 - rank, thread, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&number, 1, MPI_INT, 1 - rank, MOST_THREADS + thread, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(sent.memory, 1, out, 1 - rank, thread, MPI_COMM_WORLD, &requests[2]);
        MPI_Type_free(&in);
        MPI_Type_free(&out);
        MPI_Type_free(&copy);
        MPI_Send(&round, 1, MPI_INT, 1 - rank, MOST_THREADS + thread, MPI_COMM_WORLD);
        MPI_Waitall(3, requests, statuses);
        CHECK(number == round, "%d in round %d", number, round);
        /* Gaps stay as they were. */
        for (long at = 0; at < received.length; at++) {
            int comes = at < (long)count * STRIDE && at % STRIDE < PIECE;
            unsigned char expected = byte_at(at, comes ? (unsigned)seed * 2 + (unsigned)(1 - rank) : 3);
            CHECK(received.bytes[at] == expected, "byte %ld, thread %d, round %d", at, thread, round);
        }
        drop(sent);
        drop(received);
    }
    return NULL;
}

/* A datatype whose only part all threads own at times. */
static MPI_Datatype whole;

static void *share(void *argument)
{
    static const int count = 3000;
    (void)argument;
    unsigned char *packed = malloc((size_t)count * PIECE), *memory = malloc((size_t)count * STRIDE);
    for (long at = 0; at < count * STRIDE; at++) memory[at] = byte_at(at, 7);
    for (int round = 0; round < rounds; round++) {
        int integers[1], position = 0;
        MPI_Aint addresses[1];
        MPI_Datatype part;
        MPI_Type_get_contents(whole, 1, 0, 1, integers, addresses, &part);
        for (int again = 0; again < 4; again++) {
            position = 0;
            memset(packed, 0, (size_t)count * PIECE);
            MPI_Pack(memory, 1, part, packed, count * PIECE, &position, MPI_COMM_SELF);
            CHECK(position == count * PIECE, "%d", position);
            for (long at = 0; at < position; at++) CHECK(packed[at] == byte_at(at / PIECE * STRIDE + at % PIECE, 7), "byte %ld, round %d", at, round);
        }
        MPI_Type_free(&part);
    }
    free(packed);
    free(memory);
    return NULL;
}

static void in_threads(void *(*work)(void *))
{
    pthread_t started[MOST_THREADS];
    int numbers[MOST_THREADS];
    for (int at = 0; at < threads; at++) numbers[at] = at, pthread_create(&started[at], NULL, work, &numbers[at]);
    for (int at = 0; at < threads; at++) pthread_join(started[at], NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Comm copy;
    threads = atoi(getenv("THREADS"));
    rounds = atoi(getenv("ROUNDS"));
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(provided == MPI_THREAD_MULTIPLE, "%d", provided);
    in_threads(exchange);
    MPI_Datatype part = every_second(3000);
    MPI_Type_contiguous(1, part, &whole);
    MPI_Type_free(&part);
    in_threads(share);
    MPI_Type_free(&whole);
    CHECK(whole == MPI_DATATYPE_NULL, "a handle");
    /* Communicators have attributes too, from the first exchange on. */
    for (int way = 0; way < 2; way++) {
        int sizes[] = {1, 1}, counts[] = {1, 1}, places[] = {0, 4}, sent[] = {rank, rank + 10}, received[] = {-1, -1};
        MPI_Datatype datatypes[] = {MPI_INT, MPI_INT};
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Alltoallw(sent, counts, places, datatypes, received, sizes, places, datatypes, copy);
        CHECK(received[0] == rank * 10 && received[1] == rank * 10 + 1, "%d %d", received[0], received[1]);
        if (way == 0) MPI_Comm_free(&copy);
        else MPI_Comm_disconnect(&copy);
        CHECK(copy == MPI_COMM_NULL, "a handle");
    }
    if (rank == 0) puts("freed: done");
    MPI_Finalize();
    return 0;
}
