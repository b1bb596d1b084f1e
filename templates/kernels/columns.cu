// Columns: arrays of records, {{ stride }} bytes apart, that are packed field by field. A block has {{ tile_records }} records in shared memory, so
// that both sides see whole lines.
{%- if pack %}

template <u32 bytes> struct Unsigned;
template <> struct Unsigned<1> { typedef u8 type; };
template <> struct Unsigned<2> { typedef u16 type; };
template <> struct Unsigned<4> { typedef u32 type; };
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

// Columns lie in shared memory one behind the other, in lines of 16 bytes: where each is packed, its first line, its offset in a record, and
// its width.
static __constant__ const u64 places[{{ count }}] = { {%- for column in columns %}{{ column.packed }}{% if not loop.last %}, {% endif %}{% endfor -%} };
static __constant__ const u32 lines_before[{{ count }}] = { {%- for column in columns %}{{ column.line }}{% if not loop.last %}, {% endif %}{% endfor -%} };
static __constant__ const u32 offsets[{{ count }}] = { {%- for column in columns %}{{ column.offset }}{% if not loop.last %}, {% endif %}{% endfor -%} };
static __constant__ const u32 widths[{{ count }}] = { {%- for column in columns %}{{ column.width }}{% if not loop.last %}, {% endif %}{% endfor -%} };

// The column that has each {% if unit > 1 %}{{ unit }} bytes{% else %}byte{% endif %} of a record, or {{ count }} between fields.
static __constant__ const u8 fields[{{ slots }}] = { {%- for field in fields %}{{ field }}{% if not loop.last %}, {% endif %}{% endfor -%} };

// {% if unit > 1 %}{{ unit }} bytes{% else %}A byte{% endif %} at any address of shared memory.
static __device__ __forceinline__ u32 unit_at(const u8 *stage, u32 at)
{
{%- if unit == 1 %}
    return stage[at];
{%- elif unit == 2 %}
    return stage[at] | (u32)stage[at + 1] << 8;
{%- else %}
    const u32 *words = (const u32 *)(stage + at / 4 * 4);
    return __funnelshift_r(words[0], words[1], 8 * (at & 3));
{%- endif %}
}
{%- endif %}

static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
{%- if pool %}
    uint4 *const shared = {{ pool }};
{%- else %}
    __shared__ uint4 shared[{{ shared // 16 }}];
{%- endif %}
    u8 *const stage = (u8 *)shared;
    const u64 array = block / {{ tiles }}, record = block % {{ tiles }} * (u64){{ tile_records }};
    const u32 count = (u32)min((u64){{ tile_records }}, {{ records }} - record);
    u8 *place_of = memory + (outer({{ context }}tables, (index)(first / {{ size }} + array)) + {{ low }} + (i64)record * {{ stride }});
    u8 *column = packed + array * {{ size }};
{%- if pack %}
    // The tile lies in shared memory as it does in memory, where it may begin inside an aligned word.
    const u32 head = (u32)(u64)place_of & 15;
    const u32 until = head + (count - 1) * {{ stride }} + {{ span }};
    const uint4 *lines = (const uint4 *)(place_of - head);
    stage_memory<{{ threads }}, {{ rounds }}>(stage, lines, head, until, memory + call.low, memory + call.high);
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
{%- if prefetched %}
    // Most sectors are stored in part, for which the L2 cache reads them. They come while the columns do.
    const u32 ahead = (u32)(u64)place_of & 127;
    for (u32 at = threadIdx.x * 128; at < ahead + (count - 1) * {{ stride }} + {{ span }}; at += {{ threads * 128 }})
        prefetch(place_of - ahead + at);
{%- endif %}
    // All lines are under way at once. Of those that reach out of the packed bytes, the bytes inside are copied one by one.
    uint4 value[{{ rounds }}];
    u32 loaded = 0;
#pragma unroll
    for (u32 round = 0; round < {{ rounds }}; round++) {
        const u32 at = round * {{ threads }} + threadIdx.x;
        u32 own = 0;
{%- for column in columns %}
{%- if not loop.first %}
        own += at >= {{ column.line }};
{%- endif %}
{%- endfor %}
        const u8 *const from = column + (places[own] + record * widths[own]);
        const u32 head = (u32)(u64)from & 15, line = (at - lines_before[own]) * 16, until = head + count * widths[own];
        const u8 *const there = from - head + line;
        if (at >= {{ lines }} || line >= until)
            continue;
        if ((u64)there >= (u64)packed && (u64)there + 16 <= (u64)packed + bytes) {
            value[round] = __ldcs((const uint4 *)there);
            loaded |= 1u << round;
        } else {
            for (u32 byte = max(line, head); byte < min(line + 16, until); byte++)
                stage[at * 16 + (byte - line)] = there[byte - line];
        }
    }
#pragma unroll
    for (u32 round = 0; round < {{ rounds }}; round++)
        if (loaded >> round & 1)
            shared[round * {{ threads }} + threadIdx.x] = value[round];
    // Where the units of record 0 lie in shared memory, and the widths of their columns.
    u32 *const units = (u32 *)(stage + {{ stage_bytes }});
    for (u32 at = threadIdx.x; at < {{ slots }}; at += {{ threads }}) {
        const u32 own = fields[at];
        if (own == {{ count }}) {
            units[at] = 0;
        } else {
            const u32 head = (u32)(u64)(column + (places[own] + record * widths[own])) & 15;
            units[at] = (lines_before[own] * 16 + head + at * {{ unit }} - offsets[own]) << 16 | widths[own];
        }
    }
    __syncthreads();

    // A warp stores rows of {{ row }} bytes one behind the other, which begin at lines: a request has whole sectors but for gaps, and the requests
    // of a line go together. {{ period }} rows have {{ each }} records, so a lane keeps its places in {{ kept }} rows of them.
    const u32 skew = (u32)(u64)place_of & 127;
    for (u32 item = threadIdx.x / 32; item < {{ items }}; item += {{ warps }}) {
        const u32 row = item / {{ chunks }} * {{ item_rounds * period }} + item % {{ chunks }} * {{ kept }};
        const u32 begin = row * {{ row }} + threadIdx.x % 32 * {{ stored }} - skew;
        u32 its[{{ kept }}], from[{{ kept }}][{{ parts }}], width[{{ kept }}][{{ parts }}];
#pragma unroll
        for (u32 kept = 0; kept < {{ kept }}; kept++) {
            // The first row begins in front of the tile, but not 128 records.
            const u32 at = begin + kept * {{ row }} + {{ 128 * stride }}, in = at % {{ stride }};
            its[kept] = at / {{ stride }} - 128;
#pragma unroll
            for (u32 part = 0; part < {{ parts }}; part++) {
                const u32 own = units[in / {{ unit }} + part];
                width[kept][part] = own & 0xffff;
                from[kept][part] = (own >> 16) + its[kept] * width[kept][part];
            }
{%- if chunks * kept > period %}
            if (item % {{ chunks }} * {{ kept }} + kept >= {{ period }})
                width[kept][0] = 0;
{%- endif %}
        }
        u8 *const target = place_of + (i64)(int)begin;
#pragma unroll {{ unroll }}
        for (u32 round = 0; round < {{ item_rounds }}; round++) {
            const u32 later = round * {{ each }};
#pragma unroll
            for (u32 kept = 0; kept < {{ kept }}; kept++) {
                if (width[kept][0] == 0 || its[kept] + later >= count)
                    continue;
                u32 value = 0;
#pragma unroll
                for (u32 part = 0; part < {{ parts }}; part++)
                    value |= unit_at(stage, from[kept][part] + later * width[kept][part]) << {{ 8 * unit }} * part;
                *({{ stored_type }} *)(target + kept * {{ row }} + later * {{ stride }}) = ({{ stored_type }})value;
            }
        }
    }
{%- endif %}
}
