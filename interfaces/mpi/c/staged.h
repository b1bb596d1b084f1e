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
    struct dtc_mpi_block *block;
    /* Where the elements are packed. */
    void *packed;
    /* What the MPI sends or receives. */
    void *given;
    int64_t length;
    MPI_Datatype datatype;
    /* Whether staging memory is received over what the elements are, and is unpacked whole. */
    char filled;
    /* Whether the status of the request does not tell how many bytes have come. */
    char untold;
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
    dtc_mpi_staging_give(staged->block);
    plan_release(staged->plan);
    staged->plan = NULL;
    staged->filled = staged->gap = 0;
}

/* After a failure that came before the MPI was given the message. */
static int refuse(struct staged *staged, int code)
{
    unstage(staged);
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
