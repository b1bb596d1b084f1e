// Blocks in random order alone: loads without stores, stores without loads, both, and both with a list, so that what the order costs is seen.
// Orders are computed, but for the last. A block of `bytes` bytes is `apart` bytes behind the one before it in memory.
//
//     nvcc -O3 -arch=sm_90 -std=c++17 --extended-lambda -o random random.cu && ./random

#include "candidates.hpp"

constexpr u64 PACKED = 32 << 20;
constexpr int THREADS = 256;

// A permutation of the numbers below 2^bits.
__host__ __device__ __forceinline__ u32 permuted(u32 at, u32 bits) {
    const u32 mask = (1u << bits) - 1, half = bits / 2;
    at = at * 0x9e3779b1u & mask, at ^= at >> half;
    at = at * 0x85ebca6bu & mask, at ^= at >> half;
    return at * 0xc2b2ae35u & mask;
}

enum Order { ASCENDING, RANDOM, LISTED };

// A thread has `unroll` words of 16 bytes; `each` of them make a block.
template <Order order, bool loads, bool stores, bool packs, int unroll>
__global__ void __launch_bounds__(THREADS) move(uint4 *memory, uint4 *packed, const u32 *list, u32 bits, u32 each, u32 apart) {
    uint4 value[unroll], *place[unroll];
    const u32 base = blockIdx.x * (THREADS * unroll) + threadIdx.x;
#pragma unroll
    for (int step = 0; step < unroll; step++) {
        const u32 at = base + step * THREADS, block = at / each;
        const u32 there = order == ASCENDING ? block : order == RANDOM ? permuted(block, bits) : __ldg(list + block);
        place[step] = memory + (u64)there * apart + at % each;
        value[step] = make_uint4(at, at, at, at);
    }
    if (loads) {
#pragma unroll
        for (int step = 0; step < unroll; step++) value[step] = __ldg(packs ? place[step] : packed + base + step * THREADS);
    }
#pragma unroll
    for (int step = 0; step < unroll; step++) {
        // Loads alone store nothing, which the compiler cannot know.
        if (stores || (value[step].x ^ value[step].y ^ value[step].z ^ value[step].w) == 0xdeadbeef) *(packs ? packed + base + step * THREADS : place[step]) = value[step];
    }
}

template <bool packs, int unroll> static void sweep(u32 bytes, u32 apart) {
    const u32 each = bytes / 16, blocks = PACKED / bytes;
    u32 bits = 0;
    while (1u << bits < blocks) bits++;
    std::vector<u32> order(blocks);
    for (u32 at = 0; at < blocks; at++) order[at] = permuted(at, bits);
    u32 *list = upload(order);
    check(cudaMalloc(&memory, (u64)blocks * apart));
    check(cudaMalloc(&packed, PACKED));
    check(cudaMemset(memory, 1, (u64)blocks * apart));
    check(cudaMemset(packed, 1, PACKED));
    uint4 *m = (uint4 *)memory, *p = (uint4 *)packed;
    const u32 grid = PACKED / 16 / (THREADS * unroll), words = apart / 16;
    printf("%s, %u of %u bytes, %d words a thread, us:", packs ? "pack" : "unpack", bytes, apart, unroll);
    printf("  ascending: loads %.1f", time([=] { move<ASCENDING, true, false, packs, unroll><<<grid, THREADS>>>(m, p, list, bits, each, words); }));
    printf(" stores %.1f", time([=] { move<ASCENDING, false, true, packs, unroll><<<grid, THREADS>>>(m, p, list, bits, each, words); }));
    printf(" both %.1f", time([=] { move<ASCENDING, true, true, packs, unroll><<<grid, THREADS>>>(m, p, list, bits, each, words); }));
    printf("; random: loads %.1f", time([=] { move<RANDOM, true, false, packs, unroll><<<grid, THREADS>>>(m, p, list, bits, each, words); }));
    printf(" stores %.1f", time([=] { move<RANDOM, false, true, packs, unroll><<<grid, THREADS>>>(m, p, list, bits, each, words); }));
    printf(" both %.1f", time([=] { move<RANDOM, true, true, packs, unroll><<<grid, THREADS>>>(m, p, list, bits, each, words); }));
    printf("; listed: both %.1f\n", time([=] { move<LISTED, true, true, packs, unroll><<<grid, THREADS>>>(m, p, list, bits, each, words); }));
    for (void *piece : {(void *)list, (void *)memory, (void *)packed}) check(cudaFree(piece));
}

int main() {
    prepare();
    for (const u32 apart : {1, 2})
        for (const u32 bytes : {32, 64, 128, 256}) {
            sweep<true, 1>(bytes, bytes * apart);
            sweep<true, 4>(bytes, bytes * apart);
            sweep<false, 1>(bytes, bytes * apart);
            sweep<false, 4>(bytes, bytes * apart);
        }
    return 0;
}
