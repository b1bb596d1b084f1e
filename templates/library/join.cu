
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

// Two aligned words that hold 16 bytes, and where in them these begin.
struct Pair {
    uint4 one, other;
    u32 skip;
};

// The words that hold bytes `begin` to `end` of those at `address`; byte by byte where they may reach out of `inner` bytes from `low` on.
static __device__ __forceinline__ Pair load_joined(const u8 *address, u32 begin, u32 end, u64 low, u64 inner)
{
    Pair pair;
    pair.one = make_uint4(0, 0, 0, 0);
    pair.other = pair.one;
    if ((u64)address - low >= inner) {
        pair.skip = 0;
        u64 half[2] = {0, 0};
#pragma unroll 1
        for (u32 byte = begin; byte < end; byte++) {
            const u64 shifted = (u64)address[byte] << 8 * (byte % 8);
            half[0] |= byte < 8 ? shifted : 0;
            half[1] |= byte < 8 ? 0 : shifted;
        }
        pair.one = make_uint4((u32)half[0], (u32)(half[0] >> 32), (u32)half[1], (u32)(half[1] >> 32));
    } else {
        pair.skip = (u32)(u64)address & 15;
        const uint4 *words = (const uint4 *)(address - pair.skip);
        if (pair.skip + begin < 16)
            pair.one = __ldg(words);
        if (pair.skip + end > 16)
            pair.other = __ldg(words + 1);
    }
    return pair;
}

static __device__ __forceinline__ uint4 word_of(const Pair &pair)
{
    return funnel(pair.one, pair.other, pair.skip);
}
