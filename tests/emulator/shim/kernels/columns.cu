// Packs a matrix of HEIGHT x WIDTH ints by columns. Tiles of 32 x 32 go through shared memory, so that both sides are
// touched in their own order. Blocks have 32 x 8 threads.
typedef unsigned long long u64;

struct Tile {
    unsigned char bytes[32][32 + 1][4];
};

extern "C" __global__ void __launch_bounds__(256) pack(unsigned char* memory, unsigned char* packed,
                                                       const unsigned char* tables, u64 first, u64 bytes) {
    __shared__ alignas(16) Tile tile;
    const unsigned across = (WIDTH + 31) / 32, down = (HEIGHT + 31) / 32;
    for (unsigned number = blockIdx.x; number < across * down; number += gridDim.x) {
        unsigned left = number % across * 32, top = number / across * 32;
        for (unsigned y = threadIdx.y; y < 32; y += 8) {
            unsigned row = top + y, column = left + threadIdx.x;
            if (row >= HEIGHT || column >= WIDTH) continue;
            for (unsigned byte = 0; byte < 4; byte++) {
                u64 position = ((u64)column * HEIGHT + row) * 4 + byte;
                if (position - first < bytes) {
                    tile.bytes[y][threadIdx.x][byte] = memory[((u64)row * WIDTH + column) * 4 + byte];
                }
            }
        }
        __syncthreads(); // filled
        for (unsigned x = threadIdx.y; x < 32; x += 8) {
            unsigned row = top + threadIdx.x, column = left + x;
            if (row >= HEIGHT || column >= WIDTH) continue;
            for (unsigned byte = 0; byte < 4; byte++) {
                u64 position = ((u64)column * HEIGHT + row) * 4 + byte;
                if (position - first < bytes) packed[position - first] = tile.bytes[threadIdx.x][x][byte];
            }
        }
        __syncthreads(); // emptied
    }
}
