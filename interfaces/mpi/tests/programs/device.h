/*
 * Memory of a GPU for the test programs: of the CUDA driver that DTC_CUDA_DRIVER names, or of libcuda.so.1. Elements have a copy on the
 * host, in which they are filled and compared.
 */
#include "programs.h"
#include <dlfcn.h>
#include <stdint.h>

static struct {
    int (*Init)(unsigned);
    int (*DeviceGetCount)(int *);
    int (*DevicePrimaryCtxRetain)(uintptr_t *, int);
    int (*CtxPushCurrent_v2)(uintptr_t);
    int (*CtxPopCurrent_v2)(uintptr_t *);
    int (*MemAlloc_v2)(uintptr_t *, size_t);
    int (*MemFree_v2)(uintptr_t);
    int (*MemHostAlloc)(void **, size_t, unsigned);
    int (*MemFreeHost)(void *);
    int (*MemcpyHtoD_v2)(uintptr_t, const void *, size_t);
    int (*MemcpyDtoH_v2)(void *, uintptr_t, size_t);
} cuda;

/* The context of the GPU that is not current; that of the same if there is one alone. */
static uintptr_t other_context;

/* Makes a GPU current in this thread, a different one for each rank if there are as many. */
static inline void open_device(int rank)
{
    const char *path = getenv("DTC_CUDA_DRIVER");
    void *library = dlopen(path ? path : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    int devices = 0;
    uintptr_t context;
    CHECK(library, "%s", dlerror());
#define FIND(name)                                                                                                                \
    do {                                                                                                                           \
        void *found = dlsym(library, "cu" #name);                                                                                 \
        CHECK(found, "%s", "cu" #name);                                                                                                  \
        memcpy(&cuda.name, &found, sizeof found);                                                                                 \
    } while (0)
    FIND(Init);
    FIND(DeviceGetCount);
    FIND(DevicePrimaryCtxRetain);
    FIND(CtxPushCurrent_v2);
    FIND(CtxPopCurrent_v2);
    FIND(MemAlloc_v2);
    FIND(MemFree_v2);
    FIND(MemHostAlloc);
    FIND(MemFreeHost);
    FIND(MemcpyHtoD_v2);
    FIND(MemcpyDtoH_v2);
    CHECK(!cuda.Init(0) && !cuda.DeviceGetCount(&devices) && devices > 0, "%d devices", devices);
    int device = rank % devices;
    CHECK(!cuda.DevicePrimaryCtxRetain(&context, device) && !cuda.CtxPushCurrent_v2(context), "device %d", device);
    CHECK(!cuda.DevicePrimaryCtxRetain(&other_context, (device + 1) % devices), "device %d", (device + 1) % devices);
}

/* The number of this process on its machine, as launchers tell before the MPI begins: some MPIs only use links between GPUs if each process has
   its GPU by then. */
static inline int launched_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "PMI_RANK"};
    for (size_t at = 0; at < sizeof names / sizeof *names; at++)
        if (getenv(names[at])) return atoi(getenv(names[at]));
    return 0;
}

enum where { ON_HOST, ON_DEVICE, ON_OTHER };

/* Memory of the current GPU, or of the other. */
static inline uintptr_t take_device_memory(enum where where, long bytes)
{
    uintptr_t there, popped;
    if (where == ON_OTHER) CHECK(!cuda.CtxPushCurrent_v2(other_context), "push");
    CHECK(!cuda.MemAlloc_v2(&there, (size_t)bytes), "%ld bytes", bytes);
    if (where == ON_OTHER) CHECK(!cuda.CtxPopCurrent_v2(&popped), "pop");
    return there;
}

/* Elements, and where the calls find them. */
struct buffer {
    struct elements host;
    uintptr_t there;
    void *memory;
    enum where where;
};

/* Brings what the host's copy has to the GPU. */
static inline void upload(struct buffer *buffer)
{
    if (buffer->where != ON_HOST) CHECK(!cuda.MemcpyHtoD_v2(buffer->there, buffer->host.bytes, (size_t)buffer->host.length), "copy");
}

/* Brings what the GPU has to the host's copy. */
static inline void download(struct buffer *buffer)
{
    if (buffer->where != ON_HOST) CHECK(!cuda.MemcpyDtoH_v2(buffer->host.bytes, buffer->there, (size_t)buffer->host.length), "copy");
}

/* Elements filled with random bytes. */
static inline struct buffer buffer(MPI_Datatype datatype, int count, unsigned seed, enum where where)
{
    struct buffer made = {.host = elements(datatype, count, seed), .where = where};
    made.memory = made.host.memory;
    if (where == ON_HOST) return made;
    made.there = take_device_memory(where, made.host.length);
    made.memory = (void *)(made.there + (uintptr_t)(made.host.memory - made.host.bytes));
    upload(&made);
    return made;
}

static inline void refill(struct buffer *buffer, unsigned seed)
{
    for (long at = 0; at < buffer->host.length; at++) buffer->host.bytes[at] = byte_at(at, seed);
    upload(buffer);
}

static inline void release(struct buffer *buffer)
{
    if (buffer->where != ON_HOST) CHECK(!cuda.MemFree_v2(buffer->there), "free");
    drop(buffer->host);
}

/* Random numbers that all ranks draw alike. */
static uint64_t random_state = 1;

static inline int draw(int most)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((random_state >> 33) % (uint64_t)most);
}

/* A random datatype without overlaps, committed. */
static inline MPI_Datatype random_type(void)
{
    MPI_Datatype basic[] = {MPI_INT, MPI_DOUBLE, MPI_SHORT, MPI_CHAR, MPI_FLOAT, MPI_DOUBLE_INT}, made = basic[draw(6)], outer;
    int lengths[4], places[4], owned = 0;
    MPI_Aint bytes[4], lb, extent;
    for (int level = 1 + draw(3); level > 0; level--) {
        MPI_Type_get_extent(made, &lb, &extent);
        int place = 0;
        for (int at = 0; at < 4; at++) {
            lengths[at] = draw(4);
            places[at] = place += draw(3);
            bytes[at] = places[at] * extent;
            place += lengths[at];
        }
        switch (draw(5)) {
        case 0:
            MPI_Type_vector(2 + draw(6), 3, 3 + draw(4), made, &outer);
            break;
        case 1:
            MPI_Type_indexed(4, lengths, places, made, &outer);
            break;
        case 2:
            MPI_Type_create_struct(4, lengths, bytes, (MPI_Datatype[]){made, made, made, made}, &outer);
            break;
        case 3:
            MPI_Type_create_resized(made, lb - 8, extent + 16, &outer);
            break;
        default:
            MPI_Type_contiguous(1 + draw(5), made, &outer);
        }
        if (owned) MPI_Type_free(&made);
        made = outer;
        owned = 1;
    }
    MPI_Type_commit(&made);
    return made;
}
