/*
 * What the interposer knows of a datatype that it has decoded, and how long. When it decodes one, rent.h says.
 *
 * A plan is an attribute of its datatype: values of handles are used again after MPI_Type_free, attributes go with the datatype.
 * MPI_Type_free takes the attribute away before the MPI has the call. The MPI keeps a datatype until its last message has ended, and then
 * runs the callbacks of attributes in whichever thread makes progress; MPICH 4.0 gives its lock up for that in the middle of progress,
 * which ends the process if another thread makes progress too.
 *
 * So a plan can be taken away while another thread reads it: MPI_Type_get_contents gives one handle to several owners. Memory of plans is
 * used for plans alone, and a reference that was taken counts if no plan was destroyed meanwhile (recall.h).
 */
#ifndef DTC_MPI_PLAN_H
#define DTC_MPI_PLAN_H

struct plan {
    /* The attribute's reference, one of each thread that remembers the plan, and one for each operation under way. 0 in memory that has no
       plan. */
    int64_t references;
    /* Its place among those that the report counts; `at` is null for others. Without references, the next without. */
    struct plan *next, **at;
    /* What it is an attribute of; MPI_DATATYPE_NULL for a duplicate. */
    MPI_Datatype datatype;
    /* Whether MPI_Type_free has begun to take the attribute away. */
    char forgotten;
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

/* Counts the plans that have lost their attribute, from 1. */
static uint64_t generation = 1;

/* Whether a thread decodes a datatype, or releases types that others have given up. */
static char decoding;

/* Plans of datatypes that exist: as long as there are none, no datatype has an attribute to look for. */
static int64_t plans_alive;

/* Plans without references: those whose types are still to be released, and memory for new ones. */
static struct {
    char busy;
    struct plan *dying, *unused;
} plans;

static void plan_retain(struct plan *plan)
{
    __atomic_fetch_add(&plan->references, 1, __ATOMIC_RELAXED);
}

/* The same for a plan that may be gone, or its memory another plan's; 0 if it has no references. */
static int plan_try_retain(struct plan *plan)
{
    int64_t references = __atomic_load_n(&plan->references, __ATOMIC_RELAXED);
    while (references > 0)
        if (__atomic_compare_exchange_n(&plan->references, &references, references + 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return 1;
    return 0;
}

static void spin_lock(char *busy)
{
    while (__atomic_test_and_set(busy, __ATOMIC_ACQUIRE)) sched_yield();
}

static void spin_unlock(char *busy)
{
    __atomic_clear(busy, __ATOMIC_RELEASE);
}

/* Takes all of a list of plans. */
static struct plan *plans_take(struct plan **list)
{
    spin_lock(&plans.busy);
    struct plan *first = *list;
    *list = NULL;
    spin_unlock(&plans.busy);
    return first;
}

static void plans_give(struct plan **list, struct plan *plan)
{
    spin_lock(&plans.busy);
    plan->next = *list;
    __atomic_store_n(list, plan, __ATOMIC_RELAXED);
    spin_unlock(&plans.busy);
}

/* Memory for a plan, zero but for its references, which are set last; null if there is none. */
static struct plan *plan_take(void)
{
    spin_lock(&plans.busy);
    struct plan *plan = plans.unused;
    if (plan) plans.unused = plan->next;
    spin_unlock(&plans.busy);
    if (!plan) return (struct plan *)calloc(1, sizeof *plan);
    memset((char *)plan + sizeof plan->references, 0, sizeof *plan - sizeof plan->references);
    return plan;
}

/* Releases the types of plans that have no references, unless a thread decodes: it may have read one from a datatype and not have retained
   it yet. That thread comes here when it ends. */
static void plans_bury(void)
{
    while (__atomic_load_n(&plans.dying, __ATOMIC_SEQ_CST) && !__atomic_test_and_set(&decoding, __ATOMIC_SEQ_CST)) {
        for (struct plan *plan = plans_take(&plans.dying), *next; plan; plan = next) {
            next = plan->next;
            if (plan->type) dtc_type_release(plan->type);
            plans_give(&plans.unused, plan);
        }
        __atomic_clear(&decoding, __ATOMIC_SEQ_CST);
    }
}

/* For the report: the plans that are alive, how many types there have been, and how many of those that are gone had a kernel. */
static struct {
    char busy;
    struct plan *alive;
    int64_t decoded, compiled;
} reported;

static int is_compiled(const struct plan *plan)
{
    dtc_info info = DTC_INFO_INIT;
    return plan->type && dtc_type_query(plan->type, &info) == DTC_OK && info.compiled;
}

static void reported_add(struct plan *plan)
{
    spin_lock(&reported.busy);
    reported.decoded += !!plan->type;
    plan->next = reported.alive;
    plan->at = &reported.alive;
    if (plan->next) plan->next->at = &plan->next;
    reported.alive = plan;
    spin_unlock(&reported.busy);
}

static void reported_remove(struct plan *plan)
{
    spin_lock(&reported.busy);
    reported.compiled += is_compiled(plan);
    *plan->at = plan->next;
    if (plan->next) plan->next->at = plan->at;
    spin_unlock(&reported.busy);
}

static void plan_release(struct plan *plan)
{
    if (__atomic_sub_fetch(&plan->references, 1, __ATOMIC_ACQ_REL) > 0) return;
    if (plan->at) reported_remove(plan);
    if (plan != byte_plan) __atomic_fetch_sub(&plans_alive, 1, __ATOMIC_RELAXED);
    plans_give(&plans.dying, plan);
    plans_bury();
}

/* The plan whose attribute this thread takes away in MPI_Type_free. */
static __thread struct plan *forgotten;

/* A duplicate has a plan of its own, of the same type. */
static int copy_plan(MPI_Datatype datatype, int key, void *extra, void *value, void *copy, int *flag)
{
    struct plan *plan = (struct plan *)value, *made = NULL;
    (void)key, (void)extra;
    if (plan_try_retain(plan)) {
        if (plan->datatype == datatype) made = plan_take();
        if (made) {
            size_t known = sizeof plan->references;
            memcpy((char *)made + known, (char *)plan + known, sizeof *plan - known);
            made->next = NULL, made->at = NULL, made->datatype = MPI_DATATYPE_NULL, made->forgotten = 0;
            if (made->type) dtc_type_retain(made->type);
            __atomic_fetch_add(&plans_alive, 1, __ATOMIC_RELAXED);
            __atomic_store_n(&made->references, 1, __ATOMIC_RELEASE);
        }
        plan_release(plan);
    }
    memcpy(copy, &made, sizeof made);
    *flag = !!made;
    return MPI_SUCCESS;
}

static int delete_plan(MPI_Datatype datatype, int key, void *value, void *extra)
{
    (void)datatype, (void)key, (void)extra;
    if (value == forgotten) return MPI_SUCCESS;
    __atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
    plan_release((struct plan *)value);
    return MPI_SUCCESS;
}

/* The decoder finds the types of parts of a datatype in attributes of theirs, which own no reference: the plan does. */
static int copy_no_type(MPI_Datatype datatype, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)datatype, (void)key, (void)extra, (void)value, (void)copy;
    *flag = 0;
    return MPI_SUCCESS;
}

static int delete_no_type(MPI_Datatype datatype, int key, void *value, void *extra)
{
    (void)datatype, (void)key, (void)value, (void)extra;
    return MPI_SUCCESS;
}

static struct plan *make_byte_plan(dtc_engine *engine)
{
    struct plan *plan = plan_take();
    if (!plan) return NULL;
    *plan = (struct plan){.references = 1, .whole = 1, .size = 1, .piece = 1, .uniform = 1};
    if (dtc_type_named(engine, "MPI_BYTE", &plan->type) == DTC_OK && dtc_type_commit(plan->type, 0) == DTC_OK) return plan;
    __atomic_fetch_add(&plans_alive, 1, __ATOMIC_RELAXED);
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
    decoder.engine = engine;
    if (byte_plan && PMPI_Type_create_keyval(copy_no_type, delete_no_type, &decoder.keyval, NULL) == MPI_SUCCESS) {
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
    spin_lock(&reported.busy);
    *decoded = reported.decoded;
    *compiled = reported.compiled;
    for (const struct plan *plan = reported.alive; plan; plan = plan->next) *compiled += is_compiled(plan);
    spin_unlock(&reported.busy);
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

/* Takes an attribute away, if there is one: Open MPI calls the error handler for one that there is not. */
static void take_attribute(MPI_Datatype datatype, int key)
{
    void *value;
    int found = 0;
    PMPI_Type_get_attr(datatype, key, &value, &found);
    if (found) PMPI_Type_delete_attr(datatype, key);
}

/* Decodes a datatype; null if dtc cannot, or shall not move it. */
static dtc_type *decode(MPI_Datatype datatype, dtc_info *info)
{
    dtc_type *type = NULL;
    if (dtc_mpi_type(&decoder, datatype, &type) != DTC_OK) return NULL;
    if (dtc_type_commit(type, 0) == DTC_OK && dtc_type_query(type, info) == DTC_OK && !is_padded(info)) return type;
    dtc_type_release(type);
    return NULL;
}

/* Decodes a datatype that the MPI accepts, and leaves the plan with it. One thread does so at a time; others leave it to a later
   call, since the one that comes second would destroy the plan of the first. */
static void plan_make(MPI_Datatype datatype)
{
    struct plan *plan;
    int found = 0;
    if (datatype == MPI_DATATYPE_NULL || __atomic_test_and_set(&decoding, __ATOMIC_ACQUIRE)) return;
    PMPI_Type_get_attr(datatype, plan_key, &plan, &found);
    plan = found || dtc_mpi_is_predefined(dtc_mpi_get_envelope(datatype).combiner) ? NULL : plan_take();
    if (plan) {
        dtc_info info = DTC_INFO_INIT;
        plan->datatype = datatype;
        plan->type = decode(datatype, &info);
        plan->whole = info.blocks == 0 || (limits.leaves_whole && info.contiguous && info.extent == info.packed_size);
        plan->size = info.packed_size;
        plan->piece = info.blocks > 0 ? info.packed_size / info.blocks : 0;
        plan->least = least_message(plan, &info);
        plan->uniform = is_uniform(&info);
        plan->true_lb = info.true_lb;
        __atomic_fetch_add(&plans_alive, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&plan->references, 1, __ATOMIC_RELEASE);
        if (dtc_mpi_reports()) reported_add(plan);
        /* Before the plan, with which another owner of the handle may take both away. */
        if (plan->type) PMPI_Type_set_attr(datatype, decoder.keyval, plan->type);
        if (PMPI_Type_set_attr(datatype, plan_key, plan) != MPI_SUCCESS) {
            take_attribute(datatype, decoder.keyval);
            plan_release(plan);
        }
    }
    __atomic_clear(&decoding, __ATOMIC_SEQ_CST);
    plans_bury();
}

/* Whether dtc may pack a datatype of this plan. */
static inline int is_derived(const struct plan *plan)
{
    return plan && plan->type && !plan->whole;
}

#endif
