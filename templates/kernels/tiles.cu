// Tiles: packed neighbours are far apart in memory, and memory neighbours, {{ neighbour_stride }} bytes apart, are far apart in the packed
// bytes. Tiles of {{ tile_rows }} x {{ tile_columns }} words pass through shared memory, so that both sides see whole lines. The rows of a column
// are packed side by side; columns are neighbours in memory.
{%- if shifted %} Packed words lie astride the words of memory.{% endif %}
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
    typedef {{ word_type }} word;
    __shared__ word tile[{{ tile_columns }}][{{ tile_rows }} + 1];
    const u64 last = first + bytes;
    const u64 begin = first / {{ word }}, words = (last + {{ word - 1 }}) / {{ word }} - begin;
    const u64 rows = {{ rows }}ull, columns = {{ columns }}ull, plane = rows * columns;
    // A call inside one plane needs the tiles of some of its columns only.
    const u64 first_plane = begin / plane;
    const bool inside = (begin + words - 1) / plane == first_plane;
    const u64 first_column = inside ? begin % plane / rows : 0;
    const u64 last_column = inside ? (begin + words - 1) % plane / rows + 1 : columns;
    const u32 row_tiles = (u32)((rows + {{ tile_rows - 1 }}) / {{ tile_rows }});
    const u32 column_tiles = (u32)((last_column - first_column + {{ tile_columns - 1 }}) / {{ tile_columns }});
    // Tiles that follow each other write neighbouring lines.
{%- if pack %}
    const u32 row_tile = block % row_tiles, above = block / row_tiles;
    const u32 column_tile = above % column_tiles, planes = above / column_tiles;
{%- else %}
    const u32 column_tile = block % column_tiles, above = block / column_tiles;
    const u32 row_tile = above % row_tiles, planes = above / row_tiles;
{%- endif %}
    const u64 chosen = first_plane + planes;
    const u64 row = (u64)row_tile * {{ tile_rows }}, column = first_column + (u64)column_tile * {{ tile_columns }};
    const u32 tile_rows = (u32)min(rows - row, {{ tile_rows }}ull), tile_columns = (u32)min(last_column - column, {{ tile_columns }}ull);
    u8 *base = memory + outer({{ context }}tables, (index)chosen) + (i64)column * {{ neighbour_stride }};
    // Where the tile's first word is packed, counted from the first byte of the call; before it where the call begins inside.
    const i64 origin = (i64)((chosen * plane + column * rows + row) * {{ word }} - first);
    const auto packed_of = [&](u32 x, u32 y) { return origin + (i64)(x * rows + y) * {{ word }}; };
    const auto memory_of = [&](u32 x, u32 y) {
        return base + place({{ context }}tables, (index)(row + y)) + (i64)x * {{ neighbour_stride }};
    };

    const i64 end = packed_of(tile_columns - 1, tile_rows - 1) + {{ word }}, margin = {% if shifted and not pack %}8{% else %}0{% endif %};
    const bool whole = tile_rows == {{ tile_rows }} && tile_columns == {{ tile_columns }} && origin >= margin && end <= (i64)bytes - margin;

    if (block == 0 && (first | bytes) % {{ word }} != 0) {
        // One thread for each byte of the words that the call cuts, which may be the same one.
        const u64 head = min((0 - first) % {{ word }}, bytes), tail = (last - min(first + head, last)) % {{ word }};
        if (threadIdx.x < head + tail) {
            const u64 position = threadIdx.x < head ? first + threadIdx.x : last - tail + (threadIdx.x - head);
            const u64 of_word = position / {{ word }}, in_plane = of_word % plane;
            u8 *byte = memory + outer({{ context }}tables, (index)(of_word / plane)) + position % {{ word }}
                + place({{ context }}tables, (index)(in_plane % rows)) + (i64)(in_plane / rows) * {{ neighbour_stride }};
            {% if pack %}packed[position - first] = *byte{% else %}*byte = packed[position - first]{% endif %};
        }
    }

    const auto move = [&](auto tile_is) {
        const auto has = [&](u32 x, u32 y) {
            return tile_is.whole
                || (y < tile_rows && x < tile_columns && packed_of(x, y) >= 0 && packed_of(x, y) + {{ word }} <= (i64)bytes);
        };
#pragma unroll
        for (u32 pass = 0; pass < 2; pass++) {
            if ({% if pack %}pass == 0{% else %}pass == 1{% endif %}) {
#pragma unroll {{ steps }}
                for (u32 at = threadIdx.x; at < {{ tile_rows * tile_columns }}; at += {{ threads }}) {
                    const u32 x = at % {{ tile_columns }}, y = at / {{ tile_columns }};
                    if (has(x, y))
                        {% if pack %}tile[x][y] = __ldg((const word *)memory_of(x, y)){% else %}*(word *)memory_of(x, y) = tile[x][y]{% endif %};
                }
            } else {
{%- if shifted and pack %}
                // Between two rows of a column lies a packed word; before the first and behind the last, a part of one.
                const auto store = [&](u32 x, u32 y, bool before, bool behind) {
                    u8 *slot = packed + packed_of(x, y);
                    const u32 into = (u32)(u64)slot & {{ word - 1 }};
                    if (before && behind)
                        *(word *)(slot - into) = (word)(tile[x][y - 1] >> 8 * ({{ word }} - into) | tile[x][y] << 8 * into);
                    else if (behind)
                        store_bytes(slot, tile[x][y], {{ word }} - into);
                    else if (before)
                        store_bytes(slot - into, (u64)tile[x][y - 1] >> 8 * ({{ word }} - into), into);
                };
                if (tile_is.whole) {
#pragma unroll {{ steps }}
                    for (u32 at = threadIdx.x; at < {{ tile_rows * tile_columns }}; at += {{ threads }})
                        if (at % {{ tile_rows }} > 0)
                            store(at / {{ tile_rows }}, at % {{ tile_rows }}, true, true);
                    for (u32 at = threadIdx.x; at < {{ 2 * tile_columns }}; at += {{ threads }})
                        store(at / 2, at % 2 * {{ tile_rows }}, at % 2 == 1, at % 2 == 0);
                } else {
                    for (u32 at = threadIdx.x; at < {{ (tile_rows + 1) * tile_columns }}; at += {{ threads }}) {
                        const u32 y = at % {{ tile_rows + 1 }}, x = at / {{ tile_rows + 1 }};
                        store(x, y, y > 0 && has(x, y - 1), y < {{ tile_rows }} && has(x, y));
                    }
                }
{%- else %}
#pragma unroll {{ steps }}
                for (u32 at = threadIdx.x; at < {{ tile_rows * tile_columns }}; at += {{ threads }}) {
                    const u32 y = at % {{ tile_rows }}, x = at / {{ tile_rows }};
                    if (has(x, y)) {
{%- if shifted %}
                        const u8 *slot = packed + packed_of(x, y);
                        // Aligned words around the first and last bytes reach outside the packed bytes.
                        if (tile_is.whole || (packed_of(x, y) >= 8 && packed_of(x, y) + {{ word + 8 }} <= (i64)bytes)) {
                            tile[x][y] = (word)load_bytes(slot, {{ word }});
                        } else {
                            word value = 0;
                            for (u32 byte = 0; byte < {{ word }}; byte++)
                                value |= (word)slot[byte] << 8 * byte;
                            tile[x][y] = value;
                        }
{%- else %}
                        word *slot = (word *)(packed + packed_of(x, y));
                        {% if pack %}*slot = tile[x][y]{% else %}tile[x][y] = __ldg(slot){% endif %};
{%- endif %}
                    }
                }
{%- endif %}
            }
            if (pass == 0)
                __syncthreads();
        }
    };
    struct Whole {
        enum { whole = 1 };
    };
    struct Cut {
        enum { whole = 0 };
    };
    if (whole)
        move(Whole());
    else
        move(Cut());
}
