// Vectors: packed words of 16 bytes, each from {{ 16 // word }} neighbouring words of {{ word }} bytes, aligned on both sides. A store has all of them.
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
    typedef {{ word_type }} word;
    const u32 head = (u32)(u64)packed & 15;
    const u64 slot = ((u64)block * {{ threads }} + threadIdx.x) * 16, slots = head + bytes;
    if (slot >= slots)
        return;
    u8 *vector = packed - head + slot;
    const u64 position = first + slot - head;
    index left;
    bool start;

    // The ends of the call cut vectors, and may cut words.
    if (slot < head || slot + 16 > slots) {
        const u32 from = slot < head ? head - slot : 0, to = (u32)min((u64)16, slots - slot);
        for (u32 byte = from; byte < to; byte++) {
            const u64 at = position + byte;
            vector[byte] = memory[place(tables, (index)(at / {{ word }}), left, start) + at % {{ word }}];
        }
        return;
    }

    const index at = (index)(position / {{ word }});
    const word *source = (const word *)(memory + place(tables, at, left, start));
    __align__(16) word value[{{ 16 // word }}];
{%- if crosses_once %}
    const word *behind = source;
    if (left < {{ 16 // word }}) {
        index rest;
        behind = (const word *)(memory + place(tables, at + left, rest, start)) - left;
    }
#pragma unroll
    for (u32 number = 0; number < {{ 16 // word }}; number++)
        value[number] = __ldg((number < left ? source : behind) + number);
{%- else %}
#pragma unroll
    for (u32 number = 0; number < {{ 16 // word }}; number++) {
        if (left == 0)
            source = (const word *)(memory + place(tables, at + number, left, start)) - number;
        left--;
        value[number] = __ldg(source + number);
    }
{%- endif %}
    *(uint4 *)vector = *(const uint4 *)value;
}
