/* What the interposer says, to standard error, when DTC_MPI_REPORT is set. */
#include "interposer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether DTC_MPI_REPORT asks; -1 as long as nobody has looked. */
static int reports = -1;

static int is_asked(void)
{
    int known = __atomic_load_n(&reports, __ATOMIC_RELAXED);
    if (known < 0) {
        const char *asked = getenv("DTC_MPI_REPORT");
        known = asked && *asked && strcmp(asked, "0");
        __atomic_store_n(&reports, known, __ATOMIC_RELAXED);
    }
    return known;
}

void dtc_mpi_say(const char *what, const char *why)
{
    if (is_asked()) fprintf(stderr, "libdtc_mpi: %s: %s\n", what, why);
}

static struct {
    int64_t calls, bytes;
} counted[DTC_MPI_COUNTS];

void dtc_mpi_count(enum dtc_mpi_count what, int64_t bytes)
{
    if (!is_asked()) return;
    __atomic_fetch_add(&counted[what].calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counted[what].bytes, bytes, __ATOMIC_RELAXED);
}

void dtc_mpi_report(const char *abi)
{
    static const char *const names[DTC_MPI_COUNTS] = {"MPI_Pack", "MPI_Unpack", "sent", "received"};
    if (!is_asked()) return;
    for (int at = 0; at < DTC_MPI_COUNTS; at++)
        fprintf(stderr, "libdtc_mpi: %s: %s: %lld calls with dtc, %lld bytes\n", abi, names[at], (long long)counted[at].calls,
                (long long)counted[at].bytes);
}
