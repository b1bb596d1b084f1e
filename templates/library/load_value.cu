
// An element at any address, in pieces that are aligned.
static __device__ __forceinline__ Value load_value(const u8 *address, u32 bytes)
{
    const u32 multiple = (u32)(u64)address | bytes;
    return multiple % 8 == 0 ? load_pieces<u64>(address, bytes)
        : multiple % 4 == 0  ? load_pieces<u32>(address, bytes)
        : multiple % 2 == 0  ? load_pieces<u16>(address, bytes)
                             : load_pieces<u8>(address, bytes);
}

static __device__ __forceinline__ void store_value(u8 *address, const Value &value, u32 bytes)
{
    const u32 multiple = (u32)(u64)address | bytes;
    if (multiple % 8 == 0)
        store_pieces<u64>(address, value, bytes);
    else if (multiple % 4 == 0)
        store_pieces<u32>(address, value, bytes);
    else if (multiple % 2 == 0)
        store_pieces<u16>(address, value, bytes);
    else
        store_pieces<u8>(address, value, bytes);
}
