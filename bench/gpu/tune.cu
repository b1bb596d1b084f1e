// Searches the word, the words a thread and the threads a block that move runs best, for layouts that are drawn at random by the length and
// the distance of their runs, and writes the table that the cost model reads, in the form of compiler/src/plan/gpu/tuning/sm_90/words.rs.
//
//     nvcc -O3 -arch=sm_90 -std=c++17 --extended-lambda -o tune tune.cu && ./tune TABLE [SEED [LAYOUTS]]

#include "candidates.hpp"

#include <cmath>
#include <map>
#include <tuple>
#include <type_traits>

constexpr u64 PACKED = 32 << 20;

// Division by a number that the kernel does not know, for numerators below 2^31.
struct Divisor {
    u32 magic, shift, size;
    explicit Divisor(u32 size) : size(size) {
        u32 bits = 0;
        while ((1ull << bits) < size) bits++;
        magic = size == 1 ? 0 : (u32)((1ull << (31 + bits)) / size + 1);
        shift = bits == 0 ? 0 : bits - 1;
    }
    __device__ __forceinline__ u32 quotient(u32 at) const { return size == 1 ? at : __umulhi(at, magic) >> shift; }
};

template <class word, int threads, int unroll, bool packs>
__global__ void __launch_bounds__(threads) move_words(u8 *memory, word *packed, u32 words, Divisor run, u64 stride) {
    const u32 base = blockIdx.x * (threads * unroll) + threadIdx.x;
    word *place[unroll], value[unroll];
#pragma unroll
    for (int step = 0; step < unroll; step++) {
        const u32 at = min(base + step * threads, words - 1), copy = run.quotient(at);
        place[step] = (word *)(memory + copy * stride) + (at - copy * run.size);
    }
#pragma unroll
    for (int step = 0; step < unroll; step++) value[step] = packs ? __ldg(place[step]) : __ldg(packed + min(base + step * threads, words - 1));
#pragma unroll
    for (int step = 0; step < unroll; step++)
        if (base + step * threads < words) {
            if (packs) packed[base + step * threads] = value[step];
            else *place[step] = value[step];
        }
}

struct Shape {
    u32 word, threads, unroll;
    bool operator<(const Shape &other) const { return std::tie(word, threads, unroll) < std::tie(other.word, other.threads, other.unroll); }
};

static std::map<Shape, std::vector<double>> shares;

// Shapes that are so far behind the best with a layout of a row are not tried with its others, and do not win it.
constexpr double HOPELESS = 0.9;

static bool hopeless(const Shape &shape) {
    const auto found = shares.find(shape);
    return found != shares.end() && *std::min_element(found->second.begin(), found->second.end()) < HOPELESS;
}

template <class word, int threads, int unroll, bool packs> static void shape(u32 length, u64 stride, u64 bytes) {
    if (length % sizeof(word) != 0 || stride % sizeof(word) != 0 || hopeless({sizeof(word), threads, unroll})) return;
    const u32 words = bytes / sizeof(word), blocks = (words + threads * unroll - 1) / (threads * unroll);
    const Divisor run(length / sizeof(word));
    candidate(std::to_string(sizeof(word)) + " " + std::to_string(threads) + " " + std::to_string(unroll), packs,
              [=] { move_words<word, threads, unroll, packs><<<blocks, threads>>>(memory, (word *)packed, words, run, stride); });
}

template <class word, bool packs> static void words(u32 length, u64 stride, u64 bytes) {
    shape<word, 128, 1, packs>(length, stride, bytes);
    shape<word, 128, 2, packs>(length, stride, bytes);
    shape<word, 128, 4, packs>(length, stride, bytes);
    shape<word, 256, 1, packs>(length, stride, bytes);
    shape<word, 256, 2, packs>(length, stride, bytes);
    shape<word, 256, 4, packs>(length, stride, bytes);
    shape<word, 512, 1, packs>(length, stride, bytes);
    shape<word, 512, 2, packs>(length, stride, bytes);
    shape<word, 1024, 1, packs>(length, stride, bytes);
    shape<word, 1024, 2, packs>(length, stride, bytes);
}

// The times of a layout as shares of the best.
static void note() {
    double best = 1e9;
    for (auto &[time, name] : found) best = std::min(best, time);
    for (auto &[time, name] : found) {
        Shape shape;
        sscanf(name.c_str(), "%u %u %u", &shape.word, &shape.threads, &shape.unroll);
        shares[shape].push_back(best / time);
    }
    found.clear();
}

// Writes the row of a cell, and says how good every shape is.
static void cell(FILE *table, const char *direction, const char *density, u32 from) {
    u32 best_word = 0;
    double best = 0;
    std::map<u32, std::vector<std::pair<double, Shape>>> by_word;
    for (auto &[shape, found] : shares) {
        double product = 1;
        for (double share : found) product *= share;
        const double mean = hopeless(shape) ? *std::min_element(found.begin(), found.end()) : std::pow(product, 1. / found.size());
        by_word[shape.word].push_back({mean, shape});
        if (mean > best) best = mean, best_word = shape.word;
    }
    for (auto &[word, list] : by_word) {
        std::sort(list.begin(), list.end(), [](auto &one, auto &other) { return one.first > other.first; });
        printf("%s %s %u, words of %u%s:", direction, density, from, word, word == best_word ? " (best)" : "");
        for (auto &[share, shape] : list) printf(" %ux%u %.3f", shape.threads, shape.unroll, share);
        printf("\n");
    }
    // Words that no layout of the cell has take the shape of the next narrower one, or else of the narrowest.
    fprintf(table, "    Row { direction: %s, density: %s, least: %u, word: %u, shapes: [", direction, density, from == 4 ? 0 : from, best_word);
    for (u32 word = 1; word <= 16; word *= 2) {
        auto at = by_word.upper_bound(word);
        if (at != by_word.begin()) --at;
        const Shape &shape = at->second[0].second;
        fprintf(table, "%s(%u, %u)", word == 1 ? "" : ", ", shape.threads, shape.unroll);
    }
    const auto &list = by_word[best_word];
    const std::vector<double> &found = shares[list[0].second];
    fprintf(table, "] }, // %.3f of the second, at least %.3f of the best of a layout\n", list[0].first / list[1].first, *std::min_element(found.begin(), found.end()));
    fflush(stdout), fflush(table);
    shares.clear();
}

int main(int arguments, char **argument) {
    const u64 seed = arguments > 2 ? strtoull(argument[2], nullptr, 10) : 7;
    const int layouts = arguments > 3 ? atoi(argument[3]) : 2;
    FILE *table = arguments > 1 ? fopen(argument[1], "w") : stdout;
    if (table == nullptr) return 2;
    cudaDeviceProp device;
    check(cudaGetDeviceProperties(&device, 0));
    fprintf(table, "//! Words and launch shapes for blocks at strides and listed runs on GPUs of architecture sm_%d%d.\n//!\n"
            "//! Written by `bench/gpu/tune.cu` on an %s, from seed %llu and %d layouts a row.\n\n"
            "use crate::plan::Direction::{Pack, Unpack};\nuse crate::plan::gpu::tuning::row::Density::{Close, Near, Sparse};\nuse crate::plan::gpu::tuning::row::Row;\n\n"
            "/// Rows of each direction and density by ascending `least`.\n#[rustfmt::skip]\npub(super) const ROWS: &[Row] = &[\n",
            device.major, device.minor, device.name, seed, layouts);
    printf("%s, seed %llu\n", device.name, seed);
    std::mt19937_64 random(seed);
    prepare();
    const u32 lengths[] = {4, 8, 16, 32, 48, 64, 128, 256, 1024};
    constexpr size_t count = sizeof lengths / sizeof *lengths;
    for (const bool packs : {true, false})
        for (const char *density : {"Close", "Near", "Sparse"})
            for (size_t at = 0; at < count; at++) {
                const u32 from = lengths[at], until = at + 1 < count ? lengths[at + 1] : 4096, unit = std::min(from, 16u);
                const bool close = density[0] == 'C', sparse = density[0] == 'S';
                // Runs of 16 bytes that are a multiple of 16 apart are no closer than a sector.
                if (close && from > 8) continue;
                for (int layout = 0; layout < layouts; layout++) {
                    const u32 length = from + random() % ((until - from + unit - 1) / unit) * unit;
                    const u64 least = sparse ? std::max<u64>(256, 4 * length) : close ? length + unit : std::max<u64>(32, length + unit);
                    const u64 room = close ? (31 - least) / unit + 1 : (sparse ? 16 : 3) * length / unit + 1, stride = least + random() % room * unit;
                    Layout drawn;
                    drawn.length = length, drawn.stride = stride, drawn.packed = PACKED / length * length;
                    drawn.span = (PACKED / length - 1) * stride + length;
                    drawn.name = std::to_string(length) + "/" + std::to_string(stride);
                    open(drawn);
                    const auto all = [&](auto direction) {
                        constexpr bool packs = decltype(direction)::value;
                        if (from <= 8) words<u8, packs>(length, stride, drawn.packed), words<uint16_t, packs>(length, stride, drawn.packed);
                        words<u32, packs>(length, stride, drawn.packed), words<u64, packs>(length, stride, drawn.packed), words<uint4, packs>(length, stride, drawn.packed);
                    };
                    if (packs) all(std::true_type());
                    else all(std::false_type());
                    note();
                    ::close();
                }
                cell(table, packs ? "Pack" : "Unpack", density, from);
            }
    fprintf(table, "];\n");
    return mistakes == 0 ? 0 : 3;
}
