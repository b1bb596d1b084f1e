/*
 * Times calls of MPI with derived datatypes, alone and with libdtc_mpi, in one job of two processes: the library is preloaded with
 * DTC_MPI=all, and MPI_Send is a call with dtc where PMPI_Send is one of the MPI alone.
 *
 * The first argument is the packed bytes of the largest calls. With a second one, elements are in memory of a GPU, a different one for each process
 * if there are two, and messages alone are timed.
 *
 * Prints lines: "mpi: VERSION", and "CALL PIECES SHARE BYTES SIZE ALONE WITH" for each kind of pieces and size, where ALONE and WITH are
 * nanoseconds of a call, or of a message one way. "error: WHAT" ends the output of a job that failed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum call { PACK, UNPACK, MESSAGE, EXCHANGE, CALLS };
enum arrangement { REGULAR, LISTED, RECORDS, ARRANGEMENTS };
static const char *const CALL_NAMES[] = {"pack", "unpack", "message", "exchange"};
static const char *const ARRANGEMENT_NAMES[] = {"regular", "listed", "records"};

/* Messages of an exchange in each direction. */
enum { MESSAGES = 2 };

/* Rounds whose median counts; fewer if a round takes long. Nanoseconds that the calls of a round take at least, and of a long one. */
enum { ROUNDS = 9, LONG_ROUNDS = 5, SHORTEST_ROUND = 500000, LONG_ROUND = 20000000, MOST_CALLS = 1000 };

/* The sizes and lengths of pieces of a table, in bytes. */
static const long SMALLEST = 256, SHORTEST_PIECE = 4, LONGEST_PIECE = 2048;

/* Pieces of a message between GPUs, at most: an MPI may copy each by itself, which takes microseconds. */
enum { MOST_PIECES_OF_GPU = 1024 };

static int rank, on_gpu;
static unsigned char *memory, *back, *packed, *again;

/* Elements of a GPU, as the host has them. */
static unsigned char *copy;

/* The driver, for elements on a GPU. */
static int (*allocate)(uintptr_t *, size_t), (*fill)(uintptr_t, unsigned char, size_t), (*upload)(uintptr_t, const void *, size_t),
    (*download)(void *, uintptr_t, size_t);

static void fail(const char *what)
{
    printf("error: %s\n", what);
    fflush(stdout);
    int begun = 0;
    PMPI_Initialized(&begun);
    if (begun) PMPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void *find(void *library, const char *name)
{
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) fail("expected a driver of CUDA");
    return found;
}

/* The number of this process on its machine, as launchers tell before the MPI begins: some MPIs use links between GPUs only if each process has its
   GPU by then. */
static int launched_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "PMI_RANK"};
    for (size_t at = 0; at < sizeof names / sizeof *names; at++)
        if (getenv(names[at])) return atoi(getenv(names[at]));
    return 0;
}

/* Makes a GPU current. */
static void open_gpu(void)
{
    const char *path = getenv("DTC_CUDA_DRIVER");
    void *library = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    int (*init)(unsigned) = (int (*)(unsigned))find(library, "cuInit");
    int (*count)(int *) = (int (*)(int *))find(library, "cuDeviceGetCount");
    int (*retain)(uintptr_t *, int) = (int (*)(uintptr_t *, int))find(library, "cuDevicePrimaryCtxRetain");
    int (*push)(uintptr_t) = (int (*)(uintptr_t))find(library, "cuCtxPushCurrent_v2");
    allocate = (int (*)(uintptr_t *, size_t))find(library, "cuMemAlloc_v2");
    fill = (int (*)(uintptr_t, unsigned char, size_t))find(library, "cuMemsetD8_v2");
    upload = (int (*)(uintptr_t, const void *, size_t))find(library, "cuMemcpyHtoD_v2");
    download = (int (*)(void *, uintptr_t, size_t))find(library, "cuMemcpyDtoH_v2");
    int gpus = 0;
    uintptr_t context;
    if (init(0) || count(&gpus) || gpus < 1 || retain(&context, launched_rank() % gpus) || push(context)) fail("expected a GPU");
}

/* Whether the MPI takes memory of a GPU, as it says or DTC_MPI_GPU does. */
static int is_aware(void)
{
    const char *said = getenv("DTC_MPI_GPU");
    int (*query)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");
    int (*query_gpu)(int, int *) = (int (*)(int, int *))dlsym(RTLD_DEFAULT, "MPIX_GPU_query_support"), supported = 0;
    if (said && !strcmp(said, "device")) return 1;
    return query ? query() == 1 : query_gpu && !query_gpu(0, &supported) && supported;
}

/* Memory for elements. */
static unsigned char *take(size_t bytes)
{
    uintptr_t there = 0;
    if (!on_gpu) return malloc(bytes);
    return allocate(&there, bytes) ? NULL : (unsigned char *)there;
}

static void set(unsigned char *elements, int byte, size_t bytes)
{
    if (!on_gpu)
        memset(elements, byte, bytes);
    else if (fill((uintptr_t)elements, (unsigned char)byte, bytes))
        fail("memory of a GPU was not set");
}

/* Elements where the processor reads them. */
static const unsigned char *read_elements(const unsigned char *elements, size_t bytes)
{
    if (on_gpu && download(copy, (uintptr_t)elements, bytes)) fail("memory of a GPU was not read");
    return on_gpu ? copy : elements;
}

/* Elements of a datatype. */
struct elements {
    MPI_Datatype datatype;
    int count;
    long size;
    /* Bytes that they reach over, at most. */
    long reach;
};

static MPI_Datatype committed(MPI_Datatype made)
{
    MPI_Type_commit(&made);
    return made;
}

static MPI_Datatype basic(long bytes)
{
    return bytes % 8 == 0 ? MPI_DOUBLE : bytes % 4 == 0 ? MPI_INT : MPI_SHORT;
}

static MPI_Datatype regular(int pieces, long bytes, int reach)
{
    MPI_Datatype made;
    MPI_Datatype of = basic(bytes);
    int length, elements;
    MPI_Type_size(of, &length);
    elements = (int)(bytes / length);
    MPI_Type_vector(pieces, elements, elements * reach, of, &made);
    return committed(made);
}

/* Each piece lies somewhere in its share of memory. */
static MPI_Datatype listed(int pieces, long bytes, int reach)
{
    MPI_Datatype made;
    MPI_Datatype of = basic(bytes);
    int length, elements, *places = malloc((size_t)pieces * sizeof *places);
    unsigned state = 12345;
    if (!places) fail("memory for a list");
    MPI_Type_size(of, &length);
    elements = (int)(bytes / length);
    for (int at = 0; at < pieces; at++) {
        state = state * 1664525u + 1013904223u;
        places[at] = at * elements * reach + (int)((state >> 8) % (unsigned)(elements * (reach - 1) + 1));
    }
    MPI_Type_create_indexed_block(pieces, elements, places, of, &made);
    free(places);
    return committed(made);
}

/* Two fields of one kind, three times and once as long as a half of the average. */
static MPI_Datatype record(long bytes, int reach)
{
    MPI_Datatype of = basic(bytes / 2), types[2] = {of, of}, made, resized;
    int length, lengths[2];
    MPI_Aint places[2] = {0, bytes * reach};
    MPI_Type_size(of, &length);
    lengths[0] = (int)(bytes * 3 / 2 / length), lengths[1] = (int)(bytes / 2 / length);
    MPI_Type_create_struct(2, lengths, places, types, &made);
    MPI_Type_create_resized(made, 0, 2 * bytes * reach, &resized);
    MPI_Type_free(&made);
    return committed(resized);
}

static struct elements elements_of(enum arrangement arrangement, long bytes, int reach, long size)
{
    struct elements elements = {MPI_DATATYPE_NULL, 1, size, size * reach};
    int pieces = (int)(size / bytes);
    if (arrangement == REGULAR) elements.datatype = regular(pieces, bytes, reach);
    if (arrangement == LISTED) elements.datatype = listed(pieces, bytes, reach);
    if (arrangement == RECORDS) elements.datatype = record(bytes, reach), elements.count = pieces / 2;
    return elements;
}

static void pack(const struct elements *of, int with)
{
    int position = 0;
    (with ? MPI_Pack : PMPI_Pack)(memory, of->count, of->datatype, packed, (int)of->size, &position, MPI_COMM_WORLD);
}

static void unpack(const struct elements *of, int with)
{
    int position = 0;
    (with ? MPI_Unpack : PMPI_Unpack)(packed, (int)of->size, &position, back, of->count, of->datatype, MPI_COMM_WORLD);
}

static void send(const struct elements *of, int with)
{
    (with ? MPI_Send : PMPI_Send)(memory, of->count, of->datatype, !rank, 0, MPI_COMM_WORLD);
}

static void receive(const struct elements *of, int with)
{
    (with ? MPI_Recv : PMPI_Recv)(back, of->count, of->datatype, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void message(const struct elements *of, int with)
{
    if (rank == 0) send(of, with);
    receive(of, with);
    if (rank == 1) send(of, with);
}

static void exchange(const struct elements *of, int with)
{
    MPI_Request requests[2 * MESSAGES];
    for (int at = 0; at < MESSAGES; at++)
        (with ? MPI_Irecv : PMPI_Irecv)(
            back + at * of->reach, of->count, of->datatype, !rank, at, MPI_COMM_WORLD, &requests[at]);
    for (int at = 0; at < MESSAGES; at++)
        (with ? MPI_Isend : PMPI_Isend)(
            memory, of->count, of->datatype, !rank, at, MPI_COMM_WORLD, &requests[MESSAGES + at]);
    (with ? MPI_Waitall : PMPI_Waitall)(2 * MESSAGES, requests, MPI_STATUSES_IGNORE);
}

static void (*const DONE[])(const struct elements *, int) = {pack, unpack, message, exchange};

/* Nanoseconds of a call. */
static double time_of(enum call call, const struct elements *of, int with, int calls)
{
    if (call >= MESSAGE) PMPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int at = 0; at < calls; at++) DONE[call](of, with);
    return (MPI_Wtime() - begin) * 1e9 / calls;
}

static int is_above(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double median(double *times, int rounds)
{
    qsort(times, (size_t)rounds, sizeof *times, is_above);
    return times[rounds / 2];
}

/* Times a call, and both processes those of messages. */
static void measure(enum call call, const struct elements *of, double *alone, double *with)
{
    double times[2][ROUNDS];
    int numbers[2];
    /* The datatype is decoded and its kernel compiled before the time counts. */
    for (int at = 0; at < 20; at++) DONE[call](of, 1);
    double first = time_of(call, of, 0, 1), second = time_of(call, of, 1, 1);
    double shorter = first < second ? first : second;
    numbers[0] = shorter * MOST_CALLS < SHORTEST_ROUND ? MOST_CALLS : shorter > SHORTEST_ROUND ? 1 : (int)(SHORTEST_ROUND / shorter) + 1;
    numbers[1] = first + second > LONG_ROUND ? LONG_ROUNDS : ROUNDS;
    if (call >= MESSAGE) PMPI_Bcast(numbers, 2, MPI_INT, 0, MPI_COMM_WORLD);
    int calls = numbers[0], rounds = numbers[1];
    for (int round = 0; round < rounds; round++)
        for (int turn = 0; turn < 2; turn++) {
            int of_library = (round + turn) % 2;
            times[of_library][round] = time_of(call, of, of_library, calls);
        }
    *alone = median(times[0], rounds), *with = median(times[1], rounds);
    if (call == MESSAGE) *alone /= 2, *with /= 2;
}

/* Whether what came is what was sent, both packed by the MPI alone. */
static void compare(const struct elements *of)
{
    size_t bytes = (size_t)of->reach;
    for (int came = 0; came < 2; came++) {
        int position = 0;
        PMPI_Pack(read_elements(came ? back : memory, bytes), of->count, of->datatype, came ? again : packed, (int)of->size, &position,
                  MPI_COMM_WORLD);
    }
    if (memcmp(packed, again, (size_t)of->size)) fail("other bytes came than were sent");
}

static void measure_all(enum arrangement arrangement, long bytes, int reach, long size)
{
    if (on_gpu && size / bytes > MOST_PIECES_OF_GPU) return;
    struct elements of = elements_of(arrangement, bytes, reach, size);
    for (enum call call = on_gpu ? MESSAGE : PACK; call < CALLS; call++) {
        double alone = 0, with = 0;
        set(back, 0xa5, (size_t)(size * reach) * MESSAGES);
        PMPI_Barrier(MPI_COMM_WORLD);
        if (call == UNPACK) pack(&of, 0);
        if (rank == 0 || call >= MESSAGE) measure(call, &of, &alone, &with);
        set(back, 0x5a, (size_t)(size * reach));
        if (call != PACK && (rank == 0 || call >= MESSAGE)) {
            if (call >= MESSAGE) PMPI_Barrier(MPI_COMM_WORLD);
            DONE[call](&of, 1);
            compare(&of);
        }
        if (rank == 0)
            printf("%s %s 1/%d %ld %ld %.0f %.0f\n", CALL_NAMES[call], ARRANGEMENT_NAMES[arrangement], reach, bytes, size, alone, with);
    }
    fflush(stdout);
    MPI_Type_free(&of.datatype);
}

int main(int argc, char **argv)
{
    int processes, length;
    static char version[MPI_MAX_LIBRARY_VERSION_STRING];
    on_gpu = argc > 2;
    if (on_gpu) open_gpu();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    if (processes != 2) fail("expected 2 processes");
    if ((void *)MPI_Pack == (void *)PMPI_Pack) fail("expected libdtc_mpi in both processes: does the launcher pass LD_PRELOAD on?");
    if (on_gpu && !is_aware()) fail("expected an MPI that takes memory of a GPU, or DTC_MPI_GPU=device");
    const long largest = argc > 1 ? atol(argv[1]) : 0;
    PMPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = 0;
    if (rank == 0) printf("mpi: %s\n", version);
    memory = take((size_t)largest * 8), back = take((size_t)largest * 8 * MESSAGES), copy = malloc((size_t)largest * 8);
    packed = malloc((size_t)largest), again = malloc((size_t)largest);
    if (!memory || !back || !copy || !packed || !again) fail("memory for elements");
    for (long at = 0; at < largest * 8; at++) copy[at] = (unsigned char)(at * 167 + (at >> 8) * 13 + (at >> 16) * 5);
    if (!on_gpu)
        memcpy(memory, copy, (size_t)largest * 8);
    else if (upload((uintptr_t)memory, copy, (size_t)largest * 8))
        fail("memory of a GPU was not written");
    for (long size = SMALLEST; size <= largest; size *= 4)
        for (enum arrangement arrangement = REGULAR; arrangement < ARRANGEMENTS; arrangement++)
            for (int reach = 2; reach <= 8; reach *= 4)
                for (long bytes = SHORTEST_PIECE; bytes <= LONGEST_PIECE && 2 * bytes <= size; bytes *= 2)
                    measure_all(arrangement, bytes, reach, size);
    MPI_Finalize();
    return 0;
}
