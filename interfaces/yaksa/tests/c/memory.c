/* Allocations that fail from the n-th on, or one in n: every call returns its status, the bytes are right, and nothing is
 * printed. */
#define _GNU_SOURCE
#include "../../../reserve/tests/failing.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaksa.h>

static void fail(const char *what, long found)
{
    char text[200];
    atomic_store(&from, -1);
    atomic_store(&every, -1);
    snprintf(text, sizeof text, "%s: found %ld, from %ld, every %ld\n", what, found, (long) from, (long) every);
    fputs(text, stdout);
    exit(1);
}

enum { LIST = 3000, ROOM = 1 << 20 };
static char memory[ROOM], packed[ROOM], back[ROOM], flat[ROOM];
static int64_t lengths[LIST], places[LIST];
static struct iovec pieces[8];
static long answered, refusals;

/* Whether the call was carried out; any other answer than success and no memory is a failure. */
static int done(const char *what, int status)
{
    if (status != YAKSA_SUCCESS && status != YAKSA_ERR__OUT_OF_MEM)
        fail(what, status);
    status == YAKSA_SUCCESS ? ++answered : ++refusals;
    return status == YAKSA_SUCCESS;
}

static void use(yaksa_type_t type)
{
    uintptr_t size, bytes, count;
    if (!done("size", yaksa_type_get_size(type, &size)) || size > ROOM)
        fail("size", (long) size);
    /* The type is committed inside one of these. */
    for (int early = 0; early < 40; ++early)
        done("early pack", yaksa_pack(memory, 1, type, 0, back, size, &bytes, NULL, YAKSA_OP__REPLACE));
    memset(packed, 0, size);
    if (done("pack", yaksa_pack(memory, 1, type, 0, packed, size, &bytes, NULL, YAKSA_OP__REPLACE))) {
        if (bytes != size)
            fail("packed bytes", (long) bytes);
        memset(back, 0, ROOM);
        if (done("unpack", yaksa_unpack(packed, size, back, 1, type, 0, &bytes, NULL, YAKSA_OP__REPLACE)) && bytes != size)
            fail("unpacked bytes", (long) bytes);
    }
    if (done("iov_len_max", yaksa_iov_len_max(1, type, size / 2, &count, &bytes)) && bytes > size / 2)
        fail("iov bytes", (long) bytes);
    if (done("iov", yaksa_iov(memory, 1, type, 0, pieces, 8, &count))
        && (count == 0 || memcmp(pieces[0].iov_base, packed, pieces[0].iov_len) != 0))
        fail("first piece", (long) count);
    if (done("flatten_size", yaksa_flatten_size(type, &bytes)) && bytes <= ROOM
        && done("flatten", yaksa_flatten(type, flat))) {
        yaksa_type_t again;
        if (done("unflatten", yaksa_unflatten(&again, flat))) {
            uintptr_t same;
            if (!done("size", yaksa_type_get_size(again, &same)) || same != size)
                fail("size of what was flattened", (long) same);
            done("free", yaksa_type_free(again));
        }
    }
}

static void all(int variant)
{
    yaksa_type_t vector, list, blocks, fields, moved;
    for (int at = 0; at < LIST; ++at) {
        lengths[at] = 1 + (at * 7 + variant) % 5;
        places[at] = at * 40 + (at * at + variant) % 9;
    }
    if (done("vector", yaksa_type_create_vector(7 + variant, 2, 5, YAKSA_TYPE__INT, NULL, &vector))) {
        use(vector);
        if (done("indexed", yaksa_type_create_hindexed(20, lengths, places, vector, NULL, &moved))) {
            done("free", yaksa_type_free(moved));
        }
        done("free", yaksa_type_free(vector));
    }
    if (done("hindexed", yaksa_type_create_hindexed(LIST, lengths, places, YAKSA_TYPE__INT, NULL, &list))) {
        use(list);
        done("free", yaksa_type_free(list));
    }
    if (done("hindexed_block", yaksa_type_create_hindexed_block(LIST, 1, places, YAKSA_TYPE__DOUBLE, NULL, &blocks))) {
        int64_t two[2] = { 1, 1 }, apart[2] = { 0, 200000 };
        yaksa_type_t both[2] = { blocks, YAKSA_TYPE__SHORT_INT };
        use(blocks);
        if (done("struct", yaksa_type_create_struct(2, two, apart, both, NULL, &fields))) {
            use(fields);
            done("free", yaksa_type_free(fields));
        }
        done("free", yaksa_type_free(blocks));
    }
}

int main(void)
{
    for (int at = 0; at < ROOM; ++at)
        memory[at] = (char) (at * 31 + at / 251);
    if (yaksa_init(NULL) != YAKSA_SUCCESS)
        return 2;
    /* Often enough for the library to start its thread, whose kernels are compiled meanwhile. */
    for (int again = 0; again < 100; ++again)
        all(0);
    calling = 1;
    long before = atomic_load(&calls);
    all(1);
    long each = atomic_load(&calls) - before;
    if (each < 100 || refusals > 0)
        fail("allocations of a run", each);
    /* Types that were never seen, so that each run makes everything. */
    fail_everywhere(all, 2, each, 300, 60);
    /* What was held under failures is used when there is memory again. */
    refusals = 0;
    all(1001);
    if (refusals > 0)
        fail("refusals with memory", refusals);
    return yaksa_finalize();
}
