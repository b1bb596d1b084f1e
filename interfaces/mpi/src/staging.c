/* Memory that packed data goes through. It is kept for later calls: fresh memory costs a page fault for every page. */
#include "interposer.h"

#include <stdlib.h>

/* Sizes are powers of two, from 4 KiB on. */
enum { SMALLEST = 12 };

/* Most bytes of a block that is kept, as a power of two. */
enum { LARGEST_KEPT = 24 };

/* Blocks kept of each size. */
enum { KEPT = 4 };

static void *kept[LARGEST_KEPT - SMALLEST + 1][KEPT];

/* The power of two that holds so many bytes. */
static int power_of(int64_t bytes)
{
    int power = SMALLEST;
    while (power < 62 && (int64_t)1 << power < bytes) power++;
    return power;
}

void *dtc_mpi_staging_take(int64_t bytes)
{
    int power = power_of(bytes);
    for (int at = 0; power <= LARGEST_KEPT && at < KEPT; at++) {
        void *memory = __atomic_exchange_n(&kept[power - SMALLEST][at], NULL, __ATOMIC_ACQUIRE);
        if (memory) return memory;
    }
    void *memory = NULL;
    return posix_memalign(&memory, 4096, (size_t)1 << power) ? NULL : memory;
}

void dtc_mpi_staging_give(void *memory, int64_t bytes)
{
    int power = power_of(bytes);
    for (int at = 0; power <= LARGEST_KEPT && at < KEPT; at++) {
        void *none = NULL;
        if (__atomic_compare_exchange_n(&kept[power - SMALLEST][at], &none, memory, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) return;
    }
    free(memory);
}
