/* How the elements of a message come to go through staging memory, and what becomes of those that were received. */
#ifndef DTC_MPI_STAGE_H
#define DTC_MPI_STAGE_H

/* What is to be received: the MPI may know fewer bytes than it tells (`UNTOLD`). */
enum { SENT, RECEIVED, UNTOLD };

/* The same as stage(), for elements on a GPU. */
static __attribute__((noinline)) int stage_on_device(struct staged *staged, struct place place, const void *memory, int64_t elements,
                                                     MPI_Datatype datatype, int rank, MPI_Comm communicator, int way)
{
    struct span span;
    struct plan *plan = plan_now(datatype, communicator, &staged->refused);
    staged->bound = !takes_devices;
    if (staged->refused != MPI_SUCCESS) return 0;
    if (!span_of(&span, elements, datatype)) return refuse(staged, MPI_ERR_OTHER);
    enum form form = form_of(plan, &span, way == SENT ? SENDS : RECEIVES);
    if (form == PASSED || span.bytes == 0) return 0;
    struct moved moved = moved_of(form, plan, &span, (void *)memory, elements);
    struct dtc_mpi_block *block = take_for_message(place.device, moved.bytes, rank, communicator);
    if (!block) return refuse(staged, MPI_ERR_NO_MEM);
    stage_moved(staged, &moved);
    staged->transfer = transfer_of(memory, place, block);
    staged->block = block;
    staged->packed = block->memory;
    staged->given = form == PACKED ? block->memory : (void *)((uintptr_t)block->memory - (uintptr_t)span.low);
    staged->length = form == PACKED ? moved.bytes : elements;
    staged->datatype = form == PACKED ? MPI_PACKED : datatype;
    staged->filled = way != SENT && (form == AS_THEY_LIE || way == UNTOLD);
    return 1;
}

/* Where the elements of a message lie in a process that uses CUDA, and whether they go through staging memory for that. */
static __attribute__((noinline)) int stage_beside_cuda(struct staged *staged, const void *memory, int64_t elements, MPI_Datatype datatype, int rank,
                                                       MPI_Comm communicator, int way, int *on_device)
{
    MPI_Count true_lb = 0, true_extent;
    if (!is_ready()) return 0;
    const struct remembered *known = recall(datatype);
    *on_device = takes_devices && known->is != NOT_DECODED && !is_derived(known->plan);
    if (*on_device) return 0;
    if (known->plan) true_lb = known->plan->true_lb;
    else PMPI_Type_get_true_extent_x(datatype, &true_lb, &true_extent);
    struct place place = place_of((const void *)((uintptr_t)memory + (uintptr_t)true_lb));
    *on_device = 1;
    if (place.kind == DTC_MEMORY_DEVICE) return stage_on_device(staged, place, memory, elements, datatype, rank, communicator, way);
    struct plan *plan = memory ? known->plan : plan_now(datatype, communicator, &staged->refused);
    if (staged->refused != MPI_SUCCESS) return 0;
    if (may_be_several(memory, plan, place))
        return stage_on_device(staged, (struct place){DTC_MEMORY_UNKNOWN, -1}, memory, elements, datatype, rank, communicator, way);
    *on_device = 0;
    return 0;
}

/* Takes staging memory for a message; 0 if the MPI shall move it, or if it is refused. */
static int stage(struct staged *staged, const void *memory, int64_t elements, MPI_Datatype datatype, int rank, MPI_Comm communicator, int way)
{
    staged->plan = NULL;
    staged->refused = MPI_SUCCESS;
    staged->filled = staged->gap = staged->bound = 0;
    staged->untold = way == UNTOLD;
    if (elements <= 0 || rank == MPI_PROC_NULL || communicator == MPI_COMM_NULL || datatype == MPI_DATATYPE_NULL || is_aside()) return 0;
    struct place place = place_of(memory);
    if (__builtin_expect(place.device >= 0, 0)) {
        int on_device, goes = stage_beside_cuda(staged, memory, elements, datatype, rank, communicator, way, &on_device);
        if (on_device || goes || staged->refused != MPI_SUCCESS) return goes;
    }
    if (!memory || way == UNTOLD) return 0;
    struct plan *plan = plan_of_use(elements, datatype, limits.least, communicator, &staged->refused);
    if (!is_derived(plan) || (way == SENT && !plan->uniform)) return 0;
    if (__builtin_mul_overflow(elements, plan->size, &staged->bytes)) return 0;
    if (staged->bytes < plan->least || staged->bytes > LARGEST_MESSAGE) return 0;
    staged->block = dtc_mpi_staging_take(DTC_MPI_HOST, 0, staged->bytes);
    if (!staged->block) return 0;
    plan_retain(plan);
    staged->plan = plan;
    staged->memory = (void *)memory;
    staged->elements = elements;
    staged->transfer = transfer_of(memory, place, staged->block);
    staged->given = staged->packed = staged->block->memory;
    staged->length = staged->bytes;
    staged->datatype = MPI_PACKED;
    return 1;
}

/* Packs elements that are sent; 0 if that fails. */
static int pack_sent(const struct staged *staged)
{
    if (!pack_staged(staged)) return 0;
    dtc_mpi_count(DTC_MPI_SENT, staged->bytes);
    return 1;
}

/* Takes staging memory for elements that are sent; 0 if the MPI shall send them, or if they are refused. */
static int stage_sent(struct staged *staged, const void *memory, int64_t elements, MPI_Datatype datatype, int rank, MPI_Comm communicator)
{
    return stage(staged, memory, elements, datatype, rank, communicator, SENT);
}

/* The same, and packs them. */
static int stage_packed(struct staged *staged, const void *memory, int64_t elements, MPI_Datatype datatype, int rank, MPI_Comm communicator)
{
    if (!stage_sent(staged, memory, elements, datatype, rank, communicator)) return 0;
    return pack_sent(staged) || refuse(staged, MPI_ERR_OTHER);
}

/* Has the MPI receive staged bytes with a gap, if it needs one; 0 if there is no memory. */
static int gap_received(struct staged *staged)
{
#if DTC_MPI_OVERRUNS
    if (staged->datatype != MPI_PACKED || staged->bytes <= 1 || staged->block->kind == DTC_MEMORY_DEVICE) return 1;
    staged->gapped = gapped_take(staged->bytes);
    if (!staged->gapped) return refuse(staged, MPI_ERR_NO_MEM);
    staged->length = 1;
    staged->datatype = staged->gapped->datatype;
    staged->gap = 1;
#else
    (void)staged;
#endif
    return 1;
}

static void is_posted(struct staged *staged)
{
    (void)staged;
#if DTC_MPI_OVERRUNS
    if (staged->gapped) gapped_give(staged->gapped);
    staged->gapped = NULL;
#endif
}

/* Takes staging memory for elements that are received, RECEIVED or UNTOLD; 0 if the MPI shall receive them, or if they are refused. The
   caller hands the datatype back with is_posted when the MPI has it. */
static int stage_received_as(struct staged *staged, const void *memory, int64_t elements, MPI_Datatype datatype, int rank,
                             MPI_Comm communicator, int way)
{
    int goes = stage(staged, memory, elements, datatype, rank, communicator, way);
#if DTC_MPI_OVERRUNS
    staged->gapped = NULL;
#endif
    if (goes) goes = gap_received(staged);
    if (goes && staged->filled && !pack_staged(staged)) {
        is_posted(staged);
        goes = refuse(staged, MPI_ERR_OTHER);
    }
    return goes;
}

static int stage_received(struct staged *staged, const void *memory, int64_t elements, MPI_Datatype datatype, int rank,
                          MPI_Comm communicator)
{
    return stage_received_as(staged, memory, elements, datatype, rank, communicator, RECEIVED);
}

/* How many bytes were received, which may be less than was expected; they lie together from then on. */
static int64_t bytes_received(const struct staged *staged, const MPI_Status *status)
{
    int counted = 0, cancelled = 0;
    int64_t received = staged->bytes;
    if (!staged->filled) {
        PMPI_Test_cancelled(status, &cancelled);
        if (!cancelled) PMPI_Get_count(status, MPI_PACKED, &counted);
        received = counted;
    }
    unsigned char *last = (unsigned char *)staged->packed + staged->bytes - 1;
    if (GAP && staged->gap && received == staged->bytes) *last = last[GAP];
    return received;
}

/* Unpacks what was received. */
static int unpack_received(struct staged *staged, const MPI_Status *status)
{
    int64_t received = bytes_received(staged, status);
    if (received <= 0) return MPI_SUCCESS;
    dtc_mpi_count(DTC_MPI_RECEIVED, received);
    if (move_staged(staged, DTC_MPI_UNPACKS, received)) return MPI_SUCCESS;
    /* A GPU failed. The message is lost: the error handler decides. */
    return fail(MPI_ERR_OTHER);
}

/* After a blocking call that received. */
static int end_received(struct staged *staged, MPI_Status *status, int result)
{
    if (result == MPI_SUCCESS) result = unpack_received(staged, status);
    unstage(staged);
    return result;
}

#endif
