/* A file of shared memory without a name, with a desk for each process, which it alone writes to. */
#include "board.h"
#include "interposer.h"
#include "shared_file.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes of a cache line, or of two that the processor fetches together; and most processes, each of which has a space for each. */
enum { LINE = 128, MOST_PROCESSES = 1024 };

/* Questions between two calls of `progress`, and calls before this process leaves the processor to another one. */
enum { QUESTIONS = 32, PATIENCE = 16 };

/* What a process says of its last exchanges: twice their number, and one more if it went well. */
struct said {
    _Alignas(LINE) int64_t offered;
    struct dtc_mpi_target target;
    _Alignas(LINE) int64_t voted[2];
    _Alignas(LINE) int64_t packed;
};

struct desk {
    struct said said;
    struct dtc_mpi_space spaces[];
};

struct dtc_mpi_board {
    int rank, size;
    size_t length;
    char *memory;
};

static size_t desk_length(int size)
{
    return (sizeof(struct desk) + (size_t)size * sizeof(struct dtc_mpi_space) + LINE - 1) / LINE * LINE;
}

static struct desk *desk_of(const struct dtc_mpi_board *board, int rank)
{
    return (struct desk *)(void *)(board->memory + (size_t)rank * desk_length(board->size));
}

/* Maps a file, which is made as long as that if it is not. */
static struct dtc_mpi_board *board_of(int file, int rank, int size)
{
    size_t length = (size_t)size * desk_length(size);
    struct dtc_mpi_board *board = malloc(sizeof *board);
    void *memory = board && shared_file_extend(file, length) ? mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    close(file);
    if (memory == MAP_FAILED) {
        free(board);
        return NULL;
    }
    *board = (struct dtc_mpi_board){rank, size, length, memory};
    return board;
}

struct dtc_mpi_board *dtc_mpi_board_make(int rank, int size, char name[DTC_MPI_BOARD_NAME])
{
    /* Processes in other containers may have the same numbers, and see the same files. */
    enum { TRIES = 16 };
    static int64_t made;
    int file = -1;
    for (int at = 0; size <= MOST_PROCESSES && file < 0 && at < TRIES; at++) {
        snprintf(name, DTC_MPI_BOARD_NAME, "/dev/shm/dtc-mpi-board-%u-%d-%d", (unsigned)geteuid(), (int)getpid(),
                 (int)__atomic_add_fetch(&made, 1, __ATOMIC_RELAXED));
        file = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    struct dtc_mpi_board *board = file >= 0 ? board_of(file, rank, size) : NULL;
    if (file >= 0 && !board) unlink(name);
    if (!board) name[0] = '\0';
    return board;
}

struct dtc_mpi_board *dtc_mpi_board_open(int rank, int size, const char name[DTC_MPI_BOARD_NAME])
{
    int file = name[0] ? open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;
    return file >= 0 ? board_of(file, rank, size) : NULL;
}

void dtc_mpi_board_hide(const char name[DTC_MPI_BOARD_NAME])
{
    if (name[0]) unlink(name);
}

void dtc_mpi_board_drop(struct dtc_mpi_board *board)
{
    if (!board) return;
    munmap(board->memory, board->length);
    free(board);
}

struct dtc_mpi_space *dtc_mpi_board_spaces(const struct dtc_mpi_board *board)
{
    return desk_of(board, board->rank)->spaces;
}

struct dtc_mpi_target *dtc_mpi_board_target(const struct dtc_mpi_board *board)
{
    return &desk_of(board, board->rank)->said.target;
}

const struct dtc_mpi_space *dtc_mpi_board_space_of(const struct dtc_mpi_board *board, int rank)
{
    return &desk_of(board, rank)->spaces[board->rank];
}

const struct dtc_mpi_target *dtc_mpi_board_target_of(const struct dtc_mpi_board *board, int rank)
{
    return &desk_of(board, rank)->said.target;
}

static int64_t *word_of(const struct dtc_mpi_board *board, int rank, enum dtc_mpi_step step, int64_t exchange)
{
    struct said *said = &desk_of(board, rank)->said;
    if (step == DTC_MPI_OFFERED) return &said->offered;
    return step == DTC_MPI_VOTED ? &said->voted[exchange % 2] : &said->packed;
}

void dtc_mpi_board_tell(const struct dtc_mpi_board *board, enum dtc_mpi_step step, int64_t exchange, int well)
{
    __atomic_store_n(word_of(board, board->rank, step, exchange), 2 * exchange + !!well, __ATOMIC_RELEASE);
}

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

int dtc_mpi_board_wait(const struct dtc_mpi_board *board, int rank, enum dtc_mpi_step step, int64_t exchange, void (*progress)(void *),
                       void *of_progress)
{
    const int64_t *word = word_of(board, rank, step, exchange);
    for (int64_t asked = 1;; asked++) {
        int64_t said = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if (said / 2 == exchange) return said % 2;
        pause_briefly();
        if (asked % QUESTIONS) continue;
        progress(of_progress);
        if (asked >= QUESTIONS * PATIENCE) sched_yield();
    }
}
