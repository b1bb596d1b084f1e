// Matching without wildcards and ordering: two tables in shared memory. A receive goes to its place in the first or, if another is
// there, to that in the second; else it waits for the next iteration. A message takes a receive of its source and tag from either place.
// Receives that are left in the tables when all messages have been there have no message.
//
// An iteration takes two receives of a source and tag. A queue where more than a quarter of the first receives have to wait repeats
// few of them, and is matched by ranks.
//
// The second table has a fifth of the first, as in Klenk et al. 2017, section VI.C.

struct Tables {
    uint2 chunk[{{ chunk }}];
    // A receive of the chunk, plus 1, or 0.
    u32 places[{{ first_places + second_places }}];
    u32 matched, waiting;
};

// Returned for a queue that is to be matched by ranks.
enum : u32 { REPEATED = ~0u };

// Jenkins's hash of 32 bits with six shifts.
static __device__ __forceinline__ u32 hash_of(const uint2 &tuple)
{
    u32 hash = tuple.x ^ tuple.y * 0x9e3779b1u;
    hash = (hash + 0x7ed55d16u) + (hash << 12);
    hash = (hash ^ 0xc761c23cu) ^ (hash >> 19);
    hash = (hash + 0x165667b1u) + (hash << 5);
    hash = (hash + 0xd3a2646cu) ^ (hash << 9);
    hash = (hash + 0xfd7046c5u) + (hash << 3);
    return (hash ^ 0xb55a4f09u) ^ (hash >> 16);
}

static __device__ __forceinline__ u32 first_place(u32 hash)
{
    return __umulhi(hash, {{ first_places }}u);
}

static __device__ __forceinline__ u32 second_place(u32 hash)
{
    return {{ first_places }} + hash * 0x85ebca77u % {{ second_places }};
}

// Takes the receive from a place if it has this tuple; returns it plus 1.
static __device__ __forceinline__ u32 taken_from(Tables &tables, u32 place, const uint2 &tuple)
{
    const u32 receive = tables.places[place];
    if (receive == 0)
        return 0;
    const uint2 other = tables.chunk[receive - 1];
    if (other.x != tuple.x || other.y != tuple.y)
        return 0;
    return atomicCAS(&tables.places[place], receive, 0u) == receive ? receive : 0;
}

// Returns how many messages stay, or REPEATED. Those that were taken have become TAKEN.
static __device__ __forceinline__ u32 match_hash(const Queue &queue, u32 messages, u32 receives, Tables &shared)
{
    if (threadIdx.x == 0)
        shared.matched = 0;
    // No message has been taken.
    bool untouched = true;
    for (u32 start = 0; start < receives; start += {{ chunk }}) {
        const u32 at = start + threadIdx.x;
        bool waits = at < receives;
        u32 hash = 0;
        __syncthreads();
        if (waits) {
            const u64 pattern = queue.receives[at];
            const uint2 tuple = make_uint2((u32)pattern, (u32)(pattern >> 32));
            shared.chunk[threadIdx.x] = tuple;
            hash = hash_of(tuple);
        }
        for (;;) {
            for (u32 place = threadIdx.x; place < {{ first_places + second_places }}; place += {{ threads }})
                shared.places[place] = 0;
            if (threadIdx.x == 0)
                shared.waiting = 0;
            __syncthreads();
            if (waits)
                waits = atomicCAS(&shared.places[first_place(hash)], 0u, threadIdx.x + 1) != 0 &&
                        atomicCAS(&shared.places[second_place(hash)], 0u, threadIdx.x + 1) != 0;
            const u32 left = (u32)__popc(__ballot_sync(~0u, waits));
            if (left != 0 && threadIdx.x % 32 == 0)
                atomicAdd(&shared.waiting, left);
            __syncthreads();
            const bool again = shared.waiting != 0;
            if (untouched && shared.waiting > min(receives, {{ chunk }}u) / 4)
                return REPEATED;
            untouched = false;
            u32 found = 0;
            for (u32 message = threadIdx.x; message < messages; message += {{ threads }}) {
                const u64 envelope = queue.messages[message];
                if (envelope == TAKEN)
                    continue;
                const uint2 tuple = make_uint2((u32)envelope, (u32)(envelope >> 32));
                const u32 theirs = hash_of(tuple);
                u32 receive = taken_from(shared, first_place(theirs), tuple);
                if (receive == 0)
                    receive = taken_from(shared, second_place(theirs), tuple);
                if (receive != 0) {
                    queue.pairs[start + receive - 1].y = queue.message_handles[message];
                    queue.messages[message] = TAKEN;
                    found++;
                }
            }
            for (u32 distance = 16; distance != 0; distance /= 2)
                found += __shfl_xor_sync(~0u, found, (int)distance);
            if (threadIdx.x % 32 == 0 && found != 0)
                atomicAdd(&shared.matched, found);
            __syncthreads();
            if (!again)
                break;
        }
    }
    __syncthreads();
    return messages - shared.matched;
}
