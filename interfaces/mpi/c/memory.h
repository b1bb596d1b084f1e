/*
 * Where the elements of a call lie, and what the MPI may be given of them.
 *
 * An MPI that knows nothing of CUDA reads and writes all memory with the processor: it is given memory of the host alone. One that is
 * CUDA-aware takes contiguous elements on a GPU itself. The library asks libdtc for the kind of memory, which asks no driver while the
 * process does not use CUDA.
 */
#ifndef DTC_MPI_MEMORY_H
#define DTC_MPI_MEMORY_H

/* Whether the MPI takes memory of GPUs. */
static int takes_devices;

/* From where that is known, for the report. */
static const char *awareness_source = "the MPI has no call that tells whether it is CUDA-aware";

/* Asks the MPI whether it is CUDA-aware, unless DTC_MPI_GPU says what it is to be given. The functions are extensions of Open MPI and
   MPICH. */
static void find_awareness(void)
{
    enum { CUDA = 0 };
    int supported = 0;
    int (*query)(void) = (int (*)(void))dtc_mpi_find_function("MPIX_Query_cuda_support");
    int (*query_gpu)(int, int *) = (int (*)(int, int *))dtc_mpi_find_function("MPIX_GPU_query_support");
    if (query) takes_devices = query() == 1, awareness_source = "MPIX_Query_cuda_support";
    else if (query_gpu) takes_devices = query_gpu(CUDA, &supported) == MPI_SUCCESS && supported, awareness_source = "MPIX_GPU_query_support";
    if (dtc_mpi_is_set("DTC_MPI_GPU", "host")) takes_devices = 0, awareness_source = "DTC_MPI_GPU=host";
    if (dtc_mpi_is_set("DTC_MPI_GPU", "device")) takes_devices = 1, awareness_source = "DTC_MPI_GPU=device";
}

/* DTC_MEMORY_..., and the GPU: -1 while the process does not use CUDA. */
struct place {
    int32_t kind, device;
};

/* Whether elements at absolute addresses may lie on GPUs, while others of them lie on the host: dtc looks at all of them. */
static inline int may_be_several(const void *memory, const struct plan *plan, struct place place)
{
    return !memory && place.device >= 0 && is_derived(plan);
}

#if defined(__x86_64__)
/* Cycles of the time stamp counter for which the answer holds that the process does not use CUDA: 7 to 20 us. From there to the first memory of a GPU,
   the driver has to be loaded and to begin, which takes it milliseconds. The loader, who is asked otherwise, takes 20 ns. */
enum { ANSWER_HOLDS = 1 << 15 };

/* When this thread was told so. */
static __thread uint64_t without_cuda_at;
#endif

static inline struct place place_of(const void *address)
{
    struct place place;
#if defined(__x86_64__)
    uint64_t now = __builtin_ia32_rdtsc();
    if (now - without_cuda_at < ANSWER_HOLDS) return (struct place){DTC_MEMORY_HOST, -1};
#endif
    if (dtc_memory_kind(address, &place.kind, &place.device) != DTC_OK) place = (struct place){DTC_MEMORY_HOST, 0};
#if defined(__x86_64__)
    if (place.device < 0) without_cuda_at = now;
#endif
    return place;
}

/* How elements lie: packed bytes, and from the lowest byte to behind the highest. */
struct span {
    int64_t bytes, low, length;
};

/* Asks the MPI; 0 if the numbers do not fit. */
static int span_of(struct span *span, int64_t elements, MPI_Datatype datatype)
{
    MPI_Count size = 0, lb = 0, extent = 0, true_lb = 0, true_extent = 0;
    int64_t reach;
    if (PMPI_Type_size_x(datatype, &size) != MPI_SUCCESS || PMPI_Type_get_extent_x(datatype, &lb, &extent) != MPI_SUCCESS) return 0;
    if (PMPI_Type_get_true_extent_x(datatype, &true_lb, &true_extent) != MPI_SUCCESS || size < 0) return 0;
    if (__builtin_mul_overflow(elements, size, &span->bytes) || __builtin_mul_overflow(elements - 1, extent, &reach)) return 0;
    span->low = true_lb + (reach < 0 ? reach : 0);
    return !__builtin_add_overflow(true_extent, reach < 0 ? -reach : reach, &span->length);
}

/* Whether elements lie in one piece without gaps. */
static int is_contiguous(const struct plan *plan, const struct span *span)
{
    return (!plan || plan->whole) && span->length == span->bytes;
}

/* Whether dtc can pack them. */
static int is_decoded(const struct plan *plan, const struct span *span)
{
    return is_contiguous(plan, span) || (plan && plan->type);
}

/* How elements on a GPU go through staging memory. */
enum form {
    /* The MPI moves them, where they are. */
    PASSED,
    /* Packed, as bytes. */
    PACKED,
    /* All bytes from the lowest to the highest, as elements of the program's datatype. */
    AS_THEY_LIE,
};

enum direction { SENDS = 1, RECEIVES = 2 };

/*
 * The form of elements on a GPU. Packed bytes are not sent of elements of differing sizes where staged.h says so, nor of more than an
 * int counts, nor of datatypes that dtc cannot decode; contiguous elements are packed already.
 */
static enum form form_of(const struct plan *plan, const struct span *span, int direction)
{
    int contiguous = is_contiguous(plan, span);
    int sent = !(direction & SENDS) || DTC_MPI_OF_ABI(0, 1, 0) || (!contiguous && plan && plan->uniform);
    int packed = is_decoded(plan, span) && sent && span->bytes <= INT32_MAX;
    if (takes_devices) return packed && !contiguous ? PACKED : PASSED;
    return packed && !(contiguous && direction & SENDS) ? PACKED : AS_THEY_LIE;
}

/* What dtc moves between elements and staging memory: elements of `plan` at `memory`. */
struct moved {
    struct plan *plan;
    unsigned char *memory;
    int64_t elements, bytes;
};

static struct moved moved_of(enum form form, struct plan *plan, const struct span *span, void *memory, int64_t elements)
{
    if (form == PACKED && !is_contiguous(plan, span)) return (struct moved){plan, (unsigned char *)memory, elements, span->bytes};
    /* Of absolute addresses, `memory` may be null. */
    unsigned char *first = (unsigned char *)((uintptr_t)memory + (uintptr_t)span->low);
    return (struct moved){byte_plan, first, span->length, span->length};
}

/* Where both ends of a call of dtc lie. The elements of absolute addresses may lie in several places. */
static dtc_transfer transfer_of(const void *memory, struct place place, const struct dtc_mpi_block *block)
{
    dtc_transfer transfer = DTC_TRANSFER_INIT;
    if (memory) transfer.memory = place.kind, transfer.memory_device = place.kind == DTC_MEMORY_DEVICE ? place.device : 0;
    transfer.packed = block->kind;
    transfer.packed_device = block->kind == DTC_MEMORY_DEVICE ? block->device : 0;
    return transfer;
}

/* Staging memory for elements of a GPU: there, or pinned memory of the host, or any if no more can be pinned, or if `device` is -1. */
static struct dtc_mpi_block *take_for_device(int32_t device, int64_t bytes)
{
    if (device < 0) return dtc_mpi_staging_take(DTC_MPI_HOST, 0, bytes);
    struct dtc_mpi_block *block = dtc_mpi_staging_take(takes_devices ? DTC_MPI_DEVICE : DTC_MPI_PINNED, device, bytes);
    return block || takes_devices ? block : dtc_mpi_staging_take(DTC_MPI_HOST, 0, bytes);
}

/* Most packed bytes of a message that a CUDA-aware MPI is given in pinned memory. It would bring them to the host itself, by a copy that takes as
   long as the kernel that packs, and back. */
enum { MOST_PINNED = 16 << 10 };

/* Whether a message of any length goes through pinned memory: Open MPI 5.0 moves 0.7 GB/s between two places of a GPU in one process. */
static int is_slow_on_device(int rank, MPI_Comm communicator)
{
    int own;
    return DTC_MPI_OF_ABI(0, 1, 0) && PMPI_Comm_rank(communicator, &own) == MPI_SUCCESS && rank == own;
}

/* The same for a message to a process, or from it. */
static struct dtc_mpi_block *take_for_message(int32_t device, int64_t bytes, int rank, MPI_Comm communicator)
{
    int prefers_pinned = takes_devices && device >= 0 && (bytes <= MOST_PINNED || is_slow_on_device(rank, communicator));
    struct dtc_mpi_block *pinned = prefers_pinned ? dtc_mpi_staging_take(DTC_MPI_PINNED, device, bytes) : NULL;
    return pinned ? pinned : take_for_device(device, bytes);
}

/* An error of this library: a GPU failed, or there is no memory. The error handler decides. */
static int fail(int code)
{
    PMPI_Comm_call_errhandler(MPI_COMM_SELF, code);
    return code;
}

#endif
