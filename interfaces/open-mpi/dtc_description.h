/*
 * What dtc_convertor.c and dtc_staging.c call of dtc_description.c: the engine, and types made of Open MPI's descriptions.
 */
#ifndef DTC_DESCRIPTION_H
#define DTC_DESCRIPTION_H

#include "opal/datatype/opal_datatype.h"

#include "opal/datatype/dtc.h"

#pragma GCC visibility push(hidden)

/* The engine, which the first call opens; null if that fails. */
dtc_engine *dtc_opal_engine(void);

/* Whether the engine was opened, and its end, with that of the basic types. */
int dtc_opal_is_open(void);
void dtc_opal_close(void);

/* What a description says. The type is committed, and belongs to the caller. */
typedef struct {
    dtc_type *type;     /* Null if it is not wanted, or could not be made. */
    double pieces;      /* Contiguous pieces of an element. */
    double piece_bytes; /* Bytes of one on average. */
    int is_read;        /* Whether the description and the datatype agree on the bytes. */
} dtc_opal_description;

/*
 * Reads the description of a datatype, and makes a type of it if pieces have less than `longest` bytes on average. 0 if there is no
 * engine.
 */
int dtc_opal_describe(const opal_datatype_t *datatype, double longest, dtc_opal_description *found);

/* Contiguous pieces of an element. Needs no engine, and takes 1 to 2 ns for each entry of the description. */
double dtc_opal_pieces(const opal_datatype_t *datatype);

/*
 * The number of the basic type that all values of a datatype are made of, or -1. Open MPI knows which values a datatype has. Those that
 * are longer or shorter in external32, or that Open MPI converts in another way than MPI says, are of no unit: longs, wide characters
 * and long doubles.
 */
int dtc_opal_unit_of(const opal_datatype_t *datatype);

/* The committed basic type of a number, of 1 << number bytes; null if there is no engine. */
const dtc_type *dtc_opal_unit(int number);

#pragma GCC visibility pop

#endif
