// Columns: arrays of records, {{ stride }} bytes apart, that are packed field by field. A block has {{ tile_records }} records in shared memory, so
// that both sides see whole lines. A word lies between every 32 there: the words of a field lie in all banks.
static __device__ __forceinline__ u32 padded(u32 at)
{
    return at + at / 128 * 4;
}

template <u32 bytes> struct Unsigned;
template <> struct Unsigned<1> { typedef u8 type; };
template <> struct Unsigned<2> { typedef u16 type; };
template <> struct Unsigned<4> { typedef u32 type; };

// Unit `at` of a column whose first byte in shared memory is `begin`.
template <u32 width, u32 bytes>
static __device__ __forceinline__ typename Unsigned<bytes>::type &unit_of(u8 *stage, u32 begin, u32 at)
{
    return *(typename Unsigned<bytes>::type *)(stage + padded(begin + at / (width / bytes) * {{ stride }} + at % (width / bytes) * bytes));
}
{%- if pack %}

// Packs a column of `length` bytes in aligned words.
template <u32 width, u32 bytes, u32 rounds>
static __device__ __forceinline__ void pack_column(u8 *stage, u32 begin, u8 *to, u32 length)
{
    // The first byte of an aligned word is byte `skip` of a unit.
    const u32 lead = (u32)(u64)to & 3, skip = (0 - lead) & (bytes - 1);
#pragma unroll
    for (u32 round = 0; round < rounds; round++) {
        const u32 at = (round * {{ threads }} + threadIdx.x) * 4, end = lead + length;
        if (at >= end)
            break;
        if (at >= lead && at + 4 <= end) {
            const u32 unit = (at - lead) / bytes;
            u64 value = 0;
#pragma unroll
            for (u32 part = 0; part < 4 / bytes; part++)
                value |= (u64)unit_of<width, bytes>(stage, begin, unit + part) << 8 * bytes * part;
            if (skip != 0)
                value |= (u64)unit_of<width, bytes>(stage, begin, unit + 4 / bytes) << 32;
            *(u32 *)(to + (at - lead)) = (u32)(value >> 8 * skip);
        } else {
            for (u32 byte = max(at, lead) - lead; byte < min(at + 4, end) - lead; byte++)
                to[byte] = stage[padded(begin + byte / width * {{ stride }} + byte % width)];
        }
    }
}
{%- else %}

// Brings a column of `length` bytes to its records, four bytes at a time. Aligned words around them may reach outside of the
// packed bytes, which begin `before` bytes in front of it and end `behind` bytes from there on.
template <u32 width, u32 bytes, u32 rounds>
static __device__ __forceinline__ void unpack_column(u8 *stage, u32 begin, const u8 *from, u32 length, u64 before, u64 behind)
{
    const u32 skip = (u32)(u64)from & 3, reach = (u32)min(behind, (u64)1 << 30);
    const u32 *words = (const u32 *)(from - skip);
    u32 value[rounds];
#pragma unroll
    for (u32 round = 0; round < rounds; round++) {
        const u32 at = round * {{ threads }} + threadIdx.x;
        value[round] = 0;
        if (at * 4 < length) {
            if ((at > 0 || before >= skip) && at * 4 + 8 <= reach) {
                value[round] = __ldg(words + at);
                if (skip != 0)
                    value[round] = __funnelshift_r(value[round], __ldg(words + at + 1), 8 * skip);
            } else {
                for (u32 byte = 0; byte < min(4u, length - at * 4); byte++)
                    value[round] |= (u32)from[at * 4 + byte] << 8 * byte;
            }
        }
    }
#pragma unroll
    for (u32 round = 0; round < rounds; round++) {
        const u32 at = round * {{ threads }} + threadIdx.x;
#pragma unroll
        for (u32 part = 0; part < 4 / bytes; part++) {
            const u32 unit = at * (4 / bytes) + part;
            if (unit < length / bytes)
                unit_of<width, bytes>(stage, begin, unit) = (typename Unsigned<bytes>::type)(value[round] >> 8 * bytes * part);
        }
    }
}
{%- endif %}

static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
{%- if pool %}
    uint4 *const pool = {{ pool }};
{%- else %}
    __shared__ uint4 pool[{{ shared // 16 }}];
{%- endif %}
    u8 *const stage = (u8 *)pool;
    const u64 element = block / {{ tiles }}, record = block % {{ tiles }} * (u64){{ tile_records }};
    const u32 count = (u32)min((u64){{ tile_records }}, {{ records }} - record);
    u8 *place_of = memory + ((i64)(first / {{ size }} + element) * {{ extent }} + {{ low }} + (i64)record * {{ stride }});
    // The tile lies in shared memory as it does in memory, where it may begin inside an aligned word.
    const u32 head = (u32)(u64)place_of & 15;
    u8 *column = packed + element * {{ size }};
{%- if pack %}
    const u32 until = head + (count - 1) * {{ stride }} + {{ span }};
    const uint4 *lines = (const uint4 *)(place_of - head);
    // Words that the call may read: the first may begin before its memory, the last may end behind it.
    const u32 low = (u64)lines < (u64)(memory + call.low) ? 1 : 0;
    const u32 high = (u32)min((u64)((u64)(memory + call.high) - (u64)lines) / 16, (u64)1 << 30);
    uint4 value[{{ rounds }}];
#pragma unroll
    for (u32 round = 0; round < {{ rounds }}; round++) {
        const u32 at = round * {{ threads }} + threadIdx.x;
        value[round] = make_uint4(0, 0, 0, 0);
        if (at * 16 < until && at >= low && at < high)
            value[round] = __ldg(lines + at);
    }
#pragma unroll
    for (u32 round = 0; round < {{ rounds }}; round++) {
        const u32 at = round * {{ threads }} + threadIdx.x;
        if (at * 16 >= until)
            break;
        if (at >= low && at < high) {
            u32 *words = (u32 *)(stage + padded(at * 16));
            words[0] = value[round].x;
            words[1] = value[round].y;
            words[2] = value[round].z;
            words[3] = value[round].w;
        } else {
            for (u32 byte = max(at * 16, head); byte < min(at * 16 + 16, until); byte++)
                stage[padded(byte)] = ((const u8 *)lines)[byte];
        }
    }
    __syncthreads();
{%- for column in columns %}
    pack_column<{{ column.width }}, {{ column.unit }}, {{ column.rounds }}>(stage, head + {{ column.offset }}, column + ({{ column.packed }} + record * {{ column.width }}), count * {{ column.width }});
{%- endfor %}
{%- else %}
{%- for column in columns %}
    {
        const u8 *from = column + ({{ column.packed }} + record * {{ column.width }});
        unpack_column<{{ column.width }}, {{ column.unit }}, {{ column.rounds }}>(
            stage, head + {{ column.offset }}, from, count * {{ column.width }}, (u64)(from - packed), (u64)(packed + bytes - from));
    }
{%- endfor %}
    __syncthreads();

    // A thread has one word of a record that fields fill, in some of the records: a sector of memory is stored at once.
    for (u32 role = threadIdx.x; role < {{ at_once * units }}; role += {{ threads }}) {
        const u32 filled = role % {{ units }} * {{ stored }};
        u32 offset = filled;
{%- for segment in segments %}
{%- if segment.gaps > 0 %}
        if (filled >= {{ segment.begin }})
            offset = filled + {{ segment.gaps }};
{%- endif %}
{%- endfor %}
#pragma unroll 8
        for (u32 at = role / {{ units }}; at < count; at += {{ at_once }})
            *({{ stored_type }} *)(place_of + (at * {{ stride }} + offset)) =
                *(const {{ stored_type }} *)(stage + padded(head + at * {{ stride }} + offset));
    }
{%- endif %}
}
