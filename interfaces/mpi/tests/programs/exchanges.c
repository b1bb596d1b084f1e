/* Collectives in which every pair of processes has datatypes of its own, against those of the MPI, interposed at all ranks or at some. */
#include "programs.h"

enum { PAIRS = 16 };

/* The datatypes of 12,000 bytes, or none, between two ranks, as one of them sees it. */
static MPI_Datatype datatype_of(int kind, int receives, int *count)
{
    MPI_Datatype made;
    *count = 1;
    switch ((kind + receives) % 5) {
    case 0:
        return vector(3000, 1, 3 + receives);
    case 1:
        *count = 30;
        return vector(100, 1, 2);
    case 2:
        *count = 3000;
        MPI_Type_dup(MPI_INT, &made);
        return made;
    case 3:
        *count = 2;
        return vector(750, 2, 7);
    default:
        MPI_Type_contiguous(3000, MPI_INT, &made);
        MPI_Type_commit(&made);
        return made;
    }
}

/* The blocks of one direction: their places in memory that covers all. */
struct side {
    int length, counts[PAIRS], places[PAIRS];
    MPI_Aint addresses[PAIRS];
    MPI_Datatype datatypes[PAIRS];
    long bytes;
    unsigned char *memory;
};

static struct side side(int length, const int *others, int receives, int round, unsigned seed)
{
    struct side made = {.length = length};
    for (int at = 0; at < length; at++) {
        MPI_Aint lb, extent;
        int from = receives ? others[at] : rank, to = receives ? rank : others[at];
        made.datatypes[at] = datatype_of(from * 3 + to + round, receives, &made.counts[at]);
        if ((from + to + round) % 7 == 3) made.counts[at] = 0;
        MPI_Type_get_extent(made.datatypes[at], &lb, &extent);
        made.addresses[at] = made.bytes;
        made.places[at] = (int)made.bytes;
        made.bytes += extent * made.counts[at] + 40;
    }
    made.memory = malloc((size_t)made.bytes);
    for (long at = 0; at < made.bytes; at++) made.memory[at] = byte_at(at, seed);
    return made;
}

static void side_drop(struct side *side)
{
    for (int at = 0; at < side->length; at++) MPI_Type_free(&side->datatypes[at]);
    free(side->memory);
}

/* A call of each kind; the request is null after blocking ones. */
static void call(int kind, int ours, const struct side *out, struct side *in, MPI_Comm communicator, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
#define PLACES out->memory, out->counts, out->places, out->datatypes, in->memory, in->counts, in->places, in->datatypes, communicator
#define ADDRESSES                                                                                                                 \
    out->memory, out->counts, out->addresses, out->datatypes, in->memory, in->counts, in->addresses, in->datatypes, communicator
    if (kind == 0) (ours ? MPI_Alltoallw : PMPI_Alltoallw)(PLACES);
    if (kind == 1) (ours ? MPI_Ialltoallw : PMPI_Ialltoallw)(PLACES, request);
    if (kind == 2) (ours ? MPI_Neighbor_alltoallw : PMPI_Neighbor_alltoallw)(ADDRESSES);
    if (kind == 3) (ours ? MPI_Ineighbor_alltoallw : PMPI_Ineighbor_alltoallw)(ADDRESSES, request);
}

/* One call by the MPI, one by some ranks with dtc. The datatypes may be freed before nonblocking ones end. */
static void compare(int kind, MPI_Comm communicator, int length, const int *others, int round)
{
    struct side out = side(length, others, 0, round, 100 + (unsigned)rank);
    struct side expected = side(length, others, 1, round, 7), received = side(length, others, 1, round, 7);
    MPI_Request request;
    call(kind, 0, &out, &expected, communicator, &request);
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
    int ours = round % 3 == 0 || rank % 2 == round % 3 - 1;
    call(kind, ours, &out, &received, communicator, &request);
    unsigned char *memory = received.memory;
    long bytes = received.bytes;
    received.memory = NULL;
    side_drop(&received);
    if (round % 2) MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
    else for (int flag = 0; !flag;) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    CHECK(!memcmp(memory, expected.memory, (size_t)bytes), "kind %d, round %d", kind, round);
    free(memory);
    side_drop(&out);
    side_drop(&expected);
}

#if MPI_VERSION >= 4
static void large_counts(void)
{
    int others[PAIRS];
    for (int at = 0; at < ranks; at++) others[at] = at;
    struct side out = side(ranks, others, 0, 1, 100 + (unsigned)rank);
    struct side expected = side(ranks, others, 1, 1, 7), received = side(ranks, others, 1, 1, 7);
    MPI_Count out_counts[PAIRS], in_counts[PAIRS];
    MPI_Request request;
    for (int at = 0; at < ranks; at++) out_counts[at] = out.counts[at], in_counts[at] = received.counts[at];
    call(0, 0, &out, &expected, MPI_COMM_WORLD, &request);
    MPI_Alltoallw_c(out.memory, out_counts, out.addresses, out.datatypes, received.memory, in_counts, received.addresses,
                    received.datatypes, MPI_COMM_WORLD);
    CHECK(!memcmp(received.memory, expected.memory, (size_t)received.bytes), "blocking");
    for (long at = 0; at < received.bytes; at++) received.memory[at] = byte_at(at, 7);
    MPI_Ialltoallw_c(out.memory, out_counts, out.addresses, out.datatypes, received.memory, in_counts, received.addresses,
                     received.datatypes, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(!memcmp(received.memory, expected.memory, (size_t)received.bytes), "nonblocking");
    side_drop(&out);
    side_drop(&expected);
    side_drop(&received);
}
#endif

/* In place, and between groups: the MPI's. */
static void others(void)
{
    MPI_Datatype rows = vector(2000, 1, 2);
    int counts[PAIRS], places[PAIRS];
    MPI_Datatype datatypes[PAIRS];
    struct elements memory = elements(rows, ranks, (unsigned)rank), expected = elements(rows, ranks, (unsigned)rank);
    for (int at = 0; at < ranks; at++) counts[at] = 1, places[at] = at * (2 * 2000 - 1) * 4, datatypes[at] = rows;
    MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, memory.memory, counts, places, datatypes, MPI_COMM_WORLD);
    PMPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, expected.memory, counts, places, datatypes, MPI_COMM_WORLD);
    CHECK(same(memory, expected), "in place");
    drop(memory);
    drop(expected);
    MPI_Type_free(&rows);
}

int main(int argc, char **argv)
{
    MPI_Comm ring, graph;
    int all[PAIRS], wide, periodic = 1;
    begin(&argc, &argv);
    for (int at = 0; at < ranks; at++) all[at] = at;
    wide = ranks;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &wide, &periodic, 0, &ring);
    int sides[2] = {(rank + ranks - 1) % ranks, (rank + 1) % ranks};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, ranks, all, MPI_UNWEIGHTED, ranks, all, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    for (int round = 0; round < 30; round++) {
        compare(0, MPI_COMM_WORLD, ranks, all, round);
        compare(1, MPI_COMM_WORLD, ranks, all, round);
        /* On a ring of two, which block goes where is not the same in all MPIs. */
        if (ranks > 2) compare(2, ring, 2, sides, round), compare(3, ring, 2, sides, round);
        compare(2, graph, ranks, all, round);
        compare(3, graph, ranks, all, round);
    }
    others();
#if MPI_VERSION >= 4
    large_counts();
#endif
    MPI_Comm_free(&ring);
    MPI_Comm_free(&graph);
    if (rank == 0) puts("exchanges: done");
    MPI_Finalize();
    return 0;
}
