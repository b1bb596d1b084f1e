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
    // Where words around 16 bytes may be read as a whole: away from the ends of what the elements span.
    const u64 low = (u64)(memory + call.low) + 15, span = (u64)(call.high - call.low), inner = span >= 47 ? span - 46 : 0;
    const u32 lead = (u32)(u64)packed & 15;
    uint4 *const lines = (uint4 *)(packed - lead);
    const index words = (index)((lead + bytes + 15) / 16);
    // Bytes of the last word.
    const u32 tail = ((u32)(lead + bytes) - 1) % 16 + 1;

    const index word = (index)block * {{ threads }} + threadIdx.x;
    if (word >= words)
        return;
    const u32 begin = word == 0 ? lead : 0, end = word == words - 1 ? tail : 16;
    const index at = (index)first + (word * 16 - lead + begin);
    index record = at / {{ size }};
    const u32 rest = (u32)(at - record * {{ size }});
    u32 run = __ldg(bases + rest / 256) + __ldg(steps + rest / 16);
    int2 own = __ldg(list + run), next = __ldg(list + min(run + 1, {{ runs - 1 }}));
{%- if runs_ahead > 0 %}
    // The lists of a block that begins later are brought to the L2 cache, as far as runs of the mean length tell where they are.
    if (threadIdx.x < {{ stretches + 2 }}) {
        const u32 far = min(rest + {{ bytes_ahead }}, {{ size - 1 }});
        const u32 far_run = min(run + {{ runs_ahead }} + threadIdx.x * {{ stretch }}, {{ runs - 1 }});
        prefetch(threadIdx.x < {{ stretches }}    ? (const u8 *)(list + far_run)
                 : threadIdx.x == {{ stretches }} ? (const u8 *)(bases + far / 256)
                                                  : steps + far / 16);
    }
{%- endif %}
    // The list knows of the first of 16 bytes.
    while ((u32)own.y <= rest) {
        own = next;
        next = __ldg(list + min(++run + 1, {{ runs - 1 }}));
    }
    // Where the first byte of the word would lie in the record, and in memory but for its run.
    int place = (int)(rest - begin);
    const u8 *source = memory + (outer({{ context }}tables, record) + place);
    const auto advance = [&]() {
        if (++run == {{ runs }}) {
            run = 0;
            place -= {{ size }};
            source = memory + (outer({{ context }}tables, ++record) + place);
            next = __ldg(list);
        }
        return min(end, (u32)(next.y - place));
    };
    // Loads of the second run are under way with those of the first.
    const u32 seam = min(end, (u32)(own.y - place));
    const Pair pair = load_joined(source + own.x, begin, seam, low, inner);
    Pair second;
    u32 until = seam;
    if (seam < end) {
        until = advance();
        second = load_joined(source + next.x, seam, until, low, inner);
    }
    uint4 value = word_of(pair);
    if (seam < end)
        value = join(value, word_of(second), seam);
    while (until < end) {
        const u32 from = until;
        next = __ldg(list + min(run + 1, {{ runs - 1 }}));
        until = advance();
        value = join(value, word_of(load_joined(source + next.x, from, until, low, inner)), from);
    }
    if (begin == 0 && end == 16) {
        lines[word] = value;
    } else {
        for (u32 byte = begin; byte < end; byte++)
            ((u8 *)(lines + word))[byte] = byte_of(value, byte);
    }
}
