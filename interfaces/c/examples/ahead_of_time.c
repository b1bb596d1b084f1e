/*
 * A matrix, sent by columns, with functions that `dtc build` has compiled: dtc itself is neither linked nor loaded.
 *
 *     dtc build ir-examples/matrix_columns.json -o columns --target x86-64-v3
 *     export PKG_CONFIG_PATH=columns/lib/x86-64-v3/pkgconfig
 *     cc interfaces/c/examples/ahead_of_time.c $(pkg-config --cflags columns) columns/lib/x86-64-v3/libcolumns.a
 */
#include <columns.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

int main(void) {
    const size_t room = MATRIX_COLUMNS_TRUE_UB, bytes = MATRIX_COLUMNS_SIZE;
    unsigned char *matrix = malloc(room), *copy = calloc(room, 1), *packed = malloc(bytes), *again = malloc(bytes);
    EXPECT(matrix && copy && packed && again);
    for (size_t at = 0; at < room; at++) {
        matrix[at] = (unsigned char)(at * 2654435761u >> 24);
    }
    matrix_columns_pack(matrix, packed, 1);
    matrix_columns_unpack(packed, copy, 1);
    matrix_columns_pack(copy, again, 1);
    EXPECT(memcmp(packed, again, bytes) == 0);
    /* What is not of the type stays as it was. */
    size_t written = 0;
    for (size_t at = 0; at < room; at++) {
        EXPECT(copy[at] == matrix[at] || copy[at] == 0);
        written += copy[at] != 0;
    }
    EXPECT(written <= bytes && written > bytes / 2);
    /* No elements are no bytes. */
    matrix_columns_pack(NULL, NULL, 0);
    printf("ahead_of_time: %zu bytes packed and unpacked by functions of their own\n", bytes);
    free(matrix), free(copy), free(packed), free(again);
    return 0;
}
