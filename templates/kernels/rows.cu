// Rows of {{ row }} bytes: aligned words of memory, up to {{ slots }} for a row, from packed bytes at any address. Words that a row fills are
// stored whole, the ones at its ends in parts.
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
    const index slot = (index)block * {{ threads }} + threadIdx.x;
    const index row = (index)(first / {{ row }}) + slot / {{ slots }};
    const u64 end = first + bytes, begin = (u64)row * {{ row }};
    if (begin >= end)
        return;
    u8 *target = memory + place({{ context }}tables, row);
    // The word's bytes are bytes `column` to `column + 8` of the row.
    const int column = (int)(slot % {{ slots }}) * 8 - (int)((u64)target & 7);
    int from = max(column, 0), to = min(column + 8, {{ row }});
    if (from >= to)
        return;
{%- if prefetched %}
    // The sectors in which the row begins and ends are read, if it has them in part: early, and not store by store.
    if ((from == 0 && (u64)target % 32 != 0) || (to == {{ row }} && (u64)(target + to) % 32 != 0))
        prefetch(target + from);
{%- endif %}
    const u64 position = begin + from;
    // Aligned words around the first and last bytes reach outside the packed bytes.
    if (position < first + 8 || position + 16 > end) {
        for (; from < to; from++)
            if (begin + from >= first && begin + from < end)
                target[from] = packed[begin + from - first];
        return;
    }
    const u32 length = to - from;
    store_part(target + from, load_bytes(packed + (position - first), length), length);
}
