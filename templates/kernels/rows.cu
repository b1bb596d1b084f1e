// Rows of {{ row }} bytes: aligned words of memory, up to {{ slots }} for a row, from packed bytes at any address. Words that a row fills are
// stored whole, the ones at its ends in parts.
extern "C" __global__ void __launch_bounds__({{ threads }})
{{ entry }}(u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, {{ call }} call)
{
    const index slot = (index)blockIdx.x * {{ threads }} + threadIdx.x;
    const index row = (index)(first / {{ row }}) + slot / {{ slots }};
    const u64 end = first + bytes, begin = (u64)row * {{ row }};
    if (begin >= end)
        return;
    u8 *target = memory + place({{ context }}tables, row);
    const u32 before = (u32)(u64)target & 7;
    // The word's bytes are bytes `column` to `column + 8` of the row.
    const i64 column = (i64)(slot % {{ slots }}) * 8 - before;
    i64 from = max(column, 0ll), to = min(column + 8, {{ row }}ll);
    from = max(from, (i64)(first - begin));
    to = min(to, (i64)(end - begin));
    if (from >= to)
        return;
    const u64 position = begin + from;
    const u8 *source = packed + (position - first);
    if (to - from == 8 && position >= first + 8 && position + 16 <= end) {
        *(u64 *)(target + column) = load_bytes(source, 8);
        return;
    }
    u64 value = 0;
    for (u32 byte = 0; byte < (u32)(to - from); byte++)
        value |= (u64)source[byte] << 8 * byte;
    store_bytes(target + from, value, (u32)(to - from));
}
