/*
 * Which processes of a job on this machine have this library, as each of them can tell without a message: one to a process that does not
 * have it would reach the program. They meet in a file of shared memory that is named after what the launcher has given them all, and decide
 * there once, together, whether they exchange directly.
 */
#include "interposer.h"
#include "registry.h"
#include "shared_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UNDECIDED, DIRECT, NOT_DIRECT };

/* Most processes of a job, and nanoseconds within which those that began with a process enter themselves too. */
enum { MOST_RANKS = 1 << 20, PATIENCE = 1000000000 };

/* What a process says of itself; `process` comes last, and is 0 until then. */
struct slot {
    int64_t started;
    int64_t process;
};

struct registry {
    int32_t decision, size;
    struct slot slots[];
};

static struct registry *registry;
static char path[80];
static int ranks, expected;

/* When this process entered itself. */
static int64_t entered;

static uint64_t mix(uint64_t hash, const char *text)
{
    for (; text && *text; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

/* What all processes of a job on a machine have in common, and those of no other job that runs; 0 if the launcher tells nothing. */
static uint64_t name_of_job(void)
{
    /* Of Open MPI and others with PMIx, of Slurm, and of Hydra with TCP. */
    static const char *const given[] = {"PMIX_NAMESPACE", "PMIX_SERVER_URI41", "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID", "SLURM_STEP_ID", "PMI_PORT"};
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    int known = 0;
    for (unsigned at = 0; at < sizeof given / sizeof *given; at++) {
        const char *text = getenv(given[at]);
        hash = mix(hash, text);
        known = known || text;
    }
    /* Hydra gives each process a socket to itself, which tells who made it. */
    const char *socket = getenv("PMI_FD");
    struct ucred maker;
    socklen_t length = sizeof maker;
    if (socket && !getsockopt(atoi(socket), SOL_SOCKET, SO_PEERCRED, &maker, &length) && maker.pid > 0) {
        char number[24];
        snprintf(number, sizeof number, "%d", (int)maker.pid);
        hash = mix(hash, number);
        known = 1;
    }
    return known ? hash : 0;
}

/* How many processes of the job run on this machine; all, if the launcher does not tell. */
static int count_here(int size)
{
    static const char *const given[] = {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"};
    for (unsigned at = 0; at < sizeof given / sizeof *given; at++) {
        const char *text = getenv(given[at]);
        int count = text ? atoi(text) : 0;
        if (count > 0 && count <= size) return count;
    }
    return size;
}

/* When a process began, in the clock of the kernel; -1 if there is none of this number. */
static int64_t start_of(int64_t process)
{
    char name[48], text[1024];
    snprintf(name, sizeof name, "/proc/%" PRId64 "/stat", process);
    FILE *file = fopen(name, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    text[length] = '\0';
    /* The 22nd field; the second, in brackets, may have spaces. */
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    return at ? strtoll(at, NULL, 10) : -1;
}

static int decide(int32_t wanted)
{
    int32_t decision = UNDECIDED;
    if (!__atomic_compare_exchange_n(&registry->decision, &decision, wanted, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) wanted = decision;
    return wanted == DIRECT;
}

/* How many have come; -1 if one of them is gone. */
static int count_registered(int check)
{
    int count = 0;
    for (int rank = 0; rank < ranks; rank++) {
        int64_t process = __atomic_load_n(&registry->slots[rank].process, __ATOMIC_ACQUIRE);
        if (!process) continue;
        if (check && start_of(process) != registry->slots[rank].started) return -1;
        count++;
    }
    return count;
}

void dtc_mpi_register(int rank, int size)
{
    uint64_t job = size >= 2 && size <= MOST_RANKS ? name_of_job() : 0;
    if (!job) return;
    size_t bytes = sizeof *registry + (size_t)size * sizeof *registry->slots;
    snprintf(path, sizeof path, "/dev/shm/dtc-mpi-%u-%016" PRIx64, (unsigned)geteuid(), job);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat status;
    int usable = file >= 0 && !fstat(file, &status) && status.st_uid == geteuid() && shared_file_extend(file, bytes);
    void *made = usable ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (file >= 0) close(file);
    if (made == MAP_FAILED) return;
    registry = (struct registry *)made;
    ranks = size;
    expected = count_here(size);
    entered = dtc_mpi_now();
    int32_t others = 0;
    int64_t nobody = 0, process = getpid();
    struct slot *slot = &registry->slots[rank];
    int agreed = __atomic_compare_exchange_n(&registry->size, &others, size, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) || others == size;
    agreed = agreed && !__atomic_load_n(&slot->process, __ATOMIC_RELAXED);
    if (agreed) {
        __atomic_store_n(&slot->started, start_of(process), __ATOMIC_RELAXED);
        agreed = __atomic_compare_exchange_n(&slot->process, &nobody, process, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
    /* A file that an earlier job left behind may say otherwise. */
    if (!agreed) __atomic_store_n(&registry->decision, NOT_DIRECT, __ATOMIC_RELEASE);
    /* The last that comes takes the name away: a job that is killed leaves no file behind. */
    if (count_registered(0) == expected) unlink(path);
}

int dtc_mpi_exchanges_directly(void)
{
    if (!registry) return 0;
    int32_t decision = __atomic_load_n(&registry->decision, __ATOMIC_ACQUIRE);
    if (decision != UNDECIDED) return decision == DIRECT;
    while (count_registered(0) < expected && dtc_mpi_now() < entered + PATIENCE && registry->decision == UNDECIDED) sched_yield();
    int direct = decide(count_registered(1) == expected ? DIRECT : NOT_DIRECT);
    unlink(path);
    return direct;
}

int dtc_mpi_is_registered(int rank)
{
    return rank >= 0 && rank < ranks && __atomic_load_n(&registry->slots[rank].process, __ATOMIC_ACQUIRE);
}

void dtc_mpi_unregister(void)
{
    if (registry) unlink(path);
}
