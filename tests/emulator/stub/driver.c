/* A CUDA driver without a GPU: two devices whose memory is the host's. Streams carry work out at once; kernels are two
 * functions of this file. Built by the tests, with one of these defined to make it misbehave:
 *
 *   STUB_VERSION=11020    the version that it claims
 *   STUB_WITHOUT_LAUNCH   cuGraphLaunch is missing
 *   STUB_NO_DEVICE        cuInit finds no device
 *   STUB_NO_MEMORY        nothing can be allocated
 *   STUB_PAGE_TABLES      devices follow the page tables of the host
 *   STUB_ANY_CODE         every text is a module with every kernel, and kernels do nothing
 *   STUB_REFUSES_CUBINS   machine code is for another device
 *   STUB_MAJOR=13         the compute capability of the first device is 13.0
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef STUB_VERSION
#define STUB_VERSION 12080
#endif
#ifndef STUB_MAJOR
#define STUB_MAJOR 9
#endif

enum { SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, NOT_INITIALIZED, NO_DEVICE = 100, INVALID_DEVICE, INVALID_CONTEXT = 201,
       NO_BINARY_FOR_GPU = 209,
       ALREADY_ENABLED = 704, INVALID_PTX = 218, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_SUPPORTED = 801, CAPTURE_UNSUPPORTED = 900 };

/* How often each function was called, and how many things are alive, for the tests to ask. */
static struct { const char *name; long calls; } counters[128];
long stub_alive;

/* Set by the tests while they run: how many more allocations succeed, below zero for all; what launches return. */
long stub_allocations_left = -1;
int stub_launch_status;

/* Also: what copies return, and whether devices reach each other (1), do not (0) or refuse in the end (2). */
int stub_copy_status, stub_peers = 1;

static void count(const char *name) {
    int i = 0;
    while (counters[i].name && strcmp(counters[i].name, name)) i++;
    counters[i].name = name;
    counters[i].calls++;
}

long stub_calls(const char *name) {
    for (int i = 0; counters[i].name; i++)
        if (!strcmp(counters[i].name, name)) return counters[i].calls;
    return 0;
}

static int initialised, capturing;
static _Thread_local uintptr_t stack[16];
static _Thread_local int depth, mode;

/* Any thread may call the driver: calls take turns. Some call each other. */
static pthread_mutex_t turn;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void make_turn(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&turn, &attributes);
}
static int take_turn(void) { pthread_once(&once, make_turn); return pthread_mutex_lock(&turn); }
static void end_turn(int *taken) { if (!*taken) pthread_mutex_unlock(&turn); }

#define ENTER __attribute__((cleanup(end_turn))) int taken = take_turn(); count(__func__); if (!initialised) return NOT_INITIALIZED
#define CONTEXT ENTER; if (!depth) return INVALID_CONTEXT
/* What a capture in the global mode forbids, unless the thread has been relaxed. */
#define UNSAFE CONTEXT; if (capturing && mode != 2) return CAPTURE_UNSUPPORTED

int cuInit(unsigned flags) {
    count(__func__);
#ifdef STUB_NO_DEVICE
    return NO_DEVICE;
#endif
    initialised = 1;
    return flags ? INVALID_VALUE : SUCCESS;
}

int cuDriverGetVersion(int *version) { *version = STUB_VERSION; return SUCCESS; }

int cuGetErrorName(int code, const char **name) {
    *name = code == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : code == NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : NULL;
    return *name ? SUCCESS : INVALID_VALUE;
}

int cuGetErrorString(int code, const char **text) {
    *text = code == OUT_OF_MEMORY ? "out of memory" : NULL;
    return *text ? SUCCESS : INVALID_VALUE;
}

/* Devices and contexts. The context of device k is k + 1. */
int cuDeviceGetCount(int *number) { ENTER; *number = 2; return SUCCESS; }
int cuDeviceGet(int *device, int ordinal) { ENTER; *device = ordinal; return ordinal < 2 ? SUCCESS : INVALID_DEVICE; }
int cuDeviceGetName(char *name, int length, int device) {
    ENTER; strncpy(name, device ? "second" : "first", length); return SUCCESS;
}
int cuDeviceGetUuid_v2(char *uuid, int device) { ENTER; memset(uuid, device + 1, 16); return SUCCESS; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { ENTER; *bytes = (size_t)(device + 1) << 30; return SUCCESS; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    ENTER;
    switch (attribute) {
    case 75: *value = device ? 12 : STUB_MAJOR; break;
    case 76: *value = device ? 1 : 0; break;
    case 16: *value = 132; break;
    case 38: *value = 50 << 20; break;
#ifdef STUB_PAGE_TABLES
    case 88: case 100: *value = 1; break;
#endif
    default: *value = 0;
    }
    return SUCCESS;
}
int cuDeviceCanAccessPeer(int *can, int device, int peer) { ENTER; *can = stub_peers && device != peer; return SUCCESS; }
int cuDevicePrimaryCtxRetain(uintptr_t *context, int device) {
    ENTER; *context = device + 1; stub_alive++; return SUCCESS;
}
int cuDevicePrimaryCtxRelease_v2(int device) { ENTER; stub_alive--; return SUCCESS + 0 * device; }
int cuCtxGetCurrent(uintptr_t *context) { ENTER; *context = depth ? stack[depth - 1] : 0; return SUCCESS; }
int cuCtxPushCurrent_v2(uintptr_t context) { ENTER; stack[depth++] = context; return SUCCESS; }
int cuCtxPopCurrent_v2(uintptr_t *context) { CONTEXT; *context = stack[--depth]; return SUCCESS; }
int cuCtxSynchronize(void) { CONTEXT; return SUCCESS; }
int cuCtxEnablePeerAccess(uintptr_t peer, unsigned flags) {
    static int enabled;
    CONTEXT;
    if (!peer || flags || stub_peers == 2) return INVALID_VALUE;
    return enabled++ ? ALREADY_ENABLED : SUCCESS;
}

/* Where the memory of devices lies, and what is done around work that uses it. Who includes this may say otherwise. */
#ifndef DEVICE_MEMORY
static char *take_device_memory(size_t bytes) { return aligned_alloc(256, bytes); }
static void give_device_memory(char *memory, size_t bytes) { (void)bytes; free(memory); }
static void use_device_memory(int begins) { (void)begins; }
#endif

/* Memory: a list of ranges. */
struct range { struct range *next; char *start; size_t bytes; int kind, managed, device; uint64_t id; };
static struct range *ranges;

static int allocate(char **pointer, size_t bytes, int kind, int managed) {
    static uint64_t last;
#ifdef STUB_NO_MEMORY
    return OUT_OF_MEMORY;
#endif
    if (!bytes) return INVALID_VALUE;
    if (stub_allocations_left == 0) return OUT_OF_MEMORY;
    if (stub_allocations_left > 0) stub_allocations_left--;
    struct range *range = malloc(sizeof *range);
    size_t rounded = (bytes + 255) / 256 * 256;
    *pointer = kind == 2 && !managed ? take_device_memory(rounded) : aligned_alloc(256, rounded);
    if (!*pointer) {
        free(range);
        return OUT_OF_MEMORY;
    }
    *range = (struct range){ranges, *pointer, bytes, kind, managed, (int)stack[depth - 1] - 1, ++last};
    ranges = range;
    stub_alive++;
    return SUCCESS;
}

static int release(char *pointer) {
    for (struct range **at = &ranges; *at; at = &(*at)->next)
        if ((*at)->start == pointer) {
            struct range *range = *at;
            *at = range->next;
            if (range->kind == 2 && !range->managed) give_device_memory(range->start, (range->bytes + 255) / 256 * 256);
            else free(range->start);
            free(range);
            stub_alive--;
            return SUCCESS;
        }
    return INVALID_VALUE;
}

int cuMemAlloc_v2(char **pointer, size_t bytes) { UNSAFE; return allocate(pointer, bytes, 2, 0); }
int cuMemAllocManaged(char **pointer, size_t bytes, unsigned flags) {
    UNSAFE; return flags == 1 ? allocate(pointer, bytes, 2, 1) : INVALID_VALUE;
}
int cuMemHostAlloc(char **pointer, size_t bytes, unsigned flags) {
    UNSAFE; return flags == 3 ? allocate(pointer, bytes, 1, 0) : INVALID_VALUE;
}
int cuMemFree_v2(char *pointer) { UNSAFE; return release(pointer); }
int cuMemFreeHost(char *pointer) { UNSAFE; return release(pointer); }
int cuCtxSetLimit(int limit, size_t value) { CONTEXT; return limit == 5 && value <= 128 ? SUCCESS : INVALID_VALUE; }
int cuMemGetInfo_v2(size_t *available, size_t *total) { CONTEXT; *available = 1 << 20; *total = 1 << 30; return SUCCESS; }
int cuMemHostGetDevicePointer_v2(char **device, char *host, unsigned flags) {
    CONTEXT; *device = host; return flags ? INVALID_VALUE : SUCCESS;
}

int cuPointerGetAttributes(unsigned number, const int *attributes, void **values, char *pointer) {
    ENTER;
    struct range *range = ranges;
    while (range && !(pointer >= range->start && pointer < range->start + range->bytes)) range = range->next;
    for (unsigned i = 0; i < number; i++)
        switch (attributes[i]) {
        case 2: *(unsigned *)values[i] = range ? range->kind : 0; break;
        /* As a device of the current context sees it. */
        case 3: *(char **)values[i] = range && depth ? pointer : NULL; break;
        case 7: *(uint64_t *)values[i] = range ? range->id : 0; break;
        case 8: *(unsigned *)values[i] = range ? range->managed : 0; break;
        case 9: *(int *)values[i] = range ? range->device : -2; break;
        case 11: *(char **)values[i] = range ? range->start : NULL; break;
        case 12: *(size_t *)values[i] = range ? range->bytes : 0; break;
        default: return INVALID_VALUE;
        }
    return SUCCESS;
}

int cuPointerGetAttribute(void *value, int attribute, char *pointer) { return cuPointerGetAttributes(1, &attribute, &value, pointer); }

/* Memory of other processes: here a handle names memory of this one. */
struct handle { char *pointer; char rest[56]; };
int cuIpcGetMemHandle(struct handle *handle, char *pointer) {
    UNSAFE; *handle = (struct handle){pointer, ""}; return pointer ? SUCCESS : INVALID_VALUE;
}
int cuIpcOpenMemHandle_v2(char **pointer, struct handle handle, unsigned flags) {
    UNSAFE;
    if (!handle.pointer || flags != 1) return INVALID_VALUE;
    *pointer = handle.pointer;
    stub_alive++;
    return SUCCESS;
}
int cuIpcCloseMemHandle(char *pointer) { UNSAFE; stub_alive--; return pointer ? SUCCESS : INVALID_VALUE; }

/* Work, which is done at once, or kept by the graph that its stream is captured into. */
struct work { int kind; char *destination; const char *source; size_t bytes; int value; };
struct graph { struct work work[64]; size_t length; void (*destroy[8])(void *); void *objects[8]; int object_count; };
struct stream { struct graph *graph; };
enum { KERNEL, COPY, FILL };

static int enqueue(struct stream *stream, struct work work) {
    if (stream && stream->graph) {
        stream->graph->work[stream->graph->length++] = work;
        return SUCCESS;
    }
    use_device_memory(1);
    if (work.kind == FILL) memset(work.destination, work.value, work.bytes);
    else if (work.bytes) memmove(work.destination, work.source, work.bytes);
    use_device_memory(0);
    return SUCCESS;
}

static int copy(struct stream *stream, char *destination, const char *source, size_t bytes) {
    return enqueue(stream, (struct work){COPY, destination, source, bytes, 0});
}

int cuMemcpyHtoD_v2(char *to, const char *from, size_t bytes) { CONTEXT; return copy(NULL, to, from, bytes); }
int cuMemcpyDtoH_v2(char *to, const char *from, size_t bytes) { CONTEXT; return copy(NULL, to, from, bytes); }
int cuMemcpyHtoDAsync_v2(char *to, const char *from, size_t bytes, struct stream *stream) {
    CONTEXT; return copy(stream, to, from, bytes);
}
int cuMemcpyDtoHAsync_v2(char *to, const char *from, size_t bytes, struct stream *stream) {
    CONTEXT; return copy(stream, to, from, bytes);
}
int cuMemcpyDtoDAsync_v2(char *to, const char *from, size_t bytes, struct stream *stream) {
    CONTEXT; return copy(stream, to, from, bytes);
}
int cuMemcpyAsync(char *to, const char *from, size_t bytes, struct stream *stream) {
    CONTEXT; return stub_copy_status ? stub_copy_status : copy(stream, to, from, bytes);
}
int cuMemsetD8_v2(char *to, unsigned char value, size_t bytes) {
    CONTEXT; return enqueue(NULL, (struct work){FILL, to, NULL, bytes, value});
}
int cuMemsetD8Async(char *to, unsigned char value, size_t bytes, struct stream *stream) {
    CONTEXT; return enqueue(stream, (struct work){FILL, to, NULL, bytes, value});
}

/* One end of a copy of rows, in the order of the driver's structures. */
struct end2 { size_t x, y; unsigned memory; char *host, *device; void *array; size_t pitch; };
struct end3 { size_t x, y, z, lod; unsigned memory; char *host, *device; void *array, *reserved; size_t pitch, height; };
struct rows { struct end2 from, to; size_t width, height; };
struct slices { struct end3 from, to; size_t width, height, depth; };

int cuMemcpy2DAsync_v2(const struct rows *c, struct stream *stream) {
    CONTEXT;
    if (c->from.pitch < c->width || c->to.pitch < c->width) return INVALID_VALUE;
    char *from = c->from.memory == 1 ? c->from.host : c->from.device;
    char *to = c->to.memory == 1 ? c->to.host : c->to.device;
    for (size_t y = 0; y < c->height; y++)
        copy(stream, to + y * c->to.pitch, from + y * c->from.pitch, c->width);
    return SUCCESS;
}

int cuMemcpy3DAsync_v2(const struct slices *c, struct stream *stream) {
    CONTEXT;
    if (c->from.pitch < c->width || c->to.height < c->height) return INVALID_VALUE;
    char *from = c->from.memory == 1 ? c->from.host : c->from.device;
    char *to = c->to.memory == 1 ? c->to.host : c->to.device;
    for (size_t z = 0; z < c->depth; z++)
        for (size_t y = 0; y < c->height; y++)
            copy(stream, to + (z * c->to.height + y) * c->to.pitch, from + (z * c->from.height + y) * c->from.pitch,
                 c->width);
    return SUCCESS;
}

static int copy_batch(char **to, char **from, size_t *bytes, size_t number, const int *attributes, size_t *indices,
                      size_t attribute_count, size_t *failed, struct stream *stream) {
    count("cuMemcpyBatchAsync");
    if (!depth || !stream || attribute_count != 1 || *indices || attributes[0] != 1 || !failed) return INVALID_VALUE;
    for (size_t i = 0; i < number; i++) copy(stream, to[i], from[i], bytes[i]);
    return SUCCESS;
}

/* Modules: a text that begins with "stub" holds the kernels "copy" and "reverse". */
static int function_load(const char *function) { count("cuFuncLoad"); return function ? SUCCESS : INVALID_VALUE; }

int cuModuleLoadDataEx(char **module, const char *image, unsigned options, const int *names, void **values) {
    UNSAFE;
    if (strstr(image, ".target sm_")) count("PTX");
#ifdef STUB_REFUSES_CUBINS
    if (!strncmp(image, "\177ELF", 4)) return NO_BINARY_FOR_GPU;
#endif
#ifdef STUB_ANY_CODE
    options = 0;
#else
    if (strncmp(image, "stub", 4)) {
        for (unsigned i = 0; i < options; i++)
            if (names[i] == 5) strcpy(values[i], "line 1: not a stub\n");
        return INVALID_PTX;
    }
#endif
    (void)options, (void)names, (void)values;
    *module = strdup(image);
    stub_alive++;
    return SUCCESS;
}
int cuModuleUnload(char *module) { UNSAFE; free(module); stub_alive--; return SUCCESS; }
int cuModuleGetFunction(const char **function, char *module, const char *name) {
    CONTEXT;
#ifdef STUB_ANY_CODE
    *function = "nothing";
    return module && *name ? SUCCESS : NOT_FOUND;
#endif
    *function = !module ? NULL : !strcmp(name, "copy") ? "copy" : !strcmp(name, "reverse") ? "reverse" : NULL;
    return *function ? SUCCESS : NOT_FOUND;
}
int cuFuncGetAttribute(int *value, int attribute, const char *function) {
    CONTEXT; *value = attribute * 10; return function ? SUCCESS : INVALID_VALUE;
}
int cuLaunchKernel(const char *function, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty, unsigned tz,
                   unsigned shared, struct stream *stream, void **parameters, void **extra) {
    CONTEXT;
    if (!bx || !by || !bz || !tx || !ty || !tz || shared || extra) return INVALID_VALUE;
    if (stub_launch_status) return stub_launch_status;
    if (!strcmp(function, "nothing")) return enqueue(stream, (struct work){KERNEL, NULL, NULL, 0, 0});
    char *to = *(char **)parameters[0], *from = *(char **)parameters[1];
    size_t bytes = *(size_t *)parameters[2];
    if (!strcmp(function, "copy")) return enqueue(stream, (struct work){KERNEL, to, from, bytes, 0});
    for (size_t i = 0; i < bytes; i++) to[i] = from[bytes - 1 - i];
    return SUCCESS;
}

/* Streams and events. */
int cuStreamCreateWithPriority(struct stream **stream, unsigned flags, int priority) {
    UNSAFE; *stream = calloc(1, sizeof **stream); stub_alive++; return flags == 1 && !priority ? SUCCESS : INVALID_VALUE;
}
int cuStreamDestroy_v2(struct stream *stream) { UNSAFE; free(stream); stub_alive--; return SUCCESS; }
int cuStreamSynchronize(struct stream *stream) { UNSAFE; return stream && stream->graph ? CAPTURE_UNSUPPORTED : SUCCESS; }
int cuStreamQuery(struct stream *stream) {
    static int asked;
    UNSAFE;
    return stream && asked++ == 0 ? 600 : SUCCESS;
}
int cuStreamWaitEvent(struct stream *stream, void *event, unsigned flags) {
    CONTEXT; return event && !flags ? SUCCESS : INVALID_VALUE + 0 * !stream;
}
int cuEventCreate(double **event, unsigned flags) { UNSAFE; *event = calloc(1, 8); stub_alive++; return flags & 1; }
int cuEventDestroy_v2(double *event) { UNSAFE; free(event); stub_alive--; return SUCCESS; }
int cuEventRecord(double *event, struct stream *stream) {
    static double clock;
    CONTEXT; *event = clock += 1.5; return SUCCESS + 0 * !stream;
}
int cuEventQuery(double *event) {
    static int asked;
    UNSAFE;
    return *event && asked++ == 0 ? 600 : SUCCESS;
}
int cuEventSynchronize(double *event) { UNSAFE; return event ? SUCCESS : INVALID_VALUE; }
int cuEventElapsedTime(float *milliseconds, double *start, double *end) {
    CONTEXT; *milliseconds = (float)(*end - *start); return *start && *end ? SUCCESS : INVALID_HANDLE;
}

/* Graphs. An executable shares its graph here. */
int cuThreadExchangeStreamCaptureMode(int *other) { ENTER; int old = mode; mode = *other; *other = old; return SUCCESS; }
int cuStreamIsCapturing(struct stream *stream, int *status) {
    CONTEXT; *status = stream && stream->graph; return SUCCESS;
}
int cuStreamGetCaptureInfo_v2(struct stream *stream, int *status, uint64_t *id, struct graph **graph,
                              const void ***dependencies, size_t *number) {
    CONTEXT;
    *status = stream && stream->graph;
    *graph = stream ? stream->graph : NULL;
    *id = *number = 0;
    *dependencies = NULL;
    return SUCCESS;
}
int cuStreamBeginCapture_v2(struct stream *stream, int capture_mode) {
    CONTEXT;
    if (!stream || stream->graph) return INVALID_VALUE;
    stream->graph = calloc(1, sizeof(struct graph));
    capturing += capture_mode == 0;
    return SUCCESS;
}
int cuStreamEndCapture(struct stream *stream, struct graph **graph) {
    CONTEXT;
    if (!stream->graph) return INVALID_VALUE;
    *graph = stream->graph;
    stream->graph = NULL;
    capturing = 0;
    stub_alive++;
    return SUCCESS;
}
int cuGraphInstantiateWithFlags(struct graph **executable, struct graph *graph, unsigned long long flags) {
    UNSAFE; *executable = graph; stub_alive++; return flags ? INVALID_VALUE : SUCCESS;
}
#ifndef STUB_WITHOUT_LAUNCH
int cuGraphLaunch(struct graph *executable, struct stream *stream) {
    CONTEXT;
    for (size_t i = 0; i < executable->length; i++) enqueue(stream, executable->work[i]);
    return SUCCESS;
}
#endif
int cuGraphGetNodes(struct graph *graph, struct work **nodes, size_t *number) {
    CONTEXT;
    if (nodes) for (size_t i = 0; i < *number; i++) nodes[i] = &graph->work[i];
    *number = graph->length;
    return SUCCESS;
}
int cuGraphNodeGetType(struct work *node, int *type) { CONTEXT; *type = node->kind; return SUCCESS; }
int cuGraphDestroy(struct graph *graph) {
    UNSAFE;
    for (int i = 0; i < graph->object_count; i++) graph->destroy[i](graph->objects[i]);
    free(graph);
    stub_alive--;
    return SUCCESS;
}
int cuGraphExecDestroy(struct graph *executable) { UNSAFE; stub_alive--; return executable ? SUCCESS : INVALID_VALUE; }

struct object { void (*destroy)(void *); void *pointer; };
int cuUserObjectCreate(struct object **object, void *pointer, void (*destroy)(void *), unsigned number, unsigned flags) {
    CONTEXT;
    *object = malloc(sizeof **object);
    **object = (struct object){destroy, pointer};
    return number == 1 && flags == 1 ? SUCCESS : INVALID_VALUE;
}
int cuUserObjectRelease(struct object *object, unsigned number) {
    CONTEXT; object->destroy(object->pointer); free(object); return number == 1 ? SUCCESS : INVALID_VALUE;
}
int cuGraphRetainUserObject(struct graph *graph, struct object *object, unsigned number, unsigned flags) {
    CONTEXT;
    graph->destroy[graph->object_count] = object->destroy;
    graph->objects[graph->object_count++] = object->pointer;
    free(object);
    return number == 1 && flags == 1 ? SUCCESS : INVALID_VALUE;
}

int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags) {
    *function = NULL;
    if (version == 12040 && !strcmp(name, "cuFuncLoad")) *function = (void *)function_load;
    if (version == 12080 && !strcmp(name, "cuMemcpyBatchAsync")) *function = (void *)copy_batch;
    return *function && !flags ? SUCCESS : NOT_FOUND;
}
