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

{%- if not pack %}
// Unit `at` of a column whose first byte in shared memory is `begin`.
template <u32 width, u32 bytes>
static __device__ __forceinline__ typename Unsigned<bytes>::type &unit_of(u8 *stage, u32 begin, u32 at)
{
    return *(typename Unsigned<bytes>::type *)(stage + padded(begin + at / (width / bytes) * {{ stride }} + at % (width / bytes) * bytes));
}
{%- endif %}
{%- if pack %}
{%- for class in classes %}

// Columns of {{ class.width }} bytes: where in a record they begin, and where they are packed.
static __constant__ const u32 offsets_{{ class.width }}_{{ class.unit }}[{{ class.count }}] = { {%- for column in class.columns %}{{ column.offset }}{% if not loop.last %}, {% endif %}{% endfor -%} };
static __constant__ const u64 places_{{ class.width }}_{{ class.unit }}[{{ class.count }}] = { {%- for column in class.columns %}{{ column.packed }}{% if not loop.last %}, {% endif %}{% endfor -%} };
{%- endfor %}

// Packs `rounds` aligned words, 32 words apart, of a column of `length` bytes that begins at byte `begin` of shared memory, from word
// `first` on. They are put together from units of `bytes` bytes.
template <u32 width, u32 bytes, u32 rounds>
static __device__ __forceinline__ void pack_words(const u8 *stage, u32 begin, u8 *to, u32 length, u32 first)
{
    // Bytes in front of the first aligned word, which may begin inside a unit.
    const u32 lead = (0 - (u32)(u64)to) & 3, skip = lead & (bytes - 1), words = length > lead ? (length - lead) / 4 : 0;
    // Units of a record, and of a word: one more where it begins inside one.
    const u32 parts = width / bytes, units = 4 / bytes + (bytes > 1 ? 1 : 0);
    // From round to round the same bytes of shared memory, where a round has whole records and these whole lines of 128 bytes.
    const bool regular = 128 % width == 0 && 128 / (128 % width == 0 ? width : 1) * {{ stride }} % 128 == 0;
    const u32 each = 128 / width * {{ stride }};
    u32 place[units];
#pragma unroll
    for (u32 unit = 0; unit < units; unit++) {
        const u32 at = (lead / bytes) + first * (4 / bytes) + unit;
        place[unit] = padded(begin + at / parts * {{ stride }} + at % parts * bytes);
    }
    u32 *const target = (u32 *)(to + lead) + first;
#pragma unroll
    for (u32 round = 0; round < rounds; round++) {
        if (first + round * 32 >= words)
            break;
        u32 value[units];
#pragma unroll
        for (u32 unit = 0; unit < units; unit++) {
            u32 from = place[unit] + round * (each + each / 128 * 4);
            if (!regular) {
                const u32 at = (lead / bytes) + (first + round * 32) * (4 / bytes) + unit;
                from = padded(begin + at / parts * {{ stride }} + at % parts * bytes);
            }
            value[unit] = *(const typename Unsigned<bytes>::type *)(stage + from);
        }
        u32 word = value[0];
        if (bytes == 1)
            word = value[0] | value[1] << 8 | value[units > 2 ? 2 : 0] << 16 | value[units > 3 ? 3 : 0] << 24;
        if (bytes == 2)
            word = __funnelshift_r(value[0] | value[1] << 16, value[units > 2 ? 2 : 0], 8 * skip);
        if (bytes == 4)
            word = __funnelshift_r(value[0], value[1], 8 * skip);
        target[round * 32] = word;
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
    const auto whole = [&](u32 at) { return at >= low && at < high; };
    uint4 value[{{ rounds }}];
#pragma unroll
    for (u32 round = 0; round < {{ rounds }}; round++) {
        const u32 at = round * {{ threads }} + threadIdx.x;
        if (at * 16 < until && whole(at))
            value[round] = __ldg(lines + at);
    }
#pragma unroll
    for (u32 round = 0; round < {{ rounds }}; round++) {
        const u32 at = round * {{ threads }} + threadIdx.x;
        if (at * 16 < until && whole(at)) {
            u32 *words = (u32 *)(stage + padded(at * 16));
            words[0] = value[round].x;
            words[1] = value[round].y;
            words[2] = value[round].z;
            words[3] = value[round].w;
        }
    }
    if (low > 0 || high * 16 < until) {
#pragma unroll 1
        for (u32 byte = head + threadIdx.x; byte < until; byte += {{ threads }})
            if (!whole(byte / 16))
                stage[padded(byte)] = ((const u8 *)lines)[byte];
    }
    __syncthreads();
    // A warp packs some words of one column at a time. Columns of one width share their text.
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
{%- for class in classes %}
    for (u32 item = (warp + {{ class.turn }}) % {{ warps }}; item < {{ class.items }}; item += {{ warps }}) {
        const u32 own = item / {{ class.chunks }}, from = item % {{ class.chunks }} * {{ class.rounds * 32 }} + lane;
        const u32 begin = head + offsets_{{ class.width }}_{{ class.unit }}[own];
        u8 *const to = column + (places_{{ class.width }}_{{ class.unit }}[own] + record * {{ class.width }});
        pack_words<{{ class.width }}, {{ class.unit }}, {{ class.rounds }}>(stage, begin, to, count * {{ class.width }}, from);
    }
{%- endfor %}
    // The bytes of every column in front of its first aligned word, and behind its last.
{%- for class in classes %}
    for (u32 at = threadIdx.x; at < {{ 8 * class.count }}; at += {{ threads }}) {
        const u32 begin = head + offsets_{{ class.width }}_{{ class.unit }}[at / 8];
        u8 *const to = column + (places_{{ class.width }}_{{ class.unit }}[at / 8] + record * {{ class.width }});
        const u32 length = count * {{ class.width }}, lead = min((0 - (u32)(u64)to) & 3, length);
        const u32 byte = at % 8 < 4 ? at % 8 : lead + (length - lead) / 4 * 4 + at % 4;
        if (byte < (at % 8 < 4 ? lead : length))
            to[byte] = stage[padded(begin + byte / {{ class.width }} * {{ stride }} + byte % {{ class.width }})];
    }
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
