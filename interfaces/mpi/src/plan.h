/*
 * What the interposer knows of a datatype.
 *
 * A plan is an attribute of its datatype: values of handles are used again after MPI_Type_free, attributes go with the datatype. Each
 * thread remembers the plans of a few handles, until any datatype with a plan is destroyed.
 */
#ifndef DTC_MPI_PLAN_H
#define DTC_MPI_PLAN_H

struct plan {
    /* The attribute's reference, and one for each operation under way. */
    int64_t references;
    /* Its place among those that the report counts; `at` is null for others. */
    struct plan *next, **at;
    /* The committed type; null if dtc cannot decode the datatype, or shall not move it. */
    dtc_type *type;
    /* Whether the MPI moves elements by itself: they have no bytes, or lie in one piece without gaps. */
    int whole;
    /* Packed bytes of one element. */
    int64_t size;
    /* Packed bytes of a contiguous piece, on average. */
    int64_t piece;
    /* Fewest bytes of a message that dtc moves; INT64_MAX if the MPI moves such pieces as fast. */
    int64_t least;
    /* Whether all basic elements have one size, a power of two up to 8. */
    int uniform;
    /* The lowest displacement of a byte. */
    int64_t true_lb;
};

static dtc_mpi_decoder decoder;

/* Bytes, for elements that are moved as they lie. */
static struct plan *byte_plan;

/* The key of the attribute. */
static int plan_key;

/* Counts the destroyed datatypes that had plans, from 1. */
static uint64_t generation = 1;

/* What a thread remembers of a handle. */
struct remembered {
    uint64_t generation;
    MPI_Datatype datatype;
    struct plan *plan;
};

/* A power of two. */
enum { REMEMBERED = 64 };

static __thread struct remembered remembered[REMEMBERED];

static void plan_retain(struct plan *plan)
{
    __atomic_fetch_add(&plan->references, 1, __ATOMIC_RELAXED);
}

/* For the report: the plans that are alive, how many types there have been, and how many of those that are gone had a kernel. */
static struct {
    char busy;
    struct plan *alive;
    int64_t decoded, compiled;
} reported;

static void reported_lock(void)
{
    while (__atomic_test_and_set(&reported.busy, __ATOMIC_ACQUIRE)) sched_yield();
}

static void reported_unlock(void)
{
    __atomic_clear(&reported.busy, __ATOMIC_RELEASE);
}

static int is_compiled(const struct plan *plan)
{
    dtc_info info = DTC_INFO_INIT;
    return plan->type && dtc_type_query(plan->type, &info) == DTC_OK && info.compiled;
}

static void reported_add(struct plan *plan)
{
    reported_lock();
    reported.decoded += !!plan->type;
    plan->next = reported.alive;
    plan->at = &reported.alive;
    if (plan->next) plan->next->at = &plan->next;
    reported.alive = plan;
    reported_unlock();
}

static void reported_remove(struct plan *plan)
{
    reported_lock();
    reported.compiled += is_compiled(plan);
    *plan->at = plan->next;
    if (plan->next) plan->next->at = plan->at;
    reported_unlock();
}

static void plan_release(struct plan *plan)
{
    if (__atomic_sub_fetch(&plan->references, 1, __ATOMIC_ACQ_REL) > 0) return;
    if (plan->at) reported_remove(plan);
    if (plan->type) dtc_type_release(plan->type);
    free(plan);
}

static int copy_plan(MPI_Datatype datatype, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)datatype, (void)key, (void)extra;
    plan_retain((struct plan *)value);
    memcpy(copy, &value, sizeof value);
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_plan(MPI_Datatype datatype, int key, void *value, void *extra)
{
    (void)datatype, (void)key, (void)extra;
    __atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
    plan_release((struct plan *)value);
    return MPI_SUCCESS;
}

static struct plan *make_byte_plan(dtc_engine *engine)
{
    struct plan *plan = (struct plan *)calloc(1, sizeof *plan);
    if (!plan) return NULL;
    *plan = (struct plan){.references = 1, .whole = 1, .size = 1, .piece = 1, .uniform = 1};
    if (dtc_type_named(engine, "MPI_BYTE", &plan->type) == DTC_OK && dtc_type_commit(plan->type, 0) == DTC_OK) return plan;
    plan_release(plan);
    return NULL;
}

/* Prepares what datatypes are decoded with; 0 if that fails. */
static int plan_start(void)
{
    dtc_engine *engine;
    if (dtc_init(NULL, &engine) != DTC_OK) return 0;
    byte_plan = make_byte_plan(engine);
    dtc_mpi_engine = engine;
    if (byte_plan && dtc_mpi_decoder_init(engine, &decoder) == DTC_OK) {
        if (PMPI_Type_create_keyval(copy_plan, delete_plan, &plan_key, NULL) == MPI_SUCCESS) return 1;
        dtc_mpi_decoder_free(&decoder);
    }
    dtc_finalize(engine);
    return 0;
}

/* Whether some basic element may have padding inside, as `long double` has: none else is aligned to 16 bytes. MPICH 5 and Open MPI 5 leave
   padding where it is, and programs may compare bytes. */
static int is_padded(const dtc_info *info)
{
    return info->alignment > 8;
}

/* Whether basic elements are of one size that divides 8. A complex number is two of them. */
static int is_uniform(const dtc_info *info)
{
    int64_t size = info->kind == DTC_KIND_COMPLEX ? info->kind_size / 2 : info->kind_size;
    return size > 0 && 8 % size == 0;
}

/* Counts the datatypes that dtc decoded, and those that it compiled a kernel for. */
static void plan_count(int64_t *decoded, int64_t *compiled)
{
    reported_lock();
    *decoded = reported.decoded;
    *compiled = reported.compiled;
    for (const struct plan *plan = reported.alive; plan; plan = plan->next) *compiled += is_compiled(plan);
    reported_unlock();
}

/* How the pieces of a type lie, as far as MPIs differ in how fast they move them. */
enum pieces { REGULAR, SPARSE, IRREGULAR };

/* Irregular pieces follow no rule, so that their description grows with their number, or interleave with those of the next element. Sparse ones
   have gaps of three times their length between them. */
static enum pieces pieces_of(const dtc_type *type, const dtc_info *info)
{
    enum { FEW = 64 };
    int64_t described = 0;
    if (info->blocks < FEW || info->blocks == INT64_MAX) return REGULAR;
    if (info->extent > 0 && info->extent < info->true_extent / 2) return IRREGULAR;
    if (dtc_flatten_size(type, &described) == DTC_OK && described > info->blocks / 2) return IRREGULAR;
    return info->true_extent / 4 > info->packed_size ? SPARSE : REGULAR;
}

/* What plan.least says. */
static int64_t least_message(const struct plan *plan, const dtc_info *info)
{
    enum pieces pieces = plan->type ? pieces_of(plan->type, info) : REGULAR;
    if (pieces == SPARSE && plan->piece < limits.shortest_sparse_piece) pieces = REGULAR;
    int64_t longest = pieces == IRREGULAR ? limits.irregular_piece : pieces == SPARSE ? limits.sparse_piece : limits.piece;
    return plan->piece > longest ? INT64_MAX : pieces == IRREGULAR ? limits.irregular_bytes : limits.bytes;
}

/* Decodes a datatype that the MPI accepts, and leaves the plan with it. One thread does so at a time; others leave it to a later
   call, since the one that comes second would destroy the plan of the first. */
static void plan_make(MPI_Datatype datatype)
{
    static char busy;
    struct plan *plan;
    int found = 0;
    if (datatype == MPI_DATATYPE_NULL || __atomic_test_and_set(&busy, __ATOMIC_ACQUIRE)) return;
    PMPI_Type_get_attr(datatype, plan_key, &plan, &found);
    plan = found || dtc_mpi_is_predefined(dtc_mpi_get_envelope(datatype).combiner) ? NULL : (struct plan *)calloc(1, sizeof *plan);
    if (plan) {
        dtc_info info = DTC_INFO_INIT;
        plan->references = 1;
        if (dtc_mpi_committed(&decoder, datatype, &plan->type) != DTC_OK) plan->type = NULL;
        if (plan->type) dtc_type_query(plan->type, &info);
        if (plan->type && is_padded(&info)) {
            dtc_type_release(plan->type);
            plan->type = NULL;
        }
        plan->whole = info.blocks == 0 || (limits.leaves_whole && info.contiguous && info.extent == info.packed_size);
        plan->size = info.packed_size;
        plan->piece = info.blocks > 0 ? info.packed_size / info.blocks : 0;
        plan->least = least_message(plan, &info);
        plan->uniform = is_uniform(&info);
        plan->true_lb = info.true_lb;
        if (dtc_mpi_reports()) reported_add(plan);
        if (PMPI_Type_set_attr(datatype, plan_key, plan) != MPI_SUCCESS) plan_release(plan);
    }
    __atomic_clear(&busy, __ATOMIC_RELEASE);
}

/* Looks a datatype up. Predefined datatypes are remembered without a plan; `unknown` is set for others without one. */
static __attribute__((noinline)) struct plan *plan_look_up(MPI_Datatype datatype, struct remembered *place, int *unknown)
{
    struct plan *plan = NULL;
    int found = 0;
    uint64_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    if (datatype == MPI_DATATYPE_NULL) return NULL;
    PMPI_Type_get_attr(datatype, plan_key, &plan, &found);
    if (!found) {
        plan = NULL;
        if (!dtc_mpi_is_predefined(dtc_mpi_get_envelope(datatype).combiner)) {
            *unknown = 1;
            return NULL;
        }
    }
    *place = (struct remembered){now, datatype, plan};
    return plan;
}

/* The plan of a datatype; null if it is predefined, or if `unknown` is set: plan_make should decode the datatype then, once the MPI
   has accepted it. */
static inline struct plan *plan_of_any(MPI_Datatype datatype, int *unknown)
{
    struct remembered *place = &remembered[dtc_mpi_hash(datatype) % REMEMBERED];
    if (place->datatype == datatype && place->generation == __atomic_load_n(&generation, __ATOMIC_ACQUIRE)) return place->plan;
    return plan_look_up(datatype, place, unknown);
}

/* Whether dtc may pack a datatype of this plan. */
static inline int is_derived(const struct plan *plan)
{
    return plan && plan->type && !plan->whole;
}

#endif
