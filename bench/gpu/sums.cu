// Sums of doubles into blocks at a stride, by every way that the hardware has: loads and stores with words of 8 and 16 bytes and
// several words a thread, streaming or not, reductions in the L2 cache, bulk reductions from shared memory. What
// unpacks with an operation are measured against: the best unpack of the same layout by such kernels stands beside them.
//
//     nvcc -O3 -arch=sm_90 -std=c++17 --extended-lambda -o sums sums.cu && ./sums

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

constexpr uint64_t PACKED_BYTES = 64 << 20;
constexpr int THREADS = 256;

static void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "sums: %s\n", cudaGetErrorString(error));
    exit(4);
}

enum class Way { Unpack, Sum, StreamingSum, Reduction };

__device__ double sum(double a, double b) { return a + b; }
__device__ double2 sum(double2 a, double2 b) { return make_double2(a.x + b.x, a.y + b.y); }

__device__ void reduce(double *at, double value) { asm volatile("red.global.add.f64 [%0], %1;" ::"l"(at), "d"(value) : "memory"); }
__device__ void reduce(double2 *at, double2 value) {
    reduce(&at->x, value.x);
    reduce(&at->y, value.y);
}

template <typename Word, int words, Way way, int block, int stride>
__global__ void __launch_bounds__(THREADS) move(const Word *packed, uint8_t *memory) {
    constexpr int block_words = block / sizeof(Word);
    const uint64_t first = (uint64_t)blockIdx.x * (THREADS * words) + threadIdx.x;
    Word *place[words], come[words], old[words];
#pragma unroll
    for (int i = 0; i < words; i++) {
        const uint64_t at = first + i * THREADS;
        place[i] = (Word *)(memory + at / block_words * stride) + at % block_words;
        come[i] = way == Way::StreamingSum ? __ldcs(packed + at) : packed[at];
    }
#pragma unroll
    for (int i = 0; i < words; i++) {
        if (way == Way::Sum) old[i] = *place[i];
        if (way == Way::StreamingSum) old[i] = __ldcs(place[i]);
    }
#pragma unroll
    for (int i = 0; i < words; i++) {
        if (way == Way::Unpack) *place[i] = come[i];
        if (way == Way::Sum) *place[i] = sum(old[i], come[i]);
        if (way == Way::StreamingSum) __stcs(place[i], sum(old[i], come[i]));
        if (way == Way::Reduction) reduce(place[i], come[i]);
    }
}

constexpr int TILE_BYTES = 16 << 10;

template <int block, int stride> __global__ void __launch_bounds__(THREADS) bulk(const uint4 *packed, uint8_t *memory) {
    __shared__ __align__(128) uint4 tile[TILE_BYTES / 16];
    for (int i = threadIdx.x; i < TILE_BYTES / 16; i += THREADS) tile[i] = packed[(uint64_t)blockIdx.x * (TILE_BYTES / 16) + i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    for (int row = threadIdx.x; row < TILE_BYTES / block; row += THREADS) {
        const uint64_t number = (uint64_t)blockIdx.x * (TILE_BYTES / block) + row;
        const unsigned from = (unsigned)__cvta_generic_to_shared((uint8_t *)tile + row * block);
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f64 [%0], [%1], %2;" ::"l"(memory + number * stride),
                     "r"(from), "n"(block) : "memory");
    }
    asm volatile("cp.async.bulk.commit_group;");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Sums of these are exact, whatever the order.
__host__ __device__ double number(uint64_t at) { return (double)(at * 0x9e3779b97f4a7c15 >> 20); }

__global__ void fill(double *numbers, uint64_t count, uint64_t seed) {
    const uint64_t at = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) numbers[at] = number(at + seed);
}

__global__ void count_wrong(const double *memory, uint64_t count, int block, int stride, bool sums, unsigned *wrong) {
    const uint64_t at = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    const uint64_t row = at * 8 / stride, column = at * 8 % stride;
    const bool covered = column < block;
    const double come = covered ? number((row * block + column) / 8 + 77) : 0;
    if (memory[at] != (covered && !sums ? 0 : number(at)) + come) atomicAdd(wrong, 1);
}

struct Bench {
    uint8_t *packed, *memory, *other;
    unsigned *wrong;

    // Checks the way, and prints the median with the L2 cache emptied.
    void run(const std::string &name, int block, int stride, bool sums, const std::function<void()> &work) {
        const uint64_t count = PACKED_BYTES / block * stride / 8;
        fill<<<(count + 255) / 256, 256>>>((double *)memory, count, 0);
        check(cudaMemset(wrong, 0, 4));
        work();
        count_wrong<<<(count + 255) / 256, 256>>>((double *)memory, count, block, stride, sums, wrong);
        unsigned faults;
        check(cudaMemcpy(&faults, wrong, 4, cudaMemcpyDeviceToHost));
        if (faults) {
            fprintf(stderr, "sums: %s: %u wrong numbers\n", name.c_str(), faults);
            exit(3);
        }
        cudaEvent_t begin, end;
        check(cudaEventCreate(&begin));
        check(cudaEventCreate(&end));
        std::vector<float> times;
        for (int round = 0; round < 9; round++) {
            check(cudaMemsetAsync(other, round, 256 << 20));
            check(cudaEventRecord(begin));
            work();
            check(cudaEventRecord(end));
            check(cudaEventSynchronize(end));
            float milliseconds;
            check(cudaEventElapsedTime(&milliseconds, begin, end));
            times.push_back(milliseconds * 1000);
        }
        std::sort(times.begin(), times.end());
        printf("%d/%d %-44s %6.1f us %5.0f GB/s\n", block, stride, name.c_str(), times[4], PACKED_BYTES / times[4] / 1e3);
    }

    template <typename Word, int words, Way way, int block, int stride> void kernel(const char *what) {
        const std::string name = std::string(what) + ", " + std::to_string(words) + " words of " + std::to_string(sizeof(Word));
        run(name, block, stride, way != Way::Unpack, [&] {
            move<Word, words, way, block, stride>
                <<<PACKED_BYTES / sizeof(Word) / words / THREADS, THREADS>>>((const Word *)packed, memory);
        });
    }

    template <Way way, int block, int stride> void words(const char *what) {
        kernel<double, 1, way, block, stride>(what);
        kernel<double, 4, way, block, stride>(what);
        kernel<double2, 1, way, block, stride>(what);
        kernel<double2, 2, way, block, stride>(what);
        kernel<double2, 4, way, block, stride>(what);
    }

    template <int block, int stride> void layout() {
        words<Way::Unpack, block, stride>("unpack");
        words<Way::Sum, block, stride>("sum");
        words<Way::StreamingSum, block, stride>("sum, streaming");
        words<Way::Reduction, block, stride>("reduction in L2");
        run("bulk reductions", block, stride, true, [&] {
            bulk<block, stride><<<PACKED_BYTES / TILE_BYTES, THREADS>>>((const uint4 *)packed, memory);
        });
    }
};

int main() {
    Bench bench;
    check(cudaMalloc(&bench.packed, PACKED_BYTES));
    check(cudaMalloc(&bench.memory, 8 * PACKED_BYTES));
    check(cudaMalloc(&bench.other, 256 << 20));
    check(cudaMalloc(&bench.wrong, 4));
    fill<<<PACKED_BYTES / 8 / 256, 256>>>((double *)bench.packed, PACKED_BYTES / 8, 77);
    bench.layout<64, 512>();
    bench.layout<128, 512>();
    bench.layout<1024, 2048>();
}
