// Queues of message matching. A queue is a header, the envelopes of messages and the patterns of receives, and the handles of both;
// each list has room for `capacity` entries; the header says how many there are. Envelope: source << 32 | tag. In a pattern, the
// highest bit of either half stands for any.

struct alignas(64) Header {
    // Entries of both lists.
    u32 messages, receives;
    // Of the last call: pairs, the faults that it found, and receives that were there before it.
    u32 matched, status, examined;
};

enum : u32 { ANY = 1u << 31, NONE = ~0u };
// No message has this envelope.
enum : u64 { TAKEN = ~0ull };
enum : u32 { OVERFLOWN = 1, UNEXPECTED = 2, WILDCARD = 4, RANGE = 8 };

struct Queue {
    Header *header;
    u64 *messages, *receives;
    u32 *message_handles, *receive_handles;
    // The receive's handle, and that of its message or NONE.
    uint2 *pairs;
};

static __device__ __forceinline__ Queue queue_of(u8 *queues, u8 *matches, u64 capacity, u64 stride, u32 number)
{
    Queue queue;
    queue.header = (Header *)(queues + number * stride);
    queue.messages = (u64 *)(queue.header + 1);
    queue.receives = queue.messages + capacity;
    queue.message_handles = (u32 *)(queue.receives + capacity);
    queue.receive_handles = queue.message_handles + capacity;
    queue.pairs = (uint2 *)matches + number * capacity;
    return queue;
}
{%- if wildcards != "none" %}

// Kinds of patterns: {% if wildcards == "both" %}bit 0 is any source, and bit 1 any tag{% else %}bit 0 is any tag{% endif %}.
static __device__ __forceinline__ u32 kind_of(u64 pattern)
{
    return {% if wildcards == "both" %}(u32)(pattern >> 63) | ((u32)pattern >> 31) << 1{% else %}(u32)pattern >> 31{% endif %};
}
{%- endif %}
{%- if checked %}

// Whether a message has numbers that no message may have.
static __device__ __forceinline__ bool out_of_range(u64 envelope)
{
    return (((u32)(envelope >> 32) | (u32)envelope) & ANY) != 0;
}

// Whether a receive has a wildcard that the program promised not to use.
static __device__ __forceinline__ bool forbidden(u64 pattern)
{
    return {% if wildcards == "both" %}false{% elif wildcards == "tag" %}((u32)(pattern >> 32) & ANY) != 0{% else %}(((u32)(pattern >> 32) | (u32)pattern) & ANY) != 0{% endif %};
}
{%- endif %}

// Moves the entries that are kept to the head of their list, in order.
template <class Keep>
static __device__ __forceinline__ void compact(u64 *entries, u32 *handles, u32 count, u32 *totals, Keep keep)
{
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 kept = 0;
    for (u32 base = 0; base < count; base += {{ threads }}) {
        const u32 at = base + threadIdx.x;
        const bool stays = at < count && keep(at);
        u64 entry = 0;
        u32 handle = 0;
        if (stays) {
            entry = entries[at];
            handle = handles[at];
        }
        const u32 votes = __ballot_sync(~0u, stays);
        if (lane == 0)
            totals[warp] = (u32)__popc(votes);
        // All of these are loaded before one is overwritten.
        __syncthreads();
        u32 to = kept + (u32)__popc(votes & ((1u << lane) - 1));
        for (u32 other = 0; other < {{ threads // 32 }}; other++) {
            to += other < warp ? totals[other] : 0;
            kept += totals[other];
        }
        if (stays && to != at) {
            entries[to] = entry;
            handles[to] = handle;
        }
        __syncthreads();
    }
}
