// Runs compiled kernel texts: reads cases from a file, and reports each on one line of the output.
//
//     driver CASES FIRST      runs the cases from number FIRST on; ends early, without a line, where a case kills it
//
// In a checked build the texts are compiled with `-fsanitize=thread`, so that g++ inserts a call at every load and
// store. The calls lead here instead of to the sanitizer's library, and each is checked against the case.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <csignal>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include "cuda_on_cpu.h"
#include "stop.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

extern "C" char __executable_start, _end;

namespace {

constexpr uintptr_t PAGE = 4096;
#ifdef __SANITIZE_ADDRESS__
// The sanitizer clears its shadow of a stack at every switch.
constexpr size_t STACK = 1 << 16;
#else
constexpr size_t STACK = 1 << 18;
#endif
constexpr unsigned MOST_THREADS = 1024;
constexpr uint8_t READ = 1, WRITE = 2, ANY_AFTER = 4, STORED = 8;

struct Shared {
    uintptr_t start;
    size_t length;
    std::string name;
};

struct Kernel {
    void (*call)(const shim::Launch &);
};

std::vector<Kernel> &kernels() {
    static std::vector<Kernel> all;
    return all;
}

unsigned case_number;
unsigned limit_seconds;

/// Reports the outcome of the case in one write, so that a later crash cannot remove it.
void say(const std::string &line) {
    std::string text = std::to_string(case_number) + " " + line + "\n";
    if (write(1, text.data(), text.size()) < 0) _exit(3);
}

/// Ends the case. The parent process starts this program again with the next case.
[[noreturn]] void fault(const std::string &message, const void *site = nullptr) {
    char where[160];
    snprintf(where, sizeof where, "0x%zx thread (%u, %u, %u) of block (%u, %u, %u): ", (size_t)site, threadIdx.x,
             threadIdx.y, threadIdx.z, blockIdx.x, blockIdx.y, blockIdx.z);
    say("fault " + std::string(where) + message);
    _exit(1);
}

// ---- buffers

/// Part of a buffer by positions, which for memory are displacements.
struct Range {
    int64_t position;
    size_t length;
    uint8_t access;
    const uint8_t *before, *after;
};

/// A buffer of which only some pages can be touched, and of those only some bytes may be.
struct Buffer {
    const char *name;
    std::vector<Range> ranges;
    uint8_t *reserved = nullptr, *shadow = nullptr, *origin = nullptr;
    size_t length = 0;
    /// Number of loads and stores, by the binary logarithm of their width.
    uint64_t accesses[2][5] = {};
    /// Bytes that were stored more than once.
    uint64_t stored_again = 0;

    static uint8_t poison(uintptr_t address) { return (uint8_t)(0xa7 ^ address * 29 ^ address >> 8); }

    /// Calls `visit(start, end)` for each range of pages that hold some bytes.
    template <class Visit> void each_stretch(Visit visit) const {
        uintptr_t start = 0, end = 0;
        for (const Range &range : ranges) {
            uintptr_t from = (uintptr_t)(origin + range.position) / PAGE * PAGE;
            uintptr_t to = ((uintptr_t)(origin + range.position) + range.length + PAGE - 1) / PAGE * PAGE;
            if (from > end) {
                if (end > start) visit(start, end);
                start = from;
            }
            if (to > end) end = to;
        }
        if (end > start) visit(start, end);
    }

    void map(uintptr_t alignment, bool checked) {
        int64_t low = ranges.empty() ? 0 : ranges.front().position;
        int64_t high = ranges.empty() ? 0 : ranges.back().position + (int64_t)ranges.back().length;
        length = (size_t)(high - low) + 3 * PAGE;
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        reserved = (uint8_t *)mmap(nullptr, length, PROT_NONE, flags, -1, 0);
        if (reserved == MAP_FAILED) fault(std::string("no address space for ") + name);
        origin = reserved + PAGE + (alignment + (uintptr_t)low) % PAGE - low;
        bool writable = false;
        each_stretch([&](uintptr_t start, uintptr_t end) {
            if (mprotect((void *)start, end - start, PROT_READ | PROT_WRITE) != 0) fault("too many stretches of pages");
            for (uintptr_t at = start; at < end; at++) *(uint8_t *)at = poison(at);
        });
        for (const Range &range : ranges) {
            memcpy(origin + range.position, range.before, range.length);
            writable |= (range.access & WRITE) != 0;
        }
        if (!writable) {
            each_stretch([](uintptr_t start, uintptr_t end) { mprotect((void *)start, end - start, PROT_READ); });
        }
        if (checked) {
            shadow = (uint8_t *)mmap(nullptr, length, PROT_READ | PROT_WRITE, flags, -1, 0);
            if (shadow == MAP_FAILED) fault(std::string("no address space for the shadow of ") + name);
            for (const Range &range : ranges) {
                memset(shadow + (origin + range.position - reserved), range.access, range.length);
            }
        }
#ifdef __SANITIZE_ADDRESS__
        each_stretch([](uintptr_t start, uintptr_t end) { ASAN_POISON_MEMORY_REGION((void *)start, end - start); });
        for (const Range &range : ranges) {
            if (range.access & (READ | WRITE)) {
                ASAN_UNPOISON_MEMORY_REGION(origin + range.position, range.length);
            }
        }
#endif
    }

    void unmap() {
        munmap(reserved, length);
        if (shadow) munmap(shadow, length);
    }

    bool holds(uintptr_t address) const { return address - (uintptr_t)reserved < length; }

    std::string place(uintptr_t address) const {
        return std::string(name) + " at " + std::to_string((int64_t)(address - (uintptr_t)origin));
    }

    void check(uintptr_t address, size_t width, bool store, const void *site) {
        uint8_t *allowed = shadow + (address - (uintptr_t)reserved);
        for (size_t at = 0; at < width; at++) {
            if (!(allowed[at] & (store ? WRITE : READ))) {
                fault(std::string(store ? "writes " : "reads ") + std::to_string(width) + " bytes of " +
                          place(address) + ", where byte " + std::to_string(at) + " may not be touched",
                      site);
            }
            if (store) {
                stored_again += (allowed[at] & STORED) != 0;
                allowed[at] |= STORED;
            }
        }
        accesses[store][width >= 16 ? 4 : width >= 8 ? 3 : width >= 4 ? 2 : width >= 2 ? 1 : 0]++;
    }

    [[noreturn]] void differs(uintptr_t address, uint8_t expected) const {
        char values[64];
        snprintf(values, sizeof values, " is %02x, expected %02x", *(uint8_t *)address, expected);
        say("fault 0x0 " + place(address) + values);
        _exit(1);
    }

    /// Compares every byte of the touched pages with its expected value.
    void compare() const {
#ifdef __SANITIZE_ADDRESS__
        each_stretch([](uintptr_t start, uintptr_t end) { ASAN_UNPOISON_MEMORY_REGION((void *)start, end - start); });
#endif
        size_t next = 0;
        each_stretch([&](uintptr_t start, uintptr_t end) {
            uintptr_t at = start;
            auto outside = [&](uintptr_t to) {
                for (; at < to; at++) {
                    if (*(uint8_t *)at != poison(at)) differs(at, poison(at));
                }
            };
            for (; next < ranges.size() && (uintptr_t)(origin + ranges[next].position) < end; next++) {
                const Range &range = ranges[next];
                outside((uintptr_t)(origin + range.position));
                if (!(range.access & ANY_AFTER) && memcmp((void *)at, range.after, range.length) != 0) {
                    for (size_t byte = 0; byte < range.length; byte++) {
                        if (((uint8_t *)at)[byte] != range.after[byte]) differs(at + byte, range.after[byte]);
                    }
                }
                at += range.length;
            }
            outside(end);
        });
    }
};

// ---- what runs

struct Case {
    unsigned kernel, text;
    dim3 blocks, threads;
    shim::Launch launch;
    bool cooperates, checked;
    Buffer buffers[3];
};

enum class State { RUNNABLE, AT_BARRIER, AT_EXCHANGE, ENDED };

struct Fiber {
    shim::Stop stop;
    uint8_t *stack = nullptr;
    State state;
    unsigned barriers, exchanges;
    uint3 index;
    /// The barrier or exchange that it waits at.
    shim::Exchange kind;
    const void *site;
};

struct Warp {
    /// Two alternating sets: a lane can reach the next exchange before others have read this one, but not the one
    /// after.
    unsigned long long values[2][32];
    unsigned present[2];
    unsigned exchanges;
};

Fiber fibers[MOST_THREADS];
Warp warps[MOST_THREADS / 32];
shim::Stop scheduler;
Fiber *current;
uintptr_t main_stack;
Case *running;
/// Number of the interval between barriers. It is never reused, so records of shared memory need not be cleared.
/// Records begin with interval 0, in which nothing runs.
uint32_t interval = 1;

unsigned number_of(const Fiber &fiber) { return (unsigned)(&fiber - fibers); }

std::string name_of(const Fiber &fiber) {
    return "thread (" + std::to_string(fiber.index.x) + ", " + std::to_string(fiber.index.y) + ", " +
           std::to_string(fiber.index.z) + ")";
}

void fiber_main() {
    for (;;) {
        kernels()[running->kernel].call(running->launch);
        current->state = State::ENDED;
        current->stop.go_to(scheduler);
    }
}

void prepare(Fiber &fiber) {
    if (fiber.stack) return;
    // The lowest page stays closed, so that an overflow of the stack is detected.
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    uint8_t *mapping = (uint8_t *)mmap(nullptr, STACK + PAGE, PROT_NONE, flags, -1, 0);
    if (mapping == MAP_FAILED || mprotect(mapping + PAGE, STACK, PROT_READ | PROT_WRITE) != 0) fault("no stacks");
    fiber.stack = mapping + PAGE;
    fiber.stop.begin(fiber.stack, STACK, fiber_main);
}

void wait_as(State state) {
    current->state = state;
    current->stop.go_to(scheduler);
}

/// Resumes the warps whose lanes have all reached one exchange.
bool release_warps(unsigned threads) {
    bool released = false;
    for (unsigned start = 0; start < threads; start += 32) {
        const Fiber *one = nullptr;
        unsigned present = 0, waiting = 0;
        for (unsigned at = start; at < threads && at < start + 32; at++) {
            if (fibers[at].state == State::ENDED) continue;
            present |= 1u << (at - start);
            if (fibers[at].state != State::AT_EXCHANGE) continue;
            waiting |= 1u << (at - start);
            if (one && (one->kind != fibers[at].kind)) {
                fault(name_of(*one) + " and " + name_of(fibers[at]) + " are at different warp operations");
            }
            one = &fibers[at];
        }
        if (!one || waiting != present) continue;
        Warp &warp = warps[start / 32];
        warp.present[warp.exchanges % 2] = present;
        warp.exchanges++;
        for (unsigned at = start; at < threads && at < start + 32; at++) {
            if (present >> (at - start) & 1) fibers[at].state = State::RUNNABLE;
        }
        released = true;
    }
    return released;
}

/// Resumes the block when all its threads have reached the barrier; false when all have ended.
bool release_block(unsigned threads) {
    const Fiber *waiting = nullptr, *ended = nullptr, *exchanging = nullptr;
    for (unsigned at = 0; at < threads; at++) {
        State state = fibers[at].state;
        // Optimised code may have several copies of one barrier.
        if (state == State::AT_BARRIER && waiting && waiting->site != fibers[at].site && running->checked) {
            fault("divergent barrier: " + name_of(*waiting) + " and " + name_of(fibers[at]) + " wait at different ones",
                  fibers[at].site);
        }
        const Fiber *&one = state == State::ENDED ? ended : state == State::AT_BARRIER ? waiting : exchanging;
        one = &fibers[at];
    }
    if (exchanging) {
        const Fiber *other = waiting ? waiting : exchanging;
        fault("divergent warp operation: " + name_of(*exchanging) + " waits for its warp, but " + name_of(*other) +
              " waits for the block");
    }
    if (waiting && ended) {
        fault("divergent barrier: " + name_of(*waiting) + " waits at barrier " +
              std::to_string(waiting->barriers) + ", but " + name_of(*ended) + " has ended after " +
              std::to_string(ended->barriers));
    }
    for (unsigned at = 0; at < threads && waiting; at++) fibers[at].state = State::RUNNABLE;
    interval++;
    return waiting != nullptr;
}

/// Runs the threads of a block as fibers, from one barrier to the next, alternating forwards and backwards.
void run_cooperating(unsigned threads) {
    unsigned number = 0;
    for (unsigned z = 0; z < blockDim.z; z++) {
        for (unsigned y = 0; y < blockDim.y; y++) {
            for (unsigned x = 0; x < blockDim.x; x++, number++) {
                prepare(fibers[number]);
                fibers[number].state = State::RUNNABLE;
                fibers[number].barriers = fibers[number].exchanges = 0;
                fibers[number].index = {x, y, z};
            }
        }
    }
    for (Warp &warp : warps) warp.exchanges = 0;
    bool forwards = true;
    do {
        for (unsigned turn = 0; turn < threads; turn++) {
            Fiber &fiber = fibers[forwards ? turn : threads - 1 - turn];
            if (fiber.state != State::RUNNABLE) continue;
            current = &fiber;
            threadIdx = fiber.index;
            scheduler.go_to(fiber.stop);
            current = nullptr;
        }
        forwards = !forwards;
    } while (release_warps(threads) || release_block(threads));
}

void run_apart() {
    auto call = kernels()[running->kernel].call;
    unsigned number = 0;
    for (threadIdx.z = 0; threadIdx.z < blockDim.z; threadIdx.z++) {
        for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++) {
            for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++, number++) {
                fibers[number].index = threadIdx;
                fibers[number].exchanges = 0;
                current = &fibers[number];
                call(running->launch);
            }
        }
    }
    current = nullptr;
    interval++;
}

// ---- shared memory

/// The last thread that touched a byte of shared memory.
struct Touch {
    uint32_t interval, exchange;
    /// A thread; or a warp or the block, if several threads read.
    int32_t who;
};
constexpr int32_t SEVERAL_OF_WARP = 1 << 16, SEVERAL = 1 << 17;

struct Shadow {
    Touch write, read;
};

/// Variables by text, found among the symbols of the program.
std::vector<std::vector<Shared>> shared_of;
std::vector<std::vector<Shadow>> shadows;

/// Fills the shared memory of a text without the sanitizer's checks, whose red zones may be overwritten too.
__attribute__((no_sanitize("address"))) void poison_shared() {
    for (const Shared &shared : shared_of[running->text]) {
        volatile uint8_t *bytes = (uint8_t *)shared.start;
        for (size_t at = 0; at < shared.length; at++) bytes[at] = (uint8_t)(0xa5 + 7 * at);
    }
}

void prepare_shadows(bool checked) {
    shadows.clear();
    if (!checked) return;
    for (const Shared &shared : shared_of[running->text]) shadows.emplace_back(shared.length);
}

/// Whether an earlier access is ordered before the current access of this thread.
bool is_before(const Touch &touch, int32_t me) {
    if (touch.interval != interval || touch.who == me) return true;
    if (touch.who >= SEVERAL) return false;
    int32_t warp = touch.who >= SEVERAL_OF_WARP ? touch.who - SEVERAL_OF_WARP : touch.who / 32;
    return warp == me / 32 && touch.exchange < current->exchanges;
}

void check_shared(const Shared &shared, std::vector<Shadow> &shadow, uintptr_t address, size_t width, bool store,
                  const void *site) {
    if (address + width > shared.start + shared.length) {
        fault(std::string(store ? "writes" : "reads") + " past the end of shared " + shared.name, site);
    }
    int32_t me = (int32_t)number_of(*current);
    Touch mine = {interval, current->exchanges, me};
    for (size_t at = address - shared.start, end = at + width; at < end; at++) {
        Touch &write = shadow[at].write, &read = shadow[at].read;
        bool written = !is_before(write, me);
        if (written || (store && !is_before(read, me))) {
            int32_t who = written ? write.who : read.who;
            fault("a race on byte " + std::to_string(at) + " of shared " + shared.name + ": " +
                      (store ? "written" : "read") + ", and in the same interval between barriers " +
                      (written ? "written" : "read") + " by " +
                      (who < SEVERAL_OF_WARP ? name_of(fibers[who]) : std::string("several threads")),
                  site);
        }
        if (store) {
            write = mine;
        } else if (is_before(read, me)) {
            read = mine;
        } else {
            bool same = read.who < SEVERAL && (read.who >= SEVERAL_OF_WARP ? read.who - SEVERAL_OF_WARP : read.who / 32) == me / 32;
            read = {interval, current->exchanges, same ? SEVERAL_OF_WARP + me / 32 : SEVERAL};
        }
    }
}

// ---- checks of single accesses

void check(const void *pointer, size_t width, bool store, const void *site) {
    if (!running) return;
    uintptr_t address = (uintptr_t)pointer;
    for (Buffer &buffer : running->buffers) {
        if (buffer.holds(address)) return buffer.check(address, width, store, site);
    }
    const std::vector<Shared> &all = shared_of[running->text];
    for (size_t at = 0; at < all.size(); at++) {
        if (address - all[at].start < all[at].length) {
            return check_shared(all[at], shadows[at], address, width, store, site);
        }
    }
    if (current && current->stack && address - (uintptr_t)current->stack < STACK) return;
    if (main_stack - address < STACK) return;
    // Constants, and memory of the driver.
    if (!store && address >= (uintptr_t)&__executable_start && address < (uintptr_t)&_end) return;
    char text[96];
    snprintf(text, sizeof text, "%s %zu bytes at %p, which is in no buffer", store ? "writes" : "reads", width, pointer);
    fault(text, site);
}

// ---- signals

void explain(int signal, siginfo_t *information, void *) {
    if (signal == SIGALRM) fault("the case has not ended after " + std::to_string(limit_seconds) + " seconds");
    if (running) {
        for (Buffer &buffer : running->buffers) {
            uintptr_t address = (uintptr_t)information->si_addr;
            if (buffer.holds(address)) fault("touches " + buffer.place(address) + ", which is closed or not writable");
        }
    }
    char text[64];
    snprintf(text, sizeof text, "signal %d at address %p", signal, information->si_addr);
    fault(text);
}

void install_handlers() {
    static uint8_t stack[1 << 16];
    stack_t alternative = {};
    alternative.ss_sp = stack;
    alternative.ss_size = sizeof stack;
    sigaltstack(&alternative, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = explain;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM}) sigaction(signal, &action, nullptr);
}

// ---- the file of cases

struct Reader {
    const uint8_t *at, *end;

    uint64_t number() {
        uint64_t value;
        memcpy(&value, bytes(8), 8);
        return value;
    }
    const uint8_t *bytes(size_t length) {
        if (length > (size_t)(end - at)) {
            fprintf(stderr, "driver: the file of cases is too short\n");
            _exit(2);
        }
        at += length;
        return at - length;
    }
};

void run(Reader reader, bool checked) {
    Case one;
    one.checked = checked;
    one.kernel = (unsigned)reader.number();
    one.text = (unsigned)reader.number();
    one.cooperates = reader.number() != 0;
    for (dim3 *shape : {&one.blocks, &one.threads}) {
        shape->x = (unsigned)reader.number();
        shape->y = (unsigned)reader.number();
        shape->z = (unsigned)reader.number();
    }
    one.launch.first = reader.number();
    one.launch.bytes = reader.number();
    one.launch.extra_length = reader.number();
    // Aligned like the parameters of a launch.
    alignas(16) static uint8_t extra[1 << 16];
    if (one.launch.extra_length > sizeof extra) fault("the extra parameters are too long");
    memcpy(extra, reader.bytes(one.launch.extra_length), one.launch.extra_length);
    one.launch.extra = extra;
    const char *names[] = {"memory", "packed", "tables"};
    for (int which = 0; which < 3; which++) {
        Buffer &buffer = one.buffers[which];
        buffer.name = names[which];
        uint64_t alignment = reader.number();
        buffer.ranges.resize(reader.number());
        for (Range &range : buffer.ranges) {
            range.position = (int64_t)reader.number();
            range.length = reader.number();
            range.access = (uint8_t)reader.number();
            range.before = reader.bytes(range.length);
            // Bytes that must not change are stored once.
            range.after = range.access & WRITE ? reader.bytes(range.length) : range.before;
        }
        buffer.map(alignment, checked);
    }
    one.launch.memory = one.buffers[0].origin;
    one.launch.packed = one.buffers[1].origin;
    one.launch.tables = one.buffers[2].ranges.empty() ? nullptr : one.buffers[2].origin;

    uint64_t threads = (uint64_t)one.threads.x * one.threads.y * one.threads.z;
    if (threads == 0 || threads > MOST_THREADS) fault("a block has 1 to 1024 threads, not " + std::to_string(threads));
    blockDim = one.threads;
    gridDim = one.blocks;
    running = &one;
    prepare_shadows(checked);
    // The last block runs first, because nothing may depend on the order of blocks.
    for (unsigned z = one.blocks.z; z-- > 0;) {
        for (unsigned y = one.blocks.y; y-- > 0;) {
            for (unsigned x = one.blocks.x; x-- > 0;) {
                blockIdx = {x, y, z};
                poison_shared();
                if (one.cooperates) {
                    run_cooperating((unsigned)threads);
                } else {
                    run_apart();
                }
            }
        }
    }
    running = nullptr;
    std::string line = "ok";
    for (Buffer &buffer : one.buffers) {
        buffer.compare();
        for (auto &widths : buffer.accesses) {
            for (uint64_t count : widths) line += " " + std::to_string(count);
        }
        line += " " + std::to_string(buffer.stored_again);
    }
    for (Buffer &buffer : one.buffers) buffer.unmap();
    say(line);
}

} // namespace

void shim::fail(const char *message) { fault(message, __builtin_return_address(0)); }

static void wait_at_barrier(const void *site) {
    if (!running->cooperates) fault("the kernel was not known to have a barrier");
    current->barriers++;
    current->site = site;
    wait_as(State::AT_BARRIER);
}

void shim::barrier() { wait_at_barrier(__builtin_return_address(0)); }

bool shim::barrier_or(bool predicate) {
    // The last intervals in which a thread voted. Two, because a thread may vote again before others have read this vote.
    static decltype(interval) voted[2] = {~0u, ~0u};
    const auto now = interval;
    if (predicate) voted[now % 2] = now;
    wait_at_barrier(__builtin_return_address(0));
    return voted[now % 2] == now;
}

int shim::lane() { return (int)(number_of(*current) % 32); }

shim::Lanes shim::exchange(Exchange kind, unsigned mask, unsigned long long value) {
    if (!running->cooperates) fault("the kernel was not known to have warp operations");
    if (mask != 0xffffffff) fault("warp operations with part of the lanes are not supported", __builtin_return_address(0));
    Warp &warp = warps[number_of(*current) / 32];
    unsigned turn = warp.exchanges % 2;
    warp.values[turn][lane()] = value;
    current->kind = kind;
    wait_as(State::AT_EXCHANGE);
    current->exchanges++;
    return {warp.values[turn], warp.present[turn]};
}

void shim::enroll(unsigned index, void (*call)(const Launch &)) {
    if (kernels().size() <= index) kernels().resize(index + 1);
    kernels()[index].call = call;
}

#define DTC_ANNOUNCED(width)                                                                                           \
    extern "C" void __tsan_read##width(void *at) { check(at, width, false, __builtin_return_address(0)); }             \
    extern "C" void __tsan_write##width(void *at) { check(at, width, true, __builtin_return_address(0)); }
DTC_ANNOUNCED(1)
DTC_ANNOUNCED(2)
DTC_ANNOUNCED(4)
DTC_ANNOUNCED(8)
DTC_ANNOUNCED(16)
extern "C" void __tsan_read_range(void *at, size_t width) { check(at, width, false, __builtin_return_address(0)); }
extern "C" void __tsan_write_range(void *at, size_t width) { check(at, width, true, __builtin_return_address(0)); }
extern "C" void __tsan_init() {}

int main(int arguments, char **argument) {
    if (arguments != 3) return 2;
    main_stack = (uintptr_t)__builtin_frame_address(0);
    FILE *file = fopen(argument[1], "rb");
    if (!file) return 2;
    fseek(file, 0, SEEK_END);
    std::vector<uint8_t> contents((size_t)ftell(file));
    rewind(file);
    if (fread(contents.data(), 1, contents.size(), file) != contents.size()) return 2;
    fclose(file);

    install_handlers();
    Reader reader = {contents.data(), contents.data() + contents.size()};
    bool checked = reader.number() != 0;
    limit_seconds = (unsigned)reader.number();
    shared_of.resize(reader.number());
    for (std::vector<Shared> &all : shared_of) {
        all.resize(reader.number());
        for (Shared &shared : all) {
            shared.start = reader.number();
            shared.length = reader.number();
            size_t length = reader.number();
            shared.name.assign((const char *)reader.bytes(length), length);
        }
    }
    uint64_t cases = reader.number();
    for (case_number = 0; case_number < cases; case_number++) {
        size_t length = reader.number();
        const uint8_t *body = reader.bytes(length);
        if (case_number < strtoull(argument[2], nullptr, 10)) continue;
        alarm(limit_seconds);
        run({body, body + length}, checked);
    }
    return 0;
}
