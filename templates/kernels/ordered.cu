// Ordered: blocks whose packed order is not that of memory, in the order of memory. Word `at` of that order is packed at
// source(at) and stored at target(at), so that sectors of memory are stored whole. Stores leave the cache to the packed bytes.
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
    typedef {{ word_type }} word;
    const index begin = (index)(first / {{ word }}), words = (index)(bytes / {{ word }});
    const index base = (index)block * {{ threads * unroll }} + threadIdx.x;
    // Threads beyond the end move the last word once more: where a store may be left out, the compiler puts the load of its word behind the other stores.
    word value[{{ unroll }}];
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index at = begin + min(base + step * {{ threads }}, words - 1);
        value[step] = __ldg((const word *)(packed + (source({{ context }}tables, at) - (i64)first)));
    }
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index at = begin + min(base + step * {{ threads }}, words - 1);
        __stcs((word *)(memory + target({{ context }}tables, at)), value[step]);
    }
}
