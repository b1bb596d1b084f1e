
// The 16 bytes that begin `skip` bytes, 0 to 15, into two neighbouring words.
static __device__ __forceinline__ uint4 funnel(const uint4 &low, const uint4 &high, u32 skip)
{
    u32 part[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (u32 at = 0; at < 6; at++)
        part[at] = skip & 8 ? part[at + 2] : part[at];
#pragma unroll
    for (u32 at = 0; at < 5; at++)
        part[at] = skip & 4 ? part[at + 1] : part[at];
    // The shift takes the low five bits: the bytes within a part.
    return make_uint4(__funnelshift_r(part[0], part[1], 8 * skip), __funnelshift_r(part[1], part[2], 8 * skip),
                      __funnelshift_r(part[2], part[3], 8 * skip), __funnelshift_r(part[3], part[4], 8 * skip));
}
