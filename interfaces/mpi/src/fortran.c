/* The subroutines that a program finds instead of those of its MPI's module mpi_f08. They go on as the functions of entry.c do. */
#include "interposer.h"

typedef uintptr_t word;

/* All arguments are addresses; none has more than six, and a subroutine does not look at those that it does not have. */
typedef void subroutine(word, word, word, word, word, word);

#define FORTRAN(name)                                                                                                             \
    __attribute__((visibility("default"))) subroutine mpi_##name##_f08_;                                                          \
    void mpi_##name##_f08_(word first, word second, word third, word fourth, word fifth, word sixth)                              \
    {                                                                                                                              \
        static dtc_mpi_function entry;                                                                                            \
        dtc_mpi_function known = __atomic_load_n(&entry, __ATOMIC_ACQUIRE);                                                       \
        if (__builtin_expect(!known, 0)) {                                                                                        \
            const struct dtc_mpi_abi *abi = dtc_mpi_bound();                                                                      \
            known = abi ? abi->fortran[DTC_MPI_FORTRAN_##name] : 0;                                                               \
            if (!known) known = dtc_mpi_find_function("mpi_" #name "_f08_");                                                      \
            __atomic_store_n(&entry, known, __ATOMIC_RELEASE);                                                                    \
        }                                                                                                                          \
        if (known) ((subroutine *)known)(first, second, third, fourth, fifth, sixth);                                             \
    }
#include "fortran.def"
