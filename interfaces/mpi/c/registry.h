/* Which processes of a job on this machine have this library. */
#ifndef DTC_MPI_REGISTRY_H
#define DTC_MPI_REGISTRY_H

/* Enters this process, rank `rank` of a job of `size`, among those that have the library, if the launcher names the job. */
void dtc_mpi_register(int rank, int size);

/* Whether the processes of the job on this machine exchange directly: all have said that they have the library. The first that asks may wait
   for the others, until a second after it has entered itself; all are told the same. */
int dtc_mpi_exchanges_directly(void);

/* Whether the process of a rank in the job has said so, and runs on this machine. It stays as it is once the above is true. */
int dtc_mpi_is_registered(int rank);

/* At the end. */
void dtc_mpi_unregister(void);

#endif
