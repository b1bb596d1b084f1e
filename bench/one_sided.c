/*
 * One-sided calls with vectors, from one process to another: microseconds of MPI_Put and of MPI_Accumulate (MPI_SUM of doubles) with a
 * contiguous origin, completed by MPI_Win_flush. Blocks are at twice their length. The least of a number of rounds.
 *
 *   mpirun -n 2 one_sided [created]
 *
 * Windows are allocated by MPI, or "created" in memory of this program. Every target is compared with what it should have.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 20, ROUNDS = 9 };

static MPI_Win window;
static double *origin, *target;
static int rank;

static void call(int accumulates, long doubles, MPI_Datatype type) {
    if (accumulates) {
        MPI_Accumulate(origin, (int)doubles, MPI_DOUBLE, 1, 0, 1, type, MPI_SUM, window);
    } else {
        MPI_Put(origin, (int)doubles, MPI_DOUBLE, 1, 0, 1, type, window);
    }
    MPI_Win_flush(1, window);
}

/* Calls until some milliseconds are over. Returns the microseconds of one, and adds how often it called. */
static double measured(int accumulates, long doubles, MPI_Datatype type, long *calls) {
    long number = 8 + 400000 / (doubles + 100);
    double begin = MPI_Wtime();
    for (long at = 0; at < number; at++) {
        call(accumulates, doubles, type);
    }
    *calls += number;
    return (MPI_Wtime() - begin) * 1e6 / (double)number;
}

static void check(long doubles, long length, double expected, const char *name) {
    for (long at = 0; at < 2 * doubles; at++) {
        double found = target[at], wanted = at % (2 * length) < length ? expected * (double)(at / (2 * length) * length + at % length) : 0;
        if (found != wanted) {
            fprintf(stderr, "%s, %ld doubles in blocks of %ld: at %ld: expected %g, found %g\n", name, doubles, length, at, wanted, found);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

static double row(int accumulates, long doubles, long length) {
    MPI_Datatype type;
    MPI_Type_vector((int)(doubles / length), (int)length, (int)(2 * length), MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    memset(target, 0, sizeof(double) * 2 * MOST / sizeof(double));
    MPI_Barrier(MPI_COMM_WORLD);
    double least = 1e30;
    long calls = 0;
    if (rank == 0) {
        MPI_Win_lock_all(0, window);
        for (int round = 0; round < ROUNDS; round++) {
            double found = measured(accumulates, doubles, type, &calls);
            least = found < least ? found : least;
        }
        MPI_Win_unlock_all(window);
    }
    MPI_Bcast(&calls, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
        check(doubles, length, accumulates ? (double)calls : 1, accumulates ? "MPI_Accumulate" : "MPI_Put");
        MPI_Win_unlock(1, window);
    }
    MPI_Type_free(&type);
    MPI_Barrier(MPI_COMM_WORLD);
    return least;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 1 && strcmp(argv[1], "created") == 0) {
        target = malloc(2 * MOST);
        MPI_Win_create(target, 2 * MOST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    } else {
        MPI_Win_allocate(2 * MOST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &target, &window);
    }
    origin = malloc(MOST);
    for (long at = 0; at < (long)(MOST / sizeof(double)); at++) {
        origin[at] = (double)at;
    }
    for (int accumulates = 0; accumulates < 2; accumulates++) {
        for (long length = 1; length <= 256; length *= 2) {
            for (long bytes = 1024; bytes <= MOST; bytes *= bytes == 65536 ? 16 : 8) {
                long doubles = bytes / (long)sizeof(double);
                if (doubles >= 2 * length) {
                    double found = row(accumulates, doubles, length);
                    if (rank == 0) {
                        printf("%s %ld %ld %.3f\n", accumulates ? "accumulate" : "put", length * (long)sizeof(double), bytes, found);
                        fflush(stdout);
                    }
                }
            }
        }
    }
    MPI_Win_free(&window);
    free(origin);
    MPI_Finalize();
    return 0;
}
