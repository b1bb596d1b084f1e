// Hand-written kernels beside each other: buffers of one layout on the device, a check of every byte, and times. For families.cu
// and classes.cu.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

using u8 = uint8_t;
using u32 = uint32_t;
using u64 = unsigned long long;
using i64 = long long;

static void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "candidates: %s\n", cudaGetErrorString(error));
    exit(4);
}

// ---- Layouts: runs in packed order.

struct Run {
    i64 offset;
    u64 length;
};

struct Layout {
    std::string name;
    std::vector<Run> runs;
    u64 packed = 0, span = 0;
    // Of runs of one length at a stride, which are not listed.
    u64 length = 0, stride = 0;

    void add(i64 offset, u64 length) {
        runs.push_back({offset, length});
        packed += length;
        span = std::max(span, offset + length);
    }
};

// ---- Memory of one layout on the device.

static u8 *memory, *packed, *expected, *other;
static i64 *offsets;
static u64 *starts;
static u32 *differences;
static u32 runs;
static u64 packed_bytes, span, run_length, run_stride;
static double copy_time;

// For a profiler: candidates whose names contain `only` run once, unchecked.
static std::string only;

static cudaEvent_t begin_event, end_event;

__global__ void fill(u64 *words, u64 count, u64 seed) {
    for (u64 at = blockIdx.x * (u64)blockDim.x + threadIdx.x; at < count; at += (u64)gridDim.x * blockDim.x) {
        u64 x = seed + (at + 1) * 0x9e3779b97f4a7c15ull;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ x >> 27) * 0x94d049bb133111ebull;
        words[at] = x ^ x >> 31;
    }
}

__global__ void move_bytes(u8 *memory, u8 *packed, const i64 *offsets, const u64 *starts, u32 runs, u64 bytes, bool packs) {
    for (u64 at = blockIdx.x * (u64)blockDim.x + threadIdx.x; at < bytes; at += (u64)gridDim.x * blockDim.x) {
        u32 run = 0, last = runs - 1;
        while (run < last) {
            const u32 middle = run + (last - run + 1) / 2;
            if (starts[middle] <= at) run = middle;
            else last = middle - 1;
        }
        u8 *place = memory + offsets[run] + (at - starts[run]);
        if (packs) packed[at] = *place;
        else *place = packed[at];
    }
}

__global__ void move_strided_bytes(u8 *memory, u8 *packed, u64 length, u64 stride, u64 bytes, bool packs) {
    for (u64 at = blockIdx.x * (u64)blockDim.x + threadIdx.x; at < bytes; at += (u64)gridDim.x * blockDim.x) {
        u8 *place = memory + at / length * stride + at % length;
        if (packs) packed[at] = *place;
        else *place = packed[at];
    }
}

__global__ void compare(const u64 *left, const u64 *right, u64 words, u32 *differences) {
    for (u64 at = blockIdx.x * (u64)blockDim.x + threadIdx.x; at < words; at += (u64)gridDim.x * blockDim.x)
        if (left[at] != right[at]) atomicAdd(differences, 1);
}

// Keeps the GPU busy while the host enqueues what is timed.
__global__ void wait(u64 nanoseconds) {
    u64 start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - start < nanoseconds);
}

// Median microseconds with the L2 cache emptied before each call.
static double time(const std::function<void()> &work) {
    std::vector<float> times;
    work();
    for (int round = 0; round < 7; round++) {
        check(cudaMemsetAsync(other, round, 256 << 20));
        wait<<<1, 1>>>(60000);
        check(cudaEventRecord(begin_event));
        work();
        check(cudaEventRecord(end_event));
        check(cudaEventSynchronize(end_event));
        float milliseconds;
        check(cudaEventElapsedTime(&milliseconds, begin_event, end_event));
        times.push_back(milliseconds * 1000);
    }
    check(cudaGetLastError());
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

template <typename T> static T *upload(const std::vector<T> &values) {
    T *there;
    check(cudaMalloc(&there, values.size() * sizeof(T)));
    check(cudaMemcpy(there, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return there;
}

static void open(const Layout &layout) {
    std::vector<i64> run_offsets;
    std::vector<u64> run_starts;
    u64 at = 0;
    for (const Run &run : layout.runs) {
        run_offsets.push_back(run.offset);
        run_starts.push_back(at);
        at += run.length;
    }
    run_starts.push_back(at);
    runs = layout.stride ? layout.packed / layout.length : layout.runs.size();
    run_length = layout.length, run_stride = layout.stride;
    packed_bytes = layout.packed;
    span = (layout.span + 15) / 16 * 16;
    check(cudaMalloc(&memory, span + 64));
    check(cudaMalloc(&packed, packed_bytes + 64));
    check(cudaMalloc(&expected, std::max(span, packed_bytes) + 64));
    offsets = upload(run_offsets);
    starts = upload(run_starts);
    copy_time = !only.empty() ? 1 : time([] { check(cudaMemcpyAsync(packed, expected, packed_bytes, cudaMemcpyDeviceToDevice)); });
    if (only.empty()) printf("%s: %u runs, %.1f MiB packed, span %.1f MiB, copy %.1f us\n", layout.name.c_str(), runs, packed_bytes / 1048576.,
           span / 1048576., copy_time);
}

static void close() {
    for (void *piece : {(void *)memory, (void *)packed, (void *)expected, (void *)offsets, (void *)starts}) check(cudaFree(piece));
}

static std::vector<std::pair<double, std::string>> found;
static int mistakes = 0;

static void candidate(const std::string &name, bool packs, const std::function<void()> &work) {
    if (!only.empty()) {
        if (name.find(only) != std::string::npos) work();
        check(cudaDeviceSynchronize());
        return;
    }
    const auto poison = [](u8 *buffer, u64 bytes, u64 seed) { fill<<<1024, 256>>>((u64 *)buffer, (bytes + 64) / 8, seed); };
    poison(memory, span, 1);
    poison(packed, packed_bytes, 2);
    poison(expected, packs ? packed_bytes : span, packs ? 2 : 1);
    work();
    if (run_stride) move_strided_bytes<<<4096, 256>>>(packs ? memory : expected, packs ? expected : packed, run_length, run_stride, packed_bytes, packs);
    else move_bytes<<<4096, 256>>>(packs ? memory : expected, packs ? expected : packed, offsets, starts, runs, packed_bytes, packs);
    check(cudaMemset(differences, 0, 4));
    const u64 compared = (packs ? packed_bytes : span) + 56;
    compare<<<1024, 256>>>((u64 *)(packs ? packed : memory), (u64 *)expected, compared / 8, differences);
    u32 wrong;
    check(cudaMemcpy(&wrong, differences, 4, cudaMemcpyDeviceToHost));
    if (wrong) {
        printf("  WRONG BYTES: %s\n", name.c_str());
        mistakes++;
        return;
    }
    found.push_back({time(work), name});
}

// Prints the fastest and the slowest.
static void report(const char *direction, size_t most = 4) {
    std::sort(found.begin(), found.end());
    for (size_t at = 0; at < found.size(); at++)
        if (at < most || at + 1 == found.size())
            printf("  %s %.3f of a copy, %.0f GB/s: %s\n", direction, copy_time / found[at].first, packed_bytes / found[at].first / 1e3,
                   found[at].second.c_str());
    found.clear();
    fflush(stdout);
}

// What main() begins with.
static void prepare() {
    check(cudaMalloc(&other, 256 << 20));
    check(cudaMalloc(&differences, 4));
    check(cudaEventCreate(&begin_event));
    check(cudaEventCreate(&end_event));
}
