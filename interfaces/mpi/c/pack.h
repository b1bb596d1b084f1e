/* MPI_Pack and MPI_Unpack, whose packed data are the bytes of the type map in MPICH, Open MPI and dtc. (MPI 4.1, 5.2) */
#ifndef DTC_MPI_PACK_H
#define DTC_MPI_PACK_H

/* A call: elements, the packed data behind its position, and how many bytes these have room for or hold. */
struct packing {
    enum dtc_mpi_direction direction;
    void *memory;
    int64_t elements;
    MPI_Datatype datatype;
    void *packed;
    int64_t room;
    MPI_Comm communicator;
};

/* The plan of a call that dtc does: `bytes` fit into the packed data behind `position`. Null if the MPI does it, or if it is refused. */
static struct plan *plan_of_pack(const struct packing *packing, int64_t *bytes, int *refused)
{
    if (!packing->memory || !packing->packed) return NULL;
    struct plan *plan = plan_of_use(packing->elements, packing->datatype, limits.packed_bytes, packing->communicator, refused);
    if (!is_derived(plan) || plan->piece > limits.packed_piece || __builtin_mul_overflow(packing->elements, plan->size, bytes)) return NULL;
    return *bytes >= limits.packed_bytes && *bytes <= packing->room ? plan : NULL;
}

/* Where both ends of a call lie in a process that uses CUDA. */
struct pack_ends {
    struct place memory, packed;
};

static int is_on_device(const struct packing *packing, struct pack_ends *ends)
{
    MPI_Count true_lb = 0, true_extent;
    const struct remembered *known = recall(packing->datatype);
    if (known->plan) true_lb = known->plan->true_lb;
    else PMPI_Type_get_true_extent_x(packing->datatype, &true_lb, &true_extent);
    ends->memory = place_of((const void *)((uintptr_t)packing->memory + (uintptr_t)true_lb));
    ends->packed = place_of(packing->packed);
    return ends->memory.kind == DTC_MEMORY_DEVICE || ends->packed.kind == DTC_MEMORY_DEVICE;
}

/* Packs or unpacks elements; 0 if that fails. */
static int move_packing(const struct packing *packing, const struct moved *moved, const dtc_transfer *transfer)
{
    struct dtc_mpi_move move = {
        .direction = packing->direction,
        .type = moved->plan->type,
        .memory = moved->memory,
        .elements = moved->elements,
        .packed = packing->packed,
        .bytes = moved->bytes,
        .transfer = transfer,
    };
    if (moved->bytes > 0 && !dtc_mpi_move(&move)) return 0;
    dtc_mpi_count(packing->direction == DTC_MPI_PACKS ? DTC_MPI_PACKED : DTC_MPI_UNPACKED, moved->bytes);
    return 1;
}

/* Does a call with an end on a GPU; 0 if the MPI shall do it. Contiguous elements are copied, for a CUDA-aware MPI too: Open MPI 5.0
   asks about the elements alone, and ends by a signal where the packed data lie in other memory. */
static __attribute__((noinline)) int pack_on_device(const struct packing *packing, const struct pack_ends *ends, int64_t *bytes, int *result)
{
    struct span span;
    struct plan *plan = plan_now(packing->datatype, packing->communicator, result);
    if (*result != MPI_SUCCESS) return 1;
    int known = span_of(&span, packing->elements, packing->datatype), decoded = known && is_decoded(plan, &span);
    if (takes_devices && (!decoded || span.bytes > packing->room)) return 0;
    if (!decoded || span.bytes > packing->room) {
        *result = fail(decoded ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER);
        return 1;
    }
    *bytes = span.bytes;
    struct moved moved = moved_of(PACKED, plan, &span, packing->memory, packing->elements);
    dtc_transfer transfer = DTC_TRANSFER_INIT;
    if (packing->memory) transfer.memory = ends->memory.kind, transfer.memory_device = ends->memory.device;
    transfer.packed = ends->packed.kind, transfer.packed_device = ends->packed.device;
    if (!move_packing(packing, &moved, &transfer)) *result = fail(MPI_ERR_OTHER);
    return 1;
}

/* Does a call, and sets its bytes and its code; 0 if the MPI shall do it. */
static int pack(const struct packing *packing, int64_t *bytes, int *result)
{
    struct pack_ends ends;
    *result = MPI_SUCCESS;
    if (packing->elements <= 0 || packing->datatype == MPI_DATATYPE_NULL || packing->communicator == MPI_COMM_NULL || is_aside()) return 0;
    if (__builtin_expect(place_of(packing->memory).device >= 0, 0)) {
        int on_device = is_ready() && is_on_device(packing, &ends);
        if (on_device) return pack_on_device(packing, &ends, bytes, result);
    }
    struct plan *plan = plan_of_pack(packing, bytes, result);
    if (*result != MPI_SUCCESS) return 1;
    return plan && move_packing(packing, &(struct moved){plan, packing->memory, packing->elements, *bytes}, NULL);
}

#define WRAP_PACK(name, count)                                                                                                    \
    static int wrap_##name(ARGUMENTS_PACK(PARAMETER, count))                                                                      \
    {                                                                                                                             \
        int result;                                                                                                               \
        int64_t bytes = 0, at = position ? *position : -1;                                                                        \
        struct packing packing = {DTC_MPI_PACKS, (void *)memory, elements, datatype, packed ? (char *)packed + at : NULL, size - at, communicator};\
        if (at < 0 || at > size || !pack(&packing, &bytes, &result)) return mpi.name(ARGUMENTS_PACK(ARGUMENT, count));            \
        if (result == MPI_SUCCESS) *position += (KIND_##count)bytes;                                                              \
        return result;                                                                                                            \
    }

#define WRAP_UNPACK(name, count)                                                                                                  \
    static int wrap_##name(ARGUMENTS_UNPACK(PARAMETER, count))                                                                    \
    {                                                                                                                             \
        int result;                                                                                                               \
        int64_t bytes = 0, at = position ? *position : -1;                                                                        \
        struct packing packing = {DTC_MPI_UNPACKS, (void *)memory, elements, datatype, packed ? (char *)packed + at : NULL, size - at, communicator};\
        if (at < 0 || at > size || !pack(&packing, &bytes, &result)) return mpi.name(ARGUMENTS_UNPACK(ARGUMENT, count));          \
        if (result == MPI_SUCCESS) *position += (KIND_##count)bytes;                                                              \
        return result;                                                                                                            \
    }

#endif
