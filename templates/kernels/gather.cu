// Gather: aligned packed words from memory at any alignment. A word is put together from the runs that it crosses, each
// shifted out of the aligned words that hold it.
extern "C" __global__ void __launch_bounds__({{ threads }})
{{ entry }}(u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, {{ call }} call)
{
    const u32 head = (u32)(u64)packed & 7;
    const u64 slot = ((u64)blockIdx.x * {{ threads }} + threadIdx.x) * 8;
    if (slot >= head + bytes)
        return;
    const u32 skip = slot == 0 ? head : 0;
    const u32 length = (u32)min((u64)8, head + bytes - slot);
    u8 *word = packed - head + slot;
    const u64 position = first + slot - head;

    u64 value = 0;
    for (u32 filled = skip; filled < length;) {
        index left;
        const i64 offset = place({{ context }}tables, (index)(position + filled), left);
        const u32 take = (u32)min((index)(length - filled), left);
        u64 piece;
        if (offset - call.low >= 7 && call.high - offset >= 15) {
            piece = load_bytes(memory + offset, take);
        } else {
            piece = 0;
            for (u32 byte = 0; byte < take; byte++)
                piece |= (u64)memory[offset + byte] << 8 * byte;
        }
        piece &= ~0ull >> (64 - 8 * take);
        value |= piece << 8 * filled;
        filled += take;
    }
    if (skip == 0 && length == 8)
        *(u64 *)word = value;
    else
        store_bytes(word + skip, value >> 8 * skip, length - skip);
}
