// Packs and unpacks of many types: every block finds the item whose work it does.
extern "C" __global__ void __launch_bounds__({{ threads }})
{{ entry }}(const __grid_constant__ Batch batch)
{
    for (u32 block = blockIdx.x; block < batch.blocks; block += gridDim.x) {
{%- if shared %}
        // Nobody fills shared memory again before all have read it.
        if (block != blockIdx.x)
            __syncthreads();
{%- endif %}
        const Item &item = item_of(batch, block);
        switch (item.kind) {
{%- for kind in kinds %}
        case {{ loop.index0 }}:
            {{ kind }}::move_block(item.memory, item.packed, item.tables, item.first, item.bytes, item, block - item.begin);
            break;
{%- endfor %}
        }
    }
}
