// Words of memory from packed bytes at any address: a word is shifted together from the aligned words that hold it. The
// first and the last word of a call may be cut.
extern "C" __global__ void __launch_bounds__({{ threads }})
{{ entry }}(u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, {{ call }} call)
{
    const index at = (index)(first / {{ word }}) + (index)blockIdx.x * {{ threads }} + threadIdx.x;
    const u64 end = first + bytes, position = (u64)at * {{ word }};
    if (position >= end)
        return;
    u8 *target = memory + place({{ context }}tables, at);
    // Aligned words around the first and last bytes reach outside the packed bytes.
    if (position >= first + 8 && position + {{ word }} + 8 <= end) {
        const u8 *source = packed + (position - first);
{%- if word == 16 %}
        const u64 low = load_bytes(source, 8), high = load_bytes(source + 8, 8);
        *(uint4 *)target = make_uint4((u32)low, (u32)(low >> 32), (u32)high, (u32)(high >> 32));
{%- else %}
        *({{ word_type }} *)target = ({{ word_type }})load_bytes(source, {{ word }});
{%- endif %}
        return;
    }
    for (u32 byte = 0; byte < {{ word }}; byte++)
        if (position + byte >= first && position + byte < end)
            target[byte] = packed[position + byte - first];
}
