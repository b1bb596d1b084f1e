/*
 * What dtc_convertor.c uses of Open MPI: names, fields and values that both sides must agree on, and nothing of what Open MPI
 * does with them. With it, the file is compiled and tested without Open MPI's sources. Fields that dtc neither reads nor writes
 * are left out, so this is no header to build Open MPI's callers with.
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
    CONVERTOR_WITH_CHECKSUM = 0x00200000,
    CONVERTOR_CUDA = 0x00400000,
    CONVERTOR_COMPLETED = 0x08000000,
    CONVERTOR_CUDA_UNIFIED = 0x10000000,
};

/* Types of entries; from OPAL_DATATYPE_FIRST_TYPE on they are basic datatypes. */
enum { OPAL_DATATYPE_LOOP = 0, OPAL_DATATYPE_END_LOOP = 1, OPAL_DATATYPE_FIRST_TYPE = 4, OPAL_DATATYPE_MAX_PREDEFINED = 27 };

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
    convertor_advance_fct_t fAdvance;
    size_t bConverted;
};

#endif
