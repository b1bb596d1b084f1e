
// `length` bytes, 1 to 8, at any address, from the aligned words that hold them. What follows them is not zero.
static __device__ __forceinline__ u64 load_bytes(const u8 *address, u32 length)
{
    const u32 skip = (u32)(u64)address & 7;
    const u64 *words = (const u64 *)(address - skip);
    const u64 low = __ldg(words);
    if (skip == 0)
        return low;
    const u64 high = skip + length > 8 ? __ldg(words + 1) : 0;
    return low >> 8 * skip | high << (64 - 8 * skip);
}
