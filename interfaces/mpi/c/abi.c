/*
 * The interposer for one ABI: what each call does. Compiled once for each ABI, with its mpi.h.
 *
 * A wrapper does its work with dtc, or goes on to the MPI with the arguments as they came. The functions of the MPI that it calls
 * for a program are MPI_..., so that tools below see them; what it asks for itself it asks of PMPI_..., which tools do not count.
 */
#include <mpi.h>

#include <dtc_mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "board.h"
#include "interposer.h"
#include "landing.h"
#include "moves.h"
#include "redirect.h"
#include "registry.h"
#include "report_calls.h"
#include "settings.h"
#include "shapes.h"

/* The name of the ABI, and of its table. */
#define TEXT_OF(abi) TEXT(abi)
#define TEXT(abi) #abi
#define TABLE_OF(abi) TABLE(abi)
#define TABLE(abi) dtc_mpi_of_##abi

/* Types of the kinds of arguments. */
#define KIND_source const void *
#define KIND_destination void *
#define KIND_number int
#define KIND_number_pointer int *
#define KIND_arguments char ***
#define KIND_count int
#define KIND_count_pointer int *
#define KIND_large_count MPI_Count
#define KIND_large_count_pointer MPI_Count *
#define KIND_datatype MPI_Datatype
#define KIND_datatype_pointer MPI_Datatype *
#define KIND_communicator MPI_Comm
#define KIND_communicator_pointer MPI_Comm *
#define KIND_message_pointer MPI_Message *
#define KIND_status MPI_Status *
#define KIND_count_array const int *
#define KIND_large_count_array const MPI_Count *
#define KIND_count_places const int *
#define KIND_large_count_places const MPI_Aint *
#define KIND_datatypes const MPI_Datatype *
#define KIND_info MPI_Info
#define KIND_request MPI_Request
#define KIND_request_pointer MPI_Request *
#define KIND_requests const MPI_Request *

#define PARAMETER(kind, name) KIND_##kind name
#define TYPE(kind, name) KIND_##kind
#define ARGUMENT(kind, name) name

/* The functions of the MPI, as this library finds them. */
static struct {
#define CALL(name, shape, count) int (*name)(ARGUMENTS_##shape(TYPE, count));
#include "calls.def"
#undef CALL
} mpi;

#include "profit.h"
#include "plan.h"
#include "recall.h"
#include "memory.h"
#include "self_test.h"
#include "start.h"
#include "rent.h"
#include "seen.h"

#include "pack.h"
#include "receive_type.h"
#include "staged.h"
#include "stage.h"
#include "point_to_point.h"
#include "block.h"
#include "direct.h"
#include "exchange.h"
#include "operations.h"
#include "together.h"
#include "nonblocking.h"
#include "completion.h"
#include "substitutes.h"
#include "reasons.h"
#include "about.h"

/* start.h has the wrappers of these. */
#define WRAP_INIT(name, count)
#define WRAP_INIT_THREAD(name, count)
#define WRAP_FINALIZE(name, count)
#define WRAP_COMMIT(name, count)
#define WRAP_TYPE_FREE(name, count)

#define CALL(name, shape, count) WRAP_##shape(name, count)
#include "calls.def"
#undef CALL

#if DTC_MPI_FORTRAN_CALLS_C
#include "fortran.h"
#endif

static int bind(dtc_mpi_function functions[DTC_MPI_CALLS])
{
#define QUERY(name, needed, parameters)                                                                                           \
    dtc_mpi_pmpi.name = (int(*) parameters)dtc_mpi_find_function("PMPI_" #name);                                                  \
    if (needed && !dtc_mpi_pmpi.name) {                                                                                           \
        dtc_mpi_say("steps aside", "the MPI lacks PMPI_" #name);                                                                  \
        return 0;                                                                                                                  \
    }
#include "queries.def"
#undef QUERY
#ifdef DTC_MPI_HANDLES_ARE_SYMBOLS
#define HANDLE(type, name, mpich, standard, symbol)                                                                               \
    name = (type)dtc_mpi_find_object(#symbol);                                                                                    \
    if (!name) {                                                                                                                   \
        dtc_mpi_say("steps aside", "the MPI lacks " #symbol);                                                                     \
        return 0;                                                                                                                  \
    }
#include "handles.def"
#undef HANDLE
#endif
    substitute(functions);
    profit_start();
#define CALL(name, shape, count) mpi.name = (int (*)(ARGUMENTS_##shape(TYPE, count)))functions[DTC_MPI_CALL_##name];
#include "calls.def"
#undef CALL
    return 1;
}

const struct dtc_mpi_abi TABLE_OF(DTC_MPI_ABI) = {
    .name = TEXT_OF(DTC_MPI_ABI),
    .wrappers =
        {
#define CALL(name, shape, count) (dtc_mpi_function)wrap_##name,
#include "calls.def"
#undef CALL
        },
#if DTC_MPI_FORTRAN_CALLS_C
    .fortran =
        {
#define FORTRAN(name) (dtc_mpi_function)fortran_##name,
#include "fortran.def"
#undef FORTRAN
        },
#endif
    .bind = bind,
    .judge = reason_of,
    .unsupported = MPI_ERR_UNSUPPORTED_OPERATION,
};
