/*
 * A process sends its first long message to another one through the MPI, and asks in the other's outbox whether it can open memory of its GPU.
 * The other tries that when such a message has come, and answers there. So a message is announced only where the receiver can read it.
 */
#include "outbox.h"

#include "interposer.h"
#include "landing.h"
#include "registry.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Most processes of a job, and most that ask one. */
enum { MOST_RANKS = 1024, ASKERS = 128 };

/* Most bytes of a message: as landing.c has for a piece. All that are unread have at most twice as many. */
enum { MOST_BYTES = 1 << 29 };

/* Answers; numbers of GPUs follow. */
enum { NOT_YET, CANNOT, CAN_FROM };

/* A message; `number` comes last. The receiver writes `read`: the number of the last one here that it has read. */
struct place {
    int64_t number, read, bytes;
    int32_t to, tag;
};

struct asker {
    /* One more than the rank of the process; 0 for none. */
    int32_t rank;
    int32_t answer;
};

/* Memory of the GPU that a process sends from, for others to try; `landing` comes last. */
struct sample {
    int32_t device;
    int64_t landing;
    unsigned char name[DTC_EXPORT_BYTES];
};

struct outbox {
    unsigned char mark[16];
    /* The process; 0 if it takes no part. */
    int64_t process;
    int32_t ended;
    struct sample sample;
    struct asker askers[ASKERS];
    struct place places[DTC_MPI_OUTGOING];
};

int dtc_mpi_outbox_is_open;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct outbox *boxes, *own_box;
static int own_rank, ranks;
static struct dtc_mpi_outgoing outgoing[DTC_MPI_OUTGOING];
static int64_t last_number, unread_bytes;

size_t dtc_mpi_outbox_bytes(int size)
{
    return size <= MOST_RANKS ? (size_t)size * sizeof *boxes : 0;
}

void dtc_mpi_outbox_open(void *shared, int rank, int size)
{
    boxes = shared;
    own_box = &boxes[rank];
    own_rank = rank;
    ranks = size;
    if (getrandom(own_box->mark, sizeof own_box->mark, 0) != sizeof own_box->mark) return;
    __atomic_store_n(&own_box->process, getpid(), __ATOMIC_RELEASE);
    __atomic_store_n(&dtc_mpi_outbox_is_open, 1, __ATOMIC_RELEASE);
}

/* The outbox of a process that takes part; null if it does not. */
static struct outbox *box_of(int rank)
{
    if (rank < 0 || rank >= ranks || !__atomic_load_n(&boxes[rank].process, __ATOMIC_ACQUIRE)) return NULL;
    return &boxes[rank];
}

/* Whether a place holds no message, or one that was read: then its memory is free again. */
static int is_free(int at)
{
    struct dtc_mpi_outgoing *its = &outgoing[at];
    if (its->announced) return 0;
    if (!its->landing) return 1;
    if (__atomic_load_n(&own_box->places[at].read, __ATOMIC_ACQUIRE) != its->number) return 0;
    unread_bytes -= its->landing->bytes;
    dtc_mpi_landing_give(its->landing);
    its->landing = NULL;
    return 1;
}

/* Publishes memory of a GPU, of the first one that this process sends from. */
static int has_sample(int32_t device)
{
    struct sample *sample = &own_box->sample;
    if (sample->landing) return sample->device == device;
    struct dtc_mpi_landing *landing = dtc_mpi_landing_take(device, 1);
    if (!landing) return 0;
    sample->device = device;
    memcpy(sample->name, landing->name, sizeof sample->name);
    __atomic_store_n(&sample->landing, landing->number, __ATOMIC_RELEASE);
    /* It stays until the process ends, and may be packed into meanwhile. */
    dtc_mpi_landing_give(landing);
    return 1;
}

/* Whether a process has told this one that it opens its memory; asks at the first time. */
static int opens(struct outbox *box)
{
    for (int at = 0; at < ASKERS; at++) {
        int32_t nobody = 0, *rank = &box->askers[at].rank;
        if (!__atomic_load_n(rank, __ATOMIC_ACQUIRE))
            __atomic_compare_exchange_n(rank, &nobody, own_rank + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
        if (__atomic_load_n(rank, __ATOMIC_ACQUIRE) == own_rank + 1) return __atomic_load_n(&box->askers[at].answer, __ATOMIC_ACQUIRE) >= CAN_FROM;
    }
    return 0;
}

static struct dtc_mpi_outgoing *take(int to, int tag, int32_t device, int64_t bytes)
{
    int at = DTC_MPI_OUTGOING;
    struct outbox *box = box_of(to);
    if (!box || !has_sample(device) || !opens(box)) return NULL;
    /* All that were read give their memory back. */
    for (int other = DTC_MPI_OUTGOING - 1; other >= 0; other--)
        if (is_free(other)) at = other;
    if (at == DTC_MPI_OUTGOING || unread_bytes + bytes > 2 * (int64_t)MOST_BYTES) return NULL;
    struct dtc_mpi_outgoing *its = &outgoing[at];
    struct place *place = &own_box->places[at];
    its->landing = dtc_mpi_landing_take(device, bytes);
    if (!its->landing) return NULL;
    unread_bytes += its->landing->bytes;
    its->number = ++last_number;
    its->announced = 1;
    its->length = DTC_MPI_ANNOUNCEMENT + DTC_MPI_STEP * at;
    struct dtc_mpi_announcement announcement = {
        .from = own_rank,
        .to = to,
        .place = at,
        .number = its->number,
        .bytes = bytes,
        .process = own_box->process,
        .landing = its->landing->number,
    };
    memcpy(announcement.mark, own_box->mark, sizeof announcement.mark);
    memcpy(announcement.name, its->landing->name, sizeof announcement.name);
    memcpy(its->announcement, &announcement, sizeof announcement);
    place->bytes = bytes;
    place->to = to;
    place->tag = tag;
    __atomic_store_n(&place->number, its->number, __ATOMIC_RELEASE);
    return its;
}

struct dtc_mpi_outgoing *dtc_mpi_outbox_take(int to, int tag, int32_t device, int64_t bytes)
{
    if (to == own_rank || bytes > MOST_BYTES || !dtc_mpi_exchanges_directly()) return NULL;
    pthread_mutex_lock(&lock);
    struct dtc_mpi_outgoing *taken = take(to, tag, device, bytes);
    pthread_mutex_unlock(&lock);
    return taken;
}

void dtc_mpi_outbox_sent(struct dtc_mpi_outgoing *its)
{
    pthread_mutex_lock(&lock);
    its->announced = 0;
    pthread_mutex_unlock(&lock);
}

void dtc_mpi_outbox_withdraw(struct dtc_mpi_outgoing *its)
{
    pthread_mutex_lock(&lock);
    __atomic_store_n(&own_box->places[its - outgoing].read, its->number, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

int dtc_mpi_outbox_knows(const struct dtc_mpi_announcement *announcement)
{
    const struct outbox *box = box_of(announcement->from);
    if (!box || announcement->to != own_rank || announcement->place < 0 || announcement->place >= DTC_MPI_OUTGOING) return 0;
    if (memcmp(box->mark, announcement->mark, sizeof box->mark)) return 0;
    const struct place *place = &box->places[announcement->place];
    return __atomic_load_n(&place->number, __ATOMIC_ACQUIRE) == announcement->number &&
           __atomic_load_n(&place->read, __ATOMIC_ACQUIRE) != announcement->number;
}

int32_t dtc_mpi_outbox_device(const struct dtc_mpi_announcement *announcement)
{
    for (int at = 0; at < ASKERS; at++)
        if (own_box->askers[at].rank == announcement->from + 1) return own_box->askers[at].answer - CAN_FROM;
    return -1;
}

void dtc_mpi_outbox_read(const struct dtc_mpi_announcement *announcement)
{
    struct outbox *box = &boxes[announcement->from];
    __atomic_store_n(&box->places[announcement->place].read, announcement->number, __ATOMIC_RELEASE);
}

int64_t dtc_mpi_outbox_bytes_of(int from, int tag, int64_t length)
{
    const struct outbox *box = box_of(from);
    if (!box || !dtc_mpi_may_announce(length)) return -1;
    const struct place *place = &box->places[(length - DTC_MPI_ANNOUNCEMENT) / DTC_MPI_STEP];
    int64_t number = __atomic_load_n(&place->number, __ATOMIC_ACQUIRE);
    int unread = number > 0 && __atomic_load_n(&place->read, __ATOMIC_ACQUIRE) != number;
    return unread && place->to == own_rank && place->tag == tag ? place->bytes : -1;
}

/* Whether a GPU of this process opens memory of another one. */
static int32_t answer_to(int32_t rank, int32_t device)
{
    const struct outbox *box = box_of(rank);
    int64_t landing = box ? __atomic_load_n(&box->sample.landing, __ATOMIC_ACQUIRE) : 0;
    if (!landing) return NOT_YET;
    struct dtc_mpi_import *import = dtc_mpi_import_take(box->process, 0, landing, box->sample.name, device);
    if (!import) return NOT_YET;
    int32_t answer = import->memory ? CAN_FROM + device : CANNOT;
    dtc_mpi_import_give(import);
    return answer;
}

int dtc_mpi_outbox_is_asked(void)
{
    for (int at = 0; at < ASKERS && __atomic_load_n(&own_box->askers[at].rank, __ATOMIC_ACQUIRE); at++)
        if (__atomic_load_n(&own_box->askers[at].answer, __ATOMIC_RELAXED) == NOT_YET) return 1;
    return 0;
}

void dtc_mpi_outbox_answer(int32_t device)
{
    for (int at = 0; at < ASKERS; at++) {
        struct asker *asker = &own_box->askers[at];
        int32_t rank = __atomic_load_n(&asker->rank, __ATOMIC_ACQUIRE), before = NOT_YET;
        if (!rank) return;
        if (__atomic_load_n(&asker->answer, __ATOMIC_RELAXED) != NOT_YET) continue;
        int32_t answer = answer_to(rank - 1, device);
        __atomic_compare_exchange_n(&asker->answer, &before, answer, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
}

/* Whether a process reads no more. */
static int has_ended(int rank)
{
    const struct outbox *box = &boxes[rank];
    return __atomic_load_n(&box->ended, __ATOMIC_ACQUIRE) || (kill((pid_t)box->process, 0) && errno == ESRCH);
}

void dtc_mpi_outbox_close(void (*progress)(void))
{
    __atomic_store_n(&own_box->ended, 1, __ATOMIC_RELEASE);
    for (int at = 0; at < DTC_MPI_OUTGOING; at++) {
        const struct place *place = &own_box->places[at];
        while (outgoing[at].landing && __atomic_load_n(&place->read, __ATOMIC_ACQUIRE) != outgoing[at].number && !has_ended(place->to)) {
            progress();
            sched_yield();
        }
    }
    __atomic_store_n(&dtc_mpi_outbox_is_open, 0, __ATOMIC_RELEASE);
}
