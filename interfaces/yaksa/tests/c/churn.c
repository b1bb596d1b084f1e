/* churn PAIRS: types are created and freed, and the process does not grow. Prints nanoseconds for a pair. */
#include "check.h"
#include <time.h>
#include <unistd.h>

static long resident_pages(void)
{
    long total, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld %ld", &total, &resident) == 2);
    fclose(file);
    return resident;
}

static void pairs(long count)
{
    static const intptr_t lengths[4] = {1, 2, 1, 3}, places[4] = {0, 5, 9, 20};
    static const yaksa_type_t parts[4] = {YAKSA_TYPE__INT, YAKSA_TYPE__DOUBLE, YAKSA_TYPE__CHAR, YAKSA_TYPE__INT};
    for (long at = 0; at < count; at++) {
        yaksa_type_t type;
        switch (at % 4) {
        case 0: DO(yaksa_type_create_vector(4, 2, 5, YAKSA_TYPE__DOUBLE, NULL, &type)); break;
        case 1: DO(yaksa_type_create_indexed(4, lengths, places, YAKSA_TYPE__INT, NULL, &type)); break;
        case 2: DO(yaksa_type_create_struct(4, lengths, places, parts, NULL, &type)); break;
        default: DO(yaksa_type_create_resized(YAKSA_TYPE__INT, 0, 64, NULL, &type)); break;
        }
        DO(yaksa_type_free(type));
    }
}

int main(int count, char **arguments)
{
    long asked = count > 1 ? atol(arguments[1]) : 100000;
    struct timespec begin, end;
    DO(yaksa_init(NULL));
    pairs(1000);
    long before = resident_pages();
    clock_gettime(CLOCK_MONOTONIC, &begin);
    pairs(asked);
    clock_gettime(CLOCK_MONOTONIC, &end);
    CHECK(resident_pages() - before < 256);
    printf("%.1f\n", ((double) (end.tv_sec - begin.tv_sec) * 1e9 + (double) (end.tv_nsec - begin.tv_nsec)) / (double) asked);
    DO(yaksa_finalize());
    return 0;
}
