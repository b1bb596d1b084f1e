/*
 * Exchanges between processes on one machine whose GPUs reach each other: each packs straight into memory of the other's GPU, by one launch,
 * and unpacks what the others have packed. It is a protocol of this library, and used only between processes that are known to have it
 * (registry.h), in blocking collectives in which every pair has datatypes of its own: only both ends see their pieces.
 *
 * Each process tells those that send to it where it wants their blocks, opens the memory of those that it sends to, and says whether it can
 * take part: it can if all of its blocks lie on one GPU for each direction, and it can reach all that it packs into. If one cannot, all leave
 * the call to the other strategies. Then each packs, tells those it has packed for, waits for those that pack for it, and unpacks. All that
 * is told goes through memory that the processes share (board.h).
 */
#ifndef DTC_MPI_DIRECT_H
#define DTC_MPI_DIRECT_H

#include "flow.h"

/* What is known of a communicator: an attribute. */
struct direct {
    /* Null if its processes do not exchange directly. */
    struct dtc_mpi_board *board;
    /* A communicator of the same processes without messages, if there is a board. */
    MPI_Comm silent;
    int rank, size;
    /* How many exchanges its processes have begun. */
    int64_t exchange;
};

static int direct_key;

static void direct_drop(struct direct *direct)
{
    if (!direct) return;
    dtc_mpi_board_drop(direct->board);
    free(direct);
}

/* Not for duplicates. */
static int copy_direct(MPI_Comm communicator, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)communicator, (void)key, (void)extra, (void)value, (void)copy;
    *flag = 0;
    return MPI_SUCCESS;
}

/* In MPI_Finalize, the MPI frees the silent communicator itself. */
static int delete_direct(MPI_Comm communicator, int key, void *value, void *extra)
{
    struct direct *direct = (struct direct *)value;
    (void)communicator, (void)key, (void)extra;
    if (direct->board && __atomic_load_n(&state, __ATOMIC_ACQUIRE) == READY) PMPI_Comm_free(&direct->silent);
    direct_drop(direct);
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

/* How many processes of a communicator say so, as all of them find; -1 if the MPI does not tell. */
static int count_all(MPI_Comm communicator, int size, int own)
{
    char says = !!own, *all = (char *)malloc((size_t)size);
    int count = all && PMPI_Allgather(&says, 1, MPI_BYTE, all, 1, MPI_BYTE, communicator) == MPI_SUCCESS ? 0 : -1;
    for (int at = 0; count >= 0 && at < size; at++) count += all[at];
    free(all);
    return count;
}

/* Memory that all processes of a communicator share; `known` is 0 if the MPI fails. */
static struct dtc_mpi_board *board_between(MPI_Comm communicator, int rank, int size, int *known)
{
    char name[DTC_MPI_BOARD_NAME] = "";
    struct dtc_mpi_board *board = rank == 0 ? dtc_mpi_board_make(rank, size, name) : NULL;
    *known = PMPI_Bcast(name, sizeof name, MPI_BYTE, 0, communicator) == MPI_SUCCESS;
    if (*known && rank != 0) board = dtc_mpi_board_open(rank, size, name);
    int count = *known ? count_all(communicator, size, !!board) : -1;
    *known = count >= 0;
    if (rank == 0) dtc_mpi_board_hide(name);
    if (count == size) return board;
    dtc_mpi_board_drop(board);
    return NULL;
}

/* At the first such call of a communicator, by all of its processes: those whose processes do not use CUDA keep to the host. */
static __attribute__((noinline)) struct direct *direct_make(MPI_Comm communicator)
{
    struct direct *direct = (struct direct *)calloc(1, sizeof *direct);
    int known = direct && PMPI_Comm_size(communicator, &direct->size) == MPI_SUCCESS && PMPI_Comm_rank(communicator, &direct->rank) == MPI_SUCCESS;
    /* Nothing that a process finds here by itself differs in another one, but for lack of memory, which ends the program. */
    if (known && all_registered(communicator, direct->size)) {
        int count = count_all(communicator, direct->size, place_of(NULL).device >= 0);
        known = count >= 0;
        if (known && count > 0) direct->board = board_between(communicator, direct->rank, direct->size, &known);
        if (direct->board) known = known && PMPI_Comm_split(communicator, 0, direct->rank, &direct->silent) == MPI_SUCCESS;
    }
    if (!known || PMPI_Comm_set_attr(communicator, direct_key, direct) != MPI_SUCCESS) {
        direct_drop(direct);
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
    return direct && direct->board ? direct : NULL;
}

/* Before the MPI frees a communicator, which it may keep until its last message ends (plan.h). */
static void direct_forget(const MPI_Comm *communicator)
{
    struct direct *direct;
    int found = 0;
    if (!direct_key || !communicator || *communicator == MPI_COMM_NULL || __atomic_load_n(&state, __ATOMIC_ACQUIRE) != READY) return;
    if (PMPI_Comm_get_attr(*communicator, direct_key, &direct, &found) == MPI_SUCCESS && found)
        PMPI_Comm_delete_attr(*communicator, direct_key);
}

#define WRAP_COMM_FREE(name, count)                                                                                              \
    static int wrap_##name(MPI_Comm *communicator)                                                                                \
    {                                                                                                                              \
        direct_forget(communicator);                                                                                               \
        return mpi.name(communicator);                                                                                             \
    }

/* As the report says it. */
static const char *direct_way(void)
{
    if (dtc_mpi_is_set("DTC_MPI_DIRECT", "off")) return "through the MPI (DTC_MPI_DIRECT=off)";
    return "from process to process, where all have this library";
}

static void direct_start(void)
{
    int rank, size;
    if (dtc_mpi_is_set("DTC_MPI_DIRECT", "off")) return;
    if (PMPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS || PMPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS) return;
    if (PMPI_Comm_create_keyval(copy_direct, delete_direct, &direct_key, NULL) != MPI_SUCCESS) return;
    dtc_mpi_register(rank, size);
}

static void direct_end(void)
{
    dtc_mpi_close_imports();
    dtc_mpi_unregister();
}

/* An exchange under way. */
struct direct_call {
    struct direct *direct;
    MPI_Comm communicator;
    struct flow out, in;
    struct dtc_mpi_landing *landing;
    /* Packs and unpacks, room for as many as either direction has blocks. */
    dtc_batch_call *calls;
    int packs;
};

/* Lets the MPI go on with messages that others wait for, as it does where it finds none. Those of a process with itself would not do: MPICH looks at
   them alone. */
static void direct_progress(void *of)
{
    int flag;
    PMPI_Iprobe(MPI_ANY_SOURCE, 0, *(MPI_Comm *)of, &flag, MPI_STATUS_IGNORE);
}

static void direct_tell(const struct direct_call *call, enum dtc_mpi_step step, int well)
{
    dtc_mpi_board_tell(call->direct->board, step, call->direct->exchange, well);
}

static int direct_wait(struct direct_call *call, int peer, enum dtc_mpi_step step)
{
    return dtc_mpi_board_wait(call->direct->board, peer, step, call->direct->exchange, direct_progress, (void *)&call->direct->silent);
}

/* Tells each process that sends to this one where its blocks shall lie. */
static void direct_offer(const struct direct_call *call, int ready)
{
    struct dtc_mpi_board *board = call->direct->board;
    struct dtc_mpi_target *target = dtc_mpi_board_target(board);
    *target = (struct dtc_mpi_target){.process = getpid()};
    if (call->landing) {
        target->number = call->landing->number;
        memcpy(target->name, call->landing->name, sizeof target->name);
    }
    for (int at = 0; ready && at < call->in.peers.count; at++) {
        const struct group *group = &call->in.peers.groups[at];
        dtc_mpi_board_spaces(board)[group->peer] = space_of(&call->in, group);
    }
    direct_tell(call, DTC_MPI_OFFERED, ready);
}

/* Where this process packs its blocks for another one, which has offered; null if it cannot reach that. */
static char *direct_target(const struct direct_call *call, const struct group *group)
{
    const struct direct *direct = call->direct;
    const struct dtc_mpi_target *target = dtc_mpi_board_target_of(direct->board, group->peer);
    char *memory = NULL;
    if (group->peer != direct->rank) memory = (char *)dtc_mpi_import(target->process, target->number, target->name, call->out.device);
    else if (call->landing->device == call->out.device) memory = (char *)call->landing->memory;
    return memory ? memory + dtc_mpi_board_space_of(direct->board, group->peer)->place : NULL;
}

static dtc_batch_call batch_call(const struct block *block, char *packed, int32_t direction)
{
    return (dtc_batch_call){
        .type = block->plan->type,
        .memory = block->memory,
        .packed = packed,
        .count = block->elements,
        .max = block->bytes,
        .direction = direction,
    };
}

/* Plans what this process does with its blocks; 0 if it cannot reach where they shall lie. */
static int direct_packs(struct direct_call *call)
{
    const struct flow *out = &call->out;
    struct dtc_mpi_board *board = call->direct->board;
    for (int at = 0; at < out->peers.count; at++) {
        const struct group *group = &out->peers.groups[at];
        if (!direct_wait(call, group->peer, DTC_MPI_OFFERED)) return 0;
        const struct dtc_mpi_space *wanted = dtc_mpi_board_space_of(board, group->peer);
        struct dtc_mpi_space own = space_of(out, group);
        /* An error of the program, which the MPI reports. */
        if (own.bytes != wanted->bytes || own.taken != wanted->taken) return 0;
        if (own.bytes == 0) continue;
        char *packed = direct_target(call, group);
        if (!packed) return 0;
        for (int block = group->first; block < group->first + group->length; block++) {
            const struct block *from = &out->blocks[block];
            if (from->bytes > 0) call->calls[call->packs++] = batch_call(from, packed, DTC_DIRECTION_PACK);
            packed += block_taken(from);
        }
    }
    return 1;
}

/* Whether all processes take part, as all of them find. */
static int direct_vote(struct direct_call *call, int able)
{
    int all = able;
    direct_tell(call, DTC_MPI_VOTED, able);
    for (int peer = 0; peer < call->direct->size; peer++) all = direct_wait(call, peer, DTC_MPI_VOTED) && all;
    return all;
}

/* Unpacks what the others have packed, when they have; 0 if something fails. */
static int direct_unpack(struct direct_call *call)
{
    const struct flow *in = &call->in;
    int length = 0, well = 1;
    for (int at = 0; at < in->peers.count; at++) {
        const struct group *group = &in->peers.groups[at];
        if (space_of(in, group).bytes == 0) continue;
        well = direct_wait(call, group->peer, DTC_MPI_PACKED_FOR_OTHERS) && well;
        for (int of = group->first; of < group->first + group->length; of++) {
            const struct block *block = &in->blocks[of];
            if (block->bytes > 0) call->calls[length++] = batch_call(block, (char *)call->landing->memory + block->place, DTC_DIRECTION_UNPACK);
        }
    }
    return well && (length == 0 || dtc_mpi_launch(in->device, call->calls, length, DTC_MEMORY_DEVICE));
}

/* Does an exchange in which all processes take part; the code that the call returns. */
static int direct_run(struct direct_call *call)
{
    int32_t device = call->out.device;
    int packed = call->packs == 0 || dtc_mpi_launch(device, call->calls, call->packs, DTC_MEMORY_DEVICE);
    direct_tell(call, DTC_MPI_PACKED_FOR_OTHERS, packed);
    if (packed) dtc_mpi_count(DTC_MPI_SENT, call->out.bytes), dtc_mpi_count(DTC_MPI_DIRECTLY, call->out.bytes);
    if (!direct_unpack(call) || !packed) return fail(MPI_ERR_OTHER);
    dtc_mpi_count(DTC_MPI_RECEIVED, call->in.bytes);
    return MPI_SUCCESS;
}

/* Plans a call; whether this process can take part, as far as it can tell by itself. */
static int direct_plan(struct direct_call *call, const struct given *out, const struct given *in, int neighbors)
{
    struct peers *to = &call->out.peers, *from = &call->in.peers;
    int able = peers_find(to, out->length, from, in->length, call->communicator, neighbors, call->direct->rank);
    int length = to->length > from->length ? to->length : from->length;
    call->calls = (dtc_batch_call *)calloc((size_t)length + 1, sizeof *call->calls);
    able = able && call->calls && flow_make(&call->out, out) && flow_make(&call->in, in);
    able = able && flow_plan(&call->out, call->communicator) && flow_plan(&call->in, call->communicator);
    if (able && call->in.taken > 0) call->landing = dtc_mpi_landing_take(call->in.device, call->in.taken);
    return able && (call->in.taken == 0 || call->landing);
}

/* Does an exchange directly; 0 if the other strategies shall do it, which all processes of the communicator find alike. */
static int direct_exchange(const struct given *given_out, const struct given *given_in, int in_place, int neighbors, MPI_Comm communicator,
                           int *result)
{
    struct direct *direct = in_place ? NULL : direct_of(communicator);
    if (!direct) return 0;
    struct direct_call call = {.direct = direct, .communicator = communicator};
    direct->exchange++;
    int able = direct_plan(&call, given_out, given_in, neighbors);
    direct_offer(&call, able);
    int all = direct_vote(&call, able && direct_packs(&call));
    if (all) *result = direct_run(&call);
    dtc_mpi_landing_give(call.landing);
    flow_drop(&call.out), flow_drop(&call.in);
    free(call.calls);
    return all;
}

#endif
