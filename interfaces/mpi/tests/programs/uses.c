/*
 * Datatypes whose pieces are known only once they are decoded, used often: a list of vectors, and a vector of vectors that is used for a large call
 * first. And a subarray, whose pieces are known without. 1 rank.
 */
#include "programs.h"

enum { USES = 1000, DOUBLES = 1 << 20 };

static double memory[DOUBLES];
static char packed[DOUBLES * sizeof(double)];

static void pack(int count, MPI_Datatype datatype, int times)
{
    for (int at = 0; at < times; at++) {
        int position = 0;
        MPI_Pack(memory, count, datatype, packed, sizeof packed, &position, MPI_COMM_WORLD);
    }
}

/* 20 vectors of 512 doubles, each in two. */
static MPI_Datatype list_of_vectors(void)
{
    int lengths[20], places[20];
    MPI_Datatype row, made;
    MPI_Type_vector(512, 1, 2, MPI_DOUBLE, &row);
    for (int at = 0; at < 20; at++) lengths[at] = 1, places[at] = 2 * at;
    MPI_Type_indexed(20, lengths, places, row, &made);
    MPI_Type_free(&row);
    MPI_Type_commit(&made);
    return made;
}

/* 64 doubles, in two vectors. */
static MPI_Datatype vector_of_vectors(void)
{
    MPI_Datatype row, made, resized;
    MPI_Type_vector(32, 1, 2, MPI_DOUBLE, &row);
    MPI_Type_create_hvector(2, 1, 64 * sizeof(double), row, &made);
    MPI_Type_create_resized(made, 0, 128 * sizeof(double), &resized);
    MPI_Type_free(&row);
    MPI_Type_free(&made);
    MPI_Type_commit(&resized);
    return resized;
}

/* 64 rows of 512 doubles, each in 516. */
static MPI_Datatype long_rows(void)
{
    int sizes[] = {68, 516}, parts[] = {64, 512}, starts[] = {2, 2};
    MPI_Datatype made;
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &made);
    MPI_Type_commit(&made);
    return made;
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Datatype list = list_of_vectors(), vector = vector_of_vectors(), rows = long_rows();
    pack(1, list, USES);
    /* 4 MiB, which the table of the test does not have, and then 64 KiB, which it has. */
    pack(8192, vector, 1);
    pack(128, vector, USES);
    pack(1, rows, USES);
    MPI_Type_free(&list);
    MPI_Type_free(&vector);
    MPI_Type_free(&rows);
    puts("uses: done");
    MPI_Finalize();
    return 0;
}
