// Bytes of the memory of one type to the memory of another, at any alignment. A thread has 16 packed bytes, and stores the
// words of the target whose first byte of a run is among them, each put together from the runs of the source that it crosses.
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const Target &call, u32 block)
{
    u64 position = ((u64)block * {{ threads }} + threadIdx.x) * 16;
    const u64 end = min(position + 16, bytes);
    // Whole words around a run may reach outside of what the elements of the source span, near its ends.
    const i64 low = call.low + 7;
    const u64 inner = call.high - call.low >= 22 ? call.high - call.low - 22 : 0;
    // The byte of the call behind those that were loaded last: where it lies, and how many follow it in its run.
    u64 next = ~0ull;
    i64 offset = 0;
    index behind = 0;
    while (position < end) {
        index left;
        bool start;
        u8 *place_of = packed + target::place({{ context }}tables, (index)(call.first + position), left, start);
        const u32 mine = (u32)min((u64)left, end - position);
        const u64 rest = min((u64)left, bytes - position);
        // A word that began before belongs to the thread before.
        u32 skip = start || position == 0 ? 0 : (0 - (u32)(u64)place_of) & 7;
        while (skip < mine) {
            const u32 length = (u32)min((u64)(8 - ((u32)(u64)(place_of + skip) & 7)), rest - skip);
            u64 value = 0;
            for (u32 filled = 0; filled < length;) {
                const u64 at = position + skip + filled;
                // Words follow each other, mostly in one run.
                if (at != next || behind == 0)
                    offset = source::place({{ context }}tables, (index)(first + at), behind, start);
                const u32 piece = (u32)min((u64)behind, (u64)(length - filled));
                if ((u64)(offset - low) < inner) {
                    value |= (load_bytes(memory + offset, piece) & ~0ull >> (64 - 8 * piece)) << 8 * filled;
                } else {
                    for (u32 byte = 0; byte < piece; byte++)
                        value |= (u64)memory[offset + byte] << 8 * (filled + byte);
                }
                filled += piece;
                next = at + piece;
                offset += piece;
                behind -= piece;
            }
            store_bytes(place_of + skip, value, length);
            skip += length;
        }
        position += mine;
    }
}
