/* One direction of an exchange between GPUs (direct.h): its blocks, and where each lies in the memory that it is packed into. */
#ifndef DTC_MPI_FLOW_H
#define DTC_MPI_FLOW_H

#include "block.h"
#include "peers.h"

/* Blocks start at multiples of this. */
enum { LANDING_ALIGNMENT = 256 };

/* One direction of a call. */
struct flow {
    const struct given *given;
    struct peers peers;
    /* As many as peers.length, in its order. */
    struct block *blocks;
    /* The GPU of all elements; -1 if there are none. */
    int32_t device;
    int64_t bytes, taken;
};

/* What a block takes of the memory that it is packed into. */
static int64_t block_taken(const struct block *block)
{
    return (block->bytes + LANDING_ALIGNMENT - 1) / LANDING_ALIGNMENT * LANDING_ALIGNMENT;
}

/* What is known of a block; 0 if it does not lie on the GPU of the others, or cannot be packed by dtc. */
static int direct_block(struct flow *flow, struct block *block, int at, MPI_Comm communicator)
{
    const struct given *given = flow->given;
    struct span span;
    int refused = MPI_SUCCESS;
    MPI_Datatype datatype = given->datatypes[at];
    int64_t elements = given_elements(given, at);
    unsigned char *memory = (unsigned char *)((uintptr_t)given->memory + (uintptr_t)given_number(given->places, given->wide_places, at));
    block->place = flow->taken;
    if (elements == 0) return 1;
    if (elements < 0 || datatype == MPI_DATATYPE_NULL) return 0;
    struct plan *plan = plan_now(datatype, communicator, &refused);
    if (refused != MPI_SUCCESS || !span_of(&span, elements, datatype)) return 0;
    if (span.bytes == 0) return 1;
    if (!is_decoded(plan, &span)) return 0;
    struct moved moved = moved_of(PACKED, plan, &span, memory, elements);
    struct place where = place_of((const void *)((uintptr_t)memory + (uintptr_t)span.low));
    if (where.kind != DTC_MEMORY_DEVICE || (flow->device >= 0 && flow->device != where.device)) return 0;
    *block = (struct block){.plan = moved.plan, .memory = moved.memory, .elements = moved.elements, .bytes = moved.bytes, .where = where,
                            .place = flow->taken};
    plan_retain(block->plan);
    flow->device = where.device;
    flow->bytes += block->bytes;
    flow->taken += block_taken(block);
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
    return !!flow->blocks;
}

static void flow_drop(struct flow *flow)
{
    for (int at = 0; flow->blocks && at < flow->peers.length; at++)
        if (flow->blocks[at].plan) plan_release(flow->blocks[at].plan);
    peers_drop(&flow->peers);
    free(flow->blocks);
}

/* The blocks between this process and another one, together: one lies behind the other. */
static struct dtc_mpi_space space_of(const struct flow *flow, const struct group *group)
{
    struct dtc_mpi_space space = {flow->blocks[group->first].place, 0, 0};
    for (int at = group->first; at < group->first + group->length; at++) {
        space.bytes += flow->blocks[at].bytes;
        space.taken += block_taken(&flow->blocks[at]);
    }
    return space;
}

#endif
