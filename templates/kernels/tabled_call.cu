
// What a call says of its tables: where they are, how long the parts are that depend on their lengths, and where a fault is to be noted.
struct Tabled {
    u64 words[{{ words }}];
};

// Divides by a number of the call, as a multiplication.
static __device__ __forceinline__ u64 divided(u64 at, u64 magic, u64 shift)
{
    return shift == 64 ? at : __umul64hi(at, magic) >> shift;
}

// Entry `at` of a table of 64 or 32 bits.
static __device__ __forceinline__ i64 entry_of(u64 table, u64 wide, u64 at)
{
    return wide ? __ldg((const i64 *)table + at) : (i64)__ldg((const int *)table + at);
}
{%- if checked %}

// Notes the first entry beyond the places of its table: the table, the index, and the entry.
static __device__ __noinline__ void beyond(u64 report, u64 table, u64 at, i64 entry)
{
    u64 *noted = (u64 *)report;
    if (atomicCAS((unsigned long long *)noted, 0ull, table + 1) == 0) {
        noted[1] = at;
        noted[2] = (u64)entry;
    }
}
{%- endif %}
