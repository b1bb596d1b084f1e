/* Packs and unpacks against the I/O vector of the type, whole and in pieces. */
#include "check.h"

enum { COUNT = 3 };

static unsigned char memory[MIXED_BEFORE + COUNT * MIXED_BYTES], restored[sizeof(memory)];

/* The packed bytes as the I/O vector has them. */
static size_t gather(yaksa_type_t type, const unsigned char *base, unsigned char *packed)
{
    uintptr_t length, written;
    DO(yaksa_iov_len(COUNT, type, &length));
    struct iovec *vector = calloc(length + 1, sizeof(*vector));
    DO(yaksa_iov((const char *) base, COUNT, type, 0, vector, length + 1, &written));
    CHECK(written == length);
    size_t bytes = 0;
    for (uintptr_t at = 0; at < length; bytes += vector[at++].iov_len)
        memcpy(packed + bytes, vector[at].iov_base, vector[at].iov_len);
    free(vector);
    return bytes;
}

static void whole_and_in_pieces(yaksa_type_t type, yaksa_info_t info)
{
    const uintptr_t total = COUNT * size_of(type);
    unsigned char *expected = malloc(total), *packed = malloc(total + 1);
    uintptr_t actual;
    CHECK(gather(type, memory + MIXED_BEFORE, expected) == total);
    DO(yaksa_pack(memory + MIXED_BEFORE, COUNT, type, 0, packed, total + 99, &actual, info, YAKSA_OP__REPLACE));
    CHECK(actual == total && memcmp(packed, expected, total) == 0);

    for (uintptr_t piece = 8; piece <= total; piece += piece < 40 ? 1 : 97) {
        memset(packed, 0xa5, total + 1);
        memset(restored, 0x5a, sizeof(restored));
        for (uintptr_t offset = 0; offset < total; offset += actual) {
            yaksa_request_t request = 1;
            int completed = 0;
            DO(yaksa_ipack(memory + MIXED_BEFORE, COUNT, type, offset, packed + offset, piece, &actual, info,
                           YAKSA_OP__REPLACE, &request));
            CHECK(actual > 0 && actual <= piece && packed[offset + actual] == 0xa5);
            CHECK(request == YAKSA_REQUEST__NULL);
            DO(yaksa_request_test(request, &completed));
            CHECK(completed);
            uintptr_t taken;
            DO(yaksa_iunpack(packed + offset, actual, restored + MIXED_BEFORE, COUNT, type, offset, &taken, info,
                             YAKSA_OP__REPLACE, &request));
            CHECK(taken == actual && request == YAKSA_REQUEST__NULL);
            DO(yaksa_request_wait(request));
        }
        CHECK(memcmp(packed, expected, total) == 0);
        memset(packed, 0, total);
        CHECK(gather(type, restored + MIXED_BEFORE, packed) == total && memcmp(packed, expected, total) == 0);
    }

    /* Whatever is cut, by whoever: single bytes, the last first. */
    memset(restored, 0x5a, sizeof(restored));
    for (uintptr_t offset = total; offset-- > 0;) {
        DO(yaksa_unpack(expected + offset, 1, restored + MIXED_BEFORE, COUNT, type, offset, &actual, info,
                        YAKSA_OP__REPLACE));
        CHECK(actual == 1);
    }
    CHECK(gather(type, restored + MIXED_BEFORE, packed) == total && memcmp(packed, expected, total) == 0);
    size_t untouched = 0;
    for (size_t at = 0; at < sizeof(restored); at++)
        untouched += restored[at] == 0x5a && memory[at] != 0x5a;
    CHECK(untouched > sizeof(restored) - total - sizeof(restored) / 64);
    free(expected);
    free(packed);
}

static void elements_stay_whole(void)
{
    const struct { yaksa_type_t type; uintptr_t offset, max, actual; } cases[] = {
        {YAKSA_TYPE__INT, 0, 7, 4},          {YAKSA_TYPE__INT, 4, 3, 0},
        {YAKSA_TYPE__C_DOUBLE_COMPLEX, 0, 24, 16}, {YAKSA_TYPE__SHORT_INT, 6, 11, 6},
        {YAKSA_TYPE__BYTE, 1, 3, 3},         {YAKSA_TYPE__DOUBLE, 16, 99, 8},
    };
    char packed[64];
    for (size_t at = 0; at < sizeof(cases) / sizeof(*cases); at++) {
        uintptr_t actual;
        DO(yaksa_pack(memory, 3, cases[at].type, cases[at].offset, packed, cases[at].max, &actual, NULL,
                      YAKSA_OP__REPLACE));
        uintptr_t rest = 3 * size_of(cases[at].type) - cases[at].offset;
        CHECK(actual == (cases[at].actual < rest ? cases[at].actual : rest));
    }
}

static void nothing_to_do(void)
{
    uintptr_t actual = 9;
    yaksa_request_t request = 9;
    DO(yaksa_pack(NULL, 0, YAKSA_TYPE__INT, 0, NULL, 100, &actual, NULL, YAKSA_OP__REPLACE));
    CHECK(actual == 0);
    DO(yaksa_ipack(NULL, 5, YAKSA_TYPE__NULL, 0, NULL, 100, &actual, NULL, YAKSA_OP__REPLACE, &request));
    CHECK(actual == 0 && request == YAKSA_REQUEST__NULL);
    DO(yaksa_unpack(memory, 8, NULL, 2, YAKSA_TYPE__INT, 8, &actual, NULL, YAKSA_OP__REPLACE));
    CHECK(actual == 0);
    CHECK(yaksa_pack(memory, UINTPTR_MAX, YAKSA_TYPE__INT, 0, memory, 4, &actual, NULL, YAKSA_OP__REPLACE) ==
          YAKSA_ERR__INTERNAL);
    CHECK(yaksa_pack(memory, 1, YAKSA_TYPE__INT, 0, restored, 4, &actual, NULL, YAKSA_OP__LAST) ==
          YAKSA_ERR__NOT_SUPPORTED);
}

/* A base of zero, and the addresses in the type. */
static void absolute(void)
{
    static int here[4] = {1, 2, 3, 4}, there[4] = {5, 6, 7, 8};
    const intptr_t lengths[2] = {2, 3}, places[2] = {(intptr_t) &there[1], (intptr_t) here};
    int packed[5] = {0};
    uintptr_t actual;
    yaksa_type_t type;
    DO(yaksa_type_create_hindexed(2, lengths, places, YAKSA_TYPE__INT, NULL, &type));
    DO(yaksa_pack(NULL, 1, type, 0, packed, sizeof(packed), &actual, NULL, YAKSA_OP__REPLACE));
    CHECK(actual == 20 && packed[0] == 6 && packed[1] == 7 && packed[2] == 1 && packed[4] == 3);
    DO(yaksa_type_free(type));
}

static void streams_of_the_host(void)
{
    int from[4] = {1, 2, 3, 4}, packed[2] = {0}, to[4] = {0};
    void *stream = NULL;
    uintptr_t actual;
    yaksa_type_t type;
    DO(yaksa_type_create_vector(2, 1, 2, YAKSA_TYPE__INT, NULL, &type));
    DO(yaksa_pack_stream(from, 1, type, 0, packed, 8, &actual, NULL, YAKSA_OP__REPLACE, &stream));
    CHECK(actual == 8 && packed[0] == 1 && packed[1] == 3);
    DO(yaksa_unpack_stream(packed, 8, to, 1, type, 0, &actual, NULL, YAKSA_OP__REPLACE, &stream));
    CHECK(actual == 8 && to[0] == 1 && to[1] == 0 && to[2] == 3);
    CHECK(yaksa_pack_stream(from, 1, type, 0, packed, 8, &actual, NULL, YAKSA_OP__REPLACE, NULL) ==
          YAKSA_ERR__INTERNAL);
    DO(yaksa_type_free(type));
}

int main(void)
{
    yaksa_info_t no_gpu;
    DO(yaksa_info_create(&no_gpu));
    DO(yaksa_info_keyval_append(no_gpu, "yaksa_gpu_driver", "nogpu", 6));
    DO(yaksa_init(NULL));
    for (size_t at = 0; at < sizeof(memory); at++)
        memory[at] = (unsigned char) (at * 7 + at / 251);
    yaksa_type_t type = mixed_type();
    whole_and_in_pieces(type, NULL);
    whole_and_in_pieces(type, no_gpu);
    DO(yaksa_type_free(type));
    whole_and_in_pieces(YAKSA_TYPE__SHORT_INT, NULL);
    elements_stay_whole();
    nothing_to_do();
    absolute();
    streams_of_the_host();
    DO(yaksa_finalize());
    DO(yaksa_info_free(no_gpu));
    return 0;
}
