/* What the parts of the interposer know of each other: those in C, and those in Rust, in ../src. Nothing here depends on the ABI of an MPI. */
#ifndef DTC_MPI_INTERPOSER_H
#define DTC_MPI_INTERPOSER_H

#include <stdint.h>

/* A function of any type; its caller knows which. */
typedef void (*dtc_mpi_function)(void);

/* The calls of calls.def. */
enum dtc_mpi_call {
#define CALL(name, shape, count) DTC_MPI_CALL_##name,
#include "calls.def"
#undef CALL
    DTC_MPI_CALLS
};

/* The subroutines of fortran.def. */
enum dtc_mpi_fortran {
#define FORTRAN(name) DTC_MPI_FORTRAN_##name,
#include "fortran.def"
#undef FORTRAN
    DTC_MPI_FORTRANS
};

/* What dtc_mpi_judge is asked about. */
enum { DTC_MPI_JUDGE_SEND, DTC_MPI_JUDGE_RECEIVE, DTC_MPI_JUDGE_PACK };

/* Tells why a call was not handled, one of enum dtc_mpi_reason, from its arguments as the program gave them. */
typedef int (*dtc_mpi_judge)(uintptr_t memory, int64_t elements, uintptr_t datatype, int rank, int what);

/* The calls of one ABI. */
struct dtc_mpi_abi {
    const char *name;
    /* What the exported functions call. */
    dtc_mpi_function wrappers[DTC_MPI_CALLS];
    /* What the subroutines of Fortran call; null where the MPI's own see all that they need. */
    dtc_mpi_function fortran[DTC_MPI_FORTRANS];
    /* Finds what the wrappers use, and puts substitutes where the MPI lacks a call; 0 if something is missing that is needed. */
    int (*bind)(dtc_mpi_function functions[DTC_MPI_CALLS]);
    dtc_mpi_judge judge;
    /* The error code of a call that the MPI does not have. */
    int unsupported;
};

extern const struct dtc_mpi_abi dtc_mpi_of_mpich, dtc_mpi_of_open_mpi, dtc_mpi_of_standard;

/* The ABI of the process whose wrappers are called; null if calls go to the MPI. */
const struct dtc_mpi_abi *dtc_mpi_bound(void);

/* A function of the MPI, below this library in the order of the loader; null if there is none. */
dtc_mpi_function dtc_mpi_find_function(const char *name);

/* An object of the MPI, where the program sees it; null if there is none. */
void *dtc_mpi_find_object(const char *name);

/* What the MPI says that it is; empty if it says nothing. And whether it says a word. */
const char *dtc_mpi_library_version(void);
int dtc_mpi_version_says(const char *word);

/* Says why the interposer steps aside, if DTC_MPI_REPORT asks. */
void dtc_mpi_say(const char *what, const char *why);

/* What is under way with a request of the MPI. The first member of a structure that says more. */
struct dtc_mpi_tracked {
    struct dtc_mpi_tracked *next;
    /* The value of the handle. */
    uintptr_t request;
    /* Whether the handle stays valid when the request ends. */
    char persistent;
};

/* How many there are; as long as there is none, no request needs to be looked up. */
extern int64_t dtc_mpi_tracked_count;

void dtc_mpi_track(struct dtc_mpi_tracked *tracked, uintptr_t request);
void dtc_mpi_untrack(struct dtc_mpi_tracked *tracked);

/* What is under way with a request; null if nothing is. dtc_mpi_take removes it unless it is persistent: the MPI uses a handle again,
   in any thread, as soon as its request has ended. */
struct dtc_mpi_tracked *dtc_mpi_find_tracked(uintptr_t request);
struct dtc_mpi_tracked *dtc_mpi_take_tracked(uintptr_t request);

/* Where the program finds a function. */
enum dtc_mpi_provider { DTC_MPI_NOWHERE, DTC_MPI_HERE, DTC_MPI_ELSEWHERE };
enum dtc_mpi_provider dtc_mpi_provider(const char *name);

/* The engine of all types; null until the interposer has begun, and after MPI_Finalize. */
extern struct dtc_engine *dtc_mpi_engine;

/* Where staging memory lies: of the host, of the host and pinned, or of the GPU of this number behind it. */
enum dtc_mpi_pool { DTC_MPI_HOST, DTC_MPI_PINNED, DTC_MPI_DEVICE };

/* A piece of staging memory. */
struct dtc_mpi_block {
    void *memory;
    /* DTC_MEMORY_... of dtc.h, and the GPU. */
    int32_t kind, device;
    /* What the pool knows it by. */
    int pool, power;
    struct dtc_memory *allocation;
};

/* Takes at least `bytes` bytes for packed data, from a pool for elements of GPU `device`; null if there are none. */
struct dtc_mpi_block *dtc_mpi_staging_take(enum dtc_mpi_pool pool, int32_t device, int64_t bytes);
void dtc_mpi_staging_give(struct dtc_mpi_block *block);

/* What was done, for the report. */
enum dtc_mpi_count {
    DTC_MPI_PACKED,
    DTC_MPI_UNPACKED,
    DTC_MPI_SENT,
    DTC_MPI_RECEIVED,
    DTC_MPI_DIRECTLY,
    DTC_MPI_COUNTS
};
void dtc_mpi_count(enum dtc_mpi_count what, int64_t bytes);
/* How often this thread did something: it grows with each part of a call that dtc does. Only if DTC_MPI_REPORT asks. */
int64_t dtc_mpi_done_here(void);
void dtc_mpi_did(void);

/* Nanoseconds of a clock that never goes back. */
int64_t dtc_mpi_now(void);

/* Whether DTC_MPI_REPORT asks. */
int dtc_mpi_reports(void);

/* At the end: what was done, with how many datatypes that dtc decoded, and how many of these have kernels compiled for them. */
void dtc_mpi_report(const char *abi, int64_t decoded, int64_t compiled);

#endif
