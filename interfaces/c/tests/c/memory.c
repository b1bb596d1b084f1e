/* Allocations that fail from the n-th on, or one in n: every call returns its status, the bytes are right, and nothing is
 * printed. */
#include "../../../reserve/tests/failing.h"
#include <dtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, long found)
{
    long first = atomic_exchange(&from, -1), period = atomic_exchange(&every, -1);
    fprintf(stderr, "%s: found %ld, from %ld, every %ld: %s\n", what, found, first, period, dtc_message());
    exit(1);
}

enum { LIST = 3000, ROOM = 1 << 20 };
static char memory[ROOM], packed[ROOM], back[ROOM], flat[ROOM], text[ROOM];
static int64_t numbers[2 * LIST + 2];
static dtc_iovec pieces[8];
static long refusals;

/* Whether the call was carried out; any other answer than success and no memory is a failure. */
static int done(const char *what, int status)
{
    if (status != DTC_OK && status != DTC_ERROR_OUT_OF_MEMORY)
        fail(what, status);
    refusals += status != DTC_OK;
    return status == DTC_OK;
}

static void use(dtc_engine *engine, dtc_type *type)
{
    dtc_info info = { .size = sizeof info };
    int64_t bytes, number, waiting;
    if (!done("commit", dtc_type_commit(type, 0)))
        return;
    /* The canonical form is made inside one of these, if there is memory; otherwise they go on without it. */
    for (int early = 0; early < 40; ++early)
        done("early pack", dtc_pack(type, memory, 1, 0, text, ROOM, &bytes, NULL));
    if (!done("query", dtc_type_query(type, &info)))
        return;
    memset(back, 0, ROOM);
    if (done("pack", dtc_pack(type, memory, 1, 0, packed, ROOM, &bytes, NULL))) {
        if (bytes != info.packed_size)
            fail("packed bytes", bytes);
        if (done("unpack", dtc_unpack(type, back, 1, 0, packed, bytes, &bytes, NULL)) && bytes != info.packed_size)
            fail("unpacked bytes", bytes);
    }
    done("compile", dtc_compile_pending(engine, 1000000, &waiting));
    if (done("pack again", dtc_pack(type, memory, 1, 0, text, ROOM, &bytes, NULL)) && memcmp(text, packed, bytes) != 0)
        fail("packed again", bytes);
    if (done("iov", dtc_iov(type, memory, 1, 0, 0, pieces, 8, &number, &bytes))
        && (number == 0 || memcmp(pieces[0].base, packed, pieces[0].length) != 0))
        fail("first piece", number);
    if (done("iov_at", dtc_iov_at(type, 1, info.packed_size / 2, &number, &bytes)) && number > info.blocks)
        fail("piece in the middle", number);
    done("border", dtc_element_border(type, 1, info.packed_size / 2, &bytes));
    done("explain", dtc_explain(type, text, ROOM, &bytes));
    done("external", dtc_pack_external(type, memory, 1, 0, text, ROOM, &bytes, NULL));
    if (done("flatten_size", dtc_flatten_size(type, &bytes)) && done("flatten", dtc_flatten(type, flat, ROOM))) {
        dtc_type *again;
        if (done("unflatten", dtc_unflatten(engine, flat, bytes, &again))) {
            dtc_info same = { .size = sizeof same };
            if (done("query", dtc_type_query(again, &same)) && same.packed_size != info.packed_size)
                fail("size of what was flattened", same.packed_size);
            done("release", dtc_type_release(again));
        }
    }
    /* A message, too. */
    if (dtc_pack(type, memory, -1, 0, packed, ROOM, &bytes, NULL) != DTC_ERROR_ARGUMENT || strlen(dtc_message()) < 10)
        fail("a wrong argument", 0);
}

static dtc_type *create(dtc_engine *engine, int combiner, int64_t count, int64_t addresses, dtc_type *child)
{
    const dtc_type *children[] = { child };
    dtc_type *made = NULL;
    int ok = done("create", dtc_type_create(engine, combiner, numbers, count, numbers + LIST + 1, addresses, children, 1, NULL, &made));
    return ok ? made : NULL;
}

static void all(int variant)
{
    dtc_config config = DTC_CONFIG_INIT;
    dtc_engine *engine;
    dtc_type *type;
    config.thread = DTC_THREAD_NONE;
    config.store_directory = "off";
    if (!done("init", dtc_init(&config, &engine)))
        return;
    if (done("named", dtc_type_named(engine, "MPI_INT", &type))) {
        dtc_type *made[3];
        memcpy(numbers, (int64_t[]){ 7 + variant, 2, 5 }, 24);
        made[0] = create(engine, DTC_COMBINER_VECTOR, 3, 0, type);
        numbers[0] = LIST;
        for (int at = 0; at < LIST; ++at) {
            numbers[1 + at] = 1 + (at * 7 + variant) % 5;
            numbers[1 + LIST + at] = at * 40 + (at * at + variant) % 9;
        }
        made[1] = create(engine, DTC_COMBINER_HINDEXED, 1 + LIST, LIST, type);
        numbers[0] = 20;
        made[2] = made[0] ? create(engine, DTC_COMBINER_HINDEXED, 21, 20, made[0]) : NULL;
        for (int at = 0; at < 3; ++at)
            if (made[at]) {
                use(engine, made[at]);
                done("release", dtc_type_release(made[at]));
            }
        done("release", dtc_type_release(type));
    }
    done("finalize", dtc_finalize(engine));
}

int main(void)
{
    for (int at = 0; at < ROOM; ++at)
        memory[at] = (char) (at * 31 + at / 251);
    /* Often enough for the library to start its thread, whose kernels are compiled meanwhile. */
    for (int again = 0; again < 100; ++again)
        all(0);
    calling = 1;
    long before = atomic_load(&calls);
    all(1);
    long each = atomic_load(&calls) - before;
    if (each < 100 || refusals > 0)
        fail("allocations of a run", each);
    int variant = 2;
    variant = fail_everywhere(all, variant, each, 200, 50);
    refusals = 0;
    all(variant);
    if (refusals > 0)
        fail("refusals with memory", refusals);
    printf("memory: %ld allocations a run\n", each);
    return 0;
}
