/* What the interposer uses of the ABI of Open MPI: handles are addresses, those of predefined objects the addresses of symbols. */
#ifndef DTC_MPI_ABI_H
#define DTC_MPI_ABI_H

#include <stddef.h>

typedef struct ompi_datatype_t *MPI_Datatype;
typedef struct ompi_communicator_t *MPI_Comm;
typedef struct ompi_errhandler_t *MPI_Errhandler;
typedef struct ompi_group_t *MPI_Group;
typedef struct ompi_info_t *MPI_Info;
typedef struct ompi_message_t *MPI_Message;
typedef struct ompi_request_t *MPI_Request;

typedef struct MPI_Status {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int cancelled;
    size_t bytes;
} MPI_Status;

#define OPEN_MPI
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)
#define MPI_IN_PLACE ((void *)1)

#define DTC_MPI_ABI open_mpi
#define DTC_MPI_OF_ABI(mpich, open_mpi, standard) open_mpi
/* The values of handles are found when the library meets its MPI. */
#define DTC_MPI_HANDLES_ARE_SYMBOLS
/* Open MPI 4.1 and 5.0 write a message that is too long past the end of a contiguous receive buffer, and not of one with gaps. */
#define DTC_MPI_OVERRUNS 1
/* Whether subroutines of Fortran that begin messages call functions of C. */
#define DTC_MPI_FORTRAN_CALLS_C 0

#include "declarations.h"

#endif
