/* MPI_Pack and MPI_Unpack, whose packed data are the bytes of the type map in MPICH, Open MPI and dtc. (MPI 4.1, 5.2) */
#ifndef DTC_MPI_PACK_H
#define DTC_MPI_PACK_H

/* The plan of a call that dtc does: `bytes` fit into the packed data behind `position`. Null if the MPI does it. */
static struct plan *plan_of_pack(const void *memory, int64_t elements, MPI_Datatype datatype, const void *packed, int64_t size,
                                 int64_t position, MPI_Comm communicator, int64_t *bytes, int *unknown)
{
    if (!is_ready() || !memory || !packed || elements <= 0 || position < 0 || communicator == MPI_COMM_NULL) return NULL;
    struct plan *plan = plan_of(datatype, unknown);
    if (!plan || plan->piece > limits.packed_piece || __builtin_mul_overflow(elements, plan->size, bytes)) return NULL;
    return *bytes >= limits.packed_bytes && position <= size && *bytes <= size - position ? plan : NULL;
}

#define WRAP_PACK(name, count)                                                                                                    \
    static int wrap_##name(ARGUMENTS_PACK(PARAMETER, count))                                                                      \
    {                                                                                                                              \
        int unknown = 0;                                                                                                           \
        int64_t bytes = 0, at = position ? *position : -1;                                                                        \
        struct plan *plan = plan_of_pack(memory, elements, datatype, packed, size, at, communicator, &bytes, &unknown);           \
        if (plan && dtc_pack(plan->type, memory, elements, 0, (char *)packed + at, bytes, NULL, NULL) == DTC_OK) {                \
            dtc_mpi_count(DTC_MPI_PACKED, bytes);                                                                                 \
            *position += (KIND_##count)bytes;                                                                                      \
            return MPI_SUCCESS;                                                                                                    \
        }                                                                                                                          \
        int status = mpi.name(ARGUMENTS_PACK(ARGUMENT, count));                                                                   \
        if (unknown && status == MPI_SUCCESS) plan_make(datatype);                                                                \
        return status;                                                                                                             \
    }

#define WRAP_UNPACK(name, count)                                                                                                  \
    static int wrap_##name(ARGUMENTS_UNPACK(PARAMETER, count))                                                                    \
    {                                                                                                                              \
        int unknown = 0;                                                                                                           \
        int64_t bytes = 0, at = position ? *position : -1;                                                                        \
        struct plan *plan = plan_of_pack(memory, elements, datatype, packed, size, at, communicator, &bytes, &unknown);           \
        if (plan && dtc_unpack(plan->type, (const char *)packed + at, bytes, memory, elements, 0, NULL, NULL) == DTC_OK) {        \
            dtc_mpi_count(DTC_MPI_UNPACKED, bytes);                                                                               \
            *position += (KIND_##count)bytes;                                                                                      \
            return MPI_SUCCESS;                                                                                                    \
        }                                                                                                                          \
        int status = mpi.name(ARGUMENTS_UNPACK(ARGUMENT, count));                                                                 \
        if (unknown && status == MPI_SUCCESS) plan_make(datatype);                                                                \
        return status;                                                                                                             \
    }

#endif
