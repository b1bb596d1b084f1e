/* Nonblocking messages and collectives, and persistent messages: what is staged is packed when they begin, and unpacked when they end. */
#ifndef DTC_MPI_NONBLOCKING_H
#define DTC_MPI_NONBLOCKING_H

#define WRAP_ISEND(name, count)                                                                                                   \
    static int wrap_##name(ARGUMENTS_ISEND(PARAMETER, count))                                                                     \
    {                                                                                                                              \
        struct staged out;                                                                                                         \
        int unknown = 0;                                                                                                           \
        struct operation *operation = NULL;                                                                                       \
        if (sees_completions() && stage_packed(&out, memory, elements, datatype, rank, communicator, &unknown))                   \
            operation = operation_new(&out, NULL);                                                                                \
        if (!operation) return learn(mpi.name(ARGUMENTS_ISEND(ARGUMENT, count)), datatype, unknown);                              \
        int result = mpi.name(out.packed, (KIND_##count)out.length, out.datatype, REST_ISEND(ARGUMENT, count));                    \
        return operation_begin(operation, request, result);                                                                       \
    }

#define WRAP_RECEIVE_LATER(name, count, shape, from, communicator, lasts)                                                        \
    static int wrap_##name(ARGUMENTS_##shape(PARAMETER, count))                                                                   \
    {                                                                                                                              \
        struct staged in;                                                                                                          \
        int unknown = 0;                                                                                                           \
        struct operation *operation = NULL;                                                                                       \
        if (sees_completions() && stage_received(&in, memory, elements, datatype, from, communicator, &unknown))                  \
            operation = operation_new(NULL, &in);                                                                                 \
        if (!operation) return learn(mpi.name(ARGUMENTS_##shape(ARGUMENT, count)), datatype, unknown);                            \
        operation->tracked.persistent = lasts;                                                                                            \
        int result = mpi.name(in.packed, (KIND_##count)in.length, in.datatype, REST_##shape(ARGUMENT, count));                     \
        return operation_begin(operation, request, result);                                                                       \
    }

#define WRAP_IRECV(name, count) WRAP_RECEIVE_LATER(name, count, IRECV, rank, communicator, 0)
#define WRAP_IMRECV(name, count) WRAP_RECEIVE_LATER(name, count, IMRECV, SOURCE_OF(message), MPI_COMM_SELF, 0)
#define WRAP_RECV_INIT(name, count) WRAP_RECEIVE_LATER(name, count, IRECV, rank, communicator, 1)

/* The MPI receives: MPICH 4.0 and 5.0 do not tell how many bytes have come. */
#define WRAP_ISENDRECV(name, count)                                                                                               \
    static int wrap_##name(ARGUMENTS_ISENDRECV(PARAMETER, count))                                                                 \
    {                                                                                                                              \
        struct staged out;                                                                                                         \
        int unknown = 0;                                                                                                           \
        struct operation *operation = NULL;                                                                                       \
        MPI_Datatype datatype = sent_datatype;                                                                                    \
        if (sees_completions() && stage_packed(&out, sent, sent_elements, sent_datatype, destination, communicator, &unknown))    \
            operation = operation_new(&out, NULL);                                                                                \
        if (operation) sent = out.packed, sent_elements = (KIND_##count)out.length, sent_datatype = out.datatype;                 \
        int result = learn(mpi.name(ARGUMENTS_ISENDRECV(ARGUMENT, count)), datatype, unknown);                                    \
        return operation ? operation_begin(operation, request, result) : result;                                                  \
    }

/* What was packed may be received over. */
#define WRAP_ISENDRECV_REPLACE(name, count)                                                                                       \
    static int wrap_##name(ARGUMENTS_ISENDRECV_REPLACE(PARAMETER, count))                                                         \
    {                                                                                                                              \
        struct staged out;                                                                                                         \
        int unknown = 0;                                                                                                           \
        struct operation *operation = NULL;                                                                                       \
        if (sees_completions() && stage_packed(&out, memory, elements, datatype, destination, communicator, &unknown))            \
            operation = operation_new(&out, NULL);                                                                                \
        if (!operation) return learn(mpi.name(ARGUMENTS_ISENDRECV_REPLACE(ARGUMENT, count)), datatype, unknown);                  \
        int result = mpi.Isendrecv(out.packed, (int)out.length, out.datatype, destination, sent_tag, memory, (int)elements,       \
                                   datatype, source, received_tag, communicator, request);                                        \
        return operation_begin(operation, request, result);                                                                       \
    }

/* The operation of a collective; null if the MPI shall do it. */
static struct operation *operation_exchange(struct given *out, struct given *in, int *unknown)
{
    struct exchange *exchange = (struct exchange *)malloc(sizeof *exchange);
    struct operation *operation = exchange ? operation_new(NULL, NULL) : NULL;
    if (operation && exchange_stage(exchange, out, in, unknown)) {
        operation->exchange = exchange;
        return operation;
    }
    free(operation);
    free(exchange);
    return NULL;
}

#define WRAP_LATER_EXCHANGE(name, count, shape, neighbors)                                                                       \
    static int wrap_##name(ARGUMENTS_##shape(PARAMETER, count))                                                                   \
    {                                                                                                                              \
        GIVEN(count, neighbors);                                                                                                   \
        struct operation *operation = staged && sees_completions() ? operation_exchange(&out, &in, &unknown) : NULL;             \
        if (!operation) return LEARN_ALL(mpi.name(ARGUMENTS_##shape(ARGUMENT, count)));                                           \
        return operation_begin(operation, request, LEARN_ALL(mpi.name(GIVEN_ARGUMENTS, request)));                                \
    }

#define WRAP_IALLTOALLW(name, count) WRAP_LATER_EXCHANGE(name, count, IALLTOALLW, 0)
#define WRAP_INEIGHBOR_ALLTOALLW(name, count) WRAP_LATER_EXCHANGE(name, count, INEIGHBOR_ALLTOALLW, 1)

/* The elements are packed when the request is started. */
#define WRAP_SEND_INIT(name, count)                                                                                               \
    static int wrap_##name(ARGUMENTS_SEND_INIT(PARAMETER, count))                                                                 \
    {                                                                                                                              \
        struct staged out;                                                                                                         \
        int unknown = 0;                                                                                                           \
        struct operation *operation = NULL;                                                                                       \
        if (sees_completions() && stage_sent(&out, memory, elements, datatype, rank, communicator, &unknown))                     \
            operation = operation_new(&out, NULL);                                                                                \
        if (!operation) return learn(mpi.name(ARGUMENTS_SEND_INIT(ARGUMENT, count)), datatype, unknown);                          \
        operation->tracked.persistent = 1;                                                                                                 \
        int result = mpi.name(out.packed, (KIND_##count)out.length, out.datatype, REST_ISEND(ARGUMENT, count));                    \
        return operation_begin(operation, request, result);                                                                       \
    }

/* Before the MPI starts a persistent operation: packs what is sent; 0 if that fails. */
static int operation_start(struct operation *operation)
{
    __atomic_store_n(&operation->unpacked, 0, __ATOMIC_RELAXED);
    return !operation->out.plan || pack_staged(&operation->out);
}

/* After the MPI has started it. Open MPI may start another request in its place. */
static void operation_started(struct operation *operation, MPI_Request request)
{
    if (operation->tracked.request == key_of(request)) return;
    dtc_mpi_untrack(&operation->tracked);
    dtc_mpi_track(&operation->tracked, key_of(request));
}

static int wrap_Start(MPI_Request *request)
{
    struct operation *operation = request ? find_operation(*request) : NULL;
    if (!operation) return mpi.Start(request);
    if (!operation_start(operation)) return fail(MPI_ERR_OTHER);
    int result = mpi.Start(request);
    operation_started(operation, *request);
    return result;
}

static int wrap_Startall(int length, MPI_Request *requests)
{
    struct looked looked;
    if (!look(&looked, length, requests, 0)) return mpi.Startall(length, requests);
    if (!looked.operations) return fail(MPI_ERR_NO_MEM);
    int packed = 1;
    for (int at = 0; at < length; at++) packed = packed && (!looked.operations[at] || operation_start(looked.operations[at]));
    int result = packed ? mpi.Startall(length, requests) : fail(MPI_ERR_OTHER);
    for (int at = 0; packed && at < length; at++)
        if (looked.operations[at]) operation_started(looked.operations[at], requests[at]);
    look_end(&looked);
    return result;
}

#define WRAP_START(name, count)
#define WRAP_STARTALL(name, count)

#endif
