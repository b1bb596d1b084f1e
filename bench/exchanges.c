/*
 * Times the exchange of one element of many datatypes between two processes, with the MPI alone or with libdtc_mpi preloaded: the same
 * program, which `exchanges` builds of a folder.
 *
 * Prints, for each datatype, its bytes, and microseconds one way of MPI_Send and MPI_Recv, as DDTBench sends it back and forth, and of an
 * exchange in both directions with MPI_Irecv, MPI_Isend and MPI_Waitall: the shortest of all rounds. Every byte that is received is
 * compared. Arguments name the datatypes to measure; without any, all are.
 */
#include "../interfaces/mpi/tests/programs/programs.h"

#define CASE(name) MPI_Datatype build_##name(void);
#include "cases.def"
#undef CASE

static const struct {
    const char *name;
    MPI_Datatype (*build)(void);
} cases[] = {
#define CASE(name) {#name, build_##name},
#include "cases.def"
#undef CASE
};

enum { TAG = 1, ROUNDS = 9, MOST_CALLS = 200, MOST_BYTES = 256 << 20 };
static const double SECONDS = 0.002;

static void message(const struct elements *sent, const struct elements *received)
{
    if (rank == 0) MPI_Send(sent->memory, 1, sent->datatype, 1, TAG, MPI_COMM_WORLD);
    MPI_Recv(received->memory, 1, sent->datatype, !rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(sent->memory, 1, sent->datatype, 0, TAG, MPI_COMM_WORLD);
}

static void both_ways(const struct elements *sent, const struct elements *received)
{
    MPI_Request requests[2];
    MPI_Irecv(received->memory, 1, sent->datatype, !rank, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(sent->memory, 1, sent->datatype, !rank, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

typedef void exchange_function(const struct elements *, const struct elements *);

static double time_of(exchange_function *exchange, const struct elements *sent, const struct elements *received)
{
    double best = 1e9;
    int calls = 1;
    for (int round = -2; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        for (int call = 0; call < calls; call++) exchange(sent, received);
        double time = (MPI_Wtime() - start) / calls;
        if (round >= 0) {
            best = time < best ? time : best;
            continue;
        }
        /* The second call, which finds all that the first made, tells how many make a round. */
        calls = round < -1 || time > SECONDS ? 1 : time < SECONDS / MOST_CALLS ? MOST_CALLS : (int)(SECONDS / time);
        MPI_Bcast(&calls, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return best * 1e6;
}

/* One element in memory of its own, at a multiple of 2 MiB: where it lies within a page, and which pages are huge, is the same in each run. */
static struct elements element(MPI_Datatype datatype, unsigned seed)
{
    enum { HUGE_PAGE = 2 << 20 };
    struct elements made = elements(datatype, 1, seed);
    unsigned char *bytes = aligned_alloc(HUGE_PAGE, ((size_t)made.length + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    CHECK(bytes, "%ld bytes", made.length);
    memcpy(bytes, made.bytes, (size_t)made.length);
    made.memory = bytes + (made.memory - made.bytes);
    free(made.bytes);
    made.bytes = bytes;
    return made;
}

static void measure(const char *name, MPI_Datatype datatype)
{
    int bytes;
    MPI_Aint lb, extent;
    MPI_Type_commit(&datatype);
    MPI_Type_size(datatype, &bytes);
    MPI_Type_get_true_extent(datatype, &lb, &extent);
    if (extent <= MOST_BYTES) {
        struct elements sent = element(datatype, 1), received = element(datatype, 2), expected = element(datatype, 2);
        expect(sent, expected, bytes);
        both_ways(&sent, &received);
        CHECK(same(received, expected), "%s", name);
        double one = time_of(message, &sent, &received) / 2, both = time_of(both_ways, &sent, &received);
        CHECK(same(received, expected), "%s", name);
        if (rank == 0) printf("%s %d %.2f %.2f\n", name, bytes, one, both);
        drop(sent), drop(received), drop(expected);
    }
    MPI_Type_free(&datatype);
}

static int is_named(const char *name, int argc, char **argv)
{
    for (int at = 1; at < argc; at++)
        if (!strcmp(argv[at], name)) return 1;
    return argc < 2;
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(ranks == 2, "%d ranks", ranks);
    if (rank == 0) puts("datatype bytes message exchange");
    for (unsigned at = 0; at < sizeof cases / sizeof *cases; at++)
        if (is_named(cases[at].name, argc, argv)) measure(cases[at].name, cases[at].build());
    MPI_Finalize();
    return 0;
}
