// Columns, interpreted: arrays of records that are packed field by field, with any fields at any alignment. A block has some records in shared memory,
// so that both sides see whole lines.

// A field of every record. It has the parts of the block's work from `first` on: {% if pack %}{{ 32 * item_rounds }} packed words each{% else %}16 bytes of shared memory each{% endif %}.
struct Column {
    // Where that of record 0 is packed.
    u64 packed;
    // What divides by its width.
    u32 half;
    u16 first;
    u8 offset, width;
};

// As long as a program.
struct Columns : Bounds {
    u64 size, magic;
    i64 extent, low;
    u64 records;
    u32 shift, tiles, tile_records, stride, span, half, count, parts, prefetches, spare;
    Column columns[{{ most_columns }}];
    u64 unused[{{ unused }}];
};

// The column that has a part.
static __device__ __forceinline__ u32 column_of(const Columns &call, u32 part)
{
    u32 own = 0;
    for (u32 next = 1; next < call.count; next++)
        own += part >= call.columns[next].first;
    return own;
}

static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const Columns &call, u32 block)
{
    __shared__ uint4 pool[{{ shared // 16 }}];
    u8 *const stage = (u8 *)pool;
    const u64 element = block / call.tiles, record = block % call.tiles * (u64)call.tile_records;
    const u32 count = (u32)min((u64)call.tile_records, call.records - record), stride = call.stride;
    u8 *place_of = memory + ((i64)(divide(first, call.magic, call.shift) + element) * call.extent + call.low + (i64)record * stride);
    u8 *packed_element = packed + element * call.size;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
{%- if pack %}
    // The tile lies in shared memory as it does in memory, where it may begin inside an aligned word.
    const u32 head = (u32)(u64)place_of & 15, until = head + (count - 1) * stride + call.span;
    const uint4 *lines = (const uint4 *)(place_of - head);
    stage_memory<{{ threads }}, {{ rounds }}>(stage, lines, head, until, memory + call.Bounds::low, memory + call.high);
    __syncthreads();
    // A warp packs the words of one part at a time.
    for (u32 part = warp; part < call.parts; part += {{ threads // 32 }}) {
        const Column &its = call.columns[column_of(call, part)];
        const u32 width = its.width, length = count * width, begin = head + its.offset;
        u8 *const to = packed_element + (its.packed + record * width);
        // Bytes in front of the first aligned word.
        const u32 lead = (0 - (u32)(u64)to) & 3, words = length > lead ? (length - lead) / 4 : 0;
        u32 word = (part - its.first) * {{ 32 * item_rounds }} + lane;
#pragma unroll
        for (u32 round = 0; round < {{ item_rounds }}; round++, word += 32) {
            if (word >= words)
                break;
            const u32 at = lead + word * 4, own = quotient(at, its.half);
            u32 in = at - own * width, from = begin + own * stride + in, joined = 0;
#pragma unroll
            for (u32 byte = 0; byte < 4; byte++) {
                joined |= (u32)stage[padded(from)] << 8 * byte;
                const bool last = ++in == width;
                from += last ? stride - width + 1 : 1;
                in = last ? 0 : in;
            }
            *(u32 *)(to + at) = joined;
        }
    }
    // The bytes of every column in front of its first aligned word, and behind its last.
    for (u32 at = threadIdx.x; at < 8 * call.count; at += {{ threads }}) {
        const Column &its = call.columns[at / 8];
        const u32 width = its.width, length = count * width;
        u8 *const to = packed_element + (its.packed + record * width);
        const u32 lead = min((0 - (u32)(u64)to) & 3, length);
        const u32 byte = at % 8 < 4 ? at % 8 : lead + (length - lead) / 4 * 4 + at % 4;
        const u32 own = quotient(byte, its.half);
        if (byte < (at % 8 < 4 ? lead : length))
            to[byte] = stage[padded(head + its.offset + own * stride + (byte - own * width))];
    }
{%- else %}
    const u32 skew = (u32)(u64)place_of & 127, until = (count - 1) * stride + call.span;
    if (call.prefetches) {
        // Most sectors are stored in part, for which the L2 cache reads them. They come while the columns do.
        for (u32 at = threadIdx.x * 128; at < skew + until; at += {{ threads * 128 }})
            prefetch(place_of - skew + at);
    }
    // Columns lie in shared memory one behind the other, in lines of 16 bytes. All are under way at once. Of those that reach out of the packed bytes,
    // the bytes inside are copied one by one.
    uint4 value[{{ rounds }}];
    u32 loaded = 0;
#pragma unroll
    for (u32 round = 0; round < {{ rounds }}; round++) {
        const u32 at = round * {{ threads }} + threadIdx.x;
        if (at >= call.parts)
            continue;
        const Column &its = call.columns[column_of(call, at)];
        const u8 *const from = packed_element + (its.packed + record * its.width);
        const u32 head = (u32)(u64)from & 15, line = (at - its.first) * 16, end = head + count * its.width;
        const u8 *const there = from - head + line;
        if (line >= end)
            continue;
        if ((u64)there >= (u64)packed && (u64)there + 16 <= (u64)packed + bytes) {
            value[round] = __ldcs((const uint4 *)there);
            loaded |= 1u << round;
        } else {
            for (u32 byte = max(line, head); byte < min(line + 16, end); byte++)
                stage[at * 16 + (byte - line)] = there[byte - line];
        }
    }
    // Where the bytes of record 0 lie in shared memory, and the widths of their columns; nothing for those between fields.
    u32 *const places = (u32 *)(stage + {{ stage_bytes }});
    for (u32 at = threadIdx.x; at < stride; at += {{ threads }}) {
        u32 place = 0;
        for (u32 own = 0; own < call.count; own++) {
            const Column &its = call.columns[own];
            const u32 in = at - its.offset, head = (u32)(u64)(packed_element + (its.packed + record * its.width)) & 15;
            if (in < its.width)
                place = (its.first * 16 + head + in) << 16 | its.width;
        }
        places[at] = place;
    }
#pragma unroll
    for (u32 round = 0; round < {{ rounds }}; round++)
        if (loaded >> round & 1)
            pool[round * {{ threads }} + threadIdx.x] = value[round];
    __syncthreads();
    // A warp stores the bytes of a line sector by sector, so that each store has one sector.
    for (u32 line = warp * 128; line < skew + until; line += {{ threads * 4 }}) {
        u8 byte[4];
        bool has[4];
#pragma unroll
        for (u32 sector = 0; sector < 4; sector++) {
            // In front of the first record, this wraps around.
            const u32 at = line + sector * 32 + lane - skew, own = quotient(at, call.half);
            const u32 place = at < until ? places[at - own * stride] : 0;
            has[sector] = place != 0;
            if (has[sector])
                byte[sector] = stage[(place >> 16) + own * (place & 0xffff)];
        }
        u8 *const target = place_of + (i64)(int)(line + lane - skew);
#pragma unroll
        for (u32 sector = 0; sector < 4; sector++)
            if (has[sector])
                target[sector * 32] = byte[sector];
    }
{%- endif %}
}
