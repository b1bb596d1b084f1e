// Short runs, and pieces of {{ piece }} bytes of longer ones. A thread finds its pieces by their numbers and not by their bytes.
{%- if pack %} Their packed bytes pass through shared memory, so that whole words are stored.{% endif %}
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
    // Of every piece of a record its memory offset, and where it is packed; and where the next record is.
{%- if bases %} Pieces are near to a base for
    // every 32 of them.
    const u32 *list = (const u32 *)(tables + {{ list }});
    const int2 *bases = (const int2 *)(tables + {{ bases }});
    const auto listed = [&](index piece) {
        const u32 near = __ldg(list + piece);
        const int2 base = __ldg(bases + piece / 32);
        return make_int2(base.x + (int)(near & 0xffff), base.y + (int)(near >> 16));
    };
{%- else %}
    const int2 *list = (const int2 *)(tables + {{ list }});
    const auto listed = [&](index piece) { return __ldg(list + piece); };
{%- endif %}
    const u64 begin = first / {{ size }};
    const index pieces = (index)((first + bytes + {{ size - 1 }}) / {{ size }} - begin) * {{ pieces }};
    const index base = (index)block * {{ threads * unroll }}, ahead = base / {{ pieces }};
    if (base >= pieces)
        return;
    // Packed bytes count from the first record of the block on, so that 32 bits count them: where the call begins and ends.
    const u64 origin = (begin + ahead) * {{ size }};
    const u32 start = first > origin ? (u32)(first - origin) : 0, last = (u32)min(first + bytes - origin, (u64)0xffffffff);
    {% if not pack %}const {% endif %}u8 *const bytes_of = packed + (i64)(origin - first);
{%- if pack %}
{%- if pool %}
    uint4 *const stage = {{ pool }};
{%- else %}
    __shared__ uint4 stage[{{ shared // 16 }}];
{%- endif %}
    const auto packed_at = [&](index piece) {
        const index record = piece / {{ pieces }};
        return (u32)(record - ahead) * {{ size }} + (u32)listed(piece - record * {{ pieces }}).y;
    };
    // The packed bytes of the block lie in shared memory as they do in memory, from inside an aligned word on.
    const u32 low = max(start, packed_at(base)), high = min(last, packed_at(min(base + {{ threads * unroll }}, pieces)));
    const u32 head = (u32)(u64)(bytes_of + low) & 15, until = head + high - low;
    u8 *lines = bytes_of + low - head;
    // Aligned words around a run may reach outside of what the elements span.
    const u64 lowest = (u64)(memory + call.low) + 7, inner = call.high - call.low >= 22 ? call.high - call.low - 21 : 0;
{%- endif %}
    u8 *place_of[{{ unroll }}];
    u32 from[{{ unroll }}], length[{{ unroll }}];
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index at = base + step * {{ threads }} + threadIdx.x, piece = min(at, pieces - 1), record = piece / {{ pieces }};
        const index own = piece - record * {{ pieces }};
        const int2 mine = listed(own);
        const u32 of_record = (u32)(record - ahead) * {{ size }}, position = of_record + (u32)mine.y;
        // The next lane has the next piece.
        u32 next = __shfl_down_sync(0xffffffffu, position, 1);
        if (threadIdx.x % 32 == 31 || at + 1 >= pieces)
            next = of_record + (u32)listed(own + 1).y;
        // Only the bytes that the call has.
        from[step] = max(position, start);
        const u32 to = min(next, last);
        length[step] = at < pieces && from[step] < to ? to - from[step] : 0;
        const i64 offset = outer({{ context }}tables, (index)begin + record) + mine.x + (i64)(from[step] - position);
        place_of[step] = memory + offset;
{%- if prefetched %}
        // A sector that is stored in part is read: early, and not store by store.
        if (length[step] > 0)
            prefetch(place_of[step]);
{%- endif %}
    }
    // All loads are under way before the first of their bytes are used.
    u64 near[{{ unroll }}], far[{{ unroll }}];
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
{%- if pack %}
        const u8 *source = place_of[step];
        const bool whole = (u64)source - lowest < inner;
{%- else %}
        const u8 *source = bytes_of + from[step];
        // Aligned words around the first and last bytes reach outside the packed bytes.
        const bool whole = from[step] >= start + 8 && from[step] + 16 <= last;
{%- endif %}
        const u32 skip = (u32)(u64)source & 7;
        const u64 *words = (const u64 *)(source - skip);
        near[step] = whole && length[step] > 0 ? __ldg(words) : 0;
        far[step] = whole && skip + length[step] > 8 ? __ldg(words + 1) : 0;
    }
    u64 value[{{ unroll }}];
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
{%- if pack %}
        const u8 *source = place_of[step];
        const bool whole = (u64)source - lowest < inner;
{%- else %}
        const u8 *source = bytes_of + from[step];
        const bool whole = from[step] >= start + 8 && from[step] + 16 <= last;
{%- endif %}
        const u32 skip = (u32)(u64)source & 7;
        value[step] = near[step] >> 8 * skip | far[step] << 1 << (63 - 8 * skip);
        if (!whole) {
#pragma unroll 1
            for (u32 byte = 0; byte < length[step]; byte++)
                value[step] |= (u64)source[byte] << 8 * byte;
        }
    }
{%- if pack %}
    // Not before the loads are under way: where the packed bytes of the block begin and end is loaded too.
    if (low >= high)
        return;
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        u8 *to = (u8 *)stage + head + from[step] - low;
#pragma unroll
        for (u32 byte = 0; byte < {{ piece }}; byte++)
            if (byte < length[step])
                to[byte] = (u8)(value[step] >> 8 * byte);
    }
    __syncthreads();
    for (u32 at = threadIdx.x; at * 16 < until; at += {{ threads }}) {
        if (at * 16 >= head && at * 16 + 16 <= until) {
            ((uint4 *)lines)[at] = stage[at];
        } else {
#pragma unroll 1
            for (u32 byte = max(at * 16, head); byte < min(at * 16 + 16, until); byte++)
                lines[byte] = ((u8 *)stage)[byte];
        }
    }
{%- else %}
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++)
        store_bytes(place_of[step], value[step], length[step]);
{%- endif %}
}
