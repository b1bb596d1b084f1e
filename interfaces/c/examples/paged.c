/*
 * Pages of a cache, gathered by a list that comes with the call, and scattered to pages of another list: the type is made once,
 * whatever the lists hold.
 */
#include "check.h"

enum { LAYERS = 3, PAGES = 16, PAGE = 512, LISTED = 4 };

static double cache[LAYERS][PAGES][PAGE], restored[LAYERS][PAGES][PAGE];

int main(void) {
    dtc_engine *engine;
    dtc_tabled_type *pages;
    CALL(dtc_init(NULL, &engine));
    for (int at = 0; at < LAYERS * PAGES * PAGE; at++) {
        (&cache[0][0][0])[at] = at;
    }

    /* Table 0 lists at most 8 of 16 places of 4,096 bytes; so for each of 3 layers, 65,536 bytes apart. */
    CALL(dtc_tabled_create(engine, "hvector 3 1 65536 (table 0 16 8 4096 (contiguous 512 double))", &pages));

    int32_t from[LISTED] = {9, 2, 11, 0}, to[LISTED] = {1, 3, 5, 7};
    dtc_index_table listed = {from, LISTED, sizeof(int32_t), DTC_MEMORY_HOST, 0, 0}, others = listed;
    others.entries = to;
    int64_t lengths[] = {LISTED}, size, done;
    CALL(dtc_tabled_size(pages, lengths, 1, &size));
    EXPECT(size == LAYERS * LISTED * PAGE * (int64_t)sizeof(double));

    static double packed[LAYERS][LISTED][PAGE];
    dtc_tabled_elements source = {pages, cache, &listed, 1, 0, 0, NULL};
    dtc_tabled_elements target = {pages, restored, &others, 1, 0, 0, NULL};
    CALL(dtc_tabled_pack(&source, packed, size, &done, NULL));
    EXPECT(done == size);
    CALL(dtc_tabled_unpack(packed, size, &target, &done, NULL));
    for (int layer = 0; layer < LAYERS; layer++) {
        for (int page = 0; page < LISTED; page++) {
            EXPECT(packed[layer][page][7] == cache[layer][from[page]][7]);
            EXPECT(restored[layer][to[page]][7] == cache[layer][from[page]][7]);
        }
    }

    /* The same without packed bytes. */
    CALL(dtc_tabled_copy(&source, &target, size, &done, NULL));

    from[1] = PAGES;
    EXPECT(dtc_tabled_pack(&source, packed, size, NULL, NULL) == DTC_ERROR_ARGUMENT);
    printf("paged: %s\n", dtc_message());
    CALL(dtc_tabled_release(pages));
    CALL(dtc_finalize(engine));
    return 0;
}
