extern "C" __global__ void __launch_bounds__({{ threads }})
dtc_match(u8 *queues, u8 *matches, const u8 *, u64 capacity, u64 stride)
{
    __shared__ Shared shared;
    const Queue queue = queue_of(queues, matches, capacity, stride, blockIdx.x);
    const u32 messages = queue.header->messages, receives = queue.header->receives;
    if (messages > capacity || receives > capacity) {
        if (threadIdx.x == 0) {
            queue.header->matched = queue.header->examined = 0;
            queue.header->status = OVERFLOWN;
        }
        return;
    }
    match_queue(queue, messages, receives, shared);
}
