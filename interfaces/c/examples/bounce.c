/*
 * A message larger than the buffer that the network registered: it goes through in fragments, which the receiver unpacks in
 * any order. Packs need no state, so a lost fragment is packed again by its offset alone.
 */
#include "check.h"
#include <string.h>

enum { COUNT = 50, FRAGMENT = 1000 };

/* A particle with padding behind the flag and at the end. */
struct particle {
    double position[3];
    char flag;
    float charge;
};

int main(void) {
    dtc_engine *engine;
    CALL(dtc_init(NULL, &engine));
    dtc_type *real, *byte, *single, *particle;
    CALL(dtc_type_named(engine, "MPI_DOUBLE", &real));
    CALL(dtc_type_named(engine, "MPI_CHAR", &byte));
    CALL(dtc_type_named(engine, "MPI_FLOAT", &single));
    int64_t numbers[] = {3, 3, 1, 1};
    int64_t displacements[] = {offsetof(struct particle, position), offsetof(struct particle, flag),
                               offsetof(struct particle, charge)};
    const dtc_type *children[] = {real, byte, single};
    /* The bounds that the MPI gives its type. */
    dtc_facts facts = {sizeof(dtc_facts), 0, sizeof(struct particle), 3 * 8 + 1 + 4};
    CALL(dtc_type_create(engine, DTC_COMBINER_STRUCT, numbers, 4, displacements, 3, children, 3, &facts, &particle));
    CALL(dtc_type_commit(particle, DTC_COMMIT_EAGER));
    dtc_info info = DTC_INFO_INIT;
    CALL(dtc_type_query(particle, &info));
    int64_t total = COUNT * info.packed_size;

    struct particle sent[COUNT], received[COUNT];
    memset(sent, 0, sizeof sent);
    memset(received, 0x5a, sizeof received);
    for (int at = 0; at < COUNT; at++) {
        sent[at] = (struct particle){{at, at + 0.25, at + 0.5}, (char)at, -(float)at};
    }

    /* The last fragment first, every border inside a double. */
    char buffer[FRAGMENT];
    for (int64_t end = total; end > 0;) {
        int64_t offset = end > FRAGMENT ? end - FRAGMENT : 0, done;
        CALL(dtc_pack(particle, sent, COUNT, offset, buffer, end - offset, &done, NULL));
        EXPECT(done == end - offset);
        CALL(dtc_unpack(particle, received, COUNT, offset, buffer, done, &done, NULL));
        end = offset;
    }
    for (int at = 0; at < COUNT; at++) {
        EXPECT(memcmp(sent[at].position, received[at].position, sizeof sent[at].position) == 0);
        EXPECT(sent[at].flag == received[at].flag && sent[at].charge == received[at].charge);
        /* Padding is not of the type. */
        EXPECT(((unsigned char *)&received[at])[25] == 0x5a);
    }

    /* Fragments for a receiver that takes whole elements only: each ends at the border before the end of the buffer. */
    for (int64_t offset = 0, next; offset < total; offset = next) {
        int64_t end = offset + FRAGMENT < total ? offset + FRAGMENT : total;
        CALL(dtc_element_border(particle, COUNT, end, &next));
        EXPECT(next > offset && next <= end);
        int64_t within = next % info.packed_size;
        EXPECT(within == 0 || within == 8 || within == 16 || within == 24 || within == 25);
    }

    /* Or no buffer at all: where the bytes lie, 8 pieces at a time. */
    int64_t pieces, bytes, listed = 0;
    CALL(dtc_iov_len(particle, COUNT, -1, &pieces, &bytes));
    EXPECT(bytes == total);
    for (int64_t first = 0; first < pieces;) {
        dtc_iovec iov[8];
        int64_t found;
        CALL(dtc_iov(particle, sent, COUNT, first, 0, iov, 8, &found, &bytes));
        EXPECT((char *)iov[0].base >= (char *)sent && (char *)iov[0].base < (char *)(sent + COUNT));
        first += found;
        listed += bytes;
    }
    EXPECT(listed == total);

    CALL(dtc_type_release(real));
    CALL(dtc_type_release(byte));
    CALL(dtc_type_release(single));
    CALL(dtc_type_release(particle));
    CALL(dtc_finalize(engine));
    printf("bounce: %d particles in fragments of %d bytes\n", COUNT, FRAGMENT);
    return 0;
}
