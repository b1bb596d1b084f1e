/* Why dtc did not do a call, as far as its arguments tell afterwards: for the report alone. */
#ifndef DTC_MPI_REASONS_H
#define DTC_MPI_REASONS_H

#include "report_calls.h"

static int reason_of(uintptr_t memory, int64_t elements, uintptr_t handle, int rank, int what)
{
    MPI_Datatype datatype;
    int64_t bytes, least = what == DTC_MPI_JUDGE_PACK ? limits.packed_bytes : limits.bytes;
    MPI_Count size = 0;
    memcpy(&datatype, &handle, sizeof datatype);
    if (elements <= 0 || (what != DTC_MPI_JUDGE_PACK && rank == MPI_PROC_NULL)) return DTC_MPI_NOTHING;
    if (!is_ready() || datatype == MPI_DATATYPE_NULL) return DTC_MPI_OTHER;
    const struct remembered *known = recall(datatype);
    const struct plan *plan = known->plan;
    if (known->is == PREDEFINED) return DTC_MPI_PREDEFINED;
    if (!plan && PMPI_Type_size_x(datatype, &size) == MPI_SUCCESS && !__builtin_mul_overflow(elements, size, &bytes) && bytes < least)
        return DTC_MPI_FEW_BYTES;
    if (!plan) return known->price == PRICELESS ? DTC_MPI_LONG_PIECES : DTC_MPI_FEW_USES;
    if (!plan->type) return DTC_MPI_UNDECODED;
    if (plan->whole) return DTC_MPI_WHOLE;
    if (what == DTC_MPI_JUDGE_PACK ? plan->piece > limits.packed_piece : plan->least == INT64_MAX) return DTC_MPI_LONG_PIECES;
    if (__builtin_mul_overflow(elements, plan->size, &bytes)) return DTC_MPI_MANY_BYTES;
    if (bytes < least) return DTC_MPI_FEW_BYTES;
    if (what != DTC_MPI_JUDGE_PACK && bytes > LARGEST_MESSAGE) return DTC_MPI_MANY_BYTES;
    if (what == DTC_MPI_JUDGE_SEND && !plan->uniform && memory) return DTC_MPI_MIXED;
    return DTC_MPI_OTHER;
}

#endif
