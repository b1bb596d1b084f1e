/* first_pack [ROUNDS]: nanoseconds of creating a type, committing it, packing it once and freeing it.
 *
 * Programs of one source, whose columns can be compared:
 *     mpicc -O2 first_pack.c -o first_pack.mpi                            an MPI, with whatever engine it has
 *     cc -O2 -DYAKSA -I interfaces/yaksa/include first_pack.c -lyaksa  the interface of Yaksa alone
 *     cc -O2 -DDTC -I interfaces/c/include first_pack.c -ldtc -lm  the C interface of dtc
 * "new" types differ from every earlier one, "known" types were made before. "life" is the same without the pack.
 * Prints a line for each shape: shape, new, known, life; the least of ROUNDS samples each. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef YAKSA
#include <yaksa.h>
typedef yaksa_type_t type;
typedef intptr_t number;
#define DOUBLE YAKSA_TYPE__DOUBLE
#define INT YAKSA_TYPE__INT
#define CHAR YAKSA_TYPE__CHAR
#define vector(count, length, stride, old, new) yaksa_type_create_vector(count, length, stride, old, NULL, new)
#define indexed(count, lengths, places, old, new) yaksa_type_create_indexed(count, lengths, places, old, NULL, new)
#define subarray(axes, sizes, sub, starts, old, new) \
    yaksa_type_create_subarray(axes, sizes, sub, starts, YAKSA_SUBARRAY_ORDER__C, old, NULL, new)
#define structure(count, lengths, places, old, new) yaksa_type_create_struct(count, lengths, places, old, NULL, new)
#define contiguous(count, old, new) yaksa_type_create_contig(count, old, NULL, new)
typedef intptr_t place;
static void commit(type *of) { (void) of; }
static void release(type *of) { yaksa_type_free(*of); }
static void pack(const char *memory, type of, char *packed, int room)
{
    uintptr_t moved;
    yaksa_pack(memory, 1, of, 0, packed, (uintptr_t) room, &moved, NULL, YAKSA_OP__REPLACE);
}
static void begin(void) { yaksa_init(NULL); }
static void end(void) { yaksa_finalize(); }
#elif defined DTC
#include <dtc.h>
typedef dtc_type *type;
typedef int64_t number;
typedef int64_t place;
static dtc_engine *engine;
static dtc_type *basic[3];
#define DOUBLE basic[0]
#define INT basic[1]
#define CHAR basic[2]
#define vector(count, length, stride, old, new) dtc_type_vector(count, length, stride, old, new)
#define indexed(count, lengths, places, old, new) dtc_type_indexed(count, lengths, places, old, new)
#define subarray(axes, sizes, sub, starts, old, new) dtc_type_subarray(axes, sizes, sub, starts, DTC_ORDER_C, old, new)
#define structure(count, lengths, places, old, new) \
    dtc_type_struct(engine, count, lengths, places, (const dtc_type *const *) (old), new)
#define contiguous(count, old, new) dtc_type_contiguous(count, old, new)
static void commit(type *of) { dtc_type_commit(*of, 0); }
static void release(type *of) { dtc_type_release(*of); }
static void pack(const char *memory, type of, char *packed, int room)
{
    int64_t moved;
    if (dtc_pack(of, memory, 1, 0, packed, room, &moved, NULL))
        abort();
}
static void begin(void)
{
    static const char *names[3] = {"MPI_DOUBLE", "MPI_INT", "MPI_CHAR"};
    dtc_init(NULL, &engine);
    for (int at = 0; at < 3; at++)
        dtc_type_named(engine, names[at], &basic[at]);
}
static void end(void) { dtc_finalize(engine); }
#else
#include <mpi.h>
typedef MPI_Datatype type;
typedef int number;
typedef MPI_Aint place;
#define DOUBLE MPI_DOUBLE
#define INT MPI_INT
#define CHAR MPI_CHAR
#define vector MPI_Type_vector
#define indexed MPI_Type_indexed
#define subarray(axes, sizes, sub, starts, old, new) \
    MPI_Type_create_subarray(axes, sizes, sub, starts, MPI_ORDER_C, old, new)
#define structure MPI_Type_create_struct
#define contiguous MPI_Type_contiguous
static void commit(type *of) { MPI_Type_commit(of); }
static void release(type *of) { MPI_Type_free(of); }
static void pack(const char *memory, type of, char *packed, int room)
{
    int position = 0;
    MPI_Pack(memory, 1, of, packed, room, &position, MPI_COMM_SELF);
}
static void begin(void) { MPI_Init(NULL, NULL); }
static void end(void) { MPI_Finalize(); }
#endif

static type make_vector(number variant)
{
    type made;
    vector(8, 2, 3 + variant, DOUBLE, &made);
    return made;
}

static type make_subarray(number variant)
{
    number sizes[2] = {12, 10 + variant}, sub[2] = {6, 5}, starts[2] = {3, 2};
    type made;
    subarray(2, sizes, sub, starts, DOUBLE, &made);
    return made;
}

static type make_indexed(number variant)
{
    number lengths[32], places[32];
    for (number at = 0; at < 32; at++) {
        lengths[at] = 1 + at % 3;
        places[at] = at * (5 + variant) + at % 2;
    }
    type made;
    indexed(32, lengths, places, DOUBLE, &made);
    return made;
}

static type make_structs(number variant)
{
    number lengths[3] = {1, 2, 3};
    place places[3] = {0, 16, 40 + 4 * variant};
    type parts[3] = {DOUBLE, INT, CHAR}, one, made;
    structure(3, lengths, places, parts, &one);
    contiguous(8, one, &made);
    release(&one);
    return made;
}

typedef type (*maker)(number variant);

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec * 1e9 + (double) time.tv_nsec;
}

enum { CALLS = 400, ROOM = 4096 };
static char *memory, *packed;

/* One sample: CALLS types, each another variant from `first` on, or all the same. */
static double sample(maker make, int first, int distinct, int packs)
{
    double start = now();
    for (int at = 0; at < CALLS; at++) {
        type made = make(distinct ? first + at : 7);
        commit(&made);
        if (packs)
            pack(memory, made, packed, ROOM);
        release(&made);
    }
    return (now() - start) / CALLS;
}

int main(int count, char **arguments)
{
    int rounds = count > 1 ? atoi(arguments[1]) : 25;
    static const struct {
        const char *name;
        maker make;
    } shapes[] = {{"vector", make_vector}, {"subarray", make_subarray}, {"indexed_32", make_indexed}, {"structs", make_structs}};
    begin();
    memory = malloc(64 << 20);
    packed = malloc(ROOM);
    memset(memory, 1, 64 << 20);
    for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++) {
        double least[3] = {1e18, 1e18, 1e18};
        for (int round = 0; round < rounds; round++) {
            double times[3] = {sample(shapes[shape].make, 10 + round * CALLS, 1, 1), sample(shapes[shape].make, 0, 0, 1),
                               sample(shapes[shape].make, 10 + round * CALLS, 1, 0)};
            for (int at = 0; at < 3; at++)
                least[at] = times[at] < least[at] ? times[at] : least[at];
        }
        printf("%-12s new %8.1f  known %8.1f  life %8.1f\n", shapes[shape].name, least[0], least[1], least[2]);
    }
    end();
    return 0;
}
