/*
 * Long messages between GPUs of one machine that do not go through the MPI, where both processes have DTC_MPI_DIRECT=messages.
 *
 * The sender packs into memory of its GPU that others can open. The MPI sends an announcement in place of the bytes, by the call, to the
 * process, with the tag and on the communicator of the program, so it is matched and ordered as the message would be. A receive looks whether an
 * announcement has come, unpacks from the memory of the sender, and tells it so. Statuses tell the length of the message, also those of probes.
 *
 * Any receive may meet an announcement, on the host and on a GPU. One that the MPI does is given the program's elements, and afterwards their
 * first bytes are looked at. They are long enough, since the message is longer than its announcement. Where an announcement may end inside
 * a basic element, the bytes go through staging memory, if dtc can decode the datatype.
 */
#ifndef DTC_MPI_RENDEZVOUS_H
#define DTC_MPI_RENDEZVOUS_H

/* Fewest bytes of a message that is announced: shorter ones are as fast through the MPI, between two H100. An MPI that takes memory of GPUs moves the packed
   bytes about as fast as the receiver reads them, up to 16 MiB. And fewest if DTC_MPI=all asks. */
enum { LEAST_ANNOUNCED = 64 << 10, LEAST_BESIDE_AWARE = 32 << 20, LEAST_OF_ALL = 4 << 10 };

static int64_t least_announced = LEAST_ANNOUNCED;

/* Of this process alone, for messages of the library to itself; while it takes part. */
static MPI_Comm own_communicator;

/* The rank in MPI_COMM_WORLD of one in a communicator; -1 if there is none, or if it lies in another group. */
static int world_rank(int rank, MPI_Comm communicator)
{
    MPI_Group group, world;
    int inter = 1, found = MPI_UNDEFINED;
    if (communicator == MPI_COMM_WORLD) return rank;
    if (rank < 0 || PMPI_Comm_test_inter(communicator, &inter) != MPI_SUCCESS || inter) return -1;
    if (PMPI_Comm_group(communicator, &group) != MPI_SUCCESS) return -1;
    if (PMPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
        PMPI_Group_translate_ranks(group, 1, &rank, world, &found);
        PMPI_Group_free(&world);
    }
    PMPI_Group_free(&group);
    return found == MPI_UNDEFINED ? -1 : found;
}

/* A tag of a message that is not announced. Those of a persistent request are not: all its messages would be announced in one place. */
enum { NO_TAG = -1 };

/* Takes memory that another process reads a message from; null if the MPI shall send it. */
static struct dtc_mpi_outgoing *announce(int rank, int tag, MPI_Comm communicator, int32_t device, int64_t bytes)
{
    if (!dtc_mpi_outbox_is_open || tag == NO_TAG || device < 0 || bytes < least_announced) return NULL;
    return dtc_mpi_outbox_take(world_rank(rank, communicator), tag, device, bytes);
}

/* Whether the MPI receives elements as bytes that it unpacks afterwards, because an announcement can come. */
static int is_watched_packed(const struct plan *plan, const struct span *span)
{
    return dtc_mpi_outbox_is_open && !is_decoded(plan, span) && span->bytes >= DTC_MPI_ANNOUNCEMENT && span->bytes <= INT32_MAX;
}

/* Has the MPI receive packed bytes, which it unpacks afterwards; 0 if that fails, with an error. */
static int watch_packed(struct staged *staged, const struct span *span, MPI_Datatype datatype)
{
    staged->block = dtc_mpi_staging_take(DTC_MPI_HOST, 0, span->bytes);
    staged->by_mpi = staged->block && PMPI_Type_dup(datatype, &staged->duplicate) == MPI_SUCCESS;
    staged->given = staged->packed = staged->block ? staged->block->memory : NULL;
    return staged->by_mpi || refuse(staged, MPI_ERR_NO_MEM);
}

/* Has the MPI receive where it is seen afterwards whether an announcement has come; 0 if none can come, or with an error. */
static __attribute__((noinline)) int watch(struct staged *staged, const void *memory, int64_t elements, MPI_Datatype datatype, int rank,
                                           MPI_Comm communicator, int *unknown)
{
    struct span span;
    if (!is_ready() || elements <= 0 || rank == MPI_PROC_NULL || communicator == MPI_COMM_NULL || datatype == MPI_DATATYPE_NULL) return 0;
    struct plan *plan = plan_now(datatype, communicator, unknown, &staged->refused);
    if (staged->refused != MPI_SUCCESS || !span_of(&span, elements, datatype) || span.bytes < DTC_MPI_ANNOUNCEMENT) return 0;
    int decoded = is_decoded(plan, &span), as_bytes = !decoded || (is_contiguous(plan, &span) && span.bytes <= INT32_MAX);
    /* How many bytes the MPI shall unpack is not known. */
    if (!decoded && (staged->untold || !is_watched_packed(plan, &span))) return 0;
    struct moved moved = {byte_plan, (unsigned char *)memory, elements, span.bytes};
    if (decoded) moved = moved_of(PACKED, plan, &span, (void *)memory, elements);
    stage_moved(staged, &moved);
    staged->bound = 1;
    staged->transfer = (dtc_transfer)DTC_TRANSFER_INIT;
    /* As bytes, an announcement ends inside no element. */
    staged->given = as_bytes ? moved.memory : (void *)memory;
    staged->length = as_bytes ? span.bytes : elements;
    staged->datatype = as_bytes ? MPI_PACKED : datatype;
    return decoded || watch_packed(staged, &span, datatype);
}

static inline int watch_received(struct staged *staged, const void *memory, int64_t elements, MPI_Datatype datatype, int rank,
                                 MPI_Comm communicator, int *unknown)
{
    if (__builtin_expect(!dtc_mpi_outbox_is_open, 1) || staged->refused != MPI_SUCCESS) return 0;
    return watch(staged, memory, elements, datatype, rank, communicator, unknown);
}

/* Brings the first bytes of what was received to the host, packed; 0 if it has fewer than an announcement, or if that fails. */
static int first_bytes(const struct staged *staged, void *bytes, int64_t length)
{
    const struct moved *lying = &staged->lying;
    dtc_transfer transfer = staged->transfer;
    if (staged->bytes < DTC_MPI_ANNOUNCEMENT) return 0;
    if (staged->block && !lying->plan) {
        transfer = transfer_of(bytes, (struct place){DTC_MEMORY_HOST, 0}, staged->block);
        return dtc_unpack(byte_plan->type, bytes, length, 0, staged->packed, length, NULL, &transfer) == DTC_OK;
    }
    transfer.packed = DTC_MEMORY_HOST;
    transfer.packed_device = 0;
    if (!lying->plan) return dtc_pack(staged->plan->type, staged->memory, staged->elements, 0, bytes, length, NULL, &transfer) == DTC_OK;
    transfer.memory = DTC_MEMORY_HOST;
    transfer.memory_device = 0;
    return dtc_pack(lying->plan->type, lying->memory, lying->elements, 0, bytes, length, NULL, &transfer) == DTC_OK;
}

/* Whether an announcement has come; the status tells how many bytes have, unless the MPI does not know. */
static __attribute__((noinline)) int find_announcement(const struct staged *staged, const MPI_Status *status, struct dtc_mpi_announcement *found)
{
    int cancelled = 0, counted = MPI_UNDEFINED;
    if (!staged->untold && status != MPI_STATUS_IGNORE) {
        if (PMPI_Test_cancelled(status, &cancelled) != MPI_SUCCESS || cancelled) return 0;
        if (PMPI_Get_count(status, MPI_PACKED, &counted) != MPI_SUCCESS) return 0;
        if (!dtc_mpi_may_announce(counted)) return 0;
    }
    return first_bytes(staged, found, sizeof *found) && dtc_mpi_outbox_knows(found);
}

static inline int is_announced(const struct staged *staged, const MPI_Status *status, struct dtc_mpi_announcement *found)
{
    return __builtin_expect(dtc_mpi_outbox_is_open, 0) && find_announcement(staged, status, found);
}

/* Has the MPI unpack bytes of the host into elements of the host that dtc cannot unpack, by a message to itself: MPI_Unpack takes whole elements
   alone. */
static int unpack_to_host(const struct staged *staged, const void *bytes, int64_t length, void *memory)
{
    /* Threads may do so at once. */
    static int last_tag;
    int tag = (int)((unsigned)__atomic_add_fetch(&last_tag, 1, __ATOMIC_RELAXED) % (1 << 15));
    return PMPI_Sendrecv(bytes, (int)length, MPI_PACKED, 0, tag, memory, (int)staged->elements, staged->duplicate, 0, tag, own_communicator,
                         MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

/* The same into elements anywhere: those on a GPU are brought to the host before, as they lie. */
static int unpack_by_mpi(const struct staged *staged, const void *bytes, int64_t length)
{
    struct span span;
    if (staged->elements > INT32_MAX || !span_of(&span, staged->elements, staged->duplicate)) return 0;
    unsigned char *first = (unsigned char *)((uintptr_t)staged->memory + (uintptr_t)span.low);
    struct place place = place_of(first);
    if (place.kind != DTC_MEMORY_DEVICE) return unpack_to_host(staged, bytes, length, staged->memory);
    struct dtc_mpi_block *block = dtc_mpi_staging_take(DTC_MPI_HOST, 0, span.length);
    if (!block) return 0;
    dtc_transfer transfer = transfer_of(first, place, block);
    struct dtc_mpi_move move = {
        .direction = DTC_MPI_PACKS,
        .type = byte_plan->type,
        .memory = first,
        .elements = span.length,
        .packed = block->memory,
        .bytes = span.length,
        .transfer = &transfer,
    };
    int done = dtc_mpi_move(&move) && unpack_to_host(staged, bytes, length, (void *)((uintptr_t)block->memory - (uintptr_t)span.low));
    move.direction = DTC_MPI_UNPACKS;
    done = done && dtc_mpi_move(&move);
    dtc_mpi_staging_give(block);
    return done;
}

static int unpack_into(const struct moved *elements, const void *packed, int64_t bytes, dtc_transfer transfer)
{
    struct dtc_mpi_move move = {
        .direction = DTC_MPI_UNPACKS,
        .type = elements->plan->type,
        .memory = elements->memory,
        .elements = elements->elements,
        .packed = (void *)packed,
        .bytes = bytes,
        .transfer = &transfer,
    };
    return dtc_mpi_move(&move);
}

/* Into elements that the GPU does not reach which has opened the sender's memory, or that the MPI unpacks. */
static int unpack_through_host(const struct staged *staged, const void *packed, int64_t bytes, dtc_transfer transfer)
{
    void *host = malloc((size_t)bytes);
    if (!host) return 0;
    struct moved copied = {byte_plan, (unsigned char *)host, bytes, bytes};
    struct moved elements = {staged->plan, (unsigned char *)staged->memory, staged->elements, bytes};
    dtc_transfer to_host = transfer, from_host = transfer;
    to_host.memory = from_host.packed = DTC_MEMORY_HOST;
    to_host.memory_device = from_host.packed_device = 0;
    int done = unpack_into(&copied, packed, bytes, to_host) &&
               (staged->by_mpi ? unpack_by_mpi(staged, host, bytes) : unpack_into(&elements, host, bytes, from_host));
    free(host);
    return done;
}

/* Reads a message from the memory of its sender, which GPU `device` of this process has opened. */
static int unpack_announced(const struct staged *staged, const void *packed, int32_t device, int64_t bytes)
{
    dtc_transfer transfer = staged->transfer;
    transfer.packed = DTC_MEMORY_DEVICE;
    transfer.packed_device = device;
    if (staged->lying.plan) {
        transfer.memory = DTC_MEMORY_HOST;
        transfer.memory_device = 0;
        return unpack_into(&staged->lying, packed, bytes, transfer) && move_staged(staged, DTC_MPI_UNPACKS, staged->bytes);
    }
    int is_elsewhere = transfer.memory == DTC_MEMORY_DEVICE && transfer.memory_device != device;
    if (staged->by_mpi || is_elsewhere) return unpack_through_host(staged, packed, bytes, transfer);
    struct moved elements = {staged->plan, (unsigned char *)staged->memory, staged->elements, bytes};
    return unpack_into(&elements, packed, bytes, transfer);
}

/* Reads an announced message; the code of the call. */
static __attribute__((noinline)) int read_announced(struct staged *staged, const struct dtc_mpi_announcement *announcement)
{
    int32_t device = dtc_mpi_outbox_device(announcement);
    int fits = announcement->bytes <= (staged->lying.plan ? staged->lying.bytes : staged->bytes), done = 0;
    struct dtc_mpi_import *import =
        fits ? dtc_mpi_import_take(announcement->process, 0, announcement->landing, announcement->name, device) : NULL;
    if (import && import->memory) done = unpack_announced(staged, import->memory, device, announcement->bytes);
    if (import) dtc_mpi_import_give(import);
    dtc_mpi_outbox_read(announcement);
    if (!fits) PMPI_Comm_call_errhandler(staged->communicator, MPI_ERR_TRUNCATE);
    if (!done) return fits ? fail(MPI_ERR_OTHER) : MPI_ERR_TRUNCATE;
    staged->announced = announcement->bytes;
    dtc_mpi_count(DTC_MPI_RECEIVED, announcement->bytes);
    dtc_mpi_count(DTC_MPI_READ, announcement->bytes);
    return MPI_SUCCESS;
}

/* Puts the length of a message into the status of its announcement. */
static void tell_length(MPI_Status *status, int64_t bytes)
{
    if (status != MPI_STATUS_IGNORE) PMPI_Status_set_elements_x(status, MPI_BYTE, bytes);
}

/* After a message came through the MPI: tells the processes that ask whether the GPU that it was for opens their memory. */
static __attribute__((noinline)) void answer(const struct staged *staged)
{
    if (!dtc_mpi_outbox_is_asked()) return;
    struct place place = {staged->transfer.memory, staged->transfer.memory_device};
    if (!place.kind) place = place_of(staged->memory);
    if (place.kind == DTC_MEMORY_DEVICE) dtc_mpi_outbox_answer(place.device);
}

/* After a probe that has found a message: the status tells its length. */
static __attribute__((noinline)) void tell_probed(MPI_Status *status, MPI_Comm communicator)
{
    int counted = MPI_UNDEFINED;
    if (status == MPI_STATUS_IGNORE || PMPI_Get_count(status, MPI_PACKED, &counted) != MPI_SUCCESS) return;
    int64_t bytes = dtc_mpi_outbox_bytes_of(world_rank(status->MPI_SOURCE, communicator), status->MPI_TAG, counted);
    if (bytes >= 0) tell_length(status, bytes);
}

#define WRAP_PROBED(name, count, shape, found)                                                                                   \
    static int wrap_##name(ARGUMENTS_##shape(PARAMETER, count))                                                                   \
    {                                                                                                                              \
        int result = mpi.name(ARGUMENTS_##shape(ARGUMENT, count));                                                                \
        if (__builtin_expect(dtc_mpi_outbox_is_open, 0) && result == MPI_SUCCESS && found) tell_probed(status, communicator);     \
        return result;                                                                                                             \
    }

#define WRAP_PROBE(name, count) WRAP_PROBED(name, count, PROBE, 1)
#define WRAP_IPROBE(name, count) WRAP_PROBED(name, count, IPROBE, *flag)
#define WRAP_MPROBE(name, count) WRAP_PROBED(name, count, MPROBE, 1)
#define WRAP_IMPROBE(name, count) WRAP_PROBED(name, count, IMPROBE, *flag)

#endif
