/*
 * What the MPI receives packed bytes as.
 *
 * Open MPI 4.1 and 5.0 write a message that is too long past the end of a contiguous receive buffer, when they copy it from the
 * memory of the sender. They do not do so if the datatype has a gap: so the last byte is received one place further on. This is
 * faster, too (decision 23).
 */
#ifndef DTC_MPI_RECEIVE_TYPE_H
#define DTC_MPI_RECEIVE_TYPE_H

/* Bytes of staging memory that are not bytes of the message. */
enum { GAP = DTC_MPI_OVERRUNS };

#if DTC_MPI_OVERRUNS

/* A datatype of `bytes` bytes, with a gap in front of the last. */
struct gapped {
    int64_t bytes;
    MPI_Datatype datatype;
};

/* Those of late, by their length. A thread that uses one has taken it out. */
static struct gapped *gapped_kept[64];

static struct gapped **gapped_place(int64_t bytes)
{
    return &gapped_kept[(uint64_t)bytes * UINT64_C(0x9e3779b97f4a7c15) >> 58];
}

static void gapped_drop(struct gapped *gapped)
{
    if (!gapped) return;
    PMPI_Type_free(&gapped->datatype);
    free(gapped);
}

/* Takes the datatype that receives `bytes` bytes, at least two; null if there is none. */
static struct gapped *gapped_take(int64_t bytes)
{
    struct gapped *gapped = __atomic_exchange_n(gapped_place(bytes), NULL, __ATOMIC_ACQUIRE);
    if (gapped && gapped->bytes == bytes) return gapped;
    gapped_drop(gapped);
    gapped = (struct gapped *)malloc(sizeof *gapped);
    int lengths[] = {(int)bytes - 1, 1};
    MPI_Aint places[] = {0, bytes};
    if (!gapped) return NULL;
    gapped->bytes = bytes;
    if (PMPI_Type_create_hindexed(2, lengths, places, MPI_BYTE, &gapped->datatype) == MPI_SUCCESS) {
        if (PMPI_Type_commit(&gapped->datatype) == MPI_SUCCESS) return gapped;
        PMPI_Type_free(&gapped->datatype);
    }
    free(gapped);
    return NULL;
}

/* Gives it back after the call: a receive under way has its own hold on its datatype. */
static void gapped_give(struct gapped *gapped)
{
    gapped_drop(__atomic_exchange_n(gapped_place(gapped->bytes), gapped, __ATOMIC_ACQ_REL));
}

#endif

#endif
