/* What a call costs more that goes on to the MPI, in nanoseconds: the shortest of many batches of packs of few bytes, against the
   shortest of PMPI_Pack. */
#include "check.h"
#include <time.h>

enum { CALLS = 1000, BATCHES = 2000 };

typedef int pack_function(const void *, int, MPI_Datatype, void *, int, int *, MPI_Comm);

static double batch(pack_function *pack, const void *memory, MPI_Datatype datatype)
{
    struct timespec begin, end;
    char packed[256];
    int position;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int call = 0; call < CALLS; call++) position = 0, pack(memory, 1, datatype, packed, sizeof packed, &position, MPI_COMM_SELF);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / CALLS;
}

static void measure(const char *name, MPI_Datatype datatype)
{
    double ours = 1e9, theirs = 1e9;
    double memory[64] = {0};
    for (int round = 0; round < BATCHES; round++) {
        double time = batch(MPI_Pack, memory, datatype);
        if (time < ours) ours = time;
        time = batch(PMPI_Pack, memory, datatype);
        if (time < theirs) theirs = time;
    }
    printf("cost: %s: %.1f ns more\n", name, ours - theirs);
}

int main(int argc, char **argv)
{
    MPI_Datatype rows;
    MPI_Init(&argc, &argv);
    MPI_Type_vector(3, 1, 2, MPI_DOUBLE, &rows);
    MPI_Type_commit(&rows);
    measure("predefined", MPI_DOUBLE);
    measure("derived", rows);
    MPI_Type_free(&rows);
    MPI_Finalize();
    return 0;
}
