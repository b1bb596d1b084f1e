// Runs through shared memory: a block has a tile of packed bytes or of records there, so that loads have no chains, and every sector of
// memory is stored by as few requests as may be. Beside them runs of a few bytes by masks, a byte a lane.
//
//     nvcc -O3 -arch=sm_90 -std=c++17 --extended-lambda -o staged staged.cu && ./staged [SEED [ONLY]]

#include "runs.hpp"

constexpr u64 PACKED = 32 << 20;

// 8 or 16 bytes of shared memory at any address.
__device__ __forceinline__ u64 staged8(const u8 *stage, u32 at) {
    const u64 *words = (const u64 *)(stage + (at & ~7u));
    return funnel(words[0], words[1], at & 7);
}
__device__ __forceinline__ uint4 staged16(const u8 *stage, u32 at) {
    const uint4 *words = (const uint4 *)(stage + (at & ~15u));
    return funnel(words[0], words[1], at & 15);
}
__device__ __forceinline__ u32 staged4(const u8 *stage, u32 at) {
    const u32 *words = (const u32 *)(stage + (at & ~3u));
    return __funnelshift_r(words[0], words[1], 8 * (at & 3));
}

// The time of what a kernel stores, which are not its bytes.
static void alone(const std::string &name, const std::function<void()> &stores) {
    if (only.empty()) found.push_back({time(stores), "the stores of " + name + ", alone"});
}
__device__ __forceinline__ u32 shared_address(const void *pointer) { return (u32)__cvta_generic_to_shared(pointer); }

// Run bases[t] has the first packed byte of tile t. Entry run + 1 of the list: what is between its place in memory and the packed
// one, and where it ends; entry 0 ends at 0.
struct Lists {
    u32 *bases;
    int2 *list;
    u32 most;
};
static Lists lists_of(const Layout &layout, u32 tile) {
    std::vector<int2> list;
    std::vector<u32> bases;
    int2 entry{0, 0};
    list.push_back(entry);
    u64 end = 0;
    for (const Run &run : layout.runs) {
        for (u64 at = end / tile * tile + (end % tile ? tile : 0); at < end + run.length; at += tile) bases.push_back(list.size() - 1);
        entry.x = (int)(run.offset - (i64)end), entry.y = (int)(end + run.length);
        end += run.length;
        list.push_back(entry);
    }
    bases.push_back(layout.runs.size() - 1);
    u32 most = 0;
    for (size_t at = 0; at + 1 < bases.size(); at++) most = std::max(most, bases[at + 1] - bases[at] + 1);
    return {upload(bases), upload(list), most};
}

// ---- Unpacks: the packed bytes of a tile are in shared memory, and the runs that it has.

// 8: words of 8 bytes, 16 lanes a run, both ends by single bytes; 9: with 8 lanes. 32: whole sectors by words of 16, 8 lanes a run; the others by a
// byte a lane, a warp a run. 16: words of 16 bytes, 8 lanes, ends by bytes. 4: words of 4, 16 lanes.
template <int threads, int tile, int mode, int most>
__global__ void __launch_bounds__(threads) unpack_tile(u8 *memory, const u8 *packed, const u32 *bases, const int2 *list) {
    __shared__ uint4 stage[tile / 16 + 1];
    __shared__ int2 runs[most + 1];
    const u8 *bytes = (const u8 *)stage;
    const u32 begin = blockIdx.x * tile;
    uint4 value[tile / 16 / threads];
#pragma unroll
    for (u32 step = 0; step < tile / 16 / threads; step++) value[step] = __ldcs((const uint4 *)(packed + begin) + step * threads + threadIdx.x);
    const u32 first = __ldg(bases + blockIdx.x), count = __ldg(bases + blockIdx.x + 1) - first + 1;
    for (u32 at = threadIdx.x; at <= count; at += threads) {
        int2 entry = __ldg(list + first + at);
        entry.y = max(0, min(entry.y - (int)begin, tile));
        runs[at] = entry;
    }
#pragma unroll
    for (u32 step = 0; step < tile / 16 / threads; step++) stage[step * threads + threadIdx.x] = value[step];
    __syncthreads();
    if (mode == 32) {
        const u32 lane = threadIdx.x % 8;
        for (u32 run = threadIdx.x / 8; run < count; run += threads / 8) {
            const u32 from = runs[run].y, length = runs[run + 1].y - from;
            u8 *target = memory + (int)(begin + from + runs[run + 1].x);
            const u32 head = (0 - (u32)(u64)target) & 31;
            if (head >= length) continue;
            const u32 words = (length - head) / 32 * 2;
            for (u32 at = lane; at < words; at += 8) ((uint4 *)(target + head))[at] = staged16(bytes, from + head + at * 16);
        }
        const u32 wide = threadIdx.x % 32;
        for (u32 run = threadIdx.x / 32; run < count; run += threads / 32) {
            const u32 from = runs[run].y, length = runs[run + 1].y - from;
            u8 *target = memory + (int)(begin + from + runs[run + 1].x);
            const u32 skip = (u32)(u64)target & 31, head = (0 - skip) & 31;
            // The first sector where the run does not begin it, the last where it does not end it.
            if (head > 0 && wide >= skip && wide - skip < length) target[(int)(wide - skip)] = bytes[from + wide - skip];
            if (head < length) {
                const u32 tail = head + (length - head) / 32 * 32;
                if (tail + wide < length) target[tail + wide] = bytes[from + tail + wide];
            }
        }
        return;
    }
    constexpr u32 lanes = mode == 16 || mode == 9 ? 8 : 16, size = mode == 9 ? 8 : mode;
    const u32 lane = threadIdx.x % lanes;
    for (u32 run = threadIdx.x / lanes; run < count; run += threads / lanes) {
        const u32 from = runs[run].y, length = runs[run + 1].y - from;
        u8 *target = memory + (int)(begin + from + runs[run + 1].x);
        const u32 head = min((0 - (u32)(u64)target) & (size - 1), length), words = (length - head) / size, tail = head + words * size;
        for (u32 at = lane; at < words; at += lanes) {
            if (size == 8) ((u64 *)(target + head))[at] = staged8(bytes, from + head + at * 8);
            if (mode == 16) ((uint4 *)(target + head))[at] = staged16(bytes, from + head + at * 16);
            if (mode == 4) ((u32 *)(target + head))[at] = staged4(bytes, from + head + at * 4);
        }
        if (mode == 16) {
#pragma unroll
            for (u32 step = 0; step < 2; step++) {
                const u32 at = step * 8 + lane;
                if (at < head) target[at] = bytes[from + at];
                if (tail + at < length) target[tail + at] = bytes[from + tail + at];
            }
        } else if (mode == 9) {
            if (lane < head) target[lane] = bytes[from + lane];
            if (tail + lane < length) target[tail + lane] = bytes[from + tail + lane];
        } else {
            const u32 at = lane < 8 ? lane : tail + lane - 8;
            if (lane < 8 ? lane < head : at < length) target[at] = bytes[from + at];
        }
    }
}

template <int threads, int tile, int mode> static void unpack_tile_shape(const Layout &layout) {
    const Lists lists = lists_of(layout, tile);
    const std::string name = "tile of " + std::to_string(tile) + ", by " + std::to_string(mode) + ", " + std::to_string(threads) + " threads";
    constexpr int most = tile / 16;
    if (lists.most <= most) candidate(name, false, [=] { unpack_tile<threads, tile, mode, most><<<PACKED / tile, threads>>>(memory, packed, lists.bases, lists.list); });
    else printf("  %u runs in a tile\n", lists.most);
    check(cudaFree(lists.bases)), check(cudaFree(lists.list));
}

// ---- Packs: the words of memory that the runs of a tile touch are in shared memory.

// 0: loads into registers; 1: cp.async; 2: bulk copies, one a run; 3: only the list is there, words come from memory.
template <int threads, int tile, int mode, int units>
__global__ void __launch_bounds__(threads) pack_tile(const u8 *memory, u8 *packed, const u32 *bases, const int2 *list) {
    extern __shared__ uint4 stage[];
    __shared__ int2 runs[threads];
    __shared__ int source[threads];
    __shared__ u16 slots[threads + 1];
    __shared__ u8 run_of[tile / 16];
    __shared__ u32 totals[threads / 32];
    __shared__ alignas(8) u64 barrier;
    const u32 begin = blockIdx.x * tile, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 first = __ldg(bases + blockIdx.x), count = __ldg(bases + blockIdx.x + 1) - first + 1;
    if (mode == 2 && threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.proxy.async.shared::cta;" ::"r"(shared_address(&barrier)) : "memory");
    u32 mine = 0, from = 0, until = 0;
    int low = 0;
    if (threadIdx.x < count) {
        const int2 entry = __ldg(list + first + threadIdx.x + 1);
        from = max(__ldg(&list[first + threadIdx.x].y), (int)begin), until = min(entry.y, (int)(begin + tile));
        low = (int)from + entry.x;
        // The last run may begin where the tile ends.
        if (until > from) mine = ((u32)(low + (until - from) + 15) >> 4) - ((u32)low >> 4);
    }
    u32 sum = mine;
#pragma unroll
    for (u32 far = 1; far < 32; far *= 2) {
        const u32 other = __shfl_up_sync(~0u, sum, far);
        if (lane >= far) sum += other;
    }
    if (lane == 31) totals[warp] = sum;
    __syncthreads();
    u32 before = 0, total = 0;
#pragma unroll
    for (u32 at = 0; at < threads / 32; at++) {
        if (at < warp) before += totals[at];
        total += totals[at];
    }
    const u32 slot = before + sum - mine;
    if (mode == 2) {
        if (threadIdx.x == 0) asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(total * 16));
        if (mine > 0)
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(stage + slot)),
                         "l"(memory + (low & ~15)), "r"(mine * 16), "r"(shared_address(&barrier))
                         : "memory");
    }
    if (threadIdx.x < count) {
        const u32 place = from - begin, end = until - begin;
        runs[threadIdx.x] = make_int2(mode == 3 ? low - place : slot * 16 + (low & 15) - place, end);
        for (u32 word = (place + 15) / 16; word * 16 < end; word++) run_of[word] = threadIdx.x;
        if (mode < 2) source[threadIdx.x] = low & ~15, slots[threadIdx.x] = slot;
    }
    if (mode < 2) {
        if (threadIdx.x == 0) slots[count] = total;
        __syncthreads();
        for (u32 run = threadIdx.x / 8; run < count; run += threads / 8) {
            const u32 slot = slots[run], units_of = slots[run + 1] - slot;
            for (u32 at = threadIdx.x % 8; at < units_of; at += 8) {
                const uint4 *there = (const uint4 *)(memory + source[run]) + at;
                if (mode == 0) stage[slot + at] = __ldg(there);
                else asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(stage + slot + at)), "l"(there) : "memory");
            }
        }
        if (mode == 1) asm volatile("cp.async.wait_all;" ::: "memory");
    }
    __syncthreads();
    if (mode == 2) {
        u32 done = 0;
        while (!done)
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(shared_address(&barrier)) : "memory");
    }
    const u8 *bytes = (const u8 *)stage;
    if (mode == 3) {
        constexpr u32 steps = tile / 16 / threads;
        uint4 value[steps];
        u32 run[steps], filled[steps];
#pragma unroll
        for (u32 step = 0; step < steps; step++) {
            const u32 place = (step * threads + threadIdx.x) * 16;
            run[step] = run_of[place / 16];
            const int2 own = runs[run[step]];
            filled[step] = min(own.y - place, 16);
            value[step] = load_part<uint4>(memory + (int)(place + own.x), 0, filled[step]);
        }
#pragma unroll
        for (u32 step = 0; step < steps; step++) {
            const u32 place = (step * threads + threadIdx.x) * 16;
            while (filled[step] < 16) {
                const int2 next = runs[++run[step]];
                const u32 end = min(next.y - place, 16);
                value[step] = join(value[step], load_part<uint4>(memory + (int)(place + next.x), filled[step], end), filled[step]);
                filled[step] = end;
            }
            ((uint4 *)(packed + begin))[place / 16] = value[step];
        }
        return;
    }
#pragma unroll
    for (u32 step = 0; step < tile / 16 / threads; step++) {
        const u32 word = step * threads + threadIdx.x, place = word * 16;
        u32 run = run_of[word];
        int2 own = runs[run];
        uint4 value = staged16(bytes, place + own.x);
        while ((u32)own.y < place + 16) {
            const u32 filled = own.y - place;
            own = runs[++run];
            value = join(value, staged16(bytes, place + own.x), filled);
        }
        ((uint4 *)(packed + begin))[word] = value;
    }
}

template <int threads, int tile, int mode> static void pack_tile_shape(const Layout &layout, u32 units) {
    const Lists lists = lists_of(layout, tile);
    const std::string name = "tile of " + std::to_string(tile) + (mode == 0 ? ", loads, " : mode == 1 ? ", cp.async, " : mode == 2 ? ", bulk, " : ", list, ") + std::to_string(threads) + " threads";
    const u32 shared = mode == 3 ? 0 : units * 16 + 32;
    auto *kernel = pack_tile<threads, tile, mode, 0>;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
    // Words in front of the stage: a word that begins in front of its second run reads there.
    if (lists.most <= threads) candidate(name, true, [=] { kernel<<<PACKED / tile, threads, shared>>>(memory, packed, lists.bases, lists.list); });
    else printf("  %u runs in a tile\n", lists.most);
    check(cudaFree(lists.bases)), check(cudaFree(lists.list));
}

// The most words of 16 bytes that the runs of a tile touch.
static u32 units_of(const Layout &layout, u32 tile) {
    u64 at = 0, most = 0, now = 0;
    for (const Run &run : layout.runs) {
        for (u64 begin = 0; begin < run.length;) {
            const u64 end = std::min<u64>(run.length, begin + (tile - (at + begin) % tile));
            now += (run.offset + end + 15) / 16 - (run.offset + begin) / 16;
            most = std::max(most, now);
            if ((at + end) % tile == 0) now = 0;
            begin = end;
        }
        at += run.length;
    }
    return most;
}

// Places and lengths are multiples of `unit`: of 32, no sector is stored in part.
static void sweep_runs(std::mt19937_64 &random, u64 least, u64 most, u64 gap, u64 unit = 1) {
    Layout layout{"runs of " + std::to_string(least) + " to " + std::to_string(most) + " bytes, gaps of up to " + std::to_string(gap) + ", multiples of " + std::to_string(unit)};
    for (u64 at = 0; layout.packed < PACKED;) {
        u64 length = (least + random() % (most - least + unit)) / unit * unit;
        length = std::min<u64>(length, PACKED - layout.packed);
        layout.add(at, length);
        at += length + (unit + random() % gap) / unit * unit;
    }
    open(layout);
    const WordLists lists = word_lists<uint4>(layout);
    pack_words_shape<uint4, 256, 1>(layout, lists);
    pack_words_shape<uint4, 128, 1>(layout, lists);
    free_lists(lists);
    const u32 two = units_of(layout, 2048), four = units_of(layout, 4096), eight = units_of(layout, 8192);
    pack_tile_shape<128, 2048, 0>(layout, two);
    pack_tile_shape<128, 2048, 1>(layout, two);
    pack_tile_shape<128, 2048, 2>(layout, two);
    pack_tile_shape<128, 2048, 3>(layout, two);
    pack_tile_shape<128, 4096, 3>(layout, four);
    pack_tile_shape<256, 4096, 3>(layout, four);
    pack_tile_shape<256, 8192, 3>(layout, eight);
    pack_tile_shape<128, 4096, 0>(layout, four);
    pack_tile_shape<128, 4096, 1>(layout, four);
    pack_tile_shape<128, 4096, 2>(layout, four);
    pack_tile_shape<256, 4096, 1>(layout, four);
    pack_tile_shape<256, 4096, 2>(layout, four);
    pack_tile_shape<256, 8192, 1>(layout, eight);
    pack_tile_shape<256, 8192, 2>(layout, eight);
    report("pack", 40);
    piece_shape<8, uint4, 2, 128, 1>(false, layout);
    piece_shape<16, uint4, 2, 128, 1>(false, layout);
    unpack_tile_shape<128, 2048, 8>(layout);
    unpack_tile_shape<64, 2048, 8>(layout);
    unpack_tile_shape<128, 2048, 9>(layout);
    unpack_tile_shape<128, 4096, 9>(layout);
    unpack_tile_shape<256, 4096, 9>(layout);
    unpack_tile_shape<128, 4096, 8>(layout);
    unpack_tile_shape<256, 4096, 8>(layout);
    unpack_tile_shape<256, 8192, 8>(layout);
    unpack_tile_shape<128, 2048, 32>(layout);
    unpack_tile_shape<128, 4096, 32>(layout);
    unpack_tile_shape<256, 4096, 32>(layout);
    unpack_tile_shape<256, 8192, 32>(layout);
    unpack_tile_shape<128, 2048, 16>(layout);
    unpack_tile_shape<128, 4096, 16>(layout);
    unpack_tile_shape<256, 8192, 16>(layout);
    unpack_tile_shape<128, 2048, 4>(layout);
    unpack_tile_shape<128, 4096, 4>(layout);
    report("unpack", 40);
    close();
}

// ---- Records with gaps.

struct SevenRuns {
    static constexpr u32 stride = 120, size = 79;
    static constexpr u32 runs[][2] = {{4, 24}, {32, 7}, {57, 6}, {64, 24}, {91, 5}, {99, 5}, {108, 8}};
};
struct FiveRuns {
    static constexpr u32 stride = 121, size = 65;
    static constexpr u32 runs[][2] = {{16, 48}, {72, 12}, {107, 2}, {109, 2}, {111, 1}};
};
constexpr u32 LONGEST_RECORD = 128;
__constant__ int packed_of[LONGEST_RECORD];

// A thread has a byte (width 1) or word of the record.
template <class T, int width, int records, int threads> __global__ void __launch_bounds__(threads) unpack_records(u8 *memory, const u8 *packed, u32 all) {
    constexpr u32 STRIDE = T::stride, SIZE = T::size;
    __shared__ uint4 stage[records * SIZE / 16 + 2];
    constexpr u32 roles = STRIDE / width, each = threads / roles;
    const u32 first = blockIdx.x * records, count = min((u32)records, all - first), until = count * SIZE;
    const uint4 *lines = (const uint4 *)(packed + first * SIZE);
    for (u32 at = threadIdx.x; at * 16 < until; at += threads) stage[at] = __ldcs(lines + at);
    const u32 role = threadIdx.x % roles, own = threadIdx.x / roles;
    const int from = packed_of[role * width];
    u32 mask = 0;
    int low = -1;
#pragma unroll
    for (int byte = 0; byte < width; byte++) {
        const int there = packed_of[role * width + byte];
        if (there >= 0) mask |= 1u << byte, low = low < 0 ? there - byte : low;
    }
    __syncthreads();
    const u8 *bytes = (const u8 *)stage;
    u8 *target = memory + (i64)first * STRIDE + role * width;
    if (own >= each) return;
    if (width == 1) {
        if (from >= 0) {
#pragma unroll 8
            for (u32 at = own; at < count; at += each) target[at * STRIDE] = bytes[at * SIZE + from];
        }
    } else if (mask == (1u << width) - 1) {
#pragma unroll 4
        for (u32 at = own; at < count; at += each) {
            if (width == 4) *(u32 *)(target + at * STRIDE) = staged4(bytes, at * SIZE + low);
            if (width == 8) *(u64 *)(target + at * STRIDE) = staged8(bytes, at * SIZE + low);
        }
    } else if (mask != 0) {
        for (u32 at = own; at < count; at += each)
#pragma unroll
            for (u32 byte = 0; byte < width; byte++)
                if (mask >> byte & 1) target[at * STRIDE + byte] = bytes[at * SIZE + low + byte];
    }
}
template <class T, int width, int records, int threads> static void records_shape(u32 all) {
    candidate("records of " + std::to_string(records) + " in words of " + std::to_string(width) + ", " + std::to_string(threads) + " threads", false,
              [=] { unpack_records<T, width, records, threads><<<(all + records - 1) / records, threads>>>(memory, packed, all); });
}

// Any bytes of memory by a byte a lane: lanes go through the bytes of records, where gaps have lanes too; the number of threads is free. Warps
// have rows of 32 bytes that lie as far apart as there are warps, or rows one behind the other. `under` stores are unrolled, and lines of
// memory are brought to the L2 cache first, or not. Words of 4 bytes that fields fill are stored as such, and what is left by bytes. Without loads, stores alone are timed.
enum Rows { SPREAD, IN_A_ROW, WORDS };
template <class T, u32 records, u32 threads, Rows order, u32 under, bool ahead, bool loaded = true>
__global__ void __launch_bounds__(threads, 2048 / threads) unpack_bytes(u8 *memory, const u8 *packed, u32 all) {
    constexpr u32 stride = T::stride, size = T::size, warps = threads / 32;
    __shared__ uint4 stage[records * size / 16 + 3];
    __shared__ u16 places[stride];
    const u32 first = blockIdx.x * records, count = min(records, all - first);
    u8 *target = memory + (u64)first * stride;
    // Rows begin at lines.
    const u32 skew = (u32)(u64)target & 127;
    if (ahead)
        for (u32 at = threadIdx.x * 128; at < skew + count * stride; at += threads * 128) asm volatile("prefetch.global.L2 [%0];" ::"l"(target - skew + at));
    const u8 *source = packed + (u64)first * size;
    const u32 head = (u32)(u64)source & 15, until = head + count * size;
    for (u32 at = threadIdx.x; loaded && at * 16 < until; at += threads) stage[at] = __ldcs((const uint4 *)(source - head) + at);
    for (u32 at = threadIdx.x; at < stride; at += threads) places[at] = packed_of[at];
    __syncthreads();
    const u8 *bytes = (const u8 *)stage + head;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    constexpr u32 rows = (records * stride + 127 + 31) / 32, many = (rows + warps - 1) / warps;
    if (order == WORDS) {
#pragma unroll 4
        for (u32 word = threadIdx.x; word * 4 < skew + count * stride; word += threads) {
            const u32 at = word * 4 - skew;
            u32 record = at / stride, in = at - record * stride, value = 0;
            bool filled = at < count * stride && at + 4 <= count * stride;
#pragma unroll
            for (u32 byte = 0; filled && byte < 4; byte++) {
                filled = places[in] != 0xffff;
                value |= filled ? (u32)bytes[record * size + places[in]] << 8 * byte : 0;
                if (++in == stride) in = 0, record++;
            }
            if (filled) *(u32 *)(target + at) = value;
        }
    }
#pragma unroll(under)
    for (u32 round = 0; round < many; round++) {
        const u32 row = order == IN_A_ROW ? warp * many + round : round * warps + warp;
        const u32 at = row * 32 + lane - skew, record = at / stride;
        const u32 place = places[at - record * stride];
        const bool own = record < count && place != 0xffff;
        // Of an aligned word that fields fill, all bytes are stored.
        const bool stored = order == WORDS && (__ballot_sync(~0u, own) >> (lane & 28) & 15) == 15;
        if (own && !stored) target[at] = bytes[record * size + place];
    }
}
template <class T, u32 records, u32 threads, Rows order, u32 under, bool ahead> static void bytes_shape(u32 all) {
    const u32 blocks = (all + records - 1) / records;
    const char *const orders[] = {"bytes", "bytes of rows one behind the other", "words of 4 and bytes"};
    const std::string name = orders[order] + (" of " + std::to_string(records)) + ", " + std::to_string(threads) + " threads, " + std::to_string(under) + " stores unrolled" +
                             (ahead ? ", memory brought to the cache" : "");
    candidate(name, false, [=] { unpack_bytes<T, records, threads, order, under, ahead><<<blocks, threads>>>(memory, packed, all); });
    alone(name, [=] { unpack_bytes<T, records, threads, order, under, ahead, false><<<blocks, threads>>>(memory, packed, all); });
}

template <class T> static void sweep_records() {
    Layout layout{"records of " + std::to_string(T::size) + " in " + std::to_string(T::stride) + " bytes"};
    const u32 all = PACKED / T::size / 128 * 128;
    int places[LONGEST_RECORD];
    std::fill(places, places + LONGEST_RECORD, -1);
    int at = 0;
    for (auto &run : T::runs)
        for (u32 byte = 0; byte < run[1]; byte++) places[run[0] + byte] = at++;
    check(cudaMemcpyToSymbol(packed_of, places, sizeof places));
    for (u32 record = 0; record < all; record++)
        for (auto &run : T::runs) layout.add((i64)record * T::stride + run[0], run[1]);
    open(layout);
    if constexpr (T::stride % 8 == 0) {
        records_shape<T, 1, 64, 480>(all);
        records_shape<T, 1, 128, 480>(all);
        records_shape<T, 4, 32, 240>(all);
        records_shape<T, 4, 64, 480>(all);
        records_shape<T, 8, 32, 120>(all);
        records_shape<T, 8, 64, 240>(all);
    }
    bytes_shape<T, 64, 256, SPREAD, 8, false>(all);
    bytes_shape<T, 64, 256, SPREAD, 4, false>(all);
    bytes_shape<T, 64, 256, SPREAD, 2, false>(all);
    bytes_shape<T, 32, 256, SPREAD, 8, false>(all);
    bytes_shape<T, 128, 512, SPREAD, 8, false>(all);
    bytes_shape<T, 64, 256, IN_A_ROW, 4, false>(all);
    bytes_shape<T, 64, 256, IN_A_ROW, 8, false>(all);
    bytes_shape<T, 64, 256, SPREAD, 8, true>(all);
    bytes_shape<T, 64, 256, IN_A_ROW, 4, true>(all);
    bytes_shape<T, 64, 256, IN_A_ROW, 8, true>(all);
    bytes_shape<T, 128, 512, IN_A_ROW, 4, true>(all);
    bytes_shape<T, 64, 256, WORDS, 4, true>(all);
    report("unpack", 40);
    close();
}

// ---- Records packed field by field. The columns of a tile lie in shared memory one behind the other, in lines of 16 bytes from inside one on.

struct SixFields {
    static constexpr u32 stride = 32, fields = 6;
    static constexpr u32 offsets[] = {0, 8, 16, 18, 20, 24}, widths[] = {1, 8, 2, 2, 4, 8};
};
struct ElevenFields {
    static constexpr u32 stride = 48, fields = 11;
    static constexpr u32 offsets[] = {0, 8, 16, 20, 22, 24, 28, 32, 34, 36, 40}, widths[] = {1, 8, 4, 2, 2, 1, 4, 1, 2, 1, 4};
};
struct FiveFields {
    static constexpr u32 stride = 24, fields = 5;
    static constexpr u32 offsets[] = {0, 4, 8, 16, 18}, widths[] = {1, 4, 8, 2, 1};
};
struct TenFields {
    static constexpr u32 stride = 48, fields = 10;
    static constexpr u32 offsets[] = {0, 1, 2, 4, 8, 16, 24, 28, 32, 40}, widths[] = {1, 1, 1, 4, 4, 8, 4, 4, 8, 8};
};
struct FourFields {
    static constexpr u32 stride = 16, fields = 4;
    static constexpr u32 offsets[] = {0, 4, 6, 8}, widths[] = {4, 2, 1, 2};
};
struct ThreeFields {
    static constexpr u32 stride = 24, fields = 3;
    static constexpr u32 offsets[] = {0, 8, 16}, widths[] = {8, 4, 8};
};

// The packed bytes of a record in front of a field, and the lines in front of its column.
template <class T> __host__ __device__ constexpr u32 bytes_before(u32 field) {
    u32 sum = 0;
    for (u32 at = 0; at < field; at++) sum += T::widths[at];
    return sum;
}
template <class T, u32 records> __host__ __device__ constexpr u32 lines_before(u32 field) {
    u32 sum = 0;
    for (u32 at = 0; at < field; at++) sum += (records * T::widths[at] + 30) / 16;
    return sum;
}

template <class T, u32 records, u32 field> struct Fields {
    static constexpr u32 line = lines_before<T, records>(field), before = bytes_before<T>(field), width = T::widths[field], offset = T::offsets[field];
    using Next = Fields<T, records, field + 1>;
    // The column of a line.
    __device__ static __forceinline__ void find(u32 at, u32 &own_line, u32 &own_before, u32 &own_width) {
        if (at >= line) own_line = line, own_before = before, own_width = width;
        if constexpr (field + 1 < T::fields) Next::find(at, own_line, own_before, own_width);
    }
    // Where the bytes of record 0 lie in shared memory, and the widths of their columns.
    __device__ static __forceinline__ void places(u32 *places, const u8 *packed, u32 all, u32 first) {
        const u32 head = (u32)(u64)(packed + ((u64)all * before + first * width)) & 15;
        if (threadIdx.x < width) places[offset + threadIdx.x] = (line * 16 + head + threadIdx.x) << 8 | width;
        if constexpr (field + 1 < T::fields) Next::places(places, packed, all, first);
    }
};

__host__ __device__ constexpr u32 common(u32 one, u32 other) { return other ? common(other, one % other) : one; }

// How lanes go through memory: a byte of every sector, places found for each store; items of rows with the same places, apart or one behind
// the other; or all rows of a period, one behind the other.
enum Order { EACH, APART, BEHIND, PERIODS };

// Without loads, stores alone are timed. Lines of memory are brought to the L2 cache first, or not.
template <class T, u32 records, u32 threads, Order order, bool ahead, bool loaded = true>
__global__ void __launch_bounds__(threads, 2048 / threads) unpack_columns(u8 *memory, const u8 *packed, u32 all) {
    constexpr u32 stride = T::stride, size = bytes_before<T>(T::fields), lines = lines_before<T, records>(T::fields), rounds = (lines + threads - 1) / threads;
    constexpr u32 warps = threads / 32, period = stride / common(stride, 32), each = 32 / common(stride, 32);
    constexpr u32 rows = (records * stride + 128 + 31) / 32, periods = (rows + period - 1) / period;
    __shared__ uint4 stage[lines + 1];
    __shared__ u32 places[stride];
    const u32 first = blockIdx.x * records, count = min(records, all - first);
    u8 *target = memory + (u64)first * stride;
    // Rows begin at lines.
    const u32 skew = (u32)(u64)target & 127;
    if (ahead)
        for (u32 at = threadIdx.x * 128; at < skew + count * stride; at += threads * 128) asm volatile("prefetch.global.L2 [%0];" ::"l"(target - skew + at));
    uint4 value[rounds];
#pragma unroll
    for (u32 round = 0; loaded && round < rounds; round++) {
        const u32 at = round * threads + threadIdx.x;
        u32 line = 0, before = 0, width = 0;
        Fields<T, records, 0>::find(at, line, before, width);
        const u8 *from = packed + ((u64)all * before + first * width);
        const u32 head = (u32)(u64)from & 15;
        if (at < lines && (at - line) * 16 < head + count * width) value[round] = __ldcs((const uint4 *)(from - head) + (at - line));
    }
    for (u32 at = threadIdx.x; at < stride; at += threads) places[at] = 0;
    __syncthreads();
    Fields<T, records, 0>::places(places, packed, all, first);
#pragma unroll
    for (u32 round = 0; loaded && round < rounds; round++)
        if (round * threads + threadIdx.x < lines) stage[round * threads + threadIdx.x] = value[round];
    __syncthreads();
    const u8 *bytes = (const u8 *)stage;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // The record of a byte of memory: 128 early, so that no lane is in front of all.
    const auto record_of = [&](u32 at) { return (at + 128 * stride) / stride - 128; };
    if (order == EACH) {
#pragma unroll 8
        for (u32 round = 0; round < (rows + warps - 1) / warps; round++) {
            const u32 at = round * threads + threadIdx.x - skew, record = at / stride;
            if (record >= count) continue;
            const u32 own = places[at - record * stride];
            if (own) target[at] = bytes[(own >> 8) + record * (own & 255)];
        }
    } else if (order == PERIODS) {
        constexpr u32 many = (periods + warps - 1) / warps, unroll = period >= 4 ? 1 : period >= 2 ? 2 : 4;
        const u32 base = warp * many * period * 32 + lane - skew;
        u32 from[period], width[period], record[period];
#pragma unroll
        for (u32 row = 0; row < period; row++) {
            const u32 at = base + row * 32;
            record[row] = record_of(at);
            const u32 own = places[at - record[row] * stride];
            width[row] = own & 255, from[row] = (own >> 8) + record[row] * width[row];
        }
        u8 *to = target + (int)base;
#pragma unroll(unroll)
        for (u32 round = 0; round < many; round++)
#pragma unroll
            for (u32 row = 0; row < period; row++)
                if (width[row] && record[row] + round * each < count) to[row * 32 + round * each * stride] = bytes[from[row] + round * each * width[row]];
    } else {
        constexpr u32 most = warps / common(period, warps), groups = most < periods ? most : periods, many = (periods + groups - 1) / groups;
        constexpr u32 step = order == BEHIND ? each : groups * each, begin = order == BEHIND ? many : 1;
        for (u32 item = warp; item < period * groups; item += warps) {
            const u32 at = (item % period + item / period * begin * period) * 32 + lane - skew, record = record_of(at);
            const u32 own = places[at - record * stride], width = own & 255, from = (own >> 8) + record * width;
            if (own == 0) continue;
            u8 *to = target + (int)at;
#pragma unroll 8
            for (u32 round = 0; round < many; round++)
                if (record + round * step < count) to[round * step * stride] = bytes[from + round * step * width];
        }
    }
}
template <class T, u32 tile, u32 threads, Order order, bool ahead> static void columns_shape(u32 all) {
    constexpr u32 records = tile / T::stride / 32 * 32;
    const u32 blocks = (all + records - 1) / records;
    const char *const orders[] = {"a place for each store", "items apart", "items in a row", "periods in a row"};
    const std::string name = "columns, " + std::to_string(records) + " records, " + std::to_string(threads) + " threads, " + orders[order] + (ahead ? ", memory brought to the cache" : "");
    candidate(name, false, [=] { unpack_columns<T, records, threads, order, ahead><<<blocks, threads>>>(memory, packed, all); });
    alone(name, [=] { unpack_columns<T, records, threads, order, ahead, false><<<blocks, threads>>>(memory, packed, all); });
}

template <class T> static void sweep_columns() {
    constexpr u32 size = bytes_before<T>(T::fields);
    Layout layout{std::to_string(T::fields) + " fields of " + std::to_string(size) + " in " + std::to_string(T::stride) + " bytes, by columns"};
    const u32 all = PACKED / size;
    for (u32 field = 0; field < T::fields; field++)
        for (u32 record = 0; record < all; record++) layout.add((i64)record * T::stride + T::offsets[field], T::widths[field]);
    open(layout);
    columns_shape<T, 4096, 128, EACH, false>(all);
    columns_shape<T, 4096, 128, APART, false>(all);
    columns_shape<T, 4096, 128, PERIODS, false>(all);
    columns_shape<T, 4096, 128, EACH, true>(all);
    columns_shape<T, 4096, 128, APART, true>(all);
    columns_shape<T, 4096, 128, BEHIND, true>(all);
    columns_shape<T, 4096, 128, PERIODS, true>(all);
    columns_shape<T, 6144, 192, PERIODS, true>(all);
    columns_shape<T, 8192, 256, PERIODS, true>(all);
    columns_shape<T, 4096, 64, PERIODS, true>(all);
    columns_shape<T, 8192, 256, APART, true>(all);
    report("unpack", 40);
    close();
}

// ---- Runs of a few bytes: a mask for every 32 bytes of memory, where the bytes of 1,024 are packed, a byte a lane.

// The sum of the counts of the lanes below.
__device__ static u32 sum_below(u32 count, u32 lane) {
    u32 sum = count;
#pragma unroll
    for (u32 far = 1; far < 32; far *= 2) {
        const u32 other = __shfl_up_sync(~0u, sum, far);
        if (lane >= far) sum += other;
    }
    return sum - count;
}

template <int threads> __global__ void __launch_bounds__(threads) unpack_masked(u8 *memory, const u8 *packed, const u32 *masks, const u32 *begins, u32 groups) {
    const u32 lane = threadIdx.x % 32, group = blockIdx.x * (threads / 32) + threadIdx.x / 32;
    if (group >= groups) return;
    const u32 mask = __ldcs(masks + group * 32 + lane), begin = __ldg(begins + group);
    const u32 sum = begin + sum_below(__popc(mask), lane);
    u8 *target = memory + (u64)group * 1024 + lane;
    const u32 below = (1u << lane) - 1;
#pragma unroll 1
    for (u32 at = 0; at < 32; at += 8) {
        u8 value[8];
        u32 own[8];
#pragma unroll
        for (u32 step = 0; step < 8; step++) {
            own[step] = __shfl_sync(~0u, mask, at + step);
            const u32 from = __shfl_sync(~0u, sum, at + step) + __popc(own[step] & below);
            if (own[step] >> lane & 1) value[step] = __ldg(packed + from);
        }
#pragma unroll
        for (u32 step = 0; step < 8; step++)
            if (own[step] >> lane & 1) target[(at + step) * 32] = value[step];
    }
}

// The packed bytes of a warp's 1,024 bytes of memory in shared memory, and of each sector its mask and where its bytes are staged. Sectors
// that are stored in part may be brought to the L2 cache first.
template <int threads, int blocks, int each, bool prefetched>
__global__ void __launch_bounds__(threads, blocks) unpack_sectors(u8 *memory, const u8 *packed, const u32 *masks, const u32 *begins, u32 groups) {
    __shared__ uint4 stages[threads / 32][66];
    __shared__ uint2 rows[threads / 32][32];
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = blockIdx.x * (threads / 32) + warp;
    if (group >= groups) return;
    const u32 mask = __ldg(masks + group * 32 + lane), low = __ldg(begins + group), high = __ldg(begins + group + 1), head = low & 15;
    u8 *target = memory + (u64)group * 1024 + lane;
    if (prefetched && mask != 0 && mask != ~0u) asm volatile("prefetch.global.L2 [%0];" : : "l"(target + 31 * lane));
    // The first and the last word may reach out of the packed bytes, not of what is allocated for them.
    const uint4 *lines = (const uint4 *)(packed + low - head);
    const u32 words = (head + high - low + 15) / 16;
    uint4 value[2];
    if (lane < words) value[0] = __ldg(lines + lane);
    if (lane + 32 < words) value[1] = __ldg(lines + lane + 32);
    if (lane < words) stages[warp][lane] = value[0];
    if (lane + 32 < words) stages[warp][lane + 32] = value[1];
    if (lane == 0 && words > 64) stages[warp][64] = __ldg(lines + 64);
    rows[warp][lane] = make_uint2(mask, head + sum_below(__popc(mask), lane));
    __syncwarp();
    const u8 *staged = (const u8 *)stages[warp];
    const u32 below = (1u << lane) - 1;
#pragma unroll 1
    for (u32 at = 0; at < 32; at += each) {
        u8 byte[each];
        bool own[each];
#pragma unroll
        for (u32 step = 0; step < each; step++) {
            const uint2 row = rows[warp][at + step];
            own[step] = row.x >> lane & 1;
            if (own[step]) byte[step] = staged[row.y + __popc(row.x & below)];
        }
#pragma unroll
        for (u32 step = 0; step < each; step++)
            if (own[step]) target[(at + step) * 32] = byte[step];
    }
}

template <int threads> __global__ void __launch_bounds__(threads) pack_masked(const u8 *memory, u8 *packed, const u32 *masks, const u32 *begins, u32 groups) {
    // A warp has 1,024 bytes of memory, and a block as many of the packed ones as those of its warps.
    __shared__ uint4 stage[threads * 2 + 1];
    const u32 lane = threadIdx.x % 32, base = blockIdx.x * (threads / 32), group = base + threadIdx.x / 32, own_group = min(group, groups - 1);
    const u32 mask = group < groups ? __ldcs(masks + own_group * 32 + lane) : 0, begin = __ldg(begins + own_group);
    const u32 low = __ldg(begins + base), high = __ldg(begins + min(base + threads / 32, groups)), head = low & 15, until = head + high - low;
    const u32 sum = begin - low + head + sum_below(__popc(mask), lane);
    const u8 *source = memory + (u64)own_group * 1024 + lane;
    const u32 below = (1u << lane) - 1;
    u8 *bytes = (u8 *)stage;
#pragma unroll 1
    for (u32 at = 0; at < 32; at += 8) {
        u8 value[8];
        u32 own[8];
#pragma unroll
        for (u32 step = 0; step < 8; step++) {
            own[step] = __shfl_sync(~0u, mask, at + step);
            if (own[step] >> lane & 1) value[step] = __ldcs(source + (at + step) * 32);
        }
#pragma unroll
        for (u32 step = 0; step < 8; step++) {
            const u32 to = __shfl_sync(~0u, sum, at + step) + __popc(own[step] & below);
            if (own[step] >> lane & 1) bytes[to] = value[step];
        }
    }
    __syncthreads();
    u8 *lines = packed + low - head;
    store_lines<threads>(lines, stage, head, until);
}

// ---- Runs of a few bytes by pieces of 8: the list has 8 bytes a piece, or 4 and a base for every 32.

struct Short {
    const int2 *list;
    const u32 *near;
    const int2 *bases;
    u32 pieces;
};
template <bool compact> __device__ __forceinline__ int2 piece_of(const Short &lists, u32 at) {
    if (!compact) return __ldg(lists.list + at);
    const u32 near = __ldg(lists.near + at);
    const int2 base = __ldg(lists.bases + at / 32);
    return make_int2(base.x + (int)(near & 0xffff), base.y + (int)(near >> 16));
}
__device__ __forceinline__ u64 load_bytes(const u8 *address, u32 length) {
    const u32 skip = (u32)(u64)address & 7;
    const u64 *words = (const u64 *)(address - skip);
    u64 value = __ldg(words) >> 8 * skip;
    if (skip + length > 8) value |= __ldg(words + 1) << (64 - 8 * skip);
    return value;
}
template <int threads, int unroll, bool compact> __global__ void __launch_bounds__(threads) pack_short(const u8 *memory, u8 *packed, Short lists) {
    __shared__ uint4 stage[threads * unroll / 2 + 1];
    const u32 base = blockIdx.x * (threads * unroll), pieces = lists.pieces;
    const u32 low = piece_of<compact>(lists, base).y, high = piece_of<compact>(lists, min(base + threads * unroll, pieces)).y, head = low & 15, until = head + high - low;
    u64 value[unroll];
    u32 to[unroll], length[unroll];
#pragma unroll
    for (u32 step = 0; step < unroll; step++) {
        const u32 at = min(base + step * threads + threadIdx.x, pieces - 1);
        const int2 own = piece_of<compact>(lists, at);
        length[step] = base + step * threads + threadIdx.x < pieces ? piece_of<compact>(lists, at + 1).y - own.y : 0;
        to[step] = own.y - low + head;
        if (length[step]) value[step] = load_bytes(memory + own.x, length[step]);
    }
    u8 *bytes = (u8 *)stage;
#pragma unroll
    for (u32 step = 0; step < unroll; step++)
#pragma unroll
        for (u32 byte = 0; byte < 8; byte++)
            if (byte < length[step]) bytes[to[step] + byte] = value[step] >> 8 * byte;
    __syncthreads();
    u8 *lines = packed + low - head;
    store_lines<threads>(lines, stage, head, until);
}
__device__ __forceinline__ void store_bytes(u8 *address, u64 value, u32 length) {
    u8 *end = address + length;
    if ((u64)address & 1 && address < end) *address++ = value, value >>= 8;
    if ((u64)address & 2 && address + 2 <= end) *(u16 *)address = value, address += 2, value >>= 16;
    if ((u64)address & 4 && address + 4 <= end) *(u32 *)address = value, address += 4, value >>= 32;
    if (address + 8 <= end) { *(u64 *)address = value; return; }
    if (address + 4 <= end) *(u32 *)address = value, address += 4, value >>= 32;
    if (address + 2 <= end) *(u16 *)address = value, address += 2, value >>= 16;
    if (address < end) *address = value;
}
template <int threads, int unroll, bool compact> __global__ void __launch_bounds__(threads) unpack_short(u8 *memory, const u8 *packed, Short lists) {
    const u32 base = blockIdx.x * (threads * unroll), pieces = lists.pieces;
    u64 value[unroll];
    u8 *to[unroll];
    u32 length[unroll];
#pragma unroll
    for (u32 step = 0; step < unroll; step++) {
        const u32 at = min(base + step * threads + threadIdx.x, pieces - 1);
        const int2 own = piece_of<compact>(lists, at);
        length[step] = base + step * threads + threadIdx.x < pieces ? piece_of<compact>(lists, at + 1).y - own.y : 0;
        to[step] = memory + own.x;
        if (length[step]) value[step] = load_bytes(packed + own.y, length[step]);
    }
#pragma unroll
    for (u32 step = 0; step < unroll; step++) store_bytes(to[step], value[step], length[step]);
}

static void sweep_short(std::mt19937_64 &random, u64 least, u64 most, u64 gap) {
    Layout layout{"runs of " + std::to_string(least) + " to " + std::to_string(most) + " bytes, gaps of up to " + std::to_string(gap)};
    std::vector<int2> list, bases;
    std::vector<u32> near;
    for (u64 at = 0; layout.packed < PACKED;) {
        const u64 length = std::min<u64>(least + random() % (most - least + 1), PACKED - layout.packed);
        for (u64 part = 0; part < length; part += 8) list.push_back(make_int2(at + part, layout.packed + part));
        layout.add(at, length);
        at += length + 1 + random() % gap;
    }
    Short lists;
    lists.pieces = list.size();
    list.push_back(make_int2(layout.span, layout.packed));
    for (size_t at = 0; at < list.size(); at++) {
        if (at % 32 == 0) bases.push_back(list[at]);
        near.push_back((u32)(list[at].x - bases.back().x) | (u32)(list[at].y - bases.back().y) << 16);
    }
    const u32 groups = (layout.span + 1023) / 1024;
    std::vector<u32> masks(groups * 32), begins(groups + 1);
    for (const Run &run : layout.runs)
        for (u64 at = run.offset; at < run.offset + run.length; at++) masks[at / 32] |= 1u << at % 32;
    for (u32 group = 0, before = 0; group <= groups; group++) {
        begins[group] = before;
        if (group < groups)
            for (u32 at = 0; at < 32; at++) before += __builtin_popcount(masks[group * 32 + at]);
    }
    open(layout);
    const u32 *masks_there = upload(masks), *begins_there = upload(begins);
    lists.list = upload(list), lists.bases = upload(bases), lists.near = upload(near);
    const u32 pieces = lists.pieces;
    candidate("masks, a byte a lane, 128 threads", true, [=] { pack_masked<128><<<(groups + 3) / 4, 128>>>(memory, packed, masks_there, begins_there, groups); });
    candidate("masks, a byte a lane, 256 threads", true, [=] { pack_masked<256><<<(groups + 7) / 8, 256>>>(memory, packed, masks_there, begins_there, groups); });
    candidate("pieces, 256 threads, 4 each", true, [=] { pack_short<256, 4, false><<<(pieces + 1023) / 1024, 256>>>(memory, packed, lists); });
    candidate("pieces, 256 threads, 4 each, compact", true, [=] { pack_short<256, 4, true><<<(pieces + 1023) / 1024, 256>>>(memory, packed, lists); });
    candidate("pieces, 128 threads, 4 each, compact", true, [=] { pack_short<128, 4, true><<<(pieces + 511) / 512, 128>>>(memory, packed, lists); });
    candidate("pieces, 256 threads, 2 each, compact", true, [=] { pack_short<256, 2, true><<<(pieces + 511) / 512, 256>>>(memory, packed, lists); });
    report("pack", 40);
    candidate("masks, a byte a lane, 128 threads", false, [=] { unpack_masked<128><<<(groups + 3) / 4, 128>>>(memory, packed, masks_there, begins_there, groups); });
    candidate("masks, a byte a lane, 256 threads", false, [=] { unpack_masked<256><<<(groups + 7) / 8, 256>>>(memory, packed, masks_there, begins_there, groups); });
    const auto sectors = [&](const char *how, auto kernel, int threads) {
        candidate(how, false, [=] { kernel<<<(groups + threads / 32 - 1) / (threads / 32), threads>>>(memory, packed, masks_there, begins_there, groups); });
    };
    sectors("sectors, staged, 128 threads, 8 at once", unpack_sectors<128, 1, 8, false>, 128);
    sectors("sectors, staged, 128 threads, 8 at once, 32 registers", unpack_sectors<128, 16, 8, false>, 128);
    sectors("sectors, staged, 128 threads, 4 at once, 32 registers", unpack_sectors<128, 16, 4, false>, 128);
    sectors("sectors, staged, 128 threads, 2 at once, 32 registers", unpack_sectors<128, 16, 2, false>, 128);
    sectors("sectors, staged, 128 threads, 4 at once, 32 registers, brought to the cache", unpack_sectors<128, 16, 4, true>, 128);
    candidate("pieces, 256 threads, 1 each", false, [=] { unpack_short<256, 1, false><<<(pieces + 255) / 256, 256>>>(memory, packed, lists); });
    candidate("pieces, 256 threads, 1 each, compact", false, [=] { unpack_short<256, 1, true><<<(pieces + 255) / 256, 256>>>(memory, packed, lists); });
    candidate("pieces, 256 threads, 2 each, compact", false, [=] { unpack_short<256, 2, true><<<(pieces + 511) / 512, 256>>>(memory, packed, lists); });
    report("unpack", 40);
    for (const void *piece : {(const void *)masks_there, (const void *)begins_there, (const void *)lists.list, (const void *)lists.bases, (const void *)lists.near}) check(cudaFree((void *)piece));
    close();
}

// ---- Stores alone: `bytes` of every sector that is `apart` bytes behind the last one, by a word a sector, or by a byte a lane and a warp a sector.

template <class word> __global__ void store_words(u8 *memory, u32 apart) {
    *(word *)(memory + (u64)(blockIdx.x * blockDim.x + threadIdx.x) * apart) = word{};
}
// A warp has 32 sectors, one after the other.
template <int bytes> __global__ void store_lanes(u8 *memory, u32 apart) {
    const u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
#pragma unroll 8
    for (u32 at = 0; at < 32; at++)
        if (lane < bytes) memory[(u64)(warp * 32 + at) * apart + lane] = (u8)at;
}

// Nanoseconds of stores with an empty cache, or with what the same stores left there.
static void stores(const char *name, u32 sectors, u32 apart, const std::function<void()> &work) {
    const double cold = time(work);
    check(cudaEventRecord(begin_event));
    for (int round = 0; round < 20; round++) work();
    check(cudaEventRecord(end_event));
    check(cudaEventSynchronize(end_event));
    float milliseconds;
    check(cudaEventElapsedTime(&milliseconds, begin_event, end_event));
    printf("  %s, every %u bytes: %.1f sectors a nanosecond, %.1f again and again\n", name, apart, sectors / cold / 1e3, sectors / (milliseconds * 1e6 / 20));
}
static void sweep_stores() {
    for (const u32 mib : {16, 64}) {
        printf("stores into %u MiB\n", mib);
        check(cudaMalloc(&memory, mib << 20));
        for (const u32 apart : {32, 64, 128}) {
            const u32 sectors = (mib << 20) / apart, blocks = sectors / 256;
            u8 *const there = memory;
            stores("4 bytes", sectors, apart, [=] { store_words<u32><<<blocks, 256>>>(there, apart); });
            stores("8 bytes", sectors, apart, [=] { store_words<u64><<<blocks, 256>>>(there, apart); });
            stores("16 bytes", sectors, apart, [=] { store_words<uint4><<<blocks, 256>>>(there, apart); });
            stores("16 bytes by a byte a lane", sectors, apart, [=] { store_lanes<16><<<blocks, 256>>>(there, apart); });
            stores("31 bytes by a byte a lane", sectors, apart, [=] { store_lanes<31><<<blocks, 256>>>(there, apart); });
            stores("32 bytes by a byte a lane", sectors, apart, [=] { store_lanes<32><<<blocks, 256>>>(there, apart); });
        }
        check(cudaFree(memory));
    }
}

int main(int arguments, char **argument) {
    const u64 seed = arguments > 1 ? strtoull(argument[1], nullptr, 10) : 7;
    const std::string chosen = arguments > 2 ? argument[2] : "";
    if (arguments > 3) only = argument[3];
    printf("seed %llu\n", seed);
    std::mt19937_64 random(seed);
    prepare();
    if (chosen.empty() || chosen == "runs") sweep_runs(random, 8, 135, 405);
    if (chosen.empty() || chosen == "whole") sweep_runs(random, 32, 128, 416, 32);
    if (chosen.empty() || chosen == "half") sweep_runs(random, 16, 128, 416, 16);
    if (chosen.empty() || chosen == "records") {
        sweep_records<SevenRuns>();
        sweep_records<FiveRuns>();
    }
    if (chosen.empty() || chosen == "columns") {
        sweep_columns<SixFields>();
        sweep_columns<ElevenFields>();
        sweep_columns<FiveFields>();
        sweep_columns<TenFields>();
        sweep_columns<FourFields>();
        sweep_columns<ThreeFields>();
    }
    if (chosen.empty() || chosen == "short") sweep_short(random, 1, 9, 27);
    if (chosen.empty() || chosen == "close") sweep_short(random, 1, 9, 9);
    if (chosen.empty() || chosen == "stores") sweep_stores();
    if (chosen.empty() || chosen == "medium") sweep_runs(random, 32, 256, 200);
    if (chosen.empty() || chosen == "long") sweep_runs(random, 100, 1000, 1000);
    return mistakes == 0 ? 0 : 3;
}
