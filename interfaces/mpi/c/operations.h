/*
 * Nonblocking and persistent messages that are staged. The program has the MPI's own request. What is to be done when it ends stands
 * in an operation. Calls that complete requests take it out of the table before they call the MPI, which may use a handle again as
 * soon as its request has ended, and put it back if it has not ended. Persistent ones stay.
 */
#ifndef DTC_MPI_OPERATIONS_H
#define DTC_MPI_OPERATIONS_H

struct operation {
    struct dtc_mpi_tracked tracked;
    struct staged out, in;
    /* A collective's; null for messages. */
    struct exchange *exchange;
    /* What a substitute sends; null for others. */
    void *copy;
    /* Whether what was received has been unpacked for a program that asked before it completed the request, or there is nothing yet. */
    char unpacked;
    /* The request of a program that has freed it. */
    MPI_Request request;
    struct operation *next;
};

static uintptr_t key_of(MPI_Request request)
{
    uintptr_t key = 0;
    memcpy(&key, &request, sizeof request);
    return key;
}

static void operation_drop(struct operation *operation)
{
    unstage(&operation->out);
    unstage(&operation->in);
    if (operation->exchange) exchange_drop(operation->exchange);
    free(operation->exchange);
    free(operation->copy);
    free(operation);
}

/* Of what was received. */
enum { NOT_UNPACKED, UNPACKING, UNPACKED };

/* Whether this thread shall unpack what was received; it waits for one that does. */
static int claim(struct operation *operation)
{
    char state = NOT_UNPACKED;
    if (!operation->in.plan && !operation->exchange) return 0;
    if (__atomic_compare_exchange_n(&operation->unpacked, &state, UNPACKING, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) return 1;
    /* Threads may ask for the status of one request at once. */
    while (__atomic_load_n(&operation->unpacked, __ATOMIC_ACQUIRE) == UNPACKING) sched_yield();
    return 0;
}

/* Unpacks what was received, once. */
static int operation_unpack(struct operation *operation, MPI_Status *status)
{
    int result = MPI_SUCCESS;
    if (claim(operation)) {
        result = operation->exchange ? exchange_unpack(operation->exchange) : unpack_received(&operation->in, status);
        __atomic_store_n(&operation->unpacked, UNPACKED, __ATOMIC_RELEASE);
    }
    return result;
}

/* After the call that has made the request, or has failed. */
static int operation_begin(struct operation *operation, const MPI_Request *request, int result)
{
    int ended = 0;
    /* The calls that complete requests are also given those that have not been started. */
    if (operation->tracked.persistent) operation->unpacked = UNPACKED;
    if (operation->in.plan) is_posted(&operation->in);
    /* Open MPI 4.1 and 5.0 lose the datatypes of a persistent collective if they are freed before it is. */
    if (operation->exchange && !operation->tracked.persistent) half_posted(&operation->exchange->in);
    /* The requests of sends, of exchanges and of collectives that have ended at once may all have one handle. */
    if (result == MPI_SUCCESS && !operation->tracked.persistent && (!operation->in.plan || operation->in.untold))
        if (PMPI_Request_get_status(*request, &ended, MPI_STATUS_IGNORE) != MPI_SUCCESS) ended = 0;
    if (ended) result = operation_unpack(operation, MPI_STATUS_IGNORE);
    if (result == MPI_SUCCESS && !ended) dtc_mpi_track(&operation->tracked, key_of(*request));
    else operation_drop(operation);
    return result;
}

/* After a request has ended, as `result` says: unpacks what was received. */
static int operation_end(struct operation *operation, MPI_Status *status, int result)
{
    if (result == MPI_SUCCESS) result = operation_unpack(operation, status);
    if (!operation->tracked.persistent) operation_drop(operation);
    return result;
}

/* Operations that were active when the program freed their requests. */
static struct operation *freed_operations;

/* Adds operations that are linked. */
static void add_freed(struct operation *first)
{
    if (!first) return;
    struct operation *last = first;
    while (last->next) last = last->next;
    last->next = __atomic_load_n(&freed_operations, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&freed_operations, &last->next, first, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

/* Ends those that the MPI has completed. */
static __attribute__((noinline)) void end_freed(void)
{
    struct operation *operation = __atomic_exchange_n(&freed_operations, NULL, __ATOMIC_ACQUIRE), *active = NULL;
    while (operation) {
        struct operation *next = operation->next;
        MPI_Status status;
        int ended = 0, result = PMPI_Test(&operation->request, &ended, &status);
        if (result == MPI_SUCCESS && !ended) {
            operation->next = active;
            active = operation;
        } else {
            if (result == MPI_SUCCESS) operation_unpack(operation, &status);
            if (operation->tracked.persistent) PMPI_Request_free(&operation->request);
            operation_drop(operation);
        }
        operation = next;
    }
    add_freed(active);
}

/* Their staging memory is lost: the MPI may still send from it. */
static void release_freed(void)
{
    end_freed();
    struct operation *operation = __atomic_exchange_n(&freed_operations, NULL, __ATOMIC_ACQUIRE);
    for (; operation; operation = operation->next) PMPI_Request_free(&operation->request);
}

static inline void poll_freed(void)
{
    if (__builtin_expect(!!__atomic_load_n(&freed_operations, __ATOMIC_RELAXED), 0)) end_freed();
}

/* An operation of what is staged; takes it over. Null, with nothing staged any more, if there is no memory: either may be refused. */
static struct operation *operation_new(struct staged *out, struct staged *in)
{
    poll_freed();
    struct operation *operation = (struct operation *)calloc(1, sizeof *operation);
    if (operation && out) operation->out = *out;
    if (operation && in) operation->in = *in;
    if (!operation && in) is_posted(in), refuse(in, MPI_ERR_NO_MEM);
    if (!operation && out) refuse(out, MPI_ERR_NO_MEM);
    return operation;
}

/* The operation of a request, which stays in the table; null if the request is the MPI's alone. */
static inline struct operation *find_operation(MPI_Request request)
{
    if (!__atomic_load_n(&dtc_mpi_tracked_count, __ATOMIC_ACQUIRE) || request == MPI_REQUEST_NULL) return NULL;
    return (struct operation *)dtc_mpi_find_tracked(key_of(request));
}

/* The same, for a call that may complete the request. */
static inline struct operation *take_operation(MPI_Request request)
{
    poll_freed();
    if (!__atomic_load_n(&dtc_mpi_tracked_count, __ATOMIC_ACQUIRE) || request == MPI_REQUEST_NULL) return NULL;
    return (struct operation *)dtc_mpi_take_tracked(key_of(request));
}

/* Puts an operation back that a call has not ended. */
static void keep_operation(struct operation *operation)
{
    if (!operation->tracked.persistent) dtc_mpi_track(&operation->tracked, operation->tracked.request);
}

/* What was found for an array of requests, with statuses for a program that ignores them. */
struct looked {
    struct operation **operations;
    MPI_Status *statuses;
    int length, taken;
    struct operation *few_operations[32];
    MPI_Status few_statuses[32];
};

static __attribute__((noinline)) int look_up(struct looked *looked, int length, const MPI_Request *requests, int take)
{
    struct operation *found = NULL;
    int first = 0;
    if (length <= 0 || !requests) return 0;
    while (first < length && !(found = find_operation(requests[first]))) first++;
    if (!found) return 0;
    looked->operations = looked->few_operations;
    looked->statuses = looked->few_statuses;
    looked->length = length;
    looked->taken = take;
    if (length > (int)(sizeof looked->few_operations / sizeof *looked->few_operations)) {
        char *memory = (char *)malloc((size_t)length * (sizeof *looked->operations + sizeof *looked->statuses));
        looked->operations = (struct operation **)memory;
        looked->statuses = (MPI_Status *)(looked->operations + length);
        if (!memory) return 1;
    }
    for (int at = 0; at < first; at++) looked->operations[at] = NULL;
    for (int at = first; at < length; at++)
        looked->operations[at] = take ? take_operation(requests[at]) : find_operation(requests[at]);
    return 1;
}

/* Finds, or takes, the operations of an array; 0 if all of its requests are the MPI's. Without memory, there are no operations. */
static inline int look(struct looked *looked, int length, const MPI_Request *requests, int take)
{
    if (take) poll_freed();
    return __atomic_load_n(&dtc_mpi_tracked_count, __ATOMIC_ACQUIRE) ? look_up(looked, length, requests, take) : 0;
}

/* Puts those back that were not ended. */
static void look_end(const struct looked *looked)
{
    for (int at = 0; looked->taken && at < looked->length; at++)
        if (looked->operations[at]) keep_operation(looked->operations[at]);
    if (looked->operations != looked->few_operations) free(looked->operations);
}

#endif
