/*
 * Vectors that are made, committed, unpacked once and freed: nanoseconds of all four, the least of a number of rounds. Blocks are at twice
 * their length.
 *
 *   mpirun -n 1 single_uses
 *
 * For an MPI with dtc inside and the same without, by LD_LIBRARY_PATH.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 18, ROUNDS = 15 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    char *memory = calloc(2, MOST), *packed = malloc(MOST);
    memset(packed, 1, MOST);
    for (int bytes = 8192; bytes <= MOST; bytes *= bytes == 65536 ? 4 : 2) {
        for (int length = 8; length <= 2048; length *= 2) {
            double least = 1e30;
            int calls = 20 + 2000000 / bytes;
            for (int round = 0; round < ROUNDS; round++) {
                double begin = MPI_Wtime(), found;
                for (int call = 0; call < calls; call++) {
                    MPI_Datatype type;
                    int position = 0;
                    MPI_Type_vector(bytes / length, length, 2 * length, MPI_BYTE, &type);
                    MPI_Type_commit(&type);
                    MPI_Unpack(packed, bytes, &position, memory, 1, type, MPI_COMM_SELF);
                    MPI_Type_free(&type);
                }
                found = (MPI_Wtime() - begin) * 1e9 / calls;
                least = found < least ? found : least;
            }
            for (int at = 0; at < 2 * bytes; at++) {
                if (memory[at] != (at % (2 * length) < length)) {
                    fprintf(stderr, "%d bytes in blocks of %d: expected another byte at %d\n", bytes, length, at);
                    MPI_Abort(MPI_COMM_WORLD, 1);
                }
            }
            memset(memory, 0, 2 * MOST);
            printf("%d %d %.0f\n", bytes, length, least);
        }
    }
    free(memory);
    free(packed);
    MPI_Finalize();
    return 0;
}
