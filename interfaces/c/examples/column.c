/* A column of a matrix, packed, unpacked and named by its pieces, on the host alone. */
#include "check.h"

enum { ROWS = 100, COLUMNS = 32 };

static double matrix[ROWS][COLUMNS];

int main(void) {
    dtc_engine *engine;
    CALL(dtc_init(NULL, &engine));
    dtc_type *number, *column;
    CALL(dtc_type_named(engine, "MPI_DOUBLE", &number));
    CALL(dtc_type_vector(ROWS, 1, COLUMNS, number, &column));
    CALL(dtc_type_commit(column, 0));

    for (int row = 0; row < ROWS; row++) {
        for (int at = 0; at < COLUMNS; at++) {
            matrix[row][at] = row * 1e3 + at;
        }
    }
    /* The third column, and only its last ten rows. */
    double packed[ROWS], tail[10];
    int64_t done;
    CALL(dtc_pack(column, &matrix[0][2], 1, 0, packed, sizeof packed, &done, NULL));
    EXPECT(done == sizeof packed);
    CALL(dtc_pack(column, &matrix[0][2], 1, sizeof packed - sizeof tail, tail, sizeof tail, &done, NULL));
    for (int row = 0; row < ROWS; row++) {
        EXPECT(packed[row] == row * 1e3 + 2);
        EXPECT(row < ROWS - 10 || tail[row - (ROWS - 10)] == packed[row]);
    }
    /* Into the last column. */
    CALL(dtc_unpack(column, &matrix[0][COLUMNS - 1], 1, 0, packed, sizeof packed, &done, NULL));
    EXPECT(matrix[7][COLUMNS - 1] == 7e3 + 2 && matrix[7][COLUMNS - 2] == 7e3 + COLUMNS - 2);

    CALL(dtc_type_release(number));
    CALL(dtc_type_release(column));
    CALL(dtc_finalize(engine));
    printf("column: %d doubles, %d apart, there and back\n", ROWS, COLUMNS);
    return 0;
}
