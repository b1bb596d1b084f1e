/* Packs and unpacks by libdtc, counted for the report and shown to profilers. */
#ifndef DTC_MPI_MOVES_H
#define DTC_MPI_MOVES_H

#include <dtc.h>

#include "interposer.h"

enum dtc_mpi_direction { DTC_MPI_PACKS, DTC_MPI_UNPACKS, DTC_MPI_DIRECTIONS };

/* Elements of a committed type, and their packed bytes. A null `transfer` means memory of the host. */
struct dtc_mpi_move {
    enum dtc_mpi_direction direction;
    const dtc_type *type;
    void *memory;
    int64_t elements;
    void *packed;
    int64_t bytes;
    const dtc_transfer *transfer;
};

/* Does it; 0 if that fails. */
int dtc_mpi_move(const struct dtc_mpi_move *move);

/* Does `length` calls on a GPU by one launch, all of one direction; 0 if that fails. The other end is memory of this kind. */
int dtc_mpi_launch(int32_t device, const dtc_batch_call *calls, int32_t length, int32_t packed);

/* For the report: what went between which kinds of memory. */
void dtc_mpi_report_moves(const char *abi);

#endif
