// The service: a kernel that stays. Its blocks share the queues; the first warp of a block looks for entries, and matches them alone
// where they are few and the lists are short. Else the whole block takes a share of the ring and matches as `dtc_match` does.
//
// The order in which messages and receives come does not matter to the pairs, so they have rings of their own: a full list of messages
// never holds back the receives that would empty it.

struct Serving {
    // Where the pairs of the queues lie in the memory of the service.
    u64 pairs;
    // Nanoseconds without work after which the service ends, and that a reserved slot may take to be filled.
    u64 idle, patience;
};

enum : u32 { END = ~0u };
// Why the service ends.
enum : u32 { STOP = 1, IDLE = 2 };

// What the first warp knows of its queues. All lanes have the same values.
struct ServedQueue {
    u32 queue;
    // Entries of the lists, and slots that were taken from the rings.
    u32 count[2], taken[2];
    // The lists are in shared memory.
    bool near;
    // The rings are closed.
    bool closing;
    // Polls in a row that found nothing, and batches.
    u32 polls, batches;
    // There was work since the clock was read.
    bool worked;
    u32 beat;
    // When there was work last, here or elsewhere, and when the other blocks were told.
    u64 since, told;
};

// Loads of a slot. Its words are of one turn if it is filled.
static __device__ __forceinline__ bool filled(const dtc_matching_port &port, u32 ring, u32 ticket, u64 &bits, u32 &handle)
{
    const dtc_matching_slot *const slot = dtc_matching_slot_of(port, ring, ticket);
    const u64 source = dtc_matching_load(&slot->source), tag = dtc_matching_load(&slot->tag);
    const u64 last = dtc_matching_load(&slot->handle);
    bits = source << 32 | (u32)tag;
    handle = (u32)last;
    const u32 turn = ticket + 1;
    return source >> 32 == turn && tag >> 32 == turn && last >> 32 == turn;
}

// One thread: slots that were read may be reserved again.
static __device__ __forceinline__ void free_slots(const dtc_matching_port &port, u32 ring, u32 count)
{
    if (count == 0)
        return;
    dtc_matching_ring *const one = dtc_matching_ring_of(port, ring);
    one->taken += count;
    dtc_matching_add_room(port, one, (int)count);
}

static __device__ __forceinline__ void tell(const dtc_matching_port &port, u32 message, u32 receive)
{
    dtc_matching_store(dtc_matching_outcome_of(port, DTC_MATCHING_MESSAGES, message), DTC_MATCHING_MATCHED | receive);
    dtc_matching_store(dtc_matching_outcome_of(port, DTC_MATCHING_RECEIVES, receive), DTC_MATCHING_MATCHED | message);
}

static __device__ __forceinline__ bool suits(u64 pattern, u64 envelope)
{
    const u32 source = (u32)(pattern >> 32), tag = (u32)pattern;
    return (source == (u32)(envelope >> 32) || source == ANY) && (tag == (u32)envelope || tag == ANY);
}

// The whole block: takes what is in both rings, up to an entry for each thread, and matches.
static __device__ __forceinline__ void serve_block(const Queue &queue, u32 number, const dtc_matching_port &port, u32 capacity,
                                                   Shared &shared)
{
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 count[2] = {queue.header->messages, queue.header->receives}, fresh[2];
    for (u32 kind = 0; kind < 2; kind++) {
        const u32 ring = 2 * number + kind, taken = dtc_matching_ring_of(port, ring)->taken;
        u64 bits = 0;
        u32 handle = 0;
        const bool there = threadIdx.x < capacity - count[kind] && threadIdx.x < port.slots &&
                           filled(port, ring, taken + threadIdx.x, bits, handle);
        const u32 votes = __ballot_sync(~0u, there);
        if (lane == 0)
            shared.totals[warp] = votes == ~0u ? 32 : (u32)__ffs((int)~votes) - 1;
        __syncthreads();
        // Those before the first that is not filled.
        u32 some = 0;
        for (u32 other = 0; other < {{ threads // 32 }}; other++) {
            some += shared.totals[other];
            if (shared.totals[other] < 32)
                break;
        }
        if (threadIdx.x < some) {
            (kind == 0 ? queue.messages : queue.receives)[count[kind] + threadIdx.x] = bits;
            (kind == 0 ? queue.message_handles : queue.receive_handles)[count[kind] + threadIdx.x] = handle;
        }
        fresh[kind] = some;
        count[kind] += some;
        __syncthreads();
    }
    // What the posters wrote before is visible to those who see the outcomes.
    dtc_matching_fence(port);
    __syncthreads();
    if (threadIdx.x == 0) {
        for (u32 kind = 0; kind < 2; kind++)
            free_slots(port, 2 * number + kind, fresh[kind]);
    }
    match_queue(queue, count[0], count[1], shared);
    for (u32 at = threadIdx.x; at < count[1]; at += {{ threads }}) {
        const uint2 pair = queue.pairs[at];
        if (pair.y != NONE)
            tell(port, pair.y, pair.x);
    }
    __syncthreads();
}

// The first warp comes to a queue.
static __device__ __forceinline__ void enter(ServedQueue &served, const Queue &queue, u32 number, const dtc_matching_port &port, Near &near)
{
    const u32 lane = threadIdx.x % 32;
    served.queue = number;
    served.count[0] = queue.header->messages;
    served.count[1] = queue.header->receives;
    for (u32 kind = 0; kind < 2; kind++)
        served.taken[kind] = dtc_matching_ring_of(port, 2 * number + kind)->taken;
    served.near = served.count[0] <= {{ near }} && served.count[1] <= {{ near }};
    for (u32 kind = 0; kind < 2 && served.near; kind++) {
        for (u32 at = lane; at < served.count[kind]; at += 32) {
            near.bits[kind][at] = (kind == 0 ? queue.messages : queue.receives)[at];
            near.handles[kind][at] = (kind == 0 ? queue.message_handles : queue.receive_handles)[at];
        }
    }
    __syncwarp();
}

// The first warp leaves its queue to others, or to itself later.
static __device__ __forceinline__ void leave(const ServedQueue &served, const Queue &queue, const Near &near)
{
    const u32 lane = threadIdx.x % 32;
    for (u32 kind = 0; kind < 2 && served.near; kind++) {
        for (u32 at = lane; at < served.count[kind]; at += 32) {
            (kind == 0 ? queue.messages : queue.receives)[at] = near.bits[kind][at];
            (kind == 0 ? queue.message_handles : queue.receive_handles)[at] = near.handles[kind][at];
        }
    }
    if (lane == 0 && served.near) {
        queue.header->messages = served.count[0];
        queue.header->receives = served.count[1];
    }
    __syncwarp();
}

// The first warp: matches one entry with the other list, or adds it to its own.
static __device__ __forceinline__ void serve_entry(ServedQueue &served, const dtc_matching_port &port, u32 kind, u64 bits, u32 handle,
                                                   Near &near)
{
    const u32 lane = threadIdx.x % 32, other = 1 - kind;
    u32 found = NONE;
    for (u32 base = 0; base < served.count[other] && found == NONE; base += 32) {
        const u32 at = base + lane;
        const u64 theirs = near.bits[other][at];
        const bool hit = at < served.count[other] && suits(kind == 0 ? theirs : bits, kind == 0 ? bits : theirs);
        const u32 votes = __ballot_sync(~0u, hit);
        if (votes != 0)
            found = base + (u32)__ffs((int)votes) - 1;
    }
    if (found == NONE) {
        if (lane == 0) {
            near.bits[kind][served.count[kind]] = bits;
            near.handles[kind][served.count[kind]] = handle;
        }
        served.count[kind]++;
        __syncwarp();
        return;
    }
    if (lane == 0) {
        const u32 theirs = near.handles[other][found];
        tell(port, kind == 0 ? handle : theirs, kind == 0 ? theirs : handle);
    }
    // Those behind it move up.
    __syncwarp();
    served.count[other]--;
    for (u32 base = found / 32 * 32; base < served.count[other]; base += 32) {
        const u32 at = base + lane;
        const bool moves = at >= found && at < served.count[other];
        u64 entry = 0;
        u32 number = 0;
        if (moves) {
            entry = near.bits[other][at + 1];
            number = near.handles[other][at + 1];
        }
        __syncwarp();
        if (moves) {
            near.bits[other][at] = entry;
            near.handles[other][at] = number;
        }
        __syncwarp();
    }
}

// Closes the rings of the block's queues: what was reserved before is served, and nothing is reserved any more.
static __device__ __forceinline__ void close_rings(const dtc_matching_port &port, u32 queues)
{
    const u32 lane = threadIdx.x % 32;
    for (u32 queue = blockIdx.x + gridDim.x * (lane / 2); queue < queues; queue += gridDim.x * 16) {
        dtc_matching_ring *const ring = dtc_matching_ring_of(port, 2 * queue + lane % 2);
        const u64 state = port.system ? atomicOr_system(&ring->state, (u64)1) : atomicOr(&ring->state, (u64)1);
        ring->end = (u32)(state >> 32);
    }
    __syncwarp();
}

// Whether the queues of the block have nothing to wait for: a ring is empty, or its list full.
static __device__ __forceinline__ bool are_settled(const dtc_matching_port &port, u32 queues, u64 capacity, u8 *memory, u64 stride)
{
    const u32 lane = threadIdx.x % 32, kind = lane % 2;
    bool waits = false;
    for (u32 queue = blockIdx.x + gridDim.x * (lane / 2); queue < queues; queue += gridDim.x * 16) {
        const Header *const header = (const Header *)(memory + queue * stride);
        const dtc_matching_ring *const ring = dtc_matching_ring_of(port, 2 * queue + kind);
        waits |= (kind == 0 ? header->messages : header->receives) < capacity &&
                 ring->end != ring->taken;
    }
    return __ballot_sync(~0u, waits) == 0;
}

// The next queue of the block that has an entry, or END. Lanes look at 16 queues at a time.
static __device__ __forceinline__ u32 next_queue(const ServedQueue &served, const dtc_matching_port &port, u32 queues, u64 capacity, u8 *memory,
                                                 u64 stride)
{
    const u32 lane = threadIdx.x % 32, mine = (queues - blockIdx.x + gridDim.x - 1) / gridDim.x;
    const u32 here = (served.queue - blockIdx.x) / gridDim.x;
    // Those behind the current one come first, so that each has its turn.
    for (u32 base = 1; base <= mine; base += 16) {
        const u32 step = base + lane / 2, kind = lane % 2;
        const u32 queue = blockIdx.x + gridDim.x * ((here + step) % mine);
        bool there = false;
        if (step <= mine) {
            const Header *const header = (const Header *)(memory + queue * stride);
            u64 bits;
            u32 handle;
            there = (kind == 0 ? header->messages : header->receives) < capacity &&
                    filled(port, 2 * queue + kind, dtc_matching_ring_of(port, 2 * queue + kind)->taken, bits, handle);
        }
        const u32 votes = __ballot_sync(~0u, there);
        if (votes != 0)
            return blockIdx.x + gridDim.x * ((here + base + ((u32)__ffs((int)votes) - 1) / 2) % mine);
    }
    return END;
}

// The first warp: notes when there was work, and tells the other blocks, which end the service when there is none anywhere.
static __device__ __forceinline__ u64 read_clock(ServedQueue &served, const dtc_matching_port &port, const Serving &serving)
{
    u32 *const beat = &dtc_matching_control_of(port)->beat;
    const u64 now = __shfl_sync(~0u, dtc_matching_now(), 0);
    const u32 pulse = __shfl_sync(~0u, dtc_matching_load(beat), 0);
    if (served.worked || pulse != served.beat)
        served.since = now;
    served.beat = pulse;
    if (served.worked && now - served.told > serving.idle / 16) {
        served.told = now;
        served.beat++;
        if (threadIdx.x == 0)
            dtc_matching_store(beat, served.beat);
    }
    served.worked = false;
    return now;
}

// The first warp, alone: serves entries until the block is needed. Returns the queue to serve, or END.
static __device__ __forceinline__ u32 attend(ServedQueue &served, u8 *queues, u8 *pairs, u64 capacity, u64 stride, const dtc_matching_port &port,
                                             const Serving &serving, Near &near)
{
    const u32 lane = threadIdx.x % 32, count = port.communicators * port.partitions;
    dtc_matching_control *const control = dtc_matching_control_of(port);
    // It came to the queue and has not looked yet.
    bool came = false;
    for (;;) {
        const Queue queue = queue_of(queues, pairs, capacity, stride, served.queue);
        if (gridDim.x < count && !came && (served.batches % {{ turns }} == 0 || served.polls != 0)) {
            const u32 next = next_queue(served, port, count, capacity, queues, stride);
            if (next != END && next != served.queue) {
                leave(served, queue, near);
                enter(served, queue_of(queues, pairs, capacity, stride, next), next, port, near);
                came = true;
                continue;
            }
        }
        came = false;
        // Half of the lanes look at the messages, half at the receives.
        const u32 kind = lane / {{ polled }}, place = lane % {{ polled }};
        u64 bits;
        u32 handle;
        const u32 stop = dtc_matching_load(&control->stop);
        const bool there = filled(port, 2 * served.queue + kind, (kind == 0 ? served.taken[0] : served.taken[1]) + place, bits, handle);
        const u32 votes = __ballot_sync(~0u, there && place < port.slots);
        u32 fresh[2];
#pragma unroll
        for (u32 side = 0; side < 2; side++) {
            const u32 some = (u32)__ffs((int)~(votes >> side * {{ polled }} & {{ 2 ** polled - 1 }}u)) - 1;
            fresh[side] = min(some, (u32)capacity - served.count[side]);
        }
        if (fresh[0] + fresh[1] != 0) {
            served.polls = 0;
            served.batches++;
            served.worked = true;
            if (served.batches % 64 == 0)
                read_clock(served, port, serving);
            if (fresh[0] == {{ polled }} || fresh[1] == {{ polled }} || !served.near || served.count[0] + fresh[0] > {{ near }} ||
                served.count[1] + fresh[1] > {{ near }}) {
                leave(served, queue, near);
                return served.queue;
            }
            // What the posters wrote before is visible to those who see the outcomes.
            dtc_matching_fence(port);
#pragma unroll
            for (u32 side = 0; side < 2; side++) {
                for (u32 at = 0; at < fresh[side]; at++) {
                    const int from = (int)(side * {{ polled }} + at);
                    const u64 entry = __shfl_sync(~0u, bits, from);
                    serve_entry(served, port, side, entry, __shfl_sync(~0u, handle, from), near);
                }
                served.taken[side] += fresh[side];
                if (lane == 0)
                    free_slots(port, 2 * served.queue + side, fresh[side]);
            }
            __syncwarp();
        } else {
            served.polls++;
        }
        if (__shfl_sync(~0u, stop, 0) != 0 && !served.closing) {
            close_rings(port, count);
            served.closing = true;
            served.worked = true;
        }
        // The clock is read less often than the rings.
        if (served.polls % 16 != (served.closing ? 1 : 15))
            continue;
        const u64 now = read_clock(served, port, serving);
        if (served.closing) {
            leave(served, queue, near);
            const bool settled = are_settled(port, count, capacity, queues, stride);
            if (!settled && now - served.since <= serving.patience)
                continue;
            if (!settled && lane == 0)
                atomicAdd(&control->abandoned, 1u);
            return END;
        }
        if (now - served.since > serving.idle && lane == 0)
            atomicCAS(&control->stop, 0u, (u32)IDLE);
        if (served.polls > {{ eager }})
            __nanosleep({{ sleep }});
    }
}

extern "C" __global__ void __launch_bounds__({{ threads }})
dtc_serve(u8 *queues, u8 *service, const u8 *, u64 capacity, u64 stride, dtc_matching_port port, Serving serving)
{
    __shared__ Shared shared;
    // The queue that the first warp wants the block to serve, or END.
    __shared__ u32 order;
    port.memory = service;
    dtc_matching_control *const control = dtc_matching_control_of(port);
    const bool leads = threadIdx.x < 32;
    u8 *const pairs = service + serving.pairs;
    ServedQueue served = {};
    if (leads) {
        if (threadIdx.x == 0)
            atomicAdd(&control->running, 1u);
        served.since = served.told = __shfl_sync(~0u, dtc_matching_now(), 0);
        enter(served, queue_of(queues, pairs, capacity, stride, blockIdx.x), blockIdx.x, port, shared.near);
    }
    for (;;) {
        if (leads) {
            const u32 wanted = attend(served, queues, pairs, capacity, stride, port, serving, shared.near);
            if (threadIdx.x == 0)
                order = wanted;
        }
        __syncthreads();
        const u32 wanted = order;
        if (wanted == END)
            break;
        const Queue queue = queue_of(queues, pairs, capacity, stride, wanted);
        serve_block(queue, wanted, port, (u32)capacity, shared);
        if (leads)
            enter(served, queue, wanted, port, shared.near);
    }
    // The first warp has written all lists back.
    if (threadIdx.x == 0) {
        dtc_matching_fence(port);
        atomicAdd(&control->running, ~0u);
    }
}

// Entries of the host, for one ring; they are parameters, so that a graph may repeat the launch.
struct Batch {
    u32 ring, count;
    // Nanoseconds to wait for a free slot.
    u64 patience;
    u32 entries[{{ batch }}][3];
};

extern "C" __global__ void __launch_bounds__(32)
dtc_post(u8 *, u8 *service, const u8 *, u64, u64, dtc_matching_port port, const __grid_constant__ Batch batch)
{
    port.memory = service;
    const u32 lane = threadIdx.x, kind = batch.ring % 2;
    for (u32 at = lane; at < batch.count; at += 32)
        dtc_matching_store(dtc_matching_outcome_of(port, kind, batch.entries[at][2]), 0u);
    u64 since = dtc_matching_now();
    for (u32 done = 0; done < batch.count;) {
        u32 ticket = 0, some = 0;
        int status = DTC_MATCHING_DONE;
        bool late = false;
        if (lane == 0) {
            some = dtc_matching_reserve(port, batch.ring, batch.count - done, &ticket, &status);
            const u64 now = dtc_matching_now();
            late = status == DTC_MATCHING_STOPPED || now - since > batch.patience;
            if (some != 0)
                since = now;
            else if (!late)
                __nanosleep(500);
        }
        some = __shfl_sync(~0u, some, 0);
        if (some != 0) {
            ticket = __shfl_sync(~0u, ticket, 0);
            dtc_matching_fence(port);
            for (u32 at = lane; at < some; at += 32) {
                const u32 *const entry = batch.entries[done + at];
                dtc_matching_fill(port, batch.ring, ticket + at, entry[0], entry[1], entry[2]);
            }
            done += some;
        } else if (__shfl_sync(~0u, late, 0)) {
            const u32 reason = (u32)__shfl_sync(~0u, status, 0);
            for (u32 at = done + lane; at < batch.count; at += 32)
                dtc_matching_store(dtc_matching_outcome_of(port, kind, batch.entries[at][2]), DTC_MATCHING_REFUSED | reason);
            return;
        }
    }
}

extern "C" __global__ void __launch_bounds__(1)
dtc_await(u8 *, u8 *service, const u8 *, u64, u64, dtc_matching_port port, u32 kind, u32 handle, u64 patience)
{
    port.memory = service;
    u32 other;
    dtc_matching_wait(port, kind, handle, patience, &other);
}
