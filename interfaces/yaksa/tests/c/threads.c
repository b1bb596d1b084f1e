/* threads SECONDS: four threads pack, unpack, create and free, also one type that they share. */
#include "check.h"
#include <pthread.h>
#include <time.h>

static yaksa_type_t shared;
static time_t end;

static void *work(void *argument)
{
    unsigned number = (unsigned) (uintptr_t) argument, round = 0;
    unsigned char *memory = malloc(MIXED_BEFORE + MIXED_BYTES), *other = malloc(MIXED_BEFORE + MIXED_BYTES);
    unsigned char packed[1024], again[1024];
    for (size_t at = 0; at < MIXED_BEFORE + MIXED_BYTES; at++)
        memory[at] = (unsigned char) (at * 3 + number);
    do {
        /* One that was packed with before, and one that was not: also its first use is raced for. */
        yaksa_type_t own, types[2];
        DO(yaksa_type_create_hvector(1, 1, 0, shared, NULL, &types[0]));
        DO(yaksa_type_create_hvector(2, 1, 8 * (round % 97), YAKSA_TYPE__INT, NULL, &own));
        DO(yaksa_type_create_dup(own, NULL, &types[1]));
        DO(yaksa_type_free(own));
        for (int at = 0; at < 2; at++) {
            uintptr_t size = size_of(types[at]), actual, half = size / 2;
            DO(yaksa_pack(memory + MIXED_BEFORE, 1, types[at], 0, packed, half, &actual, NULL, YAKSA_OP__REPLACE));
            half = actual;
            DO(yaksa_pack(memory + MIXED_BEFORE, 1, types[at], half, packed + half, size, &actual, NULL,
                          YAKSA_OP__REPLACE));
            CHECK(half + actual == size);
            DO(yaksa_unpack(packed, size, other + MIXED_BEFORE, 1, types[at], 0, &actual, NULL, YAKSA_OP__REPLACE));
            DO(yaksa_pack(other + MIXED_BEFORE, 1, types[at], 0, again, size, &actual, NULL, YAKSA_OP__REPLACE));
            CHECK(actual == size && memcmp(packed, again, size) == 0);
            DO(yaksa_type_free(types[at]));
        }
        struct iovec vector[5];
        uintptr_t length, written;
        DO(yaksa_iov_len(3, shared, &length));
        DO(yaksa_iov((char *) memory, 3, shared, round % length, vector, 5, &written));
        round++;
    } while (round % 64 != 0 || time(NULL) < end);
    free(memory);
    free(other);
    return NULL;
}

int main(int count, char **arguments)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    DO(yaksa_init(NULL));
    shared = mixed_type();
    end = time(NULL) + (count > 1 ? atoi(arguments[1]) : 1);
    for (uintptr_t at = 0; at < THREADS; at++)
        CHECK(pthread_create(&threads[at], NULL, work, (void *) at) == 0);
    for (int at = 0; at < THREADS; at++)
        CHECK(pthread_join(threads[at], NULL) == 0);
    DO(yaksa_type_free(shared));
    DO(yaksa_finalize());
    return 0;
}
