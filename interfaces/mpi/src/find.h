/* Which MPI the process uses. */
#ifndef DTC_MPI_FIND_H
#define DTC_MPI_FIND_H

#include "interposer.h"

/* The ABI of the MPI; null if it is unknown. */
const struct dtc_mpi_abi *dtc_mpi_detect(void);

#endif
