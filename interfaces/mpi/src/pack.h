/* MPI_Pack and MPI_Unpack, whose packed data are the bytes of the type map in MPICH, Open MPI and dtc. (MPI 4.1, 5.2) */
#ifndef DTC_MPI_PACK_H
#define DTC_MPI_PACK_H

/* The plan of a call that dtc does: `bytes` fit into the packed data behind `position`. Null if the MPI does it. */
static struct plan *plan_of_pack(const void *memory, int64_t elements, MPI_Datatype datatype, const void *packed, int64_t size,
                                 int64_t position, MPI_Comm communicator, int64_t *bytes, int *unknown)
{
    if (!is_ready() || !memory || !packed || elements <= 0 || position < 0 || communicator == MPI_COMM_NULL) return NULL;
    struct plan *plan = plan_of_any(datatype, unknown);
    if (!is_derived(plan) || plan->piece > limits.packed_piece || __builtin_mul_overflow(elements, plan->size, bytes)) return NULL;
    return *bytes >= limits.packed_bytes && position <= size && *bytes <= size - position ? plan : NULL;
}

/* Packs or unpacks elements of such a call; 0 if that fails. */
static int move_on_host(enum dtc_mpi_direction direction, const struct plan *plan, const void *memory, int64_t elements, const void *packed,
                        int64_t bytes)
{
    struct dtc_mpi_move move = {
        .direction = direction,
        .type = plan->type,
        .memory = (void *)memory,
        .elements = elements,
        .packed = (void *)packed,
        .bytes = bytes,
    };
    if (!dtc_mpi_move(&move)) return 0;
    dtc_mpi_count(direction == DTC_MPI_PACKS ? DTC_MPI_PACKED : DTC_MPI_UNPACKED, bytes);
    return 1;
}

/* Either end of a call. */
struct pack_ends {
    void *memory, *packed;
    struct place memory_place, packed_place;
};

/* Whether an end lies on a GPU, and where both lie. Packed data are asked about only where the process uses CUDA. */
static inline int is_on_device(struct pack_ends *ends, const void *memory, MPI_Datatype datatype, const void *packed, int64_t at,
                               int *unknown)
{
    struct plan *plan = plan_of_any(datatype, unknown);
    MPI_Count true_lb = plan ? plan->true_lb : 0, true_extent;
    if (__builtin_expect(*unknown, 0)) PMPI_Type_get_true_extent_x(datatype, &true_lb, &true_extent);
    ends->memory = (void *)memory;
    ends->packed = (char *)packed + at;
    ends->memory_place = ends->packed_place = place_of((const void *)((uintptr_t)memory + (uintptr_t)true_lb));
    if (__builtin_expect(ends->memory_place.device < 0, 1)) return 0;
    ends->packed_place = place_of(ends->packed);
    return ends->memory_place.kind == DTC_MEMORY_DEVICE || ends->packed_place.kind == DTC_MEMORY_DEVICE;
}

/* Packs or unpacks where an end lies on a GPU; 0 if the MPI shall do it. Contiguous elements are copied, for a CUDA-aware MPI too: Open MPI 5.0
   asks about the elements alone, and ends by a signal where the packed data lie in other memory. */
static __attribute__((noinline)) int pack_on_device(int unpacks, const struct pack_ends *ends, int64_t elements, MPI_Datatype datatype,
                                                    int64_t room, MPI_Comm communicator, int64_t *bytes, int *unknown, int *result)
{
    struct span span;
    *result = MPI_SUCCESS;
    struct plan *plan = plan_now(datatype, communicator, unknown, result);
    if (*result != MPI_SUCCESS) return 1;
    int known = span_of(&span, elements, datatype), contiguous = known && (!plan || plan->whole) && span.length == span.bytes;
    int decoded = contiguous || (plan && plan->type);
    if (takes_devices && (!decoded || span.bytes > room)) return 0;
    *bytes = span.bytes;
    if (!known || !decoded || span.bytes > room) {
        *result = fail(known && decoded ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER);
        return 1;
    }
    struct moved moved = moved_of(PACKED, plan, &span, ends->memory, elements);
    dtc_transfer transfer = DTC_TRANSFER_INIT;
    if (ends->memory) transfer.memory = ends->memory_place.kind, transfer.memory_device = ends->memory_place.device;
    transfer.packed = ends->packed_place.kind, transfer.packed_device = ends->packed_place.device;
    struct dtc_mpi_move move = {
        .direction = unpacks ? DTC_MPI_UNPACKS : DTC_MPI_PACKS,
        .type = moved.plan->type,
        .memory = moved.memory,
        .elements = moved.elements,
        .packed = ends->packed,
        .bytes = moved.bytes,
        .transfer = &transfer,
    };
    if (span.bytes > 0 && !dtc_mpi_move(&move)) *result = fail(MPI_ERR_OTHER);
    else dtc_mpi_count(unpacks ? DTC_MPI_UNPACKED : DTC_MPI_PACKED, span.bytes);
    return 1;
}

/* Whether the arguments are those of a call that moves bytes. */
static inline int moves_bytes(int64_t elements, MPI_Datatype datatype, int64_t size, int64_t at, MPI_Comm communicator)
{
    return is_ready() && elements > 0 && at >= 0 && at <= size && datatype != MPI_DATATYPE_NULL && communicator != MPI_COMM_NULL;
}

/* Does a call on a GPU. */
#define PACK_ON_DEVICE(unpacks)                                                                                                  \
    struct pack_ends ends;                                                                                                         \
    int done = MPI_SUCCESS;                                                                                                        \
    if (moves_bytes(elements, datatype, size, at, communicator) && is_on_device(&ends, memory, datatype, packed, at, &unknown) && \
        pack_on_device(unpacks, &ends, elements, datatype, size - at, communicator, &bytes, &unknown, &done)) {                   \
        if (done == MPI_SUCCESS) *position += bytes;                                                                              \
        return done;                                                                                                               \
    }

#define WRAP_PACK(name, count)                                                                                                    \
    static int wrap_##name(ARGUMENTS_PACK(PARAMETER, count))                                                                      \
    {                                                                                                                              \
        int unknown = 0;                                                                                                           \
        int64_t bytes = 0, at = position ? *position : -1;                                                                        \
        PACK_ON_DEVICE(0);                                                                                                         \
        struct plan *plan = plan_of_pack(memory, elements, datatype, packed, size, at, communicator, &bytes, &unknown);           \
        if (plan && move_on_host(DTC_MPI_PACKS, plan, memory, elements, (char *)packed + at, bytes)) {                            \
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
        PACK_ON_DEVICE(1);                                                                                                         \
        struct plan *plan = plan_of_pack(memory, elements, datatype, packed, size, at, communicator, &bytes, &unknown);           \
        if (plan && move_on_host(DTC_MPI_UNPACKS, plan, memory, elements, (const char *)packed + at, bytes)) {                    \
            *position += (KIND_##count)bytes;                                                                                      \
            return MPI_SUCCESS;                                                                                                    \
        }                                                                                                                          \
        int status = mpi.name(ARGUMENTS_UNPACK(ARGUMENT, count));                                                                 \
        if (unknown && status == MPI_SUCCESS) plan_make(datatype);                                                                \
        return status;                                                                                                             \
    }

#endif
