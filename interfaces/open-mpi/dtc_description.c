/*
 * Open MPI's description of a datatype, its elements and loops, as a dtc_type.
 */
#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "opal/datatype/opal_datatype.h"
#include "opal/datatype/opal_datatype_internal.h"

#include "opal/datatype/dtc_description.h"

/*
 * What all datatypes share: the engine, and basic types of 1, 2, 4 and 8 bytes. If all values of a datatype have as many bytes, and
 * external32 has those bytes in the other order, its dtc_type is made of that basic type, else of bytes.
 */
enum { UNITS = 4 };

typedef struct {
    dtc_engine *engine;
    dtc_type *units[UNITS];
} library;

static library *shared;

static void close_library(library *ended) {
    for (int at = 0; at < UNITS; at++) {
        dtc_type_release(ended->units[at]);
    }
    dtc_finalize(ended->engine);
    free(ended);
}

/* The library, which the first thread that asks opens; null if that fails. */
static library *open_library(void) {
    library *found = __atomic_load_n(&shared, __ATOMIC_ACQUIRE), *made;
    if (found != NULL || (made = malloc(sizeof *made)) == NULL) {
        return found;
    }
    if (dtc_init(NULL, &made->engine) != DTC_OK) {
        free(made);
        return NULL;
    }
    int status = DTC_OK;
    memset(made->units, 0, sizeof made->units);
    for (int at = 0; at < UNITS && status == DTC_OK; at++) {
        /* An integer of 8 bytes is a long, which has 4 in external32. */
        int kind = at == 0 ? DTC_KIND_BYTES : at == 3 ? DTC_KIND_FLOAT : DTC_KIND_UNSIGNED;
        status = dtc_type_basic(made->engine, kind, 1 << at, &made->units[at]);
        status = status == DTC_OK ? dtc_type_commit(made->units[at], 0) : status;
    }
    if (status != DTC_OK) {
        close_library(made);
        return NULL;
    }
    if (!__atomic_compare_exchange_n(&shared, &found, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        close_library(made);
        return found;
    }
    return made;
}

/* Blocks of one level of a description: the whole of it, or the body of a loop. Each has a type of its own. */
typedef struct {
    library *library;
    const dtc_type *unit;
    size_t unit_bytes;
    int64_t used, room;
    int64_t *numbers;       /* Lengths, from the second place on, as lists of a constructor begin with their count. */
    int64_t *displacements; /* In bytes. */
    const dtc_type **types; /* Those that are not the unit are owned. */
} blocks;

static int grow(blocks *self) {
    if (self->used < self->room) {
        return 1;
    }
    int64_t room = self->room == 0 ? 16 : self->room * 2;
    int64_t *numbers = realloc(self->numbers, ((size_t)room + 1) * sizeof *numbers);
    if (numbers != NULL) {
        numbers[0] = self->used == 0 ? 0 : numbers[0];
        self->numbers = numbers;
    }
    int64_t *displacements = realloc(self->displacements, (size_t)room * sizeof *displacements);
    self->displacements = displacements != NULL ? displacements : self->displacements;
    const dtc_type **types = realloc(self->types, (size_t)room * sizeof *types);
    self->types = types != NULL ? types : self->types;
    if (numbers == NULL || displacements == NULL || types == NULL) {
        return 0;
    }
    self->room = room;
    return 1;
}

/* Adds a block. Takes over the type, unless that is the unit. */
static int add(blocks *self, int64_t length, int64_t displacement, const dtc_type *type) {
    if (!grow(self)) {
        if (type != self->unit) {
            dtc_type_release((dtc_type *)type);
        }
        return 0;
    }
    self->displacements[self->used] = displacement;
    self->types[self->used++] = type;
    self->numbers[self->used] = length;
    return 1;
}

/* Drops the blocks from `first` on. */
static void drop(blocks *self, int64_t first) {
    while (self->used > first) {
        const dtc_type *type = self->types[--self->used];
        if (type != self->unit) {
            dtc_type_release((dtc_type *)type);
        }
    }
}

/* One type of the blocks from `first` on, which are dropped, with the bounds that are given; null if that fails. */
static dtc_type *joined(blocks *self, int64_t first, const dtc_facts *facts) {
    int64_t count = self->used - first, at = first;
    dtc_type *made = NULL;
    while (at < self->used && self->types[at] == self->unit) {
        at++;
    }
    /* The count comes before the lengths: grow() leaves a place for it. */
    int64_t kept = self->numbers[first];
    self->numbers[first] = count;
    int status = at == self->used
                     ? dtc_type_create(self->library->engine, DTC_COMBINER_HINDEXED, self->numbers + first, count + 1,
                                       self->displacements + first, count, (const dtc_type *const *)&self->unit, 1, facts,
                                       &made)
                     : dtc_type_create(self->library->engine, DTC_COMBINER_STRUCT, self->numbers + first, count + 1,
                                       self->displacements + first, count, self->types + first, count, facts, &made);
    self->numbers[first] = kept;
    drop(self, first);
    return status == DTC_OK ? made : NULL;
}

/* `count` copies of a type, which is taken over, `stride` bytes apart; null if that fails. */
static dtc_type *repeated(dtc_type *type, int64_t count, int64_t stride) {
    dtc_type *made;
    int status = type == NULL ? DTC_ERROR_HANDLE : dtc_type_hvector(count, 1, stride, type, &made);
    if (type != NULL) {
        dtc_type_release(type);
    }
    return status == DTC_OK ? made : NULL;
}

/* Where bytes are: from the lowest displacement to behind the highest, how many they are, and in how many pieces. */
typedef struct {
    ptrdiff_t low, high;
    size_t bytes;
    double pieces;
} reach;

static const reach nowhere = {PTRDIFF_MAX, PTRDIFF_MIN, 0, 0};

/* The same for `count` copies, `stride` bytes apart, a displacement away. */
static reach copies(reach one, size_t count, ptrdiff_t stride, ptrdiff_t displacement) {
    ptrdiff_t last = (ptrdiff_t)(count - 1) * stride;
    return (reach){one.low + displacement + (last < 0 ? last : 0), one.high + displacement + (last > 0 ? last : 0),
                   one.bytes * count, one.pieces * (double)count};
}

static reach together(reach one, reach other) {
    return (reach){one.low < other.low ? one.low : other.low, one.high > other.high ? one.high : other.high,
                   one.bytes + other.bytes, one.pieces + other.pieces};
}

/* A loop that is open: its entry in the description, the first block of its body, and what is before it on its level. */
typedef struct {
    const dt_elem_desc_t *entry;
    int64_t first;
    reach before;
} open_loop;

/* Adds the blocks of an element of a description. */
static int add_element(blocks *self, const ddt_elem_desc_t *element, reach *level) {
    size_t length = element->blocklen * opal_datatype_basicDatatypes[element->common.type]->size;
    int64_t units = (int64_t)(length / self->unit_bytes);
    reach block = {0, (ptrdiff_t)length, length, 1};
    *level = together(*level, copies(block, element->count, element->extent, element->disp));
    if (element->count == 1) {
        return add(self, units, element->disp, self->unit);
    }
    dtc_type *rows;
    return dtc_type_hvector(element->count, units, element->extent, self->unit, &rows) == DTC_OK &&
           add(self, 1, element->disp, rows);
}

/* The blocks of a description, and where they are. 0 if it cannot be expressed. */
static int add_description(blocks *self, const dt_type_desc_t *description, open_loop *loops, reach *level) {
    size_t depth = 0;
    *level = nowhere;
    for (const dt_elem_desc_t *entry = description->desc; entry < description->desc + description->used; entry++) {
        if (entry->elem.common.flags & OPAL_DATATYPE_FLAG_DATA) {
            if (entry->elem.count == 0 || entry->elem.blocklen == 0 || !add_element(self, &entry->elem, level)) {
                return 0;
            }
        } else if (entry->elem.common.type == OPAL_DATATYPE_LOOP && entry->loop.loops > 0) {
            loops[depth++] = (open_loop){entry, self->used, *level};
            *level = nowhere;
        } else if (entry->elem.common.type == OPAL_DATATYPE_END_LOOP && depth > 0 && self->used > loops[depth - 1].first) {
            const open_loop *loop = &loops[--depth];
            dtc_type *body = joined(self, loop->first, NULL);
            dtc_type *all = repeated(body, loop->entry->loop.loops, loop->entry->loop.extent);
            if (all == NULL || !add(self, 1, 0, all)) {
                return 0;
            }
            *level = together(loop->before, copies(*level, loop->entry->loop.loops, loop->entry->loop.extent, 0));
        } else {
            return 0;
        }
    }
    return depth == 0 && self->used > 0;
}

static double pieces_between(const dt_elem_desc_t *entry, const dt_elem_desc_t *end) {
    double pieces = 0;
    for (; entry < end; entry++) {
        if (entry->elem.common.flags & OPAL_DATATYPE_FLAG_DATA) {
            pieces += entry->elem.count;
        } else if (entry->elem.common.type == OPAL_DATATYPE_LOOP) {
            pieces += entry->loop.loops * pieces_between(entry + 1, entry + entry->loop.items);
            entry += entry->loop.items;
        }
    }
    return pieces;
}

double dtc_opal_pieces(const opal_datatype_t *datatype) {
    return pieces_between(datatype->desc.desc, datatype->desc.desc + datatype->desc.used);
}

int dtc_opal_unit_of(const opal_datatype_t *datatype) {
#define VALUES(name) (UINT32_C(1) << OPAL_DATATYPE_##name)
    static const uint32_t values[UNITS] = {VALUES(INT1) | VALUES(UINT1), VALUES(INT2) | VALUES(UINT2),
                                           VALUES(INT4) | VALUES(UINT4) | VALUES(FLOAT4) | VALUES(FLOAT_COMPLEX),
                                           VALUES(INT8) | VALUES(UINT8) | VALUES(FLOAT8) | VALUES(DOUBLE_COMPLEX)};
#undef VALUES
    for (int at = 0; at < UNITS; at++) {
        if (datatype->bdt_used != 0 && (datatype->bdt_used & ~values[at]) == 0) {
            return at;
        }
    }
    return -1;
}

int dtc_opal_describe(const opal_datatype_t *datatype, double longest, dtc_opal_description *found) {
    blocks level = {.library = open_library()};
    reach all = nowhere;
    *found = (dtc_opal_description){0};
    if (level.library == NULL) {
        return 0;
    }
    int unit = dtc_opal_unit_of(datatype);
    level.unit = level.library->units[unit > 0 ? unit : 0];
    level.unit_bytes = (size_t)1 << (unit > 0 ? unit : 0);
    open_loop few[8], *loops = datatype->desc.used < 16 ? few : malloc((datatype->desc.used / 2 + 1) * sizeof *loops);
    dtc_facts facts = {sizeof facts, datatype->lb, datatype->ub - datatype->lb, (int64_t)datatype->size};
    /* The description and the datatype must agree on the bytes: else one of them means something else than is read here. */
    found->is_read = loops != NULL && add_description(&level, &datatype->desc, loops, &all) && all.bytes == datatype->size &&
                     all.low == datatype->true_lb && all.high == datatype->true_ub;
    found->pieces = all.pieces;
    found->piece_bytes = all.pieces > 0 ? (double)all.bytes / all.pieces : 0;
    if (found->is_read && found->piece_bytes < longest) {
        found->type = joined(&level, 0, &facts);
    }
    if (found->type != NULL && dtc_type_commit(found->type, 0) != DTC_OK) {
        dtc_type_release(found->type);
        found->type = NULL;
    }
    drop(&level, 0);
    free(level.numbers);
    free(level.displacements);
    free(level.types);
    if (loops != few) {
        free(loops);
    }
    return 1;
}

dtc_engine *dtc_opal_engine(void) {
    const library *found = open_library();
    return found == NULL ? NULL : found->engine;
}

const dtc_type *dtc_opal_unit(int number) {
    const library *found = open_library();
    return found == NULL ? NULL : found->units[number];
}

int dtc_opal_is_open(void) { return __atomic_load_n(&shared, __ATOMIC_ACQUIRE) != NULL; }

void dtc_opal_close(void) {
    library *ended = __atomic_exchange_n(&shared, NULL, __ATOMIC_ACQ_REL);
    if (ended != NULL) {
        close_library(ended);
    }
}
