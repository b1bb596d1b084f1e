/* A program that has the processor trap floating-point exceptions, as debuggers of numbers do: packs and messages of many datatypes, until
   kernels are compiled. 1 rank. */
#define _GNU_SOURCE
#include <fenv.h>
#include <mpi.h>
#include <stdio.h>

enum { BYTES = 1 << 22, ENTRIES = 500 };

static char memory[BYTES], received[BYTES], packed[BYTES];

static void use(MPI_Datatype type, int times)
{
    MPI_Type_commit(&type);
    for (int time = 0; time < times; time++) {
        int position = 0, end;
        MPI_Pack(memory, 1, type, packed, BYTES, &position, MPI_COMM_SELF);
        end = position, position = 0;
        MPI_Unpack(packed, end, &position, received, 1, type, MPI_COMM_SELF);
        MPI_Sendrecv(memory, 1, type, 0, 0, received, 1, type, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    }
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    MPI_Datatype type, parts[ENTRIES];
    int lengths[ENTRIES], places[ENTRIES];
    MPI_Aint addresses[ENTRIES];
    MPI_Init(&argc, &argv);
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
    for (int at = 0; at < ENTRIES; at++) {
        lengths[at] = 1 + at % 3, places[at] = 7 * at + at % 2, addresses[at] = 64 * at;
        parts[at] = at % 2 ? MPI_DOUBLE : MPI_INT;
    }
    for (int length = 1; length <= 512; length *= 2)
        for (int apart = 2; apart <= 8; apart *= 4) {
            MPI_Type_vector(BYTES / 16 / length / apart, length, length * apart, MPI_DOUBLE, &type);
            use(type, 20);
        }
    MPI_Type_indexed(ENTRIES, lengths, places, MPI_DOUBLE, &type);
    use(type, 500);
    MPI_Type_create_struct(ENTRIES, lengths, addresses, parts, &type);
    use(type, 500);
    MPI_Type_contiguous(1000, MPI_DOUBLE, &type);
    use(type, 500);
    printf("traps: done\n");
    MPI_Finalize();
    return 0;
}
