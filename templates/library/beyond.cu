// Notes the first entry beyond the places of its table: the table, the index, and the entry.
static __device__ __noinline__ void beyond(u64 report, u64 table, u64 at, i64 entry)
{
    u64 *noted = (u64 *)report;
    if (atomicCAS((unsigned long long *)noted, 0ull, table + 1) == 0) {
        noted[1] = at;
        noted[2] = (u64)entry;
    }
}
