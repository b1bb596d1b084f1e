/* A plugin that brings its own MPI and packs with it, twice: the interposer has decoded the datatype at its commit. */
#include "check.h"

int run(void)
{
    MPI_Datatype rows;
    int numbers[8000], packed[4000], position = 0;
    MPI_Init(NULL, NULL);
    for (int at = 0; at < 8000; at++) numbers[at] = at * 7 + 1;
    MPI_Type_vector(4000, 1, 2, MPI_INT, &rows);
    MPI_Type_commit(&rows);
    MPI_Pack(numbers, 1, rows, packed, sizeof packed, &position, MPI_COMM_SELF);
    for (int at = 0; at < 4000; at++) CHECK(packed[at] == numbers[2 * at], "%d", at);
    MPI_Type_free(&rows);
    MPI_Finalize();
    puts("plugin: done");
    return 0;
}
