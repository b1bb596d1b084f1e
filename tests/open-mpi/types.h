/*
 * Types drawn at random, with the displacement of each of their packed bytes, and elements of them in memory. For the programs of this
 * folder that MPI compiles.
 */
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 6000, MOST_BLOCKS = 6, GUARD = 64, POISON = 0xa5 };

/* A type, and the displacement of each of its packed bytes. */
typedef struct {
    MPI_Datatype type;
    long bytes;
    long *at;
} drawn;

/* Elements of a type in memory of this program, between guards. */
typedef struct {
    long bytes, low, span;
    long *at; /* Displacements of the packed bytes of all elements. */
    int repeats;
    unsigned char *memory; /* The byte at displacement `low`, GUARD bytes before it are the guard. */
} elements;

/* What is checked of a type, and how often that failed. */
typedef struct {
    const char *name;
    long failures;
} check;

static check *checking;
static long type_number;
static int rank;

/* Counts a failure of what is checked, and prints the first ones: what was expected, and what was found. */
static void fail(const char *form, ...) {
    if (checking->failures++ < 5) {
        va_list arguments;
        va_start(arguments, form);
        fprintf(stderr, "rank %d, type %ld, %s: ", rank, type_number, checking->name);
        vfprintf(stderr, form, arguments);
        fputc('\n', stderr);
        va_end(arguments);
    }
}

static uint64_t state;

/* The predefined type that all types are made of, and the unit of bounds and displacements; null and 1: types are mixed, and may be unaligned. */
static MPI_Datatype only = MPI_DATATYPE_NULL;
static long grain = 1;

static long draw(long from, long to) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return from + (long)((state >> 33) % (uint64_t)(to - from + 1));
}

/* A length or a displacement in bytes. */
static long draw_bytes(long from, long to) { return draw(from, to) * grain; }

static void *memory_of(long bytes) {
    void *made = malloc((size_t)(bytes > 0 ? bytes : 1));
    if (made == NULL) {
        fprintf(stderr, "expected %ld bytes of memory, found none\n", bytes);
        exit(1);
    }
    return made;
}

/* Predefined, with a gap behind a short or behind the last int. */
static drawn pair(int of_short) {
    drawn made = {of_short ? MPI_SHORT_INT : MPI_DOUBLE_INT, of_short ? 6 : 12, NULL};
    made.at = memory_of(made.bytes * (long)sizeof *made.at);
    for (long at = 0; at < made.bytes; at++) {
        made.at[at] = of_short && at >= 2 ? at + 2 : at;
    }
    return made;
}

static drawn predefined(void) {
    const MPI_Datatype plain[] = {MPI_BYTE, MPI_CHAR, MPI_SHORT, MPI_INT, MPI_INT, MPI_DOUBLE, MPI_DOUBLE, MPI_LONG_DOUBLE,
                                  MPI_C_DOUBLE_COMPLEX};
    if (only == MPI_DATATYPE_NULL && draw(0, 11) == 0) {
        drawn duplicate = pair((int)draw(0, 1));
        MPI_Type_dup(duplicate.type, &duplicate.type);
        return duplicate;
    }
    drawn made;
    MPI_Type_dup(only != MPI_DATATYPE_NULL ? only : plain[draw(0, sizeof plain / sizeof *plain - 1)], &made.type);
    int size;
    MPI_Type_size(made.type, &size);
    made.bytes = size;
    made.at = memory_of(made.bytes * (long)sizeof *made.at);
    for (long at = 0; at < made.bytes; at++) {
        made.at[at] = at;
    }
    return made;
}

static void release(drawn *old) {
    MPI_Type_free(&old->type);
    free(old->at);
}

/* Appends copies of a child, an extent apart, to the displacements of a type. */
static void append(drawn *made, const drawn *child, long displacement, long copies, long extent) {
    made->at = realloc(made->at, (size_t)(made->bytes + copies * child->bytes + 1) * sizeof *made->at);
    for (long copy = 0; copy < copies; copy++) {
        for (long at = 0; at < child->bytes; at++) {
            made->at[made->bytes++] = displacement + copy * extent + child->at[at];
        }
    }
}

static drawn node(int depth);

static drawn array_of(const drawn *child, long extent) {
    drawn made = {MPI_DATATYPE_NULL, 0, NULL};
    int sizes[3], parts[3], starts[3], axes = (int)draw(1, 3), order = draw(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    for (int axis = 0; axis < axes; axis++) {
        sizes[axis] = (int)draw(1, 5);
        parts[axis] = (int)draw(1, sizes[axis]);
        starts[axis] = (int)draw(0, sizes[axis] - parts[axis]);
    }
    MPI_Type_create_subarray(axes, sizes, parts, starts, order, child->type, &made.type);
    long index[3] = {0, 0, 0};
    for (;;) {
        long place = 0;
        for (int axis = 0; axis < axes; axis++) {
            int turn = order == MPI_ORDER_C ? axis : axes - 1 - axis;
            place = place * sizes[turn] + starts[turn] + index[turn];
        }
        append(&made, child, place * extent, 1, extent);
        int axis = order == MPI_ORDER_C ? axes - 1 : 0, step = order == MPI_ORDER_C ? -1 : 1;
        while (axis >= 0 && axis < axes && ++index[axis] == parts[axis]) {
            index[axis] = 0;
            axis += step;
        }
        if (axis < 0 || axis >= axes) {
            return made;
        }
    }
}

static drawn struct_of(const drawn *child, int depth) {
    int count = (int)draw(1, 3), lengths[4];
    MPI_Aint displacements[4], place = draw_bytes(-40, 40);
    MPI_Datatype types[4];
    drawn made = {MPI_DATATYPE_NULL, 0, NULL}, other = node(depth - 1);
    for (int at = 0; at < count; at++) {
        const drawn *part = draw(0, 1) ? child : &other;
        MPI_Aint lb, extent;
        MPI_Type_get_extent(part->type, &lb, &extent);
        /* Open MPI 4.1 takes a datatype with a part of 0 bytes behind its last byte for one without gaps. */
        lengths[at] = part->bytes == 0 ? 0 : (int)draw(0, 2);
        types[at] = part->type;
        displacements[at] = place;
        append(&made, part, place, lengths[at], extent);
        place += (lengths[at] + 1) * (labs(extent) + labs(lb)) + draw_bytes(0, 24);
    }
    MPI_Type_create_struct(count, lengths, displacements, types, &made.type);
    release(&other);
    return made;
}

static drawn listed(const drawn *child, long extent, int in_bytes) {
    int count = (int)draw(1, MOST_BLOCKS), lengths[MOST_BLOCKS], places[MOST_BLOCKS];
    MPI_Aint displacements[MOST_BLOCKS];
    long place = draw(-3, 3);
    drawn made = {MPI_DATATYPE_NULL, 0, NULL};
    for (int at = 0; at < count; at++) {
        lengths[at] = (int)draw(0, 3);
        places[at] = (int)place;
        displacements[at] = place * extent + (in_bytes ? draw_bytes(0, 3) : 0);
        append(&made, child, in_bytes ? displacements[at] : place * extent, lengths[at], extent);
        place += lengths[at] + draw(0, 3) + in_bytes;
    }
    if (in_bytes) {
        MPI_Type_create_hindexed(count, lengths, displacements, child->type, &made.type);
    } else {
        MPI_Type_indexed(count, lengths, places, child->type, &made.type);
    }
    return made;
}

/* Open MPI takes a stride of -1 byte for the extent of the child. */
static long allowed(long stride) { return stride == -1 ? -2 : stride; }

/* A type over a drawn one. */
static drawn node(int depth) {
    if (depth <= 0 || draw(0, 7) == 0) {
        return predefined();
    }
    drawn child = node(depth - 1), made = {MPI_DATATYPE_NULL, 0, NULL};
    MPI_Aint lb, extent;
    MPI_Type_get_extent(child.type, &lb, &extent);
    long count = draw(0, 9), length = draw(1, 4);
    switch (draw(0, 9)) {
    case 0:
        MPI_Type_contiguous((int)count, child.type, &made.type);
        append(&made, &child, 0, count, extent);
        break;
    case 1:
    case 2: {
        long stride = draw(0, 3) ? length + draw(0, 5) : -length - draw(0, 2);
        stride += extent * stride == -1;
        MPI_Type_vector((int)count, (int)length, (int)stride, child.type, &made.type);
        for (long at = 0; at < count; at++) {
            append(&made, &child, at * stride * extent, length, extent);
        }
        break;
    }
    case 3: {
        long stride = allowed((length + draw(0, 2)) * extent + draw_bytes(0, 9));
        MPI_Type_create_hvector((int)count, (int)length, stride, child.type, &made.type);
        for (long at = 0; at < count; at++) {
            append(&made, &child, at * stride, length, extent);
        }
        break;
    }
    case 4:
        made = listed(&child, extent, 0);
        break;
    case 5:
        made = listed(&child, extent, 1);
        break;
    case 6:
        made = array_of(&child, extent);
        break;
    case 7:
    case 8:
        made = struct_of(&child, depth);
        break;
    default: {
        long wider = allowed(extent + draw_bytes(-2, 20));
        MPI_Type_create_resized(child.type, lb + draw_bytes(-5, 5), wider, &made.type);
        append(&made, &child, 0, 1, 0);
    }
    }
    release(&child);
    if (made.bytes > MOST_BYTES) {
        release(&made);
        return predefined();
    }
    return made;
}

static int ascending(const void *one, const void *other) {
    long first = *(const long *)one, second = *(const long *)other;
    return (first > second) - (first < second);
}

/* Elements of a type, in memory that is filled with `seed`, or poison. */
static elements lay_out(const drawn *made, long count, int seed) {
    MPI_Aint lb, extent;
    MPI_Type_get_extent(made->type, &lb, &extent);
    drawn all = {MPI_DATATYPE_NULL, 0, NULL};
    append(&all, made, 0, count, extent);
    elements laid = {.bytes = all.bytes, .at = all.at};
    long *sorted = memory_of(all.bytes * (long)sizeof *sorted);
    memcpy(sorted, all.at, (size_t)all.bytes * sizeof *sorted);
    qsort(sorted, (size_t)all.bytes, sizeof *sorted, ascending);
    for (long at = 1; at < all.bytes; at++) {
        laid.repeats |= sorted[at] == sorted[at - 1];
    }
    laid.low = all.bytes > 0 ? sorted[0] : 0;
    laid.span = all.bytes > 0 ? sorted[all.bytes - 1] - laid.low + 1 : 0;
    free(sorted);
    laid.memory = (unsigned char *)memory_of(laid.span + 2 * GUARD) + GUARD;
    memset(laid.memory - GUARD, POISON, (size_t)(laid.span + 2 * GUARD));
    for (long at = 0; seed != 0 && at < laid.span; at++) {
        laid.memory[at] = (unsigned char)((at * 2654435761u + (unsigned)seed) >> 11);
    }
    return laid;
}

static void *base(const elements *laid) { return laid->memory - laid->low; }

static void end(elements *laid) {
    free(laid->at);
    free(laid->memory - GUARD);
}
