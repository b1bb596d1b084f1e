/*
 * Messages whose bytes go through staging memory: packed by dtc and sent as MPI_PACKED, or received as bytes and unpacked by dtc.
 * MPI_PACKED matches any type signature, at either side (MPI 4.1, 5.2), and an MPI sends the bytes of a datatype in the order of its
 * type map, so the message is the same as without this library: same communicator, tag, order and bytes. The other process need not
 * be interposed. A status counts bytes, so MPI_Get_count of the program's datatype is right. (MPI 4.1, 3.2.5)
 *
 * A message is packed for sending only if its basic elements have one size. MPICH 4.0 on UCX cuts what a contiguous buffer sends
 * anywhere, and loses what it cuts inside an element when it unpacks: it reports that the message is truncated.
 *
 * Elements on a GPU are packed into pinned memory of the host, or, for an MPI that is CUDA-aware and more than a few bytes, into memory of that GPU
 * (memory.h).
 */
#ifndef DTC_MPI_STAGED_H
#define DTC_MPI_STAGED_H

/* Elements whose bytes go through staging memory. */
struct staged {
    /* Null if nothing is staged. */
    struct plan *plan;
    void *memory;
    int64_t elements, bytes;
    dtc_transfer transfer;
    /* Staging memory; null if the receiver reads what is sent from `outgoing`, or if the MPI receives into the elements (rendezvous.h). */
    struct dtc_mpi_block *block;
    struct dtc_mpi_outgoing *outgoing;
    /* Where the elements are packed. */
    void *packed;
    /* What the MPI sends or receives. */
    void *given;
    int64_t length;
    MPI_Datatype datatype;
    /* Whether staging memory is received over what the elements are, and is unpacked whole. */
    char filled;
    /* Of what is received as it lies: the elements in staging memory, if dtc can pack them. */
    struct moved lying;
    /* Whether the MPI alone can unpack what is received, and a duplicate of the datatype for that: the program may free its own before the message
       ends. */
    char by_mpi;
    MPI_Datatype duplicate;
    /* Whether the status of the request does not tell how many bytes have come. */
    char untold;
    /* Whose error handler is told if a message is longer than the elements. */
    MPI_Comm communicator;
    /* Bytes of the message that was read from the sender; 0 if none was. */
    int64_t announced;
    /* Whether the last byte is received one place further on. */
    char gap;
    /* Whether the MPI must not be given the elements. */
    char bound;
    /* The error of a message that could not be staged, and that the MPI must not be given; the error handler was called. */
    int refused;
#if DTC_MPI_OVERRUNS
    struct gapped *gapped;
#endif
};

static void unstage(struct staged *staged)
{
    if (!staged->plan) return;
    if (staged->block) dtc_mpi_staging_give(staged->block);
    if (staged->outgoing) dtc_mpi_outbox_sent(staged->outgoing);
    if (staged->by_mpi) PMPI_Type_free(&staged->duplicate);
    if (staged->lying.plan) plan_release(staged->lying.plan);
    plan_release(staged->plan);
    staged->plan = NULL;
    staged->block = NULL;
    staged->outgoing = NULL;
    staged->lying.plan = NULL;
    staged->filled = staged->gap = staged->by_mpi = 0;
}

/* The same, of what the MPI was not given. */
static void unstage_unsent(struct staged *staged)
{
    if (staged->plan && staged->outgoing) dtc_mpi_outbox_withdraw(staged->outgoing);
    unstage(staged);
}

/* After a failure that came before the MPI was given the message. */
static int refuse(struct staged *staged, int code)
{
    unstage_unsent(staged);
    if (staged->bound && staged->refused == MPI_SUCCESS) staged->refused = fail(code);
    return 0;
}

static void stage_moved(struct staged *staged, const struct moved *moved)
{
    plan_retain(moved->plan);
    staged->plan = moved->plan;
    staged->memory = moved->memory;
    staged->elements = moved->elements;
    staged->bytes = moved->bytes;
}

/* Packs the elements, or unpacks what there is of their bytes; 0 if that fails. */
static int move_staged(const struct staged *staged, enum dtc_mpi_direction direction, int64_t bytes)
{
    return dtc_mpi_move(&(struct dtc_mpi_move){
        .direction = direction,
        .type = staged->plan->type,
        .memory = staged->memory,
        .elements = staged->elements,
        .packed = staged->packed,
        .bytes = bytes,
        .transfer = &staged->transfer,
    });
}

/* Packs the elements; 0 if that fails. */
static int pack_staged(const struct staged *staged)
{
    if (!move_staged(staged, DTC_MPI_PACKS, staged->bytes)) return 0;
    if (GAP && staged->gap) {
        unsigned char *last = (unsigned char *)staged->packed + staged->bytes - 1;
        last[GAP] = *last;
    }
    return 1;
}

#endif
