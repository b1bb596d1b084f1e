/* Parallel HDF5: each process writes and reads every other row block of datasets, collectively, half of them in chunks. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 512, COLUMNS = 512, DATASETS = 12 };

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *path = argc > 1 ? argv[1] : "hyperslabs.h5";
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    hsize_t whole[2] = {ROWS, COLUMNS}, start[2] = {0, 2 * (hsize_t)rank}, stride[2] = {1, 2 * (hsize_t)size}, block[2] = {1, 2};
    hsize_t count[2] = {ROWS, COLUMNS / (2 * (hsize_t)size)}, own = ROWS * count[1] * 2, chunk[2] = {64, 64};
    double *written = malloc(own * sizeof *written), *read = malloc(own * sizeof *read);
    for (hsize_t at = 0; at < own; at++) written[at] = (double)at + rank;
    hid_t memory = H5Screate_simple(1, &own, NULL);
    for (int number = 0; number < DATASETS; number++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", number);
        hid_t space = H5Screate_simple(2, whole, NULL), creation = H5Pcreate(H5P_DATASET_CREATE);
        if (number % 2) H5Pset_chunk(creation, 2, chunk);
        hid_t dataset = H5Dcreate(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, block);
        H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, transfer, written);
        H5Dread(dataset, H5T_NATIVE_DOUBLE, memory, space, transfer, read);
        if (memcmp(written, read, own * sizeof *read)) return 1;
        H5Dclose(dataset), H5Sclose(space), H5Pclose(creation);
    }
    H5Fclose(file), H5Pclose(access), H5Pclose(transfer), H5Sclose(memory);
    MPI_Finalize();
    return 0;
}
