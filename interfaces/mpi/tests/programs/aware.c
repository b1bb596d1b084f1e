/*
 * An MPI that is CUDA-aware, by what it says: preloaded behind the interposer, where memory of the emulated GPU is the host's. At its end,
 * each process tells in which kinds of memory the MPI was given its messages.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int MPIX_Query_cuda_support(void);

int MPIX_Query_cuda_support(void)
{
    return 1;
}

/* Messages from and to memory of a GPU, pinned memory, and the rest. */
static long given[3];

static unsigned kind_of(const void *memory)
{
    static int (*ask)(void *, int, const void *);
    const char *path = getenv("DTC_CUDA_DRIVER");
    void *driver = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    if (driver && !ask) ask = (int (*)(void *, int, const void *))dlsym(driver, "cuPointerGetAttribute");
    unsigned kind = 0;
    if (ask && ask(&kind, 2, memory)) kind = 0;
    return kind;
}

static void look(const void *memory)
{
    unsigned kind = kind_of(memory);
    __atomic_fetch_add(&given[kind == 2 ? 0 : kind == 1 ? 1 : 2], 1, __ATOMIC_RELAXED);
}

#define NEXT(name) ((__typeof__(&MPI_##name))dlsym(RTLD_NEXT, "MPI_" #name))

int MPI_Send(const void *memory, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm communicator)
{
    look(memory);
    return NEXT(Send)(memory, count, datatype, rank, tag, communicator);
}

int MPI_Recv(void *memory, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm communicator, MPI_Status *status)
{
    look(memory);
    return NEXT(Recv)(memory, count, datatype, rank, tag, communicator, status);
}

int MPI_Isend(const void *memory, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm communicator, MPI_Request *request)
{
    look(memory);
    return NEXT(Isend)(memory, count, datatype, rank, tag, communicator, request);
}

int MPI_Irecv(void *memory, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm communicator, MPI_Request *request)
{
    look(memory);
    return NEXT(Irecv)(memory, count, datatype, rank, tag, communicator, request);
}

/* Open MPI 5.0 ends by a signal where these lie in memory of different kinds. */
static void meet(const char *what, const void *first, const void *second)
{
    if ((kind_of(first) == 2) == (kind_of(second) == 2)) return;
    fprintf(stderr, "aware: %s between a GPU and the host\n", what);
    abort();
}

int MPI_Pack(const void *memory, int count, MPI_Datatype datatype, void *packed, int size, int *position, MPI_Comm communicator)
{
    meet("MPI_Pack", memory, packed);
    return NEXT(Pack)(memory, count, datatype, packed, size, position, communicator);
}

int MPI_Unpack(const void *packed, int size, int *position, void *memory, int count, MPI_Datatype datatype, MPI_Comm communicator)
{
    meet("MPI_Unpack", packed, memory);
    return NEXT(Unpack)(packed, size, position, memory, count, datatype, communicator);
}

#ifdef OPEN_MPI
int MPI_Alltoallw(const void *sent, const int *sent_counts, const int *sent_places, const MPI_Datatype *sent_types, void *received,
                  const int *counts, const int *places, const MPI_Datatype *types, MPI_Comm communicator)
{
    int rank;
    PMPI_Comm_rank(communicator, &rank);
    if (sent != MPI_IN_PLACE && counts[rank] > 0)
        meet("a block to itself", (const char *)sent + sent_places[rank], (const char *)received + places[rank]);
    return NEXT(Alltoallw)(sent, sent_counts, sent_places, sent_types, received, counts, places, types, communicator);
}
#endif

/* It asks where address 0 leads to. */
int MPI_Sendrecv(const void *sent, int sent_count, MPI_Datatype sent_type, int to, int sent_tag, void *received, int count,
                 MPI_Datatype type, int from, int tag, MPI_Comm communicator, MPI_Status *status)
{
    if ((sent == MPI_BOTTOM && sent_count > 0) || (received == MPI_BOTTOM && count > 0)) {
        fprintf(stderr, "aware: MPI_Sendrecv at absolute addresses\n");
        abort();
    }
    return NEXT(Sendrecv)(sent, sent_count, sent_type, to, sent_tag, received, count, type, from, tag, communicator, status);
}

int MPI_Finalize(void)
{
    printf("aware: %ld of a GPU, %ld pinned, %ld others\n", given[0], given[1], given[2]);
    fflush(stdout);
    return NEXT(Finalize)();
}
