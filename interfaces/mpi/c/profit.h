/*
 * Which calls dtc does faster than the MPI. Measured with bench/messages.c: bench/results/2026-11-23-mpi.md. Long pieces are fast
 * everywhere: a message that goes through staging memory is moved twice.
 */
#ifndef DTC_MPI_PROFIT_H
#define DTC_MPI_PROFIT_H

/* Most bytes of a message: it takes as many bytes of memory more. */
enum { LARGEST_MESSAGE = 256 << 20 };

static struct {
    /* Most bytes of a contiguous piece, on average, of an MPI_Pack or MPI_Unpack, and fewest bytes of the call. */
    int64_t packed_piece, packed_bytes;
    /* The same of a message in bytes. Up to 8 KiB, MPICH 4.0 packs into the memory that it sends. */
    int64_t piece, bytes;
    /* The same where pieces are irregular, and where they are sparse (plan.h): then fewest bytes of a piece, too. */
    int64_t irregular_piece, irregular_bytes, shortest_sparse_piece, sparse_piece;
    /* One of this many bytes of a collective, at least, is one that dtc moves faster. */
    int64_t share;
    /* Whether contiguous datatypes are left to the MPI, and others decoded only when their uses pay for it (rent.h). */
    int leaves_whole;
    /* Picoseconds that the MPI loses for each byte of a use that dtc would do, at least. */
    int64_t lost;
    /* The longest of the pieces above, and the fewest bytes of a message. */
    int64_t longest_piece, least;
} limits = {
    .packed_piece = DTC_MPI_OF_ABI(1024, 64, 1024),
    .packed_bytes = DTC_MPI_OF_ABI(4096, 8192, 4096),
    .piece = DTC_MPI_OF_ABI(128, 16, 128),
    .bytes = 8192,
    .irregular_piece = DTC_MPI_OF_ABI(128, 32, 128),
    .irregular_bytes = DTC_MPI_OF_ABI(8192, 1024, 8192),
    .sparse_piece = DTC_MPI_OF_ABI(128, 96, 128),
    .share = 2,
    .leaves_whole = 1,
    .lost = DTC_MPI_OF_ABI(500, 200, 500),
};

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Open MPI 5 packs vectors straight into the memory that it sends, as fast as dtc, from pieces of 8 bytes on. Irregular pieces take it 2 to 6
   times as long, sparse ones of 44 to 92 bytes 1.1 to 1.5 times (bench/results/2026-11-23-mpi-ddtbench.md). */
static void profit_start(void)
{
    static const char name[] = "Open MPI v";
    const char *version = DTC_MPI_OF_ABI(NULL, dtc_mpi_library_version(), NULL);
    const char *found = version ? strstr(version, name) : NULL;
    if (found && atoi(found + sizeof name - 1) >= 5) limits.piece = 4, limits.shortest_sparse_piece = 44;
    limits.longest_piece = greater(greater(limits.packed_piece, limits.piece), greater(limits.irregular_piece, limits.sparse_piece));
    limits.least = -greater(-limits.bytes, -limits.irregular_bytes);
    if (!dtc_mpi_is_set("DTC_MPI", "all")) return;
    /* A datatype with a gap, as receive_type.h makes one for a receive, has two bytes. */
    limits.packed_piece = limits.piece = limits.irregular_piece = limits.sparse_piece = limits.share = LARGEST_MESSAGE;
    limits.shortest_sparse_piece = 0;
    limits.packed_bytes = 1;
    limits.bytes = limits.irregular_bytes = limits.least = 2;
    limits.leaves_whole = 0;
}

#endif
