// One item of a batch: a call of one type, with the first block of the work that is its own.
struct Item : Bounds {
    u8 *memory, *packed;
    const u8 *tables;
    u64 first, bytes;
    const void *program;
    u32 kind, begin;
};

// The items, in the order of their blocks. Few travel in the parameters of the launch; many lie in memory, with the item of
// every block behind them.
struct Batch {
    u32 count, blocks;
    const Item *items;
    Item own[{{ inline_items }}];
};

static __device__ __forceinline__ const Item &item_of(const Batch &batch, u32 block)
{
    if (batch.count > {{ inline_items }})
        return batch.items[((const u32 *)(batch.items + batch.count))[block]];
    // The last item that begins at or before the block.
    u32 low = 0, high = batch.count - 1;
    while (low < high) {
        const u32 middle = low + (high - low + 1) / 2;
        if (batch.own[middle].begin <= block)
            low = middle;
        else
            high = middle - 1;
    }
    return batch.own[low];
}
