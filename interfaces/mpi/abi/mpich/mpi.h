/* What the decoder uses of the ABI of MPICH and its relatives: handles are integers, with values of their own. */
#ifndef DTC_MPI_ABI_H
#define DTC_MPI_ABI_H

typedef int MPI_Datatype;

#define MPICH
#define MPI_COMBINER_VALUE_INDEX 20

#define DTC_MPI_ABI mpich
#define DTC_MPI_OF_ABI(mpich, open_mpi, standard) mpich
#define DTC_MPI_DATATYPE_NULL 0x0c000000

#include "declarations.h"

#endif
