// Words: packed word `at` is the memory word at place(at). Every address and length is a multiple of a word.
extern "C" __global__ void __launch_bounds__({{ threads }})
{{ entry }}(u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, {{ call }} call)
{
    typedef {{ word_type }} word;
    const index begin = (index)(first / {{ word }}), words = (index)(bytes / {{ word }});
    const index base = (index)blockIdx.x * {{ threads * unroll }} + threadIdx.x;
{%- if pack %}
    word value[{{ unroll }}];
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index at = base + step * {{ threads }};
        if (at < words)
            value[step] = __ldg((const word *)(memory + place({{ context }}tables, begin + at)));
    }
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index at = base + step * {{ threads }};
        if (at < words)
            ((word *)packed)[at] = value[step];
    }
{%- else %}
    word value[{{ unroll }}];
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index at = base + step * {{ threads }};
        if (at < words)
            value[step] = __ldg((const word *)packed + at);
    }
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index at = base + step * {{ threads }};
        if (at < words)
            *(word *)(memory + place({{ context }}tables, begin + at)) = value[step];
    }
{%- endif %}
}
