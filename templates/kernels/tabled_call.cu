
// What a call says of its tables: where they are, how long the parts are that depend on their lengths, and where a fault is to be noted.
struct Tabled {
    u64 words[{{ words }}];
};

// Divides by a number of the call, as a multiplication.
[[maybe_unused]] static __device__ __forceinline__ u64 divided(u64 at, u64 magic, u64 shift)
{
    return shift == 64 ? at : __umul64hi(at, magic) >> shift;
}

// Entry `at` of a table of 64 or 32 bits.
[[maybe_unused]] static __device__ __forceinline__ i64 entry_of(u64 table, u64 wide, u64 at)
{
    return wide ? __ldg((const i64 *)table + at) : (i64)__ldg((const int *)table + at);
}
