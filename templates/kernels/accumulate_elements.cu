// Accumulate, with any reduction: one element a thread, whose bytes may lie apart.
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const Program &call, u32 block)
{
    const u32 operation = call.reduction & 0xff, element = call.reduction >> 8 & 0xff, size = call.reduction >> 16;
    const u64 skipped = ((u64)block * {{ threads }} + threadIdx.x) * size;
    if (skipped >= bytes)
        return;
    Value value = {0, 0};
    u8 *whole = 0;
    // The bytes are loaded, and then stored.
#pragma unroll 1
    for (u32 pass = 0; pass < 2; pass++) {
#pragma unroll 1
        for (u32 done = 0; done < size;) {
            u64 left;
            bool start;
            u8 *target = memory + interpret(call, tables, first + skipped + done, left, start);
            const u32 length = (u32)min((u64)(size - done), left);
            if (length == size) {
                whole = target;
                value = load_value(target, size);
            } else {
#pragma unroll 1
                for (u32 byte = 0; byte < length; byte++) {
                    if (pass == 0)
                        put(value, done + byte, target[byte]);
                    else
                        target[byte] = (u8)take(value, done + byte);
                }
            }
            done += length;
        }
        if (pass == 0)
            value = combine(operation, element, size, value, load_value(packed + skipped, size));
        if (whole) {
            store_value(whole, value, size);
            return;
        }
    }
}
