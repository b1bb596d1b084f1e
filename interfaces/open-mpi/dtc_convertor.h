/* What Open MPI's datatype library calls of dtc_convertor.c, at the places where `patch` puts the calls. */
#ifndef DTC_CONVERTOR_H
#define DTC_CONVERTOR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct opal_convertor_t;
struct opal_datatype_t;

#pragma GCC visibility push(hidden)

/* The end of opal_convertor_prepare_for_send and _recv: chooses the convertor that serves from here on. */
void dtc_opal_prepare(struct opal_convertor_t *convertor);

/* Whether dtc serves a convertor that was prepared. */
int dtc_opal_serves(const struct opal_convertor_t *convertor);

/* opal_convertor_set_position_nocheck of a convertor that dtc serves. */
int32_t dtc_opal_set_position(struct opal_convertor_t *convertor, size_t *position);

/* opal_convertor_raw of a convertor that dtc serves. */
int32_t dtc_opal_raw(struct opal_convertor_t *convertor, struct iovec *iov, uint32_t *buffers, size_t *length);

/* opal_datatype_copy_content_same_ddt: 1 if the elements were copied, 0 if Open MPI has to do it. */
int dtc_opal_copy(const struct opal_datatype_t *datatype, int32_t count, char *destination, char *source);

/* A datatype ends, or gets other bounds. */
void dtc_opal_forget(struct opal_datatype_t *datatype);

/* A datatype was copied from another, field by field: what belongs to the original is not the copy's. */
void dtc_opal_copied(struct opal_datatype_t *datatype);

/* The datatype library ends. */
void dtc_opal_finalize(void);

#pragma GCC visibility pop

#endif
