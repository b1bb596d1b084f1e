// Words: packed word `at` is the memory word at place(at). Every address and length is a multiple of a word.
extern "C" __global__ void __launch_bounds__({{ threads }})
{{ entry }}(u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, {{ call }} call)
{
    typedef {{ word_type }} word;
    const index begin = (index)(first / {{ word }}), words = (index)(bytes / {{ word }});
    const index base = (index)blockIdx.x * {{ threads * unroll }} + threadIdx.x;
    // Threads beyond the end load the last word once more, so that all loads are under way before the first store.
    word value[{{ unroll }}];
    word *place_of[{{ unroll }}];
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index at = min(base + step * {{ threads }}, words - 1);
        place_of[step] = (word *)(memory + place({{ context }}tables, begin + at));
    }
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        {% if pack %}value[step] = __ldg(place_of[step]){% else %}value[step] = __ldg((const word *)packed + min(base + step * {{ threads }}, words - 1)){% endif %};
    }
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        if (base + step * {{ threads }} < words)
            {% if pack %}((word *)packed)[base + step * {{ threads }}] = value[step]{% else %}*place_of[step] = value[step]{% endif %};
    }
}
