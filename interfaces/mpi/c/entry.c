/*
 * The functions that a program finds instead of those of its MPI.
 *
 * Each goes on to an entry of a table, with its arguments as they came. An entry is found by the first call: it is a wrapper for the
 * ABI of the MPI, or the MPI's own function if the interposer steps aside. An argument is at most a machine word wide, in every ABI,
 * and reaches the wrapper or the MPI in the same register or stack slot, of which an integer is the lower half (System V ABI of
 * x86-64, 3.2.3; AAPCS64, 6.8.2). So the table needs no types.
 */
#include "interposer.h"
#include "shapes.h"

#if !defined(__LP64__) || !defined(__linux__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "expected 64-bit Linux, little-endian"
#endif

#include <stddef.h>

#include "redirect.h"
#include "report_calls.h"
#include "settings.h"

typedef uintptr_t word;

/* What the exported functions call; null until a call is found. */
static dtc_mpi_function entries[DTC_MPI_CALLS];

/* The ABI whose wrappers stand in the table. */
static const struct dtc_mpi_abi *bound_abi;

/* The code of calls that the MPI lacks. */
static int unsupported;

static int fail(void)
{
    return __atomic_load_n(&unsupported, __ATOMIC_RELAXED);
}

/* For the report, once. */
static void say_off(void)
{
    static char said;
    if (!__atomic_test_and_set(&said, __ATOMIC_RELAXED)) dtc_mpi_say("off", "every call goes to the MPI (DTC_MPI=off)");
}

/* The ABI of the MPI; null if it is unknown. */
static const struct dtc_mpi_abi *detect(void)
{
    int major = -1, minor = -1;
    /* These may be called before MPI_Init. (MPI 5.0, 11.4.1 and 20) */
    int (*get)(int *, int *) = (int (*)(int *, int *))dtc_mpi_find_function("PMPI_Abi_get_version");
    if (get && !get(&major, &minor) && major >= 1) return &dtc_mpi_of_standard;
    if (dtc_mpi_find_object("ompi_mpi_comm_world")) return &dtc_mpi_of_open_mpi;
    /* The family of MPICH, whose members have its ABI. */
    if (dtc_mpi_version_says("MPICH") || dtc_mpi_version_says("MVAPICH") || dtc_mpi_version_says("Intel(R) MPI")) return &dtc_mpi_of_mpich;
    dtc_mpi_say("steps aside", "the ABI of the MPI is unknown");
    return NULL;
}

/* Fills the table. Threads that come here at once write the same. */
static dtc_mpi_function find(enum dtc_mpi_call wanted)
{
    static const char *const names[DTC_MPI_CALLS] = {
#define CALL(name, shape, count) "MPI_" #name,
#include "calls.def"
#undef CALL
    };
    dtc_mpi_function functions[DTC_MPI_CALLS];
    for (int call = 0; call < DTC_MPI_CALLS; call++) functions[call] = dtc_mpi_find_function(names[call]);
    const struct dtc_mpi_abi *abi = detect();
    if (abi) __atomic_store_n(&unsupported, abi->unsupported, __ATOMIC_RELAXED);
    int off = dtc_mpi_is_set("DTC_MPI", "off");
    /* What the MPI lacks has substitutes also if the rest goes to it. */
    int bound = abi && abi->bind(functions) && !off;
    if (off) say_off();
    __atomic_store_n(&bound_abi, bound ? abi : NULL, __ATOMIC_RELEASE);
    dtc_mpi_function table[DTC_MPI_CALLS], found = 0;
    for (int call = 0; call < DTC_MPI_CALLS; call++)
        table[call] = !functions[call] ? (dtc_mpi_function)fail : bound ? abi->wrappers[call] : functions[call];
    if (bound && dtc_mpi_reports()) dtc_mpi_count_calls(table, abi->judge);
    if (off && abi && dtc_mpi_reports()) dtc_mpi_count_unserved_calls(table, abi->name);
    for (int call = 0; call < DTC_MPI_CALLS; call++) {
        __atomic_store_n(&entries[call], table[call], __ATOMIC_RELEASE);
        if (call == (int)wanted) found = table[call];
    }
    if (bound && abi == &dtc_mpi_of_open_mpi) dtc_mpi_redirect_fortran();
    return found;
}

const struct dtc_mpi_abi *dtc_mpi_bound(void)
{
    if (!__atomic_load_n(&entries[0], __ATOMIC_ACQUIRE)) find(0);
    return __atomic_load_n(&bound_abi, __ATOMIC_ACQUIRE);
}

#define PARAMETER(kind, name) word name
#define TYPE(kind, name) word
#define ARGUMENT(kind, name) name
#define CALL(name, shape, count)                                                                                                  \
    __attribute__((visibility("default"))) int MPI_##name(ARGUMENTS_##shape(PARAMETER, count));                                   \
    int MPI_##name(ARGUMENTS_##shape(PARAMETER, count))                                                                           \
    {                                                                                                                              \
        dtc_mpi_function entry = __atomic_load_n(&entries[DTC_MPI_CALL_##name], __ATOMIC_ACQUIRE);                                \
        if (__builtin_expect(!entry, 0)) entry = find(DTC_MPI_CALL_##name);                                                       \
        return ((int (*)(ARGUMENTS_##shape(TYPE, count)))entry)(ARGUMENTS_##shape(ARGUMENT, count));                              \
    }
#include "calls.def"
