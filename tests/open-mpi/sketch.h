/*
 * What dtc_convertor.c uses of Open MPI: names, fields and values that both sides must agree on, and nothing of what Open MPI
 * does with them. With it, the file is compiled and tested without Open MPI's sources. Fields that dtc neither reads nor writes
 * are left out, so this is no header to build Open MPI's callers with. With SKETCH_ACCELERATOR it is that of version 5, which has
 * a framework for memory of GPUs.
 */
#ifndef DTC_OPEN_MPI_SKETCH_H
#define DTC_OPEN_MPI_SKETCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum { OPAL_SUCCESS = 0, OPAL_ERROR = -1 };

/* Flags of datatypes and of entries of their descriptions. */
enum {
    OPAL_DATATYPE_FLAG_COMMITTED = 0x0004,
    OPAL_DATATYPE_FLAG_CONTIGUOUS = 0x0010,
    OPAL_DATATYPE_FLAG_NO_GAPS = 0x0020,
    OPAL_DATATYPE_FLAG_DATA = 0x0100,
};

/* Flags of convertors; their lower half has those of the datatype. */
enum {
    CONVERTOR_RECV = 0x00020000,
    CONVERTOR_SEND = 0x00040000,
    CONVERTOR_HOMOGENEOUS = 0x00080000,
    CONVERTOR_NO_OP = 0x00100000,
    CONVERTOR_WITH_CHECKSUM = 0x00200000,
    CONVERTOR_COMPLETED = 0x08000000,
};

#ifdef SKETCH_ACCELERATOR
#define CONVERTOR_ACCELERATOR 0x00400000
#define CONVERTOR_ACCELERATOR_UNIFIED 0x10000000
#define CONVERTOR_SKIP_ACCELERATOR_INIT 0x40000000
#else
enum { CONVERTOR_CUDA = 0x00400000, CONVERTOR_CUDA_UNIFIED = 0x10000000 };
#endif

/* Types of entries; from OPAL_DATATYPE_FIRST_TYPE on they are basic datatypes. */
enum { OPAL_DATATYPE_LOOP = 0, OPAL_DATATYPE_END_LOOP = 1, OPAL_DATATYPE_FIRST_TYPE = 4, OPAL_DATATYPE_MAX_PREDEFINED = 27 };

/* Here a basic datatype of the test has the number of OPAL_DATATYPE_FIRST_TYPE and its size. */
enum {
    OPAL_DATATYPE_INT1 = 5,
    OPAL_DATATYPE_INT2 = 6,
    OPAL_DATATYPE_INT4 = 8,
    OPAL_DATATYPE_INT8 = 12,
    OPAL_DATATYPE_UINT1 = 13,
    OPAL_DATATYPE_UINT2,
    OPAL_DATATYPE_UINT4,
    OPAL_DATATYPE_UINT8,
    OPAL_DATATYPE_FLOAT4,
    OPAL_DATATYPE_FLOAT8,
    OPAL_DATATYPE_FLOAT_COMPLEX = 21,
    OPAL_DATATYPE_DOUBLE_COMPLEX,
};

/* The head that all entries of a description share. */
typedef struct {
    uint16_t flags, type;
} entry_head;

typedef struct {
    entry_head common;
    uint32_t count;
    size_t blocklen;
    ptrdiff_t extent, disp;
} ddt_elem_desc_t;

typedef struct {
    entry_head common;
    uint32_t items, loops;
    ptrdiff_t extent;
} ddt_loop_desc_t;

typedef union {
    ddt_elem_desc_t elem;
    ddt_loop_desc_t loop;
} dt_elem_desc_t;

typedef struct {
    size_t length, used;
    dt_elem_desc_t *desc;
} dt_type_desc_t;

typedef struct opal_datatype_t {
    uint16_t flags;
    uint32_t bdt_used;
    size_t size;
    ptrdiff_t true_lb, true_ub, lb, ub;
    dt_type_desc_t desc, opt_desc;
} opal_datatype_t;

extern const opal_datatype_t *opal_datatype_basicDatatypes[OPAL_DATATYPE_MAX_PREDEFINED];

typedef struct opal_convertor_t opal_convertor_t;
typedef int32_t (*convertor_advance_fct_t)(opal_convertor_t *, struct iovec *, uint32_t *, size_t *);

struct opal_convertor_t {
    uint32_t flags;
    size_t local_size;
    const opal_datatype_t *pDesc;
    size_t count;
    unsigned char *pBaseBuf;
    uint32_t stack_pos;
    convertor_advance_fct_t fAdvance;
    size_t bConverted;
};

int32_t opal_convertor_pack(opal_convertor_t *, struct iovec *, uint32_t *, size_t *);
int32_t opal_convertor_unpack(opal_convertor_t *, struct iovec *, uint32_t *, size_t *);

#ifdef SKETCH_ACCELERATOR
enum { MCA_ACCELERATOR_NO_DEVICE_ID = -1, MCA_ACCELERATOR_FLAGS_UNIFIED_MEMORY = 1, MCA_ACCELERATOR_TRANSFER_UNSPEC = 0 };

/* Whether an address is memory of a GPU, and copies between memory of all kinds. */
typedef struct {
    int (*check_addr)(const void *, int *, uint64_t *);
    int (*mem_copy)(int, int, void *, const void *, size_t, int);
} opal_accelerator_base_module_t;

extern opal_accelerator_base_module_t opal_accelerator;

/* The component that serves the framework, "null" if there are no GPUs. */
typedef struct {
    struct {
        char mca_component_name[64];
    } base_version;
} opal_accelerator_base_component_t;

extern opal_accelerator_base_component_t opal_accelerator_base_selected_component;
extern const opal_datatype_t opal_datatype_uint1;

int32_t opal_convertor_prepare_for_send(opal_convertor_t *, const opal_datatype_t *, size_t, const void *);
int32_t opal_convertor_prepare_for_recv(opal_convertor_t *, const opal_datatype_t *, size_t, const void *);
#endif

#endif
