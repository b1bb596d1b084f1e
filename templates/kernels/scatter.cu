// Scatter: packed bytes to memory at any alignment. A thread has 16 packed bytes, and stores the words of memory whose first
// byte of a run is among them, so that words inside a run are stored whole and once.
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
    const u64 last = first + bytes;
    u64 position = first + ((u64)block * {{ threads }} + threadIdx.x) * 16;
    const u64 end = min(position + 16, last);
    while (position < end) {
        index left;
        bool start;
        u8 *target = memory + place({{ context }}tables, (index)position, left, start);
        const u32 mine = (u32)min((u64)left, end - position);
        const u64 rest = min((u64)left, last - position);
        // A word that began before belongs to the thread before.
        const u32 before = (0 - (u32)(u64)target) & 7;
        u32 skip = start || position == first ? 0 : before;
        // Two whole words, inside a run and inside the call.
        if (skip == before && skip + 16 <= left && skip + 8 < mine && position >= first + 8 && position + 31 <= last) {
            const u8 *source = packed + (position + skip - first);
            *(u64 *)(target + skip) = load_bytes(source, 8);
            *(u64 *)(target + skip + 8) = load_bytes(source + 8, 8);
            return;
        }
        while (skip < mine) {
            const u32 length = (u32)min((u64)(8 - ((u32)(u64)(target + skip) & 7)), rest - skip);
            const u64 from = position + skip;
            u64 value = 0;
            // Aligned words around the first and last bytes reach outside the packed bytes.
            if (from >= first + 8 && from + 16 <= last) {
                value = load_bytes(packed + (from - first), length);
            } else {
                for (u32 byte = 0; byte < length; byte++)
                    value |= (u64)packed[from - first + byte] << 8 * byte;
            }
            store_bytes(target + skip, value, length);
            skip += length;
        }
        position += mine;
    }
}
