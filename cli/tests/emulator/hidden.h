/* Memory of devices: that of the C library, or, with EMULATOR_HIDDEN, pages that are without access but while the driver works on them. An
 * MPI that knows nothing of CUDA, and an interposer that takes memory of a device for the host's, cannot touch them. */
#include <stdlib.h>
#include <sys/mman.h>

#define DEVICE_MEMORY

/* Addresses of hidden memory. Its pages are made as they are used. */
enum { HIDDEN_BYTES = 1 << 30, HIDDEN_PAGE = 4096 };

/* A piece of them, in order. */
struct piece {
    struct piece *next;
    size_t at, bytes;
    int taken;
};

static char *hidden;
static struct piece *pieces;
/* The end of what was ever taken, and how many calls are at work. */
static size_t hidden_end;
static int at_work;

static int is_hidden(void)
{
    const char *asked = getenv("EMULATOR_HIDDEN");
    if (hidden || !asked || !*asked) return hidden != NULL;
    char *made = mmap(NULL, HIDDEN_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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

/* Calls take turns, and some call each other. */
static void use_device_memory(int begins)
{
    int changes = begins ? at_work++ == 0 : --at_work == 0;
    if (hidden && changes && hidden_end) mprotect(hidden, hidden_end, begins ? PROT_READ | PROT_WRITE : PROT_NONE);
}
