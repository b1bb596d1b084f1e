/*
 * What libmpi calls at the places in osc/base where `patch` puts the calls: a reduction of a one-sided call on dtc_accumulate.c.
 */
#ifndef DTC_OMPI_ACCUMULATE_H
#define DTC_OMPI_ACCUMULATE_H

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/op/op.h"

#include "opal/datatype/dtc_convertor.h"

/* An operation of Open MPI on a predefined datatype. */
typedef struct {
    dtc_opal_operation by_dtc;
    ompi_op_t *operation;
    ompi_datatype_t *element;
} dtc_ompi_operation;

static inline void dtc_ompi_reduce(const dtc_opal_operation *by_dtc, void *incoming, void *present, size_t elements) {
    const dtc_ompi_operation *self = (const dtc_ompi_operation *)by_dtc;
    ompi_op_reduce(self->operation, incoming, present, (int)elements, self->element);
}

/* Elements of one side of a one-sided call. Packed bytes have no datatype. */
static inline dtc_opal_elements dtc_ompi_elements(const ompi_datatype_t *datatype, int32_t count, const void *memory) {
    return (dtc_opal_elements){datatype == NULL ? NULL : &datatype->super, count < 0 ? 0 : (size_t)count, (char *)memory};
}

/* 1 if dtc moved the elements and Open MPI computed them, 0 if Open MPI has to do both, or an error of Open MPI. */
static inline int dtc_ompi_accumulate(dtc_opal_elements origin, dtc_opal_elements target, ompi_datatype_t *element, ompi_op_t *operation) {
    dtc_ompi_operation self = {{dtc_ompi_reduce, element == NULL ? NULL : &element->super}, operation, element};
    return dtc_opal_accumulate(&origin, &target, &self.by_dtc);
}

#endif
