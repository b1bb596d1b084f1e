// Packed words from words of memory that are unaligned to them: every packed word is the end of one and the beginning of the
// next. A warp loads 32 words and stores the 31 between them.
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
    typedef {{ word_type }} word;
    const u64 last = first + bytes;
    // The first aligned packed word begins so many bytes into the call, and into a word of memory.
    const u64 head = min((0 - (u64)packed) % {{ word }}, bytes);
    const u64 begin = first + head, words = (bytes - head) / {{ word }}, tail = (bytes - head) % {{ word }};
    const u32 into = (u32)(begin % {{ word }});

    if (block == 0 && threadIdx.x < head + tail) {
        const u64 position = threadIdx.x < head ? first + threadIdx.x : last - tail + (threadIdx.x - head);
        packed[position - first] = memory[place({{ context }}tables, (index)(position / {{ word }})) + position % {{ word }}];
    }
    if (words == 0)
        return;

    const u32 lane = threadIdx.x % 32;
    const u64 base = ((u64)block * {{ threads // 32 }} + threadIdx.x / 32) * {{ 31 * unroll }} + lane;
    const word *place_of[{{ unroll }}];
    word low[{{ unroll }}];
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index at = (index)(begin / {{ word }} + min(base + step * 31, words));
        place_of[step] = (const word *)(memory + place({{ context }}tables, at));
    }
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++)
        low[step] = __ldg(place_of[step]);
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const word high = __shfl_down_sync(0xffffffffu, low[step], 1);
        if (lane < 31 && base + step * 31 < words)
            ((word *)(packed + head))[base + step * 31] = low[step] >> 8 * into | high << 8 * ({{ word }} - into);
    }
}
