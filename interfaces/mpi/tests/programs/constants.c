/* Compares the constants, handles and structures of an ABI, as the interposer knows them, with the mpi.h of an MPI. */
#include "check.h"
#include <stddef.h>

#if defined(OPEN_MPI)
#define OF_ABI(mpich, open_mpi, standard) open_mpi
enum { STATUS = 24, SOURCE_AT = 0 };
#elif defined(MPI_ABI_VERSION)
#define OF_ABI(mpich, open_mpi, standard) standard
enum { STATUS = 32, SOURCE_AT = 0 };
#else
#define OF_ABI(mpich, open_mpi, standard) mpich
enum { STATUS = 20, SOURCE_AT = 8 };
#endif

int main(int argc, char **argv)
{
    int compared = 0;
    MPI_Init(&argc, &argv);
#define CONSTANT(name, mpich, open_mpi, standard)                                                                                 \
    CHECK((long)(name) == (long)(OF_ABI(mpich, open_mpi, standard)), #name " is %ld", (long)(name));                              \
    compared++;
#include "../../abi/constants.def"
#if defined(OPEN_MPI)
#define HANDLE(type, name, mpich, standard, symbol)                                                                               \
    CHECK((void *)(name) == (void *)&symbol, #name " is not " #symbol);                                                           \
    compared++;
#else
#define HANDLE(type, name, mpich, standard, symbol)                                                                               \
    CHECK((intptr_t)(name) == OF_ABI(mpich, 0, standard), #name " is %lx", (long)(intptr_t)(name));                               \
    compared++;
#endif
#include "handles.def"
    CHECK(sizeof(MPI_Status) == STATUS, "%zu", sizeof(MPI_Status));
    CHECK(offsetof(MPI_Status, MPI_SOURCE) == SOURCE_AT, "%zu", offsetof(MPI_Status, MPI_SOURCE));
    CHECK(sizeof(MPI_Datatype) == OF_ABI(4, 8, 8) && sizeof(MPI_Message) == OF_ABI(4, 8, 8), "%zu", sizeof(MPI_Datatype));
    CHECK(sizeof(MPI_Aint) == 8 && sizeof(MPI_Count) == 8, "%zu", sizeof(MPI_Count));
    CHECK((intptr_t)MPI_STATUS_IGNORE == OF_ABI(1, 0, 0), "%p", (void *)MPI_STATUS_IGNORE);
    CHECK((intptr_t)MPI_STATUSES_IGNORE == OF_ABI(1, 0, 0), "%p", (void *)MPI_STATUSES_IGNORE);
    CHECK(sizeof(MPI_Request) == OF_ABI(4, 8, 8), "%zu", sizeof(MPI_Request));
    CHECK((intptr_t)MPI_BOTTOM == 0, "%p", MPI_BOTTOM);
    printf("constants: %d\n", compared);
    MPI_Finalize();
    return 0;
}
