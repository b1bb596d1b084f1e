// Short lists of the queue that a warp is at, in shared memory.
struct Near {
    // Messages, and receives.
    u64 bits[2][{{ near }}];
    u32 handles[2][{{ near }}];
};
