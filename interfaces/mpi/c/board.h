/*
 * What the processes of a communicator tell each other about an exchange, in memory that they share: a message of the MPI takes some
 * microseconds, a word that another process waits for a fraction of one.
 *
 * Exchanges have numbers, from 1 on, which are the same in all processes. A process begins an exchange when all others have voted in the one before.
 * They have read its offer by then, so it may write over that. Some may still wait for votes, so those of two exchanges are kept.
 */
#ifndef DTC_MPI_BOARD_H
#define DTC_MPI_BOARD_H

#include <dtc.h>

/* Bytes of the name of a board. */
enum { DTC_MPI_BOARD_NAME = 64 };

/* Memory that processes share, as one of them sees it. */
struct dtc_mpi_board;

/* Makes a board for `size` processes, of which this one is `rank`; null if there is no memory. `name` receives what the others open it by. */
struct dtc_mpi_board *dtc_mpi_board_make(int rank, int size, char name[DTC_MPI_BOARD_NAME]);
struct dtc_mpi_board *dtc_mpi_board_open(int rank, int size, const char name[DTC_MPI_BOARD_NAME]);

/* Once all have opened it: a job that is killed leaves no file behind. */
void dtc_mpi_board_hide(const char name[DTC_MPI_BOARD_NAME]);
void dtc_mpi_board_drop(struct dtc_mpi_board *board);

/* Where a process wants the blocks of another one to lie: the first byte, how many they are, and how many they take. */
struct dtc_mpi_space {
    int64_t place, bytes, taken;
};

/* The memory of a process that others pack into; `number` is 0 if it receives nothing. */
struct dtc_mpi_target {
    int64_t process, number;
    unsigned char name[DTC_EXPORT_BYTES];
};

/* What this process wants of each other one. It is read after dtc_mpi_board_offer. */
struct dtc_mpi_space *dtc_mpi_board_spaces(const struct dtc_mpi_board *board);
struct dtc_mpi_target *dtc_mpi_board_target(const struct dtc_mpi_board *board);

/* What process `rank` wants of this one, and its memory, once it has offered it. */
const struct dtc_mpi_space *dtc_mpi_board_space_of(const struct dtc_mpi_board *board, int rank);
const struct dtc_mpi_target *dtc_mpi_board_target_of(const struct dtc_mpi_board *board, int rank);

/* The steps of an exchange. */
enum dtc_mpi_step {
    /* What this process wants can be read. */
    DTC_MPI_OFFERED,
    /* Whether it can take part. */
    DTC_MPI_VOTED,
    /* All that it packs for others lies there. */
    DTC_MPI_PACKED_FOR_OTHERS,
};

/* Says that this process has done a step of an exchange, and whether it went well. */
void dtc_mpi_board_tell(const struct dtc_mpi_board *board, enum dtc_mpi_step step, int64_t exchange, int well);

/* Waits until a process has; whether it went well. `progress` is called now and then, for messages that others wait for meanwhile. (MPI 4.1, 3.7.4) */
int dtc_mpi_board_wait(const struct dtc_mpi_board *board, int rank, enum dtc_mpi_step step, int64_t exchange, void (*progress)(void *),
                       void *of_progress);

#endif
