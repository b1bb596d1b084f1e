/*
 * Times messages of vectors of doubles between two processes, with the MPI alone or with libdtc_mpi preloaded: the same program.
 *
 *     messages            elements in memory of the host, in blocks that lie at twice their length
 *     messages device     elements in memory of a GPU for each process, in blocks that lie at 512 bytes, or at twice their length
 *
 * Prints, for each length of block and number of bytes, microseconds one way of MPI_Send and MPI_Recv, of the same with as many
 * contiguous bytes, of an exchange of four messages in both directions with MPI_Irecv, MPI_Isend and MPI_Waitall, and of MPI_Pack: the
 * shortest of all rounds; "-" for an exchange that would take more than 2 GiB. What is received is compared, every byte, once for each.
 */
#include "../interfaces/mpi/tests/programs/device.h"

/* Messages of an exchange, rounds of which the shortest counts, and seconds that the calls of one should take. */
enum { MESSAGES = 4, ROUNDS = 7 };
static const double SECONDS = 0.02;

/* Most bytes of elements of an exchange. */
static const long MOST = 2L << 30;

enum kind { MESSAGE, CONTIGUOUS, EXCHANGE, PACK, KINDS };

static enum where where;

/* Elements that are sent, those that are received, and packed data. */
static unsigned char *memory, *back, *packed;

static unsigned char *take(long bytes)
{
    uintptr_t there = 0;
    if (where == ON_HOST) there = (uintptr_t)malloc((size_t)bytes);
    else CHECK(!cuda.MemAlloc_v2(&there, (size_t)bytes), "%ld bytes", bytes);
    CHECK(there, "%ld bytes", bytes);
    return (unsigned char *)there;
}

static void give(unsigned char *taken)
{
    if (where == ON_HOST) free(taken);
    else cuda.MemFree_v2((uintptr_t)taken);
}

static void round_trip(int count, MPI_Datatype datatype)
{
    if (rank == 0) MPI_Send(memory, count, datatype, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(back, count, datatype, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(memory, count, datatype, 0, 0, MPI_COMM_WORLD);
}

static void exchange(MPI_Datatype rows, long length, int messages)
{
    MPI_Request requests[2 * MESSAGES];
    for (int at = 0; at < messages; at++)
        MPI_Irecv(back + at * length, 1, rows, !rank, at, MPI_COMM_WORLD, &requests[at]);
    for (int at = 0; at < messages; at++)
        MPI_Isend(memory + at * length, 1, rows, !rank, at, MPI_COMM_WORLD, &requests[messages + at]);
    MPI_Waitall(2 * messages, requests, MPI_STATUSES_IGNORE);
}

static void call(enum kind kind, MPI_Datatype rows, long length, long bytes)
{
    int position = 0;
    if (kind == MESSAGE) round_trip(1, rows);
    if (kind == CONTIGUOUS) round_trip((int)bytes, MPI_BYTE);
    if (kind == EXCHANGE) exchange(rows, length, MESSAGES);
    if (kind == PACK) MPI_Pack(memory, 1, rows, packed, (int)bytes, &position, MPI_COMM_WORLD);
}

static double time_of(enum kind kind, MPI_Datatype rows, long length, long bytes)
{
    double best = 1e9;
    int calls = 1, rounds = ROUNDS;
    for (int round = -1; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        for (int at = 0; at < calls; at++) call(kind, rows, length, bytes);
        double time = (MPI_Wtime() - begin) / calls;
        if (round >= 0) best = time < best ? time : best;
        if (round >= 0) continue;
        /* The first call tells how many make a round; one that takes long is repeated once. */
        calls = time < SECONDS / 300 ? 300 : time < SECONDS ? (int)(SECONDS / time) : 1;
        rounds = time > 1 ? 1 : ROUNDS;
        MPI_Bcast(&calls, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Bcast(&rounds, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return best * 1e6 / (kind == MESSAGE || kind == CONTIGUOUS ? 2 : 1);
}

static unsigned char sent_at(long place)
{
    return (unsigned char)(place * 167 + (place >> 8) * 13 + (place >> 16) * 5);
}

enum { UNTOUCHED = 0xa5 };

static void fill(long bytes)
{
    unsigned char *values = where == ON_HOST ? memory : malloc((size_t)bytes);
    for (long at = 0; at < bytes; at++) values[at] = sent_at(at);
    if (where == ON_HOST) {
        memset(back, UNTOUCHED, (size_t)bytes);
        return;
    }
    CHECK(!cuda.MemcpyHtoD_v2((uintptr_t)memory, values, (size_t)bytes), "copy");
    memset(values, UNTOUCHED, (size_t)bytes);
    CHECK(!cuda.MemcpyHtoD_v2((uintptr_t)back, values, (size_t)bytes), "copy");
    free(values);
}

static void compare(long bytes, long blocks, long block, long stride, long length)
{
    unsigned char *values = back;
    if (where == ON_DEVICE) {
        values = malloc((size_t)bytes);
        CHECK(!cuda.MemcpyDtoH_v2(values, (uintptr_t)back, (size_t)bytes), "copy");
    }
    for (long at = 0; at < bytes; at++) {
        long place = at % length;
        unsigned char expected = place % stride < block && place < blocks * stride ? sent_at(at) : UNTOUCHED;
        CHECK(values[at] == expected, "byte %ld: expected %d, found %d", at, expected, values[at]);
    }
    if (where == ON_DEVICE) free(values);
}

static void measure(long block, long stride, long bytes)
{
    long blocks = bytes / block, length = blocks * stride;
    int messages = MESSAGES * length <= MOST ? MESSAGES : 1;
    MPI_Datatype rows;
    if (blocks < 2) return;
    MPI_Type_vector((int)blocks, (int)block / 8, (int)stride / 8, MPI_DOUBLE, &rows);
    MPI_Type_commit(&rows);
    memory = take(messages * length), back = take(messages * length), packed = take(bytes);
    fill(messages * length);
    exchange(rows, length, messages);
    compare(messages * length, blocks, block, stride, length);
    double times[KINDS];
    for (enum kind kind = 0; kind < KINDS; kind++)
        times[kind] = kind != EXCHANGE || messages == MESSAGES ? time_of(kind, rows, length, bytes) : -1;
    if (rank == 0) printf("%ld %ld %.2f %.2f ", block, bytes, times[MESSAGE], times[CONTIGUOUS]);
    if (rank == 0 && times[EXCHANGE] < 0) printf("- %.2f\n", times[PACK]);
    if (rank == 0 && times[EXCHANGE] >= 0) printf("%.2f %.2f\n", times[EXCHANGE], times[PACK]);
    fflush(stdout);
    give(memory), give(back), give(packed);
    MPI_Type_free(&rows);
}

int main(int argc, char **argv)
{
    where = argc > 1 && !strcmp(argv[1], "device") ? ON_DEVICE : ON_HOST;
    if (where == ON_DEVICE) open_device(launched_rank());
    begin(&argc, &argv);
    if (rank == 0) puts("block bytes message contiguous exchange pack");
    if (where == ON_HOST) {
        for (long block = 8; block <= 1024; block *= block < 32 ? 4 : 2)
            for (long bytes = 1024; bytes <= 1 << 20; bytes *= bytes < 8192 ? 2 : bytes < 1 << 16 ? 8 : 4)
                measure(block, 2 * block, bytes);
    } else {
        /* The largest number of bytes can be given, to spare an MPI that takes seconds for it. */
        long most = argc > 2 ? atol(argv[2]) : 64L << 20, blocks[] = {8, 128, 1024};
        for (int at = 0; at < 3; at++)
            for (long bytes = 1024; bytes <= most; bytes *= 4) measure(blocks[at], blocks[at] < 512 ? 512 : 2 * blocks[at], bytes);
    }
    MPI_Finalize();
    return 0;
}
