// Records: a block has the packed bytes of up to {{ records }} records, {{ stride }} bytes apart, in shared memory. Its lanes go through their memory
// byte by byte, so that each store of a warp has one sector of memory; bytes between fields are left out.
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
{%- if pool %}
    uint4 *const stage = {{ pool }};
{%- else %}
    __shared__ uint4 stage[{{ shared // 16 }}];
{%- endif %}
    // Where each byte of a record is packed.
    u16 *const places = (u16 *)(stage + {{ stage_bytes // 16 }});
    const u64 last = first + bytes;
    const index record = (index)(first / {{ size }}) + (index)block * {{ records }};
    const u64 begin = (u64)record * {{ size }};
    // Only the bytes that the call has.
    const u64 from = max(begin, first), to = min(begin + {{ records * size }}, last);
    if (from >= to)
        return;
    u8 *target = memory + (outer({{ context }}tables, record) + {{ low }});
    // The packed bytes lie in shared memory as they do in memory, from inside an aligned word on.
    const u8 *source = packed + (from - first);
    const u32 length = (u32)(to - from), head = (u32)(u64)source & 15, until = head + length, ahead = (u32)(from - begin);
    const uint4 *lines = (const uint4 *)(source - head);
    // Words around both ends of the call reach out of the packed bytes.
    const u32 lowest = head > from - first ? 1 : 0, highest = (u32)min((u64)(until + 15), head + (last - from)) / 16;
    uint4 value[{{ rounds }}];
#pragma unroll
    for (u32 round = 0; round < {{ rounds }}; round++) {
        const u32 at = round * {{ threads }} + threadIdx.x;
        if (at >= lowest && at < highest)
            value[round] = __ldcs(lines + at);
    }
    for (u32 at = threadIdx.x; at < {{ stride }}; at += {{ threads }})
        places[at] = __ldg((const u16 *)(tables + {{ table }}) + at);
#pragma unroll
    for (u32 round = 0; round < {{ rounds }}; round++) {
        const u32 at = round * {{ threads }} + threadIdx.x;
        if (at >= lowest && at < highest) {
            stage[at] = value[round];
        } else if (at * 16 < until) {
            for (u32 byte = max(at * 16, head); byte < min(at * 16 + 16, until); byte++)
                ((u8 *)stage)[byte] = ((const u8 *)lines)[byte];
        }
    }
    __syncthreads();
    // Warps begin at lines of memory; lanes in front of the first record wrap around to records that the block does not have. The L1 cache
    // merges stores to the sectors of a line, one after the other.
    const u32 skew = (u32)(u64)target & 127, base = threadIdx.x / 32 * {{ 128 * lines }} + threadIdx.x % 32 - skew;
    const u8 *const staged = (const u8 *)stage + head;
    const bool whole = length == {{ records * size }};
#pragma unroll 1
    for (u32 line = 0; line < {{ lines }}; line++) {
        u8 byte[4];
        bool has[4];
#pragma unroll
        for (u32 sector = 0; sector < 4; sector++) {
            const u32 at = base + line * 128 + sector * 32, its = at / {{ stride }}, place = places[at - its * {{ stride }}];
            // Of a part of the block's packed bytes, the first may be inside a record.
            const u32 own = its * {{ size }} + place - ahead;
            has[sector] = at < {{ records * stride }} && place != 0xffff && (whole || own < length);
            if (has[sector])
                byte[sector] = staged[own];
        }
#pragma unroll
        for (u32 sector = 0; sector < 4; sector++) {
            if (has[sector])
                target[base + line * 128 + sector * 32] = byte[sector];
        }
    }
}
