// The keywords and functions of CUDA C++ that kernel texts use, for g++ in C++17: a text is compiled unchanged and runs
// on the CPU.
//
// The threads of a block are fibers if a text has barriers, and otherwise iterations of a loop; `driver.cpp` runs them.
// This header includes nothing, so that a text sees the same names as under NVRTC, and compiles fast.
#pragma once

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
// g++ accepts the standard keyword only at the beginning of a declaration, before `static`.
#define alignas(n) __attribute__((aligned(n)))
// One block runs at a time. These variables have no initialiser, so they are the only ones of a text in the zeroed
// data, where the driver finds them by their symbols. g++ ignores a section of their own inside templates.
#define __shared__ static
#define __constant__ __attribute__((section("dtc_constant")))
#define __builtin_assume(condition) ((condition) ? (void)0 : shim::fail("an assumption does not hold: " #condition))
#define __trap() shim::fail("the kernel calls __trap")

#define DTC_VECTORS(name, scalar, two, four)                                                                           \
    struct name##1 {                                                                                                   \
        scalar x;                                                                                                      \
    };                                                                                                                 \
    struct alignas(two) name##2 {                                                                                      \
        scalar x, y;                                                                                                   \
    };                                                                                                                 \
    struct name##3 {                                                                                                   \
        scalar x, y, z;                                                                                                \
    };                                                                                                                 \
    struct alignas(four) name##4 {                                                                                     \
        scalar x, y, z, w;                                                                                             \
    };                                                                                                                 \
    inline name##1 make_##name##1(scalar x) { return {x}; }                                                            \
    inline name##2 make_##name##2(scalar x, scalar y) { return {x, y}; }                                               \
    inline name##3 make_##name##3(scalar x, scalar y, scalar z) { return {x, y, z}; }                                  \
    inline name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w) { return {x, y, z, w}; }

DTC_VECTORS(char, signed char, 2, 4)
DTC_VECTORS(uchar, unsigned char, 2, 4)
DTC_VECTORS(short, short, 4, 8)
DTC_VECTORS(ushort, unsigned short, 4, 8)
DTC_VECTORS(int, int, 8, 16)
DTC_VECTORS(uint, unsigned, 8, 16)
DTC_VECTORS(long, long, 16, 16)
DTC_VECTORS(ulong, unsigned long, 16, 16)
DTC_VECTORS(longlong, long long, 16, 16)
DTC_VECTORS(ulonglong, unsigned long long, 16, 16)
DTC_VECTORS(float, float, 8, 16)
DTC_VECTORS(double, double, 16, 16)
#undef DTC_VECTORS

struct dim3 {
    unsigned x, y, z;
};

// Indices of the current thread; the driver sets them.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace shim {

/// Ends the case with a message.
[[noreturn]] void fail(const char *message);
void barrier();
/// A barrier; whether a thread of the block passed a predicate.
bool barrier_or(bool predicate);

enum class Exchange { SYNCWARP, SHUFFLE, BALLOT, MATCH };

/// Values that the lanes of a warp passed to an exchange, and the lanes that take part.
struct Lanes {
    const unsigned long long *values;
    unsigned present;
};

/// Waits for the other lanes of the warp, which must reach the same exchange.
Lanes exchange(Exchange kind, unsigned mask, unsigned long long value);
int lane();

/// Launch parameters of a kernel.
struct Launch {
    unsigned char *memory, *packed;
    const unsigned char *tables;
    unsigned long long first, bytes;
    const unsigned char *extra;
    unsigned long long extra_length;
};

void enroll(unsigned index, void (*call)(const Launch &));

/// The next parameter of a kernel after the common five, which `extra` holds like a C struct.
template <class T> T take(const Launch &launch, unsigned long long &end) {
    end = (end + alignof(T) - 1) / alignof(T) * alignof(T);
    if (end + sizeof(T) > launch.extra_length) fail("the extra parameters are shorter than the kernel's");
    T value;
    __builtin_memcpy(&value, launch.extra + end, sizeof(T));
    end += sizeof(T);
    return value;
}

template <auto kernel> struct Call;

template <class Memory, class Packed, class Tables, class First, class Bytes, class... Extra,
          void (*kernel)(Memory, Packed, Tables, First, Bytes, Extra...)>
struct Call<kernel> {
    // Braces around the arguments fix the order of their evaluation.
    Call(const Launch &launch, const unsigned long long &end, Extra... extra) {
        if (end != launch.extra_length) fail("the extra parameters are longer than the kernel's");
        kernel(launch.memory, launch.packed, launch.tables, launch.first, launch.bytes, extra...);
    }

    static void with(const Launch &launch) {
        unsigned long long end = 0;
        Call{launch, end, take<Extra>(launch, end)...};
    }
};

inline __attribute__((always_inline)) void check_alignment(const void *address, unsigned long long alignment) {
    if ((unsigned long long)address % alignment != 0) fail("a load or store is not aligned");
}

template <class T> unsigned long long bits_of(T value) {
    static_assert(sizeof(T) <= 8, "lanes exchange at most 8 bytes");
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return bits;
}

/// The value of another lane; a poisoned value if that lane does not take part.
template <class T> T value_of(const Lanes &lanes, int lane) {
    unsigned long long bits = lanes.present >> lane & 1 ? lanes.values[lane] : 0xa7a7a7a7a7a7a7a7;
    T value;
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
}

} // namespace shim

inline __attribute__((always_inline)) void __syncthreads() { shim::barrier(); }
inline __attribute__((always_inline)) int __syncthreads_or(int predicate) { return shim::barrier_or(predicate != 0); }
inline void __syncwarp(unsigned mask = 0xffffffff) { shim::exchange(shim::Exchange::SYNCWARP, mask, 0); }

inline unsigned __ballot_sync(unsigned mask, int predicate) {
    shim::Lanes lanes = shim::exchange(shim::Exchange::BALLOT, mask, predicate != 0);
    unsigned ballot = 0;
    for (int lane = 0; lane < 32; lane++) {
        if (lanes.present >> lane & 1) ballot |= (unsigned)lanes.values[lane] << lane;
    }
    return ballot;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

template <class T> unsigned __match_any_sync(unsigned mask, T value) {
    const unsigned long long bits = shim::bits_of(value);
    shim::Lanes lanes = shim::exchange(shim::Exchange::MATCH, mask, bits);
    unsigned equal = 0;
    for (int lane = 0; lane < 32; lane++) equal |= (unsigned)(lanes.present >> lane & 1 && lanes.values[lane] == bits) << lane;
    return equal;
}

template <class T> T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
    shim::Lanes lanes = shim::exchange(shim::Exchange::SHUFFLE, mask, shim::bits_of(value));
    return shim::value_of<T>(lanes, (shim::lane() & ~(width - 1)) + (source & (width - 1)));
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    shim::Lanes lanes = shim::exchange(shim::Exchange::SHUFFLE, mask, shim::bits_of(value));
    unsigned within = (shim::lane() & (width - 1)) + delta;
    return within < (unsigned)width ? shim::value_of<T>(lanes, shim::lane() + delta) : value;
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    shim::Lanes lanes = shim::exchange(shim::Exchange::SHUFFLE, mask, shim::bits_of(value));
    unsigned within = shim::lane() & (width - 1);
    return within >= delta ? shim::value_of<T>(lanes, shim::lane() - delta) : value;
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
    shim::Lanes lanes = shim::exchange(shim::Exchange::SHUFFLE, mask, shim::bits_of(value));
    int source = shim::lane() ^ lane_mask;
    // A lane of an earlier group may be read, one of a later group may not.
    return source / width <= shim::lane() / width ? shim::value_of<T>(lanes, source) : value;
}

#define DTC_LOAD(name)                                                                                                 \
    template <class T> inline __attribute__((always_inline)) T name(const T *address) {                                \
        shim::check_alignment(address, alignof(T));                                                                    \
        return *address;                                                                                               \
    }
#define DTC_STORE(name)                                                                                                \
    template <class T, class V> inline __attribute__((always_inline)) void name(T *address, V value) {                 \
        shim::check_alignment(address, alignof(T));                                                                    \
        *address = value;                                                                                              \
    }
DTC_LOAD(__ldg)
DTC_LOAD(__ldca)
DTC_LOAD(__ldcg)
DTC_LOAD(__ldcs)
DTC_LOAD(__ldcv)
DTC_LOAD(__ldlu)
DTC_STORE(__stwb)
DTC_STORE(__stcg)
DTC_STORE(__stcs)
DTC_STORE(__stwt)
#undef DTC_LOAD
#undef DTC_STORE

// Atomic, since fibers switch at exchanges and barriers alone. Without the sanitizer's calls, because an atomic access is no race.
#define DTC_ATOMIC(name, result)                                                                                       \
    template <class T, class V> __attribute__((noinline, no_sanitize("thread"))) T name(T *address, V value) {         \
        T old = *address;                                                                                              \
        *address = result;                                                                                             \
        return old;                                                                                                    \
    }
DTC_ATOMIC(atomicAdd, old + (T)value)
DTC_ATOMIC(atomicOr, old | (T)value)
DTC_ATOMIC(atomicExch, (T)value)
DTC_ATOMIC(atomicMax, old > (T)value ? old : (T)value)
DTC_ATOMIC(atomicMin, old < (T)value ? old : (T)value)
#undef DTC_ATOMIC
template <class T> __attribute__((noinline, no_sanitize("thread"))) T atomicCAS(T *address, T expected, T value) {
    T old = *address;
    if (old == expected) *address = value;
    return old;
}

// Blocks run one after the other, so atomics of every scope are the same, and fences order nothing.
#define atomicAdd_system atomicAdd
#define atomicOr_system atomicOr
#define atomicCAS_system atomicCAS
inline void __threadfence() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}
// A clock that goes on when it is read.
__attribute__((noinline, no_sanitize("thread"))) inline long long clock64() {
    static long long now;
    return now += 100;
}

inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    unsigned long long both = (unsigned long long)high << 32 | low;
    return (unsigned)(both << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    unsigned long long both = (unsigned long long)high << 32 | low;
    return (unsigned)(both >> (shift & 31));
}
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
    return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
    return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
    unsigned long long both = (unsigned long long)high << 32 | low;
    unsigned result = 0;
    for (int at = 0; at < 4; at++) {
        unsigned nibble = selector >> 4 * at & 15;
        // The manual defines three bits; the instruction uses the fourth as well.
        if (nibble > 7) shim::fail("__byte_perm with a selector above 7");
        result |= (unsigned)(both >> 8 * nibble & 255) << 8 * at;
    }
    return result;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline float __uint_as_float(unsigned bits) {
    float number;
    __builtin_memcpy(&number, &bits, 4);
    return number;
}
inline unsigned __float_as_uint(float number) {
    unsigned bits;
    __builtin_memcpy(&bits, &number, 4);
    return bits;
}
inline double __longlong_as_double(long long bits) {
    double number;
    __builtin_memcpy(&number, &bits, 8);
    return number;
}
inline long long __double_as_longlong(double number) {
    long long bits;
    __builtin_memcpy(&bits, &number, 8);
    return bits;
}
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline int __popc(unsigned value) { return __builtin_popcount(value); }
inline int __popcll(unsigned long long value) { return __builtin_popcountll(value); }
inline int __ffs(int value) { return __builtin_ffs(value); }
inline int __ffsll(long long value) { return __builtin_ffsll(value); }
inline int __clz(int value) { return value == 0 ? 32 : __builtin_clz((unsigned)value); }
inline int __clzll(long long value) { return value == 0 ? 64 : __builtin_clzll((unsigned long long)value); }

// As in CUDA: for mixed signs and widths, the usual conversions determine the result.
template <class A, class B> constexpr auto min(A a, B b) -> decltype(a + b) {
    using Common = decltype(a + b);
    return (Common)b < (Common)a ? (Common)b : (Common)a;
}
template <class A, class B> constexpr auto max(A a, B b) -> decltype(a + b) {
    using Common = decltype(a + b);
    return (Common)a < (Common)b ? (Common)b : (Common)a;
}
