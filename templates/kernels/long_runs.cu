// Long runs: {{ lanes }} lanes move a run, or a piece of up to {{ piece }} bytes of it, in words of 16 bytes that are aligned where they are
// stored. A shift puts them together from two that are aligned where they are loaded. The bytes at both ends are under way
// together with the words.
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
    const u64 last = first + bytes;
    // Of every piece of a record its memory offset, and where it is packed; and where the next record is.
    const int2 *list = (const int2 *)(tables + {{ list }});
    const index begin = (index)(first / {{ size }}), pieces = ((index)((last + {{ size - 1 }}) / {{ size }}) - begin) * {{ pieces }};
    const index piece = (index)block * {{ threads // lanes }} + threadIdx.x / {{ lanes }};
    if (piece >= pieces)
        return;
    const index record = piece / {{ pieces }}, own = piece - record * {{ pieces }};
    const int2 mine = __ldg(list + own);
    const u64 of_record = ((u64)begin + record) * {{ size }}, position = of_record + (u32)mine.y;
    // Only the bytes that the call has.
    const u64 from = max(position, first), to = min(of_record + (u32)__ldg(&list[own + 1].y), last);
    if (from >= to)
        return;
    const u32 lane = threadIdx.x % {{ lanes }}, length = (u32)(to - from);
    u8 *place_of = memory + (outer({{ context }}tables, begin + record) + mine.x + (i64)(from - position));
{%- if pack %}
    const u8 *source = place_of;
    u8 *target = packed + (from - first);
    const u64 before = (u64)source - (u64)(memory + call.low), behind = (u64)(memory + call.high) - (u64)source;
{%- else %}
    const u8 *source = packed + (from - first);
    u8 *target = place_of;
    const u64 before = (u64)source - (u64)packed, behind = (u64)(packed + bytes) - (u64)source;
{%- endif %}

{%- if prefetched %}
    // Sectors at both ends that are stored in part are read: early, and not store by store.
    if (lane < 2 && ((u32)(u64)(lane == 0 ? target : target + length) & 31) != 0)
        prefetch(lane == 0 ? target : target + length - 1);
{%- endif %}
    // Words begin where the target is aligned; their sources may not reach outside of what the call may read, which is `before`
    // bytes in front of the source and `behind` bytes from there on.
    const u32 ahead = min((0 - (u32)(u64)target) & 15, length);
    const u32 head = before + ahead < 15 ? min(ahead + 16, length) : ahead;
    u32 words = (length - head) / 16;
    if (words > 0 && head + words * 16 + 15 > behind)
        words--;
    const u32 tail = head + words * 16, skip = (u32)(u64)(source + head) & 15;
    const uint4 *loads = (const uint4 *)(source + head - skip);
    uint4 *stores = (uint4 *)(target + head);
    u8 front[{{ edge }}], back[{{ edge }}];
#pragma unroll
    for (u32 step = 0; step < {{ edge }}; step++) {
        const u32 at = lane + step * {{ lanes }};
        if (at < head)
            front[step] = __ldg(source + at);
        if (tail + at < length)
            back[step] = __ldg(source + tail + at);
    }
    // Longer ends are those at the bounds of what the call may read.
    if (max(head, length - tail) > {{ edge * lanes }}) {
        for (u32 at = lane + {{ edge * lanes }}; at < head; at += {{ lanes }})
            target[at] = source[at];
        for (u32 at = tail + lane + {{ edge * lanes }}; at < length; at += {{ lanes }})
            target[at] = source[at];
    }
{%- if single %}
    const u32 base = lane;
    {
{%- else %}
    for (u32 base = lane; base < words; base += {{ lanes * unroll }}) {
{%- endif %}
        // All loads are under way before the first store.
        uint4 low[{{ unroll }}], high[{{ unroll }}];
#pragma unroll
        for (u32 step = 0; step < {{ unroll }}; step++) {
            const u32 at = base + step * {{ lanes }};
            if (at < words) {
                low[step] = __ldg(loads + at);
                if (skip != 0)
                    high[step] = __ldg(loads + at + 1);
            }
        }
#pragma unroll
        for (u32 step = 0; step < {{ unroll }}; step++) {
            const u32 at = base + step * {{ lanes }};
            if (at < words)
                stores[at] = skip == 0 ? low[step] : funnel(low[step], high[step], skip);
        }
    }
#pragma unroll
    for (u32 step = 0; step < {{ edge }}; step++) {
        const u32 at = lane + step * {{ lanes }};
        if (at < head)
            target[at] = front[step];
        if (tail + at < length)
            target[tail + at] = back[step];
    }
}
