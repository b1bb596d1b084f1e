
// Brings sectors to the L2 cache that the runs of a warp's words have in part: those in which a run begins or ends. All lanes call it, each with its word.
static __device__ __forceinline__ void prefetch_ends(const u8 *address, u32 word)
{
    const u32 low = (u32)(u64)address, lane = threadIdx.x % 32;
    const u32 before = __shfl_up_sync(0xffffffffu, low, 1), behind = __shfl_down_sync(0xffffffffu, low, 1);
    const bool begins = lane > 0 && low - before != word && low % 32 != 0;
    const bool ends = lane < 31 && behind - low != word && (low + word) % 32 != 0;
    if (begins || ends)
        prefetch(address);
}
