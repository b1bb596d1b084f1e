/*
 * Collectives in which every pair of processes has datatypes of its own. All blocks that are sent are packed into one piece of staging
 * memory, and those received are unpacked from another. Either direction is staged by itself, as either side of a message is
 * (staged.h): the MPI moves these blocks in messages between two processes, and chooses how by bytes alone. (MPI 4.1, 6.8 and 8.6)
 */
#ifndef DTC_MPI_EXCHANGE_H
#define DTC_MPI_EXCHANGE_H

struct exchange {
    struct half out, in;
};

/* Whether elements of a predefined datatype lie without gaps. Those of pairs do not. */
static int is_dense(MPI_Datatype datatype, int64_t *size)
{
    MPI_Count bytes = 0, lb = 0, extent = 0;
    int known = PMPI_Type_size_x(datatype, &bytes) == MPI_SUCCESS && PMPI_Type_get_extent_x(datatype, &lb, &extent) == MPI_SUCCESS;
    *size = bytes;
    return known && lb == 0 && extent == bytes;
}

/* What is known of a block whose elements the processor reaches, and holds its plan; 0 if the MPI shall move the direction. */
static int block_of(struct half *half, const struct given *given, int at, int sends, MPI_Comm communicator)
{
    int64_t size;
    struct block *block = &half->blocks[at];
    MPI_Datatype datatype = given->datatypes[at];
    block->elements = given_elements(given, at);
    block->memory = (unsigned char *)given->memory + given_number(given->places, given->wide_places, at);
    block->where.kind = DTC_MEMORY_HOST;
    if (block->elements <= 0 || datatype == MPI_DATATYPE_NULL) return block->elements == 0 && datatype != MPI_DATATYPE_NULL;
    block->plan = plan_of_use(block->elements, datatype, 0, communicator, &half->refused);
    if (block->plan) plan_retain(block->plan);
    if (half->refused != MPI_SUCCESS) return 0;
    if (block->plan) {
        if (!block->plan->type || (sends && !block->plan->uniform)) return 0;
        size = block->plan->size;
    } else if (recall(datatype)->is != PREDEFINED || !is_dense(datatype, &size)) {
        return 0;
    }
    return !__builtin_mul_overflow(block->elements, size, &block->bytes) && block->bytes <= LARGEST_MESSAGE;
}

/* Whether a direction has blocks. */
static int usable(const struct given *given)
{
    return given->length > 0 && given->counts && given->places && given->datatypes;
}

/* Decodes the datatypes of a persistent request; returns the error of the MPI, which it has told. */
static int decode_blocks(const struct given *given, MPI_Comm communicator)
{
    int refused = MPI_SUCCESS;
    for (int at = 0; refused == MPI_SUCCESS && usable(given) && at < given->length; at++)
        refused = decode_first(given_elements(given, at), given->datatypes[at], MPI_ANY_SOURCE, communicator);
    return refused;
}

/* The GPU of the first block that lies on one; -1 if none does. */
static int32_t device_of_blocks(const struct given *given)
{
    if (place_of(NULL).device < 0 || !is_ready()) return -1;
    for (int at = 0; at < given->length; at++) {
        MPI_Datatype datatype = given->datatypes[at];
        MPI_Count true_lb = 0, true_extent;
        if (given_elements(given, at) <= 0 || datatype == MPI_DATATYPE_NULL) continue;
        PMPI_Type_get_true_extent_x(datatype, &true_lb, &true_extent);
        int64_t first = given_number(given->places, given->wide_places, at) + true_lb;
        struct place place = place_of((const void *)((uintptr_t)given->memory + (uintptr_t)first));
        if (place.device < 0) return -1;
        if (place.kind == DTC_MEMORY_DEVICE) return place.device;
    }
    return -1;
}

/* Whether a direction has fewer bytes than dtc moves. */
static int is_small(const struct given *given)
{
    int64_t bytes = 0;
    for (int at = 0; at < given->length && bytes < limits.bytes; at++) {
        MPI_Count size = 0;
        int64_t elements = given_elements(given, at), more;
        if (elements <= 0 || given->datatypes[at] == MPI_DATATYPE_NULL) continue;
        if (PMPI_Type_size_x(given->datatypes[at], &size) != MPI_SUCCESS || __builtin_mul_overflow(elements, size, &more)) return 1;
        bytes += more < limits.bytes ? more : limits.bytes;
    }
    return bytes < limits.bytes;
}

/* Stages a direction, unless the MPI shall move it. In place, all of it is the MPI's but what lies on a GPU. The first of its elements on one do
   on `device`, and those of the other direction on `other`: -1 if there are none. */
static void half_stage(struct half *half, const struct given *given, int32_t device, int32_t other, int direction, MPI_Comm communicator)
{
    size_t each = sizeof *half->blocks + 2 * sizeof(int64_t) + sizeof *half->datatypes;
    int64_t gained = 0;
    int sends = direction & SENDS;
    *half = (struct half){0};
    if (!usable(given)) return;
    if (device < 0 && (direction == (SENDS | RECEIVES) || is_small(given))) return;
    half->blocks = (struct block *)calloc((size_t)given->length, each);
    if (!half->blocks) {
        if (device >= 0 && !takes_devices) half->refused = fail(MPI_ERR_NO_MEM);
        return;
    }
    half->counts = half->blocks + given->length;
    half->places = (int64_t *)half->counts + given->length;
    half->datatypes = (MPI_Datatype *)((int64_t *)half->places + given->length);
    if (device >= 0) {
        /* MPI_Alltoallw of Open MPI 5.0 ends by a signal where a process sends to itself from memory of a GPU to the host, or back. */
        int on_host = DTC_MPI_OF_ABI(0, 1, 0) && takes_devices && other < 0 && direction != (SENDS | RECEIVES);
        half_stage_on_device(half, &(struct device_half){given, device, direction, on_host, communicator});
        return;
    }
    /* Each block is a use of its datatype, also where another one is left to the MPI. */
    int movable = 1;
    for (int at = 0; at < given->length; at++) {
        struct block *block = &half->blocks[at];
        half->planned = at + 1;
        movable = block_of(half, given, at, sends, communicator) && movable && half->taken <= LARGEST_MESSAGE - block->bytes;
        if (!movable) continue;
        block->place = half->taken;
        half->bytes += block->bytes;
        half->taken += block->bytes + GAP;
        if (block->plan && !block->plan->whole && block->plan->least < INT64_MAX) gained += block->bytes;
    }
    /* Blocks that the MPI moves as fast are copied once more. */
    int pays = movable && gained >= limits.bytes && limits.share * gained >= half->bytes;
    half->staging = pays ? dtc_mpi_staging_take(DTC_MPI_HOST, 0, half->taken) : NULL;
    int given_all = !!half->staging;
    for (; given_all && half->length < given->length; half->length++) given_all = give_block(half, given, half->length, sends);
    if (!given_all) half_drop(half);
}

static void exchange_drop(struct exchange *exchange)
{
    half_drop(&exchange->out);
    half_drop(&exchange->in);
}

/* The error of a call that the MPI must not be given. */
static int exchange_refused(const struct exchange *exchange)
{
    return exchange->out.refused != MPI_SUCCESS ? exchange->out.refused : exchange->in.refused;
}

/* Packs what is sent, and fills what is received over; 0 if that fails. */
static int exchange_pack(const struct exchange *exchange)
{
    return half_pack(&exchange->out) && (!exchange->in.filled || half_fill(&exchange->in));
}

/* The same, before the MPI has the call: it moves a direction that cannot be packed, if it may be given it. */
static void exchange_pack_or_drop(struct exchange *exchange)
{
    if (!half_pack(&exchange->out)) {
        if (exchange->out.on_device && !takes_devices) exchange->out.refused = fail(MPI_ERR_OTHER);
        half_drop(&exchange->out);
    }
    if (exchange->in.filled && !half_fill(&exchange->in)) {
        if (!takes_devices) exchange->in.refused = fail(MPI_ERR_OTHER);
        half_drop(&exchange->in);
    }
}

/* Stages the directions of a call, and puts what the MPI is given into the arguments; 0 if the MPI shall do it all, or if the call is
   refused. That of a persistent request is packed when the request is started. */
static int exchange_stage(struct exchange *exchange, struct given *out, struct given *in, int in_place, int persistent, MPI_Comm communicator)
{
    struct half *halves[] = {&exchange->out, &exchange->in};
    struct given *both[] = {out, in};
    int32_t from = usable(out) ? device_of_blocks(out) : -1, into = usable(in) ? device_of_blocks(in) : -1;
    half_stage(&exchange->out, out, from, into, SENDS, communicator);
    half_stage(&exchange->in, in, into, from, in_place ? SENDS | RECEIVES : RECEIVES, communicator);
    if (!persistent) exchange_pack_or_drop(exchange);
    if (exchange_refused(exchange) != MPI_SUCCESS) {
        half_drop(&exchange->out);
        half_drop(&exchange->in);
        return 0;
    }
    for (int at = 0; at < 2; at++) {
        if (!halves[at]->length) continue;
        both[at]->memory = halves[at]->staging->memory;
        both[at]->counts = halves[at]->counts;
        both[at]->places = halves[at]->places;
        both[at]->datatypes = halves[at]->datatypes;
    }
    return exchange->out.length || exchange->in.length;
}

/* Unpacks what was received. */
static int exchange_unpack(const struct exchange *exchange)
{
    return half_unpack(&exchange->in) ? MPI_SUCCESS : fail(MPI_ERR_OTHER);
}

/* Whether a communicator that says that it is a Cartesian grid is one. Open MPI 5.0 says so of a graph that was made of a grid too, and fails in
   what it does with it, or ends by a signal. It tells the edges of a graph alone. */
static int is_grid(MPI_Comm communicator)
{
    MPI_Errhandler before;
    int in, out, weighted;
    if (!DTC_MPI_OF_ABI(0, 1, 0)) return 1;
    if (PMPI_Comm_get_errhandler(communicator, &before) != MPI_SUCCESS) return 0;
    PMPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
    int is_graph = PMPI_Dist_graph_neighbors_count(communicator, &in, &out, &weighted) == MPI_SUCCESS;
    PMPI_Comm_set_errhandler(communicator, before);
    PMPI_Errhandler_free(&before);
    return !is_graph;
}

/* The numbers of processes that a collective sends to and receives from; 0 if that is unknown. */
static int exchange_degrees(MPI_Comm communicator, int neighbors, int *out, int *in)
{
    int inter = 1, topology = MPI_UNDEFINED, rank = 0, weighted = 0;
    if (communicator == MPI_COMM_NULL || PMPI_Comm_test_inter(communicator, &inter) != MPI_SUCCESS || inter) return 0;
    if (!neighbors) return PMPI_Comm_size(communicator, out) == MPI_SUCCESS && (*in = *out, 1);
    if (PMPI_Topo_test(communicator, &topology) != MPI_SUCCESS) return 0;
    if (topology == MPI_CART) return is_grid(communicator) && PMPI_Cartdim_get(communicator, out) == MPI_SUCCESS && (*in = *out *= 2, 1);
    if (topology == MPI_DIST_GRAPH) return PMPI_Dist_graph_neighbors_count(communicator, in, out, &weighted) == MPI_SUCCESS;
    if (topology != MPI_GRAPH || PMPI_Comm_rank(communicator, &rank) != MPI_SUCCESS) return 0;
    return PMPI_Graph_neighbors_count(communicator, rank, out) == MPI_SUCCESS && (*in = *out, 1);
}

/* Which neighbors in a Cartesian grid are none: a bit for each. */
static uint64_t absent_neighbors(MPI_Comm communicator, int length)
{
    int topology = MPI_UNDEFINED, before, after;
    uint64_t absent = 0;
    if (PMPI_Topo_test(communicator, &topology) != MPI_SUCCESS || topology != MPI_CART) return 0;
    for (int at = 0; at < length && at < 64; at += 2) {
        if (PMPI_Cart_shift(communicator, at / 2, 1, &before, &after) != MPI_SUCCESS) continue;
        absent |= (uint64_t)(before == MPI_PROC_NULL) << at | (uint64_t)(after == MPI_PROC_NULL) << (at + 1);
    }
    return absent;
}

/* Whether the library may do a part of a collective. */
static int may_exchange(void)
{
    return !is_aside() && (!has_gpu() || is_ready());
}

/* What a call gives; displacements are wide in the large-count forms, and of neighbors always. */
#define GIVEN(count, neighbors)                                                                                                   \
    enum { WIDE = sizeof(KIND_##count) == sizeof(int64_t) };                                                                      \
    struct given out = {0, WIDE, WIDE || neighbors, (void *)sent, sent_counts, sent_places, sent_datatypes, 0};                   \
    struct given in = {0, WIDE, WIDE || neighbors, received, received_counts, received_places, received_datatypes, 0};            \
    int in_place = sent == MPI_IN_PLACE, staged = may_exchange() && exchange_degrees(communicator, neighbors, &out.length, &in.length);\
    if (neighbors && staged) out.absent = in.absent = absent_neighbors(communicator, in.length);                                  \
    if (in_place) out.length = 0

/* What the MPI is given instead. */
#define GIVEN_ARGUMENTS                                                                                                           \
    in_place ? sent : out.memory, out.counts, out.places, out.datatypes, in.memory, in.counts, in.places, in.datatypes, communicator

#define WRAP_EXCHANGE(name, count, shape, neighbors)                                                                              \
    static int wrap_##name(ARGUMENTS_##shape(PARAMETER, count))                                                                   \
    {                                                                                                                             \
        struct exchange exchange;                                                                                                 \
        GIVEN(count, neighbors);                                                                                                  \
        int result = MPI_SUCCESS;                                                                                                 \
        if (staged && direct_exchange(&out, &in, in_place, neighbors, communicator, &result)) return result;                      \
        if (!staged || !exchange_stage(&exchange, &out, &in, in_place, 0, communicator))                                          \
            return staged && exchange_refused(&exchange) ? exchange_refused(&exchange)                                            \
                                                         : mpi.name(ARGUMENTS_##shape(ARGUMENT, count));                          \
        result = mpi.name(GIVEN_ARGUMENTS);                                                                                       \
        half_posted(&exchange.in);                                                                                                \
        if (result == MPI_SUCCESS) result = exchange_unpack(&exchange);                                                           \
        exchange_drop(&exchange);                                                                                                 \
        return result;                                                                                                            \
    }

#define WRAP_ALLTOALLW(name, count) WRAP_EXCHANGE(name, count, ALLTOALLW, 0)
#define WRAP_NEIGHBOR_ALLTOALLW(name, count) WRAP_EXCHANGE(name, count, NEIGHBOR_ALLTOALLW, 1)

#endif
