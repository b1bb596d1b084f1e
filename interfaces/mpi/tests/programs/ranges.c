/*
 * A profiler that wants ranges, by the protocol of NVTX 3: counts those that begin and end, and tells at the end of the process how many
 * there were, which names they had last, and how deep they lay.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void (*function)(void);

enum { CALLBACKS = 1, CORE = 1, RANGE_PUSH = 9, RANGE_POP = 11 };

struct callbacks {
    size_t size;
    int (*get)(int module, function ***places, unsigned *length);
};

static long begun, ended, deepest;
static __thread long depth;
static char last[128];

static int push(const char *name)
{
    __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
    if (++depth > deepest) deepest = depth;
    snprintf(last, sizeof last, "%s", name);
    return (int)depth;
}

static int pop(void)
{
    __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
    return (int)--depth;
}

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t));

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t))
{
    const struct callbacks *callbacks = get_table(CALLBACKS);
    function **places = NULL;
    unsigned length = 0;
    if (!callbacks || callbacks->size < sizeof *callbacks || !callbacks->get(CORE, &places, &length)) return 0;
    if (length <= RANGE_POP) return 0;
    *places[RANGE_PUSH] = (function)push;
    *places[RANGE_POP] = (function)pop;
    /* Profilers ask for all modules, and fill in what they have. */
    for (int module = 2; module < 7; module++) {
        if (!callbacks->get(module, &places, &length)) return 0;
        for (unsigned at = 1; at < length; at++) *places[at] = NULL;
    }
    return 1;
}

static __attribute__((destructor)) void tell(void)
{
    printf("ranges: %ld begun, %ld ended, %ld deep, last: %s\n", begun, ended, deepest, last);
    fflush(stdout);
}
