/* Collectives in which every pair of processes has datatypes of its own, with blocks in memory of a GPU and of the host side by side,
   against those of the MPI on the host. 2 ranks or more. */
#include "device.h"
#include "large_counts.h"

enum { PAIRS = 16, ROOM = 20000 };

/* The datatypes of 2,400 bytes between two ranks, as one of them sees it; elements of differing sizes among them. */
static MPI_Datatype datatype_of(int kind, int receives, count_type *count)
{
    MPI_Datatype made, parts[] = {MPI_DOUBLE, MPI_INT};
    int lengths[] = {1, 1};
    MPI_Aint places[] = {8, 0};
    *count = 1;
    switch (kind % 6) {
    case 0:
        MPI_Type_vector(600, 1, 3 + receives, MPI_INT, &made);
        break;
    case 1:
        *count = 6;
        MPI_Type_vector(100, 1, 2, MPI_INT, &made);
        break;
    case 2:
        *count = 600;
        MPI_Type_dup(MPI_INT, &made);
        break;
    case 3:
        *count = 200;
        MPI_Type_create_struct(2, lengths, places, parts, &made);
        break;
    case 4:
        MPI_Type_vector(5, 120, 150 + receives, MPI_INT, &made);
        break;
    default:
        MPI_Type_contiguous(600, MPI_INT, &made);
    }
    MPI_Type_commit(&made);
    return made;
}

/* The blocks of one direction, in one piece of memory or at addresses of their own. */
struct side {
    int length;
    count_type counts[PAIRS];
    place_type places[PAIRS];
    MPI_Aint addresses[PAIRS];
    MPI_Datatype datatypes[PAIRS];
    struct buffer buffer;
};

static struct side side(int length, const int *others, int receives, int round, unsigned seed, enum where where)
{
    struct side made = {.length = length};
    for (int at = 0; at < length; at++) {
        int from = receives ? others[at] : rank, to = receives ? rank : others[at];
        made.datatypes[at] = datatype_of(from * 3 + to + round, receives, &made.counts[at]);
        if ((from + to + round) % 7 == 3) made.counts[at] = 0;
        made.addresses[at] = made.places[at] = at * ROOM;
    }
    made.buffer = buffer(MPI_BYTE, PAIRS * ROOM, seed, where);
    return made;
}

static void side_drop(struct side *side)
{
    for (int at = 0; at < side->length; at++) MPI_Type_free(&side->datatypes[at]);
    release(&side->buffer);
}

/* A call of each kind, at addresses as the program gives them or as the host has them. */
static void call(int kind, int ours, const struct side *out, const struct side *in, MPI_Comm communicator, MPI_Request *request)
{
    const void *sent = ours ? out->buffer.memory : out->buffer.host.memory;
    void *received = ours ? in->buffer.memory : in->buffer.host.memory;
    *request = MPI_REQUEST_NULL;
#define PLACES sent, out->counts, out->places, out->datatypes, received, in->counts, in->places, in->datatypes, communicator
#define ADDRESSES sent, out->counts, out->addresses, out->datatypes, received, in->counts, in->addresses, in->datatypes, communicator
    if (kind == 0) (ours ? MPI_Alltoallw : PMPI_Alltoallw)(PLACES);
    if (kind == 1) (ours ? MPI_Ialltoallw : PMPI_Ialltoallw)(PLACES, request);
    if (kind == 2) (ours ? MPI_Neighbor_alltoallw : PMPI_Neighbor_alltoallw)(ADDRESSES);
    if (kind == 3) (ours ? MPI_Ineighbor_alltoallw : PMPI_Ineighbor_alltoallw)(ADDRESSES, request);
}

/* The same call on the host by the MPI, and from and into places that differ with the rank, or on the GPU in all of them. */
static void compare(int kind, MPI_Comm communicator, int length, const int *others, int round)
{
    enum where from = round % 2 ? ON_DEVICE : (enum where)((round + rank) % 3);
    enum where into = round % 2 ? ON_DEVICE : (enum where)((2 * round + rank + 1) % 3);
    struct side out = side(length, others, 0, round, 100 + (unsigned)rank, from);
    struct side expected = side(length, others, 1, round, 7, ON_HOST), received = side(length, others, 1, round, 7, into);
    MPI_Request request;
    call(kind, 0, &out, &expected, communicator, &request);
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
    call(kind, 1, &out, &received, communicator, &request);
    MPI_Status status;
    if (round % 2) MPI_Waitall(1, &request, &status);
    else for (int flag = 0; !flag;) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    download(&received.buffer);
    CHECK(same(received.buffer.host, expected.buffer.host), "kind %d, round %d", kind, round);
    side_drop(&out), side_drop(&received), side_drop(&expected);
}

/* Blocks of which some lie on either GPU and some on the host: their places are addresses. */
static void mixed_places(int round)
{
    struct buffer out[PAIRS], in[PAIRS];
    struct elements expected[PAIRS];
    int all[PAIRS];
    count_type out_counts[PAIRS], in_counts[PAIRS];
    MPI_Aint out_places[PAIRS], in_places[PAIRS];
    MPI_Datatype out_types[PAIRS], in_types[PAIRS];
    MPI_Comm graph;
    for (int at = 0; at < ranks; at++) {
        all[at] = at;
        out_types[at] = datatype_of(rank * 3 + at + round, 0, &out_counts[at]);
        in_types[at] = datatype_of(at * 3 + rank + round, 1, &in_counts[at]);
        out[at] = buffer(out_types[at], (int)out_counts[at], (unsigned)(rank * 20 + at), (enum where)((at + round) % 3));
        in[at] = buffer(in_types[at], (int)in_counts[at], 3, (enum where)((at + 2 * round + 1) % 3));
        expected[at] = elements(in_types[at], (int)in_counts[at], 3);
        count_type their_count;
        MPI_Datatype theirs = datatype_of(at * 3 + rank + round, 0, &their_count);
        struct elements sent = elements(theirs, (int)their_count, (unsigned)(at * 20 + rank));
        expect(sent, expected[at], 2400);
        drop(sent);
        MPI_Type_free(&theirs);
        MPI_Get_address(out[at].memory, &out_places[at]);
        MPI_Get_address(in[at].memory, &in_places[at]);
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, ranks, all, MPI_UNWEIGHTED, ranks, all, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    MPI_Neighbor_alltoallw(MPI_BOTTOM, out_counts, out_places, out_types, MPI_BOTTOM, in_counts, in_places, in_types, graph);
    for (int at = 0; at < ranks; at++) {
        download(&in[at]);
        CHECK(same(in[at].host, expected[at]), "block %d, round %d", at, round);
        release(&in[at]), release(&out[at]), drop(expected[at]);
        MPI_Type_free(&out_types[at]), MPI_Type_free(&in_types[at]);
    }
    MPI_Comm_free(&graph);
}

/* What is received takes the place of what is sent. */
static void in_place(int later)
{
    MPI_Datatype rows, datatypes[PAIRS];
    count_type counts[PAIRS];
    place_type places[PAIRS];
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Type_vector(300, 1, 2, MPI_INT, &rows);
    MPI_Type_commit(&rows);
    struct buffer memory = buffer(rows, ranks, (unsigned)rank, ON_DEVICE);
    struct elements expected = elements(rows, ranks, (unsigned)rank);
    for (int at = 0; at < ranks; at++) counts[at] = 1, places[at] = at * (2 * 300 - 1) * 4, datatypes[at] = rows;
    PMPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, expected.memory, counts, places, datatypes, MPI_COMM_WORLD);
    if (later) MPI_Ialltoallw(MPI_IN_PLACE, NULL, NULL, NULL, memory.memory, counts, places, datatypes, MPI_COMM_WORLD, &request);
    else MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, memory.memory, counts, places, datatypes, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    download(&memory);
    CHECK(same(memory.host, expected), "in place, later %d", later);
    release(&memory), drop(expected);
    MPI_Type_free(&rows);
}

/* Blocks of a graph whose processes are neighbors several times, this one among them: those between two are received in the order in which
   they are sent. They grow and shrink from call to call, and lie in other memory each time. */
static void several_edges(int later)
{
    enum { EDGES = 5 };
    int to[EDGES], from[EDGES];
    count_type counts[EDGES];
    MPI_Aint out_places[EDGES], in_places[EDGES];
    MPI_Datatype out_types[EDGES], in_types[EDGES];
    MPI_Comm graph;
    for (int at = 0; at < EDGES; at++) to[at] = (rank + at / 2) % ranks, from[at] = (rank + ranks - at / 2 % ranks) % ranks;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, EDGES, from, MPI_UNWEIGHTED, EDGES, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    for (int round = 0; round < 8; round++) {
        long bytes = round == 5 ? 3 << 20 : 1L << (2 * round), out_length = 0, in_length = 0;
        for (int at = 0; at < EDGES; at++) {
            counts[at] = (at + round) % 4 ? 1 : 0;
            int words = (int)(bytes * (at + 1) / EDGES / 4) + 1;
            MPI_Type_vector(words, 1, 2, MPI_INT, &out_types[at]);
            MPI_Type_vector(words, 1, 3, MPI_INT, &in_types[at]);
            MPI_Type_commit(&out_types[at]), MPI_Type_commit(&in_types[at]);
            out_places[at] = out_length, in_places[at] = in_length;
            out_length += 8L * words, in_length += 12L * words;
        }
        struct buffer out = buffer(MPI_BYTE, (int)out_length, (unsigned)(rank + 10 * round), ON_DEVICE);
        struct buffer in = buffer(MPI_BYTE, (int)in_length, 4, ON_DEVICE), expected = buffer(MPI_BYTE, (int)in_length, 4, ON_HOST);
        MPI_Request request = MPI_REQUEST_NULL;
        PMPI_Neighbor_alltoallw(out.host.memory, counts, out_places, out_types, expected.memory, counts, in_places, in_types, graph);
        if (later) MPI_Ineighbor_alltoallw(out.memory, counts, out_places, out_types, in.memory, counts, in_places, in_types, graph, &request);
        else MPI_Neighbor_alltoallw(out.memory, counts, out_places, out_types, in.memory, counts, in_places, in_types, graph);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        download(&in);
        CHECK(same(in.host, expected.host), "several edges, round %d, later %d", round, later);
        release(&out), release(&in), release(&expected);
        for (int at = 0; at < EDGES; at++) MPI_Type_free(&out_types[at]), MPI_Type_free(&in_types[at]);
    }
    MPI_Comm_free(&graph);
}

/* A line of processes, whose ends have one neighbor; a communicator of its own each time. */
static void line(int round)
{
    MPI_Comm row, half;
    int wide = ranks, straight = 0;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &wide, &straight, 0, &row);
    int before = rank > 0 ? rank - 1 : rank, after = rank + 1 < ranks ? rank + 1 : rank, sides[] = {before, after};
    compare(2, row, 2, sides, round);
    /* Every other process, whose numbers there are others. */
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    int length, own = rank, all[PAIRS];
    MPI_Comm_size(half, &length);
    for (int at = 0; at < length; at++) all[at] = at;
    MPI_Comm_rank(half, &rank);
    compare(0, half, length, all, round);
    rank = own;
    MPI_Comm_free(&row), MPI_Comm_free(&half);
}

/* A message that one process sends before the exchange, and that another one has only begun to receive: the exchange of the latter lets it come. */
static void message_meanwhile(void)
{
    enum { WORDS = 1 << 18 };
    MPI_Datatype rows, datatypes[PAIRS];
    count_type counts[PAIRS];
    place_type places[PAIRS];
    MPI_Request request = MPI_REQUEST_NULL;
    int last = ranks - 1, *message = malloc(WORDS * sizeof *message);
    MPI_Type_vector(300, 1, 2, MPI_INT, &rows);
    MPI_Type_commit(&rows);
    struct buffer out = buffer(rows, ranks, (unsigned)rank, ON_DEVICE), in = buffer(rows, ranks, 9, ON_DEVICE);
    struct elements expected = elements(rows, ranks, 9);
    for (int at = 0; at < ranks; at++) counts[at] = 1, places[at] = at * (2 * 300 - 1) * 4, datatypes[at] = rows;
    PMPI_Alltoallw(out.host.memory, counts, places, datatypes, expected.memory, counts, places, datatypes, MPI_COMM_WORLD);
    for (int at = 0; at < WORDS; at++) message[at] = rank == last ? at * 7 : -1;
    PMPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && last > 0) MPI_Irecv(message, WORDS, MPI_INT, last, 5, MPI_COMM_WORLD, &request);
    if (rank == last && last > 0) MPI_Ssend(message, WORDS, MPI_INT, 0, 5, MPI_COMM_WORLD);
    MPI_Alltoallw(out.memory, counts, places, datatypes, in.memory, counts, places, datatypes, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int at = 0; last > 0 && rank == 0 && at < WORDS; at++) CHECK(message[at] == at * 7, "message, word %d", at);
    download(&in);
    CHECK(same(in.host, expected), "beside a message of %d words", WORDS);
    release(&out), release(&in), drop(expected);
    MPI_Type_free(&rows);
    free(message);
}

int main(int argc, char **argv)
{
    MPI_Comm ring, graph;
    int all[PAIRS], wide, periodic = 1;
    begin(&argc, &argv);
    open_device(rank);
    for (int at = 0; at < ranks; at++) all[at] = at;
    wide = ranks;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &wide, &periodic, 0, &ring);
    int sides[2] = {(rank + ranks - 1) % ranks, (rank + 1) % ranks};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, ranks, all, MPI_UNWEIGHTED, ranks, all, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    for (int round = 0; round < 9; round++) {
        compare(0, MPI_COMM_WORLD, ranks, all, round);
        compare(1, MPI_COMM_WORLD, ranks, all, round);
        /* On a ring of two, which block goes where is not the same in all MPIs. */
        if (ranks > 2) compare(2, ring, 2, sides, round), compare(3, ring, 2, sides, round);
        compare(2, graph, ranks, all, round);
        compare(3, graph, ranks, all, round);
        mixed_places(round);
        line(round);
    }
    several_edges(0), several_edges(1);
    message_meanwhile();
    in_place(0), in_place(1);
    MPI_Comm_free(&ring);
    MPI_Comm_free(&graph);
    if (rank == 0) puts("device_exchanges: done");
    MPI_Finalize();
    return 0;
}
