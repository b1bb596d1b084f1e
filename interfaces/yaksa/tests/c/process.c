/* process forks: children that are forked while threads are inside every call end.
   process stack: every call, the first included, runs on a stack of 32 KiB. */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, FORKS = 150, SECONDS = 3 };

/* The type that each thread is busy with; 0 for none. */
static _Atomic yaksa_type_t slots[THREADS];
static atomic_int stop;

/* Every call that takes a type. */
static void use(yaksa_type_t type)
{
    static unsigned char memory[MIXED_BEFORE + MIXED_BYTES];
    unsigned char other[MIXED_BEFORE + MIXED_BYTES], packed[1024];
    uintptr_t size = size_of(type), actual, length;
    struct iovec vector[5];
    yaksa_type_t dup;
    DO(yaksa_init(NULL));
    DO(yaksa_iov_len(2, type, &length));
    DO(yaksa_iov((char *) memory + MIXED_BEFORE, 2, type, length / 2, vector, 5, &actual));
    DO(yaksa_pack(memory + MIXED_BEFORE, 1, type, 0, packed, size, &actual, NULL, YAKSA_OP__REPLACE));
    CHECK(actual == size);
    DO(yaksa_unpack(packed, size, other + MIXED_BEFORE, 1, type, 0, &actual, NULL, YAKSA_OP__REPLACE));
    DO(yaksa_type_create_dup(type, NULL, &dup));
    DO(yaksa_pack(memory + MIXED_BEFORE, 1, dup, 0, packed, size, &actual, NULL, YAKSA_OP__REPLACE));
    DO(yaksa_type_free(dup));
    uintptr_t bytes;
    DO(yaksa_flatten_size(type, &bytes));
    void *flat = malloc(bytes);
    DO(yaksa_flatten(type, flat));
    DO(yaksa_unflatten(&dup, flat));
    DO(yaksa_pack(memory + MIXED_BEFORE, 1, dup, 0, packed, size, &actual, NULL, YAKSA_OP__REPLACE));
    DO(yaksa_type_free(dup));
    free(flat);
    DO(yaksa_finalize());
}

static yaksa_type_t make(unsigned round)
{
    yaksa_type_t child = round % 3 ? YAKSA_TYPE__INT : mixed_type(), made;
    DO(yaksa_type_create_hvector(1 + round % 2, 1, round % 3 ? 8 + 4 * (round % 97) : 0, child, NULL, &made));
    if (round % 3 == 0)
        DO(yaksa_type_free(child));
    return made;
}

static void *work(void *argument)
{
    uintptr_t number = (uintptr_t) argument;
    for (unsigned round = (unsigned) number; !stop; round++) {
        yaksa_type_t made = make(round);
        slots[number] = made;
        use(made);
        /* A child that finds the type in its slot finds it alive. */
        slots[number] = 0;
        DO(yaksa_type_free(made));
    }
    return NULL;
}

static void *first_calls(void *argument)
{
    (void) argument;
    DO(yaksa_init(NULL));
    for (unsigned round = 0; round < 6; round++) {
        yaksa_type_t made = make(round);
        use(made);
        DO(yaksa_type_free(made));
    }
    DO(yaksa_finalize());
    return NULL;
}

static void on_small_stack(void)
{
    enum { STACK = 32 << 10, PAGE = 4096 };
    pthread_attr_t attributes;
    pthread_t thread;
    char *stack = mmap(NULL, PAGE + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED && mprotect(stack, PAGE, PROT_NONE) == 0);
    CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, stack + PAGE, STACK) == 0);
    CHECK(pthread_create(&thread, &attributes, first_calls, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

static void forks_among_threads(void)
{
    pthread_t threads[THREADS];
    time_t end = time(NULL) + SECONDS;
    int forks = 0;
    DO(yaksa_init(NULL));
    for (uintptr_t at = 0; at < THREADS; at++)
        CHECK(pthread_create(&threads[at], NULL, work, (void *) at) == 0);
    for (; forks < FORKS && (time(NULL) < end || forks < 20); forks++) {
        usleep(500 + (useconds_t) forks * 37 % 1000);
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            for (int at = 0; at < THREADS; at++)
                if (slots[at] != 0)
                    use(slots[at]);
            for (unsigned round = 0; round < 6; round++) {
                yaksa_type_t made = make(round);
                use(made);
                DO(yaksa_type_free(made));
            }
            DO(yaksa_finalize());
            _exit(0);
        }
        int status;
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        CHECK(status == 0);
    }
    stop = 1;
    for (int at = 0; at < THREADS; at++)
        CHECK(pthread_join(threads[at], NULL) == 0);
    DO(yaksa_finalize());
}

int main(int count, char **arguments)
{
    CHECK(count == 2);
    if (strcmp(arguments[1], "stack") == 0)
        on_small_stack();
    else
        forks_among_threads();
    return 0;
}
