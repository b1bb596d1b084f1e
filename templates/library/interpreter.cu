// Interprets a layout: where packed byte `at` of the type lies in memory. A program is a table of nodes; it fits the
// parameters of the launch, or lies at the beginning of the tables.
struct Node {
    u32 kind, entries, child, shift;
    u64 size, magic;
    i64 stride;
    u64 table;
};

enum { DENSE, STREAM, INDEXED, RUNS, RECORD };

// The tiles of a call. `quotient` divides by the numbers whose names begin with half.
struct Tiles {
    u64 rows, columns, first_plane, first_column, last_column;
    i64 stride;
    u32 tile_rows, tile_columns, half_rows, half_columns, row_tiles, column_tiles, ahead, prefetches;
    u64 word;
};

// The records of a call, whose fields lie in arrays of their own.
struct Fields {
    // The first record that the call has whole, and behind the last; how many follow each other in memory; where the fields are in the tables.
    u64 begin, end, group, table;
    // Bytes of a record, packed and from one to the next in memory; what divides their places on both sides; records of a tile.
    u32 size;
    int stride;
    u32 memory, packed, records;
    // Fields, and chunks of a tile's records. A warp moves one field of one chunk at a time.
    u32 count, half_count, chunks;
};

// A field of a record: in memory and in the packed record.
struct Field {
    i64 offset;
    u32 packed, width;
};

// The groups of a call: the first that it has whole, and behind the last; where their words are in the tables.
struct Groups {
    u64 begin, end, table;
    // The offset of a group's first packed byte.
    i64 lead;
    // Packed bytes of a group, groups of a tile, and words of a group.
    u32 size, groups, words, half_words;
    // Bytes of the words of memory that packs load, and of the parts that they put into shared memory.
    u32 word, part;
    u64 prefetches;
};

struct Program : Bounds {
    u64 size, magic;
    i64 extent, origin;
    u32 shift, root, count, reduction;
    Node nodes[INLINE_NODES];
    union {
        Tiles tiles;
        Fields fields;
        Groups groups;
    };
};

// at / divisor: `half` is 2^31 / divisor, rounded up.
static __device__ __forceinline__ u32 quotient(u32 at, u32 half)
{
    return __umulhi(2 * at + 1, half);
}

// at / size, for at < 2^63; a shift of 64 stands for a size of 1.
static __device__ __forceinline__ u64 divide(u64 at, u64 magic, u32 shift)
{
    return shift == 64 ? at : __umul64hi(at, magic) >> shift;
}

// The last entry that begins at or before `at`.
static __device__ __forceinline__ u32 search(const u64 *starts, u32 low, u32 high, u64 at)
{
    while (low < high) {
        const u32 middle = low + (high - low + 1) / 2;
        if (starts[middle] <= at)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

// Behind a run of a list: where the next one begins, which is found without a search.
struct Cursor {
    // Its packed place, or none.
    u64 at;
    // Its entry in the list of starts, and how many entries later its offset lies.
    const u64 *start;
    u32 offsets;
    // How many runs the list has from it on.
    u32 runs;
    // Where the list lies in memory.
    i64 base;
};

// Where byte `at` of node `next` lies, which is at `place` and was asked for as byte `asked` of the whole.
static __device__ __forceinline__ i64 descend(
    const Node *nodes, const u8 *tables, u32 next, u64 at, i64 place, const u64 asked, u64 &left, bool &start, Cursor &cursor)
{
    for (;;) {
        const Node &node = nodes[next];
        const u8 *table = tables + node.table;
        switch (node.kind) {
        case DENSE:
            left = node.size - at;
            start = at == 0;
            return place + (i64)at;
        case STREAM: {
            const u64 copy = divide(at, node.magic, node.shift);
            at -= copy * node.size;
            place += (i64)copy * node.stride;
            next = node.child;
            break;
        }
        case INDEXED: {
            const u64 copy = divide(at, node.magic, node.shift);
            at -= copy * node.size;
            place += ((const i64 *)table)[copy];
            next = node.child;
            break;
        }
        case RUNS: {
            // Starts with an end mark, offsets, and for every 2^shift bytes the run at their beginning.
            const u64 *starts = (const u64 *)table;
            const i64 *offsets = (const i64 *)(starts + node.entries + 1);
            const u32 *chunks = (const u32 *)(offsets + node.entries);
            const u64 chunk = at >> node.shift;
            const u32 run = search(starts, chunks[chunk], chunks[chunk + 1], at);
            left = starts[run + 1] - at;
            start = at == starts[run];
            cursor = {asked + left, starts + run + 1, node.entries + 1, node.entries - run - 1, place};
            return place + offsets[run] + (i64)(at - starts[run]);
        }
        default: {
            // Starts, offsets, and the node of every part.
            const u64 *starts = (const u64 *)table;
            const i64 *offsets = (const i64 *)(starts + node.entries);
            const u32 *parts = (const u32 *)(offsets + node.entries);
            const u32 part = search(starts, 0, node.entries - 1, at);
            at -= starts[part];
            place += offsets[part];
            next = parts[part];
        }
        }
    }
}

static __device__ __forceinline__ i64 interpret(
    const Program &program, const u8 *tables, const u64 asked, u64 &left, bool &start, Cursor &cursor)
{
    const Node *nodes = program.count <= INLINE_NODES ? program.nodes : (const Node *)tables;
    const u64 element = divide(asked, program.magic, program.shift);
    const i64 place = program.origin + (i64)element * program.extent;
    return descend(nodes, tables, program.root, asked - element * program.size, place, asked, left, start, cursor);
}

static __device__ __forceinline__ i64 interpret(const Program &program, const u8 *tables, u64 at, u64 &left, bool &start)
{
    Cursor cursor;
    return interpret(program, tables, at, left, start, cursor);
}

// The same of a thread that goes from run to run.
static __device__ __forceinline__ i64 proceed(
    const Program &program, const u8 *tables, u64 at, u64 &left, bool &start, Cursor &cursor)
{
    if (at != cursor.at || cursor.runs == 0)
        return interpret(program, tables, at, left, start, cursor);
    left = cursor.start[1] - cursor.start[0];
    start = true;
    const i64 place = cursor.base + (i64)cursor.start[cursor.offsets];
    cursor.at += left;
    cursor.start++;
    cursor.runs--;
    return place;
}
