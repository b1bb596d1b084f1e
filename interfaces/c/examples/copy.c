/*
 * A message to oneself: a face of a grid moves to the opposite halo, from one type to another, and no buffer is between. Then
 * the same face is added to it.
 */
#include "check.h"

enum { PLANES = 10, ROWS = 12, COLUMNS = 14 };

static double grid[PLANES][ROWS][COLUMNS];

static dtc_type *face(const dtc_engine *engine, const dtc_type *element, int64_t column) {
    dtc_type *made;
    int64_t numbers[] = {3, PLANES, ROWS, COLUMNS, PLANES, ROWS, 1, 0, 0, column, DTC_ORDER_C};
    CALL(dtc_type_create(engine, DTC_COMBINER_SUBARRAY, numbers, 11, NULL, 0, &element, 1, NULL, &made));
    CALL(dtc_type_commit(made, 0));
    return made;
}

int main(void) {
    dtc_engine *engine;
    dtc_type *element;
    CALL(dtc_init(NULL, &engine));
    CALL(dtc_type_named(engine, "MPI_DOUBLE", &element));
    dtc_type *inner = face(engine, element, COLUMNS - 2), *halo = face(engine, element, 0);
    for (int at = 0; at < PLANES * ROWS * COLUMNS; at++) {
        (&grid[0][0][0])[at] = at;
    }
    int64_t size = PLANES * ROWS * (int64_t)sizeof(double), done;
    dtc_elements from = {inner, grid, 1, 0}, to = {halo, grid, 1, 0};
    CALL(dtc_copy(&from, &to, size, &done, NULL));
    EXPECT(done == size);

    int supported;
    CALL(dtc_op_supported(DTC_OPERATION_SUM, element, NULL, &supported));
    EXPECT(supported);
    static double packed[PLANES * ROWS];
    CALL(dtc_pack(inner, grid, 1, 0, packed, size, &done, NULL));
    CALL(dtc_accumulate(DTC_OPERATION_SUM, element, halo, grid, 1, 0, packed, size, &done, NULL));
    for (int plane = 0; plane < PLANES; plane++) {
        for (int row = 0; row < ROWS; row++) {
            EXPECT(grid[plane][row][0] == 2 * grid[plane][row][COLUMNS - 2]);
            EXPECT(grid[plane][row][1] == (plane * ROWS + row) * COLUMNS + 1);
        }
    }
    CALL(dtc_type_release(element));
    CALL(dtc_type_release(inner));
    CALL(dtc_type_release(halo));
    CALL(dtc_finalize(engine));
    printf("copy: a face of %d doubles to the other side\n", PLANES * ROWS);
    return 0;
}
