// What several files of candidates do with runs: words from any address, packed words joined from runs, pieces of runs.
#pragma once

#include "candidates.hpp"

using u16 = uint16_t;

__device__ __forceinline__ u32 funnel(u32 low, u32 high, u32 skip) { return __funnelshift_r(low, high, 8 * skip); }
__device__ __forceinline__ u64 funnel(u64 low, u64 high, u32 skip) { return skip == 0 ? low : low >> 8 * skip | high << (64 - 8 * skip); }
__device__ __forceinline__ uint4 funnel(const uint4 &low, const uint4 &high, u32 skip) {
    u32 part[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (u32 at = 0; at < 6; at++) part[at] = skip & 8 ? part[at + 2] : part[at];
#pragma unroll
    for (u32 at = 0; at < 5; at++) part[at] = skip & 4 ? part[at + 1] : part[at];
    return make_uint4(__funnelshift_r(part[0], part[1], 8 * skip), __funnelshift_r(part[1], part[2], 8 * skip),
                      __funnelshift_r(part[2], part[3], 8 * skip), __funnelshift_r(part[3], part[4], 8 * skip));
}

// The first `bytes` bytes of one word, and the others of another.
__device__ __forceinline__ u64 join(u64 one, u64 other, u32 bytes) {
    const u64 mask = bytes >= 8 ? ~0ull : (1ull << 8 * bytes) - 1;
    return (one & mask) | (other & ~mask);
}
__device__ __forceinline__ u32 join(u32 one, u32 other, int bytes) {
    const u32 mask = bytes >= 4 ? ~0u : bytes <= 0 ? 0 : (1u << 8 * bytes) - 1;
    return (one & mask) | (other & ~mask);
}
__device__ __forceinline__ uint4 join(const uint4 &one, const uint4 &other, u32 bytes) {
    const int some = bytes;
    return make_uint4(join(one.x, other.x, some), join(one.y, other.y, some - 4), join(one.z, other.z, some - 8), join(one.w, other.w, some - 12));
}

// The word whose bytes `begin` to `end` are those at an address, from the aligned words that hold them.
template <class word> __device__ __forceinline__ word load_part(const u8 *address, u32 begin, u32 end) {
    constexpr u32 bytes = sizeof(word);
    const u32 skip = (u64)address & (bytes - 1);
    const word *words = (const word *)(address - skip);
    word low{}, high{};
    if (skip + begin < bytes) low = __ldg(words);
    if (skip + end > bytes) high = __ldg(words + 1);
    return funnel(low, high, skip);
}

// Bytes `from` to `until` of shared memory, where they lie as they do among the packed bytes.
template <int threads> __device__ __forceinline__ void store_lines(u8 *lines, const uint4 *stage, u32 from, u32 until) {
    for (u32 at = threadIdx.x; at * 16 < until; at += threads) {
        if (at * 16 >= from && at * 16 + 16 <= until) {
            ((uint4 *)lines)[at] = stage[at];
        } else {
            for (u32 byte = max(at * 16, from); byte < min(at * 16 + 16, until); byte++) lines[byte] = ((const u8 *)stage)[byte];
        }
    }
}

// ---- Packs: word `at` of the packed bytes begins in run bases[at / 32] + steps[at]; of each run, what is between its place in memory
// and the packed one, and where it ends.

template <class word, int threads, int unroll>
__global__ void __launch_bounds__(threads) pack_words(const u8 *memory, word *packed, const u32 *bases, const u8 *steps, const int2 *list, u32 words) {
    constexpr u32 bytes = sizeof(word);
    u32 run[unroll];
    int2 info[unroll];
    word value[unroll];
    const u32 base = blockIdx.x * (threads * unroll) + threadIdx.x;
#pragma unroll
    for (int step = 0; step < unroll; step++) {
        const u32 at = min(base + step * threads, words - 1);
        run[step] = __ldg(bases + at / 32) + __ldg(steps + at);
    }
#pragma unroll
    for (int step = 0; step < unroll; step++) info[step] = __ldg(list + run[step]);
#pragma unroll
    for (int step = 0; step < unroll; step++) {
        const u32 at = min(base + step * threads, words - 1), from = at * bytes;
        value[step] = load_part<word>(memory + from + info[step].x, 0, min((u32)info[step].y - from, bytes));
    }
#pragma unroll
    for (int step = 0; step < unroll; step++) {
        const u32 at = min(base + step * threads, words - 1), from = at * bytes;
        u32 filled = (u32)info[step].y - from;
        while (filled < bytes) {
            const int2 next = __ldg(list + ++run[step]);
            const u32 end = min((u32)next.y - from, bytes);
            value[step] = join(value[step], load_part<word>(memory + from + next.x, filled, end), filled);
            filled = end;
        }
    }
#pragma unroll
    for (int step = 0; step < unroll; step++)
        if (base + step * threads < words) packed[base + step * threads] = value[step];
}

struct WordLists {
    const u32 *bases;
    const u8 *steps;
    const int2 *list;
};

template <class word> static WordLists word_lists(const Layout &layout) {
    constexpr u32 bytes = sizeof(word);
    const u32 words = layout.packed / bytes;
    std::vector<u32> bases(words / 32 + 1), ends;
    std::vector<u8> steps(words + 1);
    std::vector<int2> list;
    u32 end = 0;
    for (const Run &run : layout.runs) {
        int2 entry;
        entry.x = (int)(run.offset - (i64)end), entry.y = (int)(end + run.length);
        end += run.length;
        list.push_back(entry);
    }
    u32 run = 0;
    for (u32 at = 0; at < words; at++) {
        while ((u32)list[run].y <= at * bytes) run++;
        if (at % 32 == 0) bases[at / 32] = run;
        steps[at] = run - bases[at / 32];
    }
    return {upload(bases), upload(steps), upload(list)};
}

static void free_lists(const WordLists &lists) {
    for (const void *list : {(const void *)lists.bases, (const void *)lists.steps, (const void *)lists.list}) check(cudaFree((void *)list));
}

template <class word, int threads, int unroll>
static void pack_words_shape(const Layout &layout, const WordLists &lists) {
    const u32 words = layout.packed / sizeof(word), blocks = (words + threads * unroll - 1) / (threads * unroll);
    candidate("packed words of " + std::to_string(sizeof(word)) + ", " + std::to_string(unroll) + " a thread, " + std::to_string(threads) + " threads", true,
              [=] { pack_words<word, threads, unroll><<<blocks, threads>>>(memory, (word *)packed, lists.bases, lists.steps, lists.list, words); });
}

// ---- Pieces of runs: some lanes have one, or `many` that are a block apart. Words that are aligned where they are stored, and what is
// left at both ends by single bytes. All loads are under way before the first store.

// Without loads, stores alone are timed.
template <int lanes, class word, int unroll, int threads, bool packs, int many, bool loaded = true>
__global__ void __launch_bounds__(threads) move_pieces(u8 *memory, u8 *packed, const int2 *list, u32 pieces) {
    constexpr u32 bytes = sizeof(word), each = threads / lanes, steps = (bytes + lanes - 1) / lanes;
    const u32 lane = threadIdx.x % lanes;
    int2 mine[many];
    u32 length[many], head[many], tail[many], skip[many];
    word low[many][unroll] = {}, high[many][unroll] = {};
    u8 front[many][steps] = {}, back[many][steps] = {};
    const u8 *source[many];
    u8 *target[many];
#pragma unroll
    for (int piece = 0; piece < many; piece++) {
        const u32 at = (blockIdx.x * many + piece) * each + threadIdx.x / lanes, own = min(at, pieces - 1);
        mine[piece] = __ldg(list + own), length[piece] = at < pieces ? __ldg(&list[own + 1].y) - mine[piece].y : 0;
    }
#pragma unroll
    for (int piece = 0; piece < many; piece++) {
        source[piece] = packs ? memory + mine[piece].x : packed + mine[piece].y, target[piece] = packs ? packed + mine[piece].y : memory + mine[piece].x;
        head[piece] = min((0 - (u32)(u64)target[piece]) & (bytes - 1), length[piece]);
        const u32 words = (length[piece] - head[piece]) / bytes;
        tail[piece] = head[piece] + words * bytes, skip[piece] = (u32)(u64)(source[piece] + head[piece]) & (bytes - 1);
        const word *loads = (const word *)(source[piece] + head[piece] - skip[piece]);
#pragma unroll
        for (u32 step = 0; step < unroll; step++) {
            const u32 at = step * lanes + lane;
            if (loaded && at < words) {
                low[piece][step] = __ldg(loads + at);
                if (skip[piece]) high[piece][step] = __ldg(loads + at + 1);
            }
        }
#pragma unroll
        for (u32 step = 0; step < steps; step++) {
            const u32 at = step * lanes + lane;
            if (loaded && at < head[piece]) front[piece][step] = __ldg(source[piece] + at);
            if (loaded && tail[piece] + at < length[piece]) back[piece][step] = __ldg(source[piece] + tail[piece] + at);
        }
    }
#pragma unroll
    for (int piece = 0; piece < many; piece++) {
        const u32 words = (tail[piece] - head[piece]) / bytes;
#pragma unroll
        for (u32 step = 0; step < unroll; step++) {
            const u32 at = step * lanes + lane;
            if (at < words) ((word *)(target[piece] + head[piece]))[at] = skip[piece] ? funnel(low[piece][step], high[piece][step], skip[piece]) : low[piece][step];
        }
#pragma unroll
        for (u32 step = 0; step < steps; step++) {
            const u32 at = step * lanes + lane;
            if (at < head[piece]) target[piece][at] = front[piece][step];
            if (tail[piece] + at < length[piece]) target[piece][tail[piece] + at] = back[piece][step];
        }
    }
}

// Memory offset and packed place of the pieces of up to `bytes` bytes that end at aligned bytes of the side that is written, and an end mark.
static std::vector<int2> pieces_of(const Layout &layout, u64 bytes, bool packs) {
    std::vector<int2> list;
    u64 packed_at = 0;
    for (const Run &run : layout.runs) {
        for (u64 at = 0, next = bytes - ((packs ? packed_at : run.offset) & (bytes - 1)); at < run.length; at = next, next += bytes)
            list.push_back(make_int2((int)(run.offset + at), (int)(packed_at + at)));
        packed_at += run.length;
    }
    list.push_back(make_int2(0, (int)packed_at));
    return list;
}

template <int lanes, class word, int unroll, int threads, int many> static void piece_shape(bool packs, const Layout &layout) {
    const std::vector<int2> list = pieces_of(layout, lanes * sizeof(word) * unroll, packs);
    const u32 pieces = list.size() - 1, each = threads / lanes * many, blocks = (pieces + each - 1) / each;
    int2 *there = upload(list);
    const std::string shape = "pieces, " + std::to_string(lanes) + " lanes, " + std::to_string(unroll) + " words of " + std::to_string(sizeof(word)) + ", " +
                              std::to_string(many) + " at a time, " + std::to_string(threads) + " threads";
    if (packs) candidate(shape, true, [=] { move_pieces<lanes, word, unroll, threads, true, many><<<blocks, threads>>>(memory, packed, there, pieces); });
    else candidate(shape, false, [=] { move_pieces<lanes, word, unroll, threads, false, many><<<blocks, threads>>>(memory, packed, there, pieces); });
    if (!packs && only.empty()) {
        const auto stores = [=] { move_pieces<lanes, word, unroll, threads, false, many, false><<<blocks, threads>>>(memory, packed, there, pieces); };
        found.push_back({time(stores), "the stores of " + shape + ", alone"});
    }
    check(cudaFree(there));
}
