/*
 * What is known of a datatype, and by which thread.
 *
 * Each thread remembers a few handles, with a reference to the plan of each, until any plan loses its attribute. A call may use a plan
 * without a reference of its own until this thread looks the next datatype up: what looks several up takes references.
 */
#ifndef DTC_MPI_RECALL_H
#define DTC_MPI_RECALL_H

/* Handles that a thread remembers. A power of two. */
enum { REMEMBERED = 64 };

/* What a datatype is to this library. */
enum knowledge { PREDEFINED, DECODED, NOT_DECODED };

/* A handle that a thread remembers. What it says of one that is not decoded may be out of date: the program may have freed the datatype in
   another thread, and made another. */
struct remembered {
    MPI_Datatype datatype;
    enum knowledge is;
    /* Of one that is decoded. */
    struct plan *plan;
    /* Of one that is not: nanoseconds that its uses have cost the MPI, and those that decoding costs; 0 as long as nobody has estimated them
       (rent.h). */
    int64_t paid, price;
};

/* What a thread remembers. */
struct recalled {
    /* The generation in which all of it was found. */
    uint64_t generation;
    struct remembered slots[REMEMBERED];
};

static __thread struct recalled recalled;

/* Has what a thread remembers forgotten when it ends, if there is such a key. */
static pthread_key_t recall_key;
static int has_recall_key;
static pthread_once_t recall_once = PTHREAD_ONCE_INIT;

/* Forgets all. */
static void recall_nothing(struct recalled *recalled)
{
    for (int at = 0; at < REMEMBERED; at++) {
        struct plan *plan = recalled->slots[at].plan;
        recalled->slots[at] = (struct remembered){0};
        if (plan) plan_release(plan);
    }
}

static void recall_end(void *recalled)
{
    recall_nothing((struct recalled *)recalled);
}

static void make_recall_key(void)
{
    has_recall_key = !pthread_key_create(&recall_key, recall_end);
}

/* Begins a generation: plans that are gone lose the references of this thread. */
static void recall_since(uint64_t generation)
{
    /* Zero before the first; a thread that cannot be told of its end keeps references, and loses memory. */
    if (!recalled.generation && !pthread_once(&recall_once, make_recall_key) && has_recall_key) pthread_setspecific(recall_key, &recalled);
    recall_nothing(&recalled);
    recalled.generation = generation;
}

/* The plan that hangs on a datatype, with a reference; null if none does. Begins a generation if plans have lost their attributes. */
static struct plan *plan_that_hangs(MPI_Datatype datatype)
{
    for (;;) {
        struct plan *plan = NULL;
        int found = 0;
        uint64_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
        if (recalled.generation != now) recall_since(now);
        if (!__atomic_load_n(&plans_alive, __ATOMIC_RELAXED)) return NULL;
        PMPI_Type_get_attr(datatype, plan_key, &plan, &found);
        if (!found) return NULL;
        if (!plan_try_retain(plan)) continue;
        /* Whether it is still the datatype's: no plan was destroyed since the MPI was asked. */
        if (__atomic_load_n(&generation, __ATOMIC_ACQUIRE) == now) return plan;
        plan_release(plan);
    }
}

/* Looks a datatype up, and remembers it. */
static __attribute__((noinline)) void recall_anew(struct remembered *place, MPI_Datatype datatype)
{
    struct plan *plan = plan_that_hangs(datatype), *before = place->plan;
    int is_predefined = !plan && dtc_mpi_is_predefined(dtc_mpi_get_envelope(datatype).combiner);
    *place = (struct remembered){.datatype = datatype, .is = plan ? DECODED : is_predefined ? PREDEFINED : NOT_DECODED, .plan = plan};
    if (before) plan_release(before);
}

static inline struct remembered *place_of_handle(MPI_Datatype datatype)
{
    return &recalled.slots[dtc_mpi_hash(datatype) % REMEMBERED];
}

/* Whether what a thread remembers there is of this datatype, and up to date. */
static inline int is_recalled(const struct remembered *place, MPI_Datatype datatype)
{
    return place->datatype == datatype && recalled.generation && recalled.generation == __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
}

/* What is known of a datatype that is not MPI_DATATYPE_NULL. */
static inline struct remembered *recall(MPI_Datatype datatype)
{
    struct remembered *place = place_of_handle(datatype);
    if (__builtin_expect(!is_recalled(place, datatype), 0)) recall_anew(place, datatype);
    return place;
}

/* Takes the plan of a datatype away, before the program frees the handle. Other owners of the same handle have it decoded again. */
static void plan_forget(MPI_Datatype datatype)
{
    struct remembered *place = place_of_handle(datatype);
    /* The next datatype with this handle has no uses yet. */
    if (place->datatype == datatype && place->is == NOT_DECODED) *place = (struct remembered){0};
    struct plan *plan = __atomic_load_n(&plans_alive, __ATOMIC_RELAXED) ? plan_that_hangs(datatype) : NULL;
    if (!plan) return;
    if (__atomic_exchange_n(&plan->forgotten, 1, __ATOMIC_ACQ_REL)) {
        plan_release(plan);
        return;
    }
    forgotten = plan;
    /* First what owns no reference: a thread that decodes reads the type before the plan is gone, or not at all. */
    take_attribute(datatype, decoder.keyval);
    PMPI_Type_delete_attr(datatype, plan_key);
    forgotten = NULL;
    uint64_t now = __atomic_add_fetch(&generation, 1, __ATOMIC_RELEASE);
    /* The references of the attribute and of this function, and what this thread remembers: the types of a program that goes on to others do not
       stay. */
    plan_release(plan);
    plan_release(plan);
    recall_since(now);
}

#endif
