// Nodes above those of fixed layouts: the entries of a table of the call lead to places of one node, or to addresses; parts of a record
// follow each other; a fixed layout lies at an offset. A table has a node more, which tells its places and its number.
enum { TABLE = RECORD + 1, ADDRESSES, PART, FIXED };

// A layout with index tables, for tables of a call. `report`: where a fault is noted, or 0.
struct Tabled {
    u64 report;
    u32 root, unused;
    Node nodes[TABLED_NODES];
};

// Where byte `at` lies; false if an entry skips it.
static __device__ __forceinline__ bool place_by_tables(const Tabled &program, const u8 *tables, u64 memory, u64 at, u64 &place)
{
    for (u32 next = program.root;;) {
        const Node &node = program.nodes[next];
        if (node.kind == PART) {
            if (at < node.size) {
                place += node.stride;
                next = node.child;
            } else {
                at -= node.size;
                next++;
            }
            continue;
        }
        if (node.kind == FIXED) {
            u64 left;
            bool start;
            Cursor cursor;
            place = descend(program.nodes, tables, node.child, at, (i64)place + node.stride, at, left, start, cursor);
            return true;
        }
        const u64 copy = divide(at, node.magic, node.shift);
        at -= copy * node.size;
        if (node.kind == STREAM) {
            place += copy * node.stride;
        } else if (node.kind == INDEXED) {
            place += ((const i64 *)(tables + node.table))[copy];
        } else {
            const i64 entry = node.entries ? ((const i64 *)node.table)[copy] : (i64)((const int *)node.table)[copy];
            if (node.kind == ADDRESSES) {
                if (entry == 0)
                    return false;
                place += entry - memory;
            } else {
                const Node &more = program.nodes[next + 1];
                if ((u64)entry >= more.size) {
                    if (entry >= 0 && program.report != 0)
                        beyond(program.report, more.entries, copy, entry);
                    return false;
                }
                place += entry * node.stride;
            }
        }
        next = node.child;
    }
}
