/*
 * Memory of a GPU that other processes of this machine write to, and that of others, opened here.
 *
 * Others open a piece at its first use and keep it open, which takes a millisecond; freeing it meanwhile is undefined behaviour of CUDA. So
 * a piece stays until the process ends. Lengths are powers of two: all pieces together are at most twice as long as the longest, for each
 * exchange that runs at the same time.
 */
#include "interposer.h"
#include "landing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Fewest bytes, as a power of two: what CUDA allocates for itself, so that no other memory is opened with a piece. And most: pieces stay. */
enum { LEAST = 21, MOST = 29 };

/* GPUs with pieces. */
enum { DEVICES = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct dtc_mpi_landing *landings;
static int64_t last_number;
/* GPUs whose memory could not be shared: not asked again. */
static char closed[DEVICES];

static struct dtc_mpi_landing *allocate(int32_t device, int64_t bytes)
{
    int64_t length = (int64_t)1 << LEAST;
    while (length < bytes) length *= 2;
    struct dtc_mpi_landing *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    *made = (struct dtc_mpi_landing){.next = landings, .taken = 1, .device = device, .bytes = length, .number = last_number + 1};
    if (dtc_memory_allocate(dtc_mpi_engine, DTC_MEMORY_DEVICE, device, length, &made->memory, &made->allocation) == DTC_OK) {
        if (dtc_memory_export(made->allocation, made->name) == DTC_OK) {
            last_number++;
            landings = made;
            return made;
        }
        closed[device] = 1;
        dtc_memory_free(made->allocation);
    }
    free(made);
    return NULL;
}

struct dtc_mpi_landing *dtc_mpi_landing_take(int32_t device, int64_t bytes)
{
    struct dtc_mpi_landing *found = NULL;
    if (device < 0 || device >= DEVICES || closed[device] || bytes > (int64_t)1 << MOST) return NULL;
    pthread_mutex_lock(&lock);
    for (struct dtc_mpi_landing *at = landings; at; at = at->next)
        if (!at->taken && at->device == device && at->bytes >= bytes && (!found || at->bytes < found->bytes)) found = at;
    if (found) found->taken = 1;
    else found = allocate(device, bytes);
    pthread_mutex_unlock(&lock);
    return found;
}

void dtc_mpi_landing_give(struct dtc_mpi_landing *landing)
{
    if (!landing) return;
    pthread_mutex_lock(&lock);
    landing->taken = 0;
    pthread_mutex_unlock(&lock);
}

/* Memory of another process, opened here. */
static struct import {
    struct import *next;
    /* Its process, and the number of the piece there. */
    int64_t process, number;
    int32_t device;
    /* Null if it cannot be opened. */
    void *memory;
    struct dtc_memory *opened;
} *imports;

void *dtc_mpi_import(int64_t process, int64_t number, const unsigned char *name, int32_t device)
{
    pthread_mutex_lock(&lock);
    struct import *import = imports;
    while (import && (import->process != process || import->number != number || import->device != device)) import = import->next;
    if (!import && (import = calloc(1, sizeof *import))) {
        *import = (struct import){.next = imports, .process = process, .number = number, .device = device};
        if (dtc_memory_import(dtc_mpi_engine, device, name, &import->memory, &import->opened) != DTC_OK) import->memory = NULL;
        imports = import;
    }
    void *memory = import ? import->memory : NULL;
    pthread_mutex_unlock(&lock);
    return memory;
}

void dtc_mpi_close_imports(void)
{
    pthread_mutex_lock(&lock);
    for (struct import *import; (import = imports);) {
        imports = import->next;
        if (import->memory) dtc_memory_free(import->opened);
        free(import);
    }
    pthread_mutex_unlock(&lock);
}
