/* Threads of a process after MPI_Init, after datatypes that are used little, and after MPI_Finalize; with USED, a datatype between them is used until
   its kernel is compiled. 1 rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int threads(void)
{
    char line[256];
    int count = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "Threads: %d", &count);
    if (file) fclose(file);
    return count;
}

/* Packs elements of a new datatype. */
static void use(int blocks, int times)
{
    static double memory[30000], packed[10000];
    MPI_Datatype rows;
    MPI_Type_vector(blocks, 1, 3, MPI_DOUBLE, &rows);
    MPI_Type_commit(&rows);
    for (int time = 0; time < times; time++) {
        int position = 0;
        MPI_Pack(memory, 1, rows, packed, sizeof packed, &position, MPI_COMM_WORLD);
    }
    MPI_Type_free(&rows);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int begun = threads();
    for (int at = 0; at < 1000; at++) use(100, 3);
    int idle = threads();
    if (getenv("USED")) use(10000, 2000);
    int used = threads();
    MPI_Finalize();
    /* The thread ends when it has compiled what it compiles. */
    int ended = threads();
    for (int at = 0; ended > 1 && at < 5000; at++) usleep(1000), ended = threads();
    printf("idle: %d %d %d %d\n", begun, idle, used, ended);
    return 0;
}
