/* Which MPI the process uses. */
#ifndef DTC_MPI_FIND_H
#define DTC_MPI_FIND_H

#include "interposer.h"

/* The ABI of the MPI; null if it is unknown, or if DTC_MPI is "off". */
const struct dtc_mpi_abi *dtc_mpi_detect(void);

#endif
