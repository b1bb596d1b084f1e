// Packed words of 16 bytes, each from {{ 16 // word }} neighbouring words of {{ word }} bytes, aligned on both sides. Words that the tables of the call lead
// to are skipped where an entry is none.
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const Tabled &call, u32 block)
{
    typedef {{ word_type }} word;
    const u64 last = first + bytes;
    const index begin = (index)((first + {{ word - 1 }}) / {{ word }}), end = (index)(last / {{ word }});

    if (block == 0 && (first | bytes) % {{ word }} != 0) {
        // One thread for each byte of the words that the call cuts, which may be the same one.
        const u64 head = min((u64)begin * {{ word }} - first, bytes), tail = end < begin ? 0 : last % {{ word }};
        if (threadIdx.x < head + tail) {
            const u64 position = threadIdx.x < head ? first + threadIdx.x : last - tail + (threadIdx.x - head);
            u64 from = (u64)memory;
            index left;
            if (source::place(call, tables, (u64)memory, (index)(position / {{ word }}), from, left))
                packed[position - first] = *(const u8 *)(from + position % {{ word }});
        }
    }
    if (end <= begin)
        return;

    const index words = end - begin;
    word *const target = (word *)(packed + ((u64)begin * {{ word }} - first));
    const bool aligned = (u64)target % 16 == 0;
    const index base = ((index)block * {{ threads * steps }} + threadIdx.x) * {{ 16 // word }};
    // All loads are under way before the first store.
    __align__(16) word value[{{ steps }}][{{ 16 // word }}];
    // A bit for each word that no entry skips.
    u32 found[{{ steps }}];
#pragma unroll
    for (u32 step = 0; step < {{ steps }}; step++) {
        const index at = base + step * {{ threads * 16 // word }};
        u64 from = (u64)memory, behind = (u64)memory;
        index left = 0, rest;
        bool here = false, there = false;
        if (at < words) {
            here = source::place(call, tables, (u64)memory, begin + at, from, left);
            if (left < {{ 16 // word }} && left < words - at)
                there = source::place(call, tables, (u64)memory, begin + at + left, behind, rest);
        }
        found[step] = 0;
#pragma unroll
        for (u32 number = 0; number < {{ 16 // word }}; number++) {
            const bool own = number < left;
            if ((own ? here : there) && at + number < words) {
                value[step][number] = __ldg((const word *)(own ? from : behind - left * {{ word }}) + number);
                found[step] |= 1u << number;
            }
        }
    }
#pragma unroll
    for (u32 step = 0; step < {{ steps }}; step++) {
        const index at = base + step * {{ threads * 16 // word }};
        if (aligned && found[step] == {{ 2 ** (16 // word) - 1 }}) {
            *(uint4 *)(target + at) = *(const uint4 *)value[step];
        } else {
#pragma unroll
            for (u32 number = 0; number < {{ 16 // word }}; number++) {
                if (found[step] >> number & 1)
                    target[at + number] = value[step][number];
            }
        }
    }
}
