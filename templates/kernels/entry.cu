
{% if capped -%}
// A grid of fewer blocks than the work has: the caller keeps multiprocessors free.
{% endif -%}
extern "C" __global__ void __launch_bounds__({{ threads }}{% if resident > 1 %}, {{ resident }}{% endif %})
{{ entry }}(u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, u32 blocks, const __grid_constant__ {{ call }} call)
{
{%- if capped %}
    for (u32 block = blockIdx.x; block < blocks; block += gridDim.x) {% if shared %}{
        // Nobody fills shared memory again before all have read it.
        if (block != blockIdx.x)
            __syncthreads();
        move_block(memory, packed, tables, first, bytes, call, block);
    }
{%- else %}
        move_block(memory, packed, tables, first, bytes, call, block);
{%- endif %}
{%- else %}
    move_block(memory, packed, tables, first, bytes, call, blockIdx.x);
{%- endif %}
}
