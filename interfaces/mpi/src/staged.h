/*
 * Messages whose bytes go through staging memory: packed by dtc and sent as MPI_PACKED, or received as bytes and unpacked by dtc.
 * MPI_PACKED matches any type signature, at either side (MPI 4.1, 5.2), and an MPI sends the bytes of a datatype in the order of its
 * type map, so the message is the same as without this library: same communicator, tag, order and bytes. The other process need not
 * be interposed. A status counts bytes, so MPI_Get_count of the program's datatype is right. (MPI 4.1, 3.2.5)
 *
 * A message is packed for sending only if its basic elements have one size. MPICH 4.0 on UCX cuts what a contiguous buffer sends
 * anywhere, and loses what it cuts inside an element when it unpacks: it reports that the message is truncated.
 */
#ifndef DTC_MPI_STAGED_H
#define DTC_MPI_STAGED_H

/* Elements whose bytes go through staging memory. */
struct staged {
    /* Null if nothing is staged. */
    struct plan *plan;
    void *memory, *packed;
    int64_t elements, bytes;
    /* What the MPI sends or receives at `packed`. */
    int64_t length;
    MPI_Datatype datatype;
#if DTC_MPI_OVERRUNS
    struct gapped *gapped;
#endif
};

/* Takes staging memory for a message; 0 if the MPI shall move it. */
static int stage(struct staged *staged, const void *memory, int64_t elements, MPI_Datatype datatype, int rank, MPI_Comm communicator,
                 int *unknown)
{
    staged->plan = NULL;
    if (!is_ready() || !memory || elements <= 0 || rank == MPI_PROC_NULL || communicator == MPI_COMM_NULL) return 0;
    struct plan *plan = plan_of(datatype, unknown);
    if (!plan || plan->piece > limits.piece || __builtin_mul_overflow(elements, plan->size, &staged->bytes)) return 0;
    if (staged->bytes < limits.bytes || staged->bytes > LARGEST_MESSAGE) return 0;
    staged->packed = dtc_mpi_staging_take(staged->bytes);
    if (!staged->packed) return 0;
    plan_retain(plan);
    *staged = (struct staged){.plan = plan, .memory = (void *)memory, .packed = staged->packed, .elements = elements,
                              .bytes = staged->bytes, .length = staged->bytes, .datatype = MPI_PACKED};
    return 1;
}

static void unstage(struct staged *staged)
{
    if (!staged->plan) return;
    dtc_mpi_staging_give(staged->packed, staged->bytes);
    plan_release(staged->plan);
    staged->plan = NULL;
}

/* Packs the elements; 0 if that fails. */
static int pack_staged(const struct staged *staged)
{
    if (dtc_pack(staged->plan->type, staged->memory, staged->elements, 0, staged->packed, staged->bytes, NULL, NULL) != DTC_OK) return 0;
    dtc_mpi_count(DTC_MPI_SENT, staged->bytes);
    return 1;
}

/* Takes staging memory for elements that are sent; 0 if the MPI shall send them. */
static int stage_sent(struct staged *staged, const void *memory, int64_t elements, MPI_Datatype datatype, int rank,
                      MPI_Comm communicator, int *unknown)
{
    if (!stage(staged, memory, elements, datatype, rank, communicator, unknown)) return 0;
    if (staged->plan->uniform) return 1;
    unstage(staged);
    return 0;
}

/* The same, and packs them. */
static int stage_packed(struct staged *staged, const void *memory, int64_t elements, MPI_Datatype datatype, int rank,
                        MPI_Comm communicator, int *unknown)
{
    if (!stage_sent(staged, memory, elements, datatype, rank, communicator, unknown)) return 0;
    if (pack_staged(staged)) return 1;
    unstage(staged);
    return 0;
}

/* Takes staging memory for elements that are received; 0 if the MPI shall receive them. The caller hands the datatype back with
   is_posted when the MPI has it. */
static int stage_received(struct staged *staged, const void *memory, int64_t elements, MPI_Datatype datatype, int rank,
                          MPI_Comm communicator, int *unknown)
{
    if (!stage(staged, memory, elements, datatype, rank, communicator, unknown)) return 0;
#if DTC_MPI_OVERRUNS
    staged->gapped = gapped_take(staged->bytes);
    if (!staged->gapped) {
        unstage(staged);
        return 0;
    }
    staged->length = 1;
    staged->datatype = staged->gapped->datatype;
#endif
    return 1;
}

static void is_posted(struct staged *staged)
{
    (void)staged;
#if DTC_MPI_OVERRUNS
    gapped_give(staged->gapped);
#endif
}

/* Unpacks what was received, which may be less than was expected. */
static int unpack_received(const struct staged *staged, const MPI_Status *status)
{
    int received = 0, cancelled = 0;
    PMPI_Test_cancelled(status, &cancelled);
    if (!cancelled) PMPI_Get_count(status, MPI_PACKED, &received);
    if (received <= 0) return MPI_SUCCESS;
    dtc_mpi_count(DTC_MPI_RECEIVED, received);
    unsigned char *last = (unsigned char *)staged->packed + staged->bytes - 1;
    if (GAP && received == staged->bytes) *last = last[GAP];
    if (dtc_unpack(staged->plan->type, staged->packed, received, staged->memory, staged->elements, 0, NULL, NULL) == DTC_OK)
        return MPI_SUCCESS;
    /* A GPU failed. The message is lost: the error handler decides. */
    PMPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_OTHER);
    return MPI_ERR_OTHER;
}

/* After a blocking call that received. */
static int end_received(struct staged *staged, const MPI_Status *status, int result)
{
    if (result == MPI_SUCCESS) result = unpack_received(staged, status);
    unstage(staged);
    return result;
}

/* After a call that the MPI has done. */
static inline int learn(int result, MPI_Datatype datatype, int unknown)
{
    if (__builtin_expect(unknown, 0) && result == MPI_SUCCESS) plan_make(datatype);
    return result;
}

#endif
