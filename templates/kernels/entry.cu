
// Every block of the grid takes one block of the work, or several where the caller keeps multiprocessors free.
extern "C" __global__ void __launch_bounds__({{ threads }})
{{ entry }}(u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, u32 blocks, const __grid_constant__ {{ call }} call)
{
    for (u32 block = blockIdx.x; block < blocks; block += gridDim.x) {% if shared %}{
        // Nobody fills shared memory again before all have read it.
        if (block != blockIdx.x)
            __syncthreads();
        move_block(memory, packed, tables, first, bytes, call, block);
    }
{%- else %}
        move_block(memory, packed, tables, first, bytes, call, block);
{%- endif %}
}
