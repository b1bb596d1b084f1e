// Elements in random order through shared memory: a block has a tile of the side that is written, and loads its elements in the order in
// which they lie on the other side. All blocks advance through that side together, so that a granule is fetched once for many tiles.
//
//     nvcc -O3 -arch=sm_90 -std=c++17 --extended-lambda -o orders orders.cu && ./orders [SEED [ONLY]]

#include "candidates.hpp"

using u16 = uint16_t;

// ---- What dtc did before: packed elements, or elements of memory, in their own order.

template <class word, int unroll, int threads>
__global__ void __launch_bounds__(threads) direct(word *target, const word *source, const u32 *list, u32 count, u32 to, u32 from) {
    word value[unroll];
    u32 listed[unroll];
    const u32 base = blockIdx.x * (unroll * threads) + threadIdx.x;
#pragma unroll
    for (int step = 0; step < unroll; step++) listed[step] = __ldcs(list + min(base + step * threads, count - 1));
#pragma unroll
    for (int step = 0; step < unroll; step++) value[step] = __ldg(source + (u64)listed[step] * from);
#pragma unroll
    for (int step = 0; step < unroll; step++)
        if (base + step * threads < count) __stcs(target + (u64)(base + step * threads) * to, value[step]);
}

template <class word, int threads>
__global__ void __launch_bounds__(threads) four_in_turn(word *target, const word *source, const u32 *list, u32 count, u32 from) {
    const u32 at = blockIdx.x * threads + threadIdx.x;
    if (at * 4 >= count) return;
    const uint4 four = __ldcs((const uint4 *)list + at);
    const u32 listed[] = {four.x, four.y, four.z, four.w};
    alignas(16) word value[4];
#pragma unroll
    for (int step = 0; step < 4; step++) value[step] = __ldg(source + (u64)listed[step] * from);
#pragma unroll
    for (u32 part = 0; part < sizeof(value) / 16; part++) __stcs((uint4 *)(target + at * 4) + part, ((uint4 *)value)[part]);
}

// ---- Tiles.

// Bits of the number of an element in its tile.
template <u32 elements> constexpr int slot_bits = 1 + slot_bits<(elements + 1) / 2>;
template <> constexpr int slot_bits<1> = 0;

enum Lists { APART, SHORT };
enum Caches { PLAIN, STREAMED, UNCACHED };

template <Caches caches, class word> __device__ __forceinline__ word load_once(const word *address) {
    if (caches != UNCACHED) return __ldg(address);
    word value;
    if (sizeof(word) == 8) asm("ld.global.nc.L1::no_allocate.b64 %0, [%1];" : "=l"(*(u64 *)&value) : "l"(address));
    else asm("ld.global.nc.L1::no_allocate.b32 %0, [%1];" : "=r"(*(u32 *)&value) : "l"(address));
    return value;
}

// Copies a tile from shared memory to where it belongs.
template <class word, int threads> __device__ __forceinline__ void store_tile(word *target, const word *stage, u32 first, u32 has, u32 to) {
    constexpr u32 many = 16 / sizeof(word);
    if (to == 1) {
        for (u32 at = threadIdx.x; at < has / many; at += threads) __stcs((uint4 *)(target + first) + at, ((const uint4 *)stage)[at]);
    } else {
#pragma unroll 4
        for (u32 at = threadIdx.x; at < has; at += threads) __stcs(target + (u64)(first + at) * to, stage[at]);
    }
}

// Entry `at` of a tile: element places[at] of the source belongs to slots[at] of the tile. SHORT puts both into 32 bits, with one place
// for 128 entries.
template <class word, int tile, int threads, int unroll, Lists lists, Caches caches>
__global__ void __launch_bounds__(threads) tiles(word *target, const word *source, const u32 *places, const u16 *slots, const u32 *bases, u32 count, u32 to,
                                                 u32 from) {
    extern __shared__ uint4 shared[];
    word *stage = (word *)shared;
    const u32 first = blockIdx.x * tile, has = min((u32)tile, count - first);
    if (lists == APART) {
        for (u32 base = threadIdx.x; base < has; base += threads * unroll) {
            u32 place[unroll], slot[unroll];
            word value[unroll];
#pragma unroll
            for (int step = 0; step < unroll; step++) {
                const u32 at = first + min(base + step * threads, has - 1);
                place[step] = __ldcs(places + at), slot[step] = __ldcs(slots + at);
            }
#pragma unroll
            for (int step = 0; step < unroll; step++) value[step] = load_once<caches>(source + (u64)place[step] * from);
#pragma unroll
            for (int step = 0; step < unroll; step++) stage[slot[step]] = value[step];
        }
    } else {
        constexpr int bits = slot_bits<tile>;
        for (u32 base = threadIdx.x; base * 4 < has; base += threads * (unroll / 4)) {
            uint4 entry[unroll / 4];
            u32 begin[unroll / 4];
            word value[unroll];
#pragma unroll
            for (int step = 0; step < unroll / 4; step++) {
                const u32 at = min(base + step * threads, has / 4 - 1) + first / 4;
                entry[step] = __ldcs((const uint4 *)places + at), begin[step] = __ldg(bases + at / 32);
            }
#pragma unroll
            for (int step = 0; step < unroll; step++) {
                const u32 own = ((const u32 *)&entry[step / 4])[step % 4];
                value[step] = load_once<caches>(source + (u64)(begin[step / 4] + (own >> bits)) * from);
            }
#pragma unroll
            for (int step = 0; step < unroll; step++) stage[((const u32 *)&entry[step / 4])[step % 4] & ((1u << bits) - 1)] = value[step];
        }
    }
    __syncthreads();
    store_tile<word, threads>(target, stage, first, has, to);
}

struct Permutation {
    std::vector<u32> order;
    u32 count, to, from;
    bool packs;
};

template <class word, int tile, int threads, int unroll> static void tile_shape(const Permutation &of) {
    constexpr int bits = slot_bits<tile>;
    std::vector<u32> sorted(of.count), places(of.count), packed_entries(of.count), bases(of.count / 128 + 1);
    std::vector<u16> slots(of.count);
    std::iota(sorted.begin(), sorted.end(), 0);
    bool fits = true;
    for (u32 first = 0; first < of.count; first += tile) {
        const u32 end = std::min(first + tile, of.count);
        std::sort(sorted.begin() + first, sorted.begin() + end, [&](u32 one, u32 two) { return of.order[one] < of.order[two]; });
        for (u32 at = first; at < end; at++) {
            places[at] = of.order[sorted[at]], slots[at] = sorted[at] - first;
            if (at % 128 == 0) bases[at / 128] = places[at];
            const u64 far = places[at] - bases[at / 128];
            fits &= far < 1u << (32 - bits);
            packed_entries[at] = (u32)far << bits | slots[at];
        }
    }
    u32 *places_there = upload(places), *entries_there = upload(packed_entries), *bases_there = upload(bases);
    u16 *slots_there = upload(slots);
    const u32 blocks = (of.count + tile - 1) / tile, bytes = tile * sizeof(word), count = of.count, to = of.to, from = of.from;
    word *target = (word *)(of.packs ? packed : memory);
    const word *source = (const word *)(of.packs ? memory : packed);
    const std::string shape = "tiles of " + std::to_string(bytes >> 10) + " KiB, " + std::to_string(threads) + " threads, " + std::to_string(unroll) + " a thread";
    const auto offer = [&](auto kernel, const std::string &name, const u32 *list) {
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
        candidate(shape + name, of.packs, [=] { kernel<<<blocks, threads, bytes>>>(target, source, list, slots_there, bases_there, count, to, from); });
    };
    offer(tiles<word, tile, threads, unroll, APART, PLAIN>, ", lists apart", places_there);
    if (fits) offer(tiles<word, tile, threads, unroll, SHORT, PLAIN>, ", short list", entries_there);
    if (fits) offer(tiles<word, tile, threads, unroll, SHORT, UNCACHED>, ", short list, not in L1", entries_there);
    for (void *piece : {(void *)places_there, (void *)entries_there, (void *)bases_there, (void *)slots_there}) check(cudaFree(piece));
}

template <class word, int spread> static void sweep_orders(std::mt19937_64 &random, u64 bytes, bool all) {
    const u32 count = bytes / sizeof(word);
    std::vector<u32> order(count), inverse(count);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    Layout layout{"elements of " + std::to_string(sizeof(word)) + " bytes, " + std::to_string(spread * sizeof(word)) + " apart, in random order"};
    for (u32 at = 0; at < count; at++) {
        inverse[order[at]] = at;
        layout.add((i64)order[at] * spread * sizeof(word), sizeof(word));
    }
    open(layout);
    for (const bool packs : {true, false}) {
        const Permutation of{packs ? order : inverse, count, packs ? 1u : spread, packs ? spread : 1u, packs};
        u32 *list = upload(of.order);
        const u32 blocks = (count + 255) / 256, fours = (count / 4 + 255) / 256, to = of.to, from = of.from;
        word *target = (word *)(packs ? packed : memory);
        const word *source = (const word *)(packs ? memory : packed);
        candidate("one after the other, 2 a thread, 128 threads", packs, [=] { direct<word, 2, 128><<<blocks, 128>>>(target, source, list, count, to, from); });
        if (packs) candidate("four in turn, 256 threads", packs, [=] { four_in_turn<word, 256><<<fours, 256>>>(target, source, list, count, from); });
        constexpr int kib = 1024 / sizeof(word);
        tile_shape<word, 48 * kib, 512, 8>(of);
        tile_shape<word, 32 * kib, 256, 8>(of);
        tile_shape<word, 96 * kib, 1024, 8>(of);
        if (all) {
            tile_shape<word, 16 * kib, 256, 4>(of);
            tile_shape<word, 32 * kib, 512, 4>(of);
            tile_shape<word, 32 * kib, 256, 4>(of);
            tile_shape<word, 48 * kib, 512, 4>(of);
            tile_shape<word, 48 * kib, 256, 8>(of);
            tile_shape<word, 96 * kib, 512, 8>(of);
            tile_shape<word, 112 * kib, 1024, 4>(of);
            tile_shape<word, 112 * kib, 1024, 8>(of);
            tile_shape<word, 192 * kib, 1024, 8>(of);
            tile_shape<word, 224 * kib, 1024, 8>(of);
        }
        check(cudaFree(list));
        report(packs ? "pack" : "unpack", 40);
    }
    close();
}

int main(int arguments, char **argument) {
    const u64 seed = arguments > 1 ? strtoull(argument[1], nullptr, 10) : 7;
    if (arguments > 2) only = argument[2];
    printf("seed %llu\n", seed);
    std::mt19937_64 random(seed);
    prepare();
    sweep_orders<u64, 2>(random, 32 << 20, true);
    sweep_orders<u32, 1>(random, 32 << 20, true);
    sweep_orders<u64, 1>(random, 8 << 20, false);
    sweep_orders<u64, 2>(random, 192 << 20, false);
    sweep_orders<u64, 16>(random, 32 << 20, false);
    return mistakes == 0 ? 0 : 3;
}
