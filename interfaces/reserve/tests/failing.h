/* An allocator that fails from the n-th call on, or in one call of n, in the threads that ask for it. It stands before the C
 * library's in the program that includes it. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static atomic_long calls, from = -1, every = -1;
/* Set in the thread that calls. In the others, and where a thread starts, glibc ends the process when it has no memory. */
static _Thread_local int calling;

static int refused(void)
{
    if (!calling)
        return 0;
    long call = atomic_fetch_add(&calls, 1), first = atomic_load(&from), period = atomic_load(&every);
    int refuse = (first >= 0 && call >= first) || (period > 0 && call % period == period - 1);
    if (refuse)
        errno = ENOMEM;
    return refuse;
}

void *malloc(size_t bytes) { return refused() ? NULL : __libc_malloc(bytes); }
void *calloc(size_t number, size_t bytes) { return refused() ? NULL : __libc_calloc(number, bytes); }
void *realloc(void *old, size_t bytes) { return refused() ? NULL : __libc_realloc(old, bytes); }
void *memalign(size_t to, size_t bytes) { return refused() ? NULL : __libc_memalign(to, bytes); }
void *aligned_alloc(size_t to, size_t bytes) { return memalign(to, bytes); }
int posix_memalign(void **place, size_t to, size_t bytes)
{
    *place = memalign(to, bytes);
    return *place ? 0 : ENOMEM;
}

/* Has `work` use memory that fails at each of `each` places in turn, about `places` of them, and then once in n allocations for n
 * below `periods`. Each call has a variant of its own. Returns the next variant. */
static int fail_everywhere(void (*work)(int), int variant, long each, long places, long periods)
{
    for (long first = 0; first < each; first += 1 + each / places) {
        atomic_store(&calls, 0);
        atomic_store(&from, first);
        work(variant++);
        atomic_store(&from, -1);
    }
    for (long period = 1; period < periods; ++period) {
        atomic_store(&calls, 0);
        atomic_store(&every, period);
        work(variant++);
        atomic_store(&every, -1);
    }
    return variant;
}
