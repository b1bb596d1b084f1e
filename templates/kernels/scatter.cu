// Scatter: aligned packed words to memory at any alignment, run by run.
extern "C" __global__ void __launch_bounds__({{ threads }})
{{ entry }}(u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, {{ call }} call)
{
    const u32 head = (u32)(u64)packed & 7;
    const u64 slot = ((u64)blockIdx.x * {{ threads }} + threadIdx.x) * 8;
    if (slot >= head + bytes)
        return;
    const u32 skip = slot == 0 ? head : 0;
    const u32 length = (u32)min((u64)8, head + bytes - slot);
    const u8 *word = packed - head + slot;
    const u64 position = first + slot - head;

    u64 value = 0;
    if (skip == 0 && length == 8)
        value = __ldg((const u64 *)word);
    else
        for (u32 byte = skip; byte < length; byte++)
            value |= (u64)word[byte] << 8 * byte;
    for (u32 filled = skip; filled < length;) {
        index left;
        const i64 offset = place({{ context }}tables, (index)(position + filled), left);
        const u32 take = (u32)min((index)(length - filled), left);
        store_bytes(memory + offset, value >> 8 * filled, take);
        filled += take;
    }
}
