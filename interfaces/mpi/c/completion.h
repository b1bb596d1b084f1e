/*
 * Calls that complete requests. What they may complete is taken before the MPI does so, and unpacked after it has. In arrays,
 * requests that are the MPI's stand beside those of operations.
 */
#ifndef DTC_MPI_COMPLETION_H
#define DTC_MPI_COMPLETION_H

/* After a call that returned `result`: ends the operation if its request has ended, which `ended` says, or its handle. The place is
   empty then. */
static int settle(struct operation **place, int ended, MPI_Request request, MPI_Status *status, int result)
{
    struct operation *operation = *place;
    if (!operation || (!ended && request != MPI_REQUEST_NULL)) return result;
    *place = NULL;
    return operation_end(operation, status, result);
}

static int wrap_Wait(MPI_Request *request, MPI_Status *status)
{
    struct operation *operation = request ? take_operation(*request) : NULL;
    MPI_Status own;
    if (!operation) return mpi.Wait(request, status);
    if (status == MPI_STATUS_IGNORE) status = &own;
    int result = mpi.Wait(request, status);
    result = settle(&operation, result == MPI_SUCCESS, *request, status, result);
    if (operation) keep_operation(operation);
    return result;
}

static int wrap_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct operation *operation = request ? take_operation(*request) : NULL;
    MPI_Status own;
    if (!operation) return mpi.Test(request, flag, status);
    if (status == MPI_STATUS_IGNORE) status = &own;
    int result = mpi.Test(request, flag, status);
    result = settle(&operation, result == MPI_SUCCESS && *flag, *request, status, result);
    if (operation) keep_operation(operation);
    return result;
}

/* Places a result in the status of one of several requests. */
static int in_status(MPI_Status *statuses, int length, int at, int wrong, int result)
{
    /* The statuses of a call that succeeded have no errors set. */
    for (int other = 0; result == MPI_SUCCESS && other < length; other++) statuses[other].MPI_ERROR = MPI_SUCCESS;
    statuses[at].MPI_ERROR = wrong;
    return MPI_ERR_IN_STATUS;
}

/* After a call that may have ended all of its requests. */
static int settle_all(const struct looked *looked, int length, const MPI_Request *requests, MPI_Status *statuses, int result)
{
    int whole = result;
    unpack_together(looked->operations, length, NULL, statuses, result);
    for (int at = 0; at < length; at++) {
        int each = result == MPI_ERR_IN_STATUS ? statuses[at].MPI_ERROR : result;
        if (each == MPI_ERR_PENDING) continue;
        int found = settle(&looked->operations[at], each == MPI_SUCCESS, requests[at], &statuses[at], each);
        if (found != each) whole = in_status(statuses, length, at, found, whole);
    }
    return whole;
}

static int wrap_Waitall(int length, MPI_Request *requests, MPI_Status *statuses)
{
    struct looked looked;
    if (!look(&looked, length, requests, 1)) return mpi.Waitall(length, requests, statuses);
    if (!looked.operations) return fail(MPI_ERR_NO_MEM);
    if (statuses == MPI_STATUSES_IGNORE) statuses = looked.statuses;
    int result = mpi.Waitall(length, requests, statuses);
    result = settle_all(&looked, length, requests, statuses, result);
    look_end(&looked);
    return result;
}

static int wrap_Testall(int length, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    struct looked looked;
    if (!look(&looked, length, requests, 1)) return mpi.Testall(length, requests, flag, statuses);
    if (!looked.operations) return fail(MPI_ERR_NO_MEM);
    if (statuses == MPI_STATUSES_IGNORE) statuses = looked.statuses;
    int result = mpi.Testall(length, requests, flag, statuses);
    if (result != MPI_SUCCESS || *flag) result = settle_all(&looked, length, requests, statuses, result);
    look_end(&looked);
    return result;
}

/* After a call that has ended one request, or failed. */
static int settle_any(const struct looked *looked, int length, const MPI_Request *requests, int index, MPI_Status *status,
                      int result)
{
    if (result == MPI_SUCCESS)
        return index == MPI_UNDEFINED ? result : settle(&looked->operations[index], 1, requests[index], status, result);
    for (int at = 0; at < length; at++) settle(&looked->operations[at], 0, requests[at], status, result);
    return result;
}

static int wrap_Waitany(int length, MPI_Request *requests, int *index, MPI_Status *status)
{
    struct looked looked;
    if (!look(&looked, length, requests, 1)) return mpi.Waitany(length, requests, index, status);
    if (!looked.operations) return fail(MPI_ERR_NO_MEM);
    if (status == MPI_STATUS_IGNORE) status = looked.statuses;
    int result = mpi.Waitany(length, requests, index, status);
    result = settle_any(&looked, length, requests, *index, status, result);
    look_end(&looked);
    return result;
}

static int wrap_Testany(int length, MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
    struct looked looked;
    if (!look(&looked, length, requests, 1)) return mpi.Testany(length, requests, index, flag, status);
    if (!looked.operations) return fail(MPI_ERR_NO_MEM);
    if (status == MPI_STATUS_IGNORE) status = looked.statuses;
    int result = mpi.Testany(length, requests, index, flag, status);
    if (result != MPI_SUCCESS || *flag) result = settle_any(&looked, length, requests, *index, status, result);
    look_end(&looked);
    return result;
}

/* After a call that has ended those of `indices`, or failed. */
static int settle_some(const struct looked *looked, const MPI_Request *requests, int ended, const int *indices, MPI_Status *statuses,
                       int result)
{
    int whole = result;
    if (ended == MPI_UNDEFINED || (result != MPI_SUCCESS && result != MPI_ERR_IN_STATUS)) return result;
    unpack_together(looked->operations, ended, indices, statuses, result);
    for (int at = 0; at < ended; at++) {
        int each = result == MPI_ERR_IN_STATUS ? statuses[at].MPI_ERROR : result;
        int found = settle(&looked->operations[indices[at]], each == MPI_SUCCESS, requests[indices[at]], &statuses[at], each);
        if (found != each) whole = in_status(statuses, ended, at, found, whole);
    }
    return whole;
}

#define WRAP_SOME(name, count)                                                                                                    \
    static int wrap_##name(ARGUMENTS_SOME(PARAMETER, count))                                                                      \
    {                                                                                                                              \
        struct looked looked;                                                                                                      \
        if (!look(&looked, length, requests, 1)) return mpi.name(ARGUMENTS_SOME(ARGUMENT, count));                                   \
        if (!looked.operations) return fail(MPI_ERR_NO_MEM);                                                                      \
        if (statuses == MPI_STATUSES_IGNORE) statuses = looked.statuses;                                                          \
        int result = mpi.name(ARGUMENTS_SOME(ARGUMENT, count));                                                                   \
        result = settle_some(&looked, requests, *ended, indices, statuses, result);                                               \
        look_end(&looked);                                                                                                         \
        return result;                                                                                                             \
    }

/* A program may read what it received once it has been told that a request has ended. */
static int wrap_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    struct operation *operation = find_operation(request);
    MPI_Status own;
    if (!operation) return mpi.Request_get_status(request, flag, status);
    if (status == MPI_STATUS_IGNORE) status = &own;
    int result = mpi.Request_get_status(request, flag, status);
    return result == MPI_SUCCESS && *flag ? operation_unpack(operation, status) : result;
}

static int wrap_Request_get_status_all(int length, const MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    struct looked looked;
    if (!look(&looked, length, requests, 0)) return mpi.Request_get_status_all(length, requests, flag, statuses);
    if (!looked.operations) return fail(MPI_ERR_NO_MEM);
    if (statuses == MPI_STATUSES_IGNORE) statuses = looked.statuses;
    int result = mpi.Request_get_status_all(length, requests, flag, statuses);
    for (int at = 0; result == MPI_SUCCESS && *flag && at < length; at++)
        if (looked.operations[at]) result = operation_unpack(looked.operations[at], &statuses[at]);
    look_end(&looked);
    return result;
}

static int wrap_Request_get_status_any(int length, const MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
    struct looked looked;
    if (!look(&looked, length, requests, 0)) return mpi.Request_get_status_any(length, requests, index, flag, status);
    if (!looked.operations) return fail(MPI_ERR_NO_MEM);
    if (status == MPI_STATUS_IGNORE) status = looked.statuses;
    int result = mpi.Request_get_status_any(length, requests, index, flag, status);
    if (result == MPI_SUCCESS && *flag && *index != MPI_UNDEFINED && looked.operations[*index])
        result = operation_unpack(looked.operations[*index], status);
    look_end(&looked);
    return result;
}

static int wrap_Request_get_status_some(int length, const MPI_Request *requests, int *ended, int *indices, MPI_Status *statuses)
{
    struct looked looked;
    if (!look(&looked, length, requests, 0)) return mpi.Request_get_status_some(length, requests, ended, indices, statuses);
    if (!looked.operations) return fail(MPI_ERR_NO_MEM);
    if (statuses == MPI_STATUSES_IGNORE) statuses = looked.statuses;
    int result = mpi.Request_get_status_some(length, requests, ended, indices, statuses);
    for (int at = 0; result == MPI_SUCCESS && *ended != MPI_UNDEFINED && at < *ended; at++)
        if (looked.operations[indices[at]]) result = operation_unpack(looked.operations[indices[at]], &statuses[at]);
    look_end(&looked);
    return result;
}

/* Staging memory is needed until an active request has ended, which later calls look for. */
static int wrap_Request_free(MPI_Request *request)
{
    struct operation *operation = request ? take_operation(*request) : NULL;
    MPI_Status status;
    if (!operation) return mpi.Request_free(request);
    /* MPICH 4.0 says of a persistent collective that was never started that it has not ended. */
    int ended = operation->exchange && __atomic_load_n(&operation->unpacked, __ATOMIC_ACQUIRE) == UNPACKED;
    if (operation->tracked.persistent) dtc_mpi_untrack(&operation->tracked);
    if (!ended && PMPI_Request_get_status(*request, &ended, &status) == MPI_SUCCESS && !ended) {
        operation->request = *request;
        operation->next = NULL;
        add_freed(operation);
        *request = MPI_REQUEST_NULL;
        return MPI_SUCCESS;
    }
    int result = ended ? operation_unpack(operation, &status) : MPI_SUCCESS, freed = mpi.Request_free(request);
    operation_drop(operation);
    return freed == MPI_SUCCESS ? result : freed;
}

#define WRAP_WAIT(name, count)
#define WRAP_TEST(name, count)
#define WRAP_WAITALL(name, count)
#define WRAP_TESTALL(name, count)
#define WRAP_WAITANY(name, count)
#define WRAP_TESTANY(name, count)
#define WRAP_GET_STATUS(name, count)
#define WRAP_GET_STATUS_ALL(name, count)
#define WRAP_GET_STATUS_ANY(name, count)
#define WRAP_GET_STATUS_SOME(name, count)
#define WRAP_REQUEST_FREE(name, count)

#endif
