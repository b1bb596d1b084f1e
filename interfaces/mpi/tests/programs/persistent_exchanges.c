/*
 * Persistent collectives in which every pair of processes has datatypes of its own: started again with other data, beside persistent
 * messages, completed by every call that completes, and held against blocking ones of the MPI. All blocks lie on the host, or, if
 * DTC_CUDA_DRIVER names an emulated driver, some on GPUs. 2 ranks or more.
 */
#include "device.h"

#include "complete.h"
#include "large_counts.h"

enum { PAIRS = 16, ROOM = 48000, TAG = 5, STARTS = 3 };

typedef int init_function(const void *, const count_type *, const place_type *, const MPI_Datatype *, void *, const count_type *,
                          const place_type *, const MPI_Datatype *, MPI_Comm, MPI_Info, MPI_Request *);
typedef int neighbor_init_function(const void *, const count_type *, const MPI_Aint *, const MPI_Datatype *, void *, const count_type *,
                                   const MPI_Aint *, const MPI_Datatype *, MPI_Comm, MPI_Info, MPI_Request *);

/* The calls, of the library and of the MPI. Open MPI 4.1 has them as extensions; a program that looks for those of the standard finds the
   library's. */
#if HAS_PERSISTENT_COLLECTIVES
static init_function *const inits[] = {PMPI_Alltoallw_init, MPI_Alltoallw_init};
static neighbor_init_function *const neighbor_inits[] = {PMPI_Neighbor_alltoallw_init, MPI_Neighbor_alltoallw_init};
static void find_calls(void) {}
#else
static init_function *inits[2];
static neighbor_init_function *neighbor_inits[2];

static void find_calls(void)
{
    static const char *const names[][2] = {{"PMPIX_Alltoallw_init", "PMPIX_Neighbor_alltoallw_init"},
                                           {"MPI_Alltoallw_init", "MPI_Neighbor_alltoallw_init"}};
    for (int at = 0; at < 2; at++) {
        inits[at] = (init_function *)dlsym(RTLD_DEFAULT, names[at][0]);
        neighbor_inits[at] = (neighbor_init_function *)dlsym(RTLD_DEFAULT, names[at][1]);
        CHECK(inits[at] && neighbor_inits[at], "%s", names[at][0]);
    }
}
#endif

/* MPICH 4.0 takes inactive requests of collectives for active ones, and it and 5.0 report an error where all of several are asked for. */
#if defined(OMPI_MAJOR_VERSION)
enum { KNOWS_INACTIVE = 1, TESTS_ALL = 1 };
#else
enum { KNOWS_INACTIVE = HAS_GET_STATUS_OF_MANY, TESTS_ALL = 0 };
#endif

static int has_device;

/* The datatypes of 12,000 bytes between two ranks, as one of them sees it; with a GPU, elements of differing sizes among them. */
static MPI_Datatype datatype_of(int kind, int receives, count_type *count)
{
    MPI_Datatype made, parts[] = {MPI_DOUBLE, MPI_INT};
    int lengths[] = {1, 1};
    MPI_Aint places[] = {8, 0};
    *count = 1;
    switch (kind % (4 + has_device)) {
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
        return receives ? vector(750, 2, 7) : vector(500, 3, 4);
    default:
        *count = 1000;
        MPI_Type_create_struct(2, lengths, places, parts, &made);
        MPI_Type_commit(&made);
        return made;
    }
}

/* A communicator, and with whom a rank of it exchanges. */
struct group {
    MPI_Comm communicator;
    int neighbors, length, others[PAIRS];
};

/* The blocks of one direction. */
struct side {
    int length;
    count_type counts[PAIRS];
    place_type places[PAIRS];
    MPI_Aint addresses[PAIRS];
    MPI_Datatype datatypes[PAIRS];
    struct buffer buffer;
};

/* Those that are alike have elements each: dtc leaves a direction without elements to the MPI, and its datatypes with it. */
static struct side side(const struct group *group, int receives, int round, int alike, enum where where)
{
    struct side made = {.length = group->length};
    for (int at = 0; at < group->length; at++) {
        int from = receives ? group->others[at] : rank, to = receives ? rank : group->others[at];
        made.datatypes[at] = datatype_of(alike ? 0 : from * 3 + to + round, receives, &made.counts[at]);
        if (!alike && (from + to + round) % 7 == 3) made.counts[at] = 0;
        made.addresses[at] = made.places[at] = at * ROOM;
    }
    made.buffer = buffer(MPI_BYTE, PAIRS * ROOM, 7, has_device ? where : ON_HOST);
    return made;
}

static void free_datatypes(struct side *side)
{
    for (int at = 0; at < side->length; at++) MPI_Type_free(&side->datatypes[at]);
    side->length = 0;
}

static void side_drop(struct side *side)
{
    free_datatypes(side);
    release(&side->buffer);
}

static void init(int ours, const struct group *group, const struct side *out, const struct side *in, MPI_Request *request)
{
    if (group->neighbors)
        neighbor_inits[ours](out->buffer.memory, out->counts, out->addresses, out->datatypes, in->buffer.memory, in->counts,
                             in->addresses, in->datatypes, group->communicator, MPI_INFO_NULL, request);
    else
        inits[ours](out->buffer.memory, out->counts, out->places, out->datatypes, in->buffer.memory, in->counts, in->places,
                    in->datatypes, group->communicator, MPI_INFO_NULL, request);
}

/* The same by the MPI, on the host. */
static void exchange(const struct group *group, const struct side *out, const struct side *in)
{
    void *from = out->buffer.host.memory, *into = in->buffer.host.memory;
    if (group->neighbors)
        PMPI_Neighbor_alltoallw(from, out->counts, out->addresses, out->datatypes, into, in->counts, in->addresses, in->datatypes,
                                group->communicator);
    else
        PMPI_Alltoallw(from, out->counts, out->places, out->datatypes, into, in->counts, in->places, in->datatypes,
                       group->communicator);
}

/* One request, by all ranks with dtc or by some, and persistent messages around it, to the next rank of all. */
static void compare(const struct group *group, enum way way, int ignore, int round)
{
    enum { RECEIVE, COLLECTIVE, SEND, REQUESTS };
    int ours = has_device || round % 4 < 2 || rank % 2 == round % 2;
    int alike = round % 2 && LOSES_FREED_DATATYPES, left = (rank + ranks - 1) % ranks;
    enum where from = round % 3 ? ON_DEVICE : (enum where)((round + rank) % 3);
    enum where into = round % 3 ? ON_DEVICE : (enum where)((2 * round + rank + 1) % 3);
    /* Open MPI uses datatypes that were freed before the start (by its own calls alone it ends by a signal), so that it must have been given none:
       with a GPU, dtc may leave it what lies on the host. */
    int staged = ours && (!has_device || (from != ON_HOST && into != ON_HOST)), early = round % 2 && (staged || !LOSES_FREED_DATATYPES);
    struct side out = side(group, 0, round, alike, from), sent = side(group, 0, round, alike, ON_HOST);
    struct side in = side(group, 1, round, alike, into), expected = side(group, 1, round, alike, ON_HOST);
    MPI_Datatype rows = vector(3000, 1, 2);
    struct buffer message = buffer(rows, 1, 1, has_device ? ON_DEVICE : ON_HOST), received = buffer(rows, 1, 2, message.where);
    struct elements theirs = elements(rows, 1, 1), arrived = elements(rows, 1, 2);
    MPI_Request requests[REQUESTS];
    MPI_Status statuses[REQUESTS];
    int flag = 0;
    MPI_Recv_init(received.memory, 1, rows, left, TAG, MPI_COMM_WORLD, &requests[RECEIVE]);
    init(ours, group, &out, &in, &requests[COLLECTIVE]);
    MPI_Send_init(message.memory, 1, rows, (rank + 1) % ranks, TAG, MPI_COMM_WORLD, &requests[SEND]);
    if (early) free_datatypes(&out), free_datatypes(&in);
    /* A request that has not been started is complete. */
    if (KNOWS_INACTIVE && round % 3 == 0) MPI_Wait(&requests[COLLECTIVE], MPI_STATUS_IGNORE);
    if (KNOWS_INACTIVE && round % 3 == 1) {
        MPI_Test(&requests[COLLECTIVE], &flag, MPI_STATUS_IGNORE);
        CHECK(flag, "round %d", round);
    }
    for (int start = 0; start < STARTS; start++) {
        unsigned seed = (unsigned)(100 * start + 10 * round);
        download(&in.buffer);
        CHECK(same(in.buffer.host, expected.buffer.host), "before start %d of round %d", start, round);
        refill(&out.buffer, seed + (unsigned)rank), refill(&sent.buffer, seed + (unsigned)rank), refill(&message, seed + (unsigned)rank);
        for (long at = 0; at < theirs.length; at++) theirs.bytes[at] = byte_at(at, seed + (unsigned)left);
        expect(theirs, arrived, 12000);
        exchange(group, &sent, &expected);
        if (start % 2) for (int at = 0; at < REQUESTS; at++) MPI_Start(&requests[at]);
        else MPI_Startall(REQUESTS, requests);
        int first = KNOWS_INACTIVE ? 0 : COLLECTIVE, length = KNOWS_INACTIVE ? REQUESTS : 1;
        complete(way, length, &requests[first], ignore ? MPI_STATUSES_IGNORE : statuses);
        for (int at = 0; !KNOWS_INACTIVE && at < REQUESTS; at++) MPI_Wait(&requests[at], MPI_STATUS_IGNORE);
        /* What was received may be read by now, but for requests that no call has told of. */
        if (way == ASK_ANY || way == ASK_SOME) MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE);
        download(&in.buffer), download(&received);
        CHECK(same(in.buffer.host, expected.buffer.host), "start %d, round %d, way %d", start, round, way);
        CHECK(same(received.host, arrived), "message of start %d, round %d, way %d", start, round, way);
        if (way >= ASK) MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE);
    }
    for (int at = 0; at < REQUESTS; at++) MPI_Request_free(&requests[at]);
    CHECK(requests[COLLECTIVE] == MPI_REQUEST_NULL, "round %d", round);
    side_drop(&out), side_drop(&sent), side_drop(&in), side_drop(&expected);
    release(&message), release(&received), drop(theirs), drop(arrived);
    MPI_Type_free(&rows);
}

/* A request that is freed without a start leaves its elements alone. */
static void never_started(const struct group *group)
{
    struct side out = side(group, 0, 0, 1, ON_DEVICE), in = side(group, 1, 0, 1, ON_DEVICE);
    struct elements before = elements(MPI_BYTE, PAIRS * ROOM, 7);
    MPI_Request request;
    init(1, group, &out, &in, &request);
    MPI_Request_free(&request);
    download(&in.buffer);
    CHECK(request == MPI_REQUEST_NULL && same(in.buffer.host, before), "never started");
    side_drop(&out), side_drop(&in), drop(before);
}

/* What is received takes the place of what is sent. */
static void in_place(void)
{
    MPI_Datatype rows = vector(3000, 1, 2), datatypes[PAIRS];
    count_type counts[PAIRS];
    place_type places[PAIRS];
    MPI_Request request;
    struct buffer memory = buffer(rows, ranks, (unsigned)rank, has_device ? ON_DEVICE : ON_HOST);
    struct elements expected = elements(rows, ranks, (unsigned)rank);
    for (int at = 0; at < ranks; at++) counts[at] = 1, places[at] = at * (2 * 3000 - 1) * 4, datatypes[at] = rows;
    inits[1](MPI_IN_PLACE, NULL, NULL, NULL, memory.memory, counts, places, datatypes, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int start = 0; start < STARTS; start++) {
        PMPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, expected.memory, counts, places, datatypes, MPI_COMM_WORLD);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        download(&memory);
        CHECK(same(memory.host, expected), "in place, start %d", start);
    }
    MPI_Request_free(&request);
    release(&memory), drop(expected);
    MPI_Type_free(&rows);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    find_calls();
    has_device = !!getenv("DTC_CUDA_DRIVER");
    if (has_device) open_device(rank);
    struct group all = {MPI_COMM_WORLD, 0, ranks, {0}}, graph = {.neighbors = 1, .length = ranks}, line = {.neighbors = 1, .length = 2};
    int wide = ranks, straight = 0;
    for (int at = 0; at < ranks; at++) all.others[at] = graph.others[at] = at;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, ranks, graph.others, MPI_UNWEIGHTED, ranks, graph.others, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                   &graph.communicator);
    /* Its ends have one neighbor. */
    MPI_Cart_create(MPI_COMM_WORLD, 1, &wide, &straight, 0, &line.communicator);
    line.others[0] = rank > 0 ? rank - 1 : rank, line.others[1] = rank + 1 < ranks ? rank + 1 : rank;
    for (int way = 0; way < WAYS; way++) {
        if ((way == TESTALL || way == ASK_ALL) && !TESTS_ALL) continue;
        compare(&all, way, way % 2, way);
        compare(&graph, way, !(way % 2), way + 1);
        compare(&line, way, way % 2, way + 2);
    }
    never_started(&all), never_started(&graph);
    in_place();
    MPI_Comm_free(&graph.communicator), MPI_Comm_free(&line.communicator);
    if (rank == 0) puts("persistent_exchanges: done");
    MPI_Finalize();
    return 0;
}
