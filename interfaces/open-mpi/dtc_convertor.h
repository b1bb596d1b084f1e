/*
 * What Open MPI calls of dtc_convertor.c, dtc_accumulate.c, dtc_external.c and dtc_pack.c, at the places where `patch` puts the calls.
 */
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

/*
 * opal_convertor_raw of a convertor that dtc serves, if it was packed, unpacked or positioned before: else Open MPI's stack is that of its
 * position, and finds the next pieces faster than dtc, which looks for the first one in each call.
 */
int dtc_opal_serves_raw(const struct opal_convertor_t *convertor);
int32_t dtc_opal_raw(struct opal_convertor_t *convertor, struct iovec *iov, uint32_t *buffers, size_t *length);

/* opal_datatype_copy_content_same_ddt: 1 if the elements were copied, 0 if Open MPI has to do it. */
int dtc_opal_copy(const struct opal_datatype_t *datatype, int32_t count, char *destination, char *source);

/* The type by which dtc reduces `bytes` packed bytes of a datatype in host memory; null if Open MPI reduces them. */
const struct dtc_type *dtc_opal_accumulating_type(const struct opal_datatype_t *datatype, size_t bytes);

/* Whether MPI_Pack and MPI_Unpack can do without a convertor: dtc is on, and no memory is that of a GPU. */
int dtc_opal_serves_calls(void);

/* The type that serves a datatype in host memory, null if Open MPI does, or has yet to move its first bytes. */
const struct dtc_type *dtc_opal_host_type(const struct opal_datatype_t *datatype, int unpacks);

/* Whether dtc serves elements that are about to be moved. */
int dtc_opal_serves_elements(const struct opal_datatype_t *datatype, size_t count);

/* Elements for external32: `count` of a type, from an address on. */
typedef struct {
    const struct dtc_type *type;
    char *memory;
    int64_t count;
} dtc_opal_external_elements;

/* The elements of a convertor to external32, or from it: 1 if dtc converts them, 0 if Open MPI does. */
int dtc_opal_external(const struct opal_convertor_t *convertor, dtc_opal_external_elements *found);

/* A datatype ends, or gets other bounds. */
void dtc_opal_forget(struct opal_datatype_t *datatype);

/* A datatype was copied from another, field by field: what belongs to the original is not the copy's. */
void dtc_opal_copied(struct opal_datatype_t *datatype);

/* The datatype library ends. */
void dtc_opal_finalize(void);

#pragma GCC visibility push(default)

/*
 * The rest is called by libmpi. MPI_Pack and MPI_Unpack of elements in host memory, where a buffer of `room` bytes has its packed bytes
 * from `position` on: 1 if they are moved, 0 if Open MPI has to do it.
 */
int dtc_opal_pack_at_once(const struct opal_datatype_t *datatype, size_t count, const void *memory, void *packed, int room,
                          int *position);
int dtc_opal_unpack_at_once(const struct opal_datatype_t *datatype, size_t count, void *memory, const void *packed, int room,
                            int *position);

/*
 * From how many elements on these calls of version 5 make one datatype of them, anew each time: `least`, but none of those that dtc
 * serves, which would have to read it each time.
 */
int dtc_opal_least_joined(const struct opal_datatype_t *datatype, size_t count, int least);

/* Elements at an address: without a datatype, packed bytes. */
typedef struct {
    const struct opal_datatype_t *datatype;
    size_t count;
    char *memory;
} dtc_opal_elements;

/* What is computed: `reduce` puts the result of each of some contiguous elements in the place of the present one. */
typedef struct dtc_opal_operation {
    void (*reduce)(const struct dtc_opal_operation *operation, void *incoming, void *present, size_t elements);
    const struct opal_datatype_t *element;
} dtc_opal_operation;

/* A reduction of a one-sided call: 1 if it is done, 0 if Open MPI has to do it, or an error of Open MPI. */
int dtc_opal_accumulate(const dtc_opal_elements *origin, const dtc_opal_elements *target, const dtc_opal_operation *operation);

/* opal_convertor_pack and _unpack of a convertor to external32, or from it, which MPI_Pack_external and its inverse call once. */
int32_t dtc_opal_pack_external(struct opal_convertor_t *convertor, struct iovec *iov, uint32_t *buffers, size_t *length);
int32_t dtc_opal_unpack_external(struct opal_convertor_t *convertor, struct iovec *iov, uint32_t *buffers, size_t *length);

#pragma GCC visibility pop

#ifdef CONVERTOR_ACCELERATOR
#pragma GCC visibility push(default)

/*
 * Called by pml/ob1, which is in another library, as `dtc_opal_unstage` is. Packed bytes of a whole message are staged in memory of the
 * GPU, and sent or received as contiguous ones. The convertor is that of the staged bytes in the meantime.
 */

/* Whether dtc packs the bytes of a convertor on a GPU: they are then sent like those of the host. */
int dtc_opal_packs_on_device(const struct opal_convertor_t *convertor);

/*
 * A send begins, or a receive of `bytes` bytes has matched a send of contiguous memory of a GPU: takes staging memory for them, unless they
 * are few. Those of a send are packed.
 */
void dtc_opal_stage_message(struct opal_convertor_t *convertor, size_t bytes);

#pragma GCC visibility pop
#endif

#pragma GCC visibility pop

#endif
