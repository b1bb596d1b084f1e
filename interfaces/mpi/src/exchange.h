/*
 * Collectives in which every pair of processes has datatypes of its own. All blocks that are sent are packed into one piece of staging
 * memory, and those received are unpacked from another. Either direction is staged by itself, as either side of a message is
 * (staged.h): the MPI moves these blocks in messages between two processes, and chooses how by bytes alone. (MPI 4.1, 6.8 and 8.6)
 */
#ifndef DTC_MPI_EXCHANGE_H
#define DTC_MPI_EXCHANGE_H

/* Elements for one process, or from it. */
struct block {
    /* Null if the datatype is predefined: its elements are copied. */
    struct plan *plan;
    unsigned char *memory;
    int64_t elements, bytes;
    /* Where its bytes lie in staging memory. */
    int64_t place;
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
};

/* One direction of a call. */
struct half {
    /* Zero if the MPI moves it. */
    int length;
    unsigned char *packed;
    /* Packed bytes, and all that staging memory was taken for. */
    int64_t bytes, taken;
    struct block *blocks;
    /* What the MPI is given, as wide as what the program gave. */
    void *counts, *places;
    MPI_Datatype *datatypes;
};

struct exchange {
    struct half out, in;
};

static int64_t given_number(const void *numbers, int wide, int at)
{
    return wide ? ((const int64_t *)numbers)[at] : ((const int *)numbers)[at];
}

static void give_number(void *numbers, int wide, int at, int64_t number)
{
    if (wide) ((int64_t *)numbers)[at] = number;
    else ((int *)numbers)[at] = (int)number;
}

/* Whether elements of a predefined datatype lie without gaps. Those of pairs do not. */
static int is_dense(MPI_Datatype datatype, int64_t *size)
{
    MPI_Count bytes = 0, lb = 0, extent = 0;
    int known = PMPI_Type_size_x(datatype, &bytes) == MPI_SUCCESS && PMPI_Type_get_extent_x(datatype, &lb, &extent) == MPI_SUCCESS;
    *size = bytes;
    return known && lb == 0 && extent == bytes;
}

/* What is known of a block; 0 if the MPI shall move the direction. */
static int block_of(struct block *block, const struct given *given, int at, int sends, int *unknown)
{
    int64_t size;
    MPI_Datatype datatype = given->datatypes[at];
    block->elements = given_number(given->counts, given->wide_counts, at);
    block->memory = (unsigned char *)given->memory + given_number(given->places, given->wide_places, at);
    block->plan = plan_of_any(datatype, unknown);
    if (block->elements < 0 || *unknown || datatype == MPI_DATATYPE_NULL) return 0;
    if (block->plan) {
        if (!block->plan->type || (sends && !block->plan->uniform)) return 0;
        size = block->plan->size;
    } else if (!is_dense(datatype, &size)) {
        return 0;
    }
    return !__builtin_mul_overflow(block->elements, size, &block->bytes) && block->bytes <= LARGEST_MESSAGE;
}

static void half_drop(struct half *half)
{
    for (int at = 0; at < half->length; at++)
        if (half->blocks[at].plan) plan_release(half->blocks[at].plan);
    if (half->packed) dtc_mpi_staging_give(half->packed, half->taken);
    free(half->blocks);
    *half = (struct half){0};
}

/* What the MPI is given for a block; 0 if there is no memory. */
static int give_block(struct half *half, const struct given *given, int at, int sends)
{
    struct block *block = &half->blocks[at];
    int64_t count = block->bytes;
    half->datatypes[at] = MPI_PACKED;
#if DTC_MPI_OVERRUNS
    if (!sends && count > 1) {
        int again = at > 0 && block[-1].bytes == count;
        block->gapped = again ? NULL : gapped_take(count);
        if (!again && !block->gapped) return 0;
        half->datatypes[at] = again ? half->datatypes[at - 1] : block->gapped->datatype;
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

/* Stages a direction, unless the MPI shall move it. */
static void half_stage(struct half *half, const struct given *given, int sends, int *unknown)
{
    size_t each = sizeof *half->blocks + 2 * sizeof(int64_t) + sizeof *half->datatypes;
    int64_t gained = 0;
    *half = (struct half){0};
    if (given->length <= 0 || !given->counts || !given->places || !given->datatypes) return;
    half->blocks = (struct block *)calloc((size_t)given->length, each);
    if (!half->blocks) return;
    half->counts = half->blocks + given->length;
    half->places = (int64_t *)half->counts + given->length;
    half->datatypes = (MPI_Datatype *)((int64_t *)half->places + given->length);
    for (int at = 0; at < given->length; at++) {
        struct block *block = &half->blocks[at];
        if (!block_of(block, given, at, sends, unknown) || half->taken > LARGEST_MESSAGE - block->bytes) {
            half_drop(half);
            return;
        }
        block->place = half->taken;
        half->bytes += block->bytes;
        half->taken += block->bytes + GAP;
        if (block->plan && !block->plan->whole && block->plan->piece <= limits.piece) gained += block->bytes;
    }
    /* Blocks that the MPI moves as fast are copied once more. */
    int pays = gained >= limits.bytes && limits.share * gained >= half->bytes;
    half->packed = pays ? (unsigned char *)dtc_mpi_staging_take(half->taken) : NULL;
    int given_all = !!half->packed;
    for (; given_all && half->length < given->length; half->length++) {
        given_all = give_block(half, given, half->length, sends);
        if (half->blocks[half->length].plan) plan_retain(half->blocks[half->length].plan);
    }
    if (given_all) return;
    half_posted(half);
    half_drop(half);
}

/* Packs all blocks; 0 if that fails. */
static int half_pack(const struct half *half)
{
    for (int at = 0; at < half->length; at++) {
        const struct block *block = &half->blocks[at];
        unsigned char *packed = half->packed + block->place;
        if (!block->plan) memcpy(packed, block->memory, (size_t)block->bytes);
        else if (block->bytes > 0 &&
                 dtc_pack(block->plan->type, block->memory, block->elements, 0, packed, block->bytes, NULL, NULL) != DTC_OK)
            return 0;
    }
    if (half->length) dtc_mpi_count(DTC_MPI_SENT, half->bytes);
    return 1;
}

/* Unpacks all blocks; 0 if that fails. */
static int half_unpack(const struct half *half)
{
    for (int at = 0; at < half->length; at++) {
        const struct block *block = &half->blocks[at];
        unsigned char *packed = half->packed + block->place;
        if (GAP && block->bytes > 1) packed[block->bytes - 1] = packed[block->bytes];
        if (!block->plan) memcpy(block->memory, packed, (size_t)block->bytes);
        else if (block->bytes > 0 &&
                 dtc_unpack(block->plan->type, packed, block->bytes, block->memory, block->elements, 0, NULL, NULL) != DTC_OK)
            return 0;
    }
    if (half->length) dtc_mpi_count(DTC_MPI_RECEIVED, half->bytes);
    return 1;
}

static void exchange_drop(struct exchange *exchange)
{
    half_drop(&exchange->out);
    half_drop(&exchange->in);
}

/* Stages the directions of a call, and puts what the MPI is given into the arguments; 0 if the MPI shall do it all. */
static int exchange_stage(struct exchange *exchange, struct given *out, struct given *in, int *unknown)
{
    half_stage(&exchange->out, out, 1, unknown);
    half_stage(&exchange->in, in, 0, unknown);
    if (!half_pack(&exchange->out)) half_drop(&exchange->out);
    struct given *both[] = {out, in};
    const struct half *halves[] = {&exchange->out, &exchange->in};
    for (int at = 0; at < 2; at++) {
        if (!halves[at]->length) continue;
        both[at]->memory = halves[at]->packed;
        both[at]->counts = halves[at]->counts;
        both[at]->places = halves[at]->places;
        both[at]->datatypes = halves[at]->datatypes;
    }
    return exchange->out.length || exchange->in.length;
}

/* Unpacks what was received. */
static int exchange_unpack(const struct exchange *exchange)
{
    if (half_unpack(&exchange->in)) return MPI_SUCCESS;
    PMPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_OTHER);
    return MPI_ERR_OTHER;
}

/* Decodes the datatypes that were unknown when the MPI was given the call. */
static int learn_all(int result, int unknown, const MPI_Datatype *out, int out_length, const MPI_Datatype *in, int in_length)
{
    if (!unknown || result != MPI_SUCCESS) return result;
    for (int at = 0; at < out_length; at++) plan_make(out[at]);
    for (int at = 0; at < in_length; at++) plan_make(in[at]);
    return result;
}

/* The numbers of processes that a collective sends to and receives from; 0 if that is unknown. */
static int exchange_degrees(MPI_Comm communicator, int neighbors, int *out, int *in)
{
    int inter = 1, topology = MPI_UNDEFINED, rank = 0, weighted = 0;
    if (communicator == MPI_COMM_NULL || PMPI_Comm_test_inter(communicator, &inter) != MPI_SUCCESS || inter) return 0;
    if (!neighbors) return PMPI_Comm_size(communicator, out) == MPI_SUCCESS && (*in = *out, 1);
    if (PMPI_Topo_test(communicator, &topology) != MPI_SUCCESS) return 0;
    if (topology == MPI_CART) return PMPI_Cartdim_get(communicator, out) == MPI_SUCCESS && (*in = *out *= 2, 1);
    if (topology == MPI_DIST_GRAPH) return PMPI_Dist_graph_neighbors_count(communicator, in, out, &weighted) == MPI_SUCCESS;
    if (topology != MPI_GRAPH || PMPI_Comm_rank(communicator, &rank) != MPI_SUCCESS) return 0;
    return PMPI_Graph_neighbors_count(communicator, rank, out) == MPI_SUCCESS && (*in = *out, 1);
}

/* What a call gives; displacements are wide in the large-count forms, and of neighbors always. */
#define GIVEN(count, neighbors)                                                                                                  \
    enum { WIDE = sizeof(KIND_##count) == sizeof(int64_t) };                                                                      \
    struct given out = {0, WIDE, WIDE || neighbors, (void *)sent, sent_counts, sent_places, sent_datatypes};                      \
    struct given in = {0, WIDE, WIDE || neighbors, received, received_counts, received_places, received_datatypes};               \
    int unknown = 0;                                                                                                               \
    int staged = is_ready() && sent != MPI_IN_PLACE && exchange_degrees(communicator, neighbors, &out.length, &in.length)

/* What the MPI is given instead. */
#define GIVEN_ARGUMENTS                                                                                                          \
    out.memory, out.counts, out.places, out.datatypes, in.memory, in.counts, in.places, in.datatypes, communicator

#define LEARN_ALL(result) learn_all(result, unknown, sent_datatypes, out.length, received_datatypes, in.length)

#define WRAP_EXCHANGE(name, count, shape, neighbors)                                                                             \
    static int wrap_##name(ARGUMENTS_##shape(PARAMETER, count))                                                                   \
    {                                                                                                                              \
        struct exchange exchange;                                                                                                  \
        GIVEN(count, neighbors);                                                                                                   \
        if (!staged || !exchange_stage(&exchange, &out, &in, &unknown))                                                           \
            return LEARN_ALL(mpi.name(ARGUMENTS_##shape(ARGUMENT, count)));                                                       \
        int result = LEARN_ALL(mpi.name(GIVEN_ARGUMENTS));                                                                        \
        half_posted(&exchange.in);                                                                                                 \
        if (result == MPI_SUCCESS) result = exchange_unpack(&exchange);                                                           \
        exchange_drop(&exchange);                                                                                                  \
        return result;                                                                                                             \
    }

#define WRAP_ALLTOALLW(name, count) WRAP_EXCHANGE(name, count, ALLTOALLW, 0)
#define WRAP_NEIGHBOR_ALLTOALLW(name, count) WRAP_EXCHANGE(name, count, NEIGHBOR_ALLTOALLW, 1)

#endif
