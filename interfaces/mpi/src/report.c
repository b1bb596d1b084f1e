/* What the interposer says, to standard error, when DTC_MPI_REPORT is set. */
#include "interposer.h"
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Whether DTC_MPI_REPORT asks; -1 as long as nobody has looked. */
static int reports = -1;

int dtc_mpi_reports(void)
{
    int known = __atomic_load_n(&reports, __ATOMIC_RELAXED);
    if (known < 0) {
        const char *asked = getenv("DTC_MPI_REPORT");
        known = asked && *asked && !dtc_mpi_is_set("DTC_MPI_REPORT", "0") && !dtc_mpi_is_set("DTC_MPI_REPORT", "off");
        __atomic_store_n(&reports, known, __ATOMIC_RELAXED);
    }
    return known;
}

int64_t dtc_mpi_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

void dtc_mpi_say(const char *what, const char *why)
{
    if (dtc_mpi_reports()) fprintf(stderr, "libdtc_mpi: %s: %s\n", what, why);
}

static struct {
    int64_t calls, bytes;
} counted[DTC_MPI_COUNTS];

static __thread int64_t done_here;

int64_t dtc_mpi_done_here(void)
{
    return done_here;
}

void dtc_mpi_did(void)
{
    done_here++;
}

void dtc_mpi_count(enum dtc_mpi_count what, int64_t bytes)
{
    if (!dtc_mpi_reports()) return;
    dtc_mpi_did();
    __atomic_fetch_add(&counted[what].calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counted[what].bytes, bytes, __ATOMIC_RELAXED);
}

void dtc_mpi_report(const char *abi, int64_t decoded, int64_t compiled)
{
    static const char *const names[DTC_MPI_COUNTS] = {"MPI_Pack", "MPI_Unpack", "sent", "received", "packed into memory of other processes"};
    if (!dtc_mpi_reports()) return;
    for (int at = 0; at < DTC_MPI_COUNTS; at++) {
        /* What goes between GPUs of a machine is rare. */
        if (at >= DTC_MPI_DIRECTLY && !counted[at].calls) continue;
        fprintf(stderr, "libdtc_mpi: %s: %s: %lld calls with dtc, %lld bytes\n", abi, names[at], (long long)counted[at].calls,
                (long long)counted[at].bytes);
    }
    fprintf(stderr, "libdtc_mpi: %s: %lld datatypes decoded, kernels compiled for %lld on the host\n", abi, (long long)decoded, (long long)compiled);
}
