/* Functions of one type, and what they launch. */
#ifndef LOADER_H
#define LOADER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_KERNELS = 8 };

/* A kernel, and the grids that it is launched with. Units are as dtc plans them. */
struct kernel {
    const char *name;
    /* Both addresses are multiples of it. */
    uint64_t alignment;
    unsigned threads;
    uint64_t unit, share, more, word, line, rows, each;
};

/* Machine code of an architecture, ten times its compute capability, or PTX for it and those after it: a block of LZ4. */
struct image {
    const void *packed;
    size_t packed_bytes, bytes;
    int architecture, is_ptx;
    void *library;
    _Atomic(void *) kernels[MOST_KERNELS];
};

/* The lists that kernels read, in the memory of a context. */
struct upload {
    uint64_t context, address;
    struct upload *next;
};

struct type {
    uint64_t size;
    int64_t extent, true_lb, true_ub;
    /* Elements at most of a launch. */
    uint64_t most;
    /* Kernels for packs, none for a contiguous type, and behind them those for unpacks. */
    int packs;
    const struct kernel *kernels;
    /* Machine code by ascending architectures, then PTX. */
    int images;
    struct image *image;
    /* Null if kernels read none. */
    const void *tables;
    size_t table_bytes;
    _Atomic(struct upload *) uploads;
};

/* Enqueues a pack, or an unpack; returns a CUresult. */
__attribute__((visibility("hidden"))) int LOADER(struct type *type, int unpacks, const void *memory, const void *packed, size_t count,
                                                 void *stream);

#endif
