#include "moves.h"

#include <inttypes.h>
#include <stdio.h>

#include "ranges.h"

/* Kinds of memory: DTC_MEMORY_..., where "unknown" stands for elements of absolute addresses. */
enum { KINDS = DTC_MEMORY_DEVICE + 1 };
static const char *const kind_names[KINDS] = {"several kinds of", "host", "pinned", "managed", "device"};

static const char *const direction_names[DTC_MPI_DIRECTIONS] = {"packs", "unpacks"};

/* By the kinds of memory of elements and of packed data. */
static struct {
    int64_t calls, bytes, nanoseconds;
} moved[KINDS][KINDS][DTC_MPI_DIRECTIONS];

/* A move under way. */
struct begun {
    enum dtc_mpi_direction direction;
    int32_t memory, packed;
    int64_t time;
};

static struct begun begin(enum dtc_mpi_direction direction, int32_t memory, int32_t packed)
{
    struct begun begun = {direction, memory, packed, 0};
    if (dtc_mpi_has_ranges()) {
        char name[96];
        snprintf(name, sizeof name, "dtc %s: elements in %s memory, packed in %s memory", direction_names[direction], kind_names[memory],
                 kind_names[packed]);
        dtc_mpi_range_push(name);
    }
    if (dtc_mpi_reports()) begun.time = dtc_mpi_now();
    return begun;
}

/* Counts it if it was done; 0 if it failed with this code of libdtc. */
static int end(const struct begun *begun, int code, int64_t bytes)
{
    if (dtc_mpi_has_ranges()) dtc_mpi_range_pop();
    if (code != DTC_OK) dtc_mpi_say("a pack or unpack failed", dtc_message());
    if (code != DTC_OK || !dtc_mpi_reports()) return code == DTC_OK;
    __typeof__(&moved[0][0][0]) count = &moved[begun->memory][begun->packed][begun->direction];
    __atomic_fetch_add(&count->calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&count->bytes, bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&count->nanoseconds, dtc_mpi_now() - begun->time, __ATOMIC_RELAXED);
    return 1;
}

int dtc_mpi_move(const struct dtc_mpi_move *move)
{
    const dtc_transfer *transfer = move->transfer;
    struct begun begun = begin(move->direction, transfer ? transfer->memory : DTC_MEMORY_HOST, transfer ? transfer->packed : DTC_MEMORY_HOST);
    int code = move->direction == DTC_MPI_UNPACKS
                   ? dtc_unpack(move->type, move->memory, move->elements, 0, move->packed, move->bytes, NULL, transfer)
                   : dtc_pack(move->type, move->memory, move->elements, 0, move->packed, move->bytes, NULL, transfer);
    return end(&begun, code, move->bytes);
}

int dtc_mpi_launch(int32_t device, const dtc_batch_call *calls, int32_t length, int32_t packed)
{
    int64_t bytes = 0;
    for (int32_t at = 0; at < length; at++) bytes += calls[at].max;
    enum dtc_mpi_direction direction = calls[0].direction == DTC_DIRECTION_UNPACK ? DTC_MPI_UNPACKS : DTC_MPI_PACKS;
    struct begun begun = begin(direction, DTC_MEMORY_DEVICE, packed);
    int code = dtc_batch_run(dtc_mpi_engine, device, calls, length, NULL);
    return end(&begun, code, bytes);
}

void dtc_mpi_report_moves(const char *abi)
{
    for (int memory = 0; memory < KINDS; memory++)
        for (int packed = 0; packed < KINDS; packed++) {
            __typeof__(&moved[0][0][0]) counts = moved[memory][packed];
            if (!counts[DTC_MPI_PACKS].calls && !counts[DTC_MPI_UNPACKS].calls) continue;
            char line[256];
            int length = 0;
            for (int at = 0; at < DTC_MPI_DIRECTIONS; at++)
                length += snprintf(line + length, sizeof line - (size_t)length, "%s%" PRId64 " %s, %" PRId64 " bytes in %.6f s",
                                   at ? "; " : "", counts[at].calls, direction_names[at], counts[at].bytes,
                                   (double)counts[at].nanoseconds * 1e-9);
            fprintf(stderr, "libdtc_mpi: %s: elements in %s memory, packed in %s memory: %s\n", abi, kind_names[memory],
                    kind_names[packed], line);
        }
}
