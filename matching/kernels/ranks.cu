// Matching without wildcards: the messages of one source and tag are a class, and its receives take them in turn. So a receive's message
// is that of its class with its rank, the number of receives of the class before it. A table in shared memory has the classes of a chunk
// of {{ chunk }} messages; receives come in windows of as many.

struct Ranks {
    uint2 chunk[{{ chunk }}];
    u32 handles[{{ chunk }}];
    // The first message of a class that came to its place in the table, plus 1.
    u32 founder[{{ places }}];
    // Messages of a class in the lower half, and in the upper one those of classes before it in the table.
    u32 count[{{ places }}];
    // Receives of the class so far, and the window of the last one, plus 1.
    u32 used[{{ places }}], window[{{ places }}];
    // The messages, class by class.
    unsigned short sorted[{{ chunk }}];
    // Messages that were taken, as bits.
    u32 taken[{{ chunk // 32 }}];
    u32 totals[{{ threads // 32 }}];
    u32 several;
};

static __device__ __forceinline__ u32 place_of(const uint2 &tuple)
{
    u32 hash = tuple.x * 0x9e3779b1u ^ tuple.y * 0x85ebca77u;
    hash = (hash ^ hash >> 15) * 0xc2b2ae3du;
    return (hash ^ hash >> 13) % {{ places }};
}

// The rank of every thread's entry among those of its class, in the order of threads; `counter` counts the entries of a class. All
// threads of the block take part, those without an entry with the place NONE. Whether a class has several entries is known.
static __device__ __forceinline__ u32 rank_of(u32 place, u32 *counter, bool several)
{
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 rank = 0;
    if (!several) {
        if (place != NONE)
            rank = counter[place]++;
        __syncthreads();
        return rank;
    }
    const u32 group = __match_any_sync(~0u, place);
    const u32 before = group & ((1u << lane) - 1);
    for (u32 turn = 0; turn < {{ threads // 32 }}; turn++) {
        if (turn == warp) {
            if (place != NONE)
                rank = counter[place] + (u32)__popc(before);
            __syncwarp();
            if (place != NONE && before == 0)
                counter[place] = rank + (u32)__popc(group);
        }
        __syncthreads();
    }
    return rank;
}

// Returns how many messages stay.
static __device__ __forceinline__ u32 match_ranks(const Queue &queue, u32 messages, u32 receives, Ranks &shared{% if checked %}, u32 &status{% endif %})
{
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 kept = 0;
    for (u32 start = 0; start < messages; start += {{ chunk }}) {
        const u32 at = start + threadIdx.x;
        const bool there = at < messages;
        // Everything of the chunk before has been read.
        __syncthreads();
        uint2 tuple = make_uint2(0, 0);
        if (there) {
            const u64 envelope = queue.messages[at];
            tuple = make_uint2((u32)envelope, (u32)(envelope >> 32));
            shared.chunk[threadIdx.x] = tuple;
            shared.handles[threadIdx.x] = queue.message_handles[at];
{%- if checked %}
            if (out_of_range(envelope))
                atomicOr(&status, RANGE);
{%- endif %}
        }
        for (u32 place = threadIdx.x; place < {{ places }}; place += {{ threads }})
            shared.founder[place] = shared.count[place] = shared.used[place] = shared.window[place] = 0;
        if (threadIdx.x < {{ chunk // 32 }})
            shared.taken[threadIdx.x] = 0;
        if (threadIdx.x == 0)
            shared.several = 0;
        __syncthreads();

        u32 place = NONE;
        if (there{% if checked %} && ((tuple.x | tuple.y) & ANY) == 0{% endif %}) {
            place = place_of(tuple);
            for (;;) {
                const u32 founder = atomicCAS(&shared.founder[place], 0u, threadIdx.x + 1);
                if (founder == 0)
                    break;
                const uint2 other = shared.chunk[founder - 1];
                if (other.x == tuple.x && other.y == tuple.y) {
                    atomicOr(&shared.several, 1u);
                    break;
                }
                place = (place + 1) % {{ places }};
            }
        }
        __syncthreads();
        const bool several = shared.several != 0;
        const u32 rank = rank_of(place, shared.count, several);
        if (several) {
            // Where the messages of a class begin: sums of the counts before.
            u32 counts[{{ places // threads }}], sum = 0;
#pragma unroll
            for (u32 part = 0; part < {{ places // threads }}; part++) {
                counts[part] = shared.count[threadIdx.x * {{ places // threads }} + part];
                sum += counts[part];
            }
            u32 through = sum;
            for (u32 distance = 1; distance < 32; distance *= 2) {
                const u32 other = __shfl_up_sync(~0u, through, distance);
                through += lane >= distance ? other : 0;
            }
            if (lane == 31)
                shared.totals[warp] = through;
            __syncthreads();
            u32 before = through - sum;
            for (u32 other = 0; other < warp; other++)
                before += shared.totals[other];
#pragma unroll
            for (u32 part = 0; part < {{ places // threads }}; part++) {
                shared.count[threadIdx.x * {{ places // threads }} + part] = counts[part] | before << 16;
                before += counts[part];
            }
            __syncthreads();
            if (place != NONE)
                shared.sorted[(shared.count[place] >> 16) + rank] = (unsigned short)threadIdx.x;
        }

        for (u32 base = 0; base < receives; base += {{ threads }}) {
            const u32 receive = base + threadIdx.x;
            u32 wanted = NONE;
            if (threadIdx.x == 0)
                shared.several = 0;
            __syncthreads();
            // A receive of an earlier chunk's message is done.
            if (receive < receives && (start == 0 || queue.pairs[receive].y == NONE)) {
                const u64 pattern = queue.receives[receive];
                const uint2 one = make_uint2((u32)pattern, (u32)(pattern >> 32));
                u32 probe = place_of(one);
                for (u32 founder = shared.founder[probe]; founder != 0; founder = shared.founder[probe]) {
                    const uint2 other = shared.chunk[founder - 1];
                    if (other.x == one.x && other.y == one.y) {
                        wanted = probe;
                        break;
                    }
                    probe = (probe + 1) % {{ places }};
                }
            }
            // Receives of a window that want the same class have to be ranked one after the other.
            if (wanted != NONE && atomicExch(&shared.window[wanted], base + 1) == base + 1)
                atomicOr(&shared.several, 1u);
            __syncthreads();
            const u32 turn = rank_of(wanted, shared.used, shared.several != 0);
            if (wanted != NONE && turn < (shared.count[wanted] & 0xffff)) {
                const u32 message = several ? shared.sorted[(shared.count[wanted] >> 16) + turn] : shared.founder[wanted] - 1;
                queue.pairs[receive].y = shared.handles[message];
                atomicOr(&shared.taken[message / 32], 1u << message % 32);
            }
        }
        __syncthreads();

        const bool stays = there && (shared.taken[warp] >> lane & 1) == 0;
        const u32 votes = __ballot_sync(~0u, stays);
        if (lane == 0)
            shared.totals[warp] = (u32)__popc(votes);
        __syncthreads();
{%- if unexpected or checked %}
        u32 to = kept + (u32)__popc(votes & ((1u << lane) - 1));
        for (u32 other = 0; other < warp; other++)
            to += shared.totals[other];
        // The chunk is in registers and shared memory, so its entries may be overwritten.
        if (stays && to != at) {
            queue.messages[to] = (u64)tuple.y << 32 | tuple.x;
            queue.message_handles[to] = shared.handles[threadIdx.x];
        }
{%- endif %}
        for (u32 other = 0; other < {{ threads // 32 }}; other++)
            kept += shared.totals[other];
    }
    return kept;
}
