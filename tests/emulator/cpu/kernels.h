// Behind a kernel text: runs blocks one after the other, and the threads of a block in turn or, where they wait for each
// other, as fibers.
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "stop.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace shim {

struct Fiber {
    Stop stop;
    char *stack;
    enum { RUNS, AT_EXCHANGE, AT_BARRIER, ENDED } state;
    unsigned exchanges;
};

inline Fiber fibers[1024];
inline Stop scheduler;
inline Fiber *current;
inline void (*kernel)(void **);
inline void **arguments;

void fail(const char *message) {
    fprintf(stderr, "emulator: %s\n", message);
    abort();
}

void barrier() {
    current->state = Fiber::AT_BARRIER;
    current->stop.go_to(scheduler);
}

// A warp goes on when every lane has brought its value. The first lane may bring its next value before the last has read this one,
// hence two sets in turn.
inline unsigned long long brought[2][1024];

Lanes exchange(Exchange, unsigned, unsigned long long value) {
    const unsigned set = current->exchanges++ % 2, first = threadIdx.x / 32 * 32;
    brought[set][threadIdx.x] = value;
    current->state = Fiber::AT_EXCHANGE;
    current->stop.go_to(scheduler);
    unsigned present = 0;
    for (unsigned lane = 0; lane < 32 && first + lane < blockDim.x; lane++) present |= 1u << lane;
    return {brought[set] + first, present};
}

int lane() { return threadIdx.x % 32; }

inline void fiber_main() {
    for (;;) {
        kernel(arguments);
        current->state = Fiber::ENDED;
        current->stop.go_to(scheduler);
    }
}

// Lets those go on that all wait for each other: the lanes of a warp, or else the threads of the block. False if all have ended.
inline bool release(unsigned threads) {
    bool released = false, left = false;
    for (unsigned first = 0; first < threads; first += 32) {
        bool together = true, any = false;
        for (unsigned at = first; at < threads && at < first + 32; at++) {
            together &= fibers[at].state == Fiber::AT_EXCHANGE || fibers[at].state == Fiber::ENDED;
            any |= fibers[at].state == Fiber::AT_EXCHANGE;
            left |= fibers[at].state != Fiber::ENDED;
        }
        for (unsigned at = first; together && any && at < threads && at < first + 32; at++)
            if (fibers[at].state == Fiber::AT_EXCHANGE) fibers[at].state = Fiber::RUNS;
        released |= together && any;
    }
    for (unsigned at = 0; !released && at < threads; at++) {
        if (fibers[at].state == Fiber::AT_EXCHANGE) fail("lanes of a warp wait for different operations");
        if (fibers[at].state == Fiber::AT_BARRIER) fibers[at].state = Fiber::RUNS;
    }
    return left;
}

inline void run_together(unsigned threads) {
    const unsigned long size = 1 << 16;
    for (unsigned at = 0; at < threads; at++) {
        Fiber &fiber = fibers[at];
        if (!fiber.stack) {
            fiber.stack = (char *)malloc(size);
            fiber.stop.begin(fiber.stack, size, fiber_main);
        }
        fiber.state = Fiber::RUNS;
        fiber.exchanges = 0;
    }
    do {
        for (unsigned at = 0; at < threads; at++) {
            if (fibers[at].state != Fiber::RUNS) continue;
            threadIdx = {at, 0, 0};
            current = &fibers[at];
            scheduler.go_to(current->stop);
        }
    } while (release(threads));
}

} // namespace shim

template <auto kernel> struct Run;

template <class... Parameters, void (*kernel)(Parameters...)> struct Run<kernel> {
    static void with(void **parameters) {
        // Braces around the arguments fix the order in which they are taken.
        Run{*(Parameters *)*parameters++...};
    }
    Run(Parameters... parameters) { kernel(parameters...); }
};

extern "C" void run(void (*kernel)(void **), void **arguments, unsigned blocks, unsigned threads) {
    blockDim = {threads, 1, 1};
    gridDim = {blocks, 1, 1};
    shim::kernel = kernel;
    shim::arguments = arguments;
    for (unsigned block = 0; block < blocks; block++) {
        blockIdx = {block, 0, 0};
        if (COOPERATES) {
            shim::run_together(threads);
            continue;
        }
        for (unsigned thread = 0; thread < threads; thread++) {
            threadIdx = {thread, 0, 0};
            kernel(arguments);
        }
    }
}
