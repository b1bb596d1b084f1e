// Packed words from words of memory that lie astride them: every packed word is the end of one and the beginning of the
// next. A warp loads 32 words and stores the 31 between them.
extern "C" __global__ void __launch_bounds__({{ threads }})
{{ entry }}(u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, {{ call }} call)
{
    typedef {{ word_type }} word;
    const u64 last = first + bytes;
    // The first aligned packed word begins so many bytes into the call, and into a word of memory.
    const u64 head = min((0 - (u64)packed) % {{ word }}, bytes);
    const u64 begin = first + head, words = (bytes - head) / {{ word }}, tail = (bytes - head) % {{ word }};
    const u32 into = (u32)(begin % {{ word }});

    if (blockIdx.x == 0 && threadIdx.x < head + tail) {
        const u64 position = threadIdx.x < head ? first + threadIdx.x : last - tail + (threadIdx.x - head);
        packed[position - first] = memory[place({{ context }}tables, (index)(position / {{ word }})) + position % {{ word }}];
    }
    if (words == 0)
        return;

    const u32 lane = threadIdx.x % 32;
    const u64 at = ((u64)blockIdx.x * {{ threads // 32 }} + threadIdx.x / 32) * 31 + lane;
    const index of_memory = (index)(begin / {{ word }} + min(at, words));
    const word low = __ldg((const word *)(memory + place({{ context }}tables, of_memory)));
    const word high = __shfl_down_sync(0xffffffffu, low, 1);
    if (lane < 31 && at < words)
        ((word *)(packed + head))[at] = low >> 8 * into | high << 8 * ({{ word }} - into);
}
