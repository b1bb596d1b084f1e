/*
 * Which calls dtc does faster than the MPI. Measured with bench/messages.c: bench/results/2026-11-23-mpi.md. Long pieces are fast
 * everywhere: a message that goes through staging memory is moved twice.
 */
#ifndef DTC_MPI_PROFIT_H
#define DTC_MPI_PROFIT_H

/* Most bytes of a contiguous piece, on average, of an MPI_Pack or MPI_Unpack, and fewest bytes of the call. */
enum { LONGEST_PACKED_PIECE = DTC_MPI_OF_ABI(1024, 64, 1024), LEAST_PACKED = DTC_MPI_OF_ABI(4096, 8192, 4096) };

/* The same of a message in bytes. Up to 8 KiB, MPICH 4.0 packs into the memory that it sends. */
enum { LONGEST_PIECE = DTC_MPI_OF_ABI(128, 16, 128), LEAST_MESSAGE = 8192 };

/* Most bytes of a message: it takes as many bytes of memory more. */
enum { LARGEST_MESSAGE = 256 << 20 };

/* The longest piece of messages in this process. */
static int longest_piece = LONGEST_PIECE;

/* Open MPI 5 packs vectors straight into the memory that it sends, as fast as dtc, from pieces of 8 bytes on. */
static void profit_start(void)
{
    static const char name[] = "Open MPI v";
    const char *version = DTC_MPI_OF_ABI(NULL, dtc_mpi_library_version(), NULL);
    const char *found = version ? strstr(version, name) : NULL;
    if (found && atoi(found + sizeof name - 1) >= 5) longest_piece = 4;
}

#endif
