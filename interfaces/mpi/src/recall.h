/*
 * Which plan a datatype has.
 *
 * Each thread remembers the plans of a few handles, with a reference to each, until any plan loses its attribute. A call may use a plan
 * without a reference of its own until this thread looks the next datatype up: what looks several up takes references.
 */
#ifndef DTC_MPI_RECALL_H
#define DTC_MPI_RECALL_H

/* Handles that a thread remembers. A power of two. */
enum { REMEMBERED = 64 };

/* What a thread remembers. */
struct recalled {
    /* The generation in which all of it was found. */
    uint64_t generation;
    struct remembered {
        MPI_Datatype datatype;
        /* Null if the datatype is predefined. */
        struct plan *plan;
    } slots[REMEMBERED];
};

static __thread struct recalled recalled;

/* Has what a thread remembers forgotten when it ends. */
static pthread_key_t recall_key;

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

static int recall_start(void)
{
    return !pthread_key_create(&recall_key, recall_end);
}

/* Begins a generation: plans that are gone lose the references of this thread. */
static void recall_since(uint64_t generation)
{
    /* Zero before the first; a thread that cannot be told of its end keeps references, and loses memory. */
    if (!recalled.generation) pthread_setspecific(recall_key, &recalled);
    recall_nothing(&recalled);
    recalled.generation = generation;
}

/* Looks a datatype up. Predefined datatypes are remembered without a plan; `unknown` is set for others without one. */
static __attribute__((noinline)) struct plan *plan_look_up(MPI_Datatype datatype, struct remembered *place, int *unknown)
{
    struct plan *plan = NULL;
    int found = 0;
    if (datatype == MPI_DATATYPE_NULL) return NULL;
    for (int known = 0; !known;) {
        uint64_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
        if (recalled.generation != now) recall_since(now);
        PMPI_Type_get_attr(datatype, plan_key, &plan, &found);
        known = !found || plan_try_retain(plan);
        /* Whether it is still the datatype's: no plan was destroyed since the MPI was asked. */
        if (found && known && __atomic_load_n(&generation, __ATOMIC_ACQUIRE) != now) plan_release(plan), known = 0;
    }
    if (!found) {
        plan = NULL;
        if (!dtc_mpi_is_predefined(dtc_mpi_get_envelope(datatype).combiner)) {
            *unknown = 1;
            return NULL;
        }
    }
    struct plan *before = place->plan;
    *place = (struct remembered){datatype, plan};
    if (before) plan_release(before);
    return plan;
}

/* The plan of a datatype; null if it is predefined, or if `unknown` is set: plan_make should decode the datatype then, once the MPI
   has accepted it. */
static inline struct plan *plan_of_any(MPI_Datatype datatype, int *unknown)
{
    struct remembered *place = &recalled.slots[dtc_mpi_hash(datatype) % REMEMBERED];
    if (place->datatype == datatype && recalled.generation == __atomic_load_n(&generation, __ATOMIC_ACQUIRE)) return place->plan;
    return plan_look_up(datatype, place, unknown);
}

/* Takes the plan of a datatype away, before the program frees the handle. Other owners of the same handle have it decoded again. */
static void plan_forget(MPI_Datatype datatype)
{
    int unknown = 0;
    struct plan *plan = plan_of_any(datatype, &unknown);
    if (!plan || __atomic_exchange_n(&plan->forgotten, 1, __ATOMIC_ACQ_REL)) return;
    forgotten = plan;
    /* First what owns no reference: a thread that decodes reads the type before the plan is gone, or not at all. */
    take_attribute(datatype, decoder.keyval);
    PMPI_Type_delete_attr(datatype, plan_key);
    forgotten = NULL;
    uint64_t now = __atomic_add_fetch(&generation, 1, __ATOMIC_RELEASE);
    /* The reference of the attribute, and what this thread remembers: the types of a program that goes on to others do not stay. */
    plan_release(plan);
    recall_since(now);
}

#endif
