/* Sizes and bounds: of the builtin types those of the C compiler, of the others those of MPICH. */
#include "check.h"
#include <stddef.h>
#include <wchar.h>

struct float_int { float value; int index; };
struct double_int { double value; int index; };
struct long_int { long value; int index; };
struct short_int { short value; int index; };
struct long_double_int { long double value; int index; };

static void builtin(yaksa_type_t type, size_t size, size_t extent, size_t true_extent, size_t segments)
{
    uintptr_t length;
    CHECK(size_of(type) == size);
    CHECK(has_bounds(type, 0, (intptr_t) extent, 0, (intptr_t) true_extent));
    DO(yaksa_iov_len(2, type, &length));
    CHECK(length == (size == extent ? 1 : 2 * segments));
}

#define PLAIN(type, c_type) builtin(YAKSA_TYPE__##type, sizeof(c_type), sizeof(c_type), sizeof(c_type), 1)
#define PAIR(type, c_type, value_type)                                                                                 \
    builtin(YAKSA_TYPE__##type, sizeof(value_type) + sizeof(int), sizeof(c_type),                                      \
            offsetof(c_type, index) + sizeof(int), offsetof(c_type, index) == sizeof(value_type) ? 1 : 2)

static void builtins(void)
{
    PLAIN(_BOOL, _Bool);
    PLAIN(CHAR, char);
    PLAIN(SIGNED_CHAR, signed char);
    PLAIN(UNSIGNED_CHAR, unsigned char);
    PLAIN(WCHAR_T, wchar_t);
    PLAIN(INT8_T, int8_t);
    PLAIN(INT16_T, int16_t);
    PLAIN(INT32_T, int32_t);
    PLAIN(INT64_T, int64_t);
    PLAIN(UINT8_T, uint8_t);
    PLAIN(UINT16_T, uint16_t);
    PLAIN(UINT32_T, uint32_t);
    PLAIN(UINT64_T, uint64_t);
    PLAIN(INT, int);
    PLAIN(UNSIGNED, unsigned);
    PLAIN(SHORT, short);
    PLAIN(UNSIGNED_SHORT, unsigned short);
    PLAIN(LONG, long);
    PLAIN(UNSIGNED_LONG, unsigned long);
    PLAIN(LONG_LONG, long long);
    PLAIN(UNSIGNED_LONG_LONG, unsigned long long);
    PLAIN(INT_FAST8_T, int_fast8_t);
    PLAIN(INT_FAST16_T, int_fast16_t);
    PLAIN(INT_FAST32_T, int_fast32_t);
    PLAIN(INT_FAST64_T, int_fast64_t);
    PLAIN(UINT_FAST8_T, uint_fast8_t);
    PLAIN(UINT_FAST16_T, uint_fast16_t);
    PLAIN(UINT_FAST32_T, uint_fast32_t);
    PLAIN(UINT_FAST64_T, uint_fast64_t);
    PLAIN(INT_LEAST8_T, int_least8_t);
    PLAIN(INT_LEAST16_T, int_least16_t);
    PLAIN(INT_LEAST32_T, int_least32_t);
    PLAIN(INT_LEAST64_T, int_least64_t);
    PLAIN(UINT_LEAST8_T, uint_least8_t);
    PLAIN(UINT_LEAST16_T, uint_least16_t);
    PLAIN(UINT_LEAST32_T, uint_least32_t);
    PLAIN(UINT_LEAST64_T, uint_least64_t);
    PLAIN(BYTE, unsigned char);
    PLAIN(INTMAX_T, intmax_t);
    PLAIN(UINTMAX_T, uintmax_t);
    PLAIN(SIZE_T, size_t);
    PLAIN(INTPTR_T, intptr_t);
    PLAIN(UINTPTR_T, uintptr_t);
    PLAIN(PTRDIFF_T, ptrdiff_t);
    PLAIN(FLOAT, float);
    PLAIN(DOUBLE, double);
    PLAIN(LONG_DOUBLE, long double);
    PLAIN(C_COMPLEX, float _Complex);
    PLAIN(C_DOUBLE_COMPLEX, double _Complex);
    PLAIN(C_LONG_DOUBLE_COMPLEX, long double _Complex);
    PLAIN(2INT, int[2]);
    PAIR(FLOAT_INT, struct float_int, float);
    PAIR(DOUBLE_INT, struct double_int, double);
    PAIR(LONG_INT, struct long_int, long);
    PAIR(SHORT_INT, struct short_int, short);
    PAIR(LONG_DOUBLE_INT, struct long_double_int, long double);
    CHECK(size_of(YAKSA_TYPE__NULL) == 0);
}

static void derived(void)
{
    yaksa_type_t type, narrow;
    const intptr_t ones[2] = {1, 1}, far[2] = {0, 64}, near[2] = {0, 8};

    /* On the standard's rules, the resized member alone would set the bounds. */
    DO(yaksa_type_create_resized(YAKSA_TYPE__DOUBLE, 0, 16, NULL, &narrow));
    const yaksa_type_t parts[2] = {YAKSA_TYPE__INT, narrow};
    DO(yaksa_type_create_struct(2, ones, far, parts, NULL, &type));
    CHECK(has_bounds(type, 0, 80, 0, 72));
    DO(yaksa_type_free(type));
    DO(yaksa_type_free(narrow));

    /* Padding is for structs of differing types alone. */
    const yaksa_type_t differing[2] = {YAKSA_TYPE__DOUBLE, YAKSA_TYPE__CHAR};
    DO(yaksa_type_create_struct(2, ones, near, differing, NULL, &type));
    CHECK(has_bounds(type, 0, 16, 0, 9));
    DO(yaksa_type_free(type));
    DO(yaksa_type_create_hvector(2, 1, 5, YAKSA_TYPE__INT, NULL, &type));
    CHECK(has_bounds(type, 0, 9, 0, 9));
    DO(yaksa_type_free(type));

    /* Backwards, and with a negative extent. */
    DO(yaksa_type_create_vector(3, 1, -2, YAKSA_TYPE__INT, NULL, &type));
    CHECK(has_bounds(type, -16, 20, -16, 20));
    DO(yaksa_type_free(type));
    DO(yaksa_type_create_resized(YAKSA_TYPE__INT, 0, -8, NULL, &narrow));
    DO(yaksa_type_create_contig(3, narrow, NULL, &type));
    CHECK(has_bounds(type, -16, 8, -16, 20));
    DO(yaksa_type_free(type));
    DO(yaksa_type_free(narrow));

    const intptr_t sizes[3] = {4, 5, 6}, subsizes[3] = {2, 1, 3}, starts[3] = {1, 4, 2};
    DO(yaksa_type_create_subarray(3, sizes, subsizes, starts, YAKSA_SUBARRAY_ORDER__C, YAKSA_TYPE__SHORT, NULL, &type));
    CHECK(size_of(type) == 12 && has_bounds(type, 0, 240, 2 * 56, 2 * 33));
    DO(yaksa_type_free(type));
    DO(yaksa_type_create_subarray(3, sizes, subsizes, starts, YAKSA_SUBARRAY_ORDER__FORTRAN, YAKSA_TYPE__SHORT, NULL,
                                  &type));
    CHECK(size_of(type) == 12 && has_bounds(type, 0, 240, 2 * (1 + 16 + 40), 2 * (2 + 40)));
    DO(yaksa_type_free(type));
}

static void without_bytes(void)
{
    const intptr_t none[2] = {0, 0}, ones[2] = {1, 1};
    const yaksa_type_t parts[2] = {YAKSA_TYPE__INT, YAKSA_TYPE__DOUBLE};
    yaksa_type_t type = 1, wide;
    uintptr_t length;
    DO(yaksa_type_create_contig(0, YAKSA_TYPE__INT, NULL, &type));
    CHECK(type == YAKSA_TYPE__NULL);
    DO(yaksa_type_create_struct(2, none, ones, parts, NULL, &type));
    CHECK(type == YAKSA_TYPE__NULL);
    DO(yaksa_type_create_struct(0, NULL, NULL, NULL, NULL, &type));
    CHECK(type == YAKSA_TYPE__NULL);
    DO(yaksa_iov_len(2, type, &length));
    CHECK(length == 1);
    DO(yaksa_type_free(type));
    DO(yaksa_type_create_resized(YAKSA_TYPE__NULL, -4, 32, NULL, &wide));
    CHECK(size_of(wide) == 0 && has_bounds(wide, -4, 32, 0, 0));
    DO(yaksa_iov_len(5, wide, &length));
    CHECK(length == 0);
    const yaksa_type_t with[2] = {wide, YAKSA_TYPE__INT};
    DO(yaksa_type_create_struct(2, ones, none, with, NULL, &type));
    CHECK(size_of(type) == 4 && has_bounds(type, -4, 32, 0, 4));
    DO(yaksa_type_free(type));
    DO(yaksa_type_free(wide));
}

static void children_may_go_first(void)
{
    yaksa_type_t type = YAKSA_TYPE__INT, next;
    for (int level = 0; level < 10000; level++) {
        DO(yaksa_type_create_resized(type, -level - 1, 8 + level, NULL, &next));
        DO(yaksa_type_free(type));
        type = next;
    }
    CHECK(has_bounds(type, -10000, 10007, 0, 4));
    DO(yaksa_type_create_dup(type, NULL, &next));
    /* Callers tell types apart by their handles. */
    CHECK(next != type);
    DO(yaksa_type_free(type));
    CHECK(has_bounds(next, -10000, 10007, 0, 4));
    DO(yaksa_type_free(next));
}

static void mistakes(void)
{
    yaksa_type_t type;
    const intptr_t lengths[2] = {1, -1}, places[2] = {0, INTPTR_MAX}, sizes[1] = {4}, parts[1] = {3}, starts[1] = {2};
    CHECK(yaksa_type_create_contig(-1, YAKSA_TYPE__INT, NULL, &type) == YAKSA_ERR__INTERNAL);
    CHECK(yaksa_type_create_contig(1, YAKSA_TYPE__INT, NULL, NULL) == YAKSA_ERR__INTERNAL);
    CHECK(yaksa_type_create_vector(2, 1, INTPTR_MAX, YAKSA_TYPE__INT, NULL, &type) == YAKSA_ERR__INTERNAL);
    CHECK(yaksa_type_create_indexed(2, lengths, places, YAKSA_TYPE__INT, NULL, &type) == YAKSA_ERR__INTERNAL);
    CHECK(yaksa_type_create_hindexed_block(2, 1, places, YAKSA_TYPE__INT, NULL, &type) == YAKSA_ERR__INTERNAL);
    CHECK(yaksa_type_create_hindexed_block(2, 1, NULL, YAKSA_TYPE__INT, NULL, &type) == YAKSA_ERR__INTERNAL);
    CHECK(yaksa_type_create_resized(YAKSA_TYPE__INT, INTPTR_MAX, 1, NULL, &type) == YAKSA_ERR__INTERNAL);
    CHECK(yaksa_type_create_subarray(1, sizes, parts, starts, YAKSA_SUBARRAY_ORDER__C, YAKSA_TYPE__INT, NULL, &type) ==
          YAKSA_ERR__INTERNAL);
    CHECK(yaksa_type_get_size(YAKSA_TYPE__INT, NULL) == YAKSA_ERR__INTERNAL);
}

int main(void)
{
    DO(yaksa_init(NULL));
    builtins();
    derived();
    without_bytes();
    children_may_go_first();
    mistakes();
    DO(yaksa_finalize());
    CHECK(yaksa_finalize() == YAKSA_ERR__INTERNAL);
    return 0;
}
