/* small_calls [ROUNDS]: nanoseconds of one call that packs or unpacks a small type, beside the loop by hand.
 *
 *     cc -O3 -march=native -I PREFIX/include bench/small_calls.c -o small_calls -L PREFIX/lib -ldtc -Wl,-rpath,PREFIX/lib
 *
 * Prints a line for each type and count, of engines that compile no code (generic) and of engines that do (compiled): the loop, the
 * call with host memory named in its transfer, and the call with a null transfer; packs, then unpacks. Each is the least of ROUNDS
 * interleaved rounds of CALLS calls, in memory that is warm. */
#include <dtc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CALLS = 2000, STRIDE = 14, MOST = 512, RECORD = 24, PACKED_RECORD = 20 };

static void require(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "small_calls: %s: %s\n", what, dtc_message());
        exit(1);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec * 1e9 + (double) time.tv_nsec;
}

static char *memory, *packed;

/* The loops, apart from their callers as those of an application are. */
__attribute__((noinline)) static void pack_vector(char *restrict to, const char *restrict from, int64_t count)
{
    const double *doubles = (const double *) from;
    for (int64_t at = 0; at < count; at++)
        ((double *) to)[at] = doubles[at * STRIDE];
}

__attribute__((noinline)) static void unpack_vector(char *restrict to, const char *restrict from, int64_t count)
{
    const double *doubles = (const double *) from;
    for (int64_t at = 0; at < count; at++)
        ((double *) to)[at * STRIDE] = doubles[at];
}

__attribute__((noinline)) static void pack_records(char *restrict to, const char *restrict from, int64_t count)
{
    for (int64_t at = 0; at < count; at++, to += PACKED_RECORD, from += RECORD) {
        memcpy(to, from, 4);
        memcpy(to + 4, from + 8, 8);
        memcpy(to + 12, from + 16, 8);
    }
}

__attribute__((noinline)) static void unpack_records(char *restrict to, const char *restrict from, int64_t count)
{
    for (int64_t at = 0; at < count; at++, to += RECORD, from += PACKED_RECORD) {
        memcpy(to, from, 4);
        memcpy(to + 8, from + 4, 8);
        memcpy(to + 16, from + 12, 8);
    }
}

typedef void (*loop)(char *restrict to, const char *restrict from, int64_t count);

struct shape {
    const char *name;
    /* Arguments of the loop, and of the call. */
    int64_t copies, count, bytes;
    loop pack, unpack;
    dtc_type *type;
};

enum { COLUMNS = 6 };

/* The nanoseconds of a call of one column. */
static double sample(const struct shape *of, int column, const dtc_transfer *host)
{
    const dtc_transfer *transfer = column % 3 == 1 ? host : NULL;
    int64_t moved = 0;
    double start = now();
    for (int call = 0; call < CALLS; call++) {
        switch (column) {
        case 0: of->pack(packed, memory, of->copies); break;
        case 3: of->unpack(memory, packed, of->copies); break;
        case 1:
        case 2: require(!dtc_pack(of->type, memory, of->count, 0, packed, of->bytes, &moved, transfer), "pack"); break;
        default: require(!dtc_unpack(of->type, memory, of->count, 0, packed, of->bytes, &moved, transfer), "unpack");
        }
        __asm__ volatile("" ::: "memory");
    }
    double time = (now() - start) / CALLS;
    require(column % 3 == 0 || moved == of->bytes, "bytes moved");
    return time;
}

/* A call moves what the loop moves. */
static void check(const struct shape *of)
{
    char *expected = malloc(of->bytes);
    int64_t moved;
    of->pack(expected, memory, of->copies);
    require(!dtc_pack(of->type, memory, of->count, 0, packed, of->bytes, &moved, NULL), "pack");
    require(!memcmp(expected, packed, of->bytes), "packed bytes differ from the loop's");
    free(expected);
}

static void measure(dtc_engine *engine, const char *tier, int rounds)
{
    static const char *basic[2] = {"MPI_INT", "MPI_DOUBLE"};
    static const int64_t lengths[2] = {1, 2}, places[2] = {0, 8}, counts[4] = {1, 8, 64, MOST};
    dtc_transfer host = DTC_TRANSFER_INIT;
    host.memory = host.packed = DTC_MEMORY_HOST;
    dtc_type *types[2], *record;
    for (int at = 0; at < 2; at++)
        require(!dtc_type_named(engine, basic[at], &types[at]), "named");
    require(!dtc_type_struct(engine, 2, lengths, places, (const dtc_type *const *) types, &record), "struct");
    require(!dtc_type_commit(record, 0), "commit");
    struct shape shapes[8];
    char names[8][32];
    for (int at = 0; at < 4; at++) {
        struct shape *vector = &shapes[at], *records = &shapes[4 + at];
        int64_t count = counts[at], elements = at == 3 ? 256 : count;
        *vector = (struct shape){names[at], count, 1, count * 8, pack_vector, unpack_vector, NULL};
        *records = (struct shape){names[4 + at], elements, elements, elements * PACKED_RECORD, pack_records, unpack_records, record};
        snprintf(names[at], sizeof names[at], "vector of %d", (int) count);
        snprintf(names[4 + at], sizeof names[4 + at], "records: %d", (int) elements);
        require(!dtc_type_vector(count, 1, STRIDE, types[1], &vector->type), "vector");
        require(!dtc_type_commit(vector->type, 0), "commit");
    }
    for (int at = 0; at < 8; at++) {
        double least[COLUMNS];
        check(&shapes[at]);
        for (int column = 0; column < COLUMNS; column++)
            least[column] = 1e18;
        /* The first round warms the type up. */
        for (int round = 0; round <= rounds; round++)
            for (int column = 0; column < COLUMNS; column++) {
                double time = sample(&shapes[at], column, &host);
                if (round > 0 && time < least[column])
                    least[column] = time;
            }
        printf("%-9s %-14s", tier, shapes[at].name);
        for (int column = 0; column < COLUMNS; column++)
            printf(" %7.1f", least[column]);
        printf("\n");
    }
}

int main(int count, char **arguments)
{
    int rounds = count > 1 ? atoi(arguments[1]) : 200;
    dtc_config config = DTC_CONFIG_INIT;
    memory = calloc(MOST * STRIDE, 8);
    packed = calloc(MOST, 64);
    for (int at = 0; at < MOST * STRIDE * 8; at++)
        memory[at] = (char) (at * 7);
    printf("%-24s %7s %7s %7s %7s %7s %7s\n", "ns", "loop", "host", "NULL", "loop", "host", "NULL");
    printf("%-24s %7s %7s %7s %7s %7s %7s\n", "", "pack", "", "", "unpack", "", "");
    for (int compiled = 0; compiled < 2; compiled++) {
        dtc_engine *engine;
        config.policy = compiled ? DTC_POLICY_EAGER : DTC_POLICY_OFF;
        require(!dtc_init(&config, &engine), "init");
        measure(engine, compiled ? "compiled" : "generic", rounds);
        dtc_finalize(engine);
    }
    return 0;
}
