/* What the programs of this directory share. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaksa.h>

/* Ends the program when something is not as it must be. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Ends the program when a call fails. */
#define DO(call) CHECK((call) == YAKSA_SUCCESS)

static inline uintptr_t size_of(yaksa_type_t type)
{
    uintptr_t size;
    DO(yaksa_type_get_size(type, &size));
    return size;
}

/* Whether a type has these bounds. */
static inline int has_bounds(yaksa_type_t type, intptr_t lb, intptr_t extent, intptr_t true_lb, intptr_t true_extent)
{
    intptr_t found[4];
    DO(yaksa_type_get_extent(type, &found[0], &found[1]));
    DO(yaksa_type_get_true_extent(type, &found[2], &found[3]));
    return found[0] == lb && found[1] == extent && found[2] == true_lb && found[3] == true_extent;
}

/* A nest that mixes everything: rows of structs of a pair and of ints, some of them at negative displacements. */
static inline yaksa_type_t mixed_type(void)
{
    yaksa_type_t list, fields, moved, rows;
    const intptr_t lengths[3] = {2, 0, 3}, places[3] = {9, 1, -4};
    DO(yaksa_type_create_indexed(3, lengths, places, YAKSA_TYPE__INT, NULL, &list));
    const intptr_t counts[3] = {1, 1, 2}, offsets[3] = {48, 0, 64};
    const yaksa_type_t parts[3] = {YAKSA_TYPE__SHORT_INT, list, YAKSA_TYPE__DOUBLE};
    DO(yaksa_type_create_struct(3, counts, offsets, parts, NULL, &fields));
    DO(yaksa_type_create_resized(fields, -16, 112, NULL, &moved));
    DO(yaksa_type_create_hvector(3, 2, -256, moved, NULL, &rows));
    DO(yaksa_type_free(list));
    DO(yaksa_type_free(fields));
    DO(yaksa_type_free(moved));
    return rows;
}

enum { MIXED_BEFORE = 544, MIXED_BYTES = 1600 };

#endif
