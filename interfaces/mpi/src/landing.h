/* Memory of GPUs that other processes of this machine write to. */
#ifndef DTC_MPI_LANDING_H
#define DTC_MPI_LANDING_H

#include <dtc.h>

/* A piece of this process, for what others pack. */
struct dtc_mpi_landing {
    struct dtc_mpi_landing *next;
    char taken;
    int32_t device;
    int64_t bytes;
    void *memory;
    struct dtc_memory *allocation;
    /* Counts those of this process. */
    int64_t number;
    /* What others open it by. */
    unsigned char name[DTC_EXPORT_BYTES];
};

/* Takes a piece of at least `bytes` bytes of a GPU; null if there is no memory, or if others cannot open it. */
struct dtc_mpi_landing *dtc_mpi_landing_take(int32_t device, int64_t bytes);
void dtc_mpi_landing_give(struct dtc_mpi_landing *landing);

/* Memory of another process, opened here. */
struct dtc_mpi_import {
    struct dtc_mpi_import *next;
    /* Its process, whether the program has allocated it there, and its number: of a piece as above, or of an allocation. */
    int64_t process, number;
    char is_of_program;
    /* How many use it, and when it was taken last. */
    int users;
    int64_t taken;
    int32_t device;
    /* Null if it cannot be opened. */
    void *memory;
    struct dtc_memory *opened;
};

/* Opens memory of another process for GPU `device` of this one, unless it is open; its memory is null if it cannot be opened. Null if there is no
   memory of the host. */
struct dtc_mpi_import *dtc_mpi_import_take(int64_t process, int is_of_program, int64_t number, const unsigned char *name, int32_t device);
void dtc_mpi_import_give(struct dtc_mpi_import *import);

/* At the end: closes what was opened. */
void dtc_mpi_close_imports(void);

#endif
