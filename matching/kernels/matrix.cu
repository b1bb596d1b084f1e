// Matching with wildcards. A chunk of {{ rows * 32 }} messages is a column of {{ rows }} rows. The scan writes a matrix: the bit of a
// message is set in the word of its row and a receive if the receive fits it. The reduction takes one receive after the other:
// every lane of its warp has a row, and the lowest lane with a message that is still there gives its first one. While the reduction is
// at one window of receives, the scan is at the next.
//
// Chunks come one after the other, as if the messages of one had arrived before those of the next.

struct Matrix {
    // One word more in a row, so that the lanes of the reduction read different banks.
    u32 votes[2][{{ rows }}][{{ window + 1 }}];
    uint2 chunk[{{ rows * 32 }}];
    u32 handles[{{ rows * 32 }}];
    // Message of each receive of a window; behind them a word for each lane, where lanes write that have none.
    u32 chosen[{{ window + 32 }}];
    // Messages of each row that are there, and those before it.
    u32 remaining[{{ rows }}], before[{{ rows + 1 }}];
    // Where the first receive without a message may be, and whether the chunk has messages left, in alternation.
    u32 head, left[2];
};

struct Receive {
    u32 tag, source;
    // 1 where the number counts, 0 for any, which has the number 0.
    u32 tag_counts{% if wildcards == "both" %}, source_counts{% endif %};
};

// The receive at a position, or one that no message fits.
static __device__ __forceinline__ Receive receive_at(const Queue &queue, u32 at, u32 receives, bool first_chunk)
{
    Receive receive;
    receive.tag = 0;
    receive.source = NONE;
    receive.tag_counts = 1;
{%- if wildcards == "both" %}
    receive.source_counts = 1;
{%- endif %}
    // A receive of an earlier chunk's message is done.
    if (at < receives && (first_chunk || queue.pairs[at].y == NONE)) {
        const u64 pattern = queue.receives[at];
        const u32 tag = (u32)pattern, source = (u32)(pattern >> 32);
        receive.tag_counts = tag >> 31 ^ 1;
        receive.tag = tag & ANY ? 0 : tag;
{%- if wildcards == "both" %}
        receive.source_counts = source >> 31 ^ 1;
        receive.source = source & ANY ? 0 : source;
{%- elif checked %}
        if (!forbidden(pattern))
            receive.source = source;
{%- else %}
        receive.source = source;
{%- endif %}
    }
    return receive;
}

static __device__ __forceinline__ bool fits(const Receive &receive, const uint2 &message)
{
    // A product is the number or 0, and needs no unit that comparisons are waiting for.
    const u32 tag = message.x * receive.tag_counts - receive.tag;
{%- if wildcards == "both" %}
    const u32 source = message.y * receive.source_counts - receive.source;
{%- else %}
    const u32 source = message.y ^ receive.source;
{%- endif %}
    return (tag | source) == 0;
}

// A receive takes a message, in a warp whose lanes have rows of messages: those that are there, and those of them that fit. The lowest lane
// with one gives its first. No branch: each receive waits for the one before it.
static __device__ __forceinline__ bool takes(u32 vote, u32 &mine, u32 &first)
{
    const u32 bit = 1u << threadIdx.x % 32, through = 2 * bit - 1;
    const u32 mask = vote & mine;
    first = mask & (0 - mask);
    const bool wins = (__ballot_sync(~0u, mask != 0) & through) == bit;
    mine ^= wins ? first : 0;
    return wins;
}

// Matches the messages from `start` on, where `kept` messages before them stay. Returns how many stay. `gone` is null, or some receives have
// messages, and it has a bit for each of the first {{ threads }} messages from `start` on that has been taken.
static __device__ __forceinline__ u32 match_matrix(const Queue &queue, u32 start, u32 kept, const u32 *gone, u32 messages, u32 receives,
                                                   Matrix &shared{% if checked %}, u32 &status{% endif %})
{
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, begin = start;
    // A scheduler has every fourth warp, and that of the reduction has no other to serve.
    const bool scans = warp % 4 != 0, reduces = warp == 0;
    const u32 scanner = warp / 4 * 3 + warp % 4 - 1;
    if (threadIdx.x == 0)
        shared.head = 0;
    for (; start < messages; start += {{ rows * 32 }}) {
        const bool untouched = start == 0 && gone == nullptr;
        const u32 count = min(messages - start, {{ rows * 32 }}u);
        // Everything of the chunk before has been read.
        __syncthreads();
        const u32 from = shared.head;
        for (u32 at = threadIdx.x; at < count; at += {{ threads }}) {
            const u64 envelope = queue.messages[start + at];
            shared.chunk[at] = make_uint2((u32)envelope, (u32)(envelope >> 32));
            shared.handles[at] = queue.message_handles[start + at];
{%- if checked %}
            if (out_of_range(envelope))
                atomicOr(&status, RANGE);
{%- endif %}
        }
        if (threadIdx.x == 0)
            shared.left[0] = shared.left[1] = 1;
        const u32 rows = (count + 31) / 32;
        const u32 windows = from < receives ? (receives - from + {{ window - 1 }}) / {{ window }} : 0;
        Receive next[{{ window // 32 }}];
        u32 mine = 0;
        if (reduces) {
            const u32 first = lane * 32;
            mine = first >= count ? 0 : count - first >= 32 ? ~0u : (1u << (count - first)) - 1;
            if (gone != nullptr && start == begin && lane < {{ threads // 32 }})
                mine &= ~gone[lane];
        } else if (scans) {
#pragma unroll
            for (u32 part = 0; part < {{ window // 32 }}; part++)
                next[part] = receive_at(queue, from + part * 32 + lane, receives, untouched);
        }
        __syncthreads();
{%- if checked %}
        const u32 all = mine;
        if (reduces) {
            // Such messages stay where they are.
            for (u32 bit = 0; bit < 32; bit++) {
                const uint2 message = shared.chunk[lane * 32 + bit];
                if ((mine >> bit & 1) && ((message.x | message.y) & ANY))
                    mine &= ~(1u << bit);
            }
        }
        const u32 valid = mine;
{%- endif %}

        for (u32 phase = 0; phase <= windows && windows != 0; phase++) {
            if (scans && phase < windows) {
                Receive now[{{ window // 32 }}];
#pragma unroll
                for (u32 part = 0; part < {{ window // 32 }}; part++) {
                    now[part] = next[part];
                    if (phase + 1 < windows)
                        next[part] = receive_at(queue, from + (phase + 1) * {{ window }} + part * 32 + lane, receives, untouched);
                }
                for (u32 row = scanner; row < rows; row += {{ scanners }}) {
                    u32 word[{{ window // 32 }}] = {};
#pragma unroll
                    for (u32 bit = 0; bit < 32; bit++) {
                        const uint2 message = shared.chunk[row * 32 + bit];
#pragma unroll
                        for (u32 part = 0; part < {{ window // 32 }}; part++)
                            word[part] |= fits(now[part], message) ? 1u << bit : 0;
                    }
#pragma unroll
                    for (u32 part = 0; part < {{ window // 32 }}; part++)
                        shared.votes[phase % 2][row][part * 32 + lane] = word[part];
                }
            }
            if (reduces && phase != 0) {
                const u32 base = from + (phase - 1) * {{ window }};
                bool done[{{ window // 32 }}];
#pragma unroll
                for (u32 part = 0; part < {{ window // 32 }}; part++) {
                    const u32 at = base + part * 32 + lane;
                    shared.chosen[part * 32 + lane] = NONE;
                    done[part] = at >= receives || (!untouched && queue.pairs[at].y != NONE);
                }
                __syncwarp();
                const u32 *const words = shared.votes[(phase - 1) % 2][lane];
                u32 ahead[8];
#pragma unroll
                for (u32 step = 0; step < 8; step++)
                    ahead[step] = lane < rows ? words[step] : 0;
                for (u32 base = 0; base < {{ window }}; base += 8) {
                    u32 vote[8];
#pragma unroll
                    for (u32 step = 0; step < 8; step++) {
                        vote[step] = ahead[step];
                        if (base + 8 < {{ window }})
                            ahead[step] = lane < rows ? words[base + 8 + step] : 0;
                    }
#pragma unroll
                    for (u32 step = 0; step < 8; step++) {
                        u32 first;
                        const bool wins = takes(vote[step], mine, first);
                        shared.chosen[wins ? base + step : {{ window }} + lane] = lane * 32 + 31 - (u32)__clz((int)first);
                    }
                }
                __syncwarp();
                bool full = true;
#pragma unroll
                for (u32 part = 0; part < {{ window // 32 }}; part++) {
                    const u32 message = shared.chosen[part * 32 + lane];
                    if (message != NONE)
                        queue.pairs[base + part * 32 + lane].y = shared.handles[message];
                    full &= done[part] || message != NONE;
                }
                full = __all_sync(~0u, full);
                const bool some = __any_sync(~0u, mine != 0);
                if (lane == 0) {
                    if (full && shared.head == base)
                        shared.head = base + {{ window }};
                    shared.left[phase % 2] = some;
                }
            }
            __syncthreads();
            if (shared.left[phase % 2] == 0)
                break;
        }

        if (reduces) {
            const u32 stay = {% if checked %}all & ~(valid & ~mine){% else %}mine{% endif %};
            u32 sum = (u32)__popc(stay);
            for (u32 distance = 1; distance < 32; distance *= 2) {
                const u32 other = __shfl_up_sync(~0u, sum, distance);
                sum += lane >= distance ? other : 0;
            }
            shared.remaining[lane] = stay;
            shared.before[lane + 1] = sum;
            if (lane == 0)
                shared.before[0] = 0;
        }
        __syncthreads();
        const u32 staying = shared.before[{{ rows }}];
{%- if unexpected or checked %}
        // The chunk is in shared memory, so its entries may be overwritten.
        if (staying != 0 && kept + staying != start + count) {
            for (u32 at = threadIdx.x; at < count; at += {{ threads }}) {
                const u32 row = at / 32, stay = shared.remaining[row];
                if (stay >> lane & 1) {
                    const u32 to = kept + shared.before[row] + (u32)__popc(stay & ((1u << lane) - 1));
                    queue.messages[to] = (u64)shared.chunk[at].y << 32 | shared.chunk[at].x;
                    queue.message_handles[to] = shared.handles[at];
                }
            }
        }
{%- endif %}
        kept += staying;
    }

    return kept;
}
