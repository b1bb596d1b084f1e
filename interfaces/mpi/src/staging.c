/* Memory that packed data goes through. It is kept for later calls: fresh memory costs a page fault for every page, and memory of CUDA
   milliseconds. */
#include "interposer.h"

#include <dtc.h>
#include <stdlib.h>

/* Sizes are powers of two, from 4 KiB on. */
enum { SMALLEST = 12 };

/* Most bytes of a block that is kept, as a power of two: of the host, and of memory that CUDA allocates. */
enum { LARGEST_KEPT = 24, LARGEST_KEPT_OF_CUDA = 28 };

/* Blocks kept of each size, and most bytes of all of them in a pool. */
enum { KEPT = 32, MOST_KEPT = 64 << 20, MOST_KEPT_OF_CUDA = 512 << 20 };

/* Most bytes of host memory that are lent at once: nonblocking messages hold theirs until they end. */
enum { MOST_LENT = 1 << 30 };

/* Bytes behind each block of memory of the host, which receive_type.h may ask for. None behind memory of a GPU, of which an MPI opens the whole
   allocation in another process: between two H200, Open MPI 5.0 takes 70 us more for 64 MiB if 64 bytes follow them. */
enum { SLACK = 64 };

/* GPUs with a pool. */
enum { DEVICES = 16, POOLS = DTC_MPI_DEVICE + DEVICES };

struct dtc_engine *dtc_mpi_engine;

static struct dtc_mpi_block *kept[POOLS][LARGEST_KEPT_OF_CUDA - SMALLEST + 1][KEPT];
static int64_t kept_bytes[POOLS], lent_bytes;

/* The power of two that holds so many bytes. */
static int power_of(int64_t bytes)
{
    int power = SMALLEST;
    while (power < 62 && (int64_t)1 << power < bytes) power++;
    return power;
}

static int is_kept(int pool, int power)
{
    return power <= (pool == DTC_MPI_HOST ? LARGEST_KEPT : LARGEST_KEPT_OF_CUDA);
}

static void drop(struct dtc_mpi_block *block)
{
    if (block->allocation) dtc_memory_free(block->allocation);
    else free(block->memory);
    free(block);
}

static struct dtc_mpi_block *allocate(int pool, int power, int32_t device)
{
    int64_t bytes = ((int64_t)1 << power) + (pool < DTC_MPI_DEVICE ? SLACK : 0);
    struct dtc_mpi_block *block = calloc(1, sizeof *block);
    if (!block) return NULL;
    int32_t kind = pool == DTC_MPI_HOST ? DTC_MEMORY_HOST : pool == DTC_MPI_PINNED ? DTC_MEMORY_PINNED : DTC_MEMORY_DEVICE;
    *block = (struct dtc_mpi_block){.kind = kind, .device = device, .pool = pool, .power = power};
    int failed = pool == DTC_MPI_HOST
                     ? posix_memalign(&block->memory, 4096, (size_t)bytes)
                     : dtc_memory_allocate(dtc_mpi_engine, kind, device, bytes, &block->memory, &block->allocation) != DTC_OK;
    if (!failed) return block;
    free(block);
    return NULL;
}

struct dtc_mpi_block *dtc_mpi_staging_take(enum dtc_mpi_pool asked, int32_t device, int64_t bytes)
{
    int power = power_of(bytes), pool = asked == DTC_MPI_DEVICE ? DTC_MPI_DEVICE + device : (int)asked;
    int64_t size = (int64_t)1 << power;
    struct dtc_mpi_block *block = NULL;
    if (device < 0 || device >= DEVICES) return NULL;
    if (pool == DTC_MPI_HOST && __atomic_add_fetch(&lent_bytes, size, __ATOMIC_RELAXED) > MOST_LENT) {
        __atomic_fetch_sub(&lent_bytes, size, __ATOMIC_RELAXED);
        return NULL;
    }
    for (int at = 0; is_kept(pool, power) && at < KEPT && !block; at++)
        if (__atomic_load_n(&kept[pool][power - SMALLEST][at], __ATOMIC_RELAXED))
            block = __atomic_exchange_n(&kept[pool][power - SMALLEST][at], NULL, __ATOMIC_ACQUIRE);
    if (block) __atomic_fetch_sub(&kept_bytes[pool], size, __ATOMIC_RELAXED);
    else block = allocate(pool, power, device);
    if (!block && pool == DTC_MPI_HOST) __atomic_fetch_sub(&lent_bytes, size, __ATOMIC_RELAXED);
    if (block) dtc_mpi_did();
    return block;
}

void dtc_mpi_staging_give(struct dtc_mpi_block *block)
{
    int pool = block->pool, power = block->power, keep = is_kept(pool, power);
    int64_t size = (int64_t)1 << power;
    if (pool == DTC_MPI_HOST) __atomic_fetch_sub(&lent_bytes, size, __ATOMIC_RELAXED);
    int64_t most = pool == DTC_MPI_HOST ? MOST_KEPT : MOST_KEPT_OF_CUDA;
    if (keep && __atomic_add_fetch(&kept_bytes[pool], size, __ATOMIC_RELAXED) <= most) {
        for (int at = 0; at < KEPT; at++) {
            struct dtc_mpi_block *none = NULL, **place = &kept[pool][power - SMALLEST][at];
            if (__atomic_compare_exchange_n(place, &none, block, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) return;
        }
    }
    if (keep) __atomic_fetch_sub(&kept_bytes[pool], size, __ATOMIC_RELAXED);
    drop(block);
}
