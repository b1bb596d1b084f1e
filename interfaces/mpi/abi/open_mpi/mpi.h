/* What the decoder uses of the ABI of Open MPI: handles are addresses, those of predefined objects the addresses of symbols. */
#ifndef DTC_MPI_ABI_H
#define DTC_MPI_ABI_H

typedef struct ompi_datatype_t *MPI_Datatype;

#define OPEN_MPI

#define DTC_MPI_ABI open_mpi
#define DTC_MPI_OF_ABI(mpich, open_mpi, standard) open_mpi
#define DTC_MPI_DATATYPE_NULL dtc_mpi_find_object("ompi_mpi_datatype_null")

#include "declarations.h"

#endif
