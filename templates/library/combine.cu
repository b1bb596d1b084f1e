
// An element as bits, from its lowest byte on; what is above its bytes has no meaning.
struct Value {
    u64 low, high;
};

static __device__ __forceinline__ u64 take(const Value &value, u32 byte)
{
    return byte < 8 ? value.low >> 8 * byte : value.high >> 8 * (byte - 8);
}

// Bits that are zero there so far, in one half of the value.
static __device__ __forceinline__ void put(Value &value, u32 byte, u64 bits)
{
    (byte < 8 ? value.low : value.high) |= bits << 8 * (byte % 8);
}

template <class Piece> static __device__ __forceinline__ Value load_pieces(const u8 *address, u32 bytes)
{
    Value value = {0, 0};
    for (u32 byte = 0; byte < bytes; byte += sizeof(Piece))
        put(value, byte, *(const Piece *)(address + byte));
    return value;
}

template <class Piece> static __device__ __forceinline__ void store_pieces(u8 *address, const Value &value, u32 bytes)
{
    for (u32 byte = 0; byte < bytes; byte += sizeof(Piece))
        *(Piece *)(address + byte) = (Piece)take(value, byte);
}

// A number of so many bytes, with all 64 bits.
static __device__ __forceinline__ u64 extended(u64 bits, u32 bytes, bool has_sign)
{
    const u32 above = 64 - 8 * bytes;
    return has_sign ? (u64)((i64)(bits << above) >> above) : bits << above >> above;
}

static __device__ __forceinline__ float single_of(u64 bits) { return __uint_as_float((u32)bits); }
static __device__ __forceinline__ double double_of(u64 bits) { return __longlong_as_double((i64)bits); }
static __device__ __forceinline__ u64 bits_of(float number) { return __float_as_uint(number); }
static __device__ __forceinline__ u64 bits_of(double number) { return (u64)__double_as_longlong(number); }

// Every step is rounded: a product and a sum are not fused.
static __device__ __forceinline__ float add(float one, float other) { return __fadd_rn(one, other); }
static __device__ __forceinline__ double add(double one, double other) { return __dadd_rn(one, other); }
static __device__ __forceinline__ float multiply(float one, float other) { return __fmul_rn(one, other); }
static __device__ __forceinline__ double multiply(double one, double other) { return __dmul_rn(one, other); }

static __device__ __forceinline__ float single_of_half(u32 bits)
{
    const u32 magnitude = (bits & 0x7fff) << 13;
    // The exponents differ by 112. The product is exact, for subnormal numbers too.
    const u32 number = __float_as_uint(multiply(__uint_as_float(magnitude), __uint_as_float(239u << 23)));
    return __uint_as_float(number | (magnitude >= 0x7c00u << 13 ? 0x7f800000 : 0) | (bits & 0x8000) << 16);
}

static __device__ __forceinline__ u64 half_of(float number)
{
    const u32 bits = __float_as_uint(number), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    // Beside 0.5, a float of 32 bits counts in units of the smallest half.
    const u32 subnormal = __float_as_uint(add(__uint_as_float(magnitude), 0.5f)) - __float_as_uint(0.5f);
    const u32 normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    const u32 rounded = magnitude < 0x38800000 ? subnormal
        : magnitude > 0x7f800000               ? 0x7e00 | (magnitude >> 13 & 0x3ff)
        // From 65520 on, halfway from the largest half to the next power of two.
        : magnitude >= 0x477ff000 ? 0x7c00
                                  : normal;
    return sign | rounded;
}

static __device__ __forceinline__ u64 bfloat_of(float number)
{
    const u32 bits = __float_as_uint(number);
    return (bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static __device__ __forceinline__ u64 combine_integers(u32 operation, bool has_sign, u64 memory, u64 packed)
{
    const bool less = has_sign ? (i64)packed < (i64)memory : packed < memory;
    switch (operation) {
    case Operation::Sum: return memory + packed;
    case Operation::Product: return memory * packed;
    case Operation::Min: return less ? packed : memory;
    case Operation::Max: return less || packed == memory ? memory : packed;
    case Operation::LogicalAnd: return memory != 0 && packed != 0;
    case Operation::LogicalOr: return memory != 0 || packed != 0;
    case Operation::LogicalXor: return (memory != 0) != (packed != 0);
    case Operation::BitwiseAnd: return memory & packed;
    case Operation::BitwiseOr: return memory | packed;
    default: return memory ^ packed;
    }
}

// The bits of the result, where they are those of one side, and the number where it is a new one.
template <class Number, class New>
static __device__ __forceinline__ u64 combine_floats(
    u32 operation, Number memory, Number packed, u64 memory_bits, u64 packed_bits, New bits_of_new)
{
    switch (operation) {
    case Operation::Sum: return bits_of_new(add(memory, packed));
    case Operation::Product: return bits_of_new(multiply(memory, packed));
    case Operation::Min: return packed < memory ? packed_bits : memory_bits;
    default: return memory < packed ? packed_bits : memory_bits;
    }
}

template <class Number> struct Complex {
    Number real, imaginary;
};

template <class Number>
static __device__ __forceinline__ Complex<Number> combine_complex(
    u32 operation, const Complex<Number> &memory, const Complex<Number> &packed)
{
    if (operation == Operation::Sum)
        return {add(memory.real, packed.real), add(memory.imaginary, packed.imaginary)};
    return {add(multiply(memory.real, packed.real), -multiply(memory.imaginary, packed.imaginary)),
        add(multiply(memory.real, packed.imaginary), multiply(memory.imaginary, packed.real))};
}

// A value with its index, and their bytes. Doubles hold every index, and every value but the integers.
struct Located {
    i64 integer;
    double number, index;
};

static __device__ __forceinline__ Located located(u32 element, const Value &pair)
{
    switch (element) {
    case Element::FloatInt: return {0, single_of(pair.low), (double)(int)take(pair, 4)};
    case Element::DoubleInt: return {0, double_of(pair.low), (double)(int)pair.high};
    case Element::LongInt: return {(i64)pair.low, 0, (double)(int)pair.high};
    case Element::TwoInt: return {(int)pair.low, 0, (double)(int)take(pair, 4)};
    case Element::ShortInt: return {(short)pair.low, 0, (double)(int)take(pair, 2)};
    case Element::TwoReal: return {0, single_of(pair.low), single_of(take(pair, 4))};
    default: return {0, double_of(pair.low), double_of(pair.high)};
    }
}

static __device__ __forceinline__ Value combine_pairs(u32 operation, u32 element, const Value &memory, const Value &packed)
{
    const Located one = located(element, memory), other = located(element, packed);
    const bool less = other.integer < one.integer || other.number < one.number;
    const bool greater = other.integer > one.integer || other.number > one.number;
    if (operation == Operation::MinLoc ? less : greater)
        return packed;
    if (other.integer != one.integer || other.number != one.number || !(other.index < one.index))
        return memory;
    // Equal values may have different bits.
    const u32 bytes = element == Element::ShortInt ? 2 : element == Element::FloatInt || element == Element::TwoInt || element == Element::TwoReal ? 4 : 8;
    if (bytes == 8)
        return {memory.low, packed.high};
    const u64 of_value = (1ull << 8 * bytes) - 1;
    return {(memory.low & of_value) | (packed.low & ~of_value), 0};
}

// What a reduction makes of an element of memory and a packed one.
static __device__ __forceinline__ Value combine(u32 operation, u32 element, u32 bytes, const Value &memory, const Value &packed)
{
    const u64 one = memory.low, other = packed.low;
    switch (element) {
    case Element::F16: {
        const auto bits = [](float number) { return half_of(number); };
        return {combine_floats(operation, single_of_half((u32)one), single_of_half((u32)other), one, other, bits), 0};
    }
    case Element::Bf16: {
        const auto bits = [](float number) { return bfloat_of(number); };
        return {combine_floats(operation, single_of(one << 16), single_of(other << 16), one, other, bits), 0};
    }
    case Element::F32: {
        const auto bits = [](float number) { return bits_of(number); };
        return {combine_floats(operation, single_of(one), single_of(other), one, other, bits), 0};
    }
    case Element::F64: {
        const auto bits = [](double number) { return bits_of(number); };
        return {combine_floats(operation, double_of(one), double_of(other), one, other, bits), 0};
    }
    case Element::C64: {
        const Complex<float> left = {single_of(one), single_of(one >> 32)}, right = {single_of(other), single_of(other >> 32)};
        const Complex<float> result = combine_complex(operation, left, right);
        return {bits_of(result.real) | bits_of(result.imaginary) << 32, 0};
    }
    case Element::C128: {
        const Complex<double> left = {double_of(one), double_of(memory.high)};
        const Complex<double> right = {double_of(other), double_of(packed.high)};
        const Complex<double> result = combine_complex(operation, left, right);
        return {bits_of(result.real), bits_of(result.imaginary)};
    }
    case Element::FloatInt:
    case Element::DoubleInt:
    case Element::LongInt:
    case Element::TwoInt:
    case Element::ShortInt:
    case Element::TwoReal:
    case Element::TwoDoublePrecision: return combine_pairs(operation, element, memory, packed);
    default: {
        const bool has_sign = element == Element::I8 || element == Element::I16 || element == Element::I32 || element == Element::I64;
        const u64 left = extended(one, bytes, has_sign), right = extended(other, bytes, has_sign);
        return {combine_integers(operation, has_sign, left, right), 0};
    }
    }
}
