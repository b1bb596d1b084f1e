// Packs and unpacks rows of ROW bytes, STRIDE apart: 16 packed bytes at a time where both sides are aligned.
typedef unsigned long long u64;

static __device__ __forceinline__ long long displacement(u64 position) {
    return (long long)(position / ROW) * STRIDE + (long long)(position % ROW);
}

template <bool PACK>
__device__ __forceinline__ void move(unsigned char* __restrict__ memory, unsigned char* __restrict__ packed, u64 first,
                                     u64 bytes) {
    u64 lead = (16 - (u64)packed % 16) % 16;
    u64 pieces = (bytes + 31) / 16;
    for (u64 piece = blockIdx.x * (u64)blockDim.x + threadIdx.x; piece <= pieces; piece += (u64)gridDim.x * blockDim.x) {
        u64 from = piece == 0 ? 0 : lead + (piece - 1) * 16;
        u64 to = min(piece == 0 ? lead : from + 16, bytes);
        if (from >= to) continue;
        u64 within = (first + from) % ROW;
        unsigned char* at = memory + displacement(first + from);
        if (to - from == 16 && within + 16 <= ROW && (u64)at % 16 == 0) {
            if (PACK) {
                __stcs((uint4*)(packed + from), __ldg((const uint4*)at));
            } else {
                *(uint4*)at = *(const uint4*)(packed + from);
            }
            continue;
        }
#pragma unroll 1
        for (u64 byte = from; byte < to; byte++) {
            if (PACK) {
                packed[byte] = memory[displacement(first + byte)];
            } else {
                memory[displacement(first + byte)] = packed[byte];
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) pack(unsigned char* memory, unsigned char* packed,
                                                       const unsigned char* tables, u64 first, u64 bytes) {
    move<true>(memory, packed, first, bytes);
}

extern "C" __global__ void __launch_bounds__(256) unpack(unsigned char* memory, unsigned char* packed,
                                                         const unsigned char* tables, u64 first, u64 bytes) {
    move<false>(memory, packed, first, bytes);
}
