// Packs and unpacks a list of runs, 32 to a warp: a scan over the lanes gives every run its packed position, and the warp
// moves one run after the other.
typedef unsigned long long u64;

struct Program {
    unsigned runs;
    int unpack;
    long long base;
};

extern "C" __global__ void __launch_bounds__(64) move(unsigned char* memory, unsigned char* packed,
                                                      const unsigned char* tables, u64 first, u64 bytes,
                                                      const __grid_constant__ Program program) {
    const longlong2* runs = (const longlong2*)tables;
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u64 done = 0;
    for (unsigned start = 0; start < program.runs; start += 32) {
        long long offset = 0;
        u64 length = 0;
        if (start + lane < program.runs) {
            longlong2 run = __ldg(runs + start + lane);
            offset = program.base + run.x;
            length = (u64)run.y;
        }
        u64 end = length;
        for (unsigned delta = 1; delta < 32; delta *= 2) {
            u64 other = __shfl_up_sync(0xffffffff, end, delta);
            if (lane >= delta) end += other;
        }
        unsigned full = __ballot_sync(0xffffffff, length != 0);
        while (full != 0) {
            int source = __ffs((int)full) - 1;
            full &= full - 1;
            u64 to = done + __shfl_sync(0xffffffff, end, source);
            u64 from = to - __shfl_sync(0xffffffff, length, source);
            long long at = __shfl_sync(0xffffffff, offset, source);
            if (source % 2 != warp) continue;
            for (u64 position = from + lane; position < to; position += 32) {
                if (position - first >= bytes) continue;
                unsigned char* byte = memory + at + (long long)(position - from);
                if (program.unpack) {
                    *byte = packed[position - first];
                } else {
                    packed[position - first] = *byte;
                }
            }
        }
        done += __shfl_sync(0xffffffff, end, 31);
        __syncwarp();
    }
}
