/* When the interposer begins and ends: with the first call that finds the MPI initialised, and with MPI_Finalize. */
#ifndef DTC_MPI_START_H
#define DTC_MPI_START_H

enum { WAITING, STARTING, READY, ASIDE };

static int state = WAITING;

/* What the MPI is, for the report, and whether the machine has a GPU (about.h). */
static void tell_about(void);
static int has_gpu(void);

/* Exchanges between processes that all have this library (direct.h). */
static const char *direct_way(void);
static void direct_start(void);
static void direct_end(void);

/* Says once a job which settings are unknown. */
static void say_settings(void)
{
    static char said;
    int rank = 0;
    if (__atomic_test_and_set(&said, __ATOMIC_RELAXED) || PMPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS) return;
    if (rank == 0) dtc_mpi_say_unknown_settings();
}

static __attribute__((noinline)) int start(void)
{
    int initialized = 0, finalized = 0, waiting = WAITING;
    if (__atomic_load_n(&state, __ATOMIC_RELAXED) != WAITING) return 0;
    /* There is no communicator to test with before MPI_Init; a program that only has sessions keeps its MPI. */
    if (PMPI_Initialized(&initialized) != MPI_SUCCESS || !initialized) return 0;
    if (PMPI_Finalized(&finalized) != MPI_SUCCESS || finalized) return 0;
    /* Other threads go on to the MPI meanwhile. */
    if (!__atomic_compare_exchange_n(&state, &waiting, STARTING, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return 0;
    say_settings();
    find_awareness();
    int works = plan_start() && self_test();
    /* Processes that exchange directly have all begun before the first call that may be one: in MPI_Init, or in that call (exchange.h). */
    if (works && has_gpu()) direct_start();
    if (works) tell_about();
    else dtc_mpi_say("steps aside", "the MPI packs or receives other bytes than dtc");
    __atomic_store_n(&state, works ? READY : ASIDE, __ATOMIC_RELEASE);
    return works;
}

/* Whether all calls are left to the MPI: it packs or receives other bytes, or ends. */
static inline int is_aside(void)
{
    return __builtin_expect(__atomic_load_n(&state, __ATOMIC_ACQUIRE) == ASIDE, 0);
}

/* Whether calls may be handled; begins at the first that asks. */
static inline int is_ready(void)
{
    return __builtin_expect(__atomic_load_n(&state, __ATOMIC_ACQUIRE) == READY, 1) || start();
}

/* Whether all datatypes are decoded that the program commits, since they are recorded. */
static int decodes_all;

/* After MPI_Init: begins where something has to be known of this process before its first call that is handled. Others of the machine ask for its
   GPU (registry.h). */
static void after_init(void)
{
    const char *record = getenv("DTC_RECORD");
    decodes_all = record && *record;
    say_settings();
    if (decodes_all || dtc_mpi_reports() || has_gpu()) is_ready();
}

static int wrap_Init(int *argc, char ***argv)
{
    int status = mpi.Init(argc, argv);
    if (status == MPI_SUCCESS) after_init();
    return status;
}

static int wrap_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int status = mpi.Init_thread(argc, argv, required, provided);
    if (status == MPI_SUCCESS) after_init();
    return status;
}

/* Leaves requests that the program has freed to the MPI. */
static void release_freed(void);

static int wrap_Finalize(void)
{
    release_freed();
    if (__atomic_exchange_n(&state, ASIDE, __ATOMIC_ACQ_REL) == READY) {
        int64_t decoded = 0, compiled = 0;
        direct_end();
        plan_count(&decoded, &compiled);
        dtc_mpi_report(TEXT_OF(DTC_MPI_ABI), decoded, compiled);
        dtc_mpi_report_moves(TEXT_OF(DTC_MPI_ABI));
        dtc_mpi_report_calls(TEXT_OF(DTC_MPI_ABI));
        /* Types outlive it: datatypes of the program, and what other threads remember. */
        dtc_finalize(decoder.engine);
        dtc_mpi_engine = decoder.engine = NULL;
    }
    return mpi.Finalize();
}

static int wrap_Type_commit(MPI_Datatype *datatype)
{
    int status = mpi.Type_commit(datatype);
    if (__builtin_expect(decodes_all, 0) && status == MPI_SUCCESS && is_ready()) plan_make(*datatype);
    return status;
}

/* The MPI may keep the datatype until its last message ends: what hangs on it is taken away here (plan.h). */
static int wrap_Type_free(MPI_Datatype *datatype)
{
    if (datatype && *datatype != MPI_DATATYPE_NULL && !is_aside()) plan_forget(*datatype);
    return mpi.Type_free(datatype);
}

#endif
