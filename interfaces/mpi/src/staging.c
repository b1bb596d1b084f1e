/* Memory that packed data goes through. It is kept for later calls: fresh memory costs a page fault for every page. */
#include "interposer.h"

#include <stdlib.h>

/* Sizes are powers of two, from 4 KiB on. */
enum { SMALLEST = 12 };

/* Most bytes of a block that is kept, as a power of two. */
enum { LARGEST_KEPT = 24 };

/* Blocks kept of each size, and most bytes of all of them. */
enum { KEPT = 32, MOST_KEPT = 64 << 20 };

/* Most bytes that are lent at once: nonblocking messages hold theirs until they end. */
enum { MOST_LENT = 1 << 30 };

/* Bytes behind each block, which receive_type.h may ask for. */
enum { SLACK = 64 };

static void *kept[LARGEST_KEPT - SMALLEST + 1][KEPT];
static int64_t kept_bytes, lent_bytes;

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
    int64_t block = (int64_t)1 << power;
    void *memory = NULL;
    if (__atomic_add_fetch(&lent_bytes, block, __ATOMIC_RELAXED) <= MOST_LENT) {
        for (int at = 0; power <= LARGEST_KEPT && at < KEPT && !memory; at++)
            if (__atomic_load_n(&kept[power - SMALLEST][at], __ATOMIC_RELAXED))
                memory = __atomic_exchange_n(&kept[power - SMALLEST][at], NULL, __ATOMIC_ACQUIRE);
        if (memory) __atomic_fetch_sub(&kept_bytes, block, __ATOMIC_RELAXED);
        else if (posix_memalign(&memory, 4096, (size_t)block + SLACK)) memory = NULL;
    }
    if (!memory) __atomic_fetch_sub(&lent_bytes, block, __ATOMIC_RELAXED);
    else dtc_mpi_did();
    return memory;
}

void dtc_mpi_staging_give(void *memory, int64_t bytes)
{
    int power = power_of(bytes), keep = power <= LARGEST_KEPT;
    int64_t block = (int64_t)1 << power;
    __atomic_fetch_sub(&lent_bytes, block, __ATOMIC_RELAXED);
    if (keep && __atomic_add_fetch(&kept_bytes, block, __ATOMIC_RELAXED) <= MOST_KEPT) {
        for (int at = 0; at < KEPT; at++) {
            void *none = NULL;
            if (__atomic_compare_exchange_n(&kept[power - SMALLEST][at], &none, memory, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) return;
        }
    }
    if (keep) __atomic_fetch_sub(&kept_bytes, block, __ATOMIC_RELAXED);
    free(memory);
}
