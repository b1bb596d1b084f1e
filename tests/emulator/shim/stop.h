// A suspended stack.
#pragma once

#include <csetjmp>
#include <ucontext.h>

namespace shim {

/// State of a suspended stack. `swapcontext` asks the kernel for the signal mask each time, which costs more than all
/// else, so it only begins a fiber. The address sanitizer knows `swapcontext`, and takes a long jump for an unwinding.
struct Stop {
    ucontext_t context;
    jmp_buf jump;
    bool jumps = false;

    /// Prepares it to begin `main` on `stack`, which never returns.
    void begin(void *stack, size_t size, void (*main)()) {
        getcontext(&context);
        context.uc_stack.ss_sp = stack;
        context.uc_stack.ss_size = size;
        context.uc_link = nullptr;
        makecontext(&context, main, 0);
    }

    void go_to(Stop &other) {
#ifndef __SANITIZE_ADDRESS__
        jumps = true;
        if (_setjmp(jump) != 0) return;
        if (other.jumps) _longjmp(other.jump, 1);
        setcontext(&other.context);
#else
        swapcontext(&context, &other.context);
#endif
    }
};

} // namespace shim
