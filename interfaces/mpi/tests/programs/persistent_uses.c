/*
 * Datatypes that persistent requests alone use: one for a few bytes, one for many, and one by several requests. Each request sends two messages of
 * the process to itself. 1 rank.
 */
#include "programs.h"

enum { MOST = 1024, TAG = 5 };

static void requests(int number, MPI_Datatype datatype)
{
    static double sent[2 * MOST], received[2 * MOST];
    MPI_Request pair[2];
    MPI_Send_init(sent, 1, datatype, 0, TAG, MPI_COMM_WORLD, &pair[0]);
    MPI_Recv_init(received, 1, datatype, 0, TAG, MPI_COMM_WORLD, &pair[1]);
    for (int round = 0; round < 2; round++) {
        for (int at = 0; at < 2 * number; at++) sent[at] = at + round + 1, received[at] = 0;
        MPI_Startall(2, pair);
        MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
        for (int at = 0; at < 2 * number - 1; at++)
            CHECK(received[at] == (at % 2 ? 0 : sent[at]), "double %d of round %d: %f", at, round, received[at]);
    }
    MPI_Request_free(&pair[0]);
    MPI_Request_free(&pair[1]);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Datatype few = vector_of(64, 1, 2, MPI_DOUBLE), many = vector_of(MOST, 1, 2, MPI_DOUBLE);
    MPI_Datatype often = vector_of(64, 1, 2, MPI_DOUBLE);
    requests(64, few);
    requests(MOST, many);
    for (int at = 0; at < 10; at++) requests(64, often);
    MPI_Type_free(&few);
    MPI_Type_free(&many);
    MPI_Type_free(&often);
    puts("persistent_uses: done");
    MPI_Finalize();
    return 0;
}
