// Tiles, interpreted: packed neighbours are far apart in memory, and memory neighbours are far apart in the packed bytes. Tiles of words pass through
// shared memory, so that both sides see whole lines. The rows of a column are packed side by side; columns are neighbours in memory.

// The word that a thread has of memory, and of the packed words: column x and row y of the tile.
static __device__ __forceinline__ uint2 in_memory(const Tiles &its, u32 at)
{
    const u32 y = quotient(at, its.half_columns);
    return make_uint2(at - y * its.tile_columns, y);
}

static __device__ __forceinline__ uint2 in_packed(const Tiles &its, u32 at)
{
    const u32 x = quotient(at, its.half_rows);
    return make_uint2(x, at - x * its.tile_rows);
}

// `has(x, y)` tells whether the call has a word, which lies at `memory_of(x, y)` and is packed at `packed_of(x, y)`.
template <class word, class Has, class MemoryOf, class PackedOf>
static __device__ __forceinline__ void move_tile(const Tiles &its, word *tile, const Has &has, const MemoryOf &memory_of, const PackedOf &packed_of)
{
    const u32 words = its.tile_rows * its.tile_columns, pitch = its.tile_rows | 1;
#pragma unroll 2
    for (u32 at = threadIdx.x; at < words; at += {{ threads }}) {
        const uint2 own = {% if pack %}in_memory{% else %}in_packed{% endif %}(its, at);
        if (has(own.x, own.y))
            tile[own.x * pitch + own.y] = __ldg((const word *){% if pack %}memory_of{% else %}packed_of{% endif %}(own.x, own.y));
    }
    __syncthreads();
#pragma unroll 2
    for (u32 at = threadIdx.x; at < words; at += {{ threads }}) {
        const uint2 own = {% if pack %}in_packed{% else %}in_memory{% endif %}(its, at);
        if (has(own.x, own.y))
            *(word *){% if pack %}packed_of{% else %}memory_of{% endif %}(own.x, own.y) = tile[own.x * pitch + own.y];
    }
}

static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const Program &call, u32 block)
{
    __shared__ uint4 tile[{{ most_bytes // 16 }}];
    __shared__ i64 places[{{ most_rows }}];
    const Tiles &its = call.tiles;
    const u32 size = its.word;
    // Tiles that follow each other write neighbouring lines.
{%- if pack %}
    const u32 row_tile = block % its.row_tiles, above = block / its.row_tiles;
    const u32 column_tile = above % its.column_tiles, planes = above / its.column_tiles;
{%- else %}
    const u32 column_tile = block % its.column_tiles, above = block / its.column_tiles;
    const u32 row_tile = above % its.row_tiles, planes = above / its.row_tiles;
{%- endif %}
    const i64 row = (i64)row_tile * its.tile_rows - its.ahead;
    const u64 column = its.first_column + (u64)column_tile * its.tile_columns;
    const u32 columns = (u32)min(its.last_column - column, (u64)its.tile_columns);
    // Where the tile's first word is packed, counted from the first byte of the call; before it where the call begins inside.
    const u64 before = ((its.first_plane + planes) * its.columns + column) * its.rows;
    const i64 origin = (i64)(before * size - first) + row * size;
    // One thread for each byte of the {% if pack %}packed {% endif %}words that the call cuts, which may be the same one.
    const u32 head = (u32)min((0 - {% if pack %}(u64)packed{% else %}first{% endif %}) & (size - 1), bytes), tail = (u32)(bytes - head) & (size - 1);
    const u32 cut = block == 0 ? head + tail : 0;
    // Other threads find where the words of the tile's first column lie.
    for (u32 at = threadIdx.x; at < cut + its.tile_rows; at += {{ threads }}) {
        const u32 y = at - cut;
        u64 left, position = first + (at < head ? at : bytes - tail + (at - head));
        bool start;
        if (at >= cut) {
            position = (before + row + y) * size;
            if ((u64)(row + y) >= its.rows)
                continue;
        }
        const i64 place = interpret(call, tables, position, left, start);
        if (at >= cut)
            places[y] = place;
        else
            {% if pack %}packed[position - first] = memory[place]{% else %}memory[place] = packed[position - first]{% endif %};
    }
    __syncthreads();
    const auto position_of = [&](u32 x, u32 y) { return origin + (i64)(x * its.rows + y) * size; };
    const auto packed_of = [&](u32 x, u32 y) { return packed + position_of(x, y); };
    const auto memory_of = [&](u32 x, u32 y) { return memory + places[y] + (i64)x * its.stride; };
    const auto has = [&](u32 x, u32 y) {
        return x < columns && (u64)(row + y) < its.rows && position_of(x, y) >= 0 && position_of(x, y) + size <= (i64)bytes;
    };
{%- if not pack %}
    if (its.prefetches) {
        // Sectors that are stored in part are read: early, and not store by store.
        for (u32 at = threadIdx.x; at < its.tile_rows * its.tile_columns; at += {{ threads }}) {
            const uint2 own = in_memory(its, at);
            if (has(own.x, own.y))
                prefetch(memory_of(own.x, own.y));
        }
    }
{%- endif %}
    switch (size) {
{%- for size, type in words %}
    case {{ size }}:
        move_tile(its, ({{ type }} *)tile, has, memory_of, packed_of);
        break;
{%- endfor %}
    }
}
