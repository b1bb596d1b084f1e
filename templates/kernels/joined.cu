// Joined: packed words of 16 bytes that are aligned among the packed bytes, each put together from as many runs as it has. A list tells
// in which run every 16 packed bytes of a record begin.
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
    // Of every run its memory offset less its packed one, and where it ends among the packed bytes.
    const int2 *list = (const int2 *)(tables + {{ list }});
    // The run of every 256th packed byte; and how many runs later the one of every 16th is.
    const u32 *bases = (const u32 *)(tables + {{ bases }});
    const u8 *steps = tables + {{ steps }};
    const u64 low = (u64)(memory + call.low), high = (u64)(memory + call.high);
    const u32 lead = (u32)(u64)packed & 15;
    uint4 *const lines = (uint4 *)(packed - lead);
    const index words = (index)((lead + bytes + 15) / 16), base = (index)block * {{ threads * unroll }} + threadIdx.x;
    uint4 value[{{ unroll }}];
    index record[{{ unroll }}];
    u32 run[{{ unroll }}], rest[{{ unroll }}], until[{{ unroll }}];
    int2 own[{{ unroll }}];
    // The first byte of a word, and the one behind its last, that the call has.
    const auto begin_of = [&](index word) { return word == 0 ? lead : 0; };
    const auto end_of = [&](index word) { return (u32)min((u64)16, lead + bytes - (u64)word * 16); };
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index word = min(base + step * {{ threads }}, words - 1);
        const index at = (index)first + (word == 0 ? 0 : word * 16 - lead);
        record[step] = at / {{ size }};
        rest[step] = (u32)(at - record[step] * {{ size }});
        run[step] = __ldg(bases + rest[step] / 256) + __ldg(steps + rest[step] / 16);
    }
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        own[step] = __ldg(list + run[step]);
        // The list knows of the first of 16 bytes.
        while ((u32)own[step].y <= rest[step])
            own[step] = __ldg(list + ++run[step]);
    }
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index word = min(base + step * {{ threads }}, words - 1);
        const u32 begin = begin_of(word);
        until[step] = min(end_of(word), (u32)own[step].y - rest[step] + begin);
        const u8 *source = memory + (outer({{ context }}tables, record[step]) + own[step].x + (i64)rest[step] - (i64)begin);
        value[step] = load_joined(source, begin, until[step], low, high);
    }
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index word = min(base + step * {{ threads }}, words - 1);
        const u32 end = end_of(word);
        // Where the first byte of the word would lie in the record.
        int place = (int)rest[step] - (int)begin_of(word);
        while (until[step] < end) {
            if (++run[step] == {{ runs }}) {
                run[step] = 0;
                record[step]++;
                place -= {{ size }};
            }
            const int2 next = __ldg(list + run[step]);
            const u32 begin = until[step];
            until[step] = min(end, (u32)(next.y - place));
            const u8 *source = memory + (outer({{ context }}tables, record[step]) + next.x + place);
            value[step] = join(value[step], load_joined(source, begin, until[step], low, high), begin);
        }
    }
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index word = base + step * {{ threads }};
        if (word >= words)
            continue;
        const u32 begin = begin_of(word), end = end_of(word);
        if (begin == 0 && end == 16) {
            lines[word] = value[step];
        } else {
            for (u32 byte = begin; byte < end; byte++)
                ((u8 *)(lines + word))[byte] = byte_of(value[step], byte);
        }
    }
}
