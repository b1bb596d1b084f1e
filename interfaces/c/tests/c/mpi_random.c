/* Decodes each datatype of an array `types`, and prints "same" or how dtc differs from the MPI. */
#include <dtc_mpi.h>
#include <stdarg.h>

static void differs(const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    vprintf(form, arguments);
    va_end(arguments);
    puts("");
}

static void compare(const dtc_mpi_decoder *decoder, MPI_Datatype datatype, int packs)
{
    dtc_type *type;
    int status = dtc_mpi_committed(decoder, datatype, &type);
    if (status != DTC_OK) {
        differs("status %d: %s", status, dtc_message());
        return;
    }
    dtc_info info = DTC_INFO_INIT;
    dtc_type_query(type, &info);
    MPI_Count size, lb, extent;
    MPI_Type_size_x(datatype, &size);
    MPI_Type_get_extent_x(datatype, &lb, &extent);
    /* What dtc packs is compared where the MPI follows the type map. */
    int64_t low = info.true_lb + (extent < 0 ? extent : 0), span = info.true_extent + llabs(extent), done = 0;
    unsigned char *memory = malloc((size_t)span + 1), *expected = malloc(2 * (size_t)size + 1), *found = malloc(2 * (size_t)size + 1);
    int position = 0, same = 1;
    for (int64_t at = 0; at < span; at++) memory[at] = (unsigned char)(rand() >> 7);
    if (packs && size > 0) {
        MPI_Pack(memory - low, 2, datatype, expected, (int)(2 * size), &position, MPI_COMM_SELF);
        status = dtc_pack(type, memory - low, 2, 0, found, 2 * size, &done, NULL);
        same = status == DTC_OK && done == position && !memcmp(expected, found, (size_t)position);
    }
    if (info.packed_size != size) differs("size %ld, MPI has %ld", (long)info.packed_size, (long)size);
    else if (info.lb != lb || info.extent != extent)
        differs("bounds %ld %ld, MPI has %ld %ld", (long)info.lb, (long)info.extent, (long)lb, (long)extent);
    else if (!same) differs("other bytes, status %d", status);
    else puts("same");
    free(memory);
    free(expected);
    free(found);
    dtc_type_release(type);
}

int main(int argc, char **argv)
{
    dtc_engine *engine;
    dtc_mpi_decoder decoder;
    MPI_Init(&argc, &argv);
    if (dtc_init(NULL, &engine) != DTC_OK || dtc_mpi_decoder_init(engine, &decoder) != DTC_OK) return 1;
    for (unsigned long at = 0; at < sizeof types / sizeof *types; at++) {
        MPI_Datatype datatype = types[at].build();
        compare(&decoder, datatype, types[at].packs);
        MPI_Type_free(&datatype);
    }
    dtc_mpi_decoder_free(&decoder);
    dtc_finalize(engine);
    MPI_Finalize();
    return 0;
}
