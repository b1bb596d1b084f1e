// Runs of a few or of dozens of bytes by the words of the side that is written: a thread puts one word together, from as many runs as it
// has. They are timed beside pieces of runs, as in classes.cu; a thread has several pieces under way.
//
//     nvcc -O3 -arch=sm_90 -std=c++17 --extended-lambda -o runs runs.cu && ./runs [SEED [ONLY]]

#include "runs.hpp"

constexpr u64 PACKED = 32 << 20;

template <class word> static void sweep_pack_words(const Layout &layout) {
    const WordLists lists = word_lists<word>(layout);
    pack_words_shape<word, 256, 1>(layout, lists);
    pack_words_shape<word, 256, 2>(layout, lists);
    pack_words_shape<word, 128, 2>(layout, lists);
    pack_words_shape<word, 128, 4>(layout, lists);
    pack_words_shape<word, 256, 4>(layout, lists);
    free_lists(lists);
}

// ---- Unpacks: every aligned word of memory that a run touches has a lane. Of 32 of them, at which ones runs begin, how many runs began
// before, and how many words of the last one are before.

__device__ __forceinline__ void store_part(u64 *to, u64 value, u32 begin, u32 end) {
    if (begin == 0 && end == 8) {
        *to = value;
        return;
    }
    u8 *bytes = (u8 *)to;
    u32 at = begin;
    if (at & 1 && at < end) bytes[at] = value >> 8 * at, at++;
    if (at & 2 && at + 2 <= end) *(u16 *)(bytes + at) = value >> 8 * at, at += 2;
    if (at + 4 <= end) *(u32 *)(bytes + at) = value >> 8 * at, at += 4;
    if (at + 2 <= end) *(u16 *)(bytes + at) = value >> 8 * at, at += 2;
    if (at < end) bytes[at] = value >> 8 * at;
}
__device__ __forceinline__ void store_part(uint4 *to, const uint4 &value, u32 begin, u32 end) {
    if (begin == 0 && end == 16) {
        *to = value;
        return;
    }
    const u64 half[] = {value.x | (u64)value.y << 32, value.z | (u64)value.w << 32};
    if (begin < 8) store_part((u64 *)to, half[0], begin, min(end, 8));
    if (end > 8) store_part((u64 *)to + 1, half[1], max(begin, 8) - 8, end - 8);
}

template <class word, int threads, int unroll>
__global__ void __launch_bounds__(threads) unpack_words(u8 *memory, const u8 *packed, const uint4 *groups, const int2 *list, u32 words) {
    constexpr u32 bytes = sizeof(word);
    const u32 base = blockIdx.x * (threads * unroll) + threadIdx.x;
    u32 begin[unroll], end[unroll], number[unroll];
    int2 info[unroll];
    word *to[unroll], value[unroll];
#pragma unroll
    for (int step = 0; step < unroll; step++) {
        const u32 at = min(base + step * threads, words - 1);
        const uint4 group = __ldg(groups + at / 32);
        const u32 mine = group.x & (0xffffffffu >> (31 - at % 32));
        const u32 run = group.y + __popc(mine);
        number[step] = mine ? at % 32 - (31 - __clz(mine)) : at % 32 + group.z;
        info[step] = __ldg(list + run), end[step] = __ldg(&list[run + 1].y);
    }
#pragma unroll
    for (int step = 0; step < unroll; step++) {
        const int skip = info[step].x & (bytes - 1), place = info[step].x - skip + (int)(number[step] * bytes);
        begin[step] = number[step] == 0 ? skip : 0;
        end[step] = min((u32)(info[step].x + (int)(end[step] - (u32)info[step].y) - place), bytes);
        to[step] = (word *)(memory + place);
        value[step] = load_part<word>(packed + info[step].y + (place - info[step].x), begin[step], end[step]);
    }
#pragma unroll
    for (int step = 0; step < unroll; step++)
        if (base + step * threads < words) store_part(to[step], value[step], begin[step], end[step]);
}

template <class word, int threads, int unroll> static void unpack_words_shape(const uint4 *groups, const int2 *list, u32 words) {
    const u32 blocks = (words + threads * unroll - 1) / (threads * unroll);
    candidate("memory words of " + std::to_string(sizeof(word)) + ", " + std::to_string(unroll) + " a thread, " + std::to_string(threads) + " threads", false,
              [=] { unpack_words<word, threads, unroll><<<blocks, threads>>>(memory, packed, groups, list, words); });
}

template <class word> static void sweep_unpack_words(const Layout &layout) {
    constexpr u32 bytes = sizeof(word);
    std::vector<int2> list;
    std::vector<uint4> groups;
    u32 words = 0, run = ~0u, packed_at = 0;
    for (const Run &found : layout.runs) {
        int2 entry;
        entry.x = found.offset, entry.y = packed_at, packed_at += found.length;
        list.push_back(entry);
        const u32 has = (found.offset % bytes + found.length + bytes - 1) / bytes;
        for (u32 at = 0; at < has; at++, words++) {
            if (words % 32 == 0) {
                uint4 group{};
                group.y = run, group.z = at;
                groups.push_back(group);
            }
            if (at == 0) groups.back().x |= 1u << words % 32, run++;
        }
    }
    int2 last;
    last.x = 0, last.y = packed_at;
    list.push_back(last);
    uint4 *groups_there = upload(groups);
    int2 *list_there = upload(list);
    unpack_words_shape<word, 256, 1>(groups_there, list_there, words);
    unpack_words_shape<word, 128, 2>(groups_there, list_there, words);
    unpack_words_shape<word, 256, 2>(groups_there, list_there, words);
    unpack_words_shape<word, 128, 4>(groups_there, list_there, words);
    for (void *piece : {(void *)groups_there, (void *)list_there}) check(cudaFree(piece));
}

// ---- Packs of runs of a few bytes by the words of memory: a mask says which of 16 bytes belong to runs, a number where those of a warp
// are packed. The bytes meet in shared memory.

__device__ __forceinline__ void put(u32 *stage, u32 at, u64 value, u32 bytes) {
    if (bytes == 0) return;
    const u32 shift = at % 4 * 8;
    const u64 low = value << shift;
    atomicOr(stage + at / 4, (u32)low);
    if (at % 4 + bytes > 4) atomicOr(stage + at / 4 + 1, (u32)(low >> 32));
    if (at % 4 + bytes > 8) atomicOr(stage + at / 4 + 2, (u32)(value >> (64 - shift)));
}

template <int threads, int unroll, bool atomic>
__global__ void __launch_bounds__(threads) pack_masked(const u8 *memory, u8 *packed, const u16 *masks, const u32 *begins, u32 words) {
    __shared__ uint4 stage[threads * unroll + 1];
    __shared__ u32 choices[16];
    constexpr u32 each = threads * unroll;
    const u32 base = blockIdx.x * each, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 mask[unroll], begin[unroll];
    uint4 value[unroll];
#pragma unroll
    for (int step = 0; step < unroll; step++) {
        const u32 at = base + step * threads + threadIdx.x;
        mask[step] = __ldcs(masks + min(at, words)), begin[step] = __ldg(begins + min(base + step * threads + warp * 32, words) / 32);
    }
    const u32 low = __ldg(begins + base / 32), high = __ldg(begins + min(base + each, words) / 32), from = low % 16, until = from + high - low;
#pragma unroll
    for (int step = 0; step < unroll; step++)
        if (mask[step]) value[step] = __ldcs((const uint4 *)memory + (base + step * threads + threadIdx.x));
    if (threadIdx.x < 16) {
        // Bytes of a word that a mask of four chooses, in turn.
        u32 choice = 0, at = 0;
        for (u32 byte = 0; byte < 4; byte++)
            if (threadIdx.x >> byte & 1) choice |= byte << 4 * at++;
        for (; at < 4; at++) choice |= 4 << 4 * at;
        choices[threadIdx.x] = choice;
    }
    if (atomic)
        for (u32 at = threadIdx.x; at * 16 < until; at += threads) stage[at] = make_uint4(0, 0, 0, 0);
    __syncthreads();
#pragma unroll
    for (int step = 0; step < unroll; step++) {
        const u32 own = __popc(mask[step]);
        u32 before = own;
#pragma unroll
        for (u32 far = 1; far < 32; far *= 2) {
            const u32 other = __shfl_up_sync(0xffffffffu, before, far);
            if (lane >= far) before += other;
        }
        u32 to = from + begin[step] - low + before - own;
        if (mask[step]) {
            const u32 parts[] = {value[step].x, value[step].y, value[step].z, value[step].w};
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const u32 one = mask[step] >> 8 * half & 15, other = mask[step] >> (8 * half + 4) & 15, count = __popc(one), both = count + __popc(other);
                const u64 joined = __byte_perm(parts[2 * half], 0, choices[one]) | (u64)__byte_perm(parts[2 * half + 1], 0, choices[other]) << 8 * count;
                if (atomic) {
                    put((u32 *)stage, to, joined, both);
                } else {
#pragma unroll
                    for (u32 byte = 0; byte < 8; byte++)
                        if (byte < both) ((u8 *)stage)[to + byte] = joined >> 8 * byte;
                }
                to += both;
            }
        }
    }
    __syncthreads();
    u8 *lines = packed + low - from;
    store_lines<threads>(lines, stage, from, until);
}

template <int threads, int unroll> static void masked_shape(const u16 *masks, const u32 *begins, u32 words) {
    const u32 blocks = (words + threads * unroll - 1) / (threads * unroll);
    const std::string shape = "masks of 16, " + std::to_string(unroll) + " a thread, " + std::to_string(threads) + " threads";
    candidate(shape, true, [=] { pack_masked<threads, unroll, false><<<blocks, threads>>>(memory, packed, masks, begins, words); });
    candidate(shape + ", atomic", true, [=] { pack_masked<threads, unroll, true><<<blocks, threads>>>(memory, packed, masks, begins, words); });
}

static void sweep_masked(const Layout &layout) {
    const u32 words = (layout.span + 15) / 16 + 31 & ~31u;
    std::vector<u16> masks(words + 1);
    for (const Run &run : layout.runs)
        for (u64 at = run.offset; at < run.offset + run.length; at++) masks[at / 16] |= 1u << at % 16;
    std::vector<u32> begins(words / 32 + 1);
    u32 before = 0;
    for (u32 at = 0; at <= words; at++) {
        if (at % 32 == 0) begins[at / 32] = before;
        before += __builtin_popcount(masks[at]);
    }
    u16 *masks_there = upload(masks);
    u32 *begins_there = upload(begins);
    masked_shape<128, 1>(masks_there, begins_there, words);
    masked_shape<256, 1>(masks_there, begins_there, words);
    masked_shape<128, 2>(masks_there, begins_there, words);
    masked_shape<256, 2>(masks_there, begins_there, words);
    masked_shape<128, 4>(masks_there, begins_there, words);
    check(cudaFree(masks_there));
    check(cudaFree(begins_there));
}

static void sweep_runs(std::mt19937_64 &random, u64 least, u64 most, u64 gap) {
    Layout layout{"runs of " + std::to_string(least) + " to " + std::to_string(most) + " bytes, gaps of up to " + std::to_string(gap)};
    for (u64 at = 0; layout.packed < PACKED;) {
        u64 length = least + random() % (most - least + 1);
        length = std::min<u64>(length, PACKED - layout.packed);
        layout.add(at, length);
        at += length + 1 + random() % gap;
    }
    open(layout);
    if (most < 16) {
        sweep_masked(layout);
        sweep_pack_words<u64>(layout);
    } else {
        sweep_pack_words<u64>(layout);
        sweep_pack_words<uint4>(layout);
        piece_shape<4, uint4, 2, 256, 1>(true, layout);
        piece_shape<4, uint4, 2, 128, 2>(true, layout);
        piece_shape<8, uint4, 2, 128, 1>(true, layout);
        piece_shape<8, uint4, 1, 128, 2>(true, layout);
        piece_shape<8, u64, 2, 128, 2>(true, layout);
        piece_shape<16, uint4, 2, 128, 1>(true, layout);
    }
    report("pack", 40);
    if (most >= 16) {
        sweep_unpack_words<u64>(layout);
        sweep_unpack_words<uint4>(layout);
        piece_shape<8, uint4, 2, 128, 1>(false, layout);
        piece_shape<8, uint4, 1, 128, 1>(false, layout);
        piece_shape<8, uint4, 1, 128, 2>(false, layout);
        piece_shape<16, uint4, 1, 128, 2>(false, layout);
        piece_shape<16, uint4, 2, 128, 1>(false, layout);
    } else {
        sweep_unpack_words<u64>(layout);
    }
    report("unpack", 40);
    close();
}

int main(int arguments, char **argument) {
    const u64 seed = arguments > 1 ? strtoull(argument[1], nullptr, 10) : 7;
    if (arguments > 2) only = argument[2];
    printf("seed %llu\n", seed);
    std::mt19937_64 random(seed);
    prepare();
    sweep_runs(random, 8, 135, 405);
    sweep_runs(random, 32, 256, 200);
    sweep_runs(random, 100, 1000, 1000);
    sweep_runs(random, 1, 9, 27);
    return mistakes == 0 ? 0 : 3;
}
