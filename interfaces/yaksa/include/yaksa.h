/*
 * yaksa.h: the interface of Yaksa, the datatype engine of MPICH, as dtc implements it.
 *
 * This is an independent implementation of that interface, written from its facts: names, numbers, argument lists and
 * meanings. It is not affiliated with the Yaksa project, which is at https://github.com/pmodels/yaksa.
 *
 * Every function returns YAKSA_SUCCESS or one of the other status codes; nothing is printed and nothing exits. Functions
 * may be called by several threads at once. Counts and displacements are signed, sizes unsigned, all of 64 bits. Offsets and
 * lengths of packed data are in bytes. Handles must be alive where they are used.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef YAKSA_H_INCLUDED
#define YAKSA_H_INCLUDED

/* MPICH includes these through this file. */
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Status ---- */

#define YAKSA_SUCCESS            (0)
#define YAKSA_ERR__OUT_OF_MEM    (1) /* there is no memory for it */
#define YAKSA_ERR__INTERNAL      (2) /* an argument is wrong, or a device failed */
#define YAKSA_ERR__NOT_SUPPORTED (3) /* the interface has it, this library does not */

/* ---- Handles ---- */

typedef uint64_t yaksa_type_t;
typedef uint64_t yaksa_op_t;
typedef uint64_t yaksa_request_t;
typedef void *yaksa_info_t;

/* The request of a call that is done. */
#define YAKSA_REQUEST__NULL ((yaksa_request_t) 0)

/* The longest key of an info object. */
#define YAKSA_INFO_MAX_KEYLEN (256)

typedef enum { YAKSA_SUBARRAY_ORDER__C, YAKSA_SUBARRAY_ORDER__FORTRAN } yaksa_subarray_order_e;

/* ---- Builtin types ---- */

#define YAKSA_TYPE__NULL                  ((yaksa_type_t) 0) /* no bytes */
#define YAKSA_TYPE___BOOL                 ((yaksa_type_t) 1)
#define YAKSA_TYPE__CHAR                  ((yaksa_type_t) 2)
#define YAKSA_TYPE__SIGNED_CHAR           ((yaksa_type_t) 3)
#define YAKSA_TYPE__UNSIGNED_CHAR         ((yaksa_type_t) 4)
#define YAKSA_TYPE__WCHAR_T               ((yaksa_type_t) 5)
#define YAKSA_TYPE__INT8_T                ((yaksa_type_t) 6)
#define YAKSA_TYPE__INT16_T               ((yaksa_type_t) 7)
#define YAKSA_TYPE__INT32_T               ((yaksa_type_t) 8)
#define YAKSA_TYPE__INT64_T               ((yaksa_type_t) 9)
#define YAKSA_TYPE__UINT8_T               ((yaksa_type_t) 10)
#define YAKSA_TYPE__UINT16_T              ((yaksa_type_t) 11)
#define YAKSA_TYPE__UINT32_T              ((yaksa_type_t) 12)
#define YAKSA_TYPE__UINT64_T              ((yaksa_type_t) 13)
#define YAKSA_TYPE__INT                   ((yaksa_type_t) 14)
#define YAKSA_TYPE__UNSIGNED              ((yaksa_type_t) 15)
#define YAKSA_TYPE__SHORT                 ((yaksa_type_t) 16)
#define YAKSA_TYPE__UNSIGNED_SHORT        ((yaksa_type_t) 17)
#define YAKSA_TYPE__LONG                  ((yaksa_type_t) 18)
#define YAKSA_TYPE__UNSIGNED_LONG         ((yaksa_type_t) 19)
#define YAKSA_TYPE__LONG_LONG             ((yaksa_type_t) 20)
#define YAKSA_TYPE__UNSIGNED_LONG_LONG    ((yaksa_type_t) 21)
#define YAKSA_TYPE__INT_FAST8_T           ((yaksa_type_t) 22)
#define YAKSA_TYPE__INT_FAST16_T          ((yaksa_type_t) 23)
#define YAKSA_TYPE__INT_FAST32_T          ((yaksa_type_t) 24)
#define YAKSA_TYPE__INT_FAST64_T          ((yaksa_type_t) 25)
#define YAKSA_TYPE__UINT_FAST8_T          ((yaksa_type_t) 26)
#define YAKSA_TYPE__UINT_FAST16_T         ((yaksa_type_t) 27)
#define YAKSA_TYPE__UINT_FAST32_T         ((yaksa_type_t) 28)
#define YAKSA_TYPE__UINT_FAST64_T         ((yaksa_type_t) 29)
#define YAKSA_TYPE__INT_LEAST8_T          ((yaksa_type_t) 30)
#define YAKSA_TYPE__INT_LEAST16_T         ((yaksa_type_t) 31)
#define YAKSA_TYPE__INT_LEAST32_T         ((yaksa_type_t) 32)
#define YAKSA_TYPE__INT_LEAST64_T         ((yaksa_type_t) 33)
#define YAKSA_TYPE__UINT_LEAST8_T         ((yaksa_type_t) 34)
#define YAKSA_TYPE__UINT_LEAST16_T        ((yaksa_type_t) 35)
#define YAKSA_TYPE__UINT_LEAST32_T        ((yaksa_type_t) 36)
#define YAKSA_TYPE__UINT_LEAST64_T        ((yaksa_type_t) 37)
#define YAKSA_TYPE__BYTE                  ((yaksa_type_t) 38)
#define YAKSA_TYPE__INTMAX_T              ((yaksa_type_t) 39)
#define YAKSA_TYPE__UINTMAX_T             ((yaksa_type_t) 40)
#define YAKSA_TYPE__SIZE_T                ((yaksa_type_t) 41)
#define YAKSA_TYPE__INTPTR_T              ((yaksa_type_t) 42)
#define YAKSA_TYPE__UINTPTR_T             ((yaksa_type_t) 43)
#define YAKSA_TYPE__PTRDIFF_T             ((yaksa_type_t) 44)
#define YAKSA_TYPE__FLOAT                 ((yaksa_type_t) 45)
#define YAKSA_TYPE__DOUBLE                ((yaksa_type_t) 46)
#define YAKSA_TYPE__LONG_DOUBLE           ((yaksa_type_t) 47)
#define YAKSA_TYPE__C_COMPLEX             ((yaksa_type_t) 48)
#define YAKSA_TYPE__C_DOUBLE_COMPLEX      ((yaksa_type_t) 49)
#define YAKSA_TYPE__C_LONG_DOUBLE_COMPLEX ((yaksa_type_t) 50)
/* Pairs have the padding of the C structs; it is not packed. */
#define YAKSA_TYPE__FLOAT_INT             ((yaksa_type_t) 51)
#define YAKSA_TYPE__DOUBLE_INT            ((yaksa_type_t) 52)
#define YAKSA_TYPE__LONG_INT              ((yaksa_type_t) 53)
#define YAKSA_TYPE__2INT                  ((yaksa_type_t) 54)
#define YAKSA_TYPE__SHORT_INT             ((yaksa_type_t) 55)
#define YAKSA_TYPE__LONG_DOUBLE_INT       ((yaksa_type_t) 56)

/* ---- Operations: what a byte that arrives does to the one that is there ---- */

#define YAKSA_OP__MAX     ((yaksa_op_t) 0)
#define YAKSA_OP__MIN     ((yaksa_op_t) 1)
#define YAKSA_OP__SUM     ((yaksa_op_t) 2)
#define YAKSA_OP__PROD    ((yaksa_op_t) 3)
#define YAKSA_OP__LAND    ((yaksa_op_t) 4)
#define YAKSA_OP__BAND    ((yaksa_op_t) 5)
#define YAKSA_OP__LOR     ((yaksa_op_t) 6)
#define YAKSA_OP__BOR     ((yaksa_op_t) 7)
#define YAKSA_OP__LXOR    ((yaksa_op_t) 8)
#define YAKSA_OP__BXOR    ((yaksa_op_t) 9)
#define YAKSA_OP__REPLACE ((yaksa_op_t) 10)
#define YAKSA_OP__LAST    ((yaksa_op_t) 11) /* no operation; refused */

/* ---- Life of the library ---- */

/* May be called again; the info of the first call says whether devices take part (key "yaksa_gpu_driver"). May be NULL. */
int yaksa_init(yaksa_info_t info);
/* As often as yaksa_init. */
int yaksa_finalize(void);

/* ---- Hints ----
 *
 * "yaksa_gpu_driver" = "cuda" or "nogpu": with "nogpu", pointers are not asked about.
 * "yaksa_cuda_inbuf_ptr_attr", "yaksa_cuda_outbuf_ptr_attr" = a struct cudaPointerAttributes: what the buffers of a call are.
 *
 * Keys and drivers of HIP and of Level Zero are refused with YAKSA_ERR__NOT_SUPPORTED. Other keys are ignored. The
 * thresholds ("..._iov_pack_threshold", "..._iov_unpack_threshold") are numbers given as the pointer itself. */

int yaksa_info_create(yaksa_info_t *info);
int yaksa_info_free(yaksa_info_t info);
int yaksa_info_keyval_append(yaksa_info_t info, const char *key, const void *value, unsigned int value_length);

/* ---- Types ----
 *
 * A type without bytes is YAKSA_TYPE__NULL. The info of a constructor may be NULL, and is not used. Old types may be freed
 * as soon as the new one exists. */

/* Copies one extent apart. */
int yaksa_type_create_contig(intptr_t count, yaksa_type_t oldtype, yaksa_info_t info, yaksa_type_t *newtype);
/* Blocks that lie `stride` extents apart. */
int yaksa_type_create_vector(intptr_t count, intptr_t blocklength, intptr_t stride, yaksa_type_t oldtype,
                             yaksa_info_t info, yaksa_type_t *newtype);
/* Blocks that lie `stride` bytes apart. */
int yaksa_type_create_hvector(intptr_t count, intptr_t blocklength, intptr_t stride, yaksa_type_t oldtype,
                              yaksa_info_t info, yaksa_type_t *newtype);
/* Blocks of one length at displacements in extents. */
int yaksa_type_create_indexed_block(intptr_t count, intptr_t blocklength, const intptr_t *displacements,
                                    yaksa_type_t oldtype, yaksa_info_t info, yaksa_type_t *newtype);
/* Blocks of one length at displacements in bytes. */
int yaksa_type_create_hindexed_block(intptr_t count, intptr_t blocklength, const intptr_t *displacements,
                                     yaksa_type_t oldtype, yaksa_info_t info, yaksa_type_t *newtype);
/* Blocks at displacements in extents. */
int yaksa_type_create_indexed(intptr_t count, const intptr_t *blocklengths, const intptr_t *displacements,
                              yaksa_type_t oldtype, yaksa_info_t info, yaksa_type_t *newtype);
/* Blocks at displacements in bytes. */
int yaksa_type_create_hindexed(intptr_t count, const intptr_t *blocklengths, const intptr_t *displacements,
                               yaksa_type_t oldtype, yaksa_info_t info, yaksa_type_t *newtype);
/* Blocks of differing types at displacements in bytes. If the types differ, the extent is padded to their alignment. */
int yaksa_type_create_struct(intptr_t count, const intptr_t *blocklengths, const intptr_t *displacements,
                             const yaksa_type_t *oldtypes, yaksa_info_t info, yaksa_type_t *newtype);
/* A box in an array; the extent is that of the array. */
int yaksa_type_create_subarray(int ndims, const intptr_t *sizes, const intptr_t *subsizes, const intptr_t *starts,
                               yaksa_subarray_order_e order, yaksa_type_t oldtype, yaksa_info_t info,
                               yaksa_type_t *newtype);
/* Other bounds, in bytes. */
int yaksa_type_create_resized(yaksa_type_t oldtype, intptr_t lb, intptr_t extent, yaksa_info_t info,
                              yaksa_type_t *newtype);
/* The same type; both are freed. */
int yaksa_type_create_dup(yaksa_type_t oldtype, yaksa_info_t info, yaksa_type_t *newtype);
int yaksa_type_free(yaksa_type_t type);

/* Packed bytes of one element. */
int yaksa_type_get_size(yaksa_type_t type, uintptr_t *size);
/* Bounds: every part takes part in them, resized or not. */
int yaksa_type_get_extent(yaksa_type_t type, intptr_t *lb, intptr_t *extent);
/* Bounds of the bytes alone. */
int yaksa_type_get_true_extent(yaksa_type_t type, intptr_t *lb, intptr_t *extent);

/* ---- Packing ----
 *
 * Packs the bytes of `incount` elements at `inbuf`, in the order of the type, without the first `inoffset` of them, and
 * `max_pack_bytes` at most. `*actual_pack_bytes` is less when the next basic element does not fit: none is cut, and complex
 * numbers and pairs are one each. `inbuf` may be NULL for a type of absolute addresses. `info` may be NULL.
 *
 * Unpacking puts `insize` bytes, or less at the end of the elements, where bytes `outoffset` and following of the elements lie;
 * they may begin and end inside a basic element.
 *
 * With an operation other than YAKSA_OP__REPLACE the bytes are elements of the type, and are combined with those at the
 * destination. Operations that the type does not have are refused with YAKSA_ERR__NOT_SUPPORTED. */

/* Return when the bytes are there. */
int yaksa_pack(const void *inbuf, uintptr_t incount, yaksa_type_t type, uintptr_t inoffset, void *outbuf,
               uintptr_t max_pack_bytes, uintptr_t *actual_pack_bytes, yaksa_info_t info, yaksa_op_t op);
int yaksa_unpack(const void *inbuf, uintptr_t insize, void *outbuf, uintptr_t outcount, yaksa_type_t type,
                 uintptr_t outoffset, uintptr_t *actual_unpack_bytes, yaksa_info_t info, yaksa_op_t op);

/* Return at once where a device does the work; the request is YAKSA_REQUEST__NULL if it is done. */
int yaksa_ipack(const void *inbuf, uintptr_t incount, yaksa_type_t type, uintptr_t inoffset, void *outbuf,
                uintptr_t max_pack_bytes, uintptr_t *actual_pack_bytes, yaksa_info_t info, yaksa_op_t op,
                yaksa_request_t *request);
int yaksa_iunpack(const void *inbuf, uintptr_t insize, void *outbuf, uintptr_t outcount, yaksa_type_t type,
                  uintptr_t outoffset, uintptr_t *actual_unpack_bytes, yaksa_info_t info, yaksa_op_t op,
                  yaksa_request_t *request);

/* Enqueue on the cudaStream_t that `stream` points to. Between buffers of the host they work like yaksa_pack and
 * yaksa_unpack. */
int yaksa_pack_stream(const void *inbuf, uintptr_t incount, yaksa_type_t type, uintptr_t inoffset, void *outbuf,
                      uintptr_t max_pack_bytes, uintptr_t *actual_pack_bytes, yaksa_info_t info, yaksa_op_t op,
                      void *stream);
int yaksa_unpack_stream(const void *inbuf, uintptr_t insize, void *outbuf, uintptr_t outcount, yaksa_type_t type,
                        uintptr_t outoffset, uintptr_t *actual_unpack_bytes, yaksa_info_t info, yaksa_op_t op,
                        void *stream);

/* Whether the call is done; if so, the request is gone. */
int yaksa_request_test(yaksa_request_t request, int *completed);
/* Waits; the request is gone. */
int yaksa_request_wait(yaksa_request_t request);

/* ---- I/O vectors ----
 *
 * Contiguous segments in the order of the type, joined where they touch inside an element. An array without gaps is one. */

/* How many segments there are. */
int yaksa_iov_len(uintptr_t count, yaksa_type_t type, uintptr_t *iov_len);
/* How many whole segments have `max_iov_bytes` together at most, and how many bytes those have. */
int yaksa_iov_len_max(uintptr_t count, yaksa_type_t type, uintptr_t max_iov_bytes, uintptr_t *iov_len,
                      uintptr_t *actual_iov_bytes);
/* Writes segments down, `max_iov_len` at most, without the first `iov_offset` of them. */
int yaksa_iov(const char *buf, uintptr_t count, yaksa_type_t type, uintptr_t iov_offset, struct iovec *iov,
              uintptr_t max_iov_len, uintptr_t *actual_iov_len);

/* ---- Flattening: a type as bytes, for another process with this library ---- */

int yaksa_flatten_size(yaksa_type_t type, uintptr_t *flattened_type_size);
int yaksa_flatten(yaksa_type_t type, void *flattened_type);
/* The new type is freed like any other. */
int yaksa_unflatten(yaksa_type_t *type, const void *flattened_type);

#ifdef __cplusplus
}
#endif

#endif
