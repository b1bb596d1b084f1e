/*
 * Open MPI's convertor on dtc: datatypes with gaps are packed and unpacked by libdtc. This file is compiled into Open MPI's
 * datatype library (opal/datatype), and `patch` puts the calls of dtc_convertor.h into its sources. docs/integrate/open-mpi.md is the guide.
 *
 * A dtc_type is made of the description that Open MPI has of a committed datatype, its elements and loops, when a convertor with it
 * is prepared and Open MPI has moved some of its bytes. The number of converted bytes (bConverted) is the whole state of a
 * convertor that dtc serves: its stack is not used, and a position costs an assignment. Until then the stack is that of the begin, and
 * opal_convertor_raw from there on is Open MPI's, which goes on from piece to piece.
 */
#include "opal_config.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opal/constants.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_convertor_internal.h"
/* After opal_convertor.h, which says whether there is a framework for memory of GPUs. */
#include "opal/datatype/dtc_convertor.h"
#include "opal/datatype/opal_datatype.h"
#include "opal/datatype/opal_datatype_internal.h"

#include "opal/datatype/dtc.h"
#include "opal/datatype/dtc_description.h"

/*
 * Version 5 has a framework for memory of GPUs, and dtc serves such memory. Version 4 has CUDA: there, memory of GPUs is left to Open
 * MPI, as unified memory is in both.
 */
#ifdef CONVERTOR_ACCELERATOR
#include "opal/mca/accelerator/accelerator.h"
#include "opal/mca/accelerator/base/base.h"
#include "opal/datatype/dtc_staging.h"
#define ON_DEVICE CONVERTOR_ACCELERATOR
#define LEFT CONVERTOR_ACCELERATOR_UNIFIED
#else
#if OPAL_CUDA_SUPPORT
#include "opal/datatype/opal_datatype_cuda.h"
#endif
#define ON_DEVICE 0
#define LEFT (CONVERTOR_CUDA | CONVERTOR_CUDA_UNIFIED)
#endif

/*
 * What dtc knows of a datatype is in opt_desc.length: Open MPI writes that field when it commits a datatype, and reads it
 * nowhere, so no struct changes its size, and only this library has to be compiled. The upper 16 bits, which are 0 in lengths and
 * addresses, say that the field is dtc's, and what the others are: how many bytes Open MPI has moved so far; or the dtc_type, null
 * if Open MPI's convertor serves the datatype for good. SHORT_PIECES, MIDDLE_PIECES, DECIDED or LONG_PIECES says how long its pieces are
 * on average.
 * With LONG_PIECES, Open MPI serves host memory, and the dtc_type, null until it is needed, is for memory of GPUs.
 */
#define MARK(kind) ((uintptr_t)(kind) << 48)
#define KIND(value) ((value) >> 48)
#define CONTENT(value) ((value) & (MARK(1) - 1))
enum { COUNTS = 0xd7c0, DECIDED = 0xd7c1, SHORT_PIECES = 0xd7c2, LONG_PIECES = 0xd7c3, MIDDLE_PIECES = 0xd7c4 };

/* Average bytes of a contiguous piece from which on Open MPI's convertor serves host memory: both only call memcpy. */
enum { LONG_PIECE = 4096 };

/*
 * Contiguous pieces of a datatype that Open MPI moves before a dtc_type is made, or values that it converts to external32. Making one
 * costs 2 us, and dtc gains 1 to 2 ns a piece (bench/results/2026-11-28-open-mpi-one-sided.md).
 */
enum { FIRST_PIECES = 2048 };

/*
 * Average bytes of a contiguous piece up to which copies from type to type are dtc's, and the packed bytes from which on. dtc_copy
 * takes 140 ns, and packs and unpacks in parts that stay in the cache; Open MPI copies each piece at once.
 */
enum { SHORT_PIECE = 32, LEAST_COPY = 768 };

/*
 * Average bytes of a contiguous piece up to which dtc moves what Open MPI computes in a reduction of a one-sided call. Open MPI calls a
 * function for each piece; longer ones are computed where they are as fast (bench/results/2026-11-28-open-mpi-one-sided.md).
 */
enum { MIDDLE_PIECE = 64 };

/*
 * Fewest bytes that dtc converts to external32, or from it. A call takes it 200 ns; Open MPI takes 1.5 to 3.5 ns for each value
 * (bench/results/2026-11-28-open-mpi-one-sided.md).
 */
enum { LEAST_EXTERNAL = 512 };

/*
 * Bytes of a fragment whose cache lines are requested for writing before dtc packs into it: its receiver has read that memory last, and
 * stores wait for line after line. Fragments of 2 KiB gain nothing, and requests of 32 KiB cost large messages 5 %
 * (bench/results/2026-11-28-open-mpi-one-sided.md).
 */
enum { LEAST_REQUESTED = 3072, MOST_REQUESTED = 8192, LINE = 64 };

/* Both sides are host memory: dtc asks no driver. */
static const dtc_transfer host = {.size = sizeof(dtc_transfer), .memory = DTC_MEMORY_HOST, .packed = DTC_MEMORY_HOST};

/* DTC_OPEN_MPI=off leaves every datatype to Open MPI; with "always" dtc serves a datatype from its first byte on. */
enum setting { UNKNOWN, OFF, ON, ALWAYS };

static enum setting setting(void) {
    static int known = UNKNOWN;
    int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (answer == UNKNOWN) {
        const char *value = getenv("DTC_OPEN_MPI");
        answer = value == NULL ? ON : strcmp(value, "off") == 0 ? OFF : strcmp(value, "always") == 0 ? ALWAYS : ON;
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return (enum setting)answer;
}

/* DTC_OPEN_MPI_REPORT=1 has a line printed for each datatype when it is decided who serves it, and one at the end. */
static int reports(void) {
    static int known = -1;
    int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (answer < 0) {
        const char *value = getenv("DTC_OPEN_MPI_REPORT");
        answer = value != NULL && strcmp(value, "1") == 0;
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer;
}

static void report(const opal_datatype_t *datatype, const dtc_opal_description *read, const char *server) {
    if (reports()) {
        fprintf(stderr, "dtc, process %d: a datatype of %zu bytes in %.0f pieces, %td to %td: %s\n", (int)getpid(), datatype->size,
                read->pieces, datatype->true_lb, datatype->true_ub, server);
    }
}

/*
 * What becomes known of a datatype: a committed type, unless it cannot be made, or Open MPI moves it as fast in host memory and no
 * device asks.
 */
static uintptr_t described(const opal_datatype_t *datatype, int for_device) {
    dtc_opal_description read;
    if (!dtc_opal_describe(datatype, for_device ? HUGE_VAL : LONG_PIECE, &read)) {
        return MARK(DECIDED);
    }
    int is_long = read.is_read && read.piece_bytes >= LONG_PIECE, is_left = is_long && !for_device;
    uintptr_t made = (uintptr_t)read.type;
    if (CONTENT(made) != made) {
        dtc_type_release(read.type);
        made = 0;
    }
    report(datatype, &read,
           made != 0      ? (is_long ? "dtc in memory of GPUs, Open MPI in host memory" : "dtc")
           : is_left      ? "Open MPI in host memory: its pieces are long"
           : read.is_read ? "Open MPI: dtc could not make the type"
                          : "Open MPI: its description is not that of its bytes");
    if (made == 0) {
        return MARK(is_left ? LONG_PIECES : DECIDED);
    }
    return MARK(is_long                            ? LONG_PIECES
                : read.piece_bytes <= SHORT_PIECE  ? SHORT_PIECES
                : read.piece_bytes <= MIDDLE_PIECE ? MIDDLE_PIECES
                                                   : DECIDED) |
           made;
}

static uintptr_t *place(const opal_datatype_t *datatype) {
    return (uintptr_t *)&((opal_datatype_t *)datatype)->opt_desc.length;
}

/* The type of a datatype that has one. */
static dtc_type *known_type(const opal_datatype_t *datatype) {
    return (dtc_type *)CONTENT(__atomic_load_n(place(datatype), __ATOMIC_ACQUIRE));
}

static int is_decided(uintptr_t known) {
    return KIND(known) >= DECIDED && KIND(known) <= MIDDLE_PIECES;
}

/* The type that serves host memory, null if Open MPI does. */
static dtc_type *host_type(uintptr_t known) { return KIND(known) == LONG_PIECES ? NULL : (dtc_type *)CONTENT(known); }

/* Whether Open MPI has moved enough of a datatype, in pieces of `piece` bytes, or of those that it has on average if that is 0. */
static int is_enough(const opal_datatype_t *datatype, size_t moved, size_t piece) {
    if (piece != 0) {
        return moved >= FIRST_PIECES * piece;
    }
    return moved >= FIRST_PIECES && (double)moved * dtc_opal_pieces(datatype) >= FIRST_PIECES * (double)datatype->size;
}

/* What is known of a datatype of which `bytes` of host memory are about to be moved. `piece` is that of `is_enough`. */
static uintptr_t known_now(const opal_datatype_t *datatype, size_t bytes, size_t piece) {
    uintptr_t found = __atomic_load_n(place(datatype), __ATOMIC_ACQUIRE);
    if (is_decided(found)) {
        return found;
    }
    size_t moved = bytes + (KIND(found) == COUNTS ? CONTENT(found) : 0);
    int decides = setting() == ALWAYS || is_enough(datatype, moved, piece);
    uintptr_t next = decides ? described(datatype, 0) : MARK(COUNTS) | moved;
    while (!__atomic_compare_exchange_n(place(datatype), &found, next, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        if (is_decided(found)) {
            /* Another thread was faster. */
            if (decides && CONTENT(next) != 0) {
                dtc_type_release((dtc_type *)CONTENT(next));
            }
            return found;
        }
    }
    return decides ? next : MARK(DECIDED);
}

/*
 * The type that serves memory of GPUs, null if it cannot be made. Open MPI copies each piece by itself, 8 us each, so there is no use
 * that does not pay.
 */
static dtc_type *device_type(const opal_datatype_t *datatype) {
    uintptr_t found = __atomic_load_n(place(datatype), __ATOMIC_ACQUIRE);
    while (!is_decided(found) || (KIND(found) == LONG_PIECES && CONTENT(found) == 0)) {
        uintptr_t next = described(datatype, 1);
        if (__atomic_compare_exchange_n(place(datatype), &found, next, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return (dtc_type *)CONTENT(next);
        }
        if (CONTENT(next) != 0) {
            dtc_type_release((dtc_type *)CONTENT(next));
        }
    }
    return (dtc_type *)CONTENT(found);
}

/* Whether bytes of an element are certainly in its type map twice: what is unpacked then depends on the order. */
static int overlaps(const opal_datatype_t *datatype) {
    return (ptrdiff_t)datatype->size > datatype->true_ub - datatype->true_lb;
}

/* The stack_pos of a convertor whose stack is not that of its position. Open MPI's has at least 1 until all is done, and may be printed. */
enum { NO_STACK = 0 };

static void advance(opal_convertor_t *convertor, size_t bytes) {
    convertor->stack_pos = NO_STACK;
    convertor->bConverted += bytes;
    if (convertor->bConverted == convertor->local_size) {
        convertor->flags |= CONVERTOR_COMPLETED;
    }
}

/* Whether this process may have memory of GPUs. */
static int may_have_devices(void) {
#ifdef CONVERTOR_ACCELERATOR
    return strcmp(opal_accelerator_base_selected_component.base_version.mca_component_name, "null") != 0;
#elif OPAL_CUDA_SUPPORT
    return 1;
#else
    return 0;
#endif
}

/*
 * Whether elements, or some of them, may be in memory of a GPU. Those at absolute addresses may be in memory of several kinds, and Open
 * MPI has looked at the first address alone.
 */
static int may_be_on_device(const opal_convertor_t *convertor) {
    return convertor->pBaseBuf == NULL && ON_DEVICE != 0 ? may_have_devices() : (convertor->flags & ON_DEVICE) != 0;
}

/* How often fragments were packed or unpacked, and elements copied, in memory of GPUs. */
static long device_calls;

/* Requests the cache lines of a fragment for writing. */
static void request(const struct iovec *fragment) {
    const char *begin = fragment->iov_base;
    size_t length = fragment->iov_len < MOST_REQUESTED ? fragment->iov_len : MOST_REQUESTED;
    for (size_t at = 0; length >= LEAST_REQUESTED && at < length; at += LINE) {
#ifdef __x86_64__
        /* Does nothing on processors without it: __builtin_prefetch is another instruction, unless the compiler is told of the processor. */
        __asm__ volatile("prefetchw %0" : : "m"(begin[at]));
#else
        __builtin_prefetch(begin + at, 1);
#endif
    }
}

/*
 * Packs or unpacks a buffer of packed bytes, from the position of a convertor on. Returns how many bytes, or -1. The buffer may be longer
 * than what is left: UCX gives one that has no end.
 */
static int64_t move(const opal_convertor_t *convertor, const dtc_type *type, const struct iovec *packed) {
    size_t left = convertor->local_size - convertor->bConverted;
    const struct iovec filled = {packed->iov_base, packed->iov_len < left ? packed->iov_len : left};
#ifdef CONVERTOR_ACCELERATOR
    if (may_be_on_device(convertor)) {
        __atomic_add_fetch(&device_calls, 1, __ATOMIC_RELAXED);
        return dtc_opal_move_packed(convertor, type, &filled);
    }
#endif
    int64_t count = (int64_t)convertor->count, offset = (int64_t)convertor->bConverted, length = (int64_t)filled.iov_len, done;
    int status;
    if (convertor->flags & CONVERTOR_SEND) {
        request(&filled);
        status = dtc_pack(type, convertor->pBaseBuf, count, offset, filled.iov_base, length, &done, &host);
    } else {
        status = dtc_unpack(type, convertor->pBaseBuf, count, offset, filled.iov_base, length, &done, &host);
    }
    return status == DTC_OK ? done : -1;
}

/* The address of the next piece instead of a copy, for a buffer that has none. */
static int next_piece(const opal_convertor_t *convertor, struct iovec *buffer, int64_t *done) {
    const dtc_type *type = known_type(convertor->pDesc);
    int64_t piece, skip;
    dtc_iovec found;
    if (dtc_iov_at(type, (int64_t)convertor->count, (int64_t)convertor->bConverted, &piece, &skip) != DTC_OK ||
        dtc_iov(type, convertor->pBaseBuf, (int64_t)convertor->count, piece, skip, &found, 1, NULL, done) != DTC_OK) {
        return 0;
    }
    if ((size_t)*done > buffer->iov_len) {
        *done = (int64_t)buffer->iov_len;
    }
    buffer->iov_base = found.base;
    return 1;
}

/* fAdvance of a convertor that packs. Fills the buffers, and returns 1 after the last byte, 0 before, or an error. */
static int32_t pack(opal_convertor_t *convertor, struct iovec *iov, uint32_t *buffers, size_t *max_data) {
    const dtc_type *type = known_type(convertor->pDesc);
    size_t before = convertor->bConverted;
    uint32_t used = 0;
    for (; used < *buffers && !(convertor->flags & CONVERTOR_COMPLETED); used++) {
        int64_t done;
        if (iov[used].iov_base == NULL) {
            if (!next_piece(convertor, &iov[used], &done)) {
                return OPAL_ERROR;
            }
        } else if ((done = move(convertor, type, &iov[used])) < 0) {
            return OPAL_ERROR;
        }
        iov[used].iov_len = (size_t)done;
        advance(convertor, (size_t)done);
    }
    *buffers = used;
    *max_data = convertor->bConverted - before;
    return !!(convertor->flags & CONVERTOR_COMPLETED);
}

/* fAdvance of a convertor that unpacks. */
static int32_t unpack(opal_convertor_t *convertor, struct iovec *iov, uint32_t *buffers, size_t *max_data) {
    const dtc_type *type = known_type(convertor->pDesc);
    size_t before = convertor->bConverted;
    uint32_t used = 0;
    for (; used < *buffers && !(convertor->flags & CONVERTOR_COMPLETED); used++) {
        int64_t done = move(convertor, type, &iov[used]);
        if (done < 0) {
            return OPAL_ERROR;
        }
        iov[used].iov_len = (size_t)done;
        advance(convertor, (size_t)done);
    }
    *buffers = used;
    *max_data = convertor->bConverted - before;
    return !!(convertor->flags & CONVERTOR_COMPLETED);
}

int dtc_opal_serves(const opal_convertor_t *convertor) {
    return convertor->fAdvance == pack || convertor->fAdvance == unpack;
}

/* The type that serves a convertor, null if Open MPI does. */
static dtc_type *serving_type(const opal_convertor_t *convertor) {
    /* Without gaps there is nothing to gain, and basic datatypes, which are such, may be constants. */
    if ((convertor->flags & (CONVERTOR_HOMOGENEOUS | CONVERTOR_WITH_CHECKSUM | LEFT | OPAL_DATATYPE_FLAG_NO_GAPS |
                             OPAL_DATATYPE_FLAG_COMMITTED)) != (CONVERTOR_HOMOGENEOUS | OPAL_DATATYPE_FLAG_COMMITTED) ||
        setting() == OFF) {
        return NULL;
    }
    if (!(convertor->flags & CONVERTOR_SEND) && overlaps(convertor->pDesc)) {
        return NULL;
    }
    return may_be_on_device(convertor) ? device_type(convertor->pDesc)
                                       : host_type(known_now(convertor->pDesc, convertor->local_size, 0));
}

void dtc_opal_prepare(opal_convertor_t *convertor) {
    if (serving_type(convertor) != NULL) {
        convertor->fAdvance = convertor->flags & CONVERTOR_SEND ? pack : unpack;
    }
}

int dtc_opal_serves_calls(void) { return setting() != OFF && !may_have_devices(); }

const dtc_type *dtc_opal_host_type(const opal_datatype_t *datatype, int unpacks) {
    uintptr_t known = __atomic_load_n(place(datatype), __ATOMIC_ACQUIRE);
    return is_decided(known) && !(unpacks && overlaps(datatype)) ? host_type(known) : NULL;
}

int dtc_opal_serves_elements(const opal_datatype_t *datatype, size_t count) {
    uint16_t wanted = datatype->flags & (OPAL_DATATYPE_FLAG_COMMITTED | OPAL_DATATYPE_FLAG_NO_GAPS);
    return wanted == OPAL_DATATYPE_FLAG_COMMITTED && setting() != OFF && CONTENT(known_now(datatype, datatype->size * count, 0)) != 0;
}

#ifdef CONVERTOR_ACCELERATOR
int dtc_opal_packs_on_device(const opal_convertor_t *convertor) {
    /* A convertor that has nothing to convert keeps the fAdvance of its last use. */
    return (convertor->flags & (ON_DEVICE | CONVERTOR_NO_OP)) == ON_DEVICE && dtc_opal_serves(convertor);
}

void dtc_opal_stage_message(opal_convertor_t *convertor, size_t bytes) {
    if (dtc_opal_packs_on_device(convertor)) {
        dtc_opal_stage(convertor, known_type(convertor->pDesc), bytes);
    }
}
#endif

int32_t dtc_opal_set_position(opal_convertor_t *convertor, size_t *position) {
    convertor->stack_pos = NO_STACK;
    convertor->bConverted = *position;
    return OPAL_SUCCESS;
}

int dtc_opal_serves_raw(const opal_convertor_t *convertor) {
    return dtc_opal_serves(convertor) && convertor->stack_pos == NO_STACK;
}

int32_t dtc_opal_raw(opal_convertor_t *convertor, struct iovec *iov, uint32_t *buffers, size_t *length) {
    const dtc_type *type = known_type(convertor->pDesc);
    int64_t piece, skip, pieces, bytes;
    _Static_assert(sizeof(struct iovec) == sizeof(dtc_iovec) && offsetof(struct iovec, iov_len) == offsetof(dtc_iovec, length),
                   "dtc_iovec is the struct iovec of POSIX");
    if (dtc_iov_at(type, (int64_t)convertor->count, (int64_t)convertor->bConverted, &piece, &skip) != DTC_OK ||
        dtc_iov(type, convertor->pBaseBuf, (int64_t)convertor->count, piece, skip, (dtc_iovec *)iov, *buffers, &pieces,
                &bytes) != DTC_OK) {
        return OPAL_ERROR;
    }
    *buffers = (uint32_t)pieces;
    *length = (size_t)bytes;
    advance(convertor, *length);
    return !!(convertor->flags & CONVERTOR_COMPLETED);
}

/* Where addresses are, as Open MPI sees it: in host memory, on a GPU at least one of them, or where Open MPI has to move the bytes. */
enum residence { IN_HOST_MEMORY, ON_A_DEVICE, LEFT_TO_OPEN_MPI };

static enum residence residence_of(char *destination, char *source) {
#ifdef CONVERTOR_ACCELERATOR
    int device;
    uint64_t to = 0, from = 0;
    int is_device = opal_accelerator.check_addr(destination, &device, &to) > 0;
    is_device |= opal_accelerator.check_addr(source, &device, &from) > 0;
    return (to | from) & MCA_ACCELERATOR_FLAGS_UNIFIED_MEMORY ? LEFT_TO_OPEN_MPI : is_device ? ON_A_DEVICE : IN_HOST_MEMORY;
#elif OPAL_CUDA_SUPPORT
    return opal_cuda_check_bufs(destination, source) ? LEFT_TO_OPEN_MPI : IN_HOST_MEMORY;
#else
    (void)destination;
    (void)source;
    return IN_HOST_MEMORY;
#endif
}

/* The type that copies elements in host memory, null if Open MPI does. */
static dtc_type *host_copy_type(const opal_datatype_t *datatype, size_t bytes) {
    uintptr_t known = setting() == ALWAYS || bytes >= LEAST_COPY ? known_now(datatype, bytes, 0) : 0;
    return setting() == ALWAYS || KIND(known) == SHORT_PIECES ? host_type(known) : NULL;
}

int dtc_opal_copy(const opal_datatype_t *datatype, int32_t count, char *destination, char *source) {
    ptrdiff_t extent = datatype->ub - datatype->lb, apart = destination < source ? source - destination : destination - source;
    uint16_t wanted = datatype->flags & (OPAL_DATATYPE_FLAG_COMMITTED | OPAL_DATATYPE_FLAG_CONTIGUOUS | OPAL_DATATYPE_FLAG_NO_GAPS);
    if (count < 1 || wanted != OPAL_DATATYPE_FLAG_COMMITTED || datatype->size == 0 || overlaps(datatype) || setting() == OFF) {
        return 0;
    }
    /* Extents may be negative. Copies to memory that overlaps are Open MPI's. */
    if (apart < datatype->true_ub - datatype->true_lb + (count - 1) * (extent < 0 ? -extent : extent)) {
        return 0;
    }
    size_t bytes = datatype->size * (size_t)count;
    enum residence where = residence_of(destination + datatype->true_lb, source + datatype->true_lb);
    const dtc_type *type = where == IN_HOST_MEMORY ? host_copy_type(datatype, bytes)
                           : where == ON_A_DEVICE  ? device_type(datatype)
                                                   : NULL;
    dtc_elements from = {type, source, count, 0}, to = {type, destination, count, 0};
    __atomic_add_fetch(&device_calls, where == ON_A_DEVICE, __ATOMIC_RELAXED);
    return type != NULL && dtc_copy(&from, &to, (int64_t)bytes, NULL, where == IN_HOST_MEMORY ? &host : NULL) == DTC_OK;
}

const dtc_type *dtc_opal_accumulating_type(const opal_datatype_t *datatype, size_t bytes) {
    if (!(datatype->flags & OPAL_DATATYPE_FLAG_COMMITTED) || overlaps(datatype) || setting() == OFF) {
        return NULL;
    }
    uintptr_t known = known_now(datatype, bytes, 0);
    return setting() == ALWAYS || KIND(known) == SHORT_PIECES || KIND(known) == MIDDLE_PIECES ? host_type(known) : NULL;
}

int dtc_opal_external(const opal_convertor_t *convertor, dtc_opal_external_elements *found) {
    const opal_datatype_t *datatype = convertor->pDesc;
    size_t bytes = convertor->local_size;
    int unit = dtc_opal_unit_of(datatype);
    if (setting() == OFF || unit < 0 || bytes < (setting() == ALWAYS ? 1 : LEAST_EXTERNAL) || may_be_on_device(convertor) ||
        (convertor->flags & (CONVERTOR_HOMOGENEOUS | CONVERTOR_WITH_CHECKSUM | LEFT)) || convertor->bConverted != 0 ||
        (!(convertor->flags & CONVERTOR_SEND) && overlaps(datatype))) {
        return 0;
    }
    *found = (dtc_opal_external_elements){NULL, (char *)convertor->pBaseBuf, (int64_t)convertor->count};
    if ((datatype->flags & OPAL_DATATYPE_FLAG_NO_GAPS) || ((datatype->flags & OPAL_DATATYPE_FLAG_CONTIGUOUS) && convertor->count == 1)) {
        found->type = dtc_opal_unit(unit);
        found->memory += datatype->true_lb;
        found->count = (int64_t)(bytes >> unit);
    } else if (is_decided(known_now(datatype, bytes, (size_t)1 << unit))) {
        /* Long pieces, too: Open MPI converts each value by itself. */
        found->type = device_type(datatype);
    }
    return found->type != NULL;
}

void dtc_opal_forget(opal_datatype_t *datatype) {
    uintptr_t found = __atomic_load_n(place(datatype), __ATOMIC_ACQUIRE);
    if (KIND(found) == COUNTS || is_decided(found)) {
        *place(datatype) = 0;
    }
    if (is_decided(found) && CONTENT(found) != 0) {
        dtc_type_release((dtc_type *)CONTENT(found));
    }
}

void dtc_opal_copied(opal_datatype_t *datatype) {
    *place(datatype) = datatype->opt_desc.used;
}

void dtc_opal_finalize(void) {
    if (!dtc_opal_is_open()) {
        return;
    }
#ifdef CONVERTOR_ACCELERATOR
    long sends, receives;
    dtc_opal_free_staging(&sends, &receives);
    if (reports()) {
        fprintf(stderr, "dtc, process %d: memory of GPUs: %ld fragments and copies, %ld staged sends, %ld staged receives\n", (int)getpid(),
                device_calls, sends, receives);
    }
#endif
    dtc_opal_close();
}
