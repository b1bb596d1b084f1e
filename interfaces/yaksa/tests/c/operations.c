/* Packs and unpacks with operations: of every builtin that has one, of arrays with gaps, and of structs that mix. */
#include "check.h"
#include <complex.h>
#include <stddef.h>

/* Checks `there = there op arrives`, the result of both directions, on `type` elements of C type `c_type`. */
#define OPERATION(type, c_type, op, there, arrives, expected)                                                          \
    do {                                                                                                               \
        c_type from[3] = {arrives, arrives, arrives}, to[3] = {there, there, there};                                   \
        c_type apart[6] = {there, 99, there, 99, there, 99};                                                           \
        yaksa_type_t spread;                                                                                           \
        uintptr_t actual;                                                                                              \
        DO(yaksa_pack(from, 3, type, 0, to, sizeof(to), &actual, NULL, op));                                           \
        CHECK(actual == sizeof(to) && to[0] == (expected) && to[2] == (expected));                                     \
        DO(yaksa_type_create_vector(3, 1, 2, type, NULL, &spread));                                                    \
        DO(yaksa_unpack(from, sizeof(from), apart, 1, spread, 0, &actual, NULL, op));                                  \
        CHECK(apart[0] == (expected) && apart[4] == (expected) && apart[1] == (c_type) 99);                            \
        for (int at = 0; at < 6; at += 2)                                                                              \
            apart[at] = arrives;                                                                                       \
        to[0] = to[1] = to[2] = there;                                                                                 \
        DO(yaksa_pack(apart, 1, spread, 0, to, sizeof(to), &actual, NULL, op));                                        \
        CHECK(to[0] == (expected) && to[1] == (expected) && to[2] == (expected));                                      \
        DO(yaksa_type_free(spread));                                                                                   \
    } while (0)

#define INTEGERS(type, c_type)                                                                                         \
    do {                                                                                                               \
        OPERATION(type, c_type, YAKSA_OP__MAX, 3, 5, 5);                                                               \
        OPERATION(type, c_type, YAKSA_OP__MIN, 3, 5, 3);                                                               \
        OPERATION(type, c_type, YAKSA_OP__SUM, 3, 5, 8);                                                               \
        OPERATION(type, c_type, YAKSA_OP__PROD, 3, 5, 15);                                                             \
        OPERATION(type, c_type, YAKSA_OP__LAND, 3, 0, 0);                                                              \
        OPERATION(type, c_type, YAKSA_OP__BAND, 6, 3, 2);                                                              \
        OPERATION(type, c_type, YAKSA_OP__LOR, 3, 0, 1);                                                               \
        OPERATION(type, c_type, YAKSA_OP__BOR, 6, 3, 7);                                                               \
        OPERATION(type, c_type, YAKSA_OP__LXOR, 3, 5, 0);                                                              \
        OPERATION(type, c_type, YAKSA_OP__BXOR, 6, 3, 5);                                                              \
        OPERATION(type, c_type, YAKSA_OP__REPLACE, 6, 3, 3);                                                           \
    } while (0)

#define FLOATS(type, c_type)                                                                                           \
    do {                                                                                                               \
        OPERATION(type, c_type, YAKSA_OP__MAX, 1.5, -2.5, 1.5);                                                        \
        OPERATION(type, c_type, YAKSA_OP__MIN, 1.5, -2.5, -2.5);                                                       \
        OPERATION(type, c_type, YAKSA_OP__SUM, 1.5, 2.5, 4);                                                           \
        OPERATION(type, c_type, YAKSA_OP__PROD, 1.5, 2, 3);                                                            \
    } while (0)

#define COMPLEXES(type, c_type)                                                                                        \
    do {                                                                                                               \
        OPERATION(type, c_type, YAKSA_OP__SUM, 1 + 2 * I, 3 - 1 * I, 4 + 1 * I);                                       \
        OPERATION(type, c_type, YAKSA_OP__PROD, 1 + 2 * I, 3 - 1 * I, 5 + 5 * I);                                      \
    } while (0)

static void refused(yaksa_type_t type, yaksa_op_t op)
{
    long double from[4] = {0}, to[4] = {0};
    uintptr_t actual;
    CHECK(yaksa_pack(from, 1, type, 0, to, sizeof(to), &actual, NULL, op) == YAKSA_ERR__NOT_SUPPORTED);
}

/* Thousands of structs of a short, a pair and two doubles, summed in pieces that end anywhere. */
struct mixed { short first; double second[2]; struct { short value; int index; } pair; };

static void mixed(void)
{
    enum { COUNT = 1000 };
    static struct mixed from[COUNT], to[COUNT];
    static char packed[COUNT * 24];
    const intptr_t lengths[3] = {1, 2, 1};
    const intptr_t places[3] = {0, offsetof(struct mixed, second), offsetof(struct mixed, pair)};
    const yaksa_type_t parts[3] = {YAKSA_TYPE__SHORT, YAKSA_TYPE__DOUBLE, YAKSA_TYPE__SHORT_INT};
    yaksa_type_t type;
    uintptr_t actual;
    DO(yaksa_type_create_struct(3, lengths, places, parts, NULL, &type));
    CHECK(size_of(type) == 24);
    for (int at = 0; at < COUNT; at++) {
        from[at] = (struct mixed){(short) at, {at * 0.5, at}, {(short) -at, 3 * at}};
        to[at] = (struct mixed){1, {2, 3}, {4, 5}};
    }
    DO(yaksa_pack(from, COUNT, type, 0, packed, sizeof(packed), &actual, NULL, YAKSA_OP__REPLACE));
    CHECK(actual == sizeof(packed));
    /* Twice: by packing onto the packed bytes, and by unpacking onto memory. */
    for (uintptr_t offset = 0; offset < sizeof(packed); offset += actual) {
        DO(yaksa_pack(from, COUNT, type, offset, packed + offset, 4999, &actual, NULL, YAKSA_OP__SUM));
        CHECK(actual > 4970 || offset + actual == sizeof(packed));
    }
    for (uintptr_t offset = 0; offset < sizeof(packed); offset += actual) {
        uintptr_t rest = sizeof(packed) - offset, length = rest < 4800 ? rest : 4800;
        DO(yaksa_unpack(packed + offset, length, to, COUNT, type, offset, &actual, NULL, YAKSA_OP__SUM));
        CHECK(actual == length);
    }
    for (int at = 0; at < COUNT; at++)
        CHECK(to[at].first == (short) (2 * at + 1) && to[at].second[0] == at + 2 && to[at].second[1] == 2 * at + 3 &&
              to[at].pair.value == (short) (4 - 2 * at) && to[at].pair.index == 6 * at + 5);
    /* Half an element is none. */
    CHECK(yaksa_unpack(packed, 5, to, COUNT, type, 0, &actual, NULL, YAKSA_OP__SUM) == YAKSA_ERR__INTERNAL);
    CHECK(yaksa_unpack(packed, 24, to, COUNT, type, 0, &actual, NULL, YAKSA_OP__BAND) == YAKSA_ERR__NOT_SUPPORTED);
    DO(yaksa_type_free(type));
}

int main(void)
{
    DO(yaksa_init(NULL));
    INTEGERS(YAKSA_TYPE__INT8_T, int8_t);
    INTEGERS(YAKSA_TYPE__INT16_T, int16_t);
    INTEGERS(YAKSA_TYPE__INT, int);
    INTEGERS(YAKSA_TYPE__LONG, long);
    INTEGERS(YAKSA_TYPE__UINT8_T, uint8_t);
    INTEGERS(YAKSA_TYPE__UNSIGNED_SHORT, unsigned short);
    INTEGERS(YAKSA_TYPE__UINT_FAST16_T, uint_fast16_t);
    INTEGERS(YAKSA_TYPE__SIZE_T, size_t);
    /* Unsigned is unsigned. */
    OPERATION(YAKSA_TYPE__UNSIGNED, unsigned, YAKSA_OP__MAX, 1, UINT32_MAX, UINT32_MAX);
    OPERATION(YAKSA_TYPE__INT, int, YAKSA_OP__MAX, 1, -1, 1);
    OPERATION(YAKSA_TYPE___BOOL, _Bool, YAKSA_OP__LXOR, 1, 0, 1);
    FLOATS(YAKSA_TYPE__FLOAT, float);
    FLOATS(YAKSA_TYPE__DOUBLE, double);
    FLOATS(YAKSA_TYPE__LONG_DOUBLE, long double);
    COMPLEXES(YAKSA_TYPE__C_COMPLEX, float complex);
    COMPLEXES(YAKSA_TYPE__C_DOUBLE_COMPLEX, double complex);
    refused(YAKSA_TYPE__CHAR, YAKSA_OP__SUM);
    refused(YAKSA_TYPE__FLOAT, YAKSA_OP__BAND);
    refused(YAKSA_TYPE__C_COMPLEX, YAKSA_OP__MAX);
    refused(YAKSA_TYPE__INT, YAKSA_OP__LAST);
    refused(YAKSA_TYPE__INT, 12345);
    mixed();
    DO(yaksa_finalize());
    return 0;
}
