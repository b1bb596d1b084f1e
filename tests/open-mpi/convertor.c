/*
 * dtc_convertor.c without Open MPI: descriptions of datatypes, as Open MPI would have them, are read from a file together with
 * the displacement of every packed byte, which the reference walker told. Each datatype goes through prepare, positions, packs
 * and unpacks in fragments, lists of pieces, and copies; some are first used by several threads at once.
 *
 *   convertor FILE
 *
 * Compiled with SKETCH_ACCELERATOR, the elements are in memory of a GPU, of the driver that DTC_CUDA_DRIVER names. It must be one that
 * the processor reaches, an emulated one. Then messages are staged, too.
 *
 * A datatype is a line "type COUNT SIZE TRUE_LB TRUE_UB LB UB ENTRIES", a line for each entry ("element SIZE BLOCKLEN COUNT
 * EXTENT DISPLACEMENT", "loop LOOPS ITEMS EXTENT", "end"), and a line "map" with the displacements of an element's bytes.
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/dtc_convertor.h"
#include "opal/datatype/dtc_description.h"
#ifdef SKETCH_ACCELERATOR
#include "opal/datatype/dtc_staging.h"
#endif

enum { GUARD = 64, POISON = 0xa5 };

/* Basic datatypes by their size, 1 to 16 bytes. */
static opal_datatype_t basic[17];
const opal_datatype_t *opal_datatype_basicDatatypes[OPAL_DATATYPE_MAX_PREDEFINED];

static long number;
static uint64_t state = 1;

static long draw(long from, long to) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return from + (long)((state >> 33) % (uint64_t)(to - from + 1));
}

static void fail(const char *form, ...) {
    va_list arguments;
    va_start(arguments, form);
    fprintf(stderr, "type %ld: ", number);
    vfprintf(stderr, form, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static void *memory_of(size_t bytes) {
    void *made = calloc(bytes + 1, 1);
    if (made == NULL) {
        fail("expected %zu bytes of memory, found none", bytes);
    }
    return made;
}

#ifdef SKETCH_ACCELERATOR

static int (*allocate)(void **, size_t);
static int (*release)(void *);
static int (*attributes)(void *, int, const void *);

static void *function(void *library, const char *name) {
    void *found = library == NULL ? NULL : dlsym(library, name);
    if (found == NULL) {
        fail("expected %s of the driver, found none: %s", name, dlerror());
    }
    return found;
}

/* Makes the GPU 0 current. */
static void open_device(void) {
    const char *path = getenv("DTC_CUDA_DRIVER");
    void *library = path == NULL ? NULL : dlopen(path, RTLD_NOW | RTLD_GLOBAL), *context;
    int (*init)(unsigned) = (int (*)(unsigned))function(library, "cuInit");
    int (*retain)(void **, int) = (int (*)(void **, int))function(library, "cuDevicePrimaryCtxRetain");
    int (*push)(void *) = (int (*)(void *))function(library, "cuCtxPushCurrent_v2");
    allocate = (int (*)(void **, size_t))function(library, "cuMemAlloc_v2");
    release = (int (*)(void *))function(library, "cuMemFree_v2");
    attributes = (int (*)(void *, int, const void *))function(library, "cuPointerGetAttribute");
    if (init(0) != 0 || retain(&context, 0) != 0 || push(context) != 0) {
        fail("expected a GPU, found none");
    }
}

static void *elements_of(size_t bytes) {
    void *made;
    if (allocate(&made, bytes) != 0) {
        fail("expected %zu bytes of a GPU, found none", bytes);
    }
    return made;
}

static void drop_elements(void *elements) {
    if (release(elements) != 0) {
        fail("expected memory of a GPU, found none");
    }
}

static int check_address(const void *address, int *device, uint64_t *flags) {
    enum { MEMORY_TYPE = 2, OF_DEVICE = 2 };
    unsigned found = 0;
    *device = *flags = 0;
    return attributes(&found, MEMORY_TYPE, address) == 0 && found == OF_DEVICE;
}

static int copy_bytes(int to_device, int from_device, void *to, const void *from, size_t bytes, int kind) {
    memcpy(to, from, bytes);
    return to_device == from_device && kind == MCA_ACCELERATOR_TRANSFER_UNSPEC ? OPAL_SUCCESS : OPAL_ERROR;
}

opal_accelerator_base_module_t opal_accelerator = {check_address, copy_bytes};
opal_accelerator_base_component_t opal_accelerator_base_selected_component = {{"sketch"}};
const opal_datatype_t opal_datatype_uint1 = {
    .flags = OPAL_DATATYPE_FLAG_COMMITTED | OPAL_DATATYPE_FLAG_CONTIGUOUS | OPAL_DATATYPE_FLAG_NO_GAPS, .size = 1, .true_ub = 1, .ub = 1};

#else

static void open_device(void) {}
static void *elements_of(size_t bytes) { return memory_of(bytes); }
static void drop_elements(void *elements) { free(elements); }

#endif

/* A datatype of the file, and elements of it in memory. */
typedef struct {
    opal_datatype_t datatype;
    long count, bytes;
    long *at; /* Displacements of the packed bytes of all elements. */
    long low, span;
    int repeats;
    unsigned char *memory, *packed;
} subject;

static void read_entry(FILE *file, dt_elem_desc_t *entry) {
    char kind[16];
    long size;
    if (fscanf(file, "%15s", kind) != 1) {
        fail("expected an entry, found none");
    }
    memset(entry, 0, sizeof *entry);
    if (strcmp(kind, "element") == 0) {
        ddt_elem_desc_t *element = &entry->elem;
        if (fscanf(file, "%ld %zu %u %td %td", &size, &element->blocklen, &element->count, &element->extent, &element->disp) != 5) {
            fail("expected five numbers of an element");
        }
        element->common = (entry_head){OPAL_DATATYPE_FLAG_DATA, (uint16_t)(OPAL_DATATYPE_FIRST_TYPE + size)};
    } else if (strcmp(kind, "loop") == 0) {
        if (fscanf(file, "%u %u %td", &entry->loop.loops, &entry->loop.items, &entry->loop.extent) != 3) {
            fail("expected three numbers of a loop");
        }
        entry->loop.common.type = OPAL_DATATYPE_LOOP;
    } else {
        entry->loop.common.type = OPAL_DATATYPE_END_LOOP;
    }
}

static int read_subject(FILE *file, subject *read) {
    opal_datatype_t *datatype = &read->datatype;
    memset(read, 0, sizeof *read);
    size_t used;
    if (fscanf(file, " type %ld %zu %td %td %td %td %zu", &read->count, &datatype->size, &datatype->true_lb, &datatype->true_ub,
               &datatype->lb, &datatype->ub, &used) != 7) {
        return 0;
    }
    datatype->flags = OPAL_DATATYPE_FLAG_COMMITTED | OPAL_DATATYPE_FLAG_DATA;
    datatype->desc = (dt_type_desc_t){used, used, memory_of(used * sizeof(dt_elem_desc_t))};
    datatype->opt_desc = datatype->desc;
    for (size_t at = 0; at < used; at++) {
        read_entry(file, &datatype->desc.desc[at]);
        const entry_head *head = &datatype->desc.desc[at].elem.common;
        datatype->bdt_used |= head->flags & OPAL_DATATYPE_FLAG_DATA ? UINT32_C(1) << head->type : 0;
    }
    char kind[8];
    if (fscanf(file, "%7s", kind) != 1 || strcmp(kind, "map") != 0) {
        fail("expected a map");
    }
    long size = (long)datatype->size, extent = datatype->ub - datatype->lb;
    read->bytes = size * read->count;
    read->at = memory_of((size_t)read->bytes * sizeof *read->at + sizeof(long) * (size_t)size);
    for (long at = 0; at < size; at++) {
        if (fscanf(file, "%ld", &read->at[at]) != 1) {
            fail("expected %ld displacements, found %ld", size, at);
        }
    }
    long low = 0, high = 0;
    for (long at = 0; at < read->bytes; at++) {
        read->at[at] = read->at[at % size] + at / size * extent;
        low = at == 0 || read->at[at] < low ? read->at[at] : low;
        high = at == 0 || read->at[at] >= high ? read->at[at] + 1 : high;
    }
    read->low = low;
    read->span = high - low;
    read->memory = (unsigned char *)elements_of((size_t)read->span + 2 * GUARD) + GUARD;
    read->packed = memory_of((size_t)read->bytes);
    memset(read->memory - GUARD, 0, (size_t)read->span + 2 * GUARD);
    for (long at = 0; at < read->bytes; at++) {
        read->repeats |= read->memory[read->at[at] - low] != 0;
        read->memory[read->at[at] - low] = 1;
    }
    for (long at = 0; at < read->span; at++) {
        read->memory[at] = (unsigned char)((at + number) * 2654435761u >> 11);
    }
    for (long at = 0; at < read->bytes; at++) {
        read->packed[at] = read->memory[read->at[at] - low];
    }
    return 1;
}

/* What opal_convertor_prepare_for_send and _recv do with a datatype with gaps, and with one that has none. */
static int32_t prepare(opal_convertor_t *convertor, uint32_t direction, const opal_datatype_t *datatype, size_t count, const void *base) {
    *convertor = (opal_convertor_t){.flags = CONVERTOR_HOMOGENEOUS | direction | datatype->flags,
                                    .local_size = datatype->size * count,
                                    .pDesc = datatype,
                                    .count = count,
                                    .pBaseBuf = (unsigned char *)base,
                                    .fAdvance = convertor->fAdvance};
#ifdef SKETCH_ACCELERATOR
    convertor->flags |= CONVERTOR_ACCELERATOR;
#endif
    if (datatype->flags & OPAL_DATATYPE_FLAG_NO_GAPS) {
        convertor->flags |= CONVERTOR_NO_OP;
    } else {
        convertor->fAdvance = NULL;
        dtc_opal_prepare(convertor);
    }
    return OPAL_SUCCESS;
}

static opal_convertor_t prepared(const subject *of, uint32_t direction, void *base) {
    opal_convertor_t made = {0};
    prepare(&made, direction, &of->datatype, (size_t)of->count, base);
    return made;
}

static void position(opal_convertor_t *convertor, size_t at) {
    convertor->flags &= ~(uint32_t)CONVERTOR_COMPLETED;
    if (dtc_opal_set_position(convertor, &at) != OPAL_SUCCESS || convertor->bConverted != at) {
        fail("position: expected %zu, found %zu", at, convertor->bConverted);
    }
}

/* Compares memory with poison into which the packed bytes were unpacked. */
static void expect_unpacked(const subject *of, const unsigned char *memory, const char *what) {
    unsigned char *image = memory_of((size_t)of->span + 2 * GUARD);
    memset(image, POISON, (size_t)of->span + 2 * GUARD);
    for (long at = 0; at < of->bytes; at++) {
        image[GUARD + of->at[at] - of->low] = of->packed[at];
    }
    for (long at = -GUARD; at < of->span + GUARD; at++) {
        if (memory[at] != image[GUARD + at]) {
            fail("%s: byte %ld of %ld in memory: expected %d, found %d", what, at, of->span, image[GUARD + at], memory[at]);
        }
    }
    free(image);
}

static void pack(const subject *of) {
    opal_convertor_t convertor = prepared(of, CONVERTOR_SEND, of->memory - of->low);
    unsigned char buffers[3][512];
    size_t at = draw(0, 1) ? 0 : (size_t)draw(0, of->bytes - 1);
    position(&convertor, at);
    for (int done = 0; !done;) {
        struct iovec iov[3];
        uint32_t given = (uint32_t)draw(1, 3), used = given;
        int direct = draw(0, 7) == 0;
        size_t moved = 0, sum = 0;
        for (uint32_t buffer = 0; buffer < given; buffer++) {
            iov[buffer] = (struct iovec){direct ? NULL : buffers[buffer], (size_t)draw(1, draw(0, 2) ? 30 : 512)};
        }
        done = convertor.fAdvance(&convertor, iov, &used, &moved);
        for (uint32_t buffer = 0; buffer < used; buffer++) {
            if (memcmp(iov[buffer].iov_base, of->packed + at + sum, iov[buffer].iov_len) != 0) {
                fail("pack: expected %zu bytes of the map at %zu, found others", iov[buffer].iov_len, at + sum);
            }
            sum += iov[buffer].iov_len;
        }
        at += sum;
        if (done < 0 || sum != moved || moved == 0 || at != convertor.bConverted || done != (at == (size_t)of->bytes) ||
            done != !!(convertor.flags & CONVERTOR_COMPLETED)) {
            fail("pack: expected %zu bytes and the end at %ld, found %zu and %d at %zu", sum, of->bytes, moved, done, at);
        }
    }
}

/* Into a buffer that has no end, as UCX gives it for a message that fits. */
static void pack_without_end(const subject *of) {
    opal_convertor_t convertor = prepared(of, CONVERTOR_SEND, of->memory - of->low);
    unsigned char *packed = memory_of((size_t)of->bytes);
    struct iovec iov = {packed, SIZE_MAX};
    uint32_t used = 1;
    size_t moved = SIZE_MAX;
    int done = convertor.fAdvance(&convertor, &iov, &used, &moved);
    if (done != 1 || (long)moved != of->bytes || memcmp(packed, of->packed, moved) != 0) {
        fail("pack without end: expected %ld bytes of the map, found %zu and %d", of->bytes, moved, done);
    }
    free(packed);
}

static void unpack(const subject *of) {
    enum { MOST = 40 };
    long begins[MOST + 1] = {0}, order[MOST], fragments = 0;
    while (begins[fragments] < of->bytes) {
        long length = draw(1, 1 + of->bytes / 8), rest = of->bytes - begins[fragments];
        order[fragments] = fragments;
        begins[fragments + 1] = begins[fragments] + (length > rest || fragments == MOST - 1 ? rest : length);
        fragments++;
    }
    for (long at = fragments - 1; at > 0; at--) {
        long other = draw(0, at), kept = order[at];
        order[at] = order[other];
        order[other] = kept;
    }
    unsigned char *memory = (unsigned char *)elements_of((size_t)of->span + 2 * GUARD) + GUARD;
    memset(memory - GUARD, POISON, (size_t)of->span + 2 * GUARD);
    opal_convertor_t convertor = prepared(of, CONVERTOR_RECV, memory - of->low);
    for (long turn = 0; turn < fragments; turn++) {
        long from = begins[order[turn]], length = begins[order[turn] + 1] - from;
        struct iovec iov = {of->packed + from, (size_t)length};
        uint32_t used = 1;
        size_t moved = 0;
        position(&convertor, (size_t)from);
        int done = convertor.fAdvance(&convertor, &iov, &used, &moved);
        if (used != 1 || (long)moved != length || done != (from + length == of->bytes)) {
            fail("unpack at %ld: expected %ld bytes, found %zu and %d", from, length, moved, done);
        }
    }
    expect_unpacked(of, memory, "unpack");
    drop_elements(memory - GUARD);
}

static void list(const subject *of) {
    opal_convertor_t convertor = prepared(of, CONVERTOR_SEND, of->memory - of->low);
    long at = draw(0, of->bytes - 1);
    position(&convertor, (size_t)at);
    for (int done = 0; !done;) {
        struct iovec iov[4];
        uint32_t given = (uint32_t)draw(1, 4), used = given;
        size_t length = 0;
        done = dtc_opal_raw(&convertor, iov, &used, &length);
        if (done < 0 || used > given || used == 0) {
            fail("raw at %ld: expected 1 to %u pieces, found %u and %d", at, given, used, done);
        }
        for (uint32_t piece = 0; piece < used; piece++) {
            for (size_t byte = 0; byte < iov[piece].iov_len; byte++, at++) {
                if ((unsigned char *)iov[piece].iov_base + byte != of->memory + of->at[at] - of->low) {
                    fail("raw: expected packed byte %ld at %ld, found another place", at, of->at[at]);
                }
            }
        }
        if (done != (at == of->bytes)) {
            fail("raw: expected the end at %ld, found %d at %ld", of->bytes, done, at);
        }
    }
}

static void copy(const subject *of) {
    unsigned char *memory = (unsigned char *)elements_of((size_t)of->span + 2 * GUARD) + GUARD;
    memset(memory - GUARD, POISON, (size_t)of->span + 2 * GUARD);
    char *from = (char *)of->memory - of->low;
    if (!dtc_opal_copy(&of->datatype, (int32_t)of->count, (char *)memory - of->low, from)) {
        fail("copy: expected 1 for memory that does not overlap, found 0");
    }
    expect_unpacked(of, memory, "copy");
    if (of->span > 1 && dtc_opal_copy(&of->datatype, (int32_t)of->count, from + 1, from)) {
        fail("copy: expected 0 for memory that overlaps, found 1");
    }
    drop_elements(memory - GUARD);
}

/* Those of Open MPI, which are called where dtc does not convert. */
enum { BY_OPEN_MPI = 7 };

int32_t opal_convertor_pack(opal_convertor_t *convertor, struct iovec *iov, uint32_t *buffers, size_t *length) {
    (void)convertor, (void)iov, (void)buffers, (void)length;
    return BY_OPEN_MPI;
}

int32_t opal_convertor_unpack(opal_convertor_t *convertor, struct iovec *iov, uint32_t *buffers, size_t *length) {
    return opal_convertor_pack(convertor, iov, buffers, length);
}

#ifdef SKETCH_ACCELERATOR

int32_t opal_convertor_prepare_for_send(opal_convertor_t *convertor, const opal_datatype_t *datatype, size_t count, const void *base) {
    return prepare(convertor, CONVERTOR_SEND, datatype, count, base);
}

int32_t opal_convertor_prepare_for_recv(opal_convertor_t *convertor, const opal_datatype_t *datatype, size_t count, const void *base) {
    return prepare(convertor, CONVERTOR_RECV, datatype, count, base);
}

/* A staged convertor is one of contiguous bytes on the GPU, and is what it was in the end. */
static void expect_staged(const subject *of, const opal_convertor_t *convertor, long bytes) {
    if (convertor->pDesc != &opal_datatype_uint1 || (long)convertor->local_size != bytes || dtc_opal_packs_on_device(convertor)) {
        fail("stage: expected a convertor of %ld contiguous bytes, found %zu", bytes, convertor->local_size);
    }
    int device;
    uint64_t flags;
    if (check_address(convertor->pBaseBuf, &device, &flags) != 1) {
        fail("stage: expected memory of a GPU for %ld bytes, found other memory", of->bytes);
    }
}

static void expect_unstaged(const subject *of, opal_convertor_t *convertor, const void *base) {
    if (dtc_opal_unstage(convertor) != OPAL_SUCCESS || convertor->pDesc != &of->datatype || convertor->pBaseBuf != base ||
        !dtc_opal_packs_on_device(convertor)) {
        fail("unstage: expected the convertor of the elements, found another");
    }
}

static void at_once(const subject *of) {
    int at = 0;
    unsigned char *packed = memory_of((size_t)of->bytes);
    if (dtc_opal_pack_at_once(&of->datatype, (size_t)of->count, of->memory - of->low, packed, (int)of->bytes, &at) || at != 0) {
        fail("at once: expected elements to be left to the convertor where there are GPUs");
    }
    free(packed);
}

static void stage(const subject *of) {
    unsigned char *from = of->memory - of->low;
    opal_convertor_t sends = prepared(of, CONVERTOR_SEND, from);
    dtc_opal_stage_message(&sends, sends.local_size);
    expect_staged(of, &sends, of->bytes);
    if (memcmp(sends.pBaseBuf, of->packed, (size_t)of->bytes) != 0) {
        fail("stage: expected the bytes of the map, found others");
    }
    if (!of->repeats) {
        unsigned char *memory = (unsigned char *)elements_of((size_t)of->span + 2 * GUARD) + GUARD;
        memset(memory - GUARD, POISON, (size_t)of->span + 2 * GUARD);
        opal_convertor_t receives = prepared(of, CONVERTOR_RECV, memory - of->low);
        dtc_opal_stage_message(&receives, (size_t)of->bytes + 1);
        if (receives.pDesc != &of->datatype) {
            fail("stage: expected a message that is too long to be left to Open MPI");
        }
        dtc_opal_stage_message(&receives, (size_t)of->bytes);
        expect_staged(of, &receives, of->bytes);
        if (receives.pBaseBuf == sends.pBaseBuf || dtc_opal_move(receives.pBaseBuf, sends.pBaseBuf, (size_t)of->bytes) != 1) {
            fail("stage: expected other memory of the GPU for the message that is received");
        }
        expect_unstaged(of, &receives, memory - of->low);
        expect_unpacked(of, memory, "unstage");
        drop_elements(memory - GUARD);
    }
    expect_unstaged(of, &sends, from);
    unsigned char byte = 1, same = 0;
    if (dtc_opal_move(&same, &byte, 1) != 0 || same != 0) {
        fail("move: expected memory of the host to be left to Open MPI");
    }
}

#else

static void stage(const subject *of) { (void)of; }

/* What MPI_Pack and MPI_Unpack call, for elements and for contiguous bytes, with too little room and with enough. */
static void at_once(const subject *of) {
    const opal_datatype_t bytes = {.flags = OPAL_DATATYPE_FLAG_COMMITTED | OPAL_DATATYPE_FLAG_NO_GAPS, .size = (size_t)of->bytes};
    unsigned char *packed = memory_of((size_t)of->bytes + 2 * GUARD), *memory = (unsigned char *)elements_of((size_t)of->span + 2 * GUARD);
    int room = (int)of->bytes + GUARD, at = GUARD;
    void *from = of->memory - of->low, *to = memory + GUARD - of->low;
    memset(packed, POISON, (size_t)of->bytes + 2 * GUARD);
    memset(memory, POISON, (size_t)of->span + 2 * GUARD);
    size_t count = (size_t)of->count;
    if (dtc_opal_pack_at_once(&of->datatype, count, from, packed, room - 1, &at) || at != GUARD || packed[GUARD] != POISON) {
        fail("at once: expected too little room to be left to Open MPI");
    }
    if (!dtc_opal_pack_at_once(&of->datatype, count, from, packed, room, &at) || at != room || packed[room] != POISON ||
        packed[GUARD - 1] != POISON || memcmp(packed + GUARD, of->packed, (size_t)of->bytes) != 0) {
        fail("at once: expected the bytes of the map from %d to %d, found others", GUARD, room);
    }
    at = GUARD;
    int is_left = (long)of->datatype.size > of->datatype.true_ub - of->datatype.true_lb;
    if (dtc_opal_unpack_at_once(&of->datatype, count, to, packed, room, &at) != !is_left || at != (is_left ? GUARD : room)) {
        fail("at once: expected %d bytes to be read, found %d", is_left ? 0 : room - GUARD, at - GUARD);
    }
    if (!of->repeats) {
        expect_unpacked(of, memory + GUARD, "at once");
    }
    at = 1;
    if (!dtc_opal_unpack_at_once(&bytes, 1, packed + GUARD, of->packed - 1, (int)of->bytes + 1, &at) || at != of->bytes + 1 ||
        memcmp(packed + GUARD, of->packed, (size_t)of->bytes) != 0) {
        fail("at once: expected contiguous bytes to be copied, found %d", at);
    }
    if (dtc_opal_least_joined(&of->datatype, 249, 250) != 250 || dtc_opal_least_joined(&of->datatype, 250, 250) <= 250 ||
        dtc_opal_least_joined(&bytes, 250, 250) != 250) {
        fail("joined: expected the elements that dtc serves to stay apart");
    }
    free(packed);
    drop_elements(memory);
}

/* Bytes of each value if all values have as many, and 1, 2, 4 or 8; else 0. */
static long bytes_of_values(const opal_datatype_t *datatype) {
    for (long size = 1; size <= 8; size *= 2) {
        if (datatype->bdt_used == UINT32_C(1) << (OPAL_DATATYPE_FIRST_TYPE + size)) {
            return size;
        }
    }
    return 0;
}

/* Packs and unpacks in external32, in which the bytes of each value are in the other order. Returns whether dtc does. */
static int external(const subject *of) {
    long value = bytes_of_values(&of->datatype);
    unsigned char *packed = memory_of((size_t)of->bytes), *memory = (unsigned char *)elements_of((size_t)of->span + 2 * GUARD) + GUARD;
    opal_convertor_t convertor = prepared(of, CONVERTOR_SEND, of->memory - of->low);
    convertor.flags &= ~(uint32_t)CONVERTOR_HOMOGENEOUS;
    struct iovec iov = {packed, (size_t)of->bytes};
    uint32_t used = 1;
    size_t length = 0;
    int done = dtc_opal_pack_external(&convertor, &iov, &used, &length);
    if (done != (value > 0 ? 1 : BY_OPEN_MPI) || (done == 1 && (long)length != of->bytes)) {
        fail("external: expected values of %ld bytes to be converted, found %d", value, done);
    }
    for (long at = 0; done == 1 && at < of->bytes; at++) {
        if (packed[at] != of->packed[at / value * value + value - 1 - at % value]) {
            fail("external: expected the byte %ld in the other order, found another", at);
        }
    }
    if (done == 1) {
        memset(memory - GUARD, POISON, (size_t)of->span + 2 * GUARD);
        convertor = prepared(of, CONVERTOR_RECV, memory - of->low);
        convertor.flags &= ~(uint32_t)CONVERTOR_HOMOGENEOUS;
        if (dtc_opal_unpack_external(&convertor, &iov, &used, &length) != 1 || (long)length != of->bytes) {
            fail("external: expected %ld bytes to be unpacked, found %zu", of->bytes, length);
        }
        expect_unpacked(of, memory, "external");
    }
    drop_elements(memory - GUARD);
    free(packed);
    return done == 1;
}

static void add(const dtc_opal_operation *operation, void *incoming, void *present, size_t elements) {
    (void)operation;
    for (size_t at = 0; at < elements; at++) {
        ((unsigned char *)present)[at] += ((const unsigned char *)incoming)[at];
    }
}

/* Adds the elements, or their packed bytes, to elements that are poison or to contiguous bytes. */
static void reduce(const subject *of, int is_packed, int into_packed) {
    static const opal_datatype_t byte = {
        .flags = OPAL_DATATYPE_FLAG_COMMITTED | OPAL_DATATYPE_FLAG_CONTIGUOUS | OPAL_DATATYPE_FLAG_NO_GAPS, .size = 1, .true_ub = 1, .ub = 1};
    const dtc_opal_operation operation = {add, &byte};
    size_t span = (size_t)(into_packed ? of->bytes : of->span) + 2 * GUARD;
    unsigned char *memory = (unsigned char *)memory_of(span) + GUARD, *image = (unsigned char *)memory_of(span) + GUARD;
    memset(memory - GUARD, POISON, span);
    memset(image - GUARD, POISON, span);
    for (long at = 0; at < of->bytes; at++) {
        image[into_packed ? at : of->at[at] - of->low] += of->packed[at];
    }
    dtc_opal_elements origin = {&of->datatype, of->count, (char *)of->memory - of->low};
    dtc_opal_elements target = {&of->datatype, of->count, (char *)memory - of->low};
    dtc_opal_elements packed = {NULL, 0, (char *)of->packed}, bytes = {&byte, (size_t)of->bytes, (char *)memory};
    int done = dtc_opal_accumulate(is_packed ? &packed : &origin, into_packed ? &bytes : &target, &operation);
    if (done != 1 || memcmp(memory - GUARD, image - GUARD, span) != 0) {
        fail("reduce: expected 1 and the sums in their places, found %d and other bytes", done);
    }
    free(memory - GUARD);
    free(image - GUARD);
}

#endif

/* The whole of a message by one thread; null if the bytes are those of the map. */
static void *pack_whole(void *argument) {
    const subject *of = argument;
    unsigned char *packed = memory_of((size_t)of->bytes);
    opal_convertor_t convertor = prepared(of, CONVERTOR_SEND, of->memory - of->low);
    struct iovec iov = {packed, (size_t)of->bytes};
    uint32_t used = 1;
    size_t moved = 0;
    int same = dtc_opal_serves(&convertor) && convertor.fAdvance(&convertor, &iov, &used, &moved) == 1 &&
               moved == (size_t)of->bytes && memcmp(packed, of->packed, moved) == 0;
    free(packed);
    return same ? NULL : argument;
}

/* Threads that are the first to use a datatype, all at once. */
static void race(subject *of) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    dtc_opal_forget(&of->datatype);
    for (int at = 0; at < THREADS; at++) {
        if (pthread_create(&threads[at], NULL, pack_whole, of) != 0) {
            fail("race: expected thread %d, found none", at);
        }
    }
    for (int at = 0; at < THREADS; at++) {
        void *wrong;
        pthread_join(threads[at], &wrong);
        if (wrong != NULL) {
            fail("race: expected the bytes of the map in thread %d, found others", at);
        }
    }
}

/* Two ways to count the pieces of a description agree. */
static void count_pieces(const subject *of) {
    dtc_opal_description read;
    if (!dtc_opal_describe(&of->datatype, 0, &read) || read.type != NULL || read.pieces != dtc_opal_pieces(&of->datatype)) {
        fail("pieces: expected %g, found %g", read.pieces, dtc_opal_pieces(&of->datatype));
    }
}

/* Open MPI has the first 2,048 pieces in memory of the host. */
static void use_until_served(const subject *of) {
    double each = dtc_opal_pieces(&of->datatype) * (double)of->count, moved = each;
    int at = 0;
    unsigned char *packed = memory_of((size_t)of->bytes);
    if (dtc_opal_pack_at_once(&of->datatype, (size_t)of->count, of->memory - of->low, packed, (int)of->bytes, &at) ||
        dtc_opal_least_joined(&of->datatype, 1, 1) != (dtc_opal_pieces(&of->datatype) < 2048 ? 1 : INT_MAX)) {
        fail("first pieces: expected Open MPI to serve a call, found dtc");
    }
    dtc_opal_forget((opal_datatype_t *)&of->datatype);
    free(packed);
    for (; moved < 2048; moved += each) {
        opal_convertor_t convertor = prepared(of, CONVERTOR_SEND, of->memory - of->low);
        if (dtc_opal_serves(&convertor)) {
            fail("first pieces: expected Open MPI to serve %g of them, found dtc", moved);
        }
    }
}

int main(int argc, char **argv) {
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    open_device();
    for (size_t size = 1; size < sizeof basic / sizeof *basic; size++) {
        basic[size].size = size;
        opal_datatype_basicDatatypes[OPAL_DATATYPE_FIRST_TYPE + size] = &basic[size];
    }
#ifdef SKETCH_ACCELERATOR
    int from_first_byte = 1;
#else
    int from_first_byte = getenv("DTC_OPEN_MPI") != NULL;
#endif
    subject of;
    long served = 0, theirs = 0, converted = 0;
    for (number = 0; read_subject(file, &of); number++) {
        count_pieces(&of);
        if (!from_first_byte) {
            use_until_served(&of);
        }
        opal_convertor_t convertor = prepared(&of, CONVERTOR_SEND, of.memory - of.low);
        int serves = dtc_opal_serves(&convertor);
        served += serves;
        theirs += !serves;
        if (serves && from_first_byte) {
            pack(&of);
            pack_without_end(&of);
            list(&of);
            at_once(&of);
            stage(&of);
            if (!of.repeats) {
                unpack(&of);
                copy(&of);
            }
#ifndef SKETCH_ACCELERATOR
            for (int way = 0; way < 3 && !of.repeats; way++) {
                reduce(&of, way == 1, way == 2);
            }
            converted += !of.repeats && external(&of);
#endif
            if (number % 8 == 0) {
                race(&of);
            }
        }
        opal_datatype_t duplicate = of.datatype;
        dtc_opal_copied(&duplicate);
        dtc_opal_forget(&duplicate);
        dtc_opal_forget(&of.datatype);
        free(of.datatype.desc.desc);
        free(of.at);
        free(of.packed);
        drop_elements(of.memory - GUARD);
    }
    dtc_opal_finalize();
    printf("convertor: %ld types, %ld served by dtc, %ld by Open MPI, %ld converted\n", number, served, theirs, converted);
    return 0;
}
