/*
 * Times messages of vectors of doubles between two processes, with the MPI alone or with libdtc_mpi preloaded: the same program.
 * Prints, for each length of block and number of bytes, microseconds one way of MPI_Send and MPI_Recv, of an exchange of four
 * messages in both directions with MPI_Irecv, MPI_Isend and MPI_Waitall, and of MPI_Pack: the shortest of all rounds. Blocks lie at
 * twice their length. Elements, and what is received, are compared once for each.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 4, ROUNDS = 7 };

static int rank;
static double *memory, *back;

static void round_trip(MPI_Datatype rows)
{
    if (rank == 0) MPI_Send(memory, 1, rows, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(back, 1, rows, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(memory, 1, rows, 0, 0, MPI_COMM_WORLD);
}

static void exchange(MPI_Datatype rows, long length)
{
    MPI_Request requests[2 * MESSAGES];
    for (int at = 0; at < MESSAGES; at++)
        MPI_Irecv(back + at * length, 1, rows, !rank, at, MPI_COMM_WORLD, &requests[at]);
    for (int at = 0; at < MESSAGES; at++)
        MPI_Isend(memory + at * length, 1, rows, !rank, at, MPI_COMM_WORLD, &requests[MESSAGES + at]);
    MPI_Waitall(2 * MESSAGES, requests, MPI_STATUSES_IGNORE);
}

static double time_of(int kind, MPI_Datatype rows, long length, long bytes, void *packed)
{
    int calls = bytes > 200000 ? 20 : bytes > 20000 ? 100 : 300;
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        for (int call = 0; call < calls; call++) {
            int position = 0;
            if (kind == 0) round_trip(rows);
            if (kind == 1) exchange(rows, length);
            if (kind == 2) MPI_Pack(memory, 1, rows, packed, (int)bytes, &position, MPI_COMM_WORLD);
        }
        double time = (MPI_Wtime() - begin) / calls * 1e6;
        if (time < best) best = time;
    }
    return kind == 0 ? best / 2 : best;
}

static void compare(long blocks, long block, long length, int messages)
{
    for (long at = 0; at < messages * length; at++) {
        int inside = at % length / block % 2 == 0 && at % length < 2 * block * blocks;
        if (back[at] == (inside ? (double)at : -1)) continue;
        printf("%ld: expected another number, found %g\n", at, back[at]);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) puts("block bytes message exchange pack");
    for (long block = 1; block <= 128; block *= block < 4 ? 4 : 2)
        for (long bytes = 1024; bytes <= 1 << 20; bytes *= bytes < 8192 ? 2 : bytes < 1 << 16 ? 8 : 4) {
            long blocks = bytes / 8 / block, length = 2 * blocks * block;
            MPI_Datatype rows;
            if (blocks < 2) continue;
            MPI_Type_vector((int)blocks, (int)block, 2 * (int)block, MPI_DOUBLE, &rows);
            MPI_Type_commit(&rows);
            memory = malloc((size_t)(MESSAGES * length) * sizeof *memory);
            back = malloc((size_t)(MESSAGES * length) * sizeof *back);
            void *packed = malloc((size_t)bytes);
            for (long at = 0; at < MESSAGES * length; at++) memory[at] = (double)at, back[at] = -1;
            exchange(rows, length);
            compare(blocks, block, length, MESSAGES);
            double times[3];
            for (int kind = 0; kind < 3; kind++) times[kind] = time_of(kind, rows, length, bytes, packed);
            if (rank == 0) printf("%ld %ld %.2f %.2f %.2f\n", 8 * block, bytes, times[0], times[1], times[2]);
            free(memory), free(back), free(packed);
            MPI_Type_free(&rows);
        }
    MPI_Finalize();
    return 0;
}
