/*
 * Memory of committed datatypes: bytes of each of 10,000 that are alive at once, of a shape, each of another size. First committed
 * alone, then after 2,048 pieces and more of each were packed. Prints what the process has more (VmRSS).
 *
 *   type_memory 0|1|2          vectors, subarrays, or lists of blocks
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TYPES = 10000, LIST = 64, PACKS = 2048 / LIST + 1 };

static MPI_Datatype types[TYPES];

static long resident(void) {
    char line[256];
    long found = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        sscanf(line, "VmRSS: %ld kB", &found);
    }
    fclose(status);
    return found * 1024;
}

static MPI_Datatype made(int shape, int number) {
    MPI_Datatype type;
    if (shape == 0) {
        MPI_Type_vector(1100 + number, 2, 5, MPI_INT, &type);
    } else if (shape == 1) {
        int sizes[3] = {12, 12, 40 + number}, parts[3] = {10, 10, 30 + number % 10}, starts[3] = {1, 1, 1};
        MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
    } else {
        int lengths[LIST], places[LIST];
        for (int at = 0; at < LIST; at++) {
            lengths[at] = 34 + at % 3;
            places[at] = at * (80 + number % 9) + (at * number) % 7;
        }
        MPI_Type_indexed(LIST, lengths, places, MPI_INT, &type);
    }
    MPI_Type_commit(&type);
    return type;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const char *const names[] = {"vector", "subarray", "list of 64 blocks"};
    char *memory = calloc(1, 64 << 20), *packed = malloc(64 << 20);
    memset(packed, 1, 64 << 20);
    int shape = argc == 2 ? atoi(argv[1]) % 3 : 0;
    MPI_Datatype first = made(shape, TYPES);
    for (int at = 0; at < 9; at++) {
        int position = 0;
        MPI_Pack(memory, 1, first, packed, 64 << 20, &position, MPI_COMM_SELF);
    }
    long before = resident();
    for (int at = 0; at < TYPES; at++) {
        types[at] = made(shape, at);
    }
    long committed = resident();
    for (int at = 0; at < TYPES; at++) {
        for (int time = 0; time < PACKS; time++) {
            int position = 0;
            MPI_Pack(memory, 1, types[at], packed, 64 << 20, &position, MPI_COMM_SELF);
        }
    }
    sleep(2);
    printf("%s %ld %ld\n", names[shape], (committed - before) / TYPES, (resident() - committed) / TYPES);
    fflush(stdout);
    for (int at = 0; at < TYPES; at++) {
        MPI_Type_free(&types[at]);
    }
    MPI_Type_free(&first);
    free(memory);
    free(packed);
    MPI_Finalize();
    return 0;
}
