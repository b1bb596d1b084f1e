/*
 * Reductions of one-sided calls on types drawn at random, in windows of all processes. What each should leave in the window, and give
 * back, this program computes by MPI_Reduce_local of contiguous elements and its own lists of displacements.
 *
 *   mpiexec -n N accumulate [TYPES [SEED [WORDS]]]
 *
 * WORDS are some of "created", for windows in memory of this program, where MPI else allocates them, "locks", for calls between locks,
 * where they else are between fences, and "get", for MPI_Get_accumulate instead of MPI_Accumulate. Nothing that is checked is specific to dtc. Prints the first
 * failures, then how many types, bytes and calls there were and how many calls failed. Returns 1 if one failed.
 */
#include <complex.h>

#include "types.h"

enum { ROOM = 1 << 21 };

/* Packed bytes of a call. In created windows osc/rdma exchanges messages for each piece. */
static long most_packed = 200000;

/* Values that are exact in every operation on them. */
enum class { INTEGERS, BYTES, LOGICALS, PAIRS, FLOATS, DOUBLES, LONG_DOUBLES, FLOAT_COMPLEXES, DOUBLE_COMPLEXES };

static const struct {
    MPI_Datatype type;
    enum class class;
} kinds[] = {
    {MPI_INT8_T, INTEGERS},      {MPI_UINT8_T, INTEGERS},        {MPI_SHORT, INTEGERS},
    {MPI_UNSIGNED_SHORT, INTEGERS}, {MPI_INT, INTEGERS},         {MPI_INT, INTEGERS},
    {MPI_UINT32_T, INTEGERS},    {MPI_LONG, INTEGERS},           {MPI_INT64_T, INTEGERS},
    {MPI_UINT64_T, INTEGERS},    {MPI_BYTE, BYTES},              {MPI_C_BOOL, LOGICALS},
    {MPI_2INT, PAIRS},           {MPI_FLOAT, FLOATS},            {MPI_FLOAT, FLOATS},
    {MPI_DOUBLE, DOUBLES},       {MPI_DOUBLE, DOUBLES},          {MPI_LONG_DOUBLE, LONG_DOUBLES},
    {MPI_C_FLOAT_COMPLEX, FLOAT_COMPLEXES}, {MPI_C_DOUBLE_COMPLEX, DOUBLE_COMPLEXES}};

static MPI_Op operation_for(enum class class) {
    const MPI_Op of_integers[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};
    const MPI_Op of_pairs[] = {MPI_MINLOC, MPI_MAXLOC};
    if (draw(0, 11) == 0) {
        return MPI_REPLACE;
    }
    switch (class) {
    case INTEGERS:
        return of_integers[draw(0, 9)];
    case BYTES:
        return of_integers[draw(7, 9)];
    case LOGICALS:
        return of_integers[draw(4, 6)];
    case PAIRS:
        return of_pairs[draw(0, 1)];
    case FLOATS:
    case DOUBLES:
    case LONG_DOUBLES:
        return of_integers[draw(0, 3)];
    default:
        return of_integers[draw(0, 1)];
    }
}

static check reductions = {"reductions", 0};
static long calls;
static int ranks, locks, gets;

/* Contiguous values that a process has for a type, the same whoever asks. `salt` tells those of the window from those that are added. */
static unsigned char *values(enum class class, long bytes, int of_rank, int salt) {
    unsigned char *made = memory_of(bytes);
    uint64_t kept = state;
    state = (uint64_t)type_number * 7919 + (uint64_t)(of_rank * 2 + salt);
    memset(made, 0, (size_t)bytes);
    for (long at = 0; at < bytes; at += grain) {
        unsigned char *place = made + at;
        long number = draw(-99, 99), other = draw(-9, 9);
        switch (class) {
        case LOGICALS:
            *(_Bool *)place = draw(0, 1) == 1;
            break;
        case FLOATS:
            *(float *)place = (float)number / 4;
            break;
        case DOUBLES:
            *(double *)place = (double)number / 4;
            break;
        case LONG_DOUBLES:
            *(long double *)place = (long double)number / 4;
            break;
        case FLOAT_COMPLEXES:
            *(float complex *)place = (float)number + (float)other * I;
            break;
        case DOUBLE_COMPLEXES:
            *(double complex *)place = (double)number + (double)other * I;
            break;
        case INTEGERS:
            /* Open MPI's sums of short integers saturate in some of its code, and wrap around in the rest: none may overflow. */
            if (grain <= 2) {
                place[0] = (unsigned char)draw(0, grain == 1 ? 11 : 150);
                break;
            }
            /* fall through */
        default:
            for (long byte = 0; byte < grain; byte++) {
                place[byte] = (unsigned char)draw(0, 255);
            }
        }
    }
    state = kept;
    return made;
}

/* Long doubles have 10 bytes; what is in the others, MPI does not say. */
static int is_padding(long at) { return only == MPI_LONG_DOUBLE && at % grain >= 10; }

static void scatter(const elements *laid, unsigned char *memory, const unsigned char *packed) {
    for (long at = 0; at < laid->bytes; at++) {
        memory[laid->at[at] - laid->low] = packed[at];
    }
}

/* Compares memory with poison in which packed bytes are. */
static int is_expected(const elements *laid, const unsigned char *memory, const unsigned char *packed, const char *where) {
    unsigned char *image = memory_of(laid->span + 2 * GUARD);
    int same = 1;
    memset(image, POISON, (size_t)(laid->span + 2 * GUARD));
    scatter(laid, image + GUARD, packed);
    for (long at = 0; at < laid->bytes; at++) {
        if (is_padding(at)) {
            image[GUARD + laid->at[at] - laid->low] = memory[laid->at[at] - laid->low];
        }
    }
    for (long at = 0; same && at < laid->span + 2 * GUARD; at++) {
        if (memory[at - GUARD] != image[at]) {
            fail("%s: byte %ld of %ld: expected %d, found %d", where, at - GUARD, laid->span, image[at], memory[at - GUARD]);
            same = 0;
        }
    }
    free(image);
    return same;
}

/* One side of a call. */
typedef struct {
    drawn type;
    long count;
    elements laid;
} side;

static side side_of(drawn type, long packed) {
    side made = {type, type.bytes > 0 ? packed / type.bytes : 0, {0}};
    MPI_Type_commit(&made.type.type);
    made.laid = lay_out(&made.type, made.count, 0);
    return made;
}

static void drop(side *old) {
    end(&old->laid);
    release(&old->type);
}

static drawn plain(void) { return node(0); }

static long common_multiple(long one, long other) {
    long first = one, second = other;
    while (second != 0) {
        long rest = first % second;
        first = second;
        second = rest;
    }
    return one / first * other;
}

/* Another type for as many packed bytes, which divide them: a drawn one, the element alone, or none, for the same type. */
static drawn fitting(long packed, long depth) {
    drawn made = draw(0, 2) ? node((int)depth) : plain();
    if (made.bytes == 0 || packed % made.bytes != 0) {
        release(&made);
        made = plain();
    }
    return made;
}

typedef struct {
    MPI_Win window;
    unsigned char *memory; /* The middle, where elements are. */
} place;

/* Takes the own window for this process's loads and stores, and gives it back; all processes do it at once. */
static void own(const place *in, int takes) {
    if (!locks) {
        MPI_Win_fence(0, in->window);
    } else if (takes) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, in->window);
    } else {
        MPI_Win_unlock(rank, in->window);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void call(const place *in, const side *origin, const side *target, const side *result, MPI_Op operation) {
    int peer = (rank + 1) % ranks;
    MPI_Aint middle = ROOM / 2 - target->laid.low;
    void *from = base(&origin->laid);
    if (locks) {
        MPI_Win_lock(draw(0, 1) ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, peer, 0, in->window);
    }
    if (result != NULL) {
        MPI_Get_accumulate(from, (int)origin->count, origin->type.type, base(&result->laid), (int)result->count, result->type.type, peer,
                           middle, (int)target->count, target->type.type, operation, in->window);
    } else {
        MPI_Accumulate(from, (int)origin->count, origin->type.type, peer, middle, (int)target->count, target->type.type, operation,
                       in->window);
    }
    if (locks) {
        MPI_Win_unlock(peer, in->window);
    }
}

/* A call on elements of three types, and what it should leave. */
static void check_call(const place *in, enum class class, const side *origin, const side *target, const side *result) {
    int from = (rank + ranks - 1) % ranks, to = (rank + 1) % ranks;
    long packed = target->laid.bytes;
    MPI_Op operation = operation_for(class);
    if (result != NULL && draw(0, 5) == 0) {
        operation = MPI_NO_OP;
    }
    unsigned char *present = values(class, packed, rank, 0), *added = values(class, packed, rank, 1);
    unsigned char *arriving = values(class, packed, from, 1), *given = values(class, packed, to, 0);
    own(in, 1);
    memset(in->memory - GUARD, POISON, (size_t)(target->laid.span + 2 * GUARD));
    scatter(&target->laid, in->memory, present);
    scatter(&origin->laid, origin->laid.memory, added);
    own(in, 0);
    call(in, origin, target, result, operation);
    if (operation == MPI_REPLACE) {
        memcpy(present, arriving, (size_t)packed);
    } else if (operation != MPI_NO_OP) {
        MPI_Reduce_local(arriving, present, (int)(packed / grain), only, operation);
    }
    own(in, 1);
    calls++;
    if (is_expected(&target->laid, in->memory, present, "window") && result != NULL) {
        is_expected(&result->laid, result->laid.memory, given, "result");
    }
    free(present);
    free(added);
    free(arriving);
    free(given);
    own(in, 0);
}

/* Draws three types of the same elements, and calls. Returns the packed bytes. */
static long one_type(const place *in) {
    int kind = (int)draw(0, sizeof kinds / sizeof *kinds - 1), size;
    only = kinds[kind].type;
    MPI_Type_size(only, &size);
    grain = size;
    drawn made = node((int)draw(1, 5)), other = node((int)draw(0, 4));
    made = made.bytes > 0 ? made : plain();
    other = other.bytes > 0 ? other : plain();
    long packed = common_multiple(made.bytes, other.bytes);
    if (packed > most_packed) {
        release(&other);
        other = plain();
        packed = made.bytes;
    }
    long most = draw(0, 9) ? 3 : most_packed / packed;
    packed *= draw(1, most > 1 ? most : 1);
    side target = side_of(made, packed), origin = side_of(other, packed), result = side_of(fitting(packed, 4), packed);
    /* Repeated values have no order; of an origin only one value is there. */
    int fits = target.laid.span < ROOM / 2 - GUARD && !target.laid.repeats && !origin.laid.repeats;
    fits &= !gets || !result.laid.repeats;
    if (fits) {
        check_call(in, kinds[kind].class, &origin, &target, gets ? &result : NULL);
    }
    drop(&target);
    drop(&origin);
    drop(&result);
    return fits ? packed : 0;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    checking = &reductions;
    long types = argc > 1 ? atol(argv[1]) : 500, bytes = 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    const char *words = argc > 3 ? argv[3] : "";
    int allocated = strstr(words, "created") == NULL;
    most_packed = allocated ? most_packed : most_packed / 20;
    locks = strstr(words, "locks") != NULL;
    gets = strstr(words, "get") != NULL;
    unsigned char *memory;
    place in;
    if (allocated) {
        MPI_Win_allocate(ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &in.window);
    } else {
        memory = memory_of(ROOM);
        MPI_Win_create(memory, ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &in.window);
    }
    in.memory = memory + ROOM / 2;
    for (type_number = 0; type_number < types; type_number++) {
        /* All ranks draw the same. */
        state = (seed << 32) + (uint64_t)type_number * 977;
        bytes += one_type(&in);
    }
    if (rank == 0) {
        printf("%ld types: %ld bytes, %ld calls\n", types, bytes, calls);
    }
    if (reductions.failures > 0) {
        printf("rank %d: %ld failed\n", rank, reductions.failures);
    }
    MPI_Win_free(&in.window);
    if (!allocated) {
        free(memory);
    }
    MPI_Finalize();
    return reductions.failures > 0;
}
