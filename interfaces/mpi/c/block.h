/*
 * The blocks of a collective in which every pair of processes has datatypes of its own, and how they are moved between elements and
 * staging memory. Those on one GPU are moved by one launch.
 */
#ifndef DTC_MPI_BLOCK_H
#define DTC_MPI_BLOCK_H

/* Elements for one process, or from it. */
struct block {
    /* Null if the datatype is predefined and on the host: its elements are copied. */
    struct plan *plan;
    unsigned char *memory;
    int64_t elements, bytes;
    /* Where its bytes lie in staging memory. */
    int64_t place;
    /* Where its elements lie. */
    struct place where;
    /* Whether its last byte is received one place further on. */
    char gap;
#if DTC_MPI_OVERRUNS
    /* Until the MPI has the datatype; null if that is the same as for the block before. */
    struct gapped *gapped;
#endif
};

/* The arguments of one direction, as the program gives them. Counts and displacements are wide in the large-count forms. */
struct given {
    int length, wide_counts, wide_places;
    void *memory;
    const void *counts, *places;
    const MPI_Datatype *datatypes;
    /* A bit for each block whose other process is none, at the edge of a grid: those stay as they are. */
    uint64_t absent;
};

/* One direction of a call. */
struct half {
    /* Zero if the MPI moves it. */
    int length;
    /* Blocks from the first on whose plans are held. */
    int planned;
    struct dtc_mpi_block *staging;
    /* Packed bytes, and all that staging memory was taken for. */
    int64_t bytes, taken;
    struct block *blocks;
    /* Whether some of the elements lie on a GPU, and whether they are received over. */
    int on_device, filled;
    /* The error of a direction that could not be staged, and that the MPI must not be given; the error handler was called. */
    int refused;
    /* What the MPI is given, as wide as what the program gave. */
    void *counts, *places;
    MPI_Datatype *datatypes;
};

static int64_t given_number(const void *numbers, int wide, int at)
{
    return wide ? ((const int64_t *)numbers)[at] : ((const int *)numbers)[at];
}

static int64_t given_elements(const struct given *given, int at)
{
    int is_absent = at < 64 && given->absent >> at & 1;
    return is_absent ? 0 : given_number(given->counts, given->wide_counts, at);
}

static void give_number(void *numbers, int wide, int at, int64_t number)
{
    if (wide) ((int64_t *)numbers)[at] = number;
    else ((int *)numbers)[at] = (int)number;
}

/* What the MPI is given for a block; 0 if there is no memory. */
static int give_block(struct half *half, const struct given *given, int at, int sends)
{
    struct block *block = &half->blocks[at];
    int64_t count = block->bytes;
    half->datatypes[at] = MPI_PACKED;
#if DTC_MPI_OVERRUNS
    if (!sends && count > 1 && half->staging->kind != DTC_MEMORY_DEVICE) {
        int again = at > 0 && block[-1].gap && block[-1].bytes == count;
        block->gapped = again ? NULL : gapped_take(count);
        if (!again && !block->gapped) return 0;
        half->datatypes[at] = again ? half->datatypes[at - 1] : block->gapped->datatype;
        block->gap = 1;
        count = 1;
    }
#endif
    (void)sends;
    give_number(half->counts, given->wide_counts, at, count);
    give_number(half->places, given->wide_places, at, block->place);
    return 1;
}

/* Once the MPI has the datatypes. */
static void half_posted(struct half *half)
{
    (void)half;
#if DTC_MPI_OVERRUNS
    for (int at = 0; at < half->length; at++) {
        if (half->blocks[at].gapped) gapped_give(half->blocks[at].gapped);
        half->blocks[at].gapped = NULL;
    }
#endif
}

static void half_drop(struct half *half)
{
    half_posted(half);
    for (int at = 0; at < half->planned; at++)
        if (half->blocks[at].plan) plan_release(half->blocks[at].plan);
    if (half->staging) dtc_mpi_staging_give(half->staging);
    free(half->blocks);
    *half = (struct half){.refused = half->refused};
}

static unsigned char *packed_of(const struct half *half, const struct block *block)
{
    return (unsigned char *)half->staging->memory + block->place;
}

/* Moves one block; 0 if that fails. */
static int move_block(const struct half *half, const struct block *block, int unpacks)
{
    unsigned char *packed = packed_of(half, block);
    if (block->bytes == 0) return 1;
    if (!block->plan) {
        memcpy(unpacks ? block->memory : packed, unpacks ? packed : block->memory, (size_t)block->bytes);
        return 1;
    }
    dtc_transfer transfer = transfer_of(block->memory, block->where, half->staging);
    return dtc_mpi_move(&(struct dtc_mpi_move){
        .direction = unpacks ? DTC_MPI_UNPACKS : DTC_MPI_PACKS,
        .type = block->plan->type,
        .memory = block->memory,
        .elements = block->elements,
        .packed = packed,
        .bytes = block->bytes,
        .transfer = &transfer,
    });
}

/* Whether a GPU moves a block in one launch with others: it reaches both ends. */
static int is_launched(const struct half *half, const struct block *block, int32_t device)
{
    int reached = half->staging->kind == DTC_MEMORY_PINNED || (half->staging->kind == DTC_MEMORY_DEVICE && half->staging->device == device);
    return reached && block->bytes > 0 && block->where.kind == DTC_MEMORY_DEVICE && block->where.device == device;
}

/* Moves the blocks of a GPU, from the first of them on; 0 if that fails. */
static int launch_blocks(const struct half *half, int first, int unpacks)
{
    int32_t device = half->blocks[first].where.device;
    int launched = 0;
    dtc_batch_call *calls = (dtc_batch_call *)calloc((size_t)(half->length - first), sizeof *calls);
    if (!calls) return 0;
    for (int at = first; at < half->length; at++) {
        const struct block *block = &half->blocks[at];
        if (!is_launched(half, block, device)) continue;
        calls[launched++] = (dtc_batch_call){
            .type = block->plan->type,
            .memory = block->memory,
            .packed = packed_of(half, block),
            .count = block->elements,
            .max = block->bytes,
            .direction = unpacks ? DTC_DIRECTION_UNPACK : DTC_DIRECTION_PACK,
        };
    }
    int done = launched == 1 ? move_block(half, &half->blocks[first], unpacks)
                             : dtc_mpi_launch(device, calls, launched, half->staging->kind);
    free(calls);
    return done;
}

/* Moves all blocks; 0 if that fails. */
static int half_move(const struct half *half, int unpacks)
{
    /* The GPUs whose blocks have been moved. */
    uint32_t launched = 0;
    for (int at = 0; at < half->length; at++) {
        const struct block *block = &half->blocks[at];
        int32_t device = block->where.device;
        if (!half->on_device || device < 0 || device >= 32 || !is_launched(half, block, device)) {
            if (!move_block(half, block, unpacks)) return 0;
        } else if (!(launched & 1u << device)) {
            if (!launch_blocks(half, at, unpacks)) return 0;
            launched |= 1u << device;
        }
    }
    return 1;
}

/* Packs all blocks; 0 if that fails. */
static int half_pack(const struct half *half)
{
    if (!half_move(half, 0)) return 0;
    if (half->length) dtc_mpi_count(DTC_MPI_SENT, half->bytes);
    return 1;
}

/* Puts what the elements are where others are received over them; 0 if that fails. */
static int half_fill(const struct half *half)
{
    if (!half_move(half, 0)) return 0;
    for (int at = 0; GAP && at < half->length; at++) {
        const struct block *block = &half->blocks[at];
        unsigned char *last = packed_of(half, block) + block->bytes - 1;
        if (block->gap) last[GAP] = *last;
    }
    return 1;
}

/* Unpacks all blocks; 0 if that fails. */
static int half_unpack(const struct half *half)
{
    for (int at = 0; GAP && at < half->length; at++) {
        const struct block *block = &half->blocks[at];
        unsigned char *last = packed_of(half, block) + block->bytes - 1;
        if (block->gap) *last = last[GAP];
    }
    if (!half_move(half, 1)) return 0;
    if (half->length) dtc_mpi_count(DTC_MPI_RECEIVED, half->bytes);
    return 1;
}

/* A direction with elements on a GPU, and what is asked of it. */
struct device_half {
    const struct given *given;
    /* The GPU of the first of them. */
    int32_t device;
    /* SENDS, RECEIVES, or both in place; and whether the MPI is given memory of the host in any case. */
    int direction, on_host;
    MPI_Comm communicator;
};

/* Places in staging memory, for elements that the MPI takes for those of the program's datatype. */
enum { BLOCK_ALIGNMENT = 64 };

/* Plans a block of such a direction, and holds its plan: how it goes through staging memory, and what the MPI is given. 0 if the MPI shall move
   the direction, or if it is refused. */
static int device_block(struct half *half, const struct device_half *asked, int at, enum form *form, struct span *span)
{
    const struct given *given = asked->given;
    struct block *block = &half->blocks[at];
    MPI_Datatype datatype = given->datatypes[at];
    int64_t elements = given_elements(given, at);
    unsigned char *memory = (unsigned char *)((uintptr_t)given->memory + (uintptr_t)given_number(given->places, given->wide_places, at));
    *form = PACKED;
    if (elements == 0) return 1;
    if (elements < 0 || datatype == MPI_DATATYPE_NULL) return 0;
    struct plan *plan = plan_now(datatype, asked->communicator, &half->refused);
    if (half->refused != MPI_SUCCESS || !span_of(span, elements, datatype)) return 0;
    if (span->bytes == 0) return 1;
    block->where = place_of((const void *)((uintptr_t)memory + (uintptr_t)span->low));
    *form = form_of(plan, span, asked->direction);
    /* A CUDA-aware MPI is given all blocks in staging memory, or none. */
    int contiguous = (!plan || plan->whole) && span->length == span->bytes;
    if (*form == PASSED && contiguous && span->bytes <= INT32_MAX) *form = PACKED;
    if (*form == PASSED) return 0;
    struct moved moved = moved_of(*form, plan, span, memory, elements);
    *block = (struct block){.plan = moved.plan, .memory = moved.memory, .elements = moved.elements, .bytes = moved.bytes,
                            .where = block->where, .place = half->taken};
    plan_retain(block->plan);
    int64_t end = block->place + block->bytes + GAP + BLOCK_ALIGNMENT - 1;
    half->taken = end / BLOCK_ALIGNMENT * BLOCK_ALIGNMENT;
    half->bytes += span->bytes;
    half->filled = half->filled || (asked->direction & RECEIVES && (asked->direction & SENDS || *form == AS_THEY_LIE));
    return 1;
}

/* Gives the MPI a planned block; 0 if there is no memory. */
static int give_device_block(struct half *half, const struct device_half *asked, int at, enum form form, const struct span *span)
{
    const struct given *given = asked->given;
    if (form == PACKED) return give_block(half, given, at, !(asked->direction & RECEIVES));
    half->datatypes[at] = given->datatypes[at];
    give_number(half->counts, given->wide_counts, at, given_elements(given, at));
    give_number(half->places, given->wide_places, at, half->blocks[at].place - span->low);
    return 1;
}

/* Stages such a direction; leaves it to a CUDA-aware MPI if it may take it as it is. */
static __attribute__((noinline)) void half_stage_on_device(struct half *half, const struct device_half *asked)
{
    const struct given *given = asked->given;
    int length = given->length, planned = 1, gains = !takes_devices || asked->on_host;
    enum form *forms = (enum form *)calloc((size_t)length, sizeof *forms);
    struct span *spans = (struct span *)calloc((size_t)length, sizeof *spans);
    for (int at = 0; forms && spans && planned && at < length; at++) {
        planned = device_block(half, asked, at, &forms[at], &spans[at]);
        half->planned = at + 1;
        struct block *block = &half->blocks[at];
        gains = gains || (planned && block->where.kind == DTC_MEMORY_DEVICE && block->plan != byte_plan);
        int64_t place = block->place + block->bytes;
        int64_t displacement = block->place - spans[at].low;
        planned = planned && (given->wide_places || (place <= INT32_MAX && displacement >= INT32_MIN && displacement <= INT32_MAX));
    }
    half->on_device = 1;
    int64_t taken = half->taken > 0 ? half->taken : 1;
    if (forms && spans && planned && gains)
        half->staging = asked->on_host ? dtc_mpi_staging_take(DTC_MPI_PINNED, asked->device, taken) : take_for_device(asked->device, taken);
    int given_all = !!half->staging;
    for (; given_all && half->length < length; half->length++) {
        int at = half->length;
        given_all = give_device_block(half, asked, at, forms[at], &spans[at]);
    }
    free(forms);
    free(spans);
    if (given_all) return;
    if (!takes_devices && half->refused == MPI_SUCCESS) half->refused = fail(MPI_ERR_OTHER);
    half_drop(half);
}

#endif
