// Lines: packed bytes to short runs close to each other. A thread has 16 packed bytes. Those of a block lie in shared memory as they do in memory, from
// a line on, so that each store of a warp has one sector; runs outside of that are stored as they come.
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
    enum { SPAN = {{ span }} };
{%- if pool %}
    uint4 *const shared = {{ pool }};
{%- else %}
    __shared__ uint4 shared[2 * SPAN / 16];
{%- endif %}
    __shared__ u8 *line;
    __shared__ u32 reach;
    // Which bytes are filled, behind them.
    u8 *const stage = (u8 *)shared, *const filled = stage + SPAN;
    const u64 last = first + bytes;
    u64 position = first + ((u64)block * {{ threads }} + threadIdx.x) * 16;
    const u64 end = min(position + 16, last);
    index left = 0;
    bool start;
{%- if context %}
    Cursor cursor = {};
{%- endif %}
    u8 *target = memory;
    u64 low = 0, high = 0;
    if (position < end) {
        target += place({{ context }}tables, (index)position, left, start);
        // Most sectors are stored in part, for which the L2 cache reads them.
        prefetch(target);
        const u8 *const source = packed + (position - first);
        // Aligned words around the first and last bytes reach outside the packed bytes.
        if (position >= first + 8 && position + 24 <= last) {
            low = load_bytes(source, 8);
            high = load_bytes(source + 8, 8);
        } else {
            for (u32 byte = 0; byte < (u32)(end - position); byte++)
                (byte < 8 ? low : high) |= (u64)source[byte] << 8 * (byte & 7);
        }
    }
    if (threadIdx.x == 0) {
        line = target - ((u64)target & 127);
        reach = 0;
    }
    for (u32 at = threadIdx.x; at < SPAN / 16; at += {{ threads }})
        ((uint4 *)filled)[at] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    u32 furthest = 0;
    while (position < end) {
        const u32 mine = (u32)min((u64)left, end - position);
        // Below the line, this wraps around.
        const u64 at = (u64)target - (u64)line;
        const bool near = at < SPAN && at + mine <= SPAN;
        u8 *const to = near ? stage + at : target;
        for (u32 byte = 0; byte < mine; byte++) {
            to[byte] = (u8)low;
            if (near)
                filled[at + byte] = 1;
            low = low >> 8 | high << 56;
            high >>= 8;
        }
        if (near)
            furthest = max(furthest, (u32)at + mine);
        position += mine;
        if (position < end)
            target = memory + place({{ context }}tables, (index)position, left, start);
    }
    atomicMax(&reach, furthest);
    __syncthreads();
    // The L1 cache merges stores to the sectors of a line, one after the other.
    for (u32 base = threadIdx.x / 32 * 128 + threadIdx.x % 32; base / 128 * 128 < reach; base += {{ threads * 4 }}) {
#pragma unroll
        for (u32 sector = 0; sector < 128; sector += 32) {
            if (filled[base + sector])
                line[base + sector] = stage[base + sector];
        }
    }
}
