
// The first `bytes` bytes of one part, and the others of another.
static __device__ __forceinline__ u32 join(u32 one, u32 other, int bytes)
{
    const u32 mask = bytes >= 4 ? 0xffffffffu : bytes <= 0 ? 0 : (1u << 8 * bytes) - 1;
    return (one & mask) | (other & ~mask);
}

static __device__ __forceinline__ uint4 join(const uint4 &one, const uint4 &other, u32 bytes)
{
    const int some = (int)bytes;
    return make_uint4(join(one.x, other.x, some), join(one.y, other.y, some - 4), join(one.z, other.z, some - 8),
                      join(one.w, other.w, some - 12));
}

static __device__ __forceinline__ u8 byte_of(const uint4 &value, u32 byte)
{
    const u32 part = byte < 8 ? byte < 4 ? value.x : value.y : byte < 12 ? value.z : value.w;
    return (u8)(part >> 8 * (byte % 4));
}

// The word whose bytes `begin` to `end` lie as far from `address`, from the aligned words that hold them; byte by byte where these
// reach out of `low` to `high`.
static __device__ __forceinline__ uint4 load_joined(const u8 *address, u32 begin, u32 end, u64 low, u64 high)
{
    if (((u64)(address + begin) & ~15ull) < low || (((u64)(address + end) + 15) & ~15ull) > high) {
        u64 half[2] = {0, 0};
        for (u32 byte = begin; byte < end; byte++) {
            const u64 shifted = (u64)address[byte] << 8 * (byte % 8);
            half[0] |= byte < 8 ? shifted : 0;
            half[1] |= byte < 8 ? 0 : shifted;
        }
        return make_uint4((u32)half[0], (u32)(half[0] >> 32), (u32)half[1], (u32)(half[1] >> 32));
    }
    const u32 skip = (u32)(u64)address & 15;
    const uint4 *words = (const uint4 *)(address - skip);
    uint4 one = make_uint4(0, 0, 0, 0), other = one;
    if (skip + begin < 16)
        one = __ldg(words);
    if (skip + end > 16)
        other = __ldg(words + 1);
    return funnel(one, other, skip);
}
