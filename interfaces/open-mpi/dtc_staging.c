/*
 * Whole messages of elements in memory of GPUs: a kernel packs one into staging memory of its GPU, which pml/ob1 sends as contiguous
 * bytes, from GPU to GPU where processes reach each other's memory. The receiving process does the same in the other order. On the
 * wire is what Open MPI sends for contiguous memory, so either side may do without. Compiled into libopen-pal from Open MPI 5 on.
 */
#include "opal_config.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "opal/constants.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_datatype.h"
#include "opal/mca/accelerator/accelerator.h"

#include "opal/datatype/dtc.h"
#include "opal/datatype/dtc_description.h"
#include "opal/datatype/dtc_staging.h"

/*
 * Fewest bytes of a message that is staged. Kernels write fewer into the fragments of the transport in host memory. Measured on two H200
 * with NVLink (bench/results/2026-11-28-open-mpi.md). DTC_OPEN_MPI_STAGED sets another number.
 */
enum { LEAST_STAGED = 65536 };

/*
 * Fewest bytes of a piece of staging memory. The receiving process opens whole allocations of CUDA, and CUDA maps those that are no
 * multiple of this in small pages. Longer pieces are powers of two.
 */
enum { LEAST_PIECE = 1 << 21 };

/*
 * Most packed bytes that are moved through a piece of pinned memory, if they are in memory of the host that is not registered: those
 * of a fragment of btl/smcuda where CUDA does not register it, or of btl/self. dtc_pack does the same in chunks for any length.
 */
enum { MOST_BOUNCED = 32768 };

/*
 * Most bytes of staging memory of a process, since it stays: a twentieth of the memory of an H100. An estimate. Messages that find
 * none go in fragments.
 */
static const int64_t MOST_STAGING = INT64_C(4) << 30;

/*
 * A piece of staging memory. It stays until the end, because other processes keep it open, and while it is taken it has what the
 * convertor was before.
 */
typedef struct staging {
    struct staging *next;
    dtc_memory *owner;
    void *memory;
    int64_t bytes;
    int32_t kind, device;
    int is_taken;
    size_t length, count;
    const opal_datatype_t *datatype;
    const dtc_type *type;
    unsigned char *elements;
} staging;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static staging *all;

/* Bytes of all pieces. */
static int64_t held;

/* How many pieces are taken, so that messages of the host look no further. */
static int taken;

/* How many messages were staged. */
static long staged_sends, staged_receives;

static size_t least_staged(void) {
    static size_t known;
    size_t answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (answer == 0) {
        const char *value = getenv("DTC_OPEN_MPI_STAGED");
        long long given = value == NULL ? 0 : atoll(value);
        answer = given > 0 ? (size_t)given : LEAST_STAGED;
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer;
}

/* A new piece, of the GPU or of pinned memory of the host; null if there is no memory for it. */
static staging *allocate(int32_t kind, int32_t device, int64_t bytes) {
    int64_t length = kind == DTC_MEMORY_PINNED ? MOST_BOUNCED : LEAST_PIECE;
    while (length < bytes) {
        length *= 2;
    }
    if (length > MOST_STAGING - held) {
        return NULL;
    }
    const dtc_engine *engine = dtc_opal_engine();
    staging *made = calloc(1, sizeof *made);
    if (engine == NULL || made == NULL ||
        dtc_memory_allocate(engine, kind, device, length, &made->memory, &made->owner) != DTC_OK) {
        free(made);
        return NULL;
    }
    made->kind = kind;
    made->device = device;
    made->bytes = length;
    held += length;
    return made;
}

/* The shortest free piece that holds the bytes, or a new one; null if there is no memory for it. */
static staging *take(int32_t kind, int32_t device, int64_t bytes) {
    staging *found = NULL;
    pthread_mutex_lock(&lock);
    for (staging *piece = all; piece != NULL; piece = piece->next) {
        if (!piece->is_taken && piece->kind == kind && piece->device == device && piece->bytes >= bytes &&
            (found == NULL || piece->bytes < found->bytes)) {
            found = piece;
        }
    }
    if (found == NULL && (found = allocate(kind, device, bytes)) != NULL) {
        found->next = all;
        all = found;
    }
    if (found != NULL) {
        found->is_taken = 1;
        __atomic_add_fetch(&taken, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void give(staging *piece) {
    pthread_mutex_lock(&lock);
    piece->is_taken = 0;
    __atomic_sub_fetch(&taken, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

/* The piece that a convertor has; null for one that was not staged. */
static staging *piece_of(const opal_convertor_t *convertor) {
    staging *piece = NULL;
    if (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) != 0 && convertor->flags & CONVERTOR_ACCELERATOR) {
        pthread_mutex_lock(&lock);
        for (piece = all; piece != NULL && !(piece->is_taken && piece->memory == convertor->pBaseBuf); piece = piece->next) {
        }
        pthread_mutex_unlock(&lock);
    }
    return piece;
}

/*
 * Where the packed bytes of a piece are. Where the elements are, dtc asks CUDA: they may be in several allocations, of several kinds, and
 * that of the first byte is known.
 */
static dtc_transfer transfer_of(const staging *piece) {
    int is_device = piece->kind == DTC_MEMORY_DEVICE;
    return (dtc_transfer){.size = sizeof(dtc_transfer), .packed = piece->kind, .packed_device = is_device ? piece->device : 0};
}

/* Prepares a convertor anew, for other memory of the same GPU: the driver need not be asked where that is. */
static void prepare(opal_convertor_t *convertor, const opal_datatype_t *datatype, size_t count, const void *elements) {
    convertor->flags |= CONVERTOR_SKIP_ACCELERATOR_INIT;
    if (convertor->flags & CONVERTOR_SEND) {
        opal_convertor_prepare_for_send(convertor, datatype, count, elements);
    } else {
        opal_convertor_prepare_for_recv(convertor, datatype, count, elements);
    }
}

/* Pinned memory for few packed bytes that are in other memory of the host; null if they are not, or if there is none. */
static staging *take_pinned(const opal_convertor_t *convertor, const dtc_transfer *transfer, int64_t bytes) {
    static int32_t last = -1;
    int32_t kind, device = __atomic_load_n(&last, __ATOMIC_RELAXED);
    if (transfer->packed != DTC_MEMORY_HOST || bytes > MOST_BOUNCED) {
        return NULL;
    }
    if (device < 0) {
        /* Any GPU reaches the memory, but has a context then: one that the process uses allocates it. */
        if (dtc_memory_kind(convertor->pBaseBuf + convertor->pDesc->true_lb, &kind, &device) != DTC_OK || kind != DTC_MEMORY_DEVICE) {
            return NULL;
        }
        __atomic_store_n(&last, device, __ATOMIC_RELAXED);
    }
    return take(DTC_MEMORY_PINNED, device, bytes);
}

int64_t dtc_opal_move_packed(const opal_convertor_t *convertor, const dtc_type *type, const struct iovec *packed) {
    int64_t count = (int64_t)convertor->count, offset = (int64_t)convertor->bConverted, length = (int64_t)packed->iov_len, done;
    int is_send = (convertor->flags & CONVERTOR_SEND) != 0, status;
    dtc_transfer transfer = {.size = sizeof transfer};
    if (dtc_memory_kind(packed->iov_base, &transfer.packed, &transfer.packed_device) != DTC_OK) {
        return -1;
    }
    transfer.packed_device = transfer.packed == DTC_MEMORY_DEVICE ? transfer.packed_device : 0;
    staging *piece = take_pinned(convertor, &transfer, length);
    void *bytes = piece != NULL ? piece->memory : packed->iov_base;
    if (piece != NULL) {
        transfer.packed = DTC_MEMORY_PINNED;
    }
    if (piece != NULL && !is_send) {
        memcpy(bytes, packed->iov_base, (size_t)length);
    }
    status = is_send ? dtc_pack(type, convertor->pBaseBuf, count, offset, bytes, length, &done, &transfer)
                     : dtc_unpack(type, convertor->pBaseBuf, count, offset, bytes, length, &done, &transfer);
    if (piece != NULL && is_send && status == DTC_OK) {
        memcpy(packed->iov_base, bytes, (size_t)done);
    }
    if (piece != NULL) {
        give(piece);
    }
    return status == DTC_OK ? done : -1;
}

void dtc_opal_stage(opal_convertor_t *convertor, const dtc_type *type, size_t bytes) {
    int is_send = (convertor->flags & CONVERTOR_SEND) != 0;
    int32_t kind, device;
    if (bytes < least_staged() || bytes > convertor->local_size ||
        dtc_memory_kind(convertor->pBaseBuf + convertor->pDesc->true_lb, &kind, &device) != DTC_OK || kind != DTC_MEMORY_DEVICE) {
        return;
    }
    staging *piece = take(DTC_MEMORY_DEVICE, device, (int64_t)bytes);
    if (piece == NULL) {
        return;
    }
    piece->length = bytes;
    piece->count = convertor->count;
    piece->datatype = convertor->pDesc;
    piece->type = type;
    piece->elements = convertor->pBaseBuf;
    dtc_transfer transfer = transfer_of(piece);
    if (is_send && dtc_pack(type, piece->elements, (int64_t)piece->count, 0, piece->memory, (int64_t)bytes, NULL, &transfer) != DTC_OK) {
        give(piece);
        return;
    }
    __atomic_add_fetch(is_send ? &staged_sends : &staged_receives, 1, __ATOMIC_RELAXED);
    prepare(convertor, &opal_datatype_uint1, bytes, piece->memory);
}

int dtc_opal_unstage(opal_convertor_t *convertor) {
    staging *piece = piece_of(convertor);
    int status = OPAL_SUCCESS;
    if (piece == NULL) {
        return status;
    }
    prepare(convertor, piece->datatype, piece->count, piece->elements);
    if (!(convertor->flags & CONVERTOR_SEND)) {
        dtc_transfer transfer = transfer_of(piece);
        if (dtc_unpack(piece->type, piece->elements, (int64_t)piece->count, 0, piece->memory, (int64_t)piece->length, NULL,
                       &transfer) != DTC_OK) {
            status = OPAL_ERROR;
        }
    }
    give(piece);
    return status;
}

int dtc_opal_move(void *destination, const void *source, size_t bytes) {
    int device;
    uint64_t flags;
    if (opal_accelerator.check_addr(destination, &device, &flags) <= 0 && opal_accelerator.check_addr(source, &device, &flags) <= 0) {
        return 0;
    }
    int status = opal_accelerator.mem_copy(MCA_ACCELERATOR_NO_DEVICE_ID, MCA_ACCELERATOR_NO_DEVICE_ID, destination, source, bytes,
                                           MCA_ACCELERATOR_TRANSFER_UNSPEC);
    return status == OPAL_SUCCESS ? 1 : -1;
}

void dtc_opal_free_staging(long *sends, long *receives) {
    *sends = __atomic_load_n(&staged_sends, __ATOMIC_RELAXED);
    *receives = __atomic_load_n(&staged_receives, __ATOMIC_RELAXED);
    while (all != NULL) {
        staging *piece = all;
        all = piece->next;
        dtc_memory_free(piece->owner);
        free(piece);
    }
    held = 0;
}
