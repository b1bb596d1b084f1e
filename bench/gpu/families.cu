// The best of hand-written kernels for the layouts that sweep.cu has not: long runs of any length and alignment, arrays that are
// sent element by element, records of several runs, blocks in random order. What shapes win, and what a kernel family can reach.
//
//     nvcc -O3 -arch=sm_90 -std=c++17 --extended-lambda -o families families.cu && ./families [SEED]
//
// Every candidate is compared, byte by byte and gaps included, with a kernel that moves single bytes. Times are medians of seven
// with the L2 cache emptied before each.

#include "candidates.hpp"

#include <numeric>

// ---- Layouts.

constexpr u64 PACKED = 60 << 20;

static Layout triangle(u64 rows) {
    Layout layout{"upper triangle, rows of 1 to " + std::to_string(rows) + " floats"};
    for (u64 row = 0; row < rows; row++) layout.add((row * rows + row) * 4, (rows - row) * 4);
    return layout;
}

static Layout random_runs(std::mt19937_64 &random, u64 shortest, u64 longest, u64 gap) {
    Layout layout{"runs of " + std::to_string(shortest) + " to " + std::to_string(longest) + " bytes, any length"};
    for (u64 at = 0; layout.packed < PACKED;) {
        at += 1 + random() % gap;
        const u64 length = shortest + random() % (longest - shortest + 1);
        layout.add(at, length);
        at += length;
    }
    return layout;
}

// ---- Runs of any length and alignment. Some lanes of a warp have a tile of packed bytes. A tile is cut where it has enough bytes
// or enough runs, since each run is a step that waits for the one before: cut by bytes alone, the short rows at the end of a
// triangle keep the last tiles running three times as long as all others.

struct Tile {
    u64 begin;
    u32 run, bytes;
};

static std::vector<Tile> cut(const Layout &layout, u64 most_bytes, u32 most_runs) {
    std::vector<Tile> tiles;
    u64 at = 0;
    u32 held = most_runs;
    for (u32 run = 0; run < layout.runs.size(); run++)
        for (u64 left = layout.runs[run].length; left > 0;) {
            if (held == most_runs || tiles.back().bytes == most_bytes) {
                tiles.push_back({at, run, 0});
                held = 0;
            }
            const u64 taken = std::min(left, most_bytes - tiles.back().bytes);
            tiles.back().bytes += taken;
            at += taken;
            left -= taken;
            held++;
        }
    return tiles;
}

// The 16 bytes that begin `bytes` behind the first of two neighbouring words.
__device__ __forceinline__ uint4 shift(uint4 low, uint4 high, u32 bytes) {
    const u32 bits = (bytes & 3) * 8;
    const auto join = [&](u32 a, u32 b, u32 c, u32 d, u32 e) {
        return uint4{__funnelshift_r(a, b, bits), __funnelshift_r(b, c, bits), __funnelshift_r(c, d, bits), __funnelshift_r(d, e, bits)};
    };
    // The same for all lanes, because it is the same throughout a run.
    switch (bytes >> 2) {
    case 0: return join(low.x, low.y, low.z, low.w, high.x);
    case 1: return join(low.y, low.z, low.w, high.x, high.y);
    case 2: return join(low.z, low.w, high.x, high.y, high.z);
    default: return join(low.w, high.x, high.y, high.z, high.w);
    }
}

template <int lanes, int unroll> __device__ __forceinline__ void move_run(u8 *to, const u8 *from, u32 bytes, u32 lane) {
    const auto move_few = [&](u32 begin, u32 end) {
        for (u32 at = begin + lane; at < end; at += lanes) to[at] = __ldg(from + at);
    };
    const u32 head = min(bytes, (u32)(-(u64)to & 15)), words = (bytes - head) / 16;
    move_few(0, head);
    move_few(head + words * 16, bytes);
    uint4 *target = (uint4 *)(to + head);
    const u32 into = (u64)(from + head) & 15;
    const uint4 *source = (const uint4 *)(from + head - into);
    for (u32 base = 0; base < words; base += lanes * unroll) {
        uint4 low[unroll], high[unroll];
#pragma unroll
        for (int step = 0; step < unroll; step++) {
            const u32 at = base + step * lanes + lane;
            if (at < words) low[step] = __ldg(source + at);
            if (at < words && into) high[step] = __ldg(source + at + 1);
        }
#pragma unroll
        for (int step = 0; step < unroll; step++) {
            const u32 at = base + step * lanes + lane;
            if (at < words) target[at] = into ? shift(low[step], high[step], into) : low[step];
        }
    }
}

template <int lanes, int threads, int unroll, bool packs>
__global__ void __launch_bounds__(threads)
move_tiles(u8 *memory, u8 *packed, const i64 *offsets, const u64 *starts, const Tile *tiles, u32 count) {
    const u32 which = blockIdx.x * (threads / lanes) + threadIdx.x / lanes;
    if (which >= count) return;
    const Tile tile = tiles[which];
    u64 at = tile.begin;
    const u64 end = at + tile.bytes;
    u32 run = tile.run;
    i64 offset = __ldg(offsets + run);
    u64 start = __ldg(starts + run), next = __ldg(starts + run + 1);
    while (true) {
        u8 *place = memory + offset + (at - start);
        const u64 stop = min(next, end);
        if (stop < end) {
            // What the next run needs is under way while this one moves.
            run++;
            offset = __ldg(offsets + run);
            start = next;
            next = __ldg(starts + run + 1);
        }
        if (packs) move_run<lanes, unroll>(packed + at, place, stop - at, threadIdx.x % lanes);
        else move_run<lanes, unroll>(place, packed + at, stop - at, threadIdx.x % lanes);
        if (stop == end) return;
        at = stop;
    }
}

template <int lanes, int threads, int unroll> static void tile_shape(bool packs, const Tile *tiles, u32 count, const std::string &cut_at) {
    const u32 blocks = (count + threads / lanes - 1) / (threads / lanes);
    candidate(cut_at + ", " + std::to_string(lanes) + " lanes, " + std::to_string(unroll) + " words a lane, " + std::to_string(threads) + " threads",
              packs, [=] {
        if (packs) move_tiles<lanes, threads, unroll, true><<<blocks, threads>>>(memory, packed, offsets, starts, tiles, count);
        else move_tiles<lanes, threads, unroll, false><<<blocks, threads>>>(memory, packed, offsets, starts, tiles, count);
    });
}

static void sweep_runs(const Layout &layout) {
    open(layout);
    for (const bool packs : {true, false}) {
        for (const u64 most_bytes : {512, 1024, 2048, 4096, 8192})
            for (const u32 most_runs : {1, 2, 4, 8}) {
                const std::vector<Tile> tiles = cut(layout, most_bytes, most_runs);
                Tile *there = upload(tiles);
                const std::string cut_at = "tiles of " + std::to_string(most_bytes) + " bytes and " + std::to_string(most_runs) + " runs at most";
                tile_shape<32, 128, 2>(packs, there, tiles.size(), cut_at);
                tile_shape<32, 128, 4>(packs, there, tiles.size(), cut_at);
                if (most_bytes <= 2048) {
                    tile_shape<16, 128, 2>(packs, there, tiles.size(), cut_at);
                    tile_shape<8, 128, 2>(packs, there, tiles.size(), cut_at);
                    tile_shape<4, 256, 2>(packs, there, tiles.size(), cut_at);
                }
                check(cudaFree(there));
            }
        report(packs ? "pack" : "unpack");
    }
    close();
}

// ---- Arrays sent element by element. A block has some records of all arrays, in shared memory in packed order, so that both sides
// move whole lines. With a power of two of arrays, columns of the tile would lie in one bank: quads of words are permuted.

template <typename word, bool permuted> __device__ __forceinline__ u32 in_tile(u32 at) {
    constexpr u32 fits = 16 / sizeof(word);
    const u32 quad = at / fits;
    return permuted ? (quad ^ (quad / 8 & 7)) * fits + at % fits : at;
}

template <typename word, int arrays, int records, int threads, bool permuted, bool packs>
__global__ void __launch_bounds__(threads) move_fields(u8 *memory, u8 *packed, u64 distance, u64 count) {
    __shared__ __align__(16) word tile[records * arrays];
    const u64 first = blockIdx.x * (u64)records;
    const u32 has = min((u64)records, count - first), quads = has * arrays * sizeof(word) / 16;
    uint4 *line = (uint4 *)(packed + first * arrays * sizeof(word));
    const auto quad = [&](u32 at) -> uint4 & { return ((uint4 *)tile)[permuted ? at ^ (at / 8 & 7) : at]; };
    const auto element = [&](u32 at) { return (word *)(memory + at / records * distance) + first + at % records; };
    const auto inside = [&](u32 at) -> word & { return tile[in_tile<word, permuted>(at % records * arrays + at / records)]; };
    if (packs) {
#pragma unroll 8
        for (u32 at = threadIdx.x; at < arrays * records; at += threads)
            if (at % records < has) inside(at) = __ldg(element(at));
        __syncthreads();
        for (u32 at = threadIdx.x; at < quads; at += threads) line[at] = quad(at);
    } else {
#pragma unroll 4
        for (u32 at = threadIdx.x; at < quads; at += threads) quad(at) = __ldg(line + at);
        __syncthreads();
#pragma unroll 8
        for (u32 at = threadIdx.x; at < arrays * records; at += threads)
            if (at % records < has) *element(at) = inside(at);
    }
}

template <typename word, int arrays, int records, int threads, bool permuted> static void field_shape(bool packs, u64 distance, u64 count) {
    const u32 blocks = (count + records - 1) / records;
    candidate(std::to_string(records) + " records a block, " + std::to_string(threads) + " threads" + (permuted ? ", permuted" : ""), packs, [=] {
        if (packs) move_fields<word, arrays, records, threads, permuted, true><<<blocks, threads>>>(memory, packed, distance, count);
        else move_fields<word, arrays, records, threads, permuted, false><<<blocks, threads>>>(memory, packed, distance, count);
    });
}

template <typename word, int arrays> static void sweep_fields() {
    const u64 count = PACKED / (arrays * sizeof(word)) / 4096 * 4096, distance = count * sizeof(word) + 4096 * 33;
    Layout layout{std::to_string(arrays) + " arrays of " + std::to_string(sizeof(word)) + " bytes, element by element"};
    for (u64 record = 0; record < count; record++)
        for (int array = 0; array < arrays; array++) layout.add(array * distance + record * sizeof(word), sizeof(word));
    open(layout);
    // At most 48 KiB of shared memory.
    constexpr int part = arrays * sizeof(word) > 96 ? 2 : 1;
    for (const bool packs : {true, false}) {
        field_shape<word, arrays, 128, 128, false>(packs, distance, count);
        field_shape<word, arrays, 256 / part, 128, false>(packs, distance, count);
        field_shape<word, arrays, 256 / part, 256, false>(packs, distance, count);
        field_shape<word, arrays, 512 / part, 256, false>(packs, distance, count);
        field_shape<word, arrays, 128, 128, true>(packs, distance, count);
        field_shape<word, arrays, 256 / part, 128, true>(packs, distance, count);
        field_shape<word, arrays, 256 / part, 256, true>(packs, distance, count);
        report(packs ? "pack" : "unpack");
    }
    close();
}

// ---- Records of several runs: 3 float, double + int, 2 double, 7 short, char, which are 55 packed bytes in 120. Words of memory
// are 4 bytes, but the last two of a record; packed bytes pass through shared memory.

constexpr int EXTENT = 120, SIZE = 55, SLOTS = 15;

__device__ __forceinline__ int memory_of(int slot) {
    return slot < 3 ? slot * 4 : slot < 6 ? slot * 4 + 4 : slot < 10 ? slot * 4 + 16 : slot < 14 ? slot * 4 + 24 : 80;
}

__device__ __forceinline__ int packed_of(int slot) { return slot < 14 ? slot * 4 : 54; }

template <int records, int threads> __global__ void __launch_bounds__(threads) pack_records(const u8 *memory, u8 *packed, u64 count) {
    __shared__ __align__(16) u8 tile[records * SIZE + 16];
    const u64 first = blockIdx.x * (u64)records;
    const u32 has = min((u64)records, count - first), bytes = has * SIZE;
    for (u32 at = threadIdx.x; at < has * SLOTS; at += threads) {
        const u32 record = at / SLOTS, slot = at % SLOTS;
        const u8 *from = memory + (first + record) * EXTENT + memory_of(slot);
        u8 *to = tile + record * SIZE + packed_of(slot);
        const u32 value = slot == 14 ? *from : slot == 13 ? *(const uint16_t *)from : __ldg((const u32 *)from);
        const int length = slot == 14 ? 1 : slot == 13 ? 2 : 4;
        for (int byte = 0; byte < length; byte++) to[byte] = value >> 8 * byte;
    }
    __syncthreads();
    u8 *line = packed + first * SIZE;
    for (u32 at = threadIdx.x; at < bytes / 16; at += threads) ((uint4 *)line)[at] = ((uint4 *)tile)[at];
    for (u32 at = bytes / 16 * 16 + threadIdx.x; at < bytes; at += threads) line[at] = tile[at];
}

template <int records, int threads> __global__ void __launch_bounds__(threads) unpack_records(u8 *memory, const u8 *packed, u64 count) {
    __shared__ __align__(16) u8 tile[records * SIZE + 32];
    const u64 first = blockIdx.x * (u64)records;
    const u32 has = min((u64)records, count - first), bytes = has * SIZE;
    const u8 *line = packed + first * SIZE;
    for (u32 at = threadIdx.x; at < bytes / 16; at += threads) ((uint4 *)tile)[at] = __ldg((const uint4 *)line + at);
    for (u32 at = bytes / 16 * 16 + threadIdx.x; at < bytes; at += threads) tile[at] = line[at];
    __syncthreads();
#pragma unroll 4
    for (u32 at = threadIdx.x; at < has * 16; at += threads) {
        const u32 record = at / 16, slot = at % 16;
        if (slot == SLOTS) continue;
        const u32 from = record * SIZE + packed_of(slot);
        const u32 *words = (const u32 *)tile + from / 4;
        const u32 value = __funnelshift_r(words[0], words[1], from % 4 * 8);
        u8 *to = memory + (first + record) * EXTENT + memory_of(slot);
        if (slot == 14) *to = value;
        else if (slot == 13) *(uint16_t *)to = value;
        else *(u32 *)to = value;
    }
}

template <int records, int threads> static void record_shape(bool packs, u64 count) {
    const u32 blocks = (count + records - 1) / records;
    candidate(std::to_string(records) + " records a block, " + std::to_string(threads) + " threads", packs, [=] {
        if (packs) pack_records<records, threads><<<blocks, threads>>>(memory, packed, count);
        else unpack_records<records, threads><<<blocks, threads>>>(memory, packed, count);
    });
}

static void sweep_records() {
    const u64 count = PACKED / SIZE / 1024 * 1024;
    Layout layout{"records of 55 in 120 bytes"};
    for (u64 record = 0; record < count; record++)
        for (const auto &[offset, length] : std::initializer_list<std::pair<int, int>>{{0, 12}, {16, 12}, {40, 16}, {64, 14}, {80, 1}})
            layout.add(record * EXTENT + offset, length);
    open(layout);
    for (const bool packs : {true, false}) {
        record_shape<64, 128>(packs, count);
        record_shape<128, 128>(packs, count);
        record_shape<128, 256>(packs, count);
        record_shape<256, 256>(packs, count);
        record_shape<256, 512>(packs, count);
        report(packs ? "pack" : "unpack");
    }
    close();
}

// ---- Equal blocks in random order: either side may be walked in order, with a list that says where the other one lies. Random loads
// are cheaper than random stores, so the side that is written is walked in order: for an unpack that takes the inverse list.

template <typename word, int unroll, int threads, bool gathers>
__global__ void __launch_bounds__(threads) move_blocks(u8 *to, const u8 *from, const u32 *list, u32 count) {
    word value[unroll];
    u32 listed[unroll];
    const u32 base = blockIdx.x * (unroll * threads) + threadIdx.x;
#pragma unroll
    for (int step = 0; step < unroll; step++) {
        const u32 at = base + step * threads;
        if (at >= count) continue;
        listed[step] = __ldg(list + at);
        value[step] = __ldg((const word *)from + (gathers ? listed[step] : at));
    }
#pragma unroll
    for (int step = 0; step < unroll; step++) {
        const u32 at = base + step * threads;
        if (at < count) ((word *)to)[gathers ? at : listed[step]] = value[step];
    }
}

template <typename word, int unroll, int threads> static void block_shape(bool packs, const u32 *order, const u32 *inverse, u32 count) {
    const u32 blocks = (count + unroll * threads - 1) / (unroll * threads);
    const std::string shape = std::to_string(unroll) + " a thread, " + std::to_string(threads) + " threads";
    u8 *to = packs ? packed : memory, *from = packs ? memory : packed;
    // `order` has the place in memory of each packed block, `inverse` the packed place of each block of memory.
    candidate("loads by a list, " + shape, packs, [=] {
        move_blocks<word, unroll, threads, true><<<blocks, threads>>>(to, from, packs ? order : inverse, count);
    });
    candidate("stores by a list, " + shape, packs, [=] {
        move_blocks<word, unroll, threads, false><<<blocks, threads>>>(to, from, packs ? inverse : order, count);
    });
}

template <typename word> static void sweep_blocks(std::mt19937_64 &random) {
    const u32 count = PACKED / sizeof(word);
    std::vector<u32> order(count), inverse(count);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    Layout layout{"blocks of " + std::to_string(sizeof(word)) + " bytes in random order"};
    for (u32 at = 0; at < count; at++) {
        inverse[order[at]] = at;
        layout.add(order[at] * (i64)sizeof(word), sizeof(word));
    }
    open(layout);
    u32 *order_there = upload(order), *inverse_there = upload(inverse);
    for (const bool packs : {true, false}) {
        block_shape<word, 1, 256>(packs, order_there, inverse_there, count);
        block_shape<word, 1, 1024>(packs, order_there, inverse_there, count);
        block_shape<word, 2, 256>(packs, order_there, inverse_there, count);
        block_shape<word, 4, 128>(packs, order_there, inverse_there, count);
        report(packs ? "pack" : "unpack");
    }
    check(cudaFree(order_there));
    check(cudaFree(inverse_there));
    close();
}

int main(int arguments, char **argument) {
    const u64 seed = arguments > 1 ? strtoull(argument[1], nullptr, 10) : 7;
    printf("seed %llu\n", seed);
    std::mt19937_64 random(seed);
    prepare();
    sweep_runs(triangle(6000));
    sweep_runs(random_runs(random, 1000, 60000, 20000));
    sweep_runs(random_runs(random, 200, 4000, 2000));
    sweep_runs(random_runs(random, 32, 256, 200));
    sweep_fields<u32, 4>();
    sweep_fields<u32, 5>();
    sweep_fields<u64, 3>();
    sweep_fields<u64, 8>();
    sweep_fields<u32, 16>();
    sweep_fields<u32, 32>();
    sweep_records();
    sweep_blocks<uint4>(random);
    sweep_blocks<u64>(random);
    sweep_blocks<u32>(random);
    return mistakes == 0 ? 0 : 3;
}
