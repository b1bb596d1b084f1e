
// A word lies between every 32 in shared memory: words at multiples of 128 bytes lie in different banks.
static __device__ __forceinline__ u32 padded(u32 at)
{
    return at + at / 128 * 4;
}

// Brings bytes `head` to `until` of lines of memory to shared memory, where they lie as they do in the lines, padded. All loads of a thread, one
// each round, are under way at once. Nothing outside of `low` to `high` is read, where the first line may begin and the last one end.
template <u32 threads, u32 rounds>
static __device__ __forceinline__ void stage_memory(u8 *stage, const uint4 *lines, u32 head, u32 until, const u8 *low, const u8 *high)
{
    const u32 begin = (u64)lines < (u64)low ? 1 : 0, end = (u32)min((u64)((u64)high - (u64)lines) / 16, (u64)1 << 30);
    const auto whole = [&](u32 at) { return at >= begin && at < end; };
    uint4 value[rounds];
#pragma unroll
    for (u32 round = 0; round < rounds; round++) {
        const u32 at = round * threads + threadIdx.x;
        if (at * 16 < until && whole(at))
            value[round] = __ldg(lines + at);
    }
#pragma unroll
    for (u32 round = 0; round < rounds; round++) {
        const u32 at = round * threads + threadIdx.x;
        if (at * 16 < until && whole(at)) {
            u32 *words = (u32 *)(stage + padded(at * 16));
            words[0] = value[round].x;
            words[1] = value[round].y;
            words[2] = value[round].z;
            words[3] = value[round].w;
        }
    }
    if (begin > 0 || end * 16 < until) {
#pragma unroll 1
        for (u32 byte = head + threadIdx.x; byte < until; byte += threads)
            if (!whole(byte / 16))
                stage[padded(byte)] = ((const u8 *)lines)[byte];
    }
}
