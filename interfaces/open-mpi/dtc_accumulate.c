/*
 * Reductions of one-sided calls (MPI_Accumulate, MPI_Get_accumulate and their like) on datatypes with gaps: dtc packs elements of the
 * window into a buffer, Open MPI computes there, and dtc unpacks them again. So the result has the same bytes as without dtc, for
 * every operation and every element that Open MPI has. Compiled into libopen-pal; libmpi calls it by dtc_ompi_accumulate.h.
 */
#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>

#include "opal/constants.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/dtc_convertor.h"
#include "opal/datatype/opal_datatype.h"

#include "opal/datatype/dtc.h"

/* Bytes that Open MPI computes at once. The packed elements of both sides and the memory around them fit the first-level cache. */
enum { PIECE = 8192 };

static const dtc_transfer host = {.size = sizeof(dtc_transfer), .memory = DTC_MEMORY_HOST, .packed = DTC_MEMORY_HOST};

/* Elements of one side: by a type, or contiguous bytes if that is null. */
typedef struct {
    const dtc_type *type;
    char *memory;
    int64_t count;
} side;

/* Whether a side can be moved by dtc, or need not be moved. */
static int read_side(const dtc_opal_elements *elements, size_t bytes, side *read) {
    const opal_datatype_t *datatype = elements->datatype;
    *read = (side){NULL, elements->memory, (int64_t)elements->count};
    if (datatype == NULL) {
        return 1;
    }
    if ((datatype->flags & OPAL_DATATYPE_FLAG_NO_GAPS) ||
        ((datatype->flags & OPAL_DATATYPE_FLAG_CONTIGUOUS) && elements->count == 1)) {
        read->memory += datatype->true_lb;
        return 1;
    }
    read->type = dtc_opal_accumulating_type(datatype, bytes);
    return read->type != NULL;
}

/* Bytes of a side from an offset on: where they are, or packed into the buffer; null if that fails. */
static char *packed(const side *from, int64_t offset, int64_t bytes, char *buffer) {
    if (from->type == NULL) {
        return from->memory + offset;
    }
    return dtc_pack(from->type, from->memory, from->count, offset, buffer, bytes, NULL, &host) == DTC_OK ? buffer : NULL;
}

int dtc_opal_accumulate(const dtc_opal_elements *origin, const dtc_opal_elements *target, const dtc_opal_operation *operation) {
    const opal_datatype_t *element = operation->element;
    side from, to;
    if (element == NULL || !(element->flags & OPAL_DATATYPE_FLAG_NO_GAPS) || element->size == 0 || element->size > PIECE) {
        return 0;
    }
    size_t bytes = target->datatype->size * target->count;
    if ((origin->datatype != NULL && origin->datatype->size * origin->count != bytes) || !read_side(target, bytes, &to) ||
        !read_side(origin, bytes, &from) || (to.type == NULL && from.type == NULL)) {
        return 0;
    }
    _Alignas(64) char ours[PIECE], theirs[PIECE];
    int64_t whole = (int64_t)(PIECE / element->size * element->size), length = (int64_t)bytes;
    for (int64_t done = 0; done < length; done += whole) {
        int64_t piece = length - done < whole ? length - done : whole;
        char *incoming = packed(&from, done, piece, theirs), *present = packed(&to, done, piece, ours);
        if (incoming == NULL || present == NULL) {
            return done > 0 ? OPAL_ERROR : 0;
        }
        operation->reduce(operation, incoming, present, (size_t)piece / element->size);
        if (to.type != NULL && dtc_unpack(to.type, to.memory, to.count, done, ours, piece, NULL, &host) != DTC_OK) {
            return done > 0 ? OPAL_ERROR : 0;
        }
    }
    return 1;
}
