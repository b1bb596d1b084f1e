// Tiles: packed neighbours are far apart in memory, and memory neighbours, {{ neighbour_stride }} bytes apart, are far apart in the packed
// bytes. Tiles of {{ tile_rows }} x {{ tile_columns }} words pass through shared memory, so that both sides see whole lines. The rows of a column
// are packed side by side; columns are neighbours in memory.
{%- if shifted %} Words of memory are unaligned to the packed words.{% endif %}
{#- A thread's word of a step: `lines` lines of `length` words pass in turn. Where a step has whole lines, `at_once` of them, a thread keeps its
    place `along` a line, so that what depends on it is found once. -#}
{%- macro word_of_step(order, along, length, across, lines, at_once) %}
{%- if at_once %}
            const u32 {{ along }} = {{ order }}_{{ along }}, {{ across }} = step * {{ at_once }} + {{ order }}_{{ across }};
            const bool own = {% if threads % length %}{{ order }}_{{ across }} < {{ at_once }}{{ " && " if lines % at_once }}{% endif %}
                {%- if lines % at_once %}{{ across }} < {{ lines }}{% elif threads % length == 0 %}true{% endif %};
{%- else %}
            const u32 at = step * {{ threads }} + threadIdx.x, {{ along }} = at % {{ length }}, {{ across }} = at / {{ length }};
            const bool own = {% if lines * length % threads %}at < {{ lines * length }}{% else %}true{% endif %};
{%- endif %}
{%- endmacro %}
{%- macro in_memory_order(rows) %}{{ word_of_step("memory", "x", tile_columns, "y", rows, rows_at_once) }}{% endmacro %}
{%- macro in_packed_order() %}{{ word_of_step("packed", "y", tile_rows, "x", tile_columns, columns_at_once) }}{% endmacro %}
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
    typedef {{ word_type }} word;
{%- if pool %}
    word (*const tile)[{{ pitch }}] = (word (*)[{{ pitch }}]){{ pool }};
{%- else %}
    __shared__ word tile[{{ tile_columns }}][{{ pitch }}];
{%- endif %}
{%- if row_places %}
    // Where the rows of the tile are in memory: a place takes divisions, and all columns have the same.
{%- if pool %}
    i64 *const row_place = (i64 *)((u8 *){{ pool }} + {{ tile_bytes }});
{%- else %}
    __shared__ i64 row_place[{{ row_places }}];
{%- endif %}
{%- endif %}
    const u64 last = first + bytes;
    const u64 begin = first / {{ word }}, end = (last + {{ word - 1 }}) / {{ word }};
    const u64 rows = {{ rows }}ull, columns = {{ columns }}ull, plane = rows * columns;
    // Where packed byte 0 would lie.
    const u64 zero = (u64)packed - first;
{%- if shifted %}
    // Every word of memory begins so many bytes into an aligned packed word, and ends in the next.
    const u32 into = (u32)(zero % {{ word }});
{%- endif %}
    // Tiles begin at lines of the packed bytes, which may be before a column, and at lines of memory.
    const u64 ahead = zero / {{ word }} % {{ line_rows }};
    // A call inside one plane needs the tiles of some of its columns only.
    const u64 first_plane = begin / plane;
    const bool inside = (end - 1) / plane == first_plane;
    const u64 first_column = inside ? begin % plane / rows / {{ line_columns }} * {{ line_columns }} : 0;
    const u64 last_column = inside ? (end - 1) % plane / rows + 1 : columns;
    const u32 row_tiles = (u32)((rows + ahead + {{ tile_rows - 1 }}) / {{ tile_rows }});
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
    const i64 row = (i64)row_tile * {{ tile_rows }} - (i64)ahead;
    const u64 column = first_column + (u64)column_tile * {{ tile_columns }};
    const u32 tile_columns = (u32)min(last_column - column, {{ tile_columns }}ull);
    u8 *base = memory + outer({{ context }}tables, (index)chosen) + (i64)column * {{ neighbour_stride }};
    // Where the tile's first word is packed, counted from the first byte of the call; before it where the call begins inside.
    const i64 origin = (i64)((chosen * plane + column * rows) * {{ word }} - first) + row * {{ word }};
    const auto packed_of = [&](u32 x, u32 y) { return origin + (i64)(x * {% if tile_rows == rows %}{{ tile_rows }}{% else %}rows{% endif %} + y) * {{ word }}; };
    // The first of the tile's rows of memory{% if shifted and pack %}: the one before its packed words{% endif %}.
    const i64 first_row = row{% if shifted and pack %} - 1{% endif %};
{%- if row_places %}
    const auto memory_of = [&](u32 x, u32 y) { return base + row_place[y] + (i64)x * {{ neighbour_stride }}; };
{%- else %}
    const auto memory_of = [&](u32 x, u32 y) {
        return base + place({{ context }}tables, (index)(first_row + y)) + (i64)x * {{ neighbour_stride }};
    };
{%- endif %}
    // The same of any packed word.
    const auto address_of = [&](u64 at) {
        const u64 in_plane = at % plane;
        return memory + outer({{ context }}tables, (index)(at / plane)) + place({{ context }}tables, (index)(in_plane % rows))
            + (i64)(in_plane / rows) * {{ neighbour_stride }};
    };

    // One thread for each byte of the {% if pack %}packed {% endif %}words that the call cuts, which may be the same one.
    const u64 head = min((0 - {% if pack %}(u64)packed{% else %}first{% endif %}) % {{ word }}, bytes), tail = (bytes - head) % {{ word }};
    if (block == 0 && threadIdx.x < head + tail) {
        const u64 position = threadIdx.x < head ? first + threadIdx.x : last - tail + (threadIdx.x - head);
        u8 *byte = address_of(position / {{ word }}) + position % {{ word }};
        {% if pack %}packed[position - first] = *byte{% else %}*byte = packed[position - first]{% endif %};
    }

    // Before the first byte of the call, or behind its last.
    if (packed_of(tile_columns - 1, {{ tile_rows }}) <= 0 || origin >= (i64)bytes)
        return;
{%- if row_places %}

    for (u32 y = threadIdx.x; y < {{ row_places }}; y += {{ threads }}) {
        if ((u64)(first_row + y) < rows)
            row_place[y] = place({{ context }}tables, (index)(first_row + y));
    }
{%- if pack or prefetched %}
    __syncthreads();
{%- endif %}
{%- endif %}

    const auto in_call = [&](i64 position) { return position >= 0 && position + {{ word }} <= (i64)bytes; };
{%- if shifted %}
    const auto partly_in_call = [&](i64 position) { return position > -{{ word }} && position < (i64)bytes; };
{%- endif %}
{%- if rows_at_once %}
    const u32 memory_x = threadIdx.x % {{ tile_columns }}, memory_y = threadIdx.x / {{ tile_columns }};
{%- endif %}
{%- if columns_at_once and (pack or not shifted) %}
    const u32 packed_y = threadIdx.x % {{ tile_rows }}, packed_x = threadIdx.x / {{ tile_rows }};
{%- endif %}
    // Threads may have no word in a step. All loads of a thread are under way before its first store to shared memory.
    const auto move = [&](auto tile_is) {
        const auto has = [&](u32 x, u32 y) { return tile_is.whole || (x < tile_columns && (u64)(row + y) < rows); };
{%- if pack %}
{%- if shifted %}
#pragma unroll {{ loads }}
        for (u32 step = 0; step < {{ load_steps }}; step++) {
{{- in_memory_order(tile_rows + 1) }}
            // Row 0 is the one before the tile.
            const i64 of_column = first_row + y;
            const bool has_word = x < tile_columns && (u64)of_column < rows && partly_in_call(packed_of(x, y) - {{ word }});
            if (own && (tile_is.whole || has_word))
                tile[x][y] = __ldg((const word *)memory_of(x, y));
        }
{%- else %}
        word value[{{ memory_steps }}] = {};
#pragma unroll
        for (u32 step = 0; step < {{ memory_steps }}; step++) {
{{- in_memory_order(tile_rows) }}
            if (own && has(x, y) && (tile_is.whole || in_call(packed_of(x, y))))
                value[step] = __ldg((const word *)memory_of(x, y));
        }
#pragma unroll
        for (u32 step = 0; step < {{ memory_steps }}; step++) {
{{- in_memory_order(tile_rows) }}
            if (own)
                tile[x][y] = value[step];
        }
{%- endif %}
{%- if shifted %}
        if (!tile_is.whole && row <= 0) {
            // The word before a column ends the column before.
            for (u32 x = threadIdx.x; x < tile_columns; x += {{ threads }}) {
                const i64 before = packed_of(x, (u32)-row) - {{ word }};
                if (partly_in_call(before))
                    tile[x][-row] = __ldg((const word *)address_of((first + before) / {{ word }}));
            }
        }
{%- endif %}
        __syncthreads();
#pragma unroll
        for (u32 step = 0; step < {{ packed_steps }}; step++) {
{{- in_packed_order() }}
            const i64 position = packed_of(x, y){% if shifted %} - into{% endif %};
            if (own && has(x, y) && (tile_is.whole || in_call(position)))
                *(word *)(packed + position) = {% if shifted %}(word)(tile[x][y] >> 8 * ({{ word }} - into) | tile[x][y + 1] << 8 * into){% else %}tile[x][y]{% endif %};
        }
{%- else %}
{%- if prefetched %}
        // Sectors that are stored in part are read: early, and not store by store.
#pragma unroll
        for (u32 step = 0; step < {{ memory_steps }}; step++) {
{{- in_memory_order(tile_rows) }}
            if (own && has(x, y) && (tile_is.whole || in_call(packed_of(x, y))))
                prefetch(memory_of(x, y));
        }
{%- endif %}
{%- if shifted %}
#pragma unroll {{ loads }}
        for (u32 step = 0; step < {{ load_steps }}; step++) {
            // Behind the tile comes the row of packed words in which its last row of words ends.
            const u32 at = step * {{ threads }} + threadIdx.x;
            const bool own = at < {{ tile_rows * tile_columns }};
            const u32 y = own ? at % {{ tile_rows }} : {{ tile_rows }}, x = own ? at / {{ tile_rows }} : at - {{ tile_rows * tile_columns }};
            const i64 of_column = row + y, position = packed_of(x, y) - into;
            const bool has_word = x < tile_columns && of_column >= 0 && of_column <= (i64)rows && in_call(position);
            if (at < {{ (tile_rows + 1) * tile_columns }} && (tile_is.whole || has_word))
                tile[x][y] = __ldg((const word *)(packed + position));
        }
{%- else %}
        word value[{{ packed_steps }}] = {};
#pragma unroll
        for (u32 step = 0; step < {{ packed_steps }}; step++) {
{{- in_packed_order() }}
            if (own && has(x, y) && (tile_is.whole || in_call(packed_of(x, y))))
                value[step] = __ldg((const word *)(packed + packed_of(x, y)));
        }
#pragma unroll
        for (u32 step = 0; step < {{ packed_steps }}; step++) {
{{- in_packed_order() }}
            if (own)
                tile[x][y] = value[step];
        }
{%- endif %}
{%- if shifted %}
        if (!tile_is.whole) {
            // The first and the last packed word may reach outside of the packed bytes.
            for (u32 at = threadIdx.x; at < {{ (tile_rows + 1) * tile_columns }}; at += {{ threads }}) {
                const u32 x = at % {{ tile_columns }}, y = at / {{ tile_columns }};
                const i64 of_column = row + y, position = packed_of(x, y) - into;
                if (x < tile_columns && of_column >= 0 && of_column <= (i64)rows && partly_in_call(position) && !in_call(position)) {
                    word value = 0;
                    for (i64 byte = max(0 - position, (i64)0); byte < min((i64)bytes - position, (i64){{ word }}); byte++)
                        value |= (word)packed[position + byte] << 8 * byte;
                    tile[x][y] = value;
                }
            }
        }
{%- endif %}
        __syncthreads();
#pragma unroll
        for (u32 step = 0; step < {{ memory_steps }}; step++) {
{{- in_memory_order(tile_rows) }}
            if (own && has(x, y) && (tile_is.whole || in_call(packed_of(x, y))))
                *(word *)memory_of(x, y) = {% if shifted %}(word)(tile[x][y] >> 8 * into | tile[x][y + 1] << 8 * ({{ word }} - into)){% else %}tile[x][y]{% endif %};
        }
{%- endif %}
    };
    // All words of the tile are in the call{% if shifted %}, and those around them{% endif %}.
    const i64 margin = {% if shifted %}{{ word }}{% else %}0{% endif %};
    const bool whole = row >= {% if shifted and pack %}1{% else %}0{% endif %} && row + {{ tile_rows }} <= (i64)rows && tile_columns == {{ tile_columns }} && origin >= margin
        && packed_of({{ tile_columns - 1 }}, {{ tile_rows }}) + margin <= (i64)bytes;
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
