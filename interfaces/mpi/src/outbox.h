/*
 * Long messages that receivers read from the GPU of the sender (rendezvous.h). Each process that takes part has an outbox in the memory of the
 * registry, which the processes of a job on one machine share: what it has sent and others have yet to read.
 */
#ifndef DTC_MPI_OUTBOX_H
#define DTC_MPI_OUTBOX_H

#include <dtc.h>
#include <stddef.h>

/* Messages in an outbox, at most. */
enum { DTC_MPI_OUTGOING = 64 };

/* Bytes of an announcement of the message in place 0, and how many more each further place has: so a probe tells them apart. They are multiples of
   the size of any basic element, because MPICH fails where a message ends inside one. */
enum { DTC_MPI_ANNOUNCEMENT = 2016, DTC_MPI_STEP = 32 };

/* Whether a message of `bytes` bytes may be an announcement. */
static inline int dtc_mpi_may_announce(int64_t bytes)
{
    int64_t more = bytes - DTC_MPI_ANNOUNCEMENT;
    return more >= 0 && more % DTC_MPI_STEP == 0 && more / DTC_MPI_STEP < DTC_MPI_OUTGOING;
}

/* What the MPI sends in place of a message. Ranks are those of MPI_COMM_WORLD. */
struct dtc_mpi_announcement {
    /* Of the sender's outbox: tells it from what a program sends. */
    unsigned char mark[16];
    int32_t from, to, place;
    /* Counts the messages of the sender, from 1. */
    int64_t number;
    /* Bytes of the message. */
    int64_t bytes;
    /* Where it lies, as landing.h knows it. */
    int64_t process, landing;
    unsigned char name[DTC_EXPORT_BYTES];
};

/* Whether this process takes part. */
extern int dtc_mpi_outbox_is_open;

/* Bytes of shared memory that outboxes of a job of `size` processes take; 0 if that is too much. */
size_t dtc_mpi_outbox_bytes(int size);

/* Lets this process take part, with that memory. */
void dtc_mpi_outbox_open(void *shared, int rank, int size);

/* At the end: waits until all messages are read, or their receivers are at their end, and calls `progress` meanwhile. */
void dtc_mpi_outbox_close(void (*progress)(void));

/* A message of this process. */
struct dtc_mpi_outgoing {
    /* Memory that it is packed into. */
    struct dtc_mpi_landing *landing;
    int64_t number;
    /* Whether the MPI may still read the announcement. */
    char announced;
    /* What the MPI sends, of `length` bytes. */
    int length;
    unsigned char announcement[DTC_MPI_ANNOUNCEMENT + DTC_MPI_STEP * DTC_MPI_OUTGOING];
};

/* Takes a place for a message of `bytes` bytes from GPU `device` to another process. Null if it shall go through the MPI: the other takes no part,
   or is not known to open memory of this GPU, or has left too many unread, or there is no memory. */
struct dtc_mpi_outgoing *dtc_mpi_outbox_take(int to, int tag, int32_t device, int64_t bytes);

/* After the MPI has sent the announcement; or before, if it shall not be sent. */
void dtc_mpi_outbox_sent(struct dtc_mpi_outgoing *outgoing);
void dtc_mpi_outbox_withdraw(struct dtc_mpi_outgoing *outgoing);

/* Whether these are the bytes of an announcement to this process that it has not read yet. */
int dtc_mpi_outbox_knows(const struct dtc_mpi_announcement *announcement);

/* The GPU of this process that opens memory of the sender. */
int32_t dtc_mpi_outbox_device(const struct dtc_mpi_announcement *announcement);

/* After the message was read. */
void dtc_mpi_outbox_read(const struct dtc_mpi_announcement *announcement);

/* Bytes of the message from rank `from` that an announcement of `length` bytes with this tag stands for; -1 if it is none. */
int64_t dtc_mpi_outbox_bytes_of(int from, int tag, int64_t length);

/* Whether processes ask if this one opens their memory; and tells those whether GPU `device` does. */
int dtc_mpi_outbox_is_asked(void);
void dtc_mpi_outbox_answer(int32_t device);

#endif
