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
    /* As messages say them. */
    const char *expected, *otherwise;
} settings[] = {
    {"DTC_MPI", {"off", "on", "all"}, "off, on or all", "dtc stays on"},
    {"DTC_MPI_REPORT", {"1", "on", "0", "off"}, "1 or 0", "the report comes"},
    {"DTC_MPI_GPU", {"host", "device"}, "host or device", "the MPI says what it is given"},
    {"DTC_MPI_DIRECT", {"on", "off"}, "on or off", "it stays on"},
};

static int is_value(const char *text, const char *value)
{
    return !strcasecmp(text, value);
}

int dtc_mpi_is_set(const char *variable, const char *value)
{
    const char *text = getenv(variable);
    return text && is_value(text, value);
}

static int is_known(const struct setting *setting, const char *text)
{
    for (size_t at = 0; at < sizeof setting->values / sizeof *setting->values; at++)
        if (setting->values[at] && is_value(text, setting->values[at])) return 1;
    return !*text;
}

void dtc_mpi_say_unknown_settings(void)
{
    for (size_t at = 0; at < sizeof settings / sizeof *settings; at++) {
        const struct setting *setting = &settings[at];
        const char *text = getenv(setting->variable);
        if (!text || is_known(setting, text)) continue;
        fprintf(stderr, "libdtc_mpi: %s: expected %s, found \"%.*s\": %s\n", setting->variable, setting->expected, MOST_PRINTED, text,
                setting->otherwise);
    }
}
