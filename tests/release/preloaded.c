/* A column of a matrix goes around a ring of processes, again and again. Ends with 0 if each arrives as it was sent. */
#include <mpi.h>
#include <stdio.h>

enum { ROWS = 3000, COLUMNS = 8, ROUNDS = 100 };

static double sent[ROWS][COLUMNS], received[ROWS][COLUMNS];

int main(int count, char **arguments) {
    int rank, size, wrong = 0, all;
    MPI_Datatype column;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_vector(ROWS, 1, COLUMNS, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int round = 0; round < ROUNDS; round++) {
        int before = (rank + size - 1) % size;
        for (int row = 0; row < ROWS; row++) sent[row][2] = rank * 1e6 + round * 1e4 + row;
        MPI_Sendrecv(&sent[0][2], 1, column, (rank + 1) % size, 7, &received[0][5], 1, column, before, 7, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        for (int row = 0; row < ROWS; row++) {
            wrong += received[row][5] != before * 1e6 + round * 1e4 + row || received[row][4] != 0;
        }
    }
    MPI_Type_free(&column);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("ring of %d: %d columns, %d wrong doubles\n", size, ROUNDS, all);
    MPI_Finalize();
    return all != 0;
}
