/* Nonblocking and persistent messages and collectives: what is staged is packed when they begin, and unpacked when they end. */
#ifndef DTC_MPI_NONBLOCKING_H
#define DTC_MPI_NONBLOCKING_H

#define WRAP_ISEND(name, count)                                                                                                   \
    static int wrap_##name(ARGUMENTS_ISEND(PARAMETER, count))                                                                     \
    {                                                                                                                             \
        struct staged out;                                                                                                        \
        out.refused = MPI_SUCCESS;                                                                                                \
        struct operation *operation = NULL;                                                                                       \
        if (sees_completions() && stage_packed(&out, memory, elements, datatype, rank, communicator))                             \
            operation = operation_new(&out, NULL);                                                                                \
        if (!operation && out.refused) return out.refused;                                                                        \
        if (!operation) return mpi.name(ARGUMENTS_ISEND(ARGUMENT, count));                                                        \
        int result = mpi.name(out.given, (KIND_##count)out.length, out.datatype, REST_ISEND(ARGUMENT, count));                    \
        return operation_begin(operation, request, result);                                                                       \
    }

#define WRAP_RECEIVE_LATER(name, count, shape, from, communicator, lasts)                                                         \
    static int wrap_##name(ARGUMENTS_##shape(PARAMETER, count))                                                                   \
    {                                                                                                                             \
        struct staged in;                                                                                                         \
        in.refused = lasts && !is_aside() ? decode_first(elements, datatype, from, communicator) : MPI_SUCCESS;                   \
        if (in.refused) return in.refused;                                                                                        \
        struct operation *operation = NULL;                                                                                       \
        if (sees_completions() && stage_received(&in, memory, elements, datatype, from, communicator))                            \
            operation = operation_new(NULL, &in);                                                                                 \
        if (!operation && in.refused) return in.refused;                                                                          \
        if (!operation) return mpi.name(ARGUMENTS_##shape(ARGUMENT, count));                                                      \
        operation->tracked.persistent = lasts;                                                                                    \
        int result = mpi.name(in.given, (KIND_##count)in.length, in.datatype, REST_##shape(ARGUMENT, count));                     \
        return operation_begin(operation, request, result);                                                                       \
    }

#define WRAP_IRECV(name, count) WRAP_RECEIVE_LATER(name, count, IRECV, rank, communicator, 0)
#define WRAP_IMRECV(name, count) WRAP_RECEIVE_LATER(name, count, IMRECV, SOURCE_OF(message), MPI_COMM_SELF, 0)
#define WRAP_RECV_INIT(name, count) WRAP_RECEIVE_LATER(name, count, IRECV, rank, communicator, 1)

/* Stages the halves of an exchange; null if the MPI shall do it, or if a half is refused. MPICH 4.0 and 5.0 do not tell how many bytes have
   come: the MPI receives, but for elements on a GPU that it must not be given, or that are noncontiguous: MPI_Isendrecv of Open MPI 5.0.7 ends by
   a signal where such a message has come before it. */
static struct operation *operation_both(struct staged *out, struct staged *in, const void *sent, int64_t sent_elements,
                                        MPI_Datatype sent_datatype, int destination, void *received, int64_t received_elements,
                                        MPI_Datatype received_datatype, int source, MPI_Comm communicator)
{
    in->plan = out->plan = NULL;
    in->refused = out->refused = MPI_SUCCESS;
    if (!sees_completions()) return NULL;
    stage_packed(out, sent, sent_elements, sent_datatype, destination, communicator);
    if (out->refused) return NULL;
    stage_received_as(in, received, received_elements, received_datatype, source, communicator, UNTOLD);
    if (in->refused) unstage(out);
    if (!out->plan && !in->plan) return NULL;
    return operation_new(out->plan ? out : NULL, in->plan ? in : NULL);
}

#define WRAP_ISENDRECV(name, count)                                                                                               \
    static int wrap_##name(ARGUMENTS_ISENDRECV(PARAMETER, count))                                                                 \
    {                                                                                                                             \
        struct staged out, in;                                                                                                    \
        struct operation *operation = operation_both(&out, &in, sent, sent_elements, sent_datatype, destination, received,        \
                                                     received_elements, received_datatype, source, communicator);                 \
        if (out.refused || in.refused) return out.refused ? out.refused : in.refused;                                             \
        EXCHANGE_STAGED(count);                                                                                                   \
        int result = mpi.name(ARGUMENTS_ISENDRECV(ARGUMENT, count));                                                              \
        return operation ? operation_begin(operation, request, result) : result;                                                  \
    }

/* What was packed may be received over. */
#define WRAP_ISENDRECV_REPLACE(name, count)                                                                                       \
    static int wrap_##name(ARGUMENTS_ISENDRECV_REPLACE(PARAMETER, count))                                                         \
    {                                                                                                                             \
        struct staged out, in;                                                                                                    \
        struct operation *operation = operation_both(&out, &in, memory, elements, datatype, destination, memory, elements,        \
                                                     datatype, source, communicator);                                             \
        if (out.refused || in.refused) return out.refused ? out.refused : in.refused;                                             \
        if (!out.plan && !in.plan) {                                                                                              \
            int begun = mpi.name(ARGUMENTS_ISENDRECV_REPLACE(ARGUMENT, count));                                                   \
            return operation ? operation_begin(operation, request, begun) : begun;                                                \
        }                                                                                                                         \
        const void *from = out.plan ? out.given : memory;                                                                         \
        void *into = in.plan ? in.given : memory;                                                                                 \
        int64_t out_length = out.plan ? out.length : elements, in_length = in.plan ? in.length : elements;                        \
        if (out_length > INT32_MAX || in_length > INT32_MAX) return operation_drop(operation), fail(MPI_ERR_OTHER);               \
        int result = mpi.Isendrecv(from, (int)out_length, out.plan ? out.datatype : datatype, destination, sent_tag, into,        \
                                   (int)in_length, in.plan ? in.datatype : datatype, source, received_tag, communicator, request);\
        return operation_begin(operation, request, result);                                                                       \
    }

/* The operation of a collective; null if the MPI shall do it, or if it is refused. */
static struct operation *operation_exchange(struct given *out, struct given *in, int in_place, int persistent, MPI_Comm communicator,
                                            int *refused)
{
    if (persistent) *refused = decode_blocks(out, communicator);
    if (persistent && *refused == MPI_SUCCESS) *refused = decode_blocks(in, communicator);
    if (*refused != MPI_SUCCESS) return NULL;
    struct exchange *exchange = (struct exchange *)calloc(1, sizeof *exchange);
    struct operation *operation = exchange ? operation_new(NULL, NULL) : NULL;
    if (operation && exchange_stage(exchange, out, in, in_place, persistent, communicator)) {
        operation->exchange = exchange;
        operation->tracked.persistent = (char)persistent;
        return operation;
    }
    if (operation) *refused = exchange_refused(exchange);
    free(operation);
    free(exchange);
    return NULL;
}

#define WRAP_LATER_EXCHANGE(name, count, shape, neighbors, persistent, ...)                                                       \
    static int wrap_##name(ARGUMENTS_##shape(PARAMETER, count))                                                                   \
    {                                                                                                                             \
        GIVEN(count, neighbors);                                                                                                  \
        int refused = MPI_SUCCESS;                                                                                                \
        struct operation *operation = NULL;                                                                                       \
        if (staged && sees_completions())                                                                                         \
            operation = operation_exchange(&out, &in, in_place, persistent, communicator, &refused);                              \
        if (refused != MPI_SUCCESS) return refused;                                                                               \
        if (!operation) return mpi.name(ARGUMENTS_##shape(ARGUMENT, count));                                                      \
        return operation_begin(operation, request, mpi.name(GIVEN_ARGUMENTS, __VA_ARGS__));                                       \
    }

#define WRAP_IALLTOALLW(name, count) WRAP_LATER_EXCHANGE(name, count, IALLTOALLW, 0, 0, request)
#define WRAP_INEIGHBOR_ALLTOALLW(name, count) WRAP_LATER_EXCHANGE(name, count, INEIGHBOR_ALLTOALLW, 1, 0, request)
#define WRAP_ALLTOALLW_INIT(name, count) WRAP_LATER_EXCHANGE(name, count, ALLTOALLW_INIT, 0, 1, info, request)
#define WRAP_NEIGHBOR_ALLTOALLW_INIT(name, count) WRAP_LATER_EXCHANGE(name, count, NEIGHBOR_ALLTOALLW_INIT, 1, 1, info, request)

/* The elements are packed when the request is started. */
#define WRAP_SEND_INIT(name, count)                                                                                               \
    static int wrap_##name(ARGUMENTS_SEND_INIT(PARAMETER, count))                                                                 \
    {                                                                                                                             \
        struct staged out;                                                                                                        \
        out.refused = is_aside() ? MPI_SUCCESS : decode_first(elements, datatype, rank, communicator);                            \
        if (out.refused) return out.refused;                                                                                      \
        struct operation *operation = NULL;                                                                                       \
        if (sees_completions() && stage_sent(&out, memory, elements, datatype, rank, communicator))                               \
            operation = operation_new(&out, NULL);                                                                                \
        if (!operation && out.refused) return out.refused;                                                                        \
        if (!operation) return mpi.name(ARGUMENTS_SEND_INIT(ARGUMENT, count));                                                    \
        operation->tracked.persistent = 1;                                                                                        \
        int result = mpi.name(out.given, (KIND_##count)out.length, out.datatype, REST_ISEND(ARGUMENT, count));                    \
        return operation_begin(operation, request, result);                                                                       \
    }

/* Before the MPI starts a persistent operation: packs what is sent, unless it is packed, or received over; 0 if that fails. */
static int operation_start(struct operation *operation, int is_packed)
{
    if (operation->exchange) return exchange_pack(operation->exchange);
    int packed = !operation->out.plan || is_packed || pack_sent(&operation->out);
    return packed && (!operation->in.plan || !operation->in.filled || pack_staged(&operation->in));
}

/* After the MPI has started it, or has failed. Open MPI may start another request in its place. */
static void operation_started(struct operation *operation, MPI_Request request, int result)
{
    if (result == MPI_SUCCESS) __atomic_store_n(&operation->unpacked, NOT_UNPACKED, __ATOMIC_RELAXED);
    if (operation->tracked.request == key_of(request)) return;
    dtc_mpi_untrack(&operation->tracked);
    dtc_mpi_track(&operation->tracked, key_of(request));
}

static int wrap_Start(MPI_Request *request)
{
    struct operation *operation = request ? find_operation(*request) : NULL;
    if (!operation) return mpi.Start(request);
    if (!operation_start(operation, 0)) return fail(MPI_ERR_OTHER);
    int result = mpi.Start(request);
    operation_started(operation, *request, result);
    return result;
}

static int wrap_Startall(int length, MPI_Request *requests)
{
    struct looked looked;
    if (!look(&looked, length, requests, 0)) return mpi.Startall(length, requests);
    if (!looked.operations) return fail(MPI_ERR_NO_MEM);
    struct together together;
    int joined = pack_together(&together, looked.operations, length), packed = 1, next = 0;
    for (int at = 0; packed && at < length; at++) {
        int is_packed = next < joined && together.operations[next] == looked.operations[at];
        next += is_packed;
        packed = !looked.operations[at] || operation_start(looked.operations[at], is_packed);
    }
    together_end(&together);
    int result = packed ? mpi.Startall(length, requests) : fail(MPI_ERR_OTHER);
    for (int at = 0; packed && at < length; at++)
        if (looked.operations[at]) operation_started(looked.operations[at], requests[at], result);
    look_end(&looked);
    return result;
}

#define WRAP_START(name, count)
#define WRAP_STARTALL(name, count)

#endif
