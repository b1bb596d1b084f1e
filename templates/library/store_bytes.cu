
// The first `length` bytes of a value, 0 to 8, to any address, in the widest stores that are aligned there.
static __device__ __forceinline__ void store_bytes(u8 *address, u64 value, u32 length)
{
    while (length > 0) {
        const u32 place = (u32)(u64)address;
        u32 width = 1;
        if ((place & 7) == 0 && length >= 8) {
            width = 8;
            *(u64 *)address = value;
        } else if ((place & 3) == 0 && length >= 4) {
            width = 4;
            *(u32 *)address = (u32)value;
        } else if ((place & 1) == 0 && length >= 2) {
            width = 2;
            *(u16 *)address = (u16)value;
        } else {
            *address = (u8)value;
        }
        if (width == 8)
            return;
        value >>= 8 * width;
        address += width;
        length -= width;
    }
}
