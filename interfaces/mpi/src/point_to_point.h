/*
 * Blocking messages. The bytes of the elements are packed by dtc and sent as MPI_PACKED, or received as MPI_PACKED and unpacked by
 * dtc. MPI_PACKED matches any type signature, at either side (MPI 4.1, 5.2), and an MPI sends the bytes of a datatype in the order
 * of its type map, so the message is the same as without this library: same communicator, tag, order and bytes. The other process
 * need not be interposed. A status counts bytes, so MPI_Get_count of the program's datatype is right. (MPI 4.1, 3.2.5)
 *
 * A message is packed for sending only if its basic elements have one size. MPICH 4.0 on UCX cuts what a contiguous buffer sends
 * anywhere, and loses what it cuts inside an element when it unpacks: it reports that the message is truncated.
 */
#ifndef DTC_MPI_POINT_TO_POINT_H
#define DTC_MPI_POINT_TO_POINT_H

/* Elements whose bytes go through staging memory. */
struct staged {
    struct plan *plan;
    void *packed;
    int64_t elements, bytes;
};

/* Takes staging memory for a message; 0 if the MPI shall move it. */
static int stage(struct staged *staged, const void *memory, int64_t elements, MPI_Datatype datatype, MPI_Comm communicator, int *unknown)
{
    if (!is_ready() || !memory || elements <= 0 || communicator == MPI_COMM_NULL) return 0;
    struct plan *plan = plan_of(datatype, unknown);
    if (!plan || plan->piece > LONGEST_PIECE || __builtin_mul_overflow(elements, plan->size, &staged->bytes)) return 0;
    if (staged->bytes < LEAST_MESSAGE || staged->bytes > LARGEST_MESSAGE) return 0;
    staged->packed = dtc_mpi_staging_take(staged->bytes);
    if (!staged->packed) return 0;
    plan_retain(plan);
    staged->plan = plan;
    staged->elements = elements;
    return 1;
}

static void unstage(struct staged *staged)
{
    dtc_mpi_staging_give(staged->packed, staged->bytes);
    plan_release(staged->plan);
}

/* Stages and packs elements that are sent; 0 if the MPI shall send them. */
static int stage_packed(struct staged *staged, const void *memory, int64_t elements, MPI_Datatype datatype, int destination,
                        MPI_Comm communicator, int *unknown)
{
    if (destination == MPI_PROC_NULL || !stage(staged, memory, elements, datatype, communicator, unknown)) return 0;
    if (staged->plan->uniform &&
        dtc_pack(staged->plan->type, memory, elements, 0, staged->packed, staged->bytes, NULL, NULL) == DTC_OK) {
        dtc_mpi_count(DTC_MPI_SENT, staged->bytes);
        return 1;
    }
    unstage(staged);
    return 0;
}

/* Unpacks what was received, which may be less than was expected. */
static int unpack_received(const struct staged *staged, void *memory, const MPI_Status *status, MPI_Comm communicator)
{
    int received = 0;
    PMPI_Get_count(status, MPI_PACKED, &received);
    if (received <= 0) return MPI_SUCCESS;
    dtc_mpi_count(DTC_MPI_RECEIVED, received);
    if (dtc_unpack(staged->plan->type, staged->packed, received, memory, staged->elements, 0, NULL, NULL) == DTC_OK) return MPI_SUCCESS;
    /* A GPU failed. The message is lost: the error handler decides. */
    PMPI_Comm_call_errhandler(communicator, MPI_ERR_OTHER);
    return MPI_ERR_OTHER;
}

/* After a call that the MPI has done. */
static inline int learn(int status, MPI_Datatype datatype, int unknown)
{
    if (__builtin_expect(unknown, 0) && status == MPI_SUCCESS) plan_make(datatype);
    return status;
}

#define WRAP_SEND(name, count)                                                                                                    \
    static int wrap_##name(ARGUMENTS_SEND(PARAMETER, count))                                                                      \
    {                                                                                                                              \
        struct staged staged;                                                                                                      \
        int unknown = 0;                                                                                                           \
        if (!stage_packed(&staged, memory, elements, datatype, rank, communicator, &unknown))                                     \
            return learn(mpi.name(ARGUMENTS_SEND(ARGUMENT, count)), datatype, unknown);                                           \
        int status = mpi.name(staged.packed, (KIND_##count)staged.bytes, MPI_PACKED, rank, tag, communicator);                    \
        unstage(&staged);                                                                                                          \
        return status;                                                                                                             \
    }

#if !DTC_MPI_OVERRUNS

#define WRAP_RECV(name, count)                                                                                                    \
    static int wrap_##name(ARGUMENTS_RECV(PARAMETER, count))                                                                      \
    {                                                                                                                              \
        struct staged staged;                                                                                                      \
        int unknown = 0;                                                                                                           \
        if (rank == MPI_PROC_NULL || !stage(&staged, memory, elements, datatype, communicator, &unknown))                         \
            return learn(mpi.name(ARGUMENTS_RECV(ARGUMENT, count)), datatype, unknown);                                           \
        MPI_Status own;                                                                                                            \
        if (status == MPI_STATUS_IGNORE) status = &own;                                                                           \
        int result = mpi.name(staged.packed, (KIND_##count)staged.bytes, MPI_PACKED, rank, tag, communicator, status);            \
        if (result == MPI_SUCCESS) result = unpack_received(&staged, memory, status, communicator);                               \
        unstage(&staged);                                                                                                          \
        return result;                                                                                                             \
    }

#define WRAP_MRECV(name, count)                                                                                                   \
    static int wrap_##name(ARGUMENTS_MRECV(PARAMETER, count))                                                                     \
    {                                                                                                                              \
        struct staged staged;                                                                                                      \
        int unknown = 0;                                                                                                           \
        if (!message || *message == MPI_MESSAGE_NULL || *message == MPI_MESSAGE_NO_PROC ||                                        \
            !stage(&staged, memory, elements, datatype, MPI_COMM_SELF, &unknown))                                                 \
            return learn(mpi.name(ARGUMENTS_MRECV(ARGUMENT, count)), datatype, unknown);                                          \
        MPI_Status own;                                                                                                            \
        if (status == MPI_STATUS_IGNORE) status = &own;                                                                           \
        int result = mpi.name(staged.packed, (KIND_##count)staged.bytes, MPI_PACKED, message, status);                            \
        if (result == MPI_SUCCESS) result = unpack_received(&staged, memory, status, MPI_COMM_SELF);                              \
        unstage(&staged);                                                                                                          \
        return result;                                                                                                             \
    }

#else

/* Whether a message of `length` bytes fits; MPI_UNDEFINED is negative. */
static inline int fits(const struct staged *staged, int length)
{
    return length >= 0 && length <= staged->bytes;
}

/* The length of the message is known before it is received. One that is too long is the MPI's. */
#define WRAP_RECV(name, count)                                                                                                    \
    static int wrap_##name(ARGUMENTS_RECV(PARAMETER, count))                                                                      \
    {                                                                                                                              \
        struct staged staged;                                                                                                      \
        int unknown = 0, length = 0;                                                                                               \
        if (rank == MPI_PROC_NULL || !stage(&staged, memory, elements, datatype, communicator, &unknown))                         \
            return learn(mpi.name(ARGUMENTS_RECV(ARGUMENT, count)), datatype, unknown);                                           \
        MPI_Message message;                                                                                                       \
        MPI_Status own;                                                                                                            \
        int result = PMPI_Mprobe(rank, tag, communicator, &message, &own);                                                        \
        if (result == MPI_SUCCESS) {                                                                                               \
            PMPI_Get_count(&own, MPI_PACKED, &length);                                                                            \
            if (status == MPI_STATUS_IGNORE) status = &own;                                                                       \
            if (!fits(&staged, length)) {                                                                                         \
                result = PMPI_Mrecv(memory, (int)elements, datatype, &message, status);                                           \
            } else {                                                                                                               \
                result = PMPI_Mrecv(staged.packed, length, MPI_PACKED, &message, status);                                         \
                if (result == MPI_SUCCESS) result = unpack_received(&staged, memory, status, communicator);                       \
            }                                                                                                                      \
        }                                                                                                                          \
        unstage(&staged);                                                                                                          \
        return result;                                                                                                             \
    }

#define WRAP_MRECV(name, count)                                                                                                   \
    static int wrap_##name(ARGUMENTS_MRECV(PARAMETER, count))                                                                     \
    {                                                                                                                              \
        return mpi.name(ARGUMENTS_MRECV(ARGUMENT, count));                                                                        \
    }

#endif

/* Either half is staged by itself, unless a message that is too long would be written past staging memory. */
#define WRAP_SENDRECV(name, count)                                                                                                \
    static int wrap_##name(ARGUMENTS_SENDRECV(PARAMETER, count))                                                                  \
    {                                                                                                                              \
        struct staged out, in;                                                                                                     \
        int out_unknown = 0, in_unknown = 0;                                                                                       \
        MPI_Datatype in_datatype = received_datatype, out_datatype = sent_datatype;                                               \
        void *memory = received;                                                                                                   \
        int outgoing = stage_packed(&out, sent, sent_elements, sent_datatype, destination, communicator, &out_unknown);           \
        int incoming = !DTC_MPI_OVERRUNS && source != MPI_PROC_NULL &&                                                            \
                       stage(&in, received, received_elements, received_datatype, communicator, &in_unknown);                     \
        MPI_Status own;                                                                                                            \
        if (incoming && status == MPI_STATUS_IGNORE) status = &own;                                                               \
        if (outgoing) sent = out.packed, sent_elements = (KIND_##count)out.bytes, sent_datatype = MPI_PACKED;                     \
        if (incoming) received = in.packed, received_elements = (KIND_##count)in.bytes, received_datatype = MPI_PACKED;           \
        int result = mpi.name(ARGUMENTS_SENDRECV(ARGUMENT, count));                                                               \
        if (incoming && result == MPI_SUCCESS) result = unpack_received(&in, memory, status, communicator);                       \
        if (outgoing) unstage(&out);                                                                                              \
        if (incoming) unstage(&in);                                                                                               \
        learn(result, out_datatype, out_unknown);                                                                                 \
        return learn(result, in_datatype, in_unknown);                                                                            \
    }

#if !DTC_MPI_OVERRUNS

#define WRAP_SENDRECV_REPLACE(name, count)                                                                                        \
    static int wrap_##name(ARGUMENTS_SENDRECV_REPLACE(PARAMETER, count))                                                          \
    {                                                                                                                              \
        struct staged staged;                                                                                                      \
        int unknown = 0;                                                                                                           \
        if (!stage_packed(&staged, memory, elements, datatype, destination, communicator, &unknown))                              \
            return learn(mpi.name(ARGUMENTS_SENDRECV_REPLACE(ARGUMENT, count)), datatype, unknown);                               \
        MPI_Status own;                                                                                                            \
        if (status == MPI_STATUS_IGNORE) status = &own;                                                                           \
        int result = mpi.name(staged.packed, (KIND_##count)staged.bytes, MPI_PACKED, destination, sent_tag, source, received_tag,  \
                              communicator, status);                                                                              \
        if (result == MPI_SUCCESS) result = unpack_received(&staged, memory, status, communicator);                               \
        unstage(&staged);                                                                                                          \
        return result;                                                                                                             \
    }

#else

/* Once packed, the elements may be received over. */
#define WRAP_SENDRECV_REPLACE(name, count)                                                                                       \
    static int wrap_##name(ARGUMENTS_SENDRECV_REPLACE(PARAMETER, count))                                                          \
    {                                                                                                                              \
        struct staged staged;                                                                                                      \
        int unknown = 0;                                                                                                           \
        if (!stage_packed(&staged, memory, elements, datatype, destination, communicator, &unknown))                              \
            return learn(mpi.name(ARGUMENTS_SENDRECV_REPLACE(ARGUMENT, count)), datatype, unknown);                               \
        int result = PMPI_Sendrecv(staged.packed, (int)staged.bytes, MPI_PACKED, destination, sent_tag, memory, (int)elements,    \
                                   datatype, source, received_tag, communicator, status);                                         \
        unstage(&staged);                                                                                                          \
        return result;                                                                                                             \
    }

#endif

#endif
