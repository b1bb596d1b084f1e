// A stencil that writes the faces of its result into send buffers by the device functions of `dtc emit --as cuda-header`, beside the
// stencil alone, and the stencil with one batch launch of dtc behind it.
//
//     for face in bench/gpu/stencil/*.dtc; do dtc emit $face --as cuda-header -o /tmp/faces/$(basename $face .dtc).cuh; done
//     nvcc -O3 -arch=sm_90 -std=c++17 -Xcompiler -ffp-contract=off -I/tmp/faces -I/opt/dtc/include -o stencil bench/gpu/stencil.cu -L/opt/dtc/lib -ldtc
//     ./stencil [ROUNDS]
//
// The box has 512^3 doubles and a layer of ghosts. Every byte of the result and of the send buffers is compared with the CPU's.

#include "x_high.cuh"
#include "x_low.cuh"
#include "y_high.cuh"
#include "y_low.cuh"
#include "z_high.cuh"
#include "z_low.cuh"

#include <dtc.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

using u64 = unsigned long long;

constexpr int EDGE = 512, ROW = EDGE + 2, PLANE = ROW * ROW;
constexpr u64 BOX = (u64)PLANE * ROW, FACE = (u64)EDGE * EDGE * 8;
constexpr int FACES = 6;
constexpr double CENTRE = 0.4, SIDE = 0.1;

// Rows of y that a thread computes, and warps of a block, which has all of x.
constexpr int ROWS = 4;

struct Send {
    unsigned char *face[FACES];
};

static void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "stencil: %s\n", cudaGetErrorString(error));
    exit(4);
}

// The sum in one order, without contraction, so that the CPU computes the same bits.
static __host__ __device__ __forceinline__ double combine(double centre, double x0, double x1, double y0, double y1, double z0, double z1) {
#ifdef __CUDA_ARCH__
    const double sum = __dadd_rn(__dadd_rn(__dadd_rn(__dadd_rn(__dadd_rn(x0, x1), y0), y1), z0), z1);
    return __dadd_rn(__dmul_rn(CENTRE, centre), __dmul_rn(SIDE, sum));
#else
    const double sum = ((((x0 + x1) + y0) + y1) + z0) + z1;
    return CENTRE * centre + SIDE * sum;
#endif
}

static __device__ __forceinline__ double at_point(const double *in, long long place) {
    return combine(in[place], in[place - 1], in[place + 1], in[place - ROW], in[place + ROW], in[place - PLANE], in[place + PLANE]);
}

// How faces reach the send buffers.
enum Way {
    NONE,
    // Blocks move the parts of the faces that they computed, behind __syncthreads: FACE::pack, and FACE::place where a part is not
    // contiguous in the packed bytes.
    PARTS,
    // Blocks before the others compute faces once more, packed word by packed word: FACE::place.
    AGAIN,
    // Each thread stores its value a second time: FACE::position.
    OWN,
    // By hand: each thread stores its value a second time.
    HAND,
};

template <class Face> static __device__ __forceinline__ void again(const double *in, unsigned char *send, unsigned int word) {
    const long long place = Face::place(word * 8) / 8;
    ((double *)send)[word] = at_point(in, place);
}

// Blocks that compute faces again.
constexpr int AGAIN_BLOCKS = FACES * 64;

// A block marches through `depth` planes. FIT blocks fit a multiprocessor.
template <int WAY, int FIT>
__global__ void __launch_bounds__(EDGE, FIT) stencil(const double *__restrict__ in, double *__restrict__ out, int depth, Send send) {
    constexpr int columns = EDGE / ROWS;
    if (WAY == AGAIN && blockIdx.x < AGAIN_BLOCKS) {
        constexpr unsigned int share = EDGE * EDGE / 64;
        const unsigned int face = blockIdx.x / 64, first = blockIdx.x % 64 * share;
        for (unsigned int word = first + threadIdx.x; word < first + share; word += EDGE) {
            switch (face) {
            case 0: again<x_low>(in, send.face[0], word); break;
            case 1: again<x_high>(in, send.face[1], word); break;
            case 2: again<y_low>(in, send.face[2], word); break;
            case 3: again<y_high>(in, send.face[3], word); break;
            case 4: again<z_low>(in, send.face[4], word); break;
            case 5: again<z_high>(in, send.face[5], word); break;
            }
        }
        return;
    }
    const int block = blockIdx.x - (WAY == AGAIN ? AGAIN_BLOCKS : 0);
    const int x = threadIdx.x, y0 = block % columns * ROWS, z0 = block / columns * depth;
    const int lane = x % 32;
    const double *plane = in + (u64)(z0 + 1) * PLANE + (y0 + 1) * ROW + x + 1;
    double below[ROWS], here[ROWS], above[ROWS];
    for (int row = 0; row < ROWS; row++) {
        below[row] = plane[row * ROW - PLANE];
        here[row] = plane[row * ROW];
    }
    for (int z = z0; z < z0 + depth; z++, plane += PLANE) {
        const double before = plane[-ROW], behind = plane[ROWS * ROW];
        for (int row = 0; row < ROWS; row++) above[row] = plane[row * ROW + PLANE];
        for (int row = 0; row < ROWS; row++) {
            double left = __shfl_up_sync(~0u, here[row], 1), right = __shfl_down_sync(~0u, here[row], 1);
            if (lane == 0) left = plane[row * ROW - 1];
            if (lane == 31) right = plane[row * ROW + 1];
            const double value = combine(here[row], left, right, row == 0 ? before : here[row - 1],
                                         row == ROWS - 1 ? behind : here[row + 1], below[row], above[row]);
            out[plane - in + row * ROW] = value;
            if (WAY == OWN) {
                const int y = y0 + row;
                const unsigned int byte = (unsigned int)(plane - in + row * ROW) * 8;
                if (x == 0) *(double *)(send.face[0] + x_low::position(byte)) = value;
                if (x == EDGE - 1) *(double *)(send.face[1] + x_high::position(byte)) = value;
                if (y == 0) *(double *)(send.face[2] + y_low::position(byte)) = value;
                if (y == EDGE - 1) *(double *)(send.face[3] + y_high::position(byte)) = value;
                if (z == 0) *(double *)(send.face[4] + z_low::position(byte)) = value;
                if (z == EDGE - 1) *(double *)(send.face[5] + z_high::position(byte)) = value;
            }
            if (WAY == HAND) {
                const int y = y0 + row;
                if (x == 0) ((double *)send.face[0])[z * EDGE + y] = value;
                if (x == EDGE - 1) ((double *)send.face[1])[z * EDGE + y] = value;
                if (y == 0) ((double *)send.face[2])[z * EDGE + x] = value;
                if (y == EDGE - 1) ((double *)send.face[3])[z * EDGE + x] = value;
                if (z == 0) ((double *)send.face[4])[y * EDGE + x] = value;
                if (z == EDGE - 1) ((double *)send.face[5])[y * EDGE + x] = value;
            }
        }
        for (int row = 0; row < ROWS; row++) {
            below[row] = here[row];
            here[row] = above[row];
        }
    }
    if (WAY == PARTS) {
        __syncthreads();
        const unsigned char *const result = (const unsigned char *)out;
        for (int word = x; word < depth * ROWS; word += EDGE) {
            const unsigned int at = (unsigned int)((z0 + word / ROWS) * EDGE + y0 + word % ROWS) * 8;
            *(double *)(send.face[0] + at) = *(const double *)(result + x_low::place(at));
            *(double *)(send.face[1] + at) = *(const double *)(result + x_high::place(at));
        }
        const u64 rows = (u64)z0 * EDGE * 8, plane_part = (u64)y0 * EDGE * 8;
        if (y0 == 0) y_low::pack(out, send.face[2] + rows, rows, (u64)depth * EDGE * 8);
        if (y0 == EDGE - ROWS) y_high::pack(out, send.face[3] + rows, rows, (u64)depth * EDGE * 8);
        if (z0 == 0) z_low::pack(out, send.face[4] + plane_part, plane_part, ROWS * EDGE * 8);
        if (z0 == EDGE - depth) z_high::pack(out, send.face[5] + plane_part, plane_part, ROWS * EDGE * 8);
    }
}

__global__ void fill(u64 *words, u64 count, u64 seed, bool doubles) {
    for (u64 at = blockIdx.x * (u64)blockDim.x + threadIdx.x; at < count; at += (u64)gridDim.x * blockDim.x) {
        u64 x = seed + (at + 1) * 0x9e3779b97f4a7c15ull;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ x >> 27) * 0x94d049bb133111ebull;
        x ^= x >> 31;
        // Doubles between 1 and 2.
        words[at] = doubles ? (x >> 12) | 0x3ff0000000000000ull : x;
    }
}

// Counts the words that differ.
__global__ void differ(const u64 *found, const u64 *expected, u64 count, u64 *differences) {
    for (u64 at = blockIdx.x * (u64)blockDim.x + threadIdx.x; at < count; at += (u64)gridDim.x * blockDim.x)
        if (found[at] != expected[at]) atomicAdd(differences, 1ull);
}

static double *in, *out, *expected;
static Send send, expected_send;
static u64 *differences;

static void poison_box(double *box) { fill<<<1024, 256>>>((u64 *)box, BOX, 77, false); }

static void poison() {
    poison_box(out);
    for (int face = 0; face < FACES; face++) fill<<<256, 256>>>((u64 *)send.face[face], FACE / 8, 99 + face, false);
    check(cudaDeviceSynchronize());
}

// The result on the CPU, with the poison where nothing is computed, and its faces.
static void compute() {
    std::vector<double> source(BOX), result(BOX);
    check(cudaMemcpy(source.data(), in, BOX * 8, cudaMemcpyDeviceToHost));
    poison_box(out);
    check(cudaMemcpy(result.data(), out, BOX * 8, cudaMemcpyDeviceToHost));
    const auto work = [&](int first, int last) {
        for (int z = first; z < last; z++)
            for (int y = 1; y <= EDGE; y++)
                for (int x = 1; x <= EDGE; x++) {
                    const u64 at = (u64)z * PLANE + y * ROW + x;
                    result[at] = combine(source[at], source[at - 1], source[at + 1], source[at - ROW], source[at + ROW],
                                         source[at - PLANE], source[at + PLANE]);
                }
    };
    std::vector<std::thread> threads;
    for (int part = 0; part < 16; part++) threads.emplace_back(work, 1 + part * EDGE / 16, 1 + (part + 1) * EDGE / 16);
    for (std::thread &thread : threads) thread.join();
    check(cudaMemcpy(expected, result.data(), BOX * 8, cudaMemcpyHostToDevice));
    std::vector<double> packed((u64)EDGE * EDGE);
    for (int face = 0; face < FACES; face++) {
        for (int one = 0; one < EDGE; one++)
            for (int two = 0; two < EDGE; two++) {
                const int fixed = face % 2 ? EDGE : 1;
                const int z = face / 2 == 2 ? fixed : one + 1, y = face / 2 == 1 ? fixed : face / 2 == 2 ? one + 1 : two + 1;
                const int x = face / 2 == 0 ? fixed : two + 1;
                packed[(u64)one * EDGE + two] = result[(u64)z * PLANE + y * ROW + x];
            }
        check(cudaMemcpy(expected_send.face[face], packed.data(), FACE, cudaMemcpyHostToDevice));
    }
}

static void compare(const char *what, bool has_faces) {
    u64 found = 0;
    check(cudaMemset(differences, 0, 8));
    differ<<<1024, 256>>>((u64 *)out, (u64 *)expected, BOX, differences);
    for (int face = 0; face < FACES && has_faces; face++)
        differ<<<256, 256>>>((u64 *)send.face[face], (u64 *)expected_send.face[face], FACE / 8, differences);
    check(cudaMemcpy(&found, differences, 8, cudaMemcpyDeviceToHost));
    if (found == 0) return;
    fprintf(stderr, "stencil: %s: %llu words are wrong\n", what, found);
    exit(3);
}

#define DTC(call)                                                                                                      \
    do {                                                                                                               \
        if ((call) != DTC_OK) {                                                                                        \
            fprintf(stderr, "stencil: %s\n", dtc_message());                                                        \
            exit(4);                                                                                                   \
        }                                                                                                              \
    } while (0)

// Packs of the six faces in one launch.
static dtc_batch *batch_of_faces() {
    dtc_engine *engine;
    dtc_type *number;
    dtc_batch *batch;
    DTC(dtc_init(NULL, &engine));
    DTC(dtc_type_named(engine, "MPI_DOUBLE", &number));
    dtc_batch_call calls[FACES];
    for (int face = 0; face < FACES; face++) {
        const int64_t sizes[] = {ROW, ROW, ROW};
        int64_t subsizes[] = {EDGE, EDGE, EDGE}, starts[] = {1, 1, 1};
        subsizes[2 - face / 2] = 1;
        starts[2 - face / 2] = face % 2 ? EDGE : 1;
        dtc_type *type;
        DTC(dtc_type_subarray(3, sizes, subsizes, starts, DTC_ORDER_C, number, &type));
        DTC(dtc_type_commit(type, DTC_COMMIT_EAGER));
        calls[face] = dtc_batch_call{type, out, send.face[face], 1, 0, (int64_t)FACE, DTC_DIRECTION_PACK, 0};
    }
    DTC(dtc_batch_prepare(engine, 0, calls, FACES, &batch));
    // The kernel is compiled in the background.
    int64_t waiting = 1;
    DTC(dtc_batch_enqueue(batch, NULL, NULL));
    check(cudaDeviceSynchronize());
    DTC(dtc_compile_pending(engine, 60000000, &waiting));
    return batch;
}

template <int WAY, int FIT> static void launch(int depth) {
    const int blocks = EDGE / ROWS * (EDGE / depth) + (WAY == AGAIN ? AGAIN_BLOCKS : 0);
    stencil<WAY, FIT><<<blocks, EDGE>>>(in, out, depth, send);
}

struct Candidate {
    std::string name;
    int fit, depth;
    bool computes, has_faces;
    std::function<void()> run;
    std::vector<float> times;
};

template <int FIT> static void add(std::vector<Candidate> &candidates, int depth, dtc_batch *batch) {
    candidates.push_back({"stencil alone", FIT, depth, true, false, [=] { launch<NONE, FIT>(depth); }, {}});
    candidates.push_back({"stencil and one batch launch", FIT, depth, true, true, [=] {
        launch<NONE, FIT>(depth);
        DTC(dtc_batch_enqueue(batch, NULL, NULL));
    }, {}});
    candidates.push_back({"fused, blocks move their parts", FIT, depth, true, true, [=] { launch<PARTS, FIT>(depth); }, {}});
    candidates.push_back({"fused, faces computed again", FIT, depth, true, true, [=] { launch<AGAIN, FIT>(depth); }, {}});
    candidates.push_back({"fused, threads store twice", FIT, depth, true, true, [=] { launch<OWN, FIT>(depth); }, {}});
    candidates.push_back({"fused by hand", FIT, depth, true, true, [=] { launch<HAND, FIT>(depth); }, {}});
}

int main(int count, char **arguments) {
    const int rounds = count > 1 ? atoi(arguments[1]) : 51;
    cudaDeviceProp device;
    int runtime = 0, driver = 0;
    check(cudaGetDeviceProperties(&device, 0));
    check(cudaRuntimeGetVersion(&runtime));
    check(cudaDriverGetVersion(&driver));
    printf("%s, runtime %d, driver %d, %d rounds\n", device.name, runtime, driver, rounds);
    check(cudaMalloc(&in, BOX * 8));
    check(cudaMalloc(&out, BOX * 8));
    check(cudaMalloc(&expected, BOX * 8));
    check(cudaMalloc(&differences, 8));
    for (int face = 0; face < FACES; face++) {
        check(cudaMalloc(&send.face[face], FACE));
        check(cudaMalloc(&expected_send.face[face], FACE));
    }
    fill<<<1024, 256>>>((u64 *)in, BOX, 1, true);
    compute();
    dtc_batch *batch = batch_of_faces();
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin));
    check(cudaEventCreate(&end));
    std::vector<Candidate> candidates;
    candidates.push_back({"copy of the box", 0, 0, false, false, [] { check(cudaMemcpyAsync(out, in, BOX * 8, cudaMemcpyDeviceToDevice)); }, {}});
    candidates.push_back({"one batch launch alone", 0, 0, false, false, [=] { DTC(dtc_batch_enqueue(batch, NULL, NULL)); }, {}});
    for (int depth : {4, 8, 16, 32}) {
        add<2>(candidates, depth, batch);
        if (depth == 4) add<3>(candidates, depth, batch);
    }
    const auto check_all = [&] {
        for (Candidate &candidate : candidates) {
            if (!candidate.computes) continue;
            poison();
            candidate.run();
            check(cudaGetLastError());
            check(cudaDeviceSynchronize());
            compare(candidate.name.c_str(), candidate.has_faces);
        }
    };
    check_all();
    // In turns, so that clocks and temperature are the same for all.
    for (int round = 0; round < rounds; round++)
        for (Candidate &candidate : candidates) {
            float time;
            check(cudaEventRecord(begin));
            candidate.run();
            check(cudaEventRecord(end));
            check(cudaEventSynchronize(end));
            check(cudaEventElapsedTime(&time, begin, end));
            candidate.times.push_back(time * 1e3f);
        }
    check_all();
    printf("| what | blocks of a multiprocessor | planes of a block | median us | least us | GB/s of the box, read and written |\n");
    printf("| --- | --- | --- | --- | --- | --- |\n");
    for (Candidate &candidate : candidates) {
        std::sort(candidate.times.begin(), candidate.times.end());
        const float median = candidate.times[candidate.times.size() / 2];
        printf("| %s | %d | %d | %.1f | %.1f | %.0f |\n", candidate.name.c_str(), candidate.fit, candidate.depth, median,
               candidate.times[0], 2.0 * EDGE * EDGE * EDGE * 8 / median / 1e3);
    }
    return 0;
}
