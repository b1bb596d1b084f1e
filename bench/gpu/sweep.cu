// The best of hand-specialised kernels for blocks at a stride: word sizes, words a thread, threads a block, plain or streaming
// stores. What a programmer finds by trying; dtc's kernels are measured against it.
//
//     nvcc -O3 -arch=sm_90 -std=c++17 --extended-lambda -o sweep sweep.cu && ./sweep

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

static void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "sweep: %s\n", cudaGetErrorString(error));
    exit(4);
}

template <int bytes> struct Word;
template <> struct Word<4> { using type = uint32_t; };
template <> struct Word<8> { using type = unsigned long long; };
template <> struct Word<16> { using type = uint4; };

// index / divisor for indices below 2^31, as a multiplication.
struct Divisor {
    uint32_t divisor, magic = 0, shift = 0;
    explicit Divisor(uint32_t divisor) : divisor(divisor) {
        if (divisor == 1) return;
        int bits = 32 - __builtin_clz(divisor - 1);
        magic = (uint32_t)((1ull << (31 + bits)) / divisor + 1);
        shift = bits - 1;
    }
    __device__ uint32_t divide(uint32_t index) const {
        return divisor == 1 ? index : __umulhi(index, magic) >> shift;
    }
};

template <int bytes, int unroll, int threads, bool streams, bool packs>
__global__ void __launch_bounds__(threads)
move(uint8_t *memory, uint8_t *packed, Divisor block, uint64_t stride, uint32_t words) {
    using word = typename Word<bytes>::type;
    const uint32_t base = blockIdx.x * (threads * unroll) + threadIdx.x;
    word value[unroll];
    const auto place = [&](uint32_t at) {
        const uint32_t which = block.divide(at);
        return (word *)(memory + which * stride + (at - which * block.divisor) * bytes);
    };
#pragma unroll
    for (int step = 0; step < unroll; step++) {
        const uint32_t at = base + step * threads;
        if (at < words) value[step] = packs ? *place(at) : ((word *)packed)[at];
    }
#pragma unroll
    for (int step = 0; step < unroll; step++) {
        const uint32_t at = base + step * threads;
        if (at >= words) continue;
        word *target = packs ? (word *)packed + at : place(at);
        if (streams) __stcs(target, value[step]);
        else *target = value[step];
    }
}

struct Buffers {
    uint8_t *memory, *packed, *other;
};

// Median microseconds with the L2 cache emptied before each call.
static double time(const Buffers &buffers, const std::function<void()> &work) {
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin));
    check(cudaEventCreate(&end));
    std::vector<float> times;
    work();
    for (int round = 0; round < 5; round++) {
        check(cudaMemsetAsync(buffers.other, round, 256 << 20));
        check(cudaEventRecord(begin));
        work();
        check(cudaEventRecord(end));
        check(cudaEventSynchronize(end));
        float milliseconds;
        check(cudaEventElapsedTime(&milliseconds, begin, end));
        times.push_back(milliseconds * 1000);
    }
    check(cudaGetLastError());
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

using Found = std::vector<std::pair<double, std::string>>;

template <int bytes, int unroll, int threads, bool packs>
void shapes(const Buffers &buffers, uint64_t block, uint64_t stride, uint64_t total, Found &found) {
    if (block % bytes || stride % bytes) return;
    const uint32_t words = total / bytes, blocks = (words + threads * unroll - 1) / (threads * unroll);
    const Divisor divisor(block / bytes);
    const auto name = [&](const char *stores) {
        return "words of " + std::to_string(bytes) + ", " + std::to_string(unroll) + " a thread, " +
               std::to_string(threads) + " threads" + stores;
    };
    found.push_back({time(buffers, [&] {
        move<bytes, unroll, threads, false, packs><<<blocks, threads>>>(buffers.memory, buffers.packed, divisor, stride, words);
    }), name("")});
    found.push_back({time(buffers, [&] {
        move<bytes, unroll, threads, true, packs><<<blocks, threads>>>(buffers.memory, buffers.packed, divisor, stride, words);
    }), name(", streaming")});
}

template <int bytes, bool packs>
void words(const Buffers &buffers, uint64_t block, uint64_t stride, uint64_t total, Found &found) {
    shapes<bytes, 1, 128, packs>(buffers, block, stride, total, found);
    shapes<bytes, 1, 256, packs>(buffers, block, stride, total, found);
    shapes<bytes, 1, 1024, packs>(buffers, block, stride, total, found);
    shapes<bytes, 2, 128, packs>(buffers, block, stride, total, found);
    shapes<bytes, 2, 256, packs>(buffers, block, stride, total, found);
    shapes<bytes, 2, 512, packs>(buffers, block, stride, total, found);
    shapes<bytes, 4, 128, packs>(buffers, block, stride, total, found);
    shapes<bytes, 4, 256, packs>(buffers, block, stride, total, found);
}

template <bool packs> void best(const Buffers &buffers, uint64_t block, uint64_t stride, uint64_t total) {
    Found found;
    words<4, packs>(buffers, block, stride, total, found);
    words<8, packs>(buffers, block, stride, total, found);
    words<16, packs>(buffers, block, stride, total, found);
    const auto &fastest = *std::min_element(found.begin(), found.end());
    const double copy = time(buffers, [&] {
        check(cudaMemcpyAsync(buffers.packed, buffers.memory, total, cudaMemcpyDeviceToDevice));
    });
    printf("strided %llu/%llu %s: %.0f GB/s, %.3f of a copy, %s\n", (unsigned long long)block, (unsigned long long)stride,
           packs ? "pack" : "unpack", total / fastest.first / 1e3, copy / fastest.first, fastest.second.c_str());
}

int main() {
    Buffers buffers;
    check(cudaMalloc(&buffers.memory, 20ull << 30));
    check(cudaMalloc(&buffers.packed, 256 << 20));
    check(cudaMalloc(&buffers.other, 256 << 20));
    const uint64_t cases[][2] = {{4, 8},    {8, 16},   {8, 64},   {8, 512},   {8, 4096},    {12, 64},    {16, 512},
                                 {16, 4096}, {24, 64}, {32, 512}, {64, 512}, {128, 512}, {1024, 2048}, {4000, 4096}};
    for (const auto &[block, stride] : cases) {
        // A span of at most 16 GiB, and at most 256 MiB of packed bytes.
        const uint64_t blocks = std::min((256ull << 20) / block, (16ull << 30) / stride);
        best<true>(buffers, block, stride, blocks * block);
        best<false>(buffers, block, stride, blocks * block);
    }
}
