/*
 * The emulated CUDA driver of the tests, with what Open MPI calls of a driver and dtc does not. Built as libcuda.so.1.
 */
#define cuPointerGetAttributes stub_pointer_get_attributes
#define cuPointerGetAttribute stub_pointer_get_attribute
#define cuCtxGetDevice stub_context_get_device
#include "../emulator/cpu/driver.c"
#undef cuPointerGetAttributes
#undef cuPointerGetAttribute
#undef cuCtxGetDevice

/* Attributes that the stub does not have: the context, the pool, and whether copies are synchronous. */
enum { OF_CONTEXT = 1, SYNCHRONOUS_COPIES = 6, OF_POOL = 17 };

int cuCtxGetDevice(int *device) { CONTEXT; *device = (int)stack[depth - 1] - 1; return SUCCESS; }
int cuCtxSetCurrent(uintptr_t context) {
    ENTER;
    if (depth == 0) depth = 1;
    stack[depth - 1] = context;
    return SUCCESS;
}
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) { ENTER; *flags = 0; *active = 1; return SUCCESS + 0 * device; }
int cuDeviceGetPCIBusId(char *name, int length, int device) {
    ENTER; snprintf(name, (size_t)length, "0000:%02x:00.0", device + 1); return SUCCESS;
}

int cuPointerGetAttributes(unsigned number, const int *attributes, void **values, char *pointer) {
    int found = -1;
    for (unsigned i = 0; i < number; i++) {
        int device_of = 9, *device = &found;
        if (attributes[i] == OF_POOL) return INVALID_VALUE;
        if (attributes[i] != OF_CONTEXT) {
            int status = stub_pointer_get_attributes(1, &attributes[i], &values[i], pointer);
            if (status != SUCCESS) return status;
            continue;
        }
        int status = stub_pointer_get_attributes(1, &device_of, (void **)&device, pointer);
        if (status != SUCCESS) return status;
        *(uintptr_t *)values[i] = found >= 0 ? (uintptr_t)found + 1 : 0;
    }
    return SUCCESS;
}
int cuPointerGetAttribute(void *value, int attribute, char *pointer) { return cuPointerGetAttributes(1, &attribute, &value, pointer); }
int cuPointerSetAttribute(const void *value, int attribute, char *pointer) {
    ENTER; return value && attribute == SYNCHRONOUS_COPIES && pointer ? SUCCESS : INVALID_VALUE;
}
int cuMemGetAddressRange_v2(char **start, size_t *bytes, char *pointer) {
    ENTER;
    for (struct range *range = ranges; range; range = range->next)
        if (pointer >= range->start && pointer < range->start + range->bytes) {
            *start = range->start;
            *bytes = range->bytes;
            return SUCCESS;
        }
    return NOT_FOUND;
}

/* Memory of the host that others have allocated. */
int cuMemHostRegister_v2(char *pointer, size_t bytes, unsigned flags) {
    UNSAFE;
    if (!pointer || flags) return INVALID_VALUE;
    struct range *range = malloc(sizeof *range);
    *range = (struct range){ranges, pointer, bytes, 1, 0, (int)stack[depth - 1] - 1, 0};
    ranges = range;
    return SUCCESS;
}
int cuMemHostUnregister(char *pointer) {
    UNSAFE;
    for (struct range **at = &ranges; *at; at = &(*at)->next)
        if ((*at)->start == pointer) {
            struct range *range = *at;
            *at = range->next;
            free(range);
            return SUCCESS;
        }
    return INVALID_VALUE;
}

int cuStreamCreate(struct stream **stream, unsigned flags) {
    UNSAFE; *stream = calloc(1, sizeof **stream); stub_alive++; return flags <= 1 ? SUCCESS : INVALID_VALUE;
}

/* There is no memory of virtual addresses. */
int cuMemRetainAllocationHandle(void *handle, void *pointer) { return INVALID_VALUE + 0 * (handle == pointer); }
int cuMemGetAllocationPropertiesFromHandle(void *properties, uint64_t handle) { return INVALID_VALUE + 0 * (!properties + !handle); }
int cuMemRelease(uint64_t handle) { return INVALID_VALUE + 0 * !handle; }
int cuMemGetAccess(uint64_t *flags, const void *location, char *pointer) { return INVALID_VALUE + 0 * (!flags + !location + !pointer); }
int cuMemPoolGetAccess(int *flags, void *pool, const void *location) { return INVALID_VALUE + 0 * (!flags + !pool + !location); }

/* Events of other processes: work is done at once, so none is waited for. */
int cuIpcGetEventHandle(struct handle *handle, void *event) { UNSAFE; *handle = (struct handle){event, ""}; return SUCCESS; }
int cuIpcOpenEventHandle(double **event, struct handle handle) { UNSAFE; return cuEventCreate(event, 2 + 0 * !handle.pointer); }
