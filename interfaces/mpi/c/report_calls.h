/* Counts of each call, for the report. */
#ifndef DTC_MPI_REPORT_CALLS_H
#define DTC_MPI_REPORT_CALLS_H

#include "interposer.h"

/* Why dtc did not do a call. */
enum dtc_mpi_reason {
    DTC_MPI_PREDEFINED,
    DTC_MPI_WHOLE,
    DTC_MPI_UNDECODED,
    DTC_MPI_LONG_PIECES,
    DTC_MPI_FEW_BYTES,
    DTC_MPI_FEW_USES,
    DTC_MPI_MANY_BYTES,
    DTC_MPI_MIXED,
    DTC_MPI_NOTHING,
    DTC_MPI_OTHER,
    DTC_MPI_REASONS
};

/* Has the entries of a table counted before they are called. `judge` tells the reason of one that was not handled. */
void dtc_mpi_count_calls(dtc_mpi_function table[DTC_MPI_CALLS], dtc_mpi_judge judge);

/* The same of a process whose calls all go to the MPI, without reasons; MPI_Finalize prints what was counted. */
void dtc_mpi_count_unserved_calls(dtc_mpi_function table[DTC_MPI_CALLS], const char *abi);

/* Prints what was counted. */
void dtc_mpi_report_calls(const char *abi);

#endif
