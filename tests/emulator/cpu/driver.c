/* A CUDA driver without a GPU whose kernels run on the CPU: the stub of the runtime's tests, with modules that g++ makes
 * of CUDA C++, as the stub of NVRTC hands it out. Times are made up.
 *
 *   EMULATOR_FOLDER       where to compile
 *   EMULATOR_GENERIC      the source of the generic kernels, for their machine code and PTX: there is no other
 *   EMULATOR_INCLUDE      the folders of cuda_on_cpu.h, stop.h and kernels.h, as options of g++
 *   EMULATOR_FREE         free bytes of the device; 4 GiB unless said otherwise
 *   EMULATOR_NO_PINNED    if set, no memory of the host can be pinned
 *   EMULATOR_WRONG        if set, the first byte that a kernel stores is wrong
 *   EMULATOR_HIDDEN       if set, only copies and kernels reach the memory of devices: other code that touches it ends by a signal; with the
 *                         value shared, all code does, and other processes may open it in either case
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "hidden.h"

#define cuModuleLoadDataEx stub_module_load
#define cuModuleUnload stub_module_unload
#define cuModuleGetFunction stub_module_get_function
#define cuLaunchKernel stub_launch
#define cuMemGetInfo_v2 stub_memory
#define cuMemHostAlloc stub_host_alloc
#define cuStreamQuery stub_stream_query
#define cuEventQuery stub_event_query
#define cuMemsetD8Async stub_fill_async
#define cuIpcGetMemHandle stub_ipc_get
#define cuIpcOpenMemHandle_v2 stub_ipc_open
#define cuIpcCloseMemHandle stub_ipc_close
#include "../stub/driver.c"
#undef cuModuleLoadDataEx
#undef cuModuleUnload
#undef cuModuleGetFunction
#undef cuLaunchKernel
#undef cuMemGetInfo_v2
#undef cuMemHostAlloc
#undef cuStreamQuery
#undef cuEventQuery
#undef cuMemsetD8Async
#undef cuIpcGetMemHandle
#undef cuIpcOpenMemHandle_v2
#undef cuIpcCloseMemHandle

int cuStreamQuery(struct stream *stream) { CONTEXT; return SUCCESS + 0 * !stream; }
int cuEventQuery(double *event) { CONTEXT; return SUCCESS + 0 * !event; }

/* Memory of other processes, if it is hidden: other memory cannot be shared. */
int cuIpcGetMemHandle(struct shared_name *name, char *pointer) {
    UNSAFE; return name_device_memory(name, pointer) ? SUCCESS : NOT_SUPPORTED;
}
int cuIpcOpenMemHandle_v2(char **pointer, struct shared_name name, unsigned flags) {
    UNSAFE;
    *pointer = flags == 1 ? open_device_memory(&name, stack[depth - 1]) : NULL;
    return *pointer ? SUCCESS : INVALID_HANDLE;
}
int cuIpcCloseMemHandle(char *pointer) { UNSAFE; return close_device_memory(pointer) ? SUCCESS : INVALID_VALUE; }

/* So much is written to empty a cache alone; there is none. */
int cuMemsetD8Async(char *to, unsigned char value, size_t bytes, struct stream *stream) {
    CONTEXT;
    return bytes == (size_t)256 << 20 ? SUCCESS : stub_fill_async(to, value, bytes, stream);
}

int cuMemHostAlloc(char **pointer, size_t bytes, unsigned flags) {
    UNSAFE; return getenv("EMULATOR_NO_PINNED") ? OUT_OF_MEMORY : stub_host_alloc(pointer, bytes, flags);
}

int cuMemGetInfo_v2(size_t *available, size_t *total) {
    CONTEXT;
    const char *set = getenv("EMULATOR_FREE");
    *available = set ? strtoull(set, NULL, 10) : (size_t)4 << 30;
    *total = (size_t)4 << 30;
    return SUCCESS;
}

struct function { void (*call)(void **parameters); void (*run)(void (*)(void **), void **, unsigned, unsigned); };

static char *contents(const char *path) {
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return NULL;
    char *text = calloc(1, 1 << 22);
    if (fread(text, 1, (1 << 22) - 1, file) == 0) *text = 0;
    fclose(file);
    return text;
}

/* Writes a function for each kernel that unpacks its parameters. Kernels lie in a namespace or behind all of them. */
static void wrap(FILE *file, const char *text) {
    const char *mark = "extern \"C\" __global__";
    for (const char *at = strstr(text, mark); at; at = strstr(at + 1, mark)) {
        const char *end = strchr(strstr(at, "__launch_bounds__") + strlen("__launch_bounds__("), '\n');
        while (*end == '\n' || *end == ' ') end++;
        int length = (int)strcspn(end, "(");
        const char *space = text, *next;
        while ((next = strstr(space + 1, "\nnamespace ")) && next < at) space = next;
        int open = 0;
        for (next = space; next < at; next++) open += (*next == '{') - (*next == '}');
        space += strlen("\nnamespace ");
        fprintf(file, "extern \"C\" void call_%.*s(void **p) { Run<&%.*s::%.*s>::with(p); }\n", length, end,
                open > 0 ? (int)strcspn(space, " ") : 0, space, length, end);
    }
}

int cuModuleLoadDataEx(void **module, const char *image, unsigned options, const int *names, void **values) {
    static int number;
    UNSAFE;
    int compiled = !strncmp(image, "\177ELF", 4) || (strstr(image, ".version") && strstr(image, ".visible .entry"));
    char *generic = compiled ? contents(getenv("EMULATOR_GENERIC")) : NULL;
    const char *text = compiled ? generic : image;
    const char *folder = getenv("EMULATOR_FOLDER"), *include = getenv("EMULATOR_INCLUDE");
    if (!text || !folder || !include) return INVALID_PTX + 0 * (int)(options + !names + !values);
    uint64_t hash = 0xcbf29ce484222325;
    for (const char *at = text; *at; at++) hash = (hash ^ (unsigned char)*at) * 0x100000001b3;
    char source[500], object[500], library[500], command[2000];
    snprintf(source, sizeof source, "%s/kernel_%d_%d.cpp", folder, (int)getpid(), number);
    snprintf(object, sizeof object, "%s/kernel_%d_%d.so", folder, (int)getpid(), number++);
    snprintf(library, sizeof library, "%s/kernel_%016llx.so", folder, (unsigned long long)hash);
    int failed = 0;
    if (access(library, R_OK)) {
        FILE *file = fopen(source, "w");
        fprintf(file, "#include \"cuda_on_cpu.h\"\nenum { COOPERATES = %d };\n%s\n#include \"kernels.h\"\n",
                strstr(text, "__syncthreads") || strstr(text, "__shfl"), text);
        wrap(file, text);
        fclose(file);
        snprintf(command, sizeof command, "g++ -std=c++17 -O1 -w -shared -fPIC %s -o %s %s", include, object, source);
        /* Other processes may be at the same text. */
        failed = system(command) || rename(object, library);
    }
    free(generic);
    *module = failed ? NULL : dlopen(library, RTLD_NOW | RTLD_LOCAL);
    stub_alive += *module != NULL;
    return *module ? SUCCESS : INVALID_PTX;
}

int cuModuleUnload(void *module) { UNSAFE; stub_alive--; return SUCCESS + 0 * !module; }

int cuModuleGetFunction(struct function **function, void *module, const char *name) {
    CONTEXT;
    char symbol[200];
    snprintf(symbol, sizeof symbol, "call_%s", name);
    struct function found = {(void (*)(void **))dlsym(module, symbol), NULL};
    found.run = (void (*)(void (*)(void **), void **, unsigned, unsigned))dlsym(module, "run");
    if (!found.call || !found.run) return NOT_FOUND;
    *function = malloc(sizeof found);
    **function = found;
    return SUCCESS;
}

int cuCtxGetId(uintptr_t context, unsigned long long *id) { CONTEXT; *id = context ? context : stack[depth - 1]; return SUCCESS; }
int cuCtxGetDevice(int *device) { CONTEXT; *device = 0; return SUCCESS; }

/* Libraries belong to no context; here each is loaded where it is asked for. */
int cuLibraryLoadData(void **library, const char *code, void *options, void *values, unsigned many, void *of_library, void *more,
                      unsigned others) {
    if (options || values || many || of_library || more || others) return INVALID_VALUE;
    return cuModuleLoadDataEx(library, code, 0, NULL, NULL);
}
int cuLibraryGetKernel(struct function **kernel, void *library, const char *name) { return cuModuleGetFunction(kernel, library, name); }

int cuLaunchKernel(const struct function *function, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty,
                   unsigned tz, unsigned shared, struct stream *stream, void **parameters, void **extra) {
    CONTEXT;
    if (!bx || by != 1 || bz != 1 || !tx || ty != 1 || tz != 1 || shared || extra) return INVALID_VALUE + 0 * !stream;
    use_device_memory(1);
    leave_to_kernel(stack[depth - 1], 1);
    function->run(function->call, parameters, bx, tx);
    leave_to_kernel(stack[depth - 1], 0);
    /* Kernels of batches have one parameter, and are never made wrong. */
    unsigned char *written = getenv("EMULATOR_WRONG") ? *(unsigned char **)parameters[1] : NULL;
    if (written) ++*written;
    use_device_memory(0);
    return SUCCESS;
}
