// The exchanges of applications.c as an application packs them by itself: one launch for all regions of a cube, or all blocks at a stride, and one
// to unpack them.
//
//     nvcc -O3 -arch=native -cubin -o halo.cubin halo.cu

// A box of cells, and the place of its first one in the packed buffer.
struct Region {
    int start[3], size[3], first;
};

__device__ int place_of(const Region &region, int whole, int at) {
    int x = at % region.size[2], y = at / region.size[2] % region.size[1], z = at / region.size[2] / region.size[1];
    return ((region.start[0] + z) * whole + region.start[1] + y) * whole + region.start[2] + x;
}

__device__ int cells_of(const Region &region) { return region.size[0] * region.size[1] * region.size[2]; }

extern "C" __global__ void halo_pack(const int *cells, int whole, const Region *regions, int *packed) {
    const Region region = regions[blockIdx.y];
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < cells_of(region); at += gridDim.x * blockDim.x)
        packed[region.first + at] = cells[place_of(region, whole, at)];
}

extern "C" __global__ void halo_unpack(int *cells, int whole, const Region *regions, const int *packed) {
    const Region region = regions[blockIdx.y];
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < cells_of(region); at += gridDim.x * blockDim.x)
        cells[place_of(region, whole, at)] = packed[region.first + at];
}

// Blocks at a stride, both in words of 16 bytes.
extern "C" __global__ void rows_pack(const uint4 *elements, int block, int stride, int words, uint4 *packed) {
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < words; at += gridDim.x * blockDim.x)
        packed[at] = elements[(long long)(at / block) * stride + at % block];
}

extern "C" __global__ void rows_unpack(uint4 *elements, int block, int stride, int words, const uint4 *packed) {
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < words; at += gridDim.x * blockDim.x)
        elements[(long long)(at / block) * stride + at % block] = packed[at];
}
