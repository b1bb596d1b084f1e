// Tiles: packed neighbours are far apart in memory, and memory neighbours, {{ neighbour_stride }} bytes apart, are far apart in the packed
// bytes. Tiles of {{ tile_rows }} x {{ tile_columns }} words pass through shared memory, so that both sides see whole lines. The rows of a column
// are packed side by side; columns are neighbours in memory.
extern "C" __global__ void __launch_bounds__({{ threads }})
{{ entry }}(u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, {{ call }} call)
{
    typedef {{ word_type }} word;
    __shared__ word tile[{{ tile_columns }}][{{ tile_rows }} + 1];
    const u64 begin = first / {{ word }}, words = bytes / {{ word }};
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
    const u32 row_tile = blockIdx.x % row_tiles, above = blockIdx.x / row_tiles;
    const u32 column_tile = above % column_tiles, planes = above / column_tiles;
{%- else %}
    const u32 column_tile = blockIdx.x % column_tiles, above = blockIdx.x / column_tiles;
    const u32 row_tile = above % row_tiles, planes = above / row_tiles;
{%- endif %}
    const u64 chosen = first_plane + planes;
    const u64 row = (u64)row_tile * {{ tile_rows }}, column = first_column + (u64)column_tile * {{ tile_columns }};
    const u32 tile_rows = (u32)min(rows - row, {{ tile_rows }}ull), tile_columns = (u32)min(last_column - column, {{ tile_columns }}ull);
    u8 *base = memory + outer({{ context }}tables, (index)chosen) + (i64)column * {{ neighbour_stride }};
    // The tile's first word, counted from the first of the call; before it where the call begins inside the tile.
    const i64 origin = (i64)(chosen * plane + column * rows + row - begin);
    const i64 last = origin + (i64)((tile_columns - 1) * rows + tile_rows - 1);
    word *target = (word *)packed + origin;

    const auto move = [&](auto tile_of) {
        const auto inside = [&](u32 x, u32 y) {
            return !tile_of.cut
                || (y < tile_rows && x < tile_columns && (u64)(origin + (i64)(x * rows + y)) < words);
        };
#pragma unroll
        for (u32 pass = 0; pass < 2; pass++) {
            if ({% if pack %}pass == 0{% else %}pass == 1{% endif %}) {
#pragma unroll {{ steps }}
                for (u32 at = threadIdx.x; at < {{ tile_rows * tile_columns }}; at += {{ threads }}) {
                    const u32 x = at % {{ tile_columns }}, y = at / {{ tile_columns }};
                    if (inside(x, y)) {
                        word *slot = (word *)(base + place({{ context }}tables, (index)(row + y)) + (i64)x * {{ neighbour_stride }});
                        {% if pack %}tile[x][y] = __ldg(slot){% else %}*slot = tile[x][y]{% endif %};
                    }
                }
            } else {
#pragma unroll {{ steps }}
                for (u32 at = threadIdx.x; at < {{ tile_rows * tile_columns }}; at += {{ threads }}) {
                    const u32 y = at % {{ tile_rows }}, x = at / {{ tile_rows }};
                    if (inside(x, y)) {
                        word *slot = target + (x * rows + y);
                        {% if pack %}*slot = tile[x][y]{% else %}tile[x][y] = __ldg(slot){% endif %};
                    }
                }
            }
            if (pass == 0)
                __syncthreads();
        }
    };
    struct Whole {
        enum { cut = 0 };
    };
    struct Cut {
        enum { cut = 1 };
    };
    if (tile_rows == {{ tile_rows }} && tile_columns == {{ tile_columns }} && origin >= 0 && last < (i64)words)
        move(Whole());
    else
        move(Cut());
}
