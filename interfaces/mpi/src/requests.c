/* The requests with which staged messages are under way, by the value of their handle. */
#include "interposer.h"

#include <sched.h>

/* Handles are added to lists by their hash. A power of two. */
enum { LISTS = 4096 };

static struct {
    char busy;
    struct dtc_mpi_tracked *first;
} lists[LISTS];

int64_t dtc_mpi_tracked_count;

static unsigned list_of(uintptr_t request)
{
    return (unsigned)((uint64_t)request * UINT64_C(0x9e3779b97f4a7c15) >> 52);
}

static void lock(unsigned list)
{
    while (__atomic_test_and_set(&lists[list].busy, __ATOMIC_ACQUIRE)) sched_yield();
}

static void unlock(unsigned list)
{
    __atomic_clear(&lists[list].busy, __ATOMIC_RELEASE);
}

void dtc_mpi_track(struct dtc_mpi_tracked *tracked, uintptr_t request)
{
    unsigned list = list_of(request);
    tracked->request = request;
    lock(list);
    tracked->next = lists[list].first;
    lists[list].first = tracked;
    unlock(list);
    __atomic_fetch_add(&dtc_mpi_tracked_count, 1, __ATOMIC_RELEASE);
}

static struct dtc_mpi_tracked *look_for(uintptr_t request, int take)
{
    unsigned list = list_of(request);
    lock(list);
    struct dtc_mpi_tracked **place = &lists[list].first;
    while (*place && (*place)->request != request) place = &(*place)->next;
    struct dtc_mpi_tracked *found = *place;
    int taken = take && found && !found->persistent;
    if (taken) *place = found->next;
    unlock(list);
    if (taken) __atomic_fetch_sub(&dtc_mpi_tracked_count, 1, __ATOMIC_RELEASE);
    return found;
}

struct dtc_mpi_tracked *dtc_mpi_find_tracked(uintptr_t request)
{
    return look_for(request, 0);
}

struct dtc_mpi_tracked *dtc_mpi_take_tracked(uintptr_t request)
{
    return look_for(request, 1);
}

void dtc_mpi_untrack(struct dtc_mpi_tracked *tracked)
{
    unsigned list = list_of(tracked->request);
    lock(list);
    struct dtc_mpi_tracked **place = &lists[list].first;
    while (*place != tracked) place = &(*place)->next;
    *place = tracked->next;
    unlock(list);
    __atomic_fetch_sub(&dtc_mpi_tracked_count, 1, __ATOMIC_RELEASE);
}
