// Matching with wildcards in long queues. A message is in one class for each kind of pattern that fits it: the messages of its source and tag, of its
// tag, of its source, and all. The pattern of a receive names one class, whose messages are the receive's candidates, in order.
//
// All receives of a window propose to candidates at once. A message holds the first of the receives that proposed to it; the thread of a
// proposal that lost goes on with the loser's next candidate (Gale and Shapley). Both sides rank each other by their places in the
// queues, so a single matching is stable, whatever the order of the proposals: that of MPI.
//
// Where messages are of few sources and tags, or where losers lose again and again, the rest is left to the matrix: a long chain of proposals
// is made one after the other.
//
// As many receives of a pattern as came before take earlier candidates than this one, so it begins behind that many.
//
// Chunks of {{ chunk }} messages come one after the other, as if the messages of one had arrived before those of the next.

{%- set kinds = 4 if wildcards == "both" else 2 %}
{%- set tables = 3 if wildcards == "both" else 2 %}

// What the messages of a class of this kind have in common, with 0 for the rest.
static __device__ __forceinline__ uint2 key_of(const uint2 &tuple, u32 kind)
{
    return {% if wildcards == "both" %}make_uint2(kind & 2 ? 0 : tuple.x, kind & 1 ? 0 : tuple.y){% else %}make_uint2(kind & 1 ? 0 : tuple.x, tuple.y){% endif %};
}

struct Classes {
    uint2 chunk[{{ chunk }}];
    // The proposal that a message holds, NONE, or 0 if it is gone. A proposal: receive of the window, plus 1, << 13 | candidate.
    u32 holder[{{ chunk }}];
    // A class: the message that founded it, plus 1; << 11, its messages; << 22, where its candidates begin among those of its kind.
    u32 places[{{ tables }}][{{ class_places }}];
    // The messages, class by class, {{ chunk + 1 }} entries for a kind. The first of a class is marked, and so is the end.
    unsigned short candidates[{{ kinds * (chunk + 1) + ahead }}];
    // Receives of each class so far, by founder; behind those of the tables, of all messages.
    unsigned short used[{{ tables * chunk + 1 }}];
    u32 sums[{{ threads // 32 }}];
    // Classes of each kind.
    u32 founders[{{ tables }}];
};

// The first candidate of a class.
enum : u32 { FIRST = 1u << 15 };

// The place where the search for a key begins.
static __device__ __forceinline__ u32 place_of_class(const uint2 &key)
{
    u32 hash = key.x * 0x9e3779b1u ^ key.y * 0x85ebca77u;
    hash = (hash ^ hash >> 15) * 0xc2b2ae3du;
    return __umulhi(hash ^ hash >> 13, {{ class_places }}u);
}

static __device__ __forceinline__ bool has_key(const Classes &shared, u32 kind, u32 word, const uint2 &key)
{
    const uint2 other = key_of(shared.chunk[(word & 0x7ff) - 1], kind);
    return other.x == key.x && other.y == key.y;
}

// One warp: replaces each number by how many entries before it have the same one. `count` adds to the entries of a number, and returns
// how many there were.
template <class Number, class Count>
static __device__ __forceinline__ void rank_entries(Number *entries, u32 size, Count count)
{
    const u32 lane = threadIdx.x % 32, below = (1u << lane) - 1;
    const u32 none = (Number)NONE;
    u32 number = lane < size ? entries[lane] : none;
    u32 group = __match_any_sync(~0u, number);
    for (u32 base = 0; base < size; base += 32) {
        const u32 at = base + lane, next = at + 32;
        const u32 number_ahead = next < size ? entries[next] : none;
        u32 before = 0;
        if (number != none && (group & below) == 0)
            before = count(number, (u32)__popc(group));
        const u32 group_ahead = __match_any_sync(~0u, number_ahead);
        before = __shfl_sync(~0u, before, __ffs((int)group) - 1);
        if (at < size)
            entries[at] = (Number)(before + (u32)__popc(group & below));
        number = number_ahead;
        group = group_ahead;
        __syncwarp();
    }
}

// What became of the receives that a thread proposed for.
enum Proposed { HELD, REFUSED, GIVEN_UP };

// Makes proposals, beginning with this one, until none is left over, a receive has run out of candidates, or it takes too long.
static __device__ __forceinline__ Proposed propose(Classes &shared, u32 proposal)
{
    u32 candidate = shared.candidates[proposal & 0x1fff];
    for (u32 chain = 0; chain < {{ longest_chain }};) {
        const u32 held = atomicMin(&shared.holder[candidate & {{ chunk - 1 }}], proposal);
        const u32 lost = max(held, proposal);
        // The message was free.
        if (lost == NONE)
            return HELD;
        proposal = lost;
        // A message that holds an earlier receive never takes this one.
        bool found = false;
        while (!found && chain++ < {{ longest_chain }}) {
            u32 next[{{ ahead }}], holder[{{ ahead }}];
#pragma unroll
            for (u32 step = 0; step < {{ ahead }}; step++)
                next[step] = shared.candidates[(proposal & 0x1fff) + 1 + step];
            // Others hold earlier receives meanwhile, which the next proposal finds out.
#pragma unroll
            for (u32 step = 0; step < {{ ahead }}; step++)
                holder[step] = *(volatile u32 *)&shared.holder[next[step] & {{ chunk - 1 }}];
            u32 steps = {{ ahead }};
#pragma unroll
            for (u32 step = {{ ahead }}; step-- > 0;) {
                if ((next[step] & FIRST) != 0 || holder[step] > proposal) {
                    steps = step + 1;
                    candidate = next[step];
                    found = true;
                }
            }
            proposal += steps;
        }
        if (found && (candidate & FIRST) != 0)
            return REFUSED;
    }
    return GIVEN_UP;
}

// Returns how many messages stay of those before `start`, where it ends. `kinds` has a bit for each kind of pattern that a receive has. If
// messages are left, `gone` has a bit for each message from `start` on that has been taken.
static __device__ __forceinline__ u32 match_classes(const Queue &queue, u32 messages, u32 receives, u32 kinds, u32 &start, u32 *gone, Classes &shared{% if checked %}, u32 &status{% endif %})
{
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 kept = 0;
    // Receives before this one have their messages.
    u32 head = 0;
    for (start = 0; start < messages; start += {{ chunk }}) {
        const u32 at = start + threadIdx.x, count = min(messages - start, {{ chunk }}u);
        const bool there = threadIdx.x < count;
        // Everything of the chunk before has been read.
        __syncthreads();
        uint2 tuple = make_uint2(0, 0);
        u32 handle = 0;
        if (there) {
            const u64 envelope = queue.messages[at];
            tuple = make_uint2((u32)envelope, (u32)(envelope >> 32));
            handle = queue.message_handles[at];
            shared.chunk[threadIdx.x] = tuple;
{%- if checked %}
            if (out_of_range(envelope))
                atomicOr(&status, RANGE);
{%- endif %}
        }
        bool free = there{% if checked %} && ((tuple.x | tuple.y) & ANY) == 0{% endif %};
#pragma unroll
        for (u32 kind = 0; kind < {{ tables }}; kind++) {
            if ((kinds >> kind & 1) == 0)
                continue;
            for (u32 place = threadIdx.x; place < {{ class_places }}; place += {{ threads }})
                shared.places[kind][place] = 0;
            shared.used[kind * {{ chunk }} + threadIdx.x] = 0;
        }
        if (threadIdx.x < {{ tables }})
            shared.founders[threadIdx.x] = 0;
        if (threadIdx.x < {{ kinds }})
            shared.candidates[threadIdx.x * {{ chunk + 1 }} + count] = FIRST;
{%- if wildcards == "both" %}
        if (there)
            shared.candidates[{{ 3 * (chunk + 1) }} + threadIdx.x] = (unsigned short)(threadIdx.x | (threadIdx.x == 0 ? FIRST : 0));
        if (threadIdx.x == 0)
            shared.used[{{ tables * chunk }}] = 0;
{%- endif %}
        __syncthreads();

        u32 place[{{ tables }}];
        bool founded[{{ tables }}];
#pragma unroll
        for (u32 kind = 0; kind < {{ tables }}; kind++) {
            founded[kind] = false;
            place[kind] = NONE;
            if ((kinds >> kind & 1) == 0)
                continue;
            if (free) {
                const uint2 key = key_of(tuple, kind);
                place[kind] = place_of_class(key);
                for (;;) {
                    const u32 word = atomicCAS(&shared.places[kind][place[kind]], 0u, threadIdx.x + 1);
                    founded[kind] = word == 0;
                    if (word == 0 || has_key(shared, kind, word, key))
                        break;
                    place[kind] = place[kind] + 1 == {{ class_places }} ? 0 : place[kind] + 1;
                }
            }
            // Its rank comes here, and then a candidate.
            if (there)
                shared.candidates[kind * {{ chunk + 1 }} + threadIdx.x] = (unsigned short)place[kind];
        }
#pragma unroll
        for (u32 kind = 0; kind < {{ tables }}; kind++) {
            const u32 founders = __ballot_sync(~0u, founded[kind]);
            if (lane == 0)
                atomicAdd(&shared.founders[kind], (u32)__popc(founders));
        }
        __syncthreads();
        bool crowded = false;
#pragma unroll
        for (u32 kind = 0; kind < {{ tables }}; kind++)
            crowded |= (kinds >> kind & 1) != 0 && shared.founders[kind] * {{ crowd }} < count;
        if (crowded) {
            if (lane == 0)
                gone[warp] = 0;
            return kept;
        }

        bool ordered = false, taken = false;
        for (u32 base = head; base < receives; base += {{ threads }}) {
            const u32 receive = base + threadIdx.x;
            u32 kind = 0, named = 0, user = NONE;
            Proposed proposed = HELD;
            // A receive of an earlier chunk's message is done.
            if (receive < receives && (start == 0 || queue.pairs[receive].y == NONE)) {
                const u64 pattern = queue.receives[receive];
                kind = kind_of(pattern);
                proposed = REFUSED;
{%- if wildcards == "both" %}
                if (kind == 3) {
                    user = {{ tables * chunk }};
                } else {
{%- else %}
                if ({% if checked %}!forbidden(pattern){% else %}true{% endif %}) {
{%- endif %}
                    const uint2 key = key_of(make_uint2((u32)pattern, (u32)(pattern >> 32)), kind);
                    named = place_of_class(key);
                    for (u32 word = shared.places[kind][named]; word != 0; word = shared.places[kind][named]) {
                        if (has_key(shared, kind, word, key)) {
                            user = kind * {{ chunk }} + (word & 0x7ff) - 1;
                            break;
                        }
                        named = named + 1 == {{ class_places }} ? 0 : named + 1;
                    }
                }
            }
            // Its rank comes here, and then the proposal that this thread's message holds.
            shared.holder[threadIdx.x] = user;
            if (!__syncthreads_or(user != NONE)) {
                if (!__syncthreads_or(proposed == REFUSED) && base == head)
                    head += {{ threads }};
                continue;
            }
            if (warp == {{ tables }}) {
                rank_entries(shared.holder, min(receives - base, {{ threads }}u), [&](u32 number, u32 more) {
                    const u32 before = shared.used[number];
                    shared.used[number] = (unsigned short)min(before + more, {{ chunk }}u);
                    return before;
                });
            } else if (!ordered && warp < {{ tables }} && (kinds >> warp & 1) != 0) {
                rank_entries(shared.candidates + warp * {{ chunk + 1 }}, count, [&](u32 number, u32 more) {
                    const u32 word = shared.places[warp][number];
                    shared.places[warp][number] = word + (more << 11);
                    return word >> 11;
                });
            }
            __syncthreads();
            const u32 rank = shared.holder[threadIdx.x];
            shared.holder[threadIdx.x] = free ? NONE : 0;
            if (!ordered) {
                ordered = true;
                // Where the candidates of a class begin: sums over founders before. That of the last kind overflows behind the last one.
                u32 sizes = 0;
#pragma unroll
                for (u32 kind = 0; kind < {{ tables }}; kind++)
                    sizes += founded[kind] ? shared.places[kind][place[kind]] >> 11 << 11 * kind : 0;
                u32 through = sizes;
                for (u32 distance = 1; distance < 32; distance *= 2) {
                    const u32 other = __shfl_up_sync(~0u, through, distance);
                    through += lane >= distance ? other : 0;
                }
                if (lane == 31)
                    shared.sums[warp] = through;
                __syncthreads();
                u32 begin = lane < warp ? shared.sums[lane] : 0;
                for (u32 distance = 16; distance != 0; distance /= 2)
                    begin += __shfl_xor_sync(~0u, begin, (int)distance);
                begin += through - sizes;
                u32 ranks[{{ tables }}];
#pragma unroll
                for (u32 kind = 0; kind < {{ tables }}; kind++) {
                    ranks[kind] = shared.candidates[kind * {{ chunk + 1 }} + threadIdx.x];
                    if (founded[kind])
                        shared.places[kind][place[kind]] |= (begin >> 11 * kind & 0x3ff) << 22;
                }
                __syncthreads();
#pragma unroll
                for (u32 kind = 0; kind < {{ tables }}; kind++) {
                    if (place[kind] != NONE) {
                        const u32 first = kind * {{ chunk + 1 }} + (shared.places[kind][place[kind]] >> 22);
                        shared.candidates[first + ranks[kind]] = (unsigned short)(threadIdx.x | (ranks[kind] == 0 ? FIRST : 0));
                    }
                }
            }
            __syncthreads();
            if (user != NONE) {
{%- if wildcards == "both" %}
                const u32 word = kind == 3 ? count << 11 : shared.places[kind][named];
{%- else %}
                const u32 word = shared.places[kind][named];
{%- endif %}
                if (rank < (word >> 11 & 0x7ff))
                    proposed = propose(shared, (threadIdx.x + 1) << 13 | (kind * {{ chunk + 1 }} + (word >> 22) + rank));
            }
            if (__syncthreads_or(proposed == GIVEN_UP)) {
                const u32 votes = __ballot_sync(~0u, taken);
                if (lane == 0)
                    gone[warp] = votes;
                return kept;
            }
            if (!__syncthreads_or(proposed == REFUSED) && base == head)
                head += {{ threads }};
            const u32 held = shared.holder[threadIdx.x];
            if (held != NONE && held != 0) {
                queue.pairs[base + (held >> 13) - 1].y = handle;
                taken = true;
                free = false;
            }
            // No message is left.
            if (!__syncthreads_or(free))
                break;
        }

        const bool stays = there && !taken;
        const u32 votes = __ballot_sync(~0u, stays);
        // The sums before have been read.
        __syncthreads();
        if (lane == 0)
            shared.sums[warp] = (u32)__popc(votes);
        __syncthreads();
{%- if unexpected or checked %}
        u32 to = kept + (u32)__popc(votes & ((1u << lane) - 1));
        for (u32 other = 0; other < warp; other++)
            to += shared.sums[other];
        // The chunk is in registers, so its entries may be overwritten.
        if (stays && to != at) {
            queue.messages[to] = (u64)tuple.y << 32 | tuple.x;
            queue.message_handles[to] = handle;
        }
{%- endif %}
        for (u32 other = 0; other < {{ threads // 32 }}; other++)
            kept += shared.sums[other];
    }
    return kept;
}
