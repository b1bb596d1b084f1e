/*
 * MPI_Pack_external and MPI_Unpack_external of types drawn at random, which consist of one predefined type each. Every byte is compared
 * with the list of displacements of this program: external32 has the bytes of each value in the other order.
 *
 *   external [TYPES [SEED]]
 *
 * Nothing that is checked is specific to dtc. Prints how many types there were, after the first failures. Returns 1 if one failed.
 */
#include "types.h"

enum { LARGE = 300000 };

/* Predefined types, and the bytes of each of their values. */
static const struct {
    MPI_Datatype type;
    long value;
} kinds[] = {{MPI_CHAR, 1},   {MPI_BYTE, 1},   {MPI_SHORT, 2},           {MPI_UINT16_T, 2},           {MPI_INT, 4},  {MPI_UNSIGNED, 4},
             {MPI_FLOAT, 4},  {MPI_DOUBLE, 8}, {MPI_INT64_T, 8},         {MPI_UINT64_T, 8},           {MPI_2INT, 4}, {MPI_LONG_LONG, 8},
             {MPI_DOUBLE, 8}, {MPI_INT, 4},    {MPI_C_FLOAT_COMPLEX, 4}, {MPI_C_DOUBLE_COMPLEX, 8}};

static check conversions = {"external32", 0};

static void convert(const drawn *made, long count, const elements *laid, long value) {
    MPI_Aint size = -1, position = 3;
    MPI_Pack_external_size("external32", (int)count, made->type, &size);
    if (size != laid->bytes) {
        fail("size: expected %ld, found %ld", laid->bytes, (long)size);
        return;
    }
    unsigned char *packed = memory_of(laid->bytes + 8);
    memset(packed, POISON, (size_t)laid->bytes + 8);
    MPI_Pack_external("external32", base(laid), (int)count, made->type, packed, laid->bytes + 3, &position);
    for (long at = 0; at < laid->bytes + 8; at++) {
        long byte = at - 3;
        int is_byte = byte >= 0 && byte < laid->bytes;
        int expected = is_byte ? laid->memory[laid->at[byte / value * value + value - 1 - byte % value] - laid->low] : POISON;
        if (packed[at] != expected) {
            fail("packed byte %ld of %ld: expected %d, found %d", byte, laid->bytes, expected, packed[at]);
            break;
        }
    }
    if (position != laid->bytes + 3) {
        fail("position: expected %ld, found %ld", laid->bytes + 3, (long)position);
    }
    if (!laid->repeats) {
        elements back = lay_out(made, count, 0);
        position = 3;
        MPI_Unpack_external("external32", packed, laid->bytes + 3, &position, base(&back), (int)count, made->type);
        unsigned char *image = memory_of(laid->span + 2 * GUARD);
        memset(image, POISON, (size_t)(laid->span + 2 * GUARD));
        for (long at = 0; at < laid->bytes; at++) {
            image[GUARD + laid->at[at] - laid->low] = laid->memory[laid->at[at] - laid->low];
        }
        if (memcmp(image, back.memory - GUARD, (size_t)(laid->span + 2 * GUARD)) != 0 || position != laid->bytes + 3) {
            fail("unpack: expected the %ld bytes that were packed and nothing else, found others", laid->bytes);
        }
        free(image);
        end(&back);
    }
    free(packed);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    checking = &conversions;
    long types = argc > 1 ? atol(argv[1]) : 500, bytes = 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (type_number = 0; type_number < types; type_number++) {
        state = (seed << 32) + (uint64_t)type_number * 977;
        long kind = draw(0, sizeof kinds / sizeof *kinds - 1);
        int size;
        only = kinds[kind].type;
        MPI_Type_size(only, &size);
        grain = draw(0, 1) ? size : 1;
        drawn made = node((int)draw(0, 5));
        MPI_Type_commit(&made.type);
        long count = draw(0, 9) == 0 && made.bytes > 0 ? 1 + LARGE / made.bytes : draw(0, 4);
        elements laid = lay_out(&made, count, 1 + (int)type_number);
        convert(&made, count, &laid, kinds[kind].value);
        bytes += laid.bytes;
        end(&laid);
        release(&made);
    }
    printf("%ld types, %ld bytes, %ld failed\n", types, bytes, conversions.failures);
    MPI_Finalize();
    return conversions.failures > 0;
}
