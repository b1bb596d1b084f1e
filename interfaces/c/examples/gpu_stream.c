/*
 * A column of a matrix in the memory of a GPU, packed on a CUDA stream of the program's: the call returns at once, and the
 * copy behind it on the stream finds the packed bytes. libcuda is opened at run time, so this builds without CUDA.
 */
#include "check.h"
#include <dlfcn.h>

enum { ROWS = 1000, COLUMNS = 50 };

/* What cuda.h declares. */
typedef int (*init_function)(unsigned flags);
typedef int (*retain_function)(void **context, int device);
typedef int (*set_function)(void *context);
typedef int (*stream_function)(void **stream, unsigned flags);
typedef int (*wait_function)(void *stream);
typedef int (*allocate_function)(unsigned long long *address, size_t bytes);
typedef int (*to_device_function)(unsigned long long to, const void *from, size_t bytes);
typedef int (*to_host_function)(void *to, unsigned long long from, size_t bytes, void *stream);

static void *library;

static int skip(const char *what) {
    printf("skipped: gpu_stream: needs %s\n", what);
    return 77;
}

static void *function(const char *name) {
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "libcuda: expected %s, found none\n", name);
        exit(1);
    }
    return found;
}

int main(void) {
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        return skip("libcuda.so.1");
    }
    void *context, *stream;
    if (((init_function)function("cuInit"))(0) != 0 ||
        ((retain_function)function("cuDevicePrimaryCtxRetain"))(&context, 0) != 0) {
        return skip("a GPU");
    }
    EXPECT(((set_function)function("cuCtxSetCurrent"))(context) == 0);
    EXPECT(((stream_function)function("cuStreamCreate"))(&stream, 1) == 0);

    static double matrix[ROWS][COLUMNS], column[ROWS];
    for (int row = 0; row < ROWS; row++) {
        for (int at = 0; at < COLUMNS; at++) {
            matrix[row][at] = row * 1e3 + at;
        }
    }
    unsigned long long there, packed;
    allocate_function allocate = (allocate_function)function("cuMemAlloc_v2");
    EXPECT(allocate(&there, sizeof matrix) == 0 && allocate(&packed, sizeof column) == 0);
    EXPECT(((to_device_function)function("cuMemcpyHtoD_v2"))(there, matrix, sizeof matrix) == 0);

    dtc_engine *engine;
    dtc_type *element, *type;
    CALL(dtc_init(NULL, &engine));
    CALL(dtc_type_named(engine, "MPI_DOUBLE", &element));
    int64_t numbers[] = {ROWS, 1, COLUMNS};
    const dtc_type *children[] = {element};
    CALL(dtc_type_create(engine, DTC_COMBINER_VECTOR, numbers, 3, NULL, 0, children, 1, NULL, &type));
    CALL(dtc_type_commit(type, 0));

    dtc_transfer transfer = DTC_TRANSFER_INIT;
    transfer.memory = transfer.packed = DTC_MEMORY_DEVICE;
    transfer.stream = stream;
    transfer.flags = DTC_TRANSFER_ENQUEUE;
    int64_t done;
    void *source = (void *)(uintptr_t)(there + 7 * sizeof(double));
    CALL(dtc_pack(type, source, 1, 0, (void *)(uintptr_t)packed, sizeof column, &done, &transfer));
    EXPECT(done == sizeof column);
    EXPECT(((to_host_function)function("cuMemcpyDtoHAsync_v2"))(column, packed, sizeof column, stream) == 0);
    EXPECT(((wait_function)function("cuStreamSynchronize"))(stream) == 0);
    for (int row = 0; row < ROWS; row++) {
        EXPECT(column[row] == matrix[row][7]);
    }
    CALL(dtc_type_release(element));
    CALL(dtc_type_release(type));
    CALL(dtc_finalize(engine));
    printf("gpu_stream: a column of %d doubles, packed on the GPU\n", ROWS);
    return 0;
}
