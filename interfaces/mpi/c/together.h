/*
 * Messages of one call whose elements lie on one GPU: they are packed, or unpacked, by one launch. A launch that is waited for takes about
 * 10 us, and 275 us where processes share a GPU.
 */
#ifndef DTC_MPI_TOGETHER_H
#define DTC_MPI_TOGETHER_H

/* Most bytes of a message that is moved with others: a longer one has a path of its own. */
enum { MOST_TOGETHER = 4 << 20 };

/* What one launch moves. */
struct together {
    dtc_batch_call *calls;
    struct operation **operations;
    int length;
    int32_t device, packed;
};

/* 0 if there is no memory. */
static int together_begin(struct together *together, int most)
{
    together->calls = (dtc_batch_call *)malloc((size_t)most * sizeof *together->calls);
    together->operations = (struct operation **)malloc((size_t)most * sizeof *together->operations);
    return together->calls && together->operations;
}

/* Whether the GPU of the others reaches both ends of a message. */
static int belongs(const struct together *together, const struct staged *staged)
{
    if (!staged->plan || staged->transfer.memory != DTC_MEMORY_DEVICE || staged->bytes > MOST_TOGETHER) return 0;
    int32_t device = staged->transfer.memory_device;
    int32_t packed = staged->transfer.packed;
    int reached = packed == DTC_MEMORY_PINNED || (packed == DTC_MEMORY_DEVICE && staged->transfer.packed_device == device);
    return reached && (together->device < 0 || (together->device == device && together->packed == packed));
}

static void together_add(struct together *together, struct operation *operation, const struct staged *staged, int64_t bytes, int direction)
{
    together->device = staged->transfer.memory_device;
    together->packed = staged->transfer.packed;
    together->operations[together->length] = operation;
    together->calls[together->length++] = (dtc_batch_call){
        .type = staged->plan->type,
        .memory = staged->memory,
        .packed = staged->packed,
        .count = staged->elements,
        .max = bytes,
        .direction = direction,
    };
}

/* Moves them; 0 if there are fewer than two, or if that fails. */
static int together_run(const struct together *together)
{
    return together->length > 1 && dtc_mpi_launch(together->device, together->calls, together->length, together->packed);
}

static void together_end(struct together *together)
{
    free(together->calls);
    free(together->operations);
}

/* What has been received when a call has ended several requests: those of `indices`, or all if that is null. Messages that are not
   unpacked here are unpacked one by one. */
static void unpack_together(struct operation *const *operations, int length, const int *indices, const MPI_Status *statuses, int result)
{
    struct together together = {.device = -1};
    int begun = 0;
    for (int at = 0; at < length; at++) {
        struct operation *operation = operations[indices ? indices[at] : at];
        int ended = result == MPI_SUCCESS || (result == MPI_ERR_IN_STATUS && statuses[at].MPI_ERROR == MPI_SUCCESS);
        if (!ended || !operation || !belongs(&together, &operation->in)) continue;
        if (!begun && !together_begin(&together, length)) break;
        begun = 1;
        if (!claim(operation)) continue;
        int64_t received = bytes_received(&operation->in, &statuses[at]);
        if (received > 0) together_add(&together, operation, &operation->in, received, DTC_DIRECTION_UNPACK);
        else __atomic_store_n(&operation->unpacked, UNPACKED, __ATOMIC_RELEASE);
    }
    int done = together_run(&together);
    for (int at = 0; at < together.length; at++) {
        if (done) dtc_mpi_count(DTC_MPI_RECEIVED, together.calls[at].max);
        __atomic_store_n(&together.operations[at]->unpacked, done ? UNPACKED : NOT_UNPACKED, __ATOMIC_RELEASE);
    }
    together_end(&together);
}

/* Packs what persistent requests send; returns how many are packed, which are the first of `together`. */
static int pack_together(struct together *together, struct operation *const *operations, int length)
{
    *together = (struct together){.device = -1};
    int begun = 0;
    for (int at = 0; at < length; at++) {
        struct operation *operation = operations[at];
        if (!operation || !belongs(together, &operation->out)) continue;
        if (!begun && !together_begin(together, length)) break;
        begun = 1;
        together_add(together, operation, &operation->out, operation->out.bytes, DTC_DIRECTION_PACK);
    }
    int packed = together_run(together) ? together->length : 0;
    for (int at = 0; at < packed; at++) dtc_mpi_count(DTC_MPI_SENT, together->calls[at].max);
    return packed;
}

#endif
