/* Blocking messages. */
#ifndef DTC_MPI_POINT_TO_POINT_H
#define DTC_MPI_POINT_TO_POINT_H

#define WRAP_SEND(name, count)                                                                                                    \
    static int wrap_##name(ARGUMENTS_SEND(PARAMETER, count))                                                                      \
    {                                                                                                                              \
        struct staged out;                                                                                                         \
        int unknown = 0;                                                                                                           \
        if (!stage_packed(&out, memory, elements, datatype, rank, communicator, &unknown))                                        \
            return learn(mpi.name(ARGUMENTS_SEND(ARGUMENT, count)), datatype, unknown);                                           \
        int result = mpi.name(out.packed, (KIND_##count)out.length, out.datatype, REST_SEND(ARGUMENT, count));                     \
        unstage(&out);                                                                                                             \
        return result;                                                                                                             \
    }

#define WRAP_RECEIVE(name, count, shape, from, communicator)                                                                     \
    static int wrap_##name(ARGUMENTS_##shape(PARAMETER, count))                                                                   \
    {                                                                                                                              \
        struct staged in;                                                                                                          \
        int unknown = 0;                                                                                                           \
        if (!stage_received(&in, memory, elements, datatype, from, communicator, &unknown))                                       \
            return learn(mpi.name(ARGUMENTS_##shape(ARGUMENT, count)), datatype, unknown);                                        \
        MPI_Status own;                                                                                                            \
        if (status == MPI_STATUS_IGNORE) status = &own;                                                                           \
        int result = mpi.name(in.packed, (KIND_##count)in.length, in.datatype, REST_##shape(ARGUMENT, count));                     \
        is_posted(&in);                                                                                                            \
        return end_received(&in, status, result);                                                                                 \
    }

#define WRAP_RECV(name, count) WRAP_RECEIVE(name, count, RECV, rank, communicator)

/* Where a matched message comes from: nowhere, or any process. */
#define SOURCE_OF(message)                                                                                                       \
    (!message || *message == MPI_MESSAGE_NULL || *message == MPI_MESSAGE_NO_PROC ? MPI_PROC_NULL : MPI_ANY_SOURCE)

#define WRAP_MRECV(name, count) WRAP_RECEIVE(name, count, MRECV, SOURCE_OF(message), MPI_COMM_SELF)

/* Puts the staged halves into the arguments of an exchange. */
#define EXCHANGE_STAGED(count)                                                                                                   \
    if (out.plan) sent = out.packed, sent_elements = (KIND_##count)out.length, sent_datatype = out.datatype;                       \
    if (in.plan) received = in.packed, received_elements = (KIND_##count)in.length, received_datatype = in.datatype

/* Either half is staged by itself. */
#define WRAP_SENDRECV(name, count)                                                                                                \
    static int wrap_##name(ARGUMENTS_SENDRECV(PARAMETER, count))                                                                  \
    {                                                                                                                              \
        struct staged out, in;                                                                                                     \
        int out_unknown = 0, in_unknown = 0;                                                                                       \
        MPI_Datatype out_datatype = sent_datatype, in_datatype = received_datatype;                                               \
        stage_packed(&out, sent, sent_elements, sent_datatype, destination, communicator, &out_unknown);                          \
        stage_received(&in, received, received_elements, received_datatype, source, communicator, &in_unknown);                   \
        MPI_Status own;                                                                                                            \
        if (in.plan && status == MPI_STATUS_IGNORE) status = &own;                                                                \
        EXCHANGE_STAGED(count);                                                                                                    \
        int result = mpi.name(ARGUMENTS_SENDRECV(ARGUMENT, count));                                                               \
        unstage(&out);                                                                                                             \
        learn(result, out_datatype, out_unknown);                                                                                 \
        learn(result, in_datatype, in_unknown);                                                                                   \
        if (!in.plan) return result;                                                                                              \
        is_posted(&in);                                                                                                            \
        return end_received(&in, status, result);                                                                                 \
    }

/* MPI_Sendrecv_replace of the MPI would copy the bytes once more; what was packed may be received over. */
#define WRAP_SENDRECV_REPLACE(name, count)                                                                                        \
    static int wrap_##name(ARGUMENTS_SENDRECV_REPLACE(PARAMETER, count))                                                          \
    {                                                                                                                              \
        struct staged out, in;                                                                                                     \
        int unknown = 0;                                                                                                           \
        if (!stage_packed(&out, memory, elements, datatype, destination, communicator, &unknown))                                 \
            return learn(mpi.name(ARGUMENTS_SENDRECV_REPLACE(ARGUMENT, count)), datatype, unknown);                               \
        stage_received(&in, memory, elements, datatype, source, communicator, &unknown);                                          \
        MPI_Status own;                                                                                                            \
        if (in.plan && status == MPI_STATUS_IGNORE) status = &own;                                                                \
        void *into = in.plan ? in.packed : memory;                                                                                \
        int result = mpi.Sendrecv(out.packed, (int)out.length, out.datatype, destination, sent_tag, into,                          \
                                   (int)(in.plan ? in.length : elements), in.plan ? in.datatype : datatype, source, received_tag,   \
                                   communicator, status);                                                                         \
        unstage(&out);                                                                                                             \
        if (!in.plan) return result;                                                                                              \
        is_posted(&in);                                                                                                            \
        return end_received(&in, status, result);                                                                                 \
    }

#endif
