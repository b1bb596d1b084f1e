// Masks: short runs close to each other, packed in the order of memory. A warp has {{ group }} bytes of memory, and their packed bytes in
// shared memory. Masks tell which bytes of a sector are packed: each store of the warp has all of one sector.
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
{%- if pool %}
    uint4 *const shared = {{ pool }};
{%- else %}
    __shared__ uint4 shared[{{ shared // 16 }}];
{%- endif %}
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, all = 0xffffffff;
    const index begin = (index)(first / {{ size }}), records = (index)((first + bytes + {{ size - 1 }}) / {{ size }}) - begin;
    const index number = (index)block * {{ threads // 32 }} + warp, ahead = number / {{ groups }};
    if (ahead >= records)
        return;
    const u32 group = (u32)(number - ahead * {{ groups }});
    u8 *target = memory + (outer({{ context }}tables, begin + ahead) + {{ low }});
    // Groups begin at lines of memory, where the record may not. The L1 cache merges stores to the sectors of a line, one after the other.
    const u32 skew = (u32)(u64)target & {{ line - 1 }};
    target += (i64)group * {{ group }} - skew + lane;
    const u32 *const masks = (const u32 *)(tables + {{ masks }}) + (group * 32 + lane + {{ line // 32 - 1 }} - skew / 32);
    u32 mask = __funnelshift_l(__ldg(masks), __ldg(masks + 1), skew % 32);
    // Packed bytes of the record in front of the lane's sector.
    u32 below = __popc(mask);
#pragma unroll
    for (u32 distance = 1; distance < 32; distance *= 2) {
        const u32 lower = __shfl_up_sync(all, below, distance);
        if (lane >= distance)
            below += lower;
    }
    below -= __popc(mask);
    // The list counts from the record's first byte on, and the first sectors may have bytes in front of that group.
    const u32 ahead_of_group = __shfl_sync(all, below + __popc(mask & ((1u << skew % 32) - 1)), skew / 32);
    below += __ldg((const u32 *)(tables + {{ befores }}) + group) - ahead_of_group;
    // Only the bytes that the call has.
    const u64 origin = (u64)(begin + ahead) * {{ size }};
    const u32 start = first > origin ? (u32)(first - origin) : 0, end = (u32)min(first + bytes - origin, (u64){{ size }});
    const u32 count = __popc(mask);
    if (below < start || below + count > end) {
        u32 place = below;
#pragma unroll 1
        for (u32 rest = mask; rest != 0; rest &= rest - 1, place++)
            if (place < start || place >= end)
                mask &= ~(rest & (0 - rest));
        below = min(max(below, start), end);
    }
{%- if prefetched %}
    // A sector that is stored in part is read: early, and not store by store.
    if (mask != 0 && mask != all)
        prefetch(target + lane * 31);
{%- endif %}
    const u32 low = __shfl_sync(all, below, 0), high = __shfl_sync(all, below + __popc(mask), 31);
    // The packed bytes lie in shared memory as they do in memory, from inside an aligned word on.
    const u8 *const source = packed + (i64)(origin + low - first);
    const u32 head = (u32)(u64)source & 15, until = high > low ? head + high - low : 0;
    const uint4 *const lines = (const uint4 *)(source - head);
    // Words around both ends of the call reach out of the packed bytes.
    const u32 lowest = head > origin + low - first ? 1 : 0;
    const u32 highest = (u32)min((u64)(until + 15), head + (first + bytes - origin - low)) / 16;
    uint4 *const stage = shared + warp * {{ warp_words }};
    // Of every sector: its mask, and where its first byte is staged.
    uint2 *const sectors = (uint2 *)(stage + {{ stage_words }});
    uint4 value[2];
#pragma unroll
    for (u32 round = 0; round < 2; round++) {
        const u32 at = round * 32 + lane;
        if (at >= lowest && at < highest)
            value[round] = __ldg(lines + at);
    }
#pragma unroll
    for (u32 round = 0; round < 2; round++) {
        const u32 at = round * 32 + lane;
        if (at >= lowest && at < highest)
            stage[at] = value[round];
    }
    if (lowest > 0 && head + lane < min(16u, until))
        ((u8 *)stage)[head + lane] = ((const u8 *)lines)[head + lane];
    // Bytes of the last word, also where it is whole and the 65th.
#pragma unroll 1
    for (u32 at = max(min(highest, 64u) * 16, head) + lane; at < until; at += 32)
        ((u8 *)stage)[at] = ((const u8 *)lines)[at];
    sectors[lane] = make_uint2(mask, head + below - low);
    __syncwarp();
    const u32 lower = (1u << lane) - 1;
#pragma unroll 1
    for (u32 sector = 0; sector < 32; sector += 4) {
        u8 byte[4];
        bool own[4];
#pragma unroll
        for (u32 step = 0; step < 4; step++) {
            const uint2 its = sectors[sector + step];
            own[step] = (its.x >> lane & 1) != 0;
            if (own[step])
                byte[step] = ((const u8 *)stage)[its.y + __popc(its.x & lower)];
        }
#pragma unroll
        for (u32 step = 0; step < 4; step++) {
            if (own[step])
                target[(sector + step) * 32] = byte[step];
        }
    }
}
