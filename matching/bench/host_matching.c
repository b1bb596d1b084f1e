/* Message matching of an MPI on the host: receives are posted, then their messages come from the process itself, without content. The shapes
 * are those of `dtc-bench --part matching` that one source can have: the tuples of source and tag are tags.
 *
 *     mpicc -O2 matching/bench/host_matching.c -o host_matching
 *     ./host_matching
 *
 * Prints microseconds from the first receive to the last message, and millions of pairs per second: medians. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LONGEST = 4096 };

static unsigned long long state = 88172645463325252ull;

static unsigned drawn(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 33) % below;
}

static int ascending(const void *left, const void *right)
{
    double one = *(const double *)left, other = *(const double *)right;
    return (one > other) - (one < other);
}

enum order { SAME, REVERSED, SHUFFLED };

static void measure(const char *name, int length, unsigned tuples, enum order order, int wildcards)
{
    static int tags[LONGEST], wanted[LONGEST];
    static MPI_Request requests[LONGEST];
    double times[21];
    int rounds = length <= 1024 ? 21 : 3;
    for (int at = 0; at < length; at++)
        tags[at] = (int)drawn(tuples);
    for (int at = 0; at < length; at++)
        wanted[at] = tags[order == REVERSED ? length - 1 - at : at];
    for (int at = length - 1; order == SHUFFLED && at > 0; at--) {
        int with = (int)drawn((unsigned)at + 1), tag = wanted[at];
        wanted[at] = wanted[with];
        wanted[with] = tag;
    }
    for (int at = 0; at < length && wildcards; at++) {
        if (drawn(8) == 0)
            wanted[at] = MPI_ANY_TAG;
    }
    for (int round = 0; round < rounds; round++) {
        double start = MPI_Wtime();
        for (int at = 0; at < length; at++)
            MPI_Irecv(NULL, 0, MPI_BYTE, 0, wanted[at], MPI_COMM_SELF, &requests[at]);
        for (int at = 0; at < length; at++) {
            MPI_Request sent;
            MPI_Isend(NULL, 0, MPI_BYTE, 0, tags[at], MPI_COMM_SELF, &sent);
            MPI_Request_free(&sent);
        }
        times[round] = (MPI_Wtime() - start) * 1e6;
        /* With a wildcard, a message may be left that a later receive would have taken: its tag went to another. */
        for (int at = 0; at < length; at++) {
            int done;
            MPI_Test(&requests[at], &done, MPI_STATUS_IGNORE);
            if (!done) {
                MPI_Cancel(&requests[at]);
                MPI_Wait(&requests[at], MPI_STATUS_IGNORE);
            }
        }
        for (int there = 1; there;) {
            MPI_Status status;
            MPI_Iprobe(0, MPI_ANY_TAG, MPI_COMM_SELF, &there, &status);
            if (there)
                MPI_Recv(NULL, 0, MPI_BYTE, 0, status.MPI_TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        }
    }
    qsort(times, (size_t)rounds, sizeof times[0], ascending);
    printf("%-12s %6d %12.2f us %8.2f M/s\n", name, length, times[rounds / 2], length / times[rounds / 2]);
    fflush(stdout);
}

int main(int count, char **arguments)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Init(&count, &arguments);
    MPI_Get_library_version(version, &length);
    printf("%.60s\n", version);
    for (length = 16; length <= LONGEST; length *= 2) {
        measure("random", length, 1u << 20, SHUFFLED, 0);
        measure("reversed", length, 1u << 20, REVERSED, 0);
        measure("same order", length, 1u << 20, SAME, 0);
        measure("few tuples", length, 32, SHUFFLED, 0);
        measure("any tag", length, 4096, SHUFFLED, 1);
    }
    MPI_Finalize();
    return 0;
}
