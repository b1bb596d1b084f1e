/* Variables of the environment with fixed values. */
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Most characters of an unknown value that are printed. */
enum { MOST_PRINTED = 40 };

static const struct setting {
    const char *variable;
    const char *values[4];
    /* Whether several values may stand in it. */
    int is_list;
    /* As messages say them. */
    const char *expected, *otherwise;
} settings[] = {
    {"DTC_MPI", {"off", "on", "all"}, 0, "off, on or all", "dtc stays on"},
    {"DTC_MPI_REPORT", {"1", "on", "0", "off"}, 0, "1 or 0", "the report comes"},
    {"DTC_MPI_GPU", {"host", "device"}, 0, "host or device", "the MPI says what it is given"},
    {"DTC_MPI_DIRECT", {"off", "elements", "messages"}, 1, "off, or elements and messages with a comma between them", "it asks for nothing"},
};

/* The value at the beginning of a text, of `length` characters: up to a comma, or all of it. */
static size_t length_of_value(const struct setting *setting, const char *text)
{
    return setting->is_list ? strcspn(text, ",") : strlen(text);
}

static int is_value(const char *text, size_t length, const char *value)
{
    return strlen(value) == length && !strncasecmp(text, value, length);
}

/* What stands behind a value; null behind the last. */
static const char *next_value(const char *text, size_t length)
{
    return text[length] ? text + length + 1 : NULL;
}

int dtc_mpi_is_set(const char *variable, const char *value)
{
    for (size_t at = 0; at < sizeof settings / sizeof *settings; at++) {
        if (strcmp(settings[at].variable, variable)) continue;
        size_t length;
        for (const char *text = getenv(variable); text; text = next_value(text, length)) {
            length = length_of_value(&settings[at], text);
            if (is_value(text, length, value)) return 1;
        }
    }
    return 0;
}

static int is_known(const struct setting *setting, const char *text, size_t length)
{
    for (size_t at = 0; at < sizeof setting->values / sizeof *setting->values; at++)
        if (setting->values[at] && is_value(text, length, setting->values[at])) return 1;
    return length == 0;
}

void dtc_mpi_say_unknown_settings(void)
{
    for (size_t at = 0; at < sizeof settings / sizeof *settings; at++) {
        const struct setting *setting = &settings[at];
        size_t length;
        for (const char *text = getenv(setting->variable); text; text = next_value(text, length)) {
            length = length_of_value(setting, text);
            if (is_known(setting, text, length)) continue;
            fprintf(stderr, "libdtc_mpi: %s: expected %s, found \"%.*s\": %s\n", setting->variable, setting->expected,
                    length > MOST_PRINTED ? MOST_PRINTED : (int)length, text, setting->otherwise);
        }
    }
}
