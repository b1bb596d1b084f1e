/* Variables of the environment with fixed values. Case does not matter; an empty variable counts as unset. */
#ifndef DTC_MPI_SETTINGS_H
#define DTC_MPI_SETTINGS_H

/* Whether a variable has this value. */
int dtc_mpi_is_set(const char *variable, const char *value);

/* Says on standard error which variables have values that are unknown, what was expected, and what comes of it. Called by one process of
   the job. */
void dtc_mpi_say_unknown_settings(void);

#endif
