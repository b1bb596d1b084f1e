/* What the interposer uses of the standard ABI. Handles are pointers, with small integers for predefined objects. (MPI 5.0, 20) */
#ifndef DTC_MPI_ABI_H
#define DTC_MPI_ABI_H

typedef struct MPI_ABI_Datatype *MPI_Datatype;
typedef struct MPI_ABI_Comm *MPI_Comm;
typedef struct MPI_ABI_Errhandler *MPI_Errhandler;
typedef struct MPI_ABI_Group *MPI_Group;
typedef struct MPI_ABI_Info *MPI_Info;
typedef struct MPI_ABI_Message *MPI_Message;
typedef struct MPI_ABI_Request *MPI_Request;

typedef struct MPI_Status {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;

#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)
#define MPI_IN_PLACE ((void *)1)
#define MPI_COMBINER_VALUE_INDEX 117

#define DTC_MPI_ABI standard
#define DTC_MPI_OF_ABI(mpich, open_mpi, standard) standard
#define DTC_MPI_OVERRUNS 0
/* Whether subroutines of Fortran that begin messages call functions of C. */
#define DTC_MPI_FORTRAN_CALLS_C 0

#include "declarations.h"

#endif
