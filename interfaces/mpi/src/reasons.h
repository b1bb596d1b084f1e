/* Why dtc did not do a call, as far as its arguments tell afterwards: for the report alone. */
#ifndef DTC_MPI_REASONS_H
#define DTC_MPI_REASONS_H

#include "report_calls.h"

static int reason_of(uintptr_t memory, int64_t elements, uintptr_t handle, int rank, int what)
{
    MPI_Datatype datatype;
    int unknown = 0;
    int64_t bytes;
    memcpy(&datatype, &handle, sizeof datatype);
    if (elements <= 0 || (what != DTC_MPI_JUDGE_PACK && rank == MPI_PROC_NULL)) return DTC_MPI_NOTHING;
    struct plan *plan = is_ready() ? plan_of_any(datatype, &unknown) : NULL;
    if (!plan) return unknown || !is_ready() || datatype == MPI_DATATYPE_NULL ? DTC_MPI_OTHER : DTC_MPI_PREDEFINED;
    if (!plan->type) return DTC_MPI_UNDECODED;
    if (plan->whole) return DTC_MPI_WHOLE;
    if (what == DTC_MPI_JUDGE_PACK ? plan->piece > limits.packed_piece : plan->least == INT64_MAX) return DTC_MPI_LONG_PIECES;
    if (__builtin_mul_overflow(elements, plan->size, &bytes)) return DTC_MPI_MANY_BYTES;
    if (bytes < (what == DTC_MPI_JUDGE_PACK ? limits.packed_bytes : limits.bytes)) return DTC_MPI_FEW_BYTES;
    if (what != DTC_MPI_JUDGE_PACK && bytes > LARGEST_MESSAGE) return DTC_MPI_MANY_BYTES;
    if (what == DTC_MPI_JUDGE_SEND && !plan->uniform && memory) return DTC_MPI_MIXED;
    return DTC_MPI_OTHER;
}

#endif
