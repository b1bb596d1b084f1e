/*
 * What Open MPI's convertor needs of a datatype engine, over libdtc: two advance functions. The number of bytes that were
 * converted is the whole state of a convertor; its stack is not used.
 *
 * The names below are those of Open MPI (opal/datatype/opal_convertor.h), cut down to what the two functions touch.
 */
#include "check.h"
#include <string.h>
#include <sys/uio.h>

/* In opal_datatype_t, set by opal_datatype_commit. */
typedef struct {
    dtc_type *plan;
} datatype;

typedef struct {
    const datatype *description;
    unsigned char *base;
    int64_t count;
    int64_t total;      /* local_size */
    int64_t converted;  /* bConverted */
    int completed;      /* CONVERTOR_COMPLETED in flags */
    dtc_transfer where; /* CONVERTOR_ACCELERATOR in flags, and the stream */
} convertor;

static void prepare(convertor *self, const datatype *description, int64_t count, void *base) {
    dtc_info info = DTC_INFO_INIT;
    CALL(dtc_type_query(description->plan, &info));
    *self = (convertor){.description = description, .base = base, .count = count, .total = count * info.packed_size,
                        .where = DTC_TRANSFER_INIT};
    /* Known since the buffer was registered: nobody asks again. */
    self->where.memory = self->where.packed = DTC_MEMORY_HOST;
    self->completed = self->total == 0;
}

/* opal_convertor_set_position: nothing is walked. */
static void set_position(convertor *self, int64_t position) {
    self->converted = position < self->total ? position : self->total;
    self->completed = self->converted == self->total;
}

/* fAdvance of a send convertor: fills the buffers, tells how much, and whether that was all. -1 is an error. */
static int advance_pack(convertor *self, struct iovec *iov, uint32_t *buffers, size_t *max_data) {
    size_t packed = 0;
    uint32_t used = 0;
    for (; used < *buffers && !self->completed; used++) {
        int64_t done;
        if (iov[used].iov_base == NULL) {
            /* The caller takes the address of contiguous data instead of a copy. */
            dtc_iovec piece;
            int64_t number, skip, found;
            if (dtc_iov_at(self->description->plan, self->count, self->converted, &number, &skip) != DTC_OK ||
                dtc_iov(self->description->plan, self->base, self->count, number, skip, &piece, 1, &found, &done) !=
                    DTC_OK) {
                return -1;
            }
            if ((size_t)done > iov[used].iov_len) {
                done = (int64_t)iov[used].iov_len;
            }
            iov[used].iov_base = piece.base;
        } else if (dtc_pack(self->description->plan, self->base, self->count, self->converted, iov[used].iov_base,
                            (int64_t)iov[used].iov_len, &done, &self->where) != DTC_OK) {
            return -1;
        }
        iov[used].iov_len = (size_t)done;
        packed += (size_t)done;
        set_position(self, self->converted + done);
    }
    *buffers = used;
    *max_data = packed;
    return self->completed;
}

/* fAdvance of a receive convertor. Fragments may arrive in any order, cut anywhere: set_position comes before each. */
static int advance_unpack(convertor *self, const struct iovec *iov, uint32_t *buffers, size_t *max_data) {
    size_t unpacked = 0;
    uint32_t used = 0;
    for (; used < *buffers && !self->completed; used++) {
        int64_t done;
        if (dtc_unpack(self->description->plan, self->base, self->count, self->converted, iov[used].iov_base,
                       (int64_t)iov[used].iov_len, &done, &self->where) != DTC_OK) {
            return -1;
        }
        unpacked += (size_t)done;
        set_position(self, self->converted + done);
    }
    *buffers = used;
    *max_data = unpacked;
    return self->completed;
}

int main(void) {
    enum { ROWS = 64, COLUMNS = 64, PART = 37, FIRST = 20 };
    dtc_engine *engine;
    CALL(dtc_init(NULL, &engine));
    dtc_type *element;
    datatype box;
    CALL(dtc_type_named(engine, "MPI_INT", &element));
    int64_t numbers[] = {2, ROWS, COLUMNS, PART, PART, 5, FIRST, DTC_ORDER_C};
    const dtc_type *children[] = {element};
    CALL(dtc_type_create(engine, DTC_COMBINER_SUBARRAY, numbers, 8, NULL, 0, children, 1, NULL, &box.plan));
    CALL(dtc_type_commit(box.plan, 0));

    static int sent[ROWS][COLUMNS], received[ROWS][COLUMNS];
    for (int at = 0; at < ROWS * COLUMNS; at++) {
        (&sent[0][0])[at] = at;
    }

    /* Fragments of two buffers that cut elements, kept until the last one was packed. */
    convertor sender, receiver;
    prepare(&sender, &box, 1, sent);
    prepare(&receiver, &box, 1, received);
    static unsigned char wire[PART * PART * sizeof(int)];
    size_t lengths[sizeof wire / 100 + 1];
    int fragments = 0, completed = 0;
    for (size_t at = 0; !completed; fragments++) {
        struct iovec iov[2] = {{wire + at, 101}, {wire + at + 101, 50}};
        uint32_t buffers = 2;
        if (sizeof wire - at < 151) {
            iov[0].iov_len = sizeof wire - at;
            buffers = 1;
        }
        completed = advance_pack(&sender, iov, &buffers, &lengths[fragments]);
        EXPECT(completed >= 0);
        at += lengths[fragments];
    }
    /* They arrive in reverse. */
    size_t end = sizeof wire;
    for (int fragment = fragments - 1; fragment >= 0; fragment--) {
        size_t length = lengths[fragment], max_data;
        uint32_t buffers = 1;
        struct iovec iov = {wire + end - length, length};
        end -= length;
        set_position(&receiver, (int64_t)end);
        EXPECT(advance_unpack(&receiver, &iov, &buffers, &max_data) >= 0 && max_data == length);
    }
    for (int row = 0; row < ROWS; row++) {
        for (int at = 0; at < COLUMNS; at++) {
            int inside = row >= 5 && row < 5 + PART && at >= FIRST && at < FIRST + PART;
            EXPECT(received[row][at] == (inside ? sent[row][at] : 0));
        }
    }

    /* Rendezvous asks for the address of what is contiguous: the rest of the second row. */
    set_position(&sender, (PART + 2) * (int64_t)sizeof(int));
    struct iovec direct = {NULL, 1 << 20};
    uint32_t buffers = 1;
    size_t max_data;
    EXPECT(advance_pack(&sender, &direct, &buffers, &max_data) == 0);
    EXPECT(direct.iov_base == &sent[6][FIRST + 2] && max_data == (PART - 2) * sizeof(int));

    CALL(dtc_type_release(element));
    CALL(dtc_type_release(box.plan));
    CALL(dtc_finalize(engine));
    printf("convertor: %d fragments, unpacked in reverse\n", fragments);
    return 0;
}
