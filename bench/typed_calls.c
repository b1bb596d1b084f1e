/*
 * Calls that move derived datatypes other than as messages: microseconds of MPI_Alltoallw and MPI_Neighbor_alltoallw with vectors (blocks
 * at twice their length), and of MPI_File_write_all, where each process writes its columns of a matrix in memory, with a halo around, to
 * its columns of a file. The least of a number of rounds.
 *
 *   mpirun -n N typed_calls FILE
 *
 * What arrives, and what is in the file, is compared, every byte.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 20, ROUNDS = 9, MOST_RANKS = 8 };

static int rank, ranks;
static unsigned char *sent, *received;

static void fail(const char *what, long length, long bytes, long at) {
    fprintf(stderr, "%s, %ld bytes in blocks of %ld: expected another byte at %ld\n", what, bytes, length, at);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

typedef struct {
    int counts[MOST_RANKS], places[MOST_RANKS];
    MPI_Aint wide[MOST_RANKS];
    MPI_Datatype types[MOST_RANKS];
} parts;

static parts parts_of(MPI_Datatype type, long bytes, int number) {
    parts made;
    for (int at = 0; at < number; at++) {
        made.counts[at] = 1;
        made.wide[at] = made.places[at] = (int)(at * 2 * bytes);
        made.types[at] = type;
    }
    return made;
}

/* The least of the rounds of the slowest process, in microseconds. */
static double measured(const parts *of, MPI_Comm neighbors, long bytes) {
    double least = 1e30;
    long number = 4 + 200000 / (bytes + 200);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime(), slowest, found;
        for (long at = 0; at < number; at++) {
            if (neighbors == MPI_COMM_NULL) {
                MPI_Alltoallw(sent, of->counts, of->places, of->types, received, of->counts, of->places, of->types, MPI_COMM_WORLD);
            } else {
                MPI_Neighbor_alltoallw(sent, of->counts, of->wide, of->types, received, of->counts, of->wide, of->types, neighbors);
            }
        }
        found = (MPI_Wtime() - begin) * 1e6 / (double)number;
        MPI_Allreduce(&found, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        least = slowest < least ? slowest : least;
    }
    return least;
}

static void exchanges(MPI_Comm neighbors) {
    const char *name = neighbors == MPI_COMM_NULL ? "alltoallw" : "neighbor_alltoallw";
    int number = neighbors == MPI_COMM_NULL ? ranks : 2;
    for (long length = 8; length <= 2048; length *= 4) {
        for (long bytes = 1024; bytes <= 262144; bytes *= 16) {
            if (bytes < 2 * length) {
                continue;
            }
            MPI_Datatype type;
            MPI_Type_vector((int)(bytes / length), (int)length, (int)(2 * length), MPI_BYTE, &type);
            MPI_Type_commit(&type);
            parts of = parts_of(type, bytes, number);
            memset(sent, rank + 1, (size_t)number * 2 * (size_t)bytes);
            memset(received, 0, (size_t)number * 2 * (size_t)bytes);
            double found = measured(&of, neighbors, bytes);
            for (long at = 0; at < number * 2 * bytes; at++) {
                int part = (int)(at / (2 * bytes)), from = part;
                if (neighbors != MPI_COMM_NULL) {
                    from = (rank + (part == 0 ? ranks - 1 : 1)) % ranks;
                }
                if (received[at] != (at % (2 * length) < length ? from + 1 : 0)) {
                    fail(name, length, bytes, at);
                }
            }
            if (rank == 0) {
                printf("%s %ld %ld %.2f\n", name, length, bytes, found);
                fflush(stdout);
            }
            MPI_Type_free(&type);
        }
    }
}

/* `side` x `side` values, of which each process has as many columns, with a halo of 4 values on each side. */
static void file(const char *path, long side, int unit) {
    int columns = (int)(side / ranks), whole[2] = {(int)side, (int)side}, own[2] = {(int)side, columns}, at[2] = {0, rank * columns};
    int padded[2] = {(int)side + 8, columns + 8}, inside[2] = {4, 4};
    MPI_Datatype value, in_file, in_memory;
    MPI_Type_contiguous(unit, MPI_BYTE, &value);
    MPI_Type_create_subarray(2, whole, own, at, MPI_ORDER_C, value, &in_file);
    MPI_Type_create_subarray(2, padded, own, inside, MPI_ORDER_C, value, &in_memory);
    MPI_Type_commit(&in_file);
    MPI_Type_commit(&in_memory);
    size_t room = (size_t)padded[0] * (size_t)padded[1] * (size_t)unit;
    unsigned char *memory = malloc(room);
    memset(memory, rank + 1, room);
    MPI_File open;
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &open);
    double least = 1e30;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_File_set_view(open, 0, MPI_BYTE, in_file, "native", MPI_INFO_NULL);
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime(), slowest, found;
        MPI_File_write_all(open, memory, 1, in_memory, MPI_STATUS_IGNORE);
        found = (MPI_Wtime() - begin) * 1e6;
        MPI_Allreduce(&found, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        least = slowest < least ? slowest : least;
    }
    MPI_File_close(&open);
    if (rank == 0) {
        FILE *read = fopen(path, "rb");
        for (long byte = 0; byte < side * side * unit; byte++) {
            if (read == NULL || fgetc(read) != (int)(byte % (side * unit) / (columns * unit)) + 1) {
                fail("file", unit, side * side * unit, byte);
            }
        }
        fclose(read);
        remove(path);
        printf("write_all %ld x %ld of %d bytes %.2f\n", side, side, unit, least);
        fflush(stdout);
    }
    free(memory);
    MPI_Type_free(&value);
    MPI_Type_free(&in_file);
    MPI_Type_free(&in_memory);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 2 || ranks > MOST_RANKS) {
        fprintf(stderr, "usage: mpirun -n N %s FILE, with at most %d processes\n", argv[0], MOST_RANKS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    sent = malloc((size_t)MOST_RANKS * 2 * MOST);
    received = malloc((size_t)MOST_RANKS * 2 * MOST);
    exchanges(MPI_COMM_NULL);
    MPI_Comm ring;
    int periods = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periods, 0, &ring);
    exchanges(ring);
    MPI_Comm_free(&ring);
    for (long side = 256; side <= 2048; side *= 8) {
        file(argv[1], side, 1);
        file(argv[1], side, 8);
    }
    free(sent);
    free(received);
    MPI_Finalize();
    return 0;
}
