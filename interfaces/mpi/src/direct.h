/*
 * Exchanges between processes on one machine whose GPUs reach each other: each packs straight into memory of the other's GPU, by one launch,
 * and unpacks what the others have packed. It is a protocol of this library, and used only between processes that are known to have it
 * (registry.h), in blocking collectives in which every pair has datatypes of its own: only both ends see their pieces.
 *
 * Each process tells those that send to it where it wants their blocks, opens the memory of those that it sends to, and says whether it can
 * take part: it can if all of its blocks lie on one GPU for each direction, and it can reach all that it packs into. If one cannot, all leave
 * the call to the other strategies. Then each packs, tells those it has packed for, waits for those that pack for it, and unpacks.
 *
 * Messages of this library go through a communicator of its own.
 */
#ifndef DTC_MPI_DIRECT_H
#define DTC_MPI_DIRECT_H

#include "peers.h"

enum { OFFER_TAG = 1, DONE_TAG = 2 };

/* Blocks start at multiples of this. */
enum { LANDING_ALIGNMENT = 256 };

/* What is known of a communicator: an attribute. */
struct direct {
    /* That of this library; MPI_COMM_NULL if its processes do not exchange directly. */
    MPI_Comm communicator;
    int rank, size;
};

static int direct_key;

/* Not for duplicates. */
static int copy_direct(MPI_Comm communicator, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)communicator, (void)key, (void)extra, (void)value, (void)copy;
    *flag = 0;
    return MPI_SUCCESS;
}

/* In MPI_Finalize, the MPI frees the communicator itself. */
static int delete_direct(MPI_Comm communicator, int key, void *value, void *extra)
{
    struct direct *direct = (struct direct *)value;
    (void)communicator, (void)key, (void)extra;
    if (direct->communicator != MPI_COMM_NULL && __atomic_load_n(&state, __ATOMIC_ACQUIRE) == READY) PMPI_Comm_free(&direct->communicator);
    free(direct);
    return MPI_SUCCESS;
}

/* Whether all processes of a communicator have this library, and run on this machine. */
static int all_registered(MPI_Comm communicator, int size)
{
    if (size == 1) return 1;
    if (!dtc_mpi_exchanges_directly()) return 0;
    MPI_Group group, world;
    int all = 0, *places = (int *)malloc(2 * (size_t)size * sizeof *places);
    if (!places) return 0;
    for (int at = 0; at < size; at++) places[at] = at;
    if (PMPI_Comm_group(communicator, &group) == MPI_SUCCESS) {
        if (PMPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
            all = PMPI_Group_translate_ranks(group, size, places, world, places + size) == MPI_SUCCESS;
            for (int at = 0; at < size; at++) all = all && places[size + at] != MPI_UNDEFINED && dtc_mpi_is_registered(places[size + at]);
            PMPI_Group_free(&world);
        }
        PMPI_Group_free(&group);
    }
    free(places);
    return all;
}

/* Whether some process of a communicator uses CUDA, as all of them find; -1 if the MPI does not tell. */
static int some_use_cuda(MPI_Comm communicator, int size)
{
    char own = place_of(NULL).device >= 0, *all = (char *)malloc((size_t)size);
    int some = all && PMPI_Allgather(&own, 1, MPI_BYTE, all, 1, MPI_BYTE, communicator) == MPI_SUCCESS ? 0 : -1;
    for (int at = 0; some >= 0 && at < size; at++) some = some || all[at];
    free(all);
    return some;
}

/* At the first such call of a communicator, by all of its processes: those whose processes do not use CUDA keep to the host. */
static __attribute__((noinline)) struct direct *direct_make(MPI_Comm communicator)
{
    struct direct *direct = (struct direct *)malloc(sizeof *direct);
    int known = direct && PMPI_Comm_size(communicator, &direct->size) == MPI_SUCCESS && PMPI_Comm_rank(communicator, &direct->rank) == MPI_SUCCESS;
    if (known) direct->communicator = MPI_COMM_NULL;
    /* Nothing that a process finds here by itself differs in another one, but for lack of memory, which ends the program. */
    if (known && all_registered(communicator, direct->size)) {
        int some = some_use_cuda(communicator, direct->size);
        known = some >= 0 && (!some || PMPI_Comm_split(communicator, 0, direct->rank, &direct->communicator) == MPI_SUCCESS);
    }
    if (!known || PMPI_Comm_set_attr(communicator, direct_key, direct) != MPI_SUCCESS) {
        free(direct);
        return NULL;
    }
    return direct;
}

/* Null if the processes of a communicator do not exchange directly. */
static struct direct *direct_of(MPI_Comm communicator)
{
    struct direct *direct;
    int found = 0;
    if (!direct_key) return NULL;
    if (PMPI_Comm_get_attr(communicator, direct_key, &direct, &found) != MPI_SUCCESS) return NULL;
    if (!found) direct = direct_make(communicator);
    return direct && direct->communicator != MPI_COMM_NULL ? direct : NULL;
}

static int wants_direct(void)
{
    const char *asked = getenv("DTC_MPI_DIRECT");
    return !asked || strcmp(asked, "off");
}

static void direct_start(void)
{
    int rank, size;
    if (!wants_direct()) return;
    if (PMPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS || PMPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS) return;
    if (PMPI_Comm_create_keyval(copy_direct, delete_direct, &direct_key, NULL) != MPI_SUCCESS) return;
    dtc_mpi_register(rank, size);
}

static void direct_end(void)
{
    dtc_mpi_close_imports();
    dtc_mpi_unregister();
}

/* What a process tells one that sends to it; an entry for each block between them follows, in order. */
struct offer {
    int64_t ready, process, number;
    unsigned char name[DTC_EXPORT_BYTES];
};

struct offered {
    int64_t place, bytes;
};

/* One direction of a call. */
struct flow {
    const struct given *given;
    struct peers peers;
    /* As many as peers.length, in its order. */
    struct block *blocks;
    /* The GPU of all elements; -1 if there are none. */
    int32_t device;
    int64_t bytes, taken;
    /* Offers to, or from, each group of peers, one behind the other; where each begins, and how many bytes they are. */
    char *offers;
    int64_t offers_length;
};

static int64_t offer_length(const struct group *group)
{
    return (int64_t)sizeof(struct offer) + group->length * (int64_t)sizeof(struct offered);
}

static struct offer *offer_of(const struct flow *flow, int at)
{
    const struct group *group = &flow->peers.groups[at];
    return (struct offer *)(flow->offers + at * (int64_t)sizeof(struct offer) + group->first * (int64_t)sizeof(struct offered));
}

/* What is known of a block; 0 if it does not lie on the GPU of the others, or cannot be packed by dtc. */
static int direct_block(struct flow *flow, struct block *block, int at, MPI_Comm communicator)
{
    const struct given *given = flow->given;
    struct span span;
    int unknown = 0, refused = MPI_SUCCESS;
    MPI_Datatype datatype = given->datatypes[at];
    int64_t elements = given_elements(given, at);
    unsigned char *memory = (unsigned char *)((uintptr_t)given->memory + (uintptr_t)given_number(given->places, given->wide_places, at));
    if (elements == 0) return 1;
    if (elements < 0 || datatype == MPI_DATATYPE_NULL) return 0;
    struct plan *plan = plan_now(datatype, communicator, &unknown, &refused);
    if (refused != MPI_SUCCESS || !span_of(&span, elements, datatype)) return 0;
    if (span.bytes == 0) return 1;
    int contiguous = (!plan || plan->whole) && span.length == span.bytes;
    if (!contiguous && !(plan && plan->type)) return 0;
    struct moved moved = moved_of(PACKED, plan, &span, memory, elements);
    struct place where = place_of((const void *)((uintptr_t)memory + (uintptr_t)span.low));
    if (where.kind != DTC_MEMORY_DEVICE || (flow->device >= 0 && flow->device != where.device)) return 0;
    *block = (struct block){.plan = moved.plan, .memory = moved.memory, .elements = moved.elements, .bytes = moved.bytes, .where = where,
                            .place = flow->taken};
    flow->device = where.device;
    flow->bytes += block->bytes;
    flow->taken += (block->bytes + LANDING_ALIGNMENT - 1) / LANDING_ALIGNMENT * LANDING_ALIGNMENT;
    return 1;
}

/* Plans one direction; whether its blocks can go directly. */
static int flow_plan(struct flow *flow, MPI_Comm communicator)
{
    int able = 1;
    flow->device = -1;
    for (int at = 0; able && at < flow->peers.length; at++)
        able = direct_block(flow, &flow->blocks[at], flow->peers.edges[at].at, communicator);
    return able;
}

/* 0 if there is no memory. */
static int flow_make(struct flow *flow, const struct given *given)
{
    flow->given = given;
    flow->blocks = (struct block *)calloc((size_t)flow->peers.length + 1, sizeof *flow->blocks);
    flow->offers_length = flow->peers.count * (int64_t)sizeof(struct offer) + flow->peers.length * (int64_t)sizeof(struct offered);
    flow->offers = (char *)calloc(1, (size_t)flow->offers_length + 1);
    return flow->blocks && flow->offers;
}

static void flow_drop(struct flow *flow)
{
    peers_drop(&flow->peers);
    free(flow->blocks);
    free(flow->offers);
}

/* Tells each process that sends to this one where its blocks shall lie, and learns the same of those that this one sends to. */
static int exchange_offers(const struct direct *direct, struct flow *out, struct flow *in, const struct dtc_mpi_landing *landing, int ready,
                           MPI_Request *requests)
{
    int begun = 0, result = MPI_SUCCESS;
    for (int at = 0; result == MPI_SUCCESS && at < out->peers.count; at++) {
        const struct group *group = &out->peers.groups[at];
        result = PMPI_Irecv(offer_of(out, at), (int)offer_length(group), MPI_BYTE, group->peer, OFFER_TAG, direct->communicator, &requests[begun++]);
    }
    for (int at = 0; result == MPI_SUCCESS && at < in->peers.count; at++) {
        const struct group *group = &in->peers.groups[at];
        struct offer *offer = offer_of(in, at);
        struct offered *offered = (struct offered *)(offer + 1);
        *offer = (struct offer){.ready = ready, .process = getpid(), .number = landing ? landing->number : 0};
        if (landing) memcpy(offer->name, landing->name, sizeof offer->name);
        for (int block = 0; block < group->length; block++)
            offered[block] = (struct offered){in->blocks[group->first + block].place, in->blocks[group->first + block].bytes};
        result = PMPI_Isend(offer, (int)offer_length(group), MPI_BYTE, group->peer, OFFER_TAG, direct->communicator, &requests[begun++]);
    }
    if (result == MPI_SUCCESS) result = PMPI_Waitall(begun, requests, MPI_STATUSES_IGNORE);
    return result == MPI_SUCCESS;
}

/* Fills the calls that pack; how many, or -1 if this process cannot reach where its blocks shall lie. */
static int plan_packs(const struct direct *direct, const struct flow *out, const struct dtc_mpi_landing *landing, dtc_batch_call *calls)
{
    int length = 0;
    for (int at = 0; at < out->peers.count; at++) {
        const struct group *group = &out->peers.groups[at];
        const struct offer *offer = offer_of(out, at);
        const struct offered *offered = (const struct offered *)(offer + 1);
        if (!offer->ready) return -1;
        for (int block = group->first; block < group->first + group->length; block++, offered++) {
            const struct block *from = &out->blocks[block];
            /* An error of the program, which the MPI reports. */
            if (from->bytes != offered->bytes) return -1;
            if (from->bytes == 0) continue;
            int own = group->peer == direct->rank;
            if (own && landing->device != out->device) return -1;
            void *memory = own ? landing->memory : dtc_mpi_import(offer->process, offer->number, offer->name, out->device);
            if (!memory) return -1;
            calls[length++] = (dtc_batch_call){
                .type = from->plan->type,
                .memory = from->memory,
                .packed = (char *)memory + offered->place,
                .count = from->elements,
                .max = from->bytes,
                .direction = DTC_DIRECTION_PACK,
            };
        }
    }
    return length;
}

/* Whether all processes are ready. */
static int all_ready(const struct direct *direct, int ready)
{
    char own = (char)ready, *all = (char *)malloc((size_t)direct->size);
    int every = all && PMPI_Allgather(&own, 1, MPI_BYTE, all, 1, MPI_BYTE, direct->communicator) == MPI_SUCCESS;
    for (int at = 0; every && at < direct->size; at++) every = all[at];
    free(all);
    return every;
}

static int group_is_empty(const struct flow *flow, const struct group *group)
{
    int64_t bytes = 0;
    for (int at = group->first; at < group->first + group->length; at++) bytes += flow->blocks[at].bytes;
    return bytes == 0;
}

/* Tells those for whom this process has packed whether that went well, and waits for those that pack for it; whether all went well. */
static int exchange_dones(const struct direct *direct, const struct flow *out, const struct flow *in, int packed, MPI_Request *requests,
                          char *others)
{
    int begun = 0, result = MPI_SUCCESS;
    char own = (char)packed;
    for (int at = 0; result == MPI_SUCCESS && at < in->peers.count; at++) {
        others[at] = 1;
        if (group_is_empty(in, &in->peers.groups[at])) continue;
        result = PMPI_Irecv(&others[at], 1, MPI_BYTE, in->peers.groups[at].peer, DONE_TAG, direct->communicator, &requests[begun++]);
    }
    for (int at = 0; result == MPI_SUCCESS && at < out->peers.count; at++) {
        if (group_is_empty(out, &out->peers.groups[at])) continue;
        result = PMPI_Isend(&own, 1, MPI_BYTE, out->peers.groups[at].peer, DONE_TAG, direct->communicator, &requests[begun++]);
    }
    if (result == MPI_SUCCESS) result = PMPI_Waitall(begun, requests, MPI_STATUSES_IGNORE);
    int all = result == MPI_SUCCESS;
    for (int at = 0; at < in->peers.count; at++) all = all && others[at];
    return all;
}

/* Unpacks what the others have packed; 0 if that fails. */
static int direct_unpack(const struct flow *in, const struct dtc_mpi_landing *landing, dtc_batch_call *calls)
{
    int length = 0;
    for (int at = 0; at < in->peers.length; at++) {
        const struct block *block = &in->blocks[at];
        if (block->bytes == 0) continue;
        calls[length++] = (dtc_batch_call){
            .type = block->plan->type,
            .memory = block->memory,
            .packed = (char *)landing->memory + block->place,
            .count = block->elements,
            .max = block->bytes,
            .direction = DTC_DIRECTION_UNPACK,
        };
    }
    return length == 0 || dtc_mpi_launch(in->device, calls, length, DTC_MEMORY_DEVICE);
}

/* Does an exchange whose processes are all ready; the code that the call returns. */
static int direct_run(const struct direct *direct, const struct flow *out, const struct flow *in, const struct dtc_mpi_landing *landing,
                      dtc_batch_call *calls, int length, MPI_Request *requests)
{
    char *others = (char *)requests;
    int packed = length == 0 || dtc_mpi_launch(out->device, calls, length, DTC_MEMORY_DEVICE);
    others += (out->peers.count + in->peers.count) * sizeof *requests;
    int received = exchange_dones(direct, out, in, packed, requests, others);
    if (packed) dtc_mpi_count(DTC_MPI_SENT, out->bytes), dtc_mpi_count(DTC_MPI_DIRECTLY, out->bytes);
    if (!packed || !received || !direct_unpack(in, landing, calls)) return fail(MPI_ERR_OTHER);
    dtc_mpi_count(DTC_MPI_RECEIVED, in->bytes);
    return MPI_SUCCESS;
}

/* Does an exchange directly; 0 if the other strategies shall do it, which all processes of the communicator find alike. */
static int direct_exchange(const struct given *given_out, const struct given *given_in, int in_place, int neighbors, MPI_Comm communicator,
                           int *result)
{
    struct direct *direct = in_place ? NULL : direct_of(communicator);
    if (!direct) return 0;
    struct flow out = {0}, in = {0};
    int ready = peers_find(&out.peers, given_out->length, &in.peers, given_in->length, communicator, neighbors, direct->rank);
    int made = flow_make(&out, given_out) && flow_make(&in, given_in);
    int groups = out.peers.count + in.peers.count, length = out.peers.length > in.peers.length ? out.peers.length : in.peers.length;
    MPI_Request *requests = (MPI_Request *)calloc((size_t)groups + 1, sizeof *requests + 1);
    dtc_batch_call *calls = (dtc_batch_call *)calloc((size_t)length + 1, sizeof *calls);
    struct dtc_mpi_landing *landing = NULL;
    made = made && requests && calls;
    if (made) {
        ready = ready && flow_plan(&out, communicator) && flow_plan(&in, communicator);
        if (ready && in.taken > 0) ready = !!(landing = dtc_mpi_landing_take(in.device, in.taken));
        int packs = exchange_offers(direct, &out, &in, landing, ready, requests) && ready ? plan_packs(direct, &out, landing, calls) : -1;
        made = all_ready(direct, packs >= 0);
        if (made) *result = direct_run(direct, &out, &in, landing, calls, packs, requests);
    } else {
        /* Others wait for the offers of this process. */
        *result = fail(MPI_ERR_NO_MEM);
        made = 1;
    }
    dtc_mpi_landing_give(landing);
    flow_drop(&out), flow_drop(&in);
    free(requests), free(calls);
    return made;
}

#endif
