/* The Fortran libraries of Open MPI, whose calls would not come here. */
#ifndef DTC_MPI_REDIRECT_H
#define DTC_MPI_REDIRECT_H

#include "interposer.h"

/* Has those that are loaded call this library. */
void dtc_mpi_redirect_fortran(void);

/* Whether they do, all of them. */
int dtc_mpi_is_fortran_redirected(void);

#endif
