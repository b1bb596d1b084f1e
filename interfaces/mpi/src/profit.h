/*
 * Which calls dtc does faster than the MPI. Measured: decision 23. Both are fast where pieces are long; MPICH takes longer from
 * shorter ones on.
 */
#ifndef DTC_MPI_PROFIT_H
#define DTC_MPI_PROFIT_H

/* Most bytes of a contiguous piece, on average. */
enum { LONGEST_PIECE = DTC_MPI_OF_ABI(128, 32, 128) };

/* Fewest bytes of an MPI_Pack or MPI_Unpack. */
enum { LEAST_PACKED = DTC_MPI_OF_ABI(4096, 1024, 4096) };

/* Fewest bytes of a message. */
enum { LEAST_MESSAGE = DTC_MPI_OF_ABI(4096, 8192, 4096) };

/* Most bytes of a message: it takes as many bytes of memory more. */
enum { LARGEST_MESSAGE = 256 << 20 };

#endif
