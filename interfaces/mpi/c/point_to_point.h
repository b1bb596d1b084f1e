/* Blocking messages. */
#ifndef DTC_MPI_POINT_TO_POINT_H
#define DTC_MPI_POINT_TO_POINT_H

#define WRAP_SEND(name, count)                                                                                                    \
    static int wrap_##name(ARGUMENTS_SEND(PARAMETER, count))                                                                      \
    {                                                                                                                             \
        struct staged out;                                                                                                        \
        if (!stage_packed(&out, memory, elements, datatype, rank, communicator))                                                  \
            return out.refused ? out.refused : mpi.name(ARGUMENTS_SEND(ARGUMENT, count));                                         \
        int result = mpi.name(out.given, (KIND_##count)out.length, out.datatype, REST_SEND(ARGUMENT, count));                     \
        unstage(&out);                                                                                                            \
        return result;                                                                                                            \
    }

#define WRAP_RECEIVE(name, count, shape, from, communicator)                                                                      \
    static int wrap_##name(ARGUMENTS_##shape(PARAMETER, count))                                                                   \
    {                                                                                                                             \
        struct staged in;                                                                                                         \
        if (!stage_received(&in, memory, elements, datatype, from, communicator))                                                 \
            return in.refused ? in.refused : mpi.name(ARGUMENTS_##shape(ARGUMENT, count));                                        \
        MPI_Status own;                                                                                                           \
        if (status == MPI_STATUS_IGNORE) status = &own;                                                                           \
        int result = mpi.name(in.given, (KIND_##count)in.length, in.datatype, REST_##shape(ARGUMENT, count));                     \
        is_posted(&in);                                                                                                           \
        return end_received(&in, status, result);                                                                                 \
    }

#define WRAP_RECV(name, count) WRAP_RECEIVE(name, count, RECV, rank, communicator)

/* Where a matched message comes from: nowhere, or any process. */
#define SOURCE_OF(message)                                                                                                        \
    (!message || *message == MPI_MESSAGE_NULL || *message == MPI_MESSAGE_NO_PROC ? MPI_PROC_NULL : MPI_ANY_SOURCE)

#define WRAP_MRECV(name, count) WRAP_RECEIVE(name, count, MRECV, SOURCE_OF(message), MPI_COMM_SELF)

/* Puts the staged halves into the arguments of an exchange. */
#define EXCHANGE_STAGED(count)                                                                                                    \
    if (out.plan) sent = out.given, sent_elements = (KIND_##count)out.length, sent_datatype = out.datatype;                       \
    if (in.plan) received = in.given, received_elements = (KIND_##count)in.length, received_datatype = in.datatype

/* Either half is staged by itself. */
#define WRAP_SENDRECV(name, count)                                                                                                \
    static int wrap_##name(ARGUMENTS_SENDRECV(PARAMETER, count))                                                                  \
    {                                                                                                                             \
        struct staged out, in;                                                                                                    \
        stage_packed(&out, sent, sent_elements, sent_datatype, destination, communicator);                                        \
        if (out.refused) return out.refused;                                                                                      \
        stage_received(&in, received, received_elements, received_datatype, source, communicator);                                \
        if (in.refused) {                                                                                                         \
            unstage(&out);                                                                                                        \
            return in.refused;                                                                                                    \
        }                                                                                                                         \
        MPI_Status own;                                                                                                           \
        if (in.plan && status == MPI_STATUS_IGNORE) status = &own;                                                                \
        EXCHANGE_STAGED(count);                                                                                                   \
        int result = mpi.name(ARGUMENTS_SENDRECV(ARGUMENT, count));                                                               \
        unstage(&out);                                                                                                            \
        if (!in.plan) return result;                                                                                              \
        is_posted(&in);                                                                                                           \
        return end_received(&in, status, result);                                                                                 \
    }

/* The exchange of MPI_Sendrecv_replace. Either half may be staged. */
static int send_and_receive(const struct staged *out, const struct staged *in, void *memory, int64_t elements, MPI_Datatype datatype,
                            int destination, int sent_tag, int source, int received_tag, MPI_Comm communicator, MPI_Status *status)
{
    void *from = out->plan ? out->given : memory, *into = in->plan ? in->given : memory;
    int64_t sent = out->plan ? out->length : elements, received = in->plan ? in->length : elements;
    if (sent > INT32_MAX || received > INT32_MAX) return fail(MPI_ERR_OTHER);
    return mpi.Sendrecv(from, (int)sent, out->plan ? out->datatype : datatype, destination, sent_tag, into, (int)received,
                        in->plan ? in->datatype : datatype, source, received_tag, communicator, status);
}

/* MPI_Sendrecv_replace of the MPI would copy the bytes once more; what was packed may be received over. */
#define WRAP_SENDRECV_REPLACE(name, count)                                                                                        \
    static int wrap_##name(ARGUMENTS_SENDRECV_REPLACE(PARAMETER, count))                                                          \
    {                                                                                                                             \
        struct staged out, in;                                                                                                    \
        stage_packed(&out, memory, elements, datatype, destination, communicator);                                                \
        if (out.refused) return out.refused;                                                                                      \
        /* What is sent to no process lies where the MPI may receive over it. */                                                  \
        stage_received(&in, memory, elements, datatype, out.plan || destination == MPI_PROC_NULL ? source : MPI_PROC_NULL,        \
                       communicator);                                                                                             \
        if (in.refused) {                                                                                                         \
            unstage(&out);                                                                                                        \
            return in.refused;                                                                                                    \
        }                                                                                                                         \
        MPI_Status own;                                                                                                           \
        if (in.plan && status == MPI_STATUS_IGNORE) status = &own;                                                                \
        int result = out.plan || in.plan                                                                                          \
                         ? send_and_receive(&out, &in, memory, elements, datatype, destination, sent_tag, source, received_tag,   \
                                            communicator, status)                                                                 \
                         : mpi.name(ARGUMENTS_SENDRECV_REPLACE(ARGUMENT, count));                                                 \
        unstage(&out);                                                                                                            \
        if (!in.plan) return result;                                                                                              \
        is_posted(&in);                                                                                                           \
        return end_received(&in, status, result);                                                                                 \
    }

#endif
