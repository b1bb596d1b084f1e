/*
 * What a datatype costs that is made, committed, used once and freed: the calls of the MPI alone (PMPI_...) and with libdtc_mpi preloaded, in turns,
 * in one process that sends to itself. See README.md.
 *
 * Prints a line for each kind of datatype, use and size: nanoseconds alone, with, and more; medians of rounds.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum use { NONE, PACK, SEND, USES };
enum kind { VECTOR, SUBARRAY, STRUCT, LIST, KINDS };
static const char *const USE_NAMES[] = {"none", "pack", "send"}, *const KIND_NAMES[] = {"vector", "subarray", "struct", "list"};

/* Nanoseconds that a round takes at least, rounds whose median counts, and doubles in a piece. */
enum { ROUND = 300000, ROUNDS = 21, PIECE = 4 };

static double *memory, *received;
static char *packed;

static MPI_Datatype make(enum kind kind, int pieces, const int *places)
{
    MPI_Datatype made = MPI_DATATYPE_NULL;
    int sizes[2] = {pieces, 2 * PIECE}, parts[2] = {pieces, PIECE}, starts[2] = {0, 0};
    int lengths[3] = {3 * pieces, 1, 1};
    MPI_Aint bytes[3] = {0, 8 * 4 * pieces, 8 * 5 * pieces};
    MPI_Datatype types[3] = {MPI_DOUBLE, MPI_DOUBLE, MPI_INT};
    switch (kind) {
    case VECTOR: MPI_Type_vector(pieces, PIECE, 2 * PIECE, MPI_DOUBLE, &made); break;
    case SUBARRAY: MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &made); break;
    case STRUCT: MPI_Type_create_struct(3, lengths, bytes, types, &made); break;
    default: MPI_Type_create_indexed_block(pieces, PIECE, places, MPI_DOUBLE, &made);
    }
    return made;
}

static void once(enum kind kind, enum use use, int pieces, const int *places, int with)
{
    MPI_Datatype type = make(kind, pieces, places);
    int position = 0, room = 8 * PIECE * pieces + 64;
    (with ? MPI_Type_commit : PMPI_Type_commit)(&type);
    if (use == PACK) (with ? MPI_Pack : PMPI_Pack)(memory, 1, type, packed, room, &position, MPI_COMM_SELF);
    if (use == SEND)
        (with ? MPI_Sendrecv : PMPI_Sendrecv)(memory, 1, type, 0, 0, received, 1, type, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    (with ? MPI_Type_free : PMPI_Type_free)(&type);
}

static double round_of(enum kind kind, enum use use, int pieces, const int *places, int with, int calls)
{
    double begin = MPI_Wtime();
    for (int at = 0; at < calls; at++) once(kind, use, pieces, places, with);
    return (MPI_Wtime() - begin) * 1e9 / calls;
}

static int is_above(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const int largest = argc > 1 ? atoi(argv[1]) : 1 << 20;
    memory = calloc(3, (size_t)largest), received = calloc(3, (size_t)largest), packed = malloc((size_t)largest + 4096);
    int *places = malloc(sizeof *places * (size_t)largest / 8);
    for (int at = 0; at < largest / 8; at++) places[at] = 2 * PIECE * at + at % PIECE;
    for (enum kind kind = VECTOR; kind < KINDS; kind++)
        for (enum use use = NONE; use < USES; use++)
            for (int bytes = 128; bytes <= largest; bytes *= bytes < 512 ? 2 : 8) {
                double times[2][ROUNDS];
                int pieces = bytes / 8 / PIECE;
                for (int at = 0; at < 30; at++) once(kind, use, pieces, places, at % 2);
                int calls = (int)(ROUND / round_of(kind, use, pieces, places, 0, 10)) + 1;
                for (int at = 0; at < 2 * ROUNDS; at++) {
                    int with = (at + at / 2) % 2;
                    times[with][at / 2] = round_of(kind, use, pieces, places, with, calls);
                }
                for (int with = 0; with < 2; with++) qsort(times[with], ROUNDS, sizeof(double), is_above);
                double alone = times[0][ROUNDS / 2], with = times[1][ROUNDS / 2];
                printf("%-9s %-5s %8d %10.0f %10.0f %+8.0f %6.3f%s\n", KIND_NAMES[kind], USE_NAMES[use], bytes, alone, with, with - alone,
                       with / alone, with > 1.05 * alone && with > alone + 40 ? " over" : "");
                fflush(stdout);
            }
    MPI_Finalize();
    return 0;
}
