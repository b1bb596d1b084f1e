/*
 * The subroutines that a program finds instead of those of its MPI. They go on as the functions of entry.c do. Those that begin with an
 * MPI are here so that this library finds the MPI of a program that calls no function of C.
 */
#include "interposer.h"

typedef uintptr_t word;

static const dtc_mpi_function none;

/* All arguments are addresses; none has more than seven, and a subroutine does not look at those that it does not have. */
typedef void subroutine(word, word, word, word, word, word, word);

#define SUBROUTINE(name, ours)                                                                                                   \
    __attribute__((visibility("default"))) subroutine name;                                                                       \
    void name(word first, word second, word third, word fourth, word fifth, word sixth, word seventh)                             \
    {                                                                                                                              \
        static dtc_mpi_function entry;                                                                                            \
        dtc_mpi_function known = __atomic_load_n(&entry, __ATOMIC_ACQUIRE);                                                       \
        if (__builtin_expect(!known, 0)) {                                                                                        \
            const struct dtc_mpi_abi *abi = dtc_mpi_bound();                                                                      \
            known = abi ? ours : none;                                                                                            \
            if (!known) known = dtc_mpi_find_function(#name);                                                                     \
            __atomic_store_n(&entry, known, __ATOMIC_RELEASE);                                                                    \
        }                                                                                                                          \
        if (known) ((subroutine *)known)(first, second, third, fourth, fifth, sixth, seventh);                                    \
    }

#define FORTRAN(name) SUBROUTINE(mpi_##name##_f08_, abi->fortran[DTC_MPI_FORTRAN_##name])
#include "fortran.def"

SUBROUTINE(mpi_init_, none)
SUBROUTINE(mpi_init_thread_, none)
SUBROUTINE(mpi_init_f08_, none)
SUBROUTINE(mpi_init_thread_f08_, none)
