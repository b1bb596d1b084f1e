/* Which calls of the program come to this library: a tool may see them first, and Fortran may go past it. */
#ifndef DTC_MPI_SEEN_H
#define DTC_MPI_SEEN_H

/* Whether all calls that complete requests come here, so that no end of an operation is missed. */
static int find_completions(void)
{
    int seen = 1;
#define CALL(name, shape, count) seen = seen && (!mpi.name || dtc_mpi_provider("MPI_" #name) == DTC_MPI_HERE);
#include "calls.def"
#undef CALL
    /* These call functions of the MPI that are not interposed, for requests that may come from here. */
    seen = seen && dtc_mpi_provider("mpi_wait_f08_") != DTC_MPI_ELSEWHERE;
    if (DTC_MPI_OF_ABI(0, 1, 0)) {
        int ours = dtc_mpi_is_fortran_redirected();
        seen = seen && (ours || dtc_mpi_provider("mpi_wait_") != DTC_MPI_ELSEWHERE);
    }
    if (!seen) dtc_mpi_say("leaves nonblocking messages to the MPI", "some calls that complete them do not come here");
    return seen;
}

static inline int sees_completions(void)
{
    static int known = -1;
    int seen = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (__builtin_expect(seen < 0, 0)) __atomic_store_n(&known, seen = find_completions(), __ATOMIC_RELAXED);
    return seen;
}

#endif
