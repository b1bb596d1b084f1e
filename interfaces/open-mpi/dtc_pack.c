/*
 * MPI_Pack and MPI_Unpack of host memory, if dtc serves the datatype or its bytes are contiguous. To prepare a convertor takes as long as
 * to copy 1 KiB (bench/results/2026-11-28-open-mpi.md).
 */
#include "opal_config.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/dtc_convertor.h"
#include "opal/datatype/opal_datatype.h"

#include "opal/datatype/dtc.h"

static const dtc_transfer host = {.size = sizeof(dtc_transfer), .memory = DTC_MEMORY_HOST, .packed = DTC_MEMORY_HOST};

/* The bytes of a call, 0 if it is left to Open MPI, which has an error for too little room. */
static size_t bytes_of(const opal_datatype_t *datatype, size_t count, int room, int position) {
    size_t bytes;
    int fits = !__builtin_mul_overflow(datatype->size, count, &bytes) && position >= 0 && room >= position
               && bytes <= (size_t)(room - position);
    return fits && dtc_opal_serves_calls() ? bytes : 0;
}

static int is_contiguous(const opal_datatype_t *datatype, size_t count) {
    return (datatype->flags & OPAL_DATATYPE_FLAG_NO_GAPS) || ((datatype->flags & OPAL_DATATYPE_FLAG_CONTIGUOUS) && count == 1);
}

int dtc_opal_pack_at_once(const opal_datatype_t *datatype, size_t count, const void *memory, void *packed, int room, int *position) {
    size_t bytes = bytes_of(datatype, count, room, *position);
    char *to = (char *)packed + *position;
    if (bytes == 0) {
        return 0;
    }
    if (is_contiguous(datatype, count)) {
        memcpy(to, (const char *)memory + datatype->true_lb, bytes);
    } else {
        const dtc_type *type = dtc_opal_host_type(datatype, 0);
        if (type == NULL || dtc_pack(type, memory, (int64_t)count, 0, to, (int64_t)bytes, NULL, &host) != DTC_OK) {
            return 0;
        }
    }
    *position += (int)bytes;
    return 1;
}

int dtc_opal_unpack_at_once(const opal_datatype_t *datatype, size_t count, void *memory, const void *packed, int room, int *position) {
    size_t bytes = bytes_of(datatype, count, room, *position);
    const char *from = (const char *)packed + *position;
    if (bytes == 0) {
        return 0;
    }
    if (is_contiguous(datatype, count)) {
        memcpy((char *)memory + datatype->true_lb, from, bytes);
    } else {
        const dtc_type *type = dtc_opal_host_type(datatype, 1);
        if (type == NULL || dtc_unpack(type, memory, (int64_t)count, 0, from, (int64_t)bytes, NULL, &host) != DTC_OK) {
            return 0;
        }
    }
    *position += (int)bytes;
    return 1;
}

int dtc_opal_least_joined(const opal_datatype_t *datatype, size_t count, int least) {
    return count >= (size_t)least && dtc_opal_serves_elements(datatype, count) ? INT_MAX : least;
}
