typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

// Memory that a call may read: from the lowest displacement of a byte of its elements to one past the highest.
struct Bounds {
    i64 low, high;
};
