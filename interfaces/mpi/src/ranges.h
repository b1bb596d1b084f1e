/*
 * Ranges for the timelines of profilers. A profiler that wants them names a library in NVTX_INJECTION64_PATH; the library is given a table
 * of functions to fill in, as NVTX 3 lays it out (nvtxDetail/nvtxTypes.h in NVIDIA's header-only NVTX).
 */
#ifndef DTC_MPI_RANGES_H
#define DTC_MPI_RANGES_H

/* Whether a profiler wants them. Loads its library at the first call. */
int dtc_mpi_has_ranges(void);

/* Begins a range of this thread, and ends the last that was begun. */
void dtc_mpi_range_push(const char *name);
void dtc_mpi_range_pop(void);

#endif
