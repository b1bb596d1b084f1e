/*
 * One peer of a measurement: a process that packs and unpacks one datatype on request, so that a driver can interleave
 * rounds between several peers. README.md beside this file documents the protocol.
 *
 * Compiled with exactly one of
 *   -DPEER_CALLS MPI_Pack and MPI_Unpack on the type that calls.c reads from a file
 *   -DPEER_MPI   the same on the type of build_type(), which a generated file defines
 *   -DPEER_LOOP  the functions pack and unpack of a file that hand-loop printed
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if defined(PEER_CALLS) + defined(PEER_MPI) + defined(PEER_LOOP) != 1
#error "define exactly one of PEER_CALLS, PEER_MPI and PEER_LOOP"
#endif

/* What setup has prepared; shared_bytes is the length of the map, or 0 where the buffers are this process's own. */
static char *memory, *packed;
static size_t memory_bytes, packed_total, shared_bytes;
static long origin, element_count;

/* Written by evict, read by nobody else; volatile would slow the stores down. */
static char *scratch;
static size_t scratch_bytes;

/* Tells the compiler that all memory may have been read and written here, so that no call is merged or dropped. */
static inline void barrier(void) { __asm__ volatile("" ::: "memory"); }

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* What each kind of peer provides: the shape of its type, one pack, one unpack, one commit. */
struct shape {
    long size, extent, true_lower, true_upper;
};

#ifndef PEER_LOOP
#include <limits.h>
#include <mpi.h>

MPI_Datatype build_type(void);
static MPI_Datatype type = MPI_DATATYPE_NULL;

static void free_type(void)
{
    if (type != MPI_DATATYPE_NULL)
        MPI_Type_free(&type);
}

static const char *library_version(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, "\n")] = 0;
    return text;
}

#ifdef PEER_CALLS
const char *read_type(const char *path);
static int has_type;

static const char *choose_type(const char *path)
{
    free_type();
    const char *problem = read_type(path);
    has_type = !problem;
    return problem;
}
#else
static const int has_type = 1;
static const char *choose_type(const char *path) { return (void)path, "this peer has its type"; }
#endif

static const char *prepare(struct shape *shape)
{
    if (!has_type)
        return "no type yet";
    if (type == MPI_DATATYPE_NULL) {
        type = build_type();
        if (type == MPI_DATATYPE_NULL || MPI_Type_commit(&type) != MPI_SUCCESS)
            return "the MPI refused the type";
    }
    MPI_Count size;
    MPI_Aint lower, extent, true_lower, true_extent;
    MPI_Type_size_x(type, &size);
    MPI_Type_get_extent(type, &lower, &extent);
    MPI_Type_get_true_extent(type, &true_lower, &true_extent);
    *shape = (struct shape){(long)size, (long)extent, (long)true_lower, (long)(true_lower + true_extent)};
    return NULL;
}

static const char *fits(void)
{
    return packed_total > INT_MAX || element_count > INT_MAX ? "MPI_Pack counts bytes in an int" : NULL;
}

static int one_pack(void)
{
    int position = 0;
    return MPI_Pack(memory + origin, (int)element_count, type, packed, (int)packed_total, &position, MPI_COMM_SELF);
}

static int one_unpack(void)
{
    int position = 0;
    return MPI_Unpack(packed, (int)packed_total, &position, memory + origin, (int)element_count, type, MPI_COMM_SELF);
}

static void one_commit(void)
{
    if (!has_type)
        return;
    MPI_Datatype fresh = build_type();
    MPI_Type_commit(&fresh);
    MPI_Type_free(&fresh);
}

#else

extern const long packed_bytes, extent_bytes, true_lower_bytes, true_upper_bytes;

static const char *prepare(struct shape *shape)
{
    *shape = (struct shape){packed_bytes, extent_bytes, true_lower_bytes, true_upper_bytes};
    return NULL;
}

static const char *fits(void) { return NULL; }
static const char *library_version(void) { return "none"; }
static const char *choose_type(const char *path) { return (void)path, "this peer has its type"; }
static void one_commit(void) {}

void pack(const char *memory, char *packed, long count);
void unpack(char *memory, const char *packed, long count);

static int one_pack(void)
{
    pack(memory + origin, packed, element_count);
    return 0;
}

static int one_unpack(void)
{
    unpack(memory + origin, packed, element_count);
    return 0;
}

#endif

/*
 * Word k of the buffer, in the byte order of the machine, is one xorshift64 step (13, 7, 17) of
 * seed + (k + 1) * 0x9e3779b97f4a7c15. Any word can be computed alone, so a test need not hold the buffer.
 */
static uint64_t word(uint64_t seed, uint64_t index)
{
    uint64_t value = seed + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    value ^= value << 13;
    value ^= value >> 7;
    value ^= value << 17;
    return value;
}

static void fill(char *buffer, size_t bytes, uint64_t seed)
{
    size_t words = bytes / 8;
    for (size_t index = 0; index < words; index++) {
        uint64_t value = word(seed, index);
        memcpy(buffer + index * 8, &value, 8);
    }
    uint64_t last = word(seed, words);
    memcpy(buffer + words * 8, &last, bytes % 8);
}

/* FNV-1a, 64 bits. */
static uint64_t checksum(const char *buffer, size_t bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t index = 0; index < bytes; index++) {
        hash ^= (unsigned char)buffer[index];
        hash *= UINT64_C(0x100000001b3);
    }
    return hash;
}

static size_t whole_pages(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

/* Page aligned and touched, so that every peer has the same alignment and no round pays for page faults. */
static char *allocate(size_t bytes)
{
    size_t rounded = whole_pages(bytes) + 4096;
    char *buffer = aligned_alloc(4096, rounded);
    if (buffer)
        memset(buffer, 0, rounded);
    return buffer;
}

static void release(void)
{
    if (shared_bytes) {
        munmap(memory, shared_bytes);
    } else {
        free(memory);
        free(packed);
    }
    memory = packed = NULL;
    shared_bytes = 0;
}

/* Memory, then from the next page on the packed bytes, both in the driver's file: the same pages for all. */
static const char *share(const char *path, size_t bytes)
{
    int file = open(path, O_RDWR);
    if (file < 0)
        return "the file does not open";
    struct stat status;
    size_t wanted = whole_pages(bytes) + packed_total;
    char *map = MAP_FAILED;
    int large_enough = fstat(file, &status) == 0 && (size_t)status.st_size >= wanted && wanted > 0;
    if (large_enough)
        map = mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    close(file);
    if (map == MAP_FAILED)
        return large_enough ? "the file cannot be mapped" : "the file is too short";
    memory = map;
    packed = map + whole_pages(bytes);
    shared_bytes = wanted;
    return NULL;
}

static const char *setup(size_t bytes, long origin_bytes, long count, uint64_t seed, const char *path)
{
    struct shape shape;
    release();
    const char *problem = prepare(&shape);
    if (problem)
        return problem;
    if (count < 0)
        return "the count is negative";
    packed_total = (size_t)shape.size * (size_t)count;
    memory_bytes = bytes;
    origin = origin_bytes;
    element_count = count;
    if (packed_total > 0) {
        long reach = (count - 1) * shape.extent;
        long first = origin + shape.true_lower + (reach < 0 ? reach : 0);
        long last = origin + shape.true_upper + (reach > 0 ? reach : 0);
        if (first < 0 || last > (long)bytes)
            return "the type reaches outside the buffer";
    }
    problem = fits();
    if (problem)
        return problem;
    if (path) {
        problem = share(path, bytes);
        if (problem)
            return problem;
    } else {
        memory = allocate(bytes);
        packed = allocate(packed_total);
        if (!memory || !packed)
            return "not enough memory";
        fill(memory, bytes, seed);
    }
    return one_pack() ? "MPI_Pack failed" : NULL;
}

/* Nanoseconds per call; where warm, one call before the clock starts brings back what other peers have evicted. */
static double timed(int (*call)(void), long repetitions, int warm, int *failed)
{
    *failed = warm ? call() : 0;
    barrier();
    double start = now();
    for (long repetition = 0; repetition < repetitions; repetition++) {
        *failed |= call();
        barrier();
    }
    return (now() - start) / (double)repetitions;
}

static double timed_commits(long repetitions)
{
    one_commit();
    double start = now();
    for (long repetition = 0; repetition < repetitions; repetition++) {
        one_commit();
        barrier();
    }
    return (now() - start) / (double)repetitions;
}

static void print_time(int (*call)(void), long repetitions, int warm)
{
    int failed;
    double nanoseconds = timed(call, repetitions, warm, &failed);
    if (failed)
        printf("error the MPI refused the call\n");
    else
        printf("nanoseconds %.3f\n", nanoseconds);
}

/* Room for the name of a file, and 1 for its end. */
#define PATH_BYTES 4096

static void answer(const char *line)
{
    char name[32];
    long number, origin_bytes, count;
    unsigned long long bytes, seed;
    char path[PATH_BYTES];

    int numbers = sscanf(line, "setup %llu %ld %ld %llu %4095s", &bytes, &origin_bytes, &count, &seed, path);
    if (strcmp(line, "version\n") == 0) {
        printf("version %s\n", library_version());
    } else if (sscanf(line, "type %4095[^\n]", path) == 1) {
        release();
        const char *problem = choose_type(path);
        printf(problem ? "error %s\n" : "ok\n", problem);
    } else if (numbers >= 4) {
        const char *problem = setup((size_t)bytes, origin_bytes, count, seed, numbers == 5 ? path : NULL);
        if (problem) {
            release();
            printf("error %s\n", problem);
        } else {
            printf("packed %zu\n", packed_total);
        }
    } else if (sscanf(line, "commit %ld", &number) == 1 && number > 0) {
        printf("nanoseconds %.3f\n", timed_commits(number));
    } else if (sscanf(line, "evict %llu", &bytes) == 1) {
        if (bytes > scratch_bytes) {
            free(scratch);
            scratch = malloc(bytes);
            scratch_bytes = scratch ? bytes : 0;
        }
        if (scratch)
            memset(scratch, (int)bytes & 0x7f, scratch_bytes);
        barrier();
        printf(scratch ? "ok\n" : "error not enough memory\n");
    } else if (!memory) {
        printf("error no setup yet, or not a command\n");
    } else if (sscanf(line, "pack %ld", &number) == 1 && number > 0) {
        print_time(one_pack, number, 1);
    } else if (sscanf(line, "unpack %ld", &number) == 1 && number > 0) {
        print_time(one_unpack, number, 1);
    } else if (sscanf(line, "cold %31s", name) == 1 && strcmp(name, "pack") == 0) {
        print_time(one_pack, 1, 0);
    } else if (sscanf(line, "cold %31s", name) == 1 && strcmp(name, "unpack") == 0) {
        print_time(one_unpack, 1, 0);
    } else if (sscanf(line, "poison %ld", &number) == 1) {
        memset(memory, (int)(number & 0xff), memory_bytes);
        printf("ok\n");
    } else if (sscanf(line, "checksum %31s", name) == 1 && strcmp(name, "packed") == 0) {
        printf("checksum %016llx\n", (unsigned long long)checksum(packed, packed_total));
    } else if (sscanf(line, "checksum %31s", name) == 1 && strcmp(name, "memory") == 0) {
        printf("checksum %016llx\n", (unsigned long long)checksum(memory, memory_bytes));
    } else {
        printf("error not a command\n");
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
#ifndef PEER_LOOP
    MPI_Init(&argc, &argv);
    /* A refused call becomes an answer, not an abort. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
#else
    (void)argc;
    (void)argv;
#endif
    char line[PATH_BYTES + 128];
    while (fgets(line, sizeof line, stdin) && strncmp(line, "quit", 4) != 0)
        answer(line);
#ifndef PEER_LOOP
    free_type();
    MPI_Finalize();
#endif
    return 0;
}
