/*
 * Decodes datatypes of an MPI and compares what dtc packs with what the MPI packs.
 *
 * Prints "mpi_decoder: N types" and ends with 0, or names the first type that differs. Runs as one process, without a launcher.
 */
#include <dtc_mpi.h>
#include <stdio.h>

#define CHECK(condition, ...)                                                                                                     \
    do {                                                                                                                           \
        if (!(condition)) {                                                                                                        \
            printf("line %d: " #condition ": ", __LINE__);                                                                         \
            printf(__VA_ARGS__);                                                                                                   \
            printf(" (%s)\n", dtc_message());                                                                                      \
            exit(1);                                                                                                               \
        }                                                                                                                          \
    } while (0)

static dtc_engine *engine;
static dtc_mpi_decoder decoder;
static int types;

/* Compares size, bounds and packed bytes of two elements; frees the datatype unless it is predefined. */
static void compare(const char *name, MPI_Datatype datatype)
{
    dtc_type *type;
    CHECK(dtc_mpi_committed(&decoder, datatype, &type) == DTC_OK, "%s", name);
    dtc_info info = DTC_INFO_INIT;
    CHECK(dtc_type_query(type, &info) == DTC_OK, "%s", name);
    MPI_Count size, lb, extent, true_lb, true_extent;
    MPI_Type_size_x(datatype, &size);
    MPI_Type_get_extent_x(datatype, &lb, &extent);
    MPI_Type_get_true_extent_x(datatype, &true_lb, &true_extent);
    CHECK(info.packed_size == size, "%s: %ld", name, (long)size);
    CHECK(info.lb == lb && info.extent == extent, "%s: %ld %ld", name, (long)lb, (long)extent);
    if (size > 0) CHECK(info.true_lb == true_lb && info.true_extent == true_extent, "%s", name);
    if (dtc_mpi_is_predefined(dtc_mpi_get_envelope(datatype).combiner)) MPI_Type_dup(datatype, &datatype);
    MPI_Type_commit(&datatype);
    int64_t low = true_lb + (extent < 0 ? extent : 0), span = true_extent + llabs(extent), done = 0;
    unsigned char *memory = malloc((size_t)span + 1), *expected = malloc(2 * (size_t)size + 1), *found = malloc(2 * (size_t)size + 1);
    for (int64_t at = 0; at < span; at++) memory[at] = (unsigned char)(rand() >> 7);
    memset(expected, 0x5a, 2 * (size_t)size + 1);
    memset(found, 0x5a, 2 * (size_t)size + 1);
    int position = 0;
    MPI_Pack(memory - low, 2, datatype, expected, (int)(2 * size), &position, MPI_COMM_SELF);
    CHECK(dtc_pack(type, memory - low, 2, 0, found, 2 * size, &done, NULL) == DTC_OK, "%s", name);
    CHECK(done == position && !memcmp(expected, found, 2 * (size_t)size + 1), "%s: %ld bytes", name, (long)done);
    free(memory);
    free(expected);
    free(found);
    dtc_type_release(type);
    MPI_Type_free(&datatype);
    types++;
}

static MPI_Datatype vector(int count, int blocklength, int stride, MPI_Datatype child)
{
    MPI_Datatype type;
    MPI_Type_vector(count, blocklength, stride, child, &type);
    return type;
}

static void constructors(void)
{
    MPI_Datatype type, child;
    int lengths[] = {2, 0, 3}, places[] = {5, 1, 9};
    MPI_Aint bytes[] = {40, 8, 100};
    MPI_Type_contiguous(5, MPI_DOUBLE, &type);
    compare("contiguous", type);
    compare("vector", vector(3, 2, 5, MPI_SHORT));
    compare("vector backwards", vector(3, 2, -5, MPI_SHORT));
    MPI_Type_create_hvector(4, 2, 41, MPI_FLOAT, &type);
    compare("hvector", type);
    MPI_Type_indexed(3, lengths, places, MPI_INT, &type);
    compare("indexed", type);
    MPI_Type_create_hindexed(3, lengths, bytes, MPI_INT, &type);
    compare("hindexed", type);
    MPI_Type_create_indexed_block(3, 2, places, MPI_INT, &type);
    compare("indexed_block", type);
    MPI_Type_create_hindexed_block(3, 2, bytes, MPI_INT, &type);
    compare("hindexed_block", type);
    MPI_Datatype children[] = {MPI_DOUBLE_INT, MPI_CHAR, vector(2, 1, 3, MPI_INT)};
    MPI_Type_create_struct(3, lengths, bytes, children, &type);
    compare("struct", type);
    MPI_Type_create_resized(children[2], -8, 64, &child);
    MPI_Type_free(&children[2]);
    MPI_Type_contiguous(3, child, &type);
    MPI_Type_free(&child);
    compare("contiguous of resized", type);
    int sizes[] = {6, 5, 7}, subsizes[] = {2, 3, 4}, starts[] = {1, 2, 0}, orders[] = {MPI_ORDER_C, MPI_ORDER_FORTRAN};
    int distributions[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE};
    int arguments[] = {2, MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, processes[] = {2, 3, 1};
    for (int order = 0; order < 2; order++) {
        MPI_Type_create_subarray(3, sizes, subsizes, starts, orders[order], MPI_INT, &type);
        compare("subarray", type);
        for (int rank = 0; rank < 6; rank++) {
            MPI_Type_create_darray(6, rank, 3, sizes, distributions, arguments, processes, orders[order], MPI_INT, &type);
            compare("darray", type);
        }
    }
    /* Markers are sticky in one MPI, and not in another. */
    MPI_Type_create_resized(MPI_INT, 0, 16, &child);
    int two[] = {2, 1};
    MPI_Aint apart[] = {0, 64};
    MPI_Datatype marked[] = {MPI_INT, child};
    MPI_Type_create_struct(2, two, apart, marked, &type);
    MPI_Type_free(&child);
    compare("struct of a resized", type);
#if MPI_VERSION >= 4
    MPI_Count counts[] = {2, 0, 3}, far[] = {40, 8, 100}, csizes[] = {6, 5, 7}, csub[] = {2, 3, 4}, cstarts[] = {1, 2, 0};
    MPI_Type_contiguous_c(5, MPI_DOUBLE, &type);
    compare("contiguous_c", type);
    MPI_Type_vector_c(3, 2, 5, MPI_SHORT, &type);
    compare("vector_c", type);
    MPI_Type_create_hvector_c(4, 2, 41, MPI_FLOAT, &type);
    compare("hvector_c", type);
    MPI_Type_indexed_c(3, counts, far, MPI_INT, &type);
    compare("indexed_c", type);
    MPI_Type_create_hindexed_c(3, counts, far, MPI_INT, &type);
    compare("hindexed_c", type);
    MPI_Type_create_indexed_block_c(3, 2, far, MPI_INT, &type);
    compare("indexed_block_c", type);
    MPI_Type_create_hindexed_block_c(3, 2, far, MPI_INT, &type);
    compare("hindexed_block_c", type);
    MPI_Datatype named[] = {MPI_DOUBLE_INT, MPI_CHAR, MPI_INT};
    MPI_Type_create_struct_c(3, counts, far, named, &type);
    compare("struct_c", type);
    MPI_Type_create_resized_c(MPI_INT, -8, 64, &type);
    compare("resized_c", type);
    for (int order = 0; order < 2; order++) {
        MPI_Type_create_subarray_c(3, csizes, csub, cstarts, orders[order], MPI_INT, &type);
        compare("subarray_c", type);
        for (int rank = 0; rank < 6; rank++) {
            MPI_Type_create_darray_c(6, rank, 3, csizes, distributions, arguments, processes, orders[order], MPI_INT, &type);
            compare("darray_c", type);
        }
    }
#endif
}

static void predefined(void)
{
    MPI_Datatype all[] = {MPI_CHAR, MPI_BYTE, MPI_PACKED, MPI_SHORT, MPI_INT, MPI_LONG, MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE,
                          MPI_C_BOOL, MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_AINT, MPI_COUNT, MPI_INT8_T, MPI_UINT64_T,
                          MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_SHORT_INT, MPI_LONG_DOUBLE_INT, MPI_2INT};
    for (unsigned long at = 0; at < sizeof all / sizeof *all; at++) compare("a predefined type", all[at]);
    MPI_Datatype type;
    if (MPI_Type_create_f90_integer(9, &type) == MPI_SUCCESS) {
        MPI_Type_contiguous(3, type, &type);
        compare("an integer of Fortran's kinds", type);
    }
}

/* Values of handles are used again. The type goes with the datatype, and with its duplicates. */
static void handles(void)
{
    dtc_type *first, *again, *copied, *other, *again_other;
    MPI_Datatype datatype = vector(3, 1, 2, MPI_INT), duplicate;
    CHECK(dtc_mpi_committed(&decoder, datatype, &first) == DTC_OK, "first");
    CHECK(dtc_mpi_committed(&decoder, datatype, &again) == DTC_OK && again == first, "again");
    MPI_Type_dup(datatype, &duplicate);
    CHECK(dtc_mpi_committed(&decoder, duplicate, &copied) == DTC_OK && copied == first, "duplicate");
    MPI_Type_free(&datatype);
    MPI_Type_free(&duplicate);
    datatype = vector(7, 1, 2, MPI_INT);
    CHECK(dtc_mpi_committed(&decoder, datatype, &other) == DTC_OK, "other");
    dtc_info info = DTC_INFO_INIT;
    dtc_type_query(other, &info);
    CHECK(info.packed_size == 28, "%ld", (long)info.packed_size);
    /* What is taken away is made again, and need not be there. */
    CHECK(dtc_mpi_forget(&decoder, datatype) == DTC_OK && dtc_mpi_forget(&decoder, datatype) == DTC_OK, "forget");
    CHECK(dtc_mpi_committed(&decoder, datatype, &again_other) == DTC_OK && again_other != other, "forgotten");
    dtc_type_release(again_other);
    /* The references of this function outlive the datatype. */
    CHECK(dtc_type_query(first, &info) == DTC_OK && info.packed_size == 12, "%ld", (long)info.packed_size);
    MPI_Type_free(&datatype);
    dtc_type_release(first);
    dtc_type_release(again);
    dtc_type_release(copied);
    dtc_type_release(other);
    /* The message is that of this failure, and not of an earlier one. */
    static const char expected[] = "datatype: expected a datatype, found MPI_DATATYPE_NULL";
    CHECK(dtc_type_named(engine, "no such type", &first) != DTC_OK && strcmp(dtc_message(), expected), "named");
    CHECK(dtc_mpi_committed(&decoder, MPI_DATATYPE_NULL, &first) == DTC_ERROR_ARGUMENT && !strcmp(dtc_message(), expected), "null");
    CHECK(dtc_type_named(engine, "no such type", &first) != DTC_OK, "named");
    CHECK(dtc_mpi_type(&decoder, MPI_DATATYPE_NULL, &first) == DTC_ERROR_ARGUMENT && !strcmp(dtc_message(), expected), "null");
    CHECK(dtc_mpi_forget(&decoder, MPI_DATATYPE_NULL) == DTC_ERROR_ARGUMENT && !strcmp(dtc_message(), expected), "null");
}

/* Open MPI itself writes such graphs out. */
#ifdef OPEN_MPI
enum { LEVELS = 14 };
#else
enum { LEVELS = 26 };
#endif

/* A graph in which 2^LEVELS paths lead to the last node, and a chain of 2,000. */
static void graphs(void)
{
    MPI_Datatype datatype = MPI_CHAR, next;
    dtc_type *type;
    int ones[] = {1, 1};
    for (int level = 0; level < LEVELS; level++) {
        MPI_Datatype both[] = {datatype, datatype};
        MPI_Aint size = (MPI_Aint)1 << level, places[] = {0, size};
        MPI_Type_create_struct(2, ones, places, both, &next);
        if (datatype != MPI_CHAR) MPI_Type_free(&datatype);
        datatype = next;
    }
    CHECK(dtc_mpi_type(&decoder, datatype, &type) == DTC_OK, "a graph");
    dtc_info info = DTC_INFO_INIT;
    CHECK(dtc_type_commit(type, 0) == DTC_OK && dtc_type_query(type, &info) == DTC_OK && info.packed_size == 1 << LEVELS, "a graph");
    dtc_type_release(type);
    MPI_Type_free(&datatype);
    datatype = vector(2, 1, 3, MPI_INT);
    for (int level = 0; level < 2000; level++) {
        MPI_Type_contiguous(1, datatype, &next);
        MPI_Type_free(&datatype);
        datatype = next;
    }
    compare("a chain", datatype);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK(dtc_init(NULL, &engine) == DTC_OK, "engine");
    CHECK(dtc_mpi_decoder_init(engine, &decoder) == DTC_OK, "decoder");
    constructors();
    predefined();
    handles();
    graphs();
    CHECK(dtc_mpi_decoder_free(&decoder) == DTC_OK, "decoder");
    dtc_finalize(engine);
    MPI_Finalize();
    printf("mpi_decoder: %d types\n", types);
    return 0;
}
