/*
 * Packs and sends elements of each datatype of an array `types`, with calls that are interposed and with those of the MPI, and
 * prints "same" or how they differ, at rank 0.
 */
#include "check.h"
#include <stdarg.h>

static int rank, ranks;

/* Elements that make a message long enough for dtc. */
static int count_of(long size, long extent)
{
    long count = 9000 / size + 2;
    return labs(extent) * count > 4000000 ? 2 : (int)count;
}

static const char *compare(MPI_Datatype datatype)
{
    int size;
    MPI_Aint lb, extent;
    const char *found = "same";
    MPI_Type_size(datatype, &size);
    MPI_Type_get_extent(datatype, &lb, &extent);
    if (size == 0) return found;
    int count = count_of(size, extent), bytes = count * size, theirs = 0, ours = 0;
    struct elements memory = elements(datatype, count, 1);
    unsigned char *packed = malloc((size_t)bytes), *other = malloc((size_t)bytes), *random = malloc((size_t)bytes);
    for (int at = 0; at < bytes; at++) random[at] = byte_at(at, 9), other[at] = packed[at] = 0;
    PMPI_Pack(memory.memory, count, datatype, packed, bytes, &theirs, MPI_COMM_WORLD);
    MPI_Pack(memory.memory, count, datatype, other, bytes, &ours, MPI_COMM_WORLD);
    int differ = ours != theirs || memcmp(packed, other, (size_t)bytes);
    /* Where two bytes of a type share a place, what an unpack leaves there is undefined. */
    struct elements expected = elements(datatype, count, 2), received = elements(datatype, count, 2);
    theirs = ours = 0;
    PMPI_Unpack(random, bytes, &theirs, expected.memory, count, datatype, MPI_COMM_WORLD);
    int position = 0;
    PMPI_Pack(expected.memory, count, datatype, other, bytes, &position, MPI_COMM_WORLD);
    int overlaps = memcmp(random, other, (size_t)bytes);
#if OMPI_MAJOR_VERSION >= 5
    /* Open MPI 5.0 itself packs other bytes of some types whose elements overlap. */
    if (overlaps) return found;
#endif
    if (differ) found = "other bytes packed";
    if (!overlaps) {
        MPI_Unpack(random, bytes, &ours, received.memory, count, datatype, MPI_COMM_WORLD);
        if (ours != theirs || !same(expected, received)) found = "other elements unpacked";
    }
    int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks, wrong = 0, any = 0;
    /* Open MPI 5.0 loses bytes of unaligned elements in some messages of its own. */
    position = 0;
    PMPI_Sendrecv(memory.memory, count, datatype, to, 0, received.memory, count, datatype, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    PMPI_Unpack(packed, bytes, &position, expected.memory, count, datatype, MPI_COMM_WORLD);
    if (!overlaps) wrong = !same(expected, received);
    PMPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    for (int way = 0; way < 4 && ranks > 1 && !any; way++) {
        MPI_Request request, requests[2];
        MPI_Status statuses[2];
        MPI_Status status;
        int elements_received = -1;
        drop(received);
        drop(expected);
        received = elements(datatype, count, 3);
        expected = elements(datatype, count, 3);
        /* The MPI's own receive, and the MPI's own send. */
        if (way == 0 || way == 2) {
            if (overlaps) PMPI_Irecv(other, bytes, MPI_PACKED, from, way, MPI_COMM_WORLD, &request);
            else PMPI_Irecv(received.memory, count, datatype, from, way, MPI_COMM_WORLD, &request);
            MPI_Send(memory.memory, count, datatype, to, way, MPI_COMM_WORLD);
            PMPI_Wait(&request, &status);
        } else if (way == 3) {
            if (overlaps) MPI_Irecv(other, bytes, MPI_PACKED, from, way, MPI_COMM_WORLD, &requests[0]);
            else MPI_Irecv(received.memory, count, datatype, from, way, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(memory.memory, count, datatype, to, way, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, statuses);
            status = statuses[0];
        } else {
            PMPI_Isend(memory.memory, count, datatype, to, way, MPI_COMM_WORLD, &request);
            if (overlaps) MPI_Recv(other, bytes, MPI_PACKED, from, way, MPI_COMM_WORLD, &status);
            else MPI_Recv(received.memory, count, datatype, from, way, MPI_COMM_WORLD, &status);
            PMPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Get_count(&status, datatype, &elements_received);
        position = 0;
        PMPI_Unpack(packed, bytes, &position, expected.memory, count, datatype, MPI_COMM_WORLD);
        if (elements_received != count) found = "other count received";
        else if (overlaps ? memcmp(packed, other, (size_t)bytes) : !same(expected, received)) found = "other elements received";
    }
    free(packed);
    free(other);
    free(random);
    drop(memory);
    drop(expected);
    drop(received);
    return found;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (unsigned long at = 0; at < sizeof types / sizeof *types; at++) {
        MPI_Datatype datatype = types[at].build();
        const char *found = types[at].packs ? compare(datatype) : "same";
        int differs = strcmp(found, "same"), any = 0;
        MPI_Allreduce(&differs, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0) puts(differs || !any ? found : "differs at another rank");
        MPI_Type_free(&datatype);
    }
    MPI_Finalize();
    return 0;
}
