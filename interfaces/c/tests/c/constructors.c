/* Each constructor of MPI by its own function and by dtc_type_create: the same flattened type. */
#include "../../examples/check.h"
#include <string.h>

static dtc_engine *engine;
static dtc_type *number, *character;

/* What a type is flattened to; returns the length. */
static int64_t flattened(dtc_type *type, unsigned char *bytes, int64_t most) {
    int64_t length;
    CALL(dtc_type_commit(type, 0));
    CALL(dtc_flatten_size(type, &length));
    EXPECT(length <= most);
    CALL(dtc_flatten(type, bytes, length));
    CALL(dtc_type_release(type));
    return length;
}

/* Compares the type of a function with the one of dtc_type_create; releases both. */
static void same(const char *name, dtc_type *own, int32_t combiner, const int64_t *integers, int64_t n_integers,
                 const int64_t *addresses, int64_t n_addresses) {
    const dtc_type *children[] = {number, character, number};
    dtc_type *general;
    CALL(dtc_type_create(engine, combiner, integers, n_integers, addresses, n_addresses, children,
                         combiner == DTC_COMBINER_STRUCT ? 3 : 1, NULL, &general));
    unsigned char bytes[2][4096];
    int64_t length = flattened(own, bytes[0], sizeof bytes[0]);
    if (flattened(general, bytes[1], sizeof bytes[1]) != length || memcmp(bytes[0], bytes[1], (size_t)length) != 0) {
        fprintf(stderr, "%s: expected the type of dtc_type_create, found another\n", name);
        exit(1);
    }
}

#define INTEGERS(...) (int64_t[]){__VA_ARGS__}, (int64_t)(sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t))
#define NONE NULL, 0

int main(void) {
    CALL(dtc_init(NULL, &engine));
    CALL(dtc_type_named(engine, "MPI_DOUBLE", &number));
    CALL(dtc_type_named(engine, "MPI_CHAR", &character));
    const int64_t lengths[] = {2, 1, 3}, places[] = {9, 0, 4}, bytes[] = {72, 0, 32};
    const dtc_type *children[] = {number, character, number};
    dtc_type *own;

    CALL(dtc_type_dup(number, &own));
    same("dup", own, DTC_COMBINER_DUP, NONE, NONE);
    CALL(dtc_type_contiguous(5, number, &own));
    same("contiguous", own, DTC_COMBINER_CONTIGUOUS, INTEGERS(5), NONE);
    CALL(dtc_type_vector(4, 2, 5, number, &own));
    same("vector", own, DTC_COMBINER_VECTOR, INTEGERS(4, 2, 5), NONE);
    CALL(dtc_type_hvector(4, 2, 44, number, &own));
    same("hvector", own, DTC_COMBINER_HVECTOR, INTEGERS(4, 2), INTEGERS(44));
    CALL(dtc_type_indexed(3, lengths, places, number, &own));
    same("indexed", own, DTC_COMBINER_INDEXED, INTEGERS(3, 2, 1, 3, 9, 0, 4), NONE);
    CALL(dtc_type_hindexed(3, lengths, bytes, number, &own));
    same("hindexed", own, DTC_COMBINER_HINDEXED, INTEGERS(3, 2, 1, 3), INTEGERS(72, 0, 32));
    CALL(dtc_type_indexed_block(3, 2, places, number, &own));
    same("indexed_block", own, DTC_COMBINER_INDEXED_BLOCK, INTEGERS(3, 2, 9, 0, 4), NONE);
    CALL(dtc_type_hindexed_block(3, 2, bytes, number, &own));
    same("hindexed_block", own, DTC_COMBINER_HINDEXED_BLOCK, INTEGERS(3, 2), INTEGERS(72, 0, 32));
    CALL(dtc_type_struct(engine, 3, lengths, bytes, children, &own));
    same("struct", own, DTC_COMBINER_STRUCT, INTEGERS(3, 2, 1, 3), INTEGERS(72, 0, 32));
    const int64_t sizes[] = {7, 8}, subsizes[] = {3, 2}, starts[] = {1, 4};
    CALL(dtc_type_subarray(2, sizes, subsizes, starts, DTC_ORDER_FORTRAN, number, &own));
    same("subarray", own, DTC_COMBINER_SUBARRAY, INTEGERS(2, 7, 8, 3, 2, 1, 4, DTC_ORDER_FORTRAN), NONE);
    const int64_t gsizes[] = {9, 6}, distribs[] = {DTC_DISTRIBUTE_CYCLIC, DTC_DISTRIBUTE_BLOCK};
    const int64_t dargs[] = {2, DTC_DISTRIBUTE_DEFAULT}, psizes[] = {2, 2};
    CALL(dtc_type_darray(4, 3, 2, gsizes, distribs, dargs, psizes, DTC_ORDER_C, number, &own));
    same("darray", own, DTC_COMBINER_DARRAY,
         INTEGERS(4, 3, 2, 9, 6, DTC_DISTRIBUTE_CYCLIC, DTC_DISTRIBUTE_BLOCK, 2, DTC_DISTRIBUTE_DEFAULT, 2, 2, DTC_ORDER_C),
         NONE);
    CALL(dtc_type_resized(number, -8, 32, &own));
    same("resized", own, DTC_COMBINER_RESIZED, NONE, INTEGERS(-8, 32));

    /* What is wrong is named, and nothing is handed out. */
    own = NULL;
    EXPECT(dtc_type_indexed(3, NULL, places, number, &own) == DTC_ERROR_ARGUMENT && own == NULL);
    EXPECT(strstr(dtc_message(), "indexed.blocklengths") != NULL);
    EXPECT(dtc_type_vector(-1, 2, 5, number, &own) == DTC_ERROR_TYPE && own == NULL);
    EXPECT(dtc_type_contiguous(1, NULL, &own) == DTC_ERROR_HANDLE && own == NULL);
    EXPECT(dtc_type_subarray(2, sizes, subsizes, starts, 7, number, &own) == DTC_ERROR_ARGUMENT && own == NULL);
    EXPECT(dtc_type_dup(number, NULL) == DTC_ERROR_ARGUMENT);

    CALL(dtc_type_release(number));
    CALL(dtc_type_release(character));
    CALL(dtc_finalize(engine));
    printf("constructors: 12\n");
    return 0;
}
