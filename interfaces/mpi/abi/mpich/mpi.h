/* What the interposer uses of the ABI of MPICH and its relatives: handles are integers, with values of their own. */
#ifndef DTC_MPI_ABI_H
#define DTC_MPI_ABI_H

typedef int MPI_Datatype;
typedef int MPI_Comm;
typedef int MPI_Errhandler;
typedef int MPI_Group;
typedef int MPI_Info;
typedef int MPI_Message;
typedef int MPI_Request;

typedef struct MPI_Status {
    int count_lo;
    int count_hi_and_cancelled;
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
} MPI_Status;

#define MPICH
#define MPI_STATUS_IGNORE ((MPI_Status *)1)
#define MPI_STATUSES_IGNORE ((MPI_Status *)1)
#define MPI_IN_PLACE ((void *)-1)
#define MPI_COMBINER_VALUE_INDEX 20

#define DTC_MPI_ABI mpich
#define DTC_MPI_OF_ABI(mpich, open_mpi, standard) mpich
#define DTC_MPI_OVERRUNS 0
/* Whether subroutines of Fortran that begin messages call functions of C. */
#define DTC_MPI_FORTRAN_CALLS_C 1

#include "declarations.h"

#endif
