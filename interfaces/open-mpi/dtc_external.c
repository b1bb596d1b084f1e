/*
 * MPI_Pack_external and MPI_Unpack_external: dtc converts datatypes whose values all have the same number of bytes, and reads and
 * writes them in any place at once. Open MPI converts each value by a call. The other datatypes are Open MPI's.
 */
#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>

#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/dtc_convertor.h"
#include "opal/datatype/opal_datatype.h"

#include "opal/datatype/dtc.h"

static const dtc_transfer host = {.size = sizeof(dtc_transfer), .memory = DTC_MEMORY_HOST, .packed = DTC_MEMORY_HOST};

/* Whether dtc has converted the bytes of a convertor, all of which are in one buffer. */
static int converted(const opal_convertor_t *convertor, const struct iovec *packed, uint32_t buffers) {
    dtc_opal_external_elements of;
    if (buffers != 1 || packed->iov_len != convertor->local_size || !dtc_opal_external(convertor, &of)) {
        return 0;
    }
    int64_t length = (int64_t)packed->iov_len, done = 0;
    int status = convertor->flags & CONVERTOR_SEND
                     ? dtc_pack_external(of.type, of.memory, of.count, 0, packed->iov_base, length, &done, &host)
                     : dtc_unpack_external(of.type, of.memory, of.count, 0, packed->iov_base, length, &done, &host);
    return status == DTC_OK && done == length;
}

/* The state of a convertor that has converted all. */
static int32_t complete(opal_convertor_t *convertor, size_t *length) {
    *length = convertor->bConverted = convertor->local_size;
    convertor->flags |= CONVERTOR_COMPLETED;
    return 1;
}

int32_t dtc_opal_pack_external(opal_convertor_t *convertor, struct iovec *iov, uint32_t *buffers, size_t *length) {
    return converted(convertor, iov, *buffers) ? complete(convertor, length) : opal_convertor_pack(convertor, iov, buffers, length);
}

int32_t dtc_opal_unpack_external(opal_convertor_t *convertor, struct iovec *iov, uint32_t *buffers, size_t *length) {
    return converted(convertor, iov, *buffers) ? complete(convertor, length) : opal_convertor_unpack(convertor, iov, buffers, length);
}
