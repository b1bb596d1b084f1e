// Words of the memory of one type to words of the memory of another, aligned in both and in the packed bytes of both.
{%- if cut %} The call may cut its first and last word.{% endif %}
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const Target &call, u32 block)
{
    typedef {{ word_type }} word;
    const u64 last = first + bytes;
    const index begin = (index)((first + {{ word - 1 }}) / {{ word }}), end = (index)(last / {{ word }});
    // From words of the source to words of the target.
    const index ahead = (index)((i64)(call.first - first) / {{ word }});
{%- if cut and word > 1 %}

    if (block == 0 && (first | bytes) % {{ word }} != 0) {
        // One thread for each byte of the words that the call cuts, which may be the same one.
        const u64 head = min((u64)begin * {{ word }} - first, bytes), tail = end < begin ? 0 : last % {{ word }};
        if (threadIdx.x < head + tail) {
            const u64 position = threadIdx.x < head ? first + threadIdx.x : last - tail + (threadIdx.x - head);
            const index at = (index)(position / {{ word }});
            packed[target::place(tables, at + ahead) + position % {{ word }}] = memory[source::place(tables, at) + position % {{ word }}];
        }
    }
    if (end <= begin)
        return;
{%- endif %}

    const index words = end - begin;
    const index base = (index)block * {{ threads * unroll }} + threadIdx.x;
    // Threads beyond the end move the last word once more: where a store may be left out, the compiler puts the load of its word behind the other stores.
    word value[{{ unroll }}];
    word *place_of[{{ unroll }}];
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index at = begin + min(base + step * {{ threads }}, words - 1);
        value[step] = __ldg((const word *)(memory + source::place(tables, at)));
        place_of[step] = (word *)(packed + target::place(tables, at + ahead));
    }
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        *place_of[step] = value[step];
    }
}
