/*
 * Gives the processor up where UCX has nothing to do. MPICH waits for UCX in a loop that never does, so that a message between more
 * processes than processors waits for the end of a time slice. Preloaded by tests, for their time alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

typedef unsigned (*function)(void *worker);

unsigned ucp_worker_progress(void *worker)
{
    static function progress;
    function found = __atomic_load_n(&progress, __ATOMIC_RELAXED);
    if (!found) {
        found = (function)dlsym(RTLD_NEXT, "ucp_worker_progress");
        /* Not in the scope of the program where a plugin opened the MPI. */
        if (!found) found = (function)dlsym(dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD), "ucp_worker_progress");
        __atomic_store_n(&progress, found, __ATOMIC_RELAXED);
    }
    static _Thread_local unsigned idle;
    unsigned events = found(worker);
    /* Some microseconds later, since another processor may be about to answer. */
    idle = events == 0 ? idle + 1 : 0;
    if (idle % 32 == 31) sched_yield();
    return events;
}
