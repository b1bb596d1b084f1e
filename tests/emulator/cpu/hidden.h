/* Memory of devices: that of the C library, or, with EMULATOR_HIDDEN, pages that are without access but while the driver works on them. An
 * MPI that knows nothing of CUDA, and an interposer that takes memory of a device for the host's, cannot touch them. Other processes may open
 * them, as long as this one lives. With EMULATOR_HIDDEN=shared, other processes may open them, and all code may touch them. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEVICE_MEMORY

/* Addresses of hidden memory. Its pages are made as they are used. */
enum { HIDDEN_BYTES = 16LL << 30, HIDDEN_PAGE = 4096 };

/* A piece of them, in order. */
struct piece {
    struct piece *next;
    size_t at, bytes;
    int taken;
};

static char *hidden;
static int hidden_file = -1;
/* What code other than the driver's may do with the pages. */
static int outside = PROT_NONE;
static struct piece *pieces;
/* The end of what was ever taken, and how many calls are at work. */
static size_t hidden_end;
static int at_work;

static int is_hidden(void)
{
    const char *asked = getenv("EMULATOR_HIDDEN");
    if (hidden || !asked || !*asked) return hidden != NULL;
    hidden_file = memfd_create("device memory", MFD_CLOEXEC);
    if (hidden_file < 0 || ftruncate(hidden_file, HIDDEN_BYTES)) return 0;
    if (!strcmp(asked, "shared")) outside = PROT_READ | PROT_WRITE;
    char *made = mmap(NULL, HIDDEN_BYTES, outside, MAP_SHARED | MAP_NORESERVE, hidden_file, 0);
    if (made == MAP_FAILED) return 0;
    pieces = calloc(1, sizeof *pieces);
    pieces->bytes = HIDDEN_BYTES;
    hidden = made;
    return 1;
}

static char *take_device_memory(size_t bytes)
{
    if (!is_hidden()) return aligned_alloc(256, bytes);
    struct piece *piece = pieces;
    while (piece && (piece->taken || piece->bytes < bytes)) piece = piece->next;
    if (!piece) return NULL;
    if (piece->bytes > bytes) {
        struct piece *rest = malloc(sizeof *rest);
        *rest = (struct piece){piece->next, piece->at + bytes, piece->bytes - bytes, 0};
        piece->next = rest;
        piece->bytes = bytes;
    }
    piece->taken = 1;
    size_t end = (piece->at + bytes + HIDDEN_PAGE - 1) / HIDDEN_PAGE * HIDDEN_PAGE;
    if (end > hidden_end) hidden_end = end;
    return hidden + piece->at;
}

static void give_device_memory(char *memory, size_t bytes)
{
    if (!hidden) {
        free(memory);
        return;
    }
    struct piece *before = NULL, *piece = pieces;
    while (piece->at != (size_t)(memory - hidden)) before = piece, piece = piece->next;
    piece->taken = 0 * (int)bytes;
    if (before && !before->taken) {
        before->next = piece->next;
        before->bytes += piece->bytes;
        free(piece);
        piece = before;
    }
    struct piece *next = piece->next;
    if (next && !next->taken) {
        piece->next = next->next;
        piece->bytes += next->bytes;
        free(next);
    }
}

/* What names a piece to other processes, and pieces of these that are open here. */
struct shared_name { int process, file; size_t at, bytes; char rest[40]; };
static struct opened { struct opened *next; char *memory; size_t bytes; uintptr_t context; } *all_opened;

static int name_device_memory(struct shared_name *name, const char *memory)
{
    const struct piece *piece = hidden ? pieces : NULL;
    while (piece && (!piece->taken || memory < hidden + piece->at || memory >= hidden + piece->at + piece->bytes)) piece = piece->next;
    if (piece) *name = (struct shared_name){(int)getpid(), hidden_file, piece->at, piece->bytes, ""};
    return piece != NULL;
}

/* A process cannot open its own. */
static char *open_device_memory(const struct shared_name *name, uintptr_t context)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", name->process, name->file);
    int file = name->process && name->process != (int)getpid() ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return NULL;
    struct opened *opened = malloc(sizeof *opened);
    size_t before = name->at % HIDDEN_PAGE, bytes = before + name->bytes;
    char *made = mmap(NULL, bytes, outside, MAP_SHARED, file, (off_t)(name->at - before));
    close(file);
    if (made == MAP_FAILED) return NULL;
    *opened = (struct opened){all_opened, made, bytes, context};
    all_opened = opened;
    return made + before;
}

static int close_device_memory(const char *memory)
{
    struct opened **at = &all_opened;
    while (*at && (memory < (*at)->memory || memory >= (*at)->memory + (*at)->bytes)) at = &(*at)->next;
    if (!*at) return 0;
    struct opened *found = *at;
    *at = found->next;
    munmap(found->memory, found->bytes);
    free(found);
    return 1;
}

/* Calls take turns, and some call each other. */
static void use_device_memory(int begins)
{
    int changes = begins ? at_work++ == 0 : --at_work == 0;
    if (!changes || outside != PROT_NONE) return;
    int access = begins ? PROT_READ | PROT_WRITE : PROT_NONE;
    if (hidden && hidden_end) mprotect(hidden, hidden_end, access);
    for (const struct opened *opened = all_opened; opened; opened = opened->next) mprotect(opened->memory, opened->bytes, access);
}

/* Memory of another process is reached by kernels of the GPU that has opened it alone. */
static void leave_to_kernel(uintptr_t context, int begins)
{
    int others = begins ? PROT_NONE : PROT_READ | PROT_WRITE;
    for (const struct opened *opened = all_opened; opened; opened = opened->next)
        if (opened->context != context) mprotect(opened->memory, opened->bytes, others);
}
