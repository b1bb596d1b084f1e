/* PnetCDF's flexible calls: the memory of a variable is a subarray, which the library packs. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdlib.h>

enum { ROWS = 512, COLUMNS = 512, GHOSTS = 2, VARIABLES = 10 };

int main(int argc, char **argv)
{
    int rank, size, file, dimensions[2], variables[VARIABLES];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *path = argc > 1 ? argv[1] : "flexible.nc";
    ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file);
    ncmpi_def_dim(file, "rows", ROWS * size, &dimensions[0]);
    ncmpi_def_dim(file, "columns", COLUMNS, &dimensions[1]);
    for (int at = 0; at < VARIABLES; at++) {
        char name[2] = {(char)('a' + at), 0};
        ncmpi_def_var(file, name, NC_DOUBLE, 2, dimensions, &variables[at]);
    }
    ncmpi_enddef(file);
    int sizes[2] = {ROWS + 2 * GHOSTS, COLUMNS + 2 * GHOSTS}, inner[2] = {ROWS, COLUMNS}, starts[2] = {GHOSTS, GHOSTS};
    MPI_Datatype type;
    MPI_Type_create_subarray(2, sizes, inner, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    double *memory = malloc(sizeof(double) * (size_t)sizes[0] * (size_t)sizes[1]), *read = calloc((size_t)sizes[0] * (size_t)sizes[1], sizeof(double));
    for (int at = 0; at < sizes[0] * sizes[1]; at++) memory[at] = at + rank;
    MPI_Offset start[2] = {(MPI_Offset)ROWS * rank, 0}, count[2] = {ROWS, COLUMNS};
    for (int at = 0; at < VARIABLES; at++) {
        if (ncmpi_put_vara_all(file, variables[at], start, count, memory, 1, type)) return 1;
        if (ncmpi_get_vara_all(file, variables[at], start, count, read, 1, type)) return 1;
    }
    for (int row = GHOSTS; row < GHOSTS + ROWS; row++)
        for (int column = GHOSTS; column < GHOSTS + COLUMNS; column++)
            if (read[row * sizes[1] + column] != memory[row * sizes[1] + column]) return 1;
    ncmpi_close(file);
    MPI_Finalize();
    return 0;
}
