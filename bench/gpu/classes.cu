// The best of hand-written kernels for what the kernels of dtc are behind at: records sent field by field, single elements in random
// order, runs of a few and of dozens of bytes.
//
//     nvcc -O3 -arch=sm_90 -std=c++17 --extended-lambda -o classes classes.cu && ./classes [SEED [ONLY]]
//
// With ONLY, candidates whose names contain it run once, for a profiler. -DPARTS=1, 2, 4 or 8 compiles a part of them.

#include "runs.hpp"

#include <utility>

#ifndef PARTS
#define PARTS 15
#endif

constexpr u64 PACKED = 32 << 20;

// ---- Records sent field by field. A block has a tile of whole records in shared memory, with a word between every 32, so that the
// words of a field lie in all banks.

struct Six {
    static constexpr int stride = 32, fields = 6;
    static constexpr int offset[] = {0, 8, 16, 18, 20, 24}, width[] = {1, 8, 2, 2, 4, 8};
};

struct Twelve {
    static constexpr int stride = 64, fields = 12;
    static constexpr int offset[] = {0, 8, 16, 20, 24, 32, 40, 44, 46, 48, 52, 56}, width[] = {1, 8, 2, 4, 2, 8, 4, 2, 1, 4, 1, 4};
};

struct Four {
    static constexpr int stride = 8, fields = 4;
    static constexpr int offset[] = {0, 2, 3, 4}, width[] = {2, 1, 1, 4};
};

template <class T> constexpr int before(int field) {
    int sum = 0;
    for (int at = 0; at < field; at++) sum += T::width[at];
    return sum;
}

template <class T> constexpr u64 mask_of() {
    u64 mask = 0;
    for (int at = 0; at < T::fields; at++) mask |= ((1ull << T::width[at]) - 1) << T::offset[at];
    return mask;
}

template <class T> constexpr int size_of = before<T>(T::fields);
template <class T, int field> constexpr int before_of = before<T>(field);
template <class T, int field> constexpr int width_of = T::width[field];
template <class T, int field> constexpr int offset_of = T::offset[field];

// The bytes of a record that belong to fields.
template <class T> constexpr u64 covered = mask_of<T>();

__device__ __forceinline__ u32 padded(u32 at) { return at + at / 128 * 4; }

template <int bytes> struct Unsigned;
template <> struct Unsigned<1> { using type = u8; };
template <> struct Unsigned<2> { using type = uint16_t; };
template <> struct Unsigned<4> { using type = u32; };

// Unit `unit` of a field, of 1, 2 or 4 bytes, in shared memory.
template <class T, int field> __device__ __forceinline__ auto &unit_of(u8 *stage, u32 unit) {
    constexpr int width = width_of<T, field>, bytes = width < 4 ? width : 4, per = width / bytes;
    return *(typename Unsigned<bytes>::type *)(stage + padded(unit / per * T::stride + offset_of<T, field> + unit % per * bytes));
}

template <class T, int field, int records, int threads> __device__ __forceinline__ void pack_field(u8 *stage, u8 *packed, u64 count, u64 first, u32 has) {
    constexpr int width = width_of<T, field>, bytes = width < 4 ? width : 4, units = 4 / bytes;
    u8 *to = packed + (u64)before_of<T, field> * count + first * width;
    const u32 lead = (u64)to & 3, length = has * width, skip = (0 - lead) & (bytes - 1);
#pragma unroll
    for (u32 step = 0; step * threads * 4 < records * width + 4; step++) {
        const u32 at = step * threads + threadIdx.x;
        const int begin = (int)(at * 4) - (int)lead;
        if (begin >= (int)length) break;
        if (begin >= 0 && begin + 4 <= (int)length) {
            const u32 unit = (u32)begin / bytes;
            u64 value = 0;
#pragma unroll
            for (int part = 0; part < units; part++) value |= (u64)unit_of<T, field>(stage, unit + part) << 8 * bytes * part;
            if (bytes > 1 && skip) value |= (u64)unit_of<T, field>(stage, unit + units) << 32;
            *(u32 *)(to + begin) = (u32)(value >> 8 * skip);
        } else {
            for (int byte = max(begin, 0); byte < min(begin + 4, (int)length); byte++)
                to[byte] = stage[padded(byte / width * T::stride + offset_of<T, field> + byte % width)];
        }
    }
}

template <class T, int tile, int threads, bool wide, int... field>
__global__ void __launch_bounds__(threads) pack_columns(const u8 *memory, u8 *packed, u64 count, std::integer_sequence<int, field...>) {
    constexpr int records = tile / T::stride, word = wide ? 16 : 4, steps = tile / word / threads;
    __shared__ u32 stage[tile / 4 + tile / 128];
    const u64 first = blockIdx.x * (u64)records;
    const u32 has = (u32)min((u64)records, count - first), bytes = has * T::stride;
    const u8 *from = memory + first * T::stride;
    if (wide) {
        uint4 value[steps];
#pragma unroll
        for (int step = 0; step < steps; step++) {
            const u32 at = step * threads + threadIdx.x;
            if (at * 16 < bytes) value[step] = __ldg((const uint4 *)from + at);
        }
#pragma unroll
        for (int step = 0; step < steps; step++) {
            const u32 at = step * threads + threadIdx.x;
            u32 *to = stage + at * 4 + at / 8;
            to[0] = value[step].x, to[1] = value[step].y, to[2] = value[step].z, to[3] = value[step].w;
        }
    } else {
        u32 value[steps];
#pragma unroll
        for (int step = 0; step < steps; step++) {
            const u32 at = step * threads + threadIdx.x;
            if (at * 4 < bytes) value[step] = __ldg((const u32 *)from + at);
        }
#pragma unroll
        for (int step = 0; step < steps; step++) {
            const u32 at = step * threads + threadIdx.x;
            stage[at + at / 32] = value[step];
        }
    }
    __syncthreads();
    (pack_field<T, field, records, threads>((u8 *)stage, packed, count, first, has), ...);
}

template <class T, int field, int records, int threads> __device__ __forceinline__ void load_field(u8 *stage, const u8 *packed, u64 count, u64 first, u32 has) {
    constexpr int width = width_of<T, field>, bytes = width < 4 ? width : 4, units = 4 / bytes;
    const u8 *from = packed + (u64)before_of<T, field> * count + first * width;
    const u32 skip = (u64)from & 3, length = has * width;
    const u32 *words = (const u32 *)(from - skip);
#pragma unroll
    for (u32 step = 0; step * threads * 4 < records * width; step++) {
        const u32 at = step * threads + threadIdx.x;
        if (at * 4 < length) {
            u32 value = __ldg(words + at);
            if (skip) value = __funnelshift_r(value, __ldg(words + at + 1), 8 * skip);
#pragma unroll
            for (int part = 0; part < units; part++)
                if (at * units + part < length / bytes) unit_of<T, field>(stage, at * units + part) = value >> (8 * bytes * part & 31);
        }
    }
}

template <class T, int field> __device__ __forceinline__ void store_field(u8 *stage, u8 *to, u32 record) {
    constexpr int width = width_of<T, field>, offset = offset_of<T, field>;
    if (width == 8) {
        const u32 low = unit_of<T, field>(stage, record * 2), high = unit_of<T, field>(stage, record * 2 + 1);
        *(u64 *)(to + offset) = low | (u64)high << 32;
    } else {
        using type = typename Unsigned<(width < 4 ? width : 4)>::type;
        *(type *)(to + offset) = unit_of<T, field>(stage, record);
    }
}

enum Stores { WORDS, BYTES, RECORDS };

template <class T, int tile, int threads, Stores stores, int... field>
__global__ void __launch_bounds__(threads) unpack_columns(u8 *memory, const u8 *packed, u64 count, std::integer_sequence<int, field...>) {
    constexpr int records = tile / T::stride;
    __shared__ u32 stage[tile / 4 + tile / 128];
    const u64 first = blockIdx.x * (u64)records;
    const u32 has = (u32)min((u64)records, count - first), bytes = has * T::stride;
    u8 *to = memory + first * T::stride;
    (load_field<T, field, records, threads>((u8 *)stage, packed, count, first, has), ...);
    __syncthreads();
    if (stores == WORDS) {
#pragma unroll 4
        for (u32 at = threadIdx.x; at * 4 < bytes; at += threads) {
            const u32 mask = covered<T> >> at * 4 % T::stride & 15, value = stage[at + at / 32];
            u8 *word = to + at * 4;
            if (mask == 15) {
                *(u32 *)word = value;
            } else {
                if ((mask & 3) == 3) *(uint16_t *)word = value;
                else if (mask & 1) word[0] = value;
                else if (mask & 2) word[1] = value >> 8;
                if ((mask & 12) == 12) *(uint16_t *)(word + 2) = value >> 16;
                else if (mask & 4) word[2] = value >> 16;
                else if (mask & 8) word[3] = value >> 24;
            }
        }
    } else if (stores == BYTES) {
        // A thread has one byte of the fields in some records.
        constexpr u32 size = size_of<T>, each = threads / size;
        const u32 byte = threadIdx.x % size;
        u32 offset = 0;
        ((offset = byte >= before_of<T, field> ? byte - before_of<T, field> + offset_of<T, field> : offset), ...);
        if (threadIdx.x < each * size) {
#pragma unroll 8
            for (u32 record = threadIdx.x / size; record < has; record += each)
                to[record * T::stride + offset] = ((u8 *)stage)[padded(record * T::stride + offset)];
        }
    } else {
        for (u32 record = threadIdx.x; record < has; record += threads)
            (store_field<T, field>((u8 *)stage, to + record * T::stride, record), ...);
    }
}

template <class T, int tile, int threads> static void column_shape(bool packs, u64 count) {
    constexpr int records = tile / T::stride;
    const u32 blocks = (count + records - 1) / records;
    const auto fields = std::make_integer_sequence<int, T::fields>();
    const std::string shape = "columns, tile of " + std::to_string(tile) + " bytes, " + std::to_string(threads) + " threads";
    if (packs) {
        candidate(shape + ", loads of 16", true, [=] { pack_columns<T, tile, threads, true><<<blocks, threads>>>(memory, packed, count, fields); });
        candidate(shape + ", loads of 4", true, [=] { pack_columns<T, tile, threads, false><<<blocks, threads>>>(memory, packed, count, fields); });
    } else {
        candidate(shape + ", words", false, [=] { unpack_columns<T, tile, threads, WORDS><<<blocks, threads>>>(memory, packed, count, fields); });
        candidate(shape + ", bytes", false, [=] { unpack_columns<T, tile, threads, BYTES><<<blocks, threads>>>(memory, packed, count, fields); });
        candidate(shape + ", records", false, [=] { unpack_columns<T, tile, threads, RECORDS><<<blocks, threads>>>(memory, packed, count, fields); });
    }
}

template <class T> static void sweep_columns() {
    const u64 count = PACKED / size_of<T> | 1;
    Layout layout{std::to_string(T::fields) + " fields of " + std::to_string(size_of<T>) + " in " + std::to_string(T::stride) + " bytes, field by field"};
    for (int field = 0; field < T::fields; field++)
        for (u64 record = 0; record < count; record++) layout.add(record * T::stride + T::offset[field], T::width[field]);
    open(layout);
    for (const bool packs : {true, false}) {
        column_shape<T, 4096, 64>(packs, count);
        column_shape<T, 8192, 128>(packs, count);
        column_shape<T, 8192, 256>(packs, count);
        column_shape<T, 16384, 128>(packs, count);
        column_shape<T, 16384, 256>(packs, count);
        column_shape<T, 16384, 512>(packs, count);
        column_shape<T, 32768, 256>(packs, count);
        column_shape<T, 32768, 512>(packs, count);
        report(packs ? "pack" : "unpack", 8);
    }
    close();
}

// ---- Elements in random order.

enum Hints { NONE, STREAMED, KEPT };

template <Hints hints, class word> __device__ __forceinline__ word load_random(const word *address) {
#ifdef __CUDACC__
    if (hints == KEPT && sizeof(word) == 8) {
        u64 value, policy;
        asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
        asm("ld.global.nc.L1::no_allocate.L2::cache_hint.b64 %0, [%1], %2;" : "=l"(value) : "l"(address), "l"(policy));
        return (word)value;
    }
    if (hints == KEPT && sizeof(word) == 4) {
        u32 value;
        u64 policy;
        asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
        asm("ld.global.nc.L1::no_allocate.L2::cache_hint.b32 %0, [%1], %2;" : "=r"(value) : "l"(address), "l"(policy));
        return (word)value;
    }
#endif
    return __ldg(address);
}

// Element `at` of the target, `to` elements apart, is element list[at] of the source, `from` elements apart.
template <class word, int unroll, int threads, Hints hints, int to, int from>
__global__ void __launch_bounds__(threads) gather(word *target, const word *source, const u32 *list, u32 count) {
    word value[unroll];
    u32 listed[unroll];
    const u32 base = blockIdx.x * (unroll * threads) + threadIdx.x;
#pragma unroll
    for (int step = 0; step < unroll; step++) {
        const u32 *entry = list + min(base + step * threads, count - 1);
        listed[step] = hints == NONE ? __ldg(entry) : __ldcs(entry);
    }
#pragma unroll
    for (int step = 0; step < unroll; step++) value[step] = load_random<hints>(source + (u64)listed[step] * from);
#pragma unroll
    for (int step = 0; step < unroll; step++) {
        const u32 at = base + step * threads;
        if (at >= count) continue;
        if (hints == NONE) target[(u64)at * to] = value[step];
        else __stcs(target + (u64)at * to, value[step]);
    }
}

// The same for four elements that follow each other.
template <class word, int threads, Hints hints>
__global__ void __launch_bounds__(threads) gather_four(word *target, const word *source, const u32 *list, u32 count, int from) {
    const u32 at = blockIdx.x * threads + threadIdx.x;
    if (at * 4 >= count) return;
    const uint4 four = hints == NONE ? __ldg((const uint4 *)list + at) : __ldcs((const uint4 *)list + at);
    const u32 listed[] = {four.x, four.y, four.z, four.w};
    alignas(16) word value[4];
#pragma unroll
    for (int step = 0; step < 4; step++) value[step] = load_random<hints>(source + (u64)listed[step] * from);
#pragma unroll
    for (u32 part = 0; part < sizeof(value) / 16; part++) {
        uint4 *place = (uint4 *)(target + at * 4) + part;
        if (hints == NONE) *place = ((uint4 *)value)[part];
        else __stcs(place, ((uint4 *)value)[part]);
    }
}

// Pairs of places, by regions of the source, so that the loads of a region find its lines in the cache.
template <class word, int unroll, int threads>
__global__ void __launch_bounds__(threads) gather_regions(word *target, const word *source, const uint2 *pairs, u32 count, int from) {
    word value[unroll];
    uint2 pair[unroll];
    const u32 base = blockIdx.x * (unroll * threads) + threadIdx.x;
#pragma unroll
    for (int step = 0; step < unroll; step++) pair[step] = __ldcs(pairs + min(base + step * threads, count - 1));
#pragma unroll
    for (int step = 0; step < unroll; step++) value[step] = __ldg(source + (u64)pair[step].y * from);
#pragma unroll
    for (int step = 0; step < unroll; step++)
        if (base + step * threads < count) target[pair[step].x] = value[step];
}

template <class word, int unroll, int threads, Hints hints, int spread> static void gather_shape(bool packs, const u32 *list, u32 count) {
    const u32 blocks = (count + unroll * threads - 1) / (unroll * threads);
    const char *names[] = {"", ", streamed", ", streamed and kept"};
    const std::string shape = "gather, " + std::to_string(unroll) + " a thread, " + std::to_string(threads) + " threads" + names[hints];
    if (packs) candidate(shape, true, [=] { gather<word, unroll, threads, hints, 1, spread><<<blocks, threads>>>((word *)packed, (const word *)memory, list, count); });
    else candidate(shape, false, [=] { gather<word, unroll, threads, hints, spread, 1><<<blocks, threads>>>((word *)memory, (const word *)packed, list, count); });
}

template <class word, int spread> static void sweep_elements(std::mt19937_64 &random) {
    const u32 count = PACKED / sizeof(word);
    std::vector<u32> order(count), inverse(count);
    for (u32 at = 0; at < count; at++) order[at] = at;
    std::shuffle(order.begin(), order.end(), random);
    Layout layout{"elements of " + std::to_string(sizeof(word)) + " bytes, " + std::to_string(spread * sizeof(word)) + " apart, in random order"};
    for (u32 at = 0; at < count; at++) {
        inverse[order[at]] = at;
        layout.add((i64)order[at] * spread * sizeof(word), sizeof(word));
    }
    open(layout);
    u32 *order_there = upload(order), *inverse_there = upload(inverse);
    for (const bool packs : {true, false}) {
        u32 *list = packs ? order_there : inverse_there;
        gather_shape<word, 1, 1024, NONE, spread>(packs, list, count);
        gather_shape<word, 1, 256, NONE, spread>(packs, list, count);
        gather_shape<word, 2, 128, NONE, spread>(packs, list, count);
        gather_shape<word, 2, 256, NONE, spread>(packs, list, count);
        gather_shape<word, 4, 128, NONE, spread>(packs, list, count);
        gather_shape<word, 4, 256, NONE, spread>(packs, list, count);
        gather_shape<word, 8, 128, NONE, spread>(packs, list, count);
        gather_shape<word, 16, 128, NONE, spread>(packs, list, count);
        gather_shape<word, 2, 256, STREAMED, spread>(packs, list, count);
        gather_shape<word, 4, 128, STREAMED, spread>(packs, list, count);
        gather_shape<word, 8, 128, STREAMED, spread>(packs, list, count);
        gather_shape<word, 2, 256, KEPT, spread>(packs, list, count);
        gather_shape<word, 4, 128, KEPT, spread>(packs, list, count);
        gather_shape<word, 8, 128, KEPT, spread>(packs, list, count);
        if (packs) {
            const u32 blocks = (count / 4 + 255) / 256;
            candidate("gather, four in turn", true, [=] { gather_four<word, 256, NONE><<<blocks, 256>>>((word *)packed, (const word *)memory, list, count, spread); });
            candidate("gather, four in turn, streamed", true, [=] { gather_four<word, 256, STREAMED><<<blocks, 256>>>((word *)packed, (const word *)memory, list, count, spread); });
            candidate("gather, four in turn, streamed and kept", true, [=] { gather_four<word, 256, KEPT><<<blocks, 256>>>((word *)packed, (const word *)memory, list, count, spread); });
            for (const u64 region : {2 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20}) {
                std::vector<u32> sorted(count);
                for (u32 at = 0; at < count; at++) sorted[at] = at;
                std::stable_sort(sorted.begin(), sorted.end(), [&](u32 one, u32 two) {
                    return order[one] * (u64)spread * sizeof(word) / region < order[two] * (u64)spread * sizeof(word) / region;
                });
                std::vector<uint2> pairs(count);
                for (u32 at = 0; at < count; at++) pairs[at].x = sorted[at], pairs[at].y = order[sorted[at]];
                uint2 *there = upload(pairs);
                const std::string shape = "regions of " + std::to_string(region >> 20) + " MiB, ";
                const u32 fours = (count + 511) / 512, ones = (count + 255) / 256;
                candidate(shape + "1 a thread", true, [=] { gather_regions<word, 1, 256><<<ones, 256>>>((word *)packed, (const word *)memory, there, count, spread); });
                candidate(shape + "4 a thread", true, [=] { gather_regions<word, 4, 128><<<fours, 128>>>((word *)packed, (const word *)memory, there, count, spread); });
                check(cudaFree(there));
            }
        }
        report(packs ? "pack" : "unpack", 30);
    }
    check(cudaFree(order_there));
    check(cudaFree(inverse_there));
    close();
}

// ---- Runs of dozens of bytes. Some lanes have a piece of a run: words that are aligned where they are stored, and what is left at
// both ends by single units. All loads are under way before the first store.

template <int lanes, class word, int unroll, class unit, int threads, bool packs, bool staged>
__global__ void __launch_bounds__(threads) move_pieces(u8 *memory, u8 *packed, const int2 *list, u32 pieces) {
    constexpr u32 bytes = sizeof(word), units = bytes / sizeof(unit), each = threads / lanes;
    __shared__ uint4 stage[staged ? each * lanes * bytes * unroll / 16 + 1 : 1];
    const u32 base = blockIdx.x * each, lane = threadIdx.x % lanes, own = min(base + threadIdx.x / lanes, pieces - 1);
    const int2 mine = __ldg(list + own);
    const u32 next = __ldg(&list[own + 1].y), length = base + threadIdx.x / lanes < pieces ? next - mine.y : 0;
    u8 *lines = 0;
    u32 from = 0, until = 0;
    if (staged) {
        const u32 low = __ldg(&list[base].y), high = __ldg(&list[min(base + each, pieces)].y);
        from = low & 15, until = from + high - low, lines = packed + low - from;
    }
    const u8 *source = packs ? memory + mine.x : packed + mine.y;
    u8 *target = staged ? (u8 *)stage + (mine.y - (i64)(lines - packed)) : packs ? packed + mine.y : memory + mine.x;
    const u32 head = min((0 - (u32)(u64)target) & (bytes - 1), length), words = (length - head) / bytes, tail = head + words * bytes;
    const u32 skip = (u32)(u64)(source + head) & (bytes - 1);
    const word *loads = (const word *)(source + head - skip);
    word low[unroll], high[unroll];
#pragma unroll
    for (u32 step = 0; step < unroll; step++) {
        const u32 at = step * lanes + lane;
        if (at < words) {
            low[step] = __ldg(loads + at);
            if (units > 1 && skip) high[step] = __ldg(loads + at + 1);
        }
    }
    // Units of both ends: each lane has one, or some of either end.
    constexpr u32 half = (units + lanes - 1) / lanes, steps = units == 1 ? 0 : lanes >= 2 * units ? 1 : 2 * half;
    unit part[steps + 1];
    u32 place[steps + 1];
#pragma unroll
    for (u32 step = 0; step < steps; step++) {
        const bool front = steps == 1 ? lane < units : step < half;
        const u32 number = steps == 1 ? lane % units : lane + step % half * lanes;
        place[step] = front ? number * sizeof(unit) : tail + number * sizeof(unit);
        if ((steps == 1 && lane >= 2 * units) || number >= units || place[step] >= (front ? head : length)) place[step] = ~0u;
        else part[step] = __ldg((const unit *)(source + place[step]));
    }
#pragma unroll
    for (u32 step = 0; step < unroll; step++) {
        const u32 at = step * lanes + lane;
        if (at < words) ((word *)(target + head))[at] = units > 1 && skip ? funnel(low[step], high[step], skip) : low[step];
    }
#pragma unroll
    for (u32 step = 0; step < steps; step++)
        if (place[step] != ~0u) *(unit *)(target + place[step]) = part[step];
    if (staged) {
        __syncthreads();
        store_lines<threads>(lines, stage, from, until);
    }
}

template <int lanes, class word, int unroll, class unit, int threads> static void piece_shape(bool packs, const Layout &layout) {
    const std::vector<int2> list = pieces_of(layout, lanes * sizeof(word) * unroll, packs);
    const u32 pieces = list.size() - 1, blocks = (pieces + threads / lanes - 1) / (threads / lanes);
    int2 *there = upload(list);
    const std::string shape = "pieces, " + std::to_string(lanes) + " lanes, " + std::to_string(unroll) + " words of " + std::to_string(sizeof(word)) +
                              ", units of " + std::to_string(sizeof(unit)) + ", " + std::to_string(threads) + " threads";
    if (packs) {
        candidate(shape, true, [=] { move_pieces<lanes, word, unroll, unit, threads, true, false><<<blocks, threads>>>(memory, packed, there, pieces); });
        candidate(shape + ", staged", true, [=] { move_pieces<lanes, word, unroll, unit, threads, true, true><<<blocks, threads>>>(memory, packed, there, pieces); });
    } else {
        candidate(shape, false, [=] { move_pieces<lanes, word, unroll, unit, threads, false, false><<<blocks, threads>>>(memory, packed, there, pieces); });
    }
    check(cudaFree(there));
}

// Words found by rank, as dtc does for short runs.
template <class word, int threads, int unroll, bool packs>
__global__ void __launch_bounds__(threads) move_ranked(word *memory, word *packed, const uint2 *ranks, const int *shifts, u32 words) {
    word value[unroll];
    word *place[unroll];
    const u32 base = blockIdx.x * (threads * unroll) + threadIdx.x;
#pragma unroll
    for (int step = 0; step < unroll; step++) {
        const u32 at = min(base + step * threads, words - 1);
        const uint2 rank = __ldg(ranks + (at >> 5));
        const u32 run = rank.y + __popc(rank.x & 0xffffffffu >> (31 - (at & 31)));
        place[step] = memory + (at + (i64)__ldg(shifts + run));
    }
#pragma unroll
    for (int step = 0; step < unroll; step++) value[step] = packs ? __ldg(place[step]) : __ldg(packed + min(base + step * threads, words - 1));
#pragma unroll
    for (int step = 0; step < unroll; step++)
        if (base + step * threads < words) *(packs ? packed + base + step * threads : place[step]) = value[step];
}

template <class word, int threads, int unroll> static void ranked_shape(bool packs, const uint2 *ranks, const int *shifts, u32 words) {
    const u32 blocks = (words + threads * unroll - 1) / (threads * unroll);
    const std::string shape = "ranked words of " + std::to_string(sizeof(word)) + ", " + std::to_string(unroll) + " a thread, " + std::to_string(threads) + " threads";
    if (packs) candidate(shape, true, [=] { move_ranked<word, threads, unroll, true><<<blocks, threads>>>((word *)memory, (word *)packed, ranks, shifts, words); });
    else candidate(shape, false, [=] { move_ranked<word, threads, unroll, false><<<blocks, threads>>>((word *)memory, (word *)packed, ranks, shifts, words); });
}

template <class word> static void sweep_ranked(bool packs, const Layout &layout) {
    const u32 words = layout.packed / sizeof(word);
    std::vector<u32> masks((words + 31) / 32);
    std::vector<int> shifts;
    u64 at = 0;
    for (const Run &run : layout.runs) {
        masks[at / 32] |= 1u << at % 32;
        shifts.push_back((int)(run.offset / sizeof(word)) - (int)at);
        at += run.length / sizeof(word);
    }
    std::vector<uint2> ranks(masks.size());
    u32 before = ~0u;
    for (size_t group = 0; group < masks.size(); group++) {
        ranks[group].x = masks[group], ranks[group].y = before;
        before += __builtin_popcount(masks[group]);
    }
    uint2 *ranks_there = upload(ranks);
    int *shifts_there = upload(shifts);
    ranked_shape<word, 1024, 1>(packs, ranks_there, shifts_there, words);
    ranked_shape<word, 256, 1>(packs, ranks_there, shifts_there, words);
    ranked_shape<word, 256, 2>(packs, ranks_there, shifts_there, words);
    ranked_shape<word, 256, 4>(packs, ranks_there, shifts_there, words);
    ranked_shape<word, 128, 2>(packs, ranks_there, shifts_there, words);
    ranked_shape<word, 128, 4>(packs, ranks_there, shifts_there, words);
    ranked_shape<word, 512, 4>(packs, ranks_there, shifts_there, words);
    ranked_shape<word, 128, 8>(packs, ranks_there, shifts_there, words);
    check(cudaFree(ranks_there));
    check(cudaFree(shifts_there));
}

// ---- Runs of a few bytes, by the sectors of memory: a mask says which bytes of a sector belong to runs, and a number how many do
// before it.

template <int threads, int unroll> __global__ void __launch_bounds__(threads) unpack_masks(u8 *memory, const u8 *packed, const uint2 *masks, u32 sectors) {
    const u32 lane = threadIdx.x % 32, base = (blockIdx.x * (threads / 32) + threadIdx.x / 32) * unroll;
    uint2 mask[unroll];
    u8 value[unroll];
#pragma unroll
    for (int step = 0; step < unroll; step++) mask[step] = __ldg(masks + min(base + step, sectors));
#pragma unroll
    for (int step = 0; step < unroll; step++)
        if (mask[step].x >> lane & 1) value[step] = __ldg(packed + mask[step].y + __popc(mask[step].x & ((1u << lane) - 1)));
#pragma unroll
    for (int step = 0; step < unroll; step++)
        if (mask[step].x >> lane & 1) memory[(u64)(base + step) * 32 + lane] = value[step];
}

template <int threads, int unroll> __global__ void __launch_bounds__(threads) unpack_mask_words(u8 *memory, const u8 *packed, const uint2 *masks, u32 sectors) {
    u32 nibble[unroll], value[unroll];
    const u32 base = blockIdx.x * (threads * unroll) + threadIdx.x;
#pragma unroll
    for (int step = 0; step < unroll; step++) {
        const u32 at = base + step * threads, shift = at % 8 * 4;
        const uint2 mask = __ldg(masks + min(at / 8, sectors));
        nibble[step] = mask.x >> shift & 15;
        if (nibble[step]) {
            const u32 from = mask.y + __popc(mask.x & ((1u << shift) - 1)), skip = from % 4;
            const u32 *words = (const u32 *)packed + from / 4;
            value[step] = __ldg(words);
            if (skip + __popc(nibble[step]) > 4) value[step] = __funnelshift_r(value[step], __ldg(words + 1), 8 * skip);
            else value[step] >>= 8 * skip;
        }
    }
#pragma unroll
    for (int step = 0; step < unroll; step++) {
        u8 *to = memory + (u64)(base + step * threads) * 4;
        u32 rest = value[step];
        if (nibble[step] == 15) {
            *(u32 *)to = rest;
        } else {
#pragma unroll
            for (int byte = 0; byte < 4; byte++)
                if (nibble[step] >> byte & 1) to[byte] = rest, rest >>= 8;
        }
    }
}

template <int threads> __global__ void __launch_bounds__(threads) pack_masks(const u8 *memory, u8 *packed, const uint2 *masks, u32 sectors) {
    __shared__ uint4 stage[threads + 1];
    const u32 at = blockIdx.x * threads + threadIdx.x, shift = at % 2 * 16;
    const uint2 mask = __ldg(masks + min(at / 2, sectors));
    const u32 low = __ldg(&masks[min(blockIdx.x * (threads / 2), sectors)].y), high = __ldg(&masks[min((blockIdx.x + 1) * (threads / 2), sectors)].y);
    const u32 mine = mask.x >> shift & 0xffff, from = low % 16, until = from + high - low;
    u8 *lines = packed + low - from;
    if (mine) {
        const uint4 value = __ldg((const uint4 *)memory + at);
        const u32 parts[] = {value.x, value.y, value.z, value.w};
        u8 *to = (u8 *)stage + from + (mask.y - low + __popc(mask.x & ((1u << shift) - 1)));
#pragma unroll
        for (int byte = 0; byte < 16; byte++)
            if (mine >> byte & 1) *to++ = parts[byte / 4] >> byte % 4 * 8;
    }
    __syncthreads();
    for (u32 word = threadIdx.x; word * 16 < until; word += threads) {
        if (word * 16 >= from && word * 16 + 16 <= until) {
            ((uint4 *)lines)[word] = stage[word];
        } else {
            for (u32 byte = max(word * 16, from); byte < min(word * 16 + 16, until); byte++) lines[byte] = ((u8 *)stage)[byte];
        }
    }
}

static void sweep_masks(bool packs, const Layout &layout) {
    const u32 sectors = (layout.span + 31) / 32;
    std::vector<uint2> masks(sectors + 1);
    for (uint2 &mask : masks) mask.x = mask.y = 0;
    for (const Run &run : layout.runs)
        for (u64 at = run.offset; at < run.offset + run.length; at++) masks[at / 32].x |= 1u << at % 32;
    u32 before = 0;
    for (uint2 &mask : masks) mask.y = before, before += __builtin_popcount(mask.x);
    uint2 *there = upload(masks);
    const auto name = [](const char *what, int unroll, int threads) {
        return std::string("masks, ") + what + ", " + std::to_string(unroll) + " a thread, " + std::to_string(threads) + " threads";
    };
    const auto blocks = [&](u64 each) { return (u32)((sectors + each - 1) / each); };
    if (packs) {
        const u32 some = blocks(64), more = blocks(128), most = blocks(256);
        candidate(name("shared memory", 16, 128), true, [=] { pack_masks<128><<<some, 128>>>(memory, packed, there, sectors); });
        candidate(name("shared memory", 16, 256), true, [=] { pack_masks<256><<<more, 256>>>(memory, packed, there, sectors); });
        candidate(name("shared memory", 16, 512), true, [=] { pack_masks<512><<<most, 512>>>(memory, packed, there, sectors); });
    } else {
        const u32 one = blocks(8), four = blocks(32), eight = blocks(64), large = blocks(128);
        candidate(name("bytes", 1, 256), false, [=] { unpack_masks<256, 1><<<one, 256>>>(memory, packed, there, sectors); });
        candidate(name("bytes", 4, 256), false, [=] { unpack_masks<256, 4><<<four, 256>>>(memory, packed, there, sectors); });
        candidate(name("bytes", 8, 256), false, [=] { unpack_masks<256, 8><<<eight, 256>>>(memory, packed, there, sectors); });
        candidate(name("words", 1, 256), false, [=] { unpack_mask_words<256, 1><<<four, 256>>>(memory, packed, there, sectors); });
        candidate(name("words", 2, 256), false, [=] { unpack_mask_words<256, 2><<<eight, 256>>>(memory, packed, there, sectors); });
        candidate(name("words", 4, 256), false, [=] { unpack_mask_words<256, 4><<<large, 256>>>(memory, packed, there, sectors); });
    }
    check(cudaFree(there));
}

template <class unit> static void sweep_runs(std::mt19937_64 &random, u64 least, u64 most, u64 gap, u64 packed_bytes) {
    constexpr u64 bytes = sizeof(unit);
    Layout layout{"runs of " + std::to_string(least) + " to " + std::to_string(most) + " bytes, multiples of " + std::to_string(bytes) +
                  ", gaps of up to " + std::to_string(gap)};
    for (u64 at = 0; layout.packed < packed_bytes;) {
        const u64 length = (least / bytes + random() % (most / bytes - least / bytes + 1)) * bytes;
        layout.add(at, length);
        at += length + (1 + random() % (gap / bytes)) * bytes;
    }
    open(layout);
    for (const bool packs : {true, false}) {
        sweep_ranked<unit>(packs, layout);
        if (most < 16) {
            sweep_masks(packs, layout);
        } else {
            if (bytes <= 4) {
                piece_shape<16, u32, 1, unit, 256>(packs, layout);
                piece_shape<16, u32, 2, unit, 256>(packs, layout);
                piece_shape<32, u32, 1, unit, 256>(packs, layout);
                piece_shape<32, u32, 2, unit, 256>(packs, layout);
            }
            piece_shape<8, u64, 1, unit, 256>(packs, layout);
            piece_shape<8, u64, 2, unit, 256>(packs, layout);
            piece_shape<8, u64, 4, unit, 256>(packs, layout);
            piece_shape<16, u64, 1, unit, 256>(packs, layout);
            piece_shape<16, u64, 2, unit, 256>(packs, layout);
            piece_shape<16, u64, 4, unit, 256>(packs, layout);
            piece_shape<4, uint4, 2, unit, 256>(packs, layout);
            piece_shape<4, uint4, 4, unit, 256>(packs, layout);
            piece_shape<8, uint4, 1, unit, 256>(packs, layout);
            piece_shape<8, uint4, 2, unit, 128>(packs, layout);
            piece_shape<8, uint4, 2, unit, 256>(packs, layout);
            piece_shape<16, uint4, 1, unit, 256>(packs, layout);
            piece_shape<16, uint4, 2, unit, 256>(packs, layout);
            piece_shape<32, uint4, 1, unit, 256>(packs, layout);
        }
        report(packs ? "pack" : "unpack", 10);
    }
    close();
}

int main(int arguments, char **argument) {
    const u64 seed = arguments > 1 ? strtoull(argument[1], nullptr, 10) : 7;
    if (arguments > 2) only = argument[2];
    printf("seed %llu\n", seed);
    std::mt19937_64 random(seed);
    prepare();
#if PARTS & 1
    sweep_columns<Six>();
    sweep_columns<Twelve>();
    sweep_columns<Four>();
#endif
#if PARTS & 2
    sweep_elements<u64, 2>(random);
    sweep_elements<u32, 1>(random);
#endif
#if PARTS & 4
    sweep_runs<u8>(random, 8, 135, 405, PACKED);
    sweep_runs<u8>(random, 32, 256, 200, PACKED);
    sweep_runs<u8>(random, 100, 1000, 1000, PACKED);
#endif
#if PARTS & 8
    sweep_runs<u32>(random, 4, 128, 128, 2 * PACKED);
    sweep_runs<u64>(random, 8, 256, 256, 2 * PACKED);
    sweep_runs<u8>(random, 1, 9, 27, PACKED);
#endif
    return mistakes == 0 ? 0 : 3;
}
