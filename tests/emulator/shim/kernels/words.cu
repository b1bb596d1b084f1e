// One value of every intrinsic in a row of 8-byte words.
typedef unsigned long long u64;

__constant__ unsigned char table[4] = {7, 11, 13, 17};

extern "C" __global__ void words(unsigned char* memory, unsigned char* packed, const unsigned char* tables, u64 first,
                                 u64 bytes) {
    const uint4 loaded = __ldcs((const uint4*)memory);
    const unsigned a = loaded.x, b = loaded.y;
    const u64 wide = (u64)loaded.w << 32 | loaded.z;
    u64* out = (u64*)packed;
    int at = 0;
    out[at++] = __funnelshift_l(a, b, 8);
    out[at++] = __funnelshift_r(a, b, 40);
    out[at++] = __funnelshift_rc(a, b, 40);
    out[at++] = __byte_perm(a, b, 0x5216);
    out[at++] = __umulhi(a, b);
    out[at++] = __umul64hi(wide, ~wide);
    out[at++] = (u64)__popc(a);
    out[at++] = (u64)__popcll(wide);
    out[at++] = (u64)__ffs((int)(a & 0xf0));
    out[at++] = (u64)__ffs(0);
    out[at++] = (u64)__clz((int)(a & 0xff));
    out[at++] = (u64)__clz(0);
    out[at++] = min(a, b);
    out[at++] = max(3, -4);
    out[at++] = table[a % 4];
    uint2 pair = make_uint2(a, b);
    __stwt((uint2*)(out + at++), pair);
    __stcg(out + at++, wide);
}
