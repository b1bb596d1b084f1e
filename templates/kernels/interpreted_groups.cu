// Groups, interpreted: a block has the packed bytes of some groups in shared memory. Its lanes go through the words of one group after the other, in
// the order of memory, so that they use whole sectors.
{%- if pack %}

// Stores the first `width` bytes of a value in parts.
template <class part>
static __device__ __forceinline__ void put(u8 *stage, u32 at, u64 value, u32 width)
{
#pragma unroll
    for (u32 byte = 0; byte < 8; byte += sizeof(part))
        if (byte < width)
            *(part *)(stage + at + byte) = (part)(value >> 8 * byte);
}
{%- endif %}

static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const Program &call, u32 block)
{
    __shared__ uint4 pool[{{ shared // 16 }}];
    __shared__ i64 bases[{{ most_groups }}];
    // Where each word of a group lies in memory, where it is packed, and how wide it is.
    __shared__ uint2 words[{{ most_words }}];
    u8 *const stage = (u8 *)pool;
    const Groups &its = call.groups;
    u64 left;
    bool start;
    if (block == 0) {
        // The bytes of the groups that the call cuts, which may be the same one.
        const u64 last = first + bytes, head = min(its.begin * its.size - first, bytes), tail = its.end < its.begin ? 0 : last - its.end * its.size;
        for (u64 at = threadIdx.x; at < head + tail; at += {{ threads }}) {
            const u64 position = at < head ? first + at : last - tail + (at - head);
            u8 *byte = memory + interpret(call, tables, position, left, start);
            {% if pack %}packed[position - first] = *byte{% else %}*byte = packed[position - first]{% endif %};
        }
    }
    const u64 group = its.begin + (u64)block * its.groups;
    if (group >= its.end)
        return;
    const u32 count = (u32)min((u64)its.groups, its.end - group), all = count * its.words;
    // The tile lies in shared memory as it does among the packed bytes, where it may begin inside a line.
    u8 *const tile = packed + (group * its.size - first);
    const u32 head = (u32)(u64)tile & 15, until = head + count * its.size;
    u8 *const lines = tile - head;
    const auto whole = [&](u32 at) { return at * 16 >= head && at * 16 + 16 <= until; };
    for (u32 at = threadIdx.x; at < its.words; at += {{ threads }})
        words[at] = __ldg((const uint2 *)(tables + its.table) + at);
    for (u32 at = threadIdx.x; at < count; at += {{ threads }})
        bases[at] = interpret(call, tables, (group + at) * its.size, left, start) - its.lead;
{%- if pack %}
    __syncthreads();

    // Words around the runs may reach out of the memory of the call.
    const u8 *const lowest = memory + call.low, *const highest = memory + call.high - its.word;
    for (u32 from = threadIdx.x; from < all; from += {{ threads * rounds }}) {
        // All loads are under way before the first store.
        u64 value[{{ rounds }}];
        u32 to[{{ rounds }}];
#pragma unroll
        for (u32 round = 0; round < {{ rounds }}; round++) {
            const u32 at = from + round * {{ threads }}, own = quotient(at, its.half_words);
            if (at >= all)
                continue;
            const uint2 word = words[at - own * its.words];
            const u8 *const place_of = memory + (bases[own] + (int)word.x);
            to[round] = head + own * its.size + word.y;
            if ((i64)place_of < (i64)lowest || (i64)place_of > (i64)highest) {
                value[round] = 0;
                for (u32 byte = word.y >> 24; byte < (word.y >> 24) + (word.y >> 16 & 255); byte++)
                    value[round] |= (u64)place_of[byte] << 8 * byte;
            } else if (its.word == 8) {
                value[round] = __ldg((const u64 *)place_of);
            } else if (its.word == 4) {
                value[round] = __ldg((const u32 *)place_of);
            } else if (its.word == 2) {
                value[round] = __ldg((const u16 *)place_of);
            } else {
                value[round] = __ldg(place_of);
            }
        }
#pragma unroll
        for (u32 round = 0; round < {{ rounds }}; round++) {
            if (from + round * {{ threads }} >= all)
                continue;
            const u32 at = to[round] & 0xffff, width = to[round] >> 16 & 255;
            const u64 own = value[round] >> 8 * (to[round] >> 24);
            if (its.part == 4)
                put<u32>(stage, at, own, width);
            else if (its.part == 2)
                put<u16>(stage, at, own, width);
            else
                put<u8>(stage, at, own, width);
        }
    }
    __syncthreads();

    for (u32 at = threadIdx.x; at * 16 < until; at += {{ threads }}) {
        if (whole(at)) {
            ((uint4 *)lines)[at] = pool[at];
        } else {
            for (u32 byte = max(at * 16, head); byte < min(at * 16 + 16, until); byte++)
                lines[byte] = stage[byte];
        }
    }
{%- else %}
    __syncthreads();
    if (its.prefetches) {
        // Sectors that are stored in part are read: early, and not store by store.
        for (u32 at = threadIdx.x; at < all; at += {{ threads }}) {
            const u32 own = quotient(at, its.half_words);
            prefetch(memory + (bases[own] + (int)words[at - own * its.words].x));
        }
    }
    for (u32 at = threadIdx.x; at * 16 < until; at += {{ threads }}) {
        if (whole(at)) {
            pool[at] = __ldcs((const uint4 *)lines + at);
        } else {
            for (u32 byte = max(at * 16, head); byte < min(at * 16 + 16, until); byte++)
                stage[byte] = lines[byte];
        }
    }
    __syncthreads();

    for (u32 at = threadIdx.x; at < all; at += {{ threads }}) {
        const u32 own = quotient(at, its.half_words);
        const uint2 word = words[at - own * its.words];
        u8 *const place_of = memory + (bases[own] + (int)word.x);
        const u32 from = head + own * its.size + (word.y & 0xffff), shift = 8 * (from & 3), width = word.y >> 16;
        const u32 *const around = (const u32 *)stage + from / 4;
        const u32 low = __funnelshift_r(around[0], around[1], shift);
        if (width == 3)
            *(u64 *)place_of = low | (u64)__funnelshift_r(around[1], around[2], shift) << 32;
        else if (width == 2)
            *(u32 *)place_of = low;
        else if (width == 1)
            *(u16 *)place_of = (u16)low;
        else
            *place_of = (u8)low;
    }
{%- endif %}
}
