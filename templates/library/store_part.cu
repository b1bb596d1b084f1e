
// The first `length` bytes of a value, 1 to 8, to any address inside one aligned word. Ends of runs begin or end a word, and
// take a few aligned stores without a loop.
static __device__ __forceinline__ void store_part(u8 *address, u64 value, u32 length)
{
    const u32 skip = (u32)(u64)address & 7;
    if (length == 8) {
        *(u64 *)address = value;
    } else if (skip == 0) {
        if (length & 4)
            *(u32 *)address = (u32)value, address += 4, value >>= 32;
        if (length & 2)
            *(u16 *)address = (u16)value, address += 2, value >>= 16;
        if (length & 1)
            *address = (u8)value;
    } else if (skip + length == 8) {
        // The shortest store is aligned first.
        if (length & 1)
            *address++ = (u8)value, value >>= 8;
        if (length & 2)
            *(u16 *)address = (u16)value, address += 2, value >>= 16;
        if (length & 4)
            *(u32 *)address = (u32)value;
    } else {
        for (; length > 0; length--, value >>= 8)
            *address++ = (u8)value;
    }
}
