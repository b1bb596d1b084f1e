// Gather: aligned packed words from memory at any alignment. A word is put together from the runs that it crosses, each
// shifted out of the aligned words that hold it.
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
    const u32 head = (u32)(u64)packed & 7;
    const u64 slot = ((u64)block * {{ threads }} + threadIdx.x) * 8, slots = head + bytes;
    if (slot >= slots)
        return;
    u8 *word = packed - head + slot;
    const u64 position = first + slot - head;
    index left;
    bool start;
{%- if context %}
    Cursor cursor = {};
{%- endif %}

    // The ends of the call cut words.
    if (slot < head || slot + 8 > slots) {
        const u32 from = slot < head ? head : 0, to = (u32)min(8ull, slots - slot);
        for (u32 byte = from; byte < to; byte++)
            word[byte] = memory[place({{ context }}tables, (index)(position + byte), left, start)];
        return;
    }

    // Whole words around a run may reach outside of what the elements span, near its ends.
    const i64 low = call.low + 7;
    const u64 inner = call.high - call.low >= 22 ? call.high - call.low - 22 : 0;
    const auto load = [&](i64 offset, u32 length) {
        if ((u64)(offset - low) < inner)
            return load_bytes(memory + offset, length);
        u64 value = 0;
        for (u32 byte = 0; byte < length; byte++)
            value |= (u64)memory[offset + byte] << 8 * byte;
        return value;
    };
    const i64 offset = place({{ context }}tables, (index)position, left, start);
    u32 filled = (u32)min((index)8, left);
    u64 value = load(offset, filled);
    {% if crosses_once %}if{% else %}while{% endif %} (filled < 8) {
        const i64 next = place({{ context }}tables, (index)(position + filled), left, start);
        const u32 length = (u32)min((index)(8 - filled), left);
        value = (value & (1ull << 8 * filled) - 1) | load(next, length) << 8 * filled;
        filled += length;
    }
    *(u64 *)word = value;
}
