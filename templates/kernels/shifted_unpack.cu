// Words of memory from packed bytes at any address: a word is shifted together from the aligned words that hold it. The
// first and the last words of a call may be cut.
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
    typedef {{ word_type }} word;
    const u64 last = first + bytes;
    const index begin = (index)(first / {{ word }}), end = (index)((last + {{ word - 1 }}) / {{ word }});
    const index base = begin + (index)block * {{ threads * unroll }} + threadIdx.x;
    word value[{{ unroll }}];
    u8 *place_of[{{ unroll }}];
    // Aligned words around the first and last bytes reach outside the packed bytes.
    const auto inside = [&](u64 position) { return position >= first + 8 && position + {{ word + 8 }} <= last; };
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index at = min(base + step * {{ threads }}, end - 1);
        const u64 position = (u64)at * {{ word }};
        place_of[step] = memory + place({{ context }}tables, at);
        if (inside(position)) {
            const u8 *source = packed + (position - first);
{%- if word == 16 %}
            const u64 low = load_bytes(source, 8), high = load_bytes(source + 8, 8);
            value[step] = make_uint4((u32)low, (u32)(low >> 32), (u32)high, (u32)(high >> 32));
{%- else %}
            value[step] = (word)load_bytes(source, {{ word }});
{%- endif %}
        }
    }
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index at = base + step * {{ threads }};
        const u64 position = (u64)at * {{ word }};
        if (at < end && inside(position))
            *(word *)place_of[step] = value[step];
        else if (at < end)
            for (u32 byte = 0; byte < {{ word }}; byte++)
                if (position + byte >= first && position + byte < last)
                    place_of[step][byte] = packed[position + byte - first];
    }
}
