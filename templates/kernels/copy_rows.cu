// Rows of {{ row }} bytes of the target: aligned words of its memory, up to {{ slots }} for a row, each put together from the runs of the
// source that it crosses. Words that a row fills are stored whole, the ones at its ends in parts.
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const Target &call, u32 block)
{
    const index slot = (index)block * {{ threads }} + threadIdx.x;
    const index row = (index)(call.first / {{ row }}) + slot / {{ slots }};
    const u64 begin = (u64)row * {{ row }}, end = call.first + bytes;
    if (begin >= end)
        return;
    u8 *target = packed + target::place(tables, row);
    // The word's bytes are bytes `column` to `column + 8` of the row, of which the call may have a part.
    const int column = (int)(slot % {{ slots }}) * 8 - (int)((u64)target & 7);
    const int from = max(column, begin < call.first ? (int)(call.first - begin) : 0);
    const int to = min(column + 8, (int)min(end - begin, {{ row }}ull));
    if (from >= to)
        return;
    const u32 length = to - from;
    const u64 position = begin + from - call.first + first;

    // Whole words around a run may reach outside of what the elements of the source span, near its ends.
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
    index left;
    bool start;
    const i64 offset = source::place(tables, (index)position, left, start);
    u32 filled = (u32)min((index)length, left);
    u64 value = load(offset, filled);
    while (filled < length) {
        const i64 next = source::place(tables, (index)(position + filled), left, start);
        const u32 piece = (u32)min((index)(length - filled), left);
        value = (value & (1ull << 8 * filled) - 1) | load(next, piece) << 8 * filled;
        filled += piece;
    }
    store_part(target + from, value, length);
}
