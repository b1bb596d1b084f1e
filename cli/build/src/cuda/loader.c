/* Launches kernels that were compiled ahead of time. It opens the driver of CUDA, 12.0 or later, when it is first called. */
#include "loader.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* CUresult, CUdevice_attribute */
enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_BINARY_FOR_GPU = 209, NOT_FOUND = 500 };
enum { COMPUTE_CAPABILITY_MAJOR = 75, COMPUTE_CAPABILITY_MINOR = 76 };

static struct {
    int status;
    int (*current_device)(int *device);
    int (*attribute)(int *value, int attribute, int device);
    int (*load)(void **library, const void *code, void *, void *, unsigned, void *, void *, unsigned);
    int (*kernel)(void **kernel, void *library, const char *name);
    int (*launch)(void *kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *stream, void **, void **);
    int (*context)(void *, uint64_t *context);
    int (*allocate)(uint64_t *address, size_t bytes);
    int (*free)(uint64_t address);
    int (*upload)(uint64_t to, const void *from, size_t bytes);
    int (*copy)(uint64_t to, uint64_t from, size_t bytes, void *stream);
} driver;

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static void find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    if (!found) driver.status = NOT_FOUND;
    *(void **)function = found;
}

static void open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    driver.status = library ? SUCCESS : NOT_INITIALIZED;
    if (!library) return;
    find(library, "cuCtxGetDevice", &driver.current_device);
    find(library, "cuDeviceGetAttribute", &driver.attribute);
    find(library, "cuLibraryLoadData", &driver.load);
    find(library, "cuLibraryGetKernel", &driver.kernel);
    find(library, "cuLaunchKernel", &driver.launch);
    find(library, "cuCtxGetId", &driver.context);
    find(library, "cuMemAlloc_v2", &driver.allocate);
    find(library, "cuMemFree_v2", &driver.free);
    find(library, "cuMemcpyHtoD_v2", &driver.upload);
    find(library, "cuMemcpyAsync", &driver.copy);
}

/* The image for the device of the current context: machine code of its major number that is nearest, or else PTX. */
static int image_for_device(const struct type *type, struct image **image)
{
    int device, major, minor, status;
    if ((status = driver.current_device(&device))) return status;
    if ((status = driver.attribute(&major, COMPUTE_CAPABILITY_MAJOR, device))) return status;
    if ((status = driver.attribute(&minor, COMPUTE_CAPABILITY_MINOR, device))) return status;
    *image = NULL;
    for (int at = 0; at < type->images; at++) {
        struct image *next = &type->image[at];
        int fits = next->architecture <= 10 * major + minor && (next->is_ptx ? !*image : next->architecture / 10 == major);
        if (fits) *image = next;
    }
    return *image ? SUCCESS : NO_BINARY_FOR_GPU;
}

/* A length of LZ4: what a token has, and bytes that add to it while they are 255. */
static size_t length_of(size_t length, const unsigned char **from)
{
    unsigned char more = 255;
    while (length >= 15 && more == 255) length += more = *(*from)++;
    return length;
}

/* The bytes of a block of LZ4, which is whole: it came with this code. */
static void expand(const struct image *image, unsigned char *to)
{
    const unsigned char *from = image->packed, *end = from + image->packed_bytes;
    while (from < end) {
        unsigned char token = *from++;
        size_t literals = length_of(token >> 4, &from);
        memcpy(to, from, literals);
        to += literals;
        from += literals;
        /* The last sequence has no copy. */
        if (from == end) return;
        size_t distance = from[0] | (size_t)from[1] << 8;
        from += 2;
        /* Byte by byte: a copy may read what it wrote. */
        for (size_t copied = length_of(token & 15, &from) + 4; copied > 0; copied--, to++) *to = *(to - distance);
    }
}

/* Loads the code of an image. The driver keeps a copy of it. */
static int load(struct image *image)
{
    void *library = NULL;
    unsigned char *code = malloc(image->bytes);
    if (!code) return OUT_OF_MEMORY;
    expand(image, code);
    int status = driver.load(&library, code, NULL, NULL, 0, NULL, NULL, 0);
    free(code);
    if (!status) image->library = library;
    return status;
}

/* The kernel of that number, in all contexts of the process. */
static int kernel_of(struct type *type, int number, void **kernel)
{
    struct image *image;
    int status = image_for_device(type, &image);
    if (status) return status;
    *kernel = atomic_load_explicit(&image->kernels[number], memory_order_acquire);
    if (*kernel) return SUCCESS;
    pthread_mutex_lock(&loading);
    if (!image->library) status = load(image);
    if (!status) status = driver.kernel(kernel, image->library, type->kernels[number].name);
    if (!status) atomic_store_explicit(&image->kernels[number], *kernel, memory_order_release);
    pthread_mutex_unlock(&loading);
    return status;
}

/* The lists, in the current context. Contexts are told apart by their numbers, which are not used again. */
static int tables_of(struct type *type, uint64_t *address)
{
    uint64_t context;
    *address = 0;
    if (!type->tables) return SUCCESS;
    int status = driver.context(NULL, &context);
    if (status) return status;
    struct upload *first = atomic_load_explicit(&type->uploads, memory_order_acquire);
    for (struct upload *at = first; at; at = at->next)
        if (at->context == context) {
            *address = at->address;
            return SUCCESS;
        }
    struct upload *made = malloc(sizeof *made);
    if (!made) return OUT_OF_MEMORY;
    status = driver.allocate(address, type->table_bytes);
    if (!status && (status = driver.upload(*address, type->tables, type->table_bytes))) driver.free(*address);
    if (status) {
        free(made);
        return status;
    }
    /* Two threads may come here at once; both uploads are good. */
    *made = (struct upload){context, *address, first};
    while (!atomic_compare_exchange_weak_explicit(&type->uploads, &made->next, made, memory_order_release, memory_order_relaxed)) {}
    return SUCCESS;
}

static uint64_t blocks_of(const struct kernel *kernel, uint64_t packed, uint64_t bytes)
{
    uint64_t units = (bytes + kernel->unit - 1) / kernel->unit * kernel->share;
    uint64_t ahead = kernel->more + packed / kernel->word % kernel->line;
    if (!kernel->rows) return (units + ahead + kernel->each - 1) / kernel->each;
    return units * ((kernel->rows + ahead + kernel->each - 1) / kernel->each);
}

static int launch(struct type *type, int unpacks, uint64_t memory, uint64_t packed, uint64_t count, void *stream)
{
    int number = unpacks ? type->packs : 0;
    while ((memory | packed) % type->kernels[number].alignment) number++;
    void *kernel;
    int status = kernel_of(type, number, &kernel);
    if (status) return status;
    int64_t last = (int64_t)(count - 1) * type->extent;
    int64_t bounds[2] = {type->true_lb + (last < 0 ? last : 0), type->true_ub + (last > 0 ? last : 0)};
    uint64_t bytes = count * type->size, blocks = blocks_of(&type->kernels[number], packed, bytes);
    if (blocks > INT32_MAX) return INVALID_VALUE;
    uint64_t tables, begin = 0;
    if ((status = tables_of(type, &tables))) return status;
    unsigned all = (unsigned)blocks;
    void *parameters[] = {&memory, &packed, &tables, &begin, &bytes, &all, bounds};
    return driver.launch(kernel, all, 1, 1, type->kernels[number].threads, 1, 1, 0, stream, parameters, NULL);
}

int LOADER(struct type *type, int unpacks, const void *memory, const void *packed, size_t count, void *stream)
{
    if (count == 0) return SUCCESS;
    if (count > INT64_MAX / type->size) return INVALID_VALUE;
    pthread_once(&opened, open_driver);
    if (driver.status) return driver.status;
    uint64_t place = (uint64_t)(uintptr_t)memory, at = (uint64_t)(uintptr_t)packed;
    if (!type->packs) {
        place += (uint64_t)type->true_lb;
        return driver.copy(unpacks ? place : at, unpacks ? at : place, count * type->size, stream);
    }
    for (uint64_t done = 0; done < count;) {
        uint64_t part = count - done < type->most ? count - done : type->most;
        int status = launch(type, unpacks, place + done * (uint64_t)type->extent, at + done * type->size, part, stream);
        if (status) return status;
        done += part;
    }
    return SUCCESS;
}
