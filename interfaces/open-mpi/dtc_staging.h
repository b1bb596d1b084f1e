/*
 * What dtc_convertor.c, pml/ob1 and btl/self call of dtc_staging.c, from Open MPI 5 on.
 */
#ifndef DTC_STAGING_H
#define DTC_STAGING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct dtc_type;
struct opal_convertor_t;

#pragma GCC visibility push(hidden)

/*
 * Packs or unpacks a buffer of packed bytes, from the position of a convertor on, whose elements are on a GPU. Returns how many bytes,
 * or -1.
 */
int64_t dtc_opal_move_packed(const struct opal_convertor_t *convertor, const struct dtc_type *type, const struct iovec *packed);

/*
 * Takes staging memory for the first `bytes` bytes of a convertor whose elements are of `type`, unless they are few, and makes it that of
 * the staged bytes. Those of a send are packed.
 */
void dtc_opal_stage(struct opal_convertor_t *convertor, const struct dtc_type *type, size_t bytes);

/* Frees the staging memory, and says how many messages had some. */
void dtc_opal_free_staging(long *sends, long *receives);

/* Copies bytes for btl/self if some are in memory of a GPU. Returns 1; 0 if all are in memory of the host; -1 if the copy failed. */
int dtc_opal_move(void *destination, const void *source, size_t bytes);

#pragma GCC visibility push(default)

/* A send or a receive ends: unpacks what was received. An error of Open MPI, or OPAL_SUCCESS, also if nothing was staged. */
int dtc_opal_unstage(struct opal_convertor_t *convertor);

#pragma GCC visibility pop
#pragma GCC visibility pop

#endif
