/* Memory of GPUs that other processes of this machine write to. */
#ifndef DTC_MPI_LANDING_H
#define DTC_MPI_LANDING_H

#include <dtc.h>

/* A piece of this process, for what others pack. */
struct dtc_mpi_landing {
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

/* Memory of another process, opened for GPU `device` of this one at the first time, and open until the end; null if it cannot be opened. `number` and
   `name` are those of a piece there. */
void *dtc_mpi_import(int64_t process, int64_t number, const unsigned char *name, int32_t device);

/* At the end: closes what was opened. */
void dtc_mpi_close_imports(void);

#endif
