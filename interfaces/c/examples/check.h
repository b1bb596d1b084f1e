/* What the examples share: a call that must succeed, and a fact that must hold. */
#ifndef CHECK_H
#define CHECK_H

#include <dtc.h>
#include <stdio.h>
#include <stdlib.h>

#define CALL(call)                                                                                              \
    do {                                                                                                        \
        if ((call) != DTC_OK) {                                                                                 \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, dtc_message());                       \
            exit(1);                                                                                            \
        }                                                                                                       \
    } while (0)

#define EXPECT(fact)                                                                                            \
    do {                                                                                                        \
        if (!(fact)) {                                                                                          \
            fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #fact);                                 \
            exit(1);                                                                                            \
        }                                                                                                       \
    } while (0)

#endif
