// Packs and unpacks of many types: every block finds the item whose work it does.
extern "C" __global__ void __launch_bounds__({{ threads }})
{{ entry }}(const __grid_constant__ Batch batch)
{
    const Item &item = item_of(batch, blockIdx.x);
    const u32 block = blockIdx.x - item.begin;
    switch (item.kind) {
{%- for kind in kinds %}
    case {{ loop.index0 }}:
        {{ kind.name }}::move_block(item.memory, item.packed, item.tables, item.first, item.bytes, {{ kind.call }}, block);
        break;
{%- endfor %}
    }
}
