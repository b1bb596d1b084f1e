// Fields, interpreted: the fields of a record lie in arrays far apart, and records that are packed one after the other are neighbours there. A block has
// some records, whose packed bytes lie in shared memory, so that both sides see whole lines.

// Some records of a block, {{ rounds }} for each lane, whose places in memory are `places`: a word of one field, `offset` behind them. In shared memory, that of
// record 0 lies at `at` and has parts.
template <class word, class part>
static __device__ __forceinline__ void move_words(const i64 *places, i64 offset, u32 first, u32 count, u32 size, u8 *memory, u8 *stage, u32 at)
{
    const auto staged = [&](u32 own, u32 byte) { return (part *)(stage + padded(at + own * size + byte)); };
    word value[{{ rounds }}];
#pragma unroll
    for (u32 round = 0; round < {{ rounds }}; round++) {
        const u32 own = first + round * 32;
        if (own >= count)
            break;
{%- if pack %}
        value[round] = __ldg((const word *)(memory + (places[own] + offset)));
{%- else %}
        value[round] = 0;
#pragma unroll
        for (u32 byte = 0; byte < sizeof(word); byte += sizeof(part))
            value[round] |= (word)*staged(own, byte) << 8 * byte;
{%- endif %}
    }
#pragma unroll
    for (u32 round = 0; round < {{ rounds }}; round++) {
        const u32 own = first + round * 32;
        if (own >= count)
            break;
{%- if pack %}
#pragma unroll
        for (u32 byte = 0; byte < sizeof(word); byte += sizeof(part))
            *staged(own, byte) = (part)(value[round] >> 8 * byte);
{%- else %}
        *(word *)(memory + (places[own] + offset)) = value[round];
{%- endif %}
    }
}

static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const Program &call, u32 block)
{
    __shared__ uint4 pool[{{ shared // 16 }}];
    __shared__ i64 places[{{ most_records }}], firsts[{{ most_groups }}];
    u8 *const stage = (u8 *)pool;
    const Fields &its = call.fields;
    const Field *const fields = (const Field *)(tables + its.table);
    u64 left;
    bool start;
    if (block == 0) {
        // The bytes of the records that the call cuts, which may be the same one.
        const u64 last = first + bytes, head = min(its.begin * its.size - first, bytes), tail = its.end < its.begin ? 0 : last - its.end * its.size;
        for (u64 at = threadIdx.x; at < head + tail; at += {{ threads }}) {
            const u64 position = at < head ? first + at : last - tail + (at - head);
            u8 *byte = memory + interpret(call, tables, position, left, start);
            {% if pack %}packed[position - first] = *byte{% else %}*byte = packed[position - first]{% endif %};
        }
    }
    const u64 record = its.begin + (u64)block * its.records;
    if (record >= its.end)
        return;
    const u32 count = (u32)min((u64)its.records, its.end - record);
    // Records follow each other in groups. The block may begin inside of one, whose last record is in front of `ahead`.
    const u64 ahead = (record / its.group + 1) * its.group - record;
    // More records than a block has are as good as any number of them.
    const u32 group = (u32)min(its.group, (u64){{ most_records }});
    const auto begin_of = [&](u32 own) { return own == 0 ? 0 : (u32)ahead + (own - 1) * group; };
    const auto group_of = [&](u32 at) { return at < ahead ? 0 : 1 + (at - (u32)ahead) / group; };
    for (u32 own = threadIdx.x; own <= group_of(count - 1); own += {{ threads }})
        firsts[own] = interpret(call, tables, (record + begin_of(own)) * its.size, left, start) - fields[0].offset;
    __syncthreads();
    for (u32 at = threadIdx.x; at < count; at += {{ threads }}) {
        const u32 own = group_of(at);
        places[at] = firsts[own] + (i64)(int)(at - begin_of(own)) * its.stride;
    }
    // The tile lies in shared memory as it does among the packed bytes, which it may begin inside an aligned word of.
    u8 *const tile = packed + (record * its.size - first);
    const u32 head = (u32)(u64)tile & 15, until = head + count * its.size;
    u8 *const lines = tile - head;
{%- if not pack %}
    for (u32 at = threadIdx.x; at * 16 < until; at += {{ threads }}) {
        if (at * 16 >= head && at * 16 + 16 <= until) {
            const uint4 value = __ldcs((const uint4 *)lines + at);
            u32 *words = (u32 *)(stage + padded(at * 16));
            words[0] = value.x;
            words[1] = value.y;
            words[2] = value.z;
            words[3] = value.w;
        } else {
            for (u32 byte = max(at * 16, head); byte < min(at * 16 + 16, until); byte++)
                stage[padded(byte)] = lines[byte];
        }
    }
{%- endif %}
    __syncthreads();
    // A warp has some records and one field of them at a time.
    for (u32 item = threadIdx.x / 32; item < its.count * its.chunks; item += {{ threads // 32 }}) {
        const u32 chunk = quotient(item, its.half_count), own = chunk * {{ 32 * rounds }} + threadIdx.x % 32;
        const Field field = fields[item - chunk * its.count];
        for (u32 done = 0; done < field.width;) {
            const i64 offset = field.offset + done;
            const u32 place = field.packed + done, left_of_it = field.width - done;
            // What divides both sides has no bits below the width of a word.
            const u32 memory_bits = (u32)offset | its.memory, packed_bits = place | its.packed;
            const auto move = [&](auto word, auto part) {
                move_words<decltype(word), decltype(part)>(places, offset, own, count, its.size, memory, stage, head + place);
                done += sizeof word;
            };
            if (left_of_it >= 4 && memory_bits % 4 == 0) {
                if (packed_bits % 4 == 0)
                    move(u32(), u32());
                else
                    move(u32(), u8());
            } else if (left_of_it >= 2 && memory_bits % 2 == 0) {
                if (packed_bits % 2 == 0)
                    move(u16(), u16());
                else
                    move(u16(), u8());
            } else {
                move(u8(), u8());
            }
        }
    }
{%- if pack %}
    __syncthreads();
    for (u32 at = threadIdx.x; at * 16 < until; at += {{ threads }}) {
        if (at * 16 >= head && at * 16 + 16 <= until) {
            const u32 *words = (const u32 *)(stage + padded(at * 16));
            ((uint4 *)lines)[at] = make_uint4(words[0], words[1], words[2], words[3]);
        } else {
            for (u32 byte = max(at * 16, head); byte < min(at * 16 + 16, until); byte++)
                lines[byte] = stage[padded(byte)];
        }
    }
{%- endif %}
}
