
// Brings the line of an address to the L2 cache.
static __device__ __forceinline__ void prefetch(const u8 *address)
{
#ifdef __CUDA_ARCH__
    asm volatile("prefetch.global.L2 [%0];" : : "l"(address));
#endif
}
