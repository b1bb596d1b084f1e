/* What the decoder uses of the standard ABI. Handles are pointers, with small integers for predefined objects. (MPI 5.0, 20) */
#ifndef DTC_MPI_ABI_H
#define DTC_MPI_ABI_H

typedef struct MPI_ABI_Datatype *MPI_Datatype;

#define MPI_COMBINER_VALUE_INDEX 117

#define DTC_MPI_ABI standard
#define DTC_MPI_OF_ABI(mpich, open_mpi, standard) standard
#define DTC_MPI_DATATYPE_NULL 0x00000200

#include "declarations.h"

#endif
