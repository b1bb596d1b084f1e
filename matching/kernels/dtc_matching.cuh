// Posts messages and receives to a matching service of dtc, from kernels.
//
// C++11 for NVRTC and nvcc; it includes nothing. A kernel gets the port of a service by value (`Service::port` in Rust,
// `dtc_matcher_port` in C), posts, and waits for outcomes:
//
//     __global__ void exchange(dtc_matching_port port)
//     {
//         dtc_matching_receive(port, DTC_MATCHING_ANY, 7, 0, 200);   // any source, tag 7, communicator 0; its handle is 200
//         dtc_matching_send(port, 3, 7, 0, 100);                     // source 3; its handle is 100
//         unsigned message;
//         if (dtc_matching_wait(port, DTC_MATCHING_RECEIVES, 200, 1000000, &message) == DTC_MATCHING_DONE)
//             ;                                                      // message is 100
//     }
//
// Every call is made by one thread. A post publishes what the thread has written before, and an outcome shows it to the thread that
// reads the outcome. A handle names an entry until its outcome is read: 0 to handles - 1, messages and receives apart.
#ifndef DTC_MATCHING_CUH
#define DTC_MATCHING_CUH

// Any source or tag of a receive.
#define DTC_MATCHING_ANY 0x80000000u

// What a call returns.
enum dtc_matching_status {
    // Posted, or matched.
    DTC_MATCHING_DONE = 0,
    // The ring has no free slot now: the service is behind, or its lists are full. Nothing was posted.
    DTC_MATCHING_FULL = 1,
    // The service takes no more entries. Nothing was posted, or what was posted waits for the next start.
    DTC_MATCHING_STOPPED = 2,
    // A source or tag above 2147483647.
    DTC_MATCHING_RANGE = 3,
    // No such communicator, or no such handle.
    DTC_MATCHING_COMMUNICATOR = 4,
    DTC_MATCHING_HANDLE = 5,
    // A wildcard that the program promised not to use.
    DTC_MATCHING_WILDCARD = 6,
    // Not matched yet, or not within the time.
    DTC_MATCHING_PENDING = 7
};

// The two kinds of entries.
enum dtc_matching_kind { DTC_MATCHING_MESSAGES = 0, DTC_MATCHING_RECEIVES = 1 };

// A service, as kernels see it.
struct dtc_matching_port {
    // Its memory: a control, the rings, their slots, and the outcomes of messages and of receives.
    unsigned char *memory;
    unsigned communicators, partitions;
    // Slots of a ring, a power of two.
    unsigned slots;
    // Handles of messages, and of receives.
    unsigned handles;
    // Wildcards that are refused: 1 for sources, 2 for tags.
    unsigned refused;
    // 1 if others than kernels of its GPU post or wait.
    unsigned system;
};

struct alignas(128) dtc_matching_control {
    // Why the service has to end; 0 while it has not.
    unsigned stop;
    // Changes while the service has work.
    unsigned beat;
    // Blocks that serve.
    unsigned running;
    // Slots that were reserved, and not filled in time.
    unsigned abandoned;
};

// A ring of entries that were posted. Queue q has rings 2 q for messages and 2 q + 1 for receives.
struct alignas(128) dtc_matching_ring {
    // In the upper half the next ticket, modulo 2^32; bit 0 is set when it is closed.
    unsigned long long state;
    // Free slots. Less than 0 for a moment, while posters find too few.
    int room;
    // Only the service uses these: tickets that were taken, and those that there were when it was closed.
    unsigned taken, end;
};

// Source, tag and handle, each below the number of its turn: the slot's ticket plus 1.
struct alignas(32) dtc_matching_slot {
    unsigned long long source, tag, handle;
};

// Bits of an outcome. Below them is the other side's handle, or why an entry of the host was refused.
enum { DTC_MATCHING_MATCHED = 1u << 31, DTC_MATCHING_REFUSED = 1u << 30 };

__device__ inline dtc_matching_control *dtc_matching_control_of(const dtc_matching_port &port)
{
    return (dtc_matching_control *)port.memory;
}

__device__ inline dtc_matching_ring *dtc_matching_ring_of(const dtc_matching_port &port, unsigned ring)
{
    return (dtc_matching_ring *)(port.memory + sizeof(dtc_matching_control)) + ring;
}

__device__ inline dtc_matching_slot *dtc_matching_slot_of(const dtc_matching_port &port, unsigned ring, unsigned ticket)
{
    const unsigned rings = 2 * port.communicators * port.partitions;
    dtc_matching_slot *const slots = (dtc_matching_slot *)dtc_matching_ring_of(port, rings);
    return slots + (unsigned long long)ring * port.slots + (ticket & (port.slots - 1));
}

__device__ inline unsigned *dtc_matching_outcome_of(const dtc_matching_port &port, unsigned kind, unsigned handle)
{
    const unsigned rings = 2 * port.communicators * port.partitions;
    unsigned *const outcomes = (unsigned *)(dtc_matching_slot_of(port, 0, 0) + (unsigned long long)rings * port.slots);
    return outcomes + (unsigned long long)kind * port.handles + handle;
}

template <class T> __device__ inline T dtc_matching_load(const T *address)
{
    return *(const volatile T *)address;
}

template <class T> __device__ inline void dtc_matching_store(T *address, T value)
{
    *(volatile T *)address = value;
}

__device__ inline void dtc_matching_fence(const dtc_matching_port &port)
{
    if (port.system)
        __threadfence_system();
    else
        __threadfence();
}

// Nanoseconds of the device's clock.
__device__ inline unsigned long long dtc_matching_now()
{
#ifdef __CUDA_ARCH__
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
#else
    return (unsigned long long)clock64();
#endif
}

__device__ inline int dtc_matching_add_room(const dtc_matching_port &port, dtc_matching_ring *ring, int count)
{
    return port.system ? atomicAdd_system(&ring->room, count) : atomicAdd(&ring->room, count);
}

// Reserves up to `count` slots in a row. Returns how many, and in `ticket` the first; 0 with the reason in `status`.
__device__ inline unsigned dtc_matching_reserve(const dtc_matching_port &port, unsigned number, unsigned count, unsigned *ticket,
                                                int *status)
{
    dtc_matching_ring *const ring = dtc_matching_ring_of(port, number);
    // Those who find no slot leave the sum alone: thousands that wait would keep it below 0.
    if (dtc_matching_load(&ring->room) <= 0) {
        *status = dtc_matching_load(&ring->state) & 1 ? DTC_MATCHING_STOPPED : DTC_MATCHING_FULL;
        return 0;
    }
    // Sums, which many threads make at once; an exchange would fail for all but one. Slots are free before they have tickets, so no
    // ticket has to be given back.
    const int wanted = (int)count, room = dtc_matching_add_room(port, ring, -wanted);
    const int some = room < 0 ? 0 : room < wanted ? room : wanted;
    if (some < wanted)
        dtc_matching_add_room(port, ring, wanted - some);
    if (some == 0) {
        *status = dtc_matching_load(&ring->state) & 1 ? DTC_MATCHING_STOPPED : DTC_MATCHING_FULL;
        return 0;
    }
    const unsigned long long tickets = (unsigned long long)some << 32;
    const unsigned long long state =
        port.system ? atomicAdd_system(&ring->state, tickets) : atomicAdd(&ring->state, tickets);
    if (state & 1) {
        // Tickets of a closed ring are void: the next start begins with those that there were before.
        dtc_matching_add_room(port, ring, some);
        *status = DTC_MATCHING_STOPPED;
        return 0;
    }
    *ticket = (unsigned)(state >> 32);
    *status = DTC_MATCHING_DONE;
    return (unsigned)some;
}

// Fills a slot that was reserved.
__device__ inline void dtc_matching_fill(const dtc_matching_port &port, unsigned ring, unsigned ticket, unsigned source,
                                                unsigned tag, unsigned handle)
{
    dtc_matching_slot *const slot = dtc_matching_slot_of(port, ring, ticket);
    const unsigned long long turn = (unsigned long long)(ticket + 1) << 32;
    dtc_matching_store(&slot->source, turn | source);
    dtc_matching_store(&slot->tag, turn | tag);
    dtc_matching_store(&slot->handle, turn | handle);
}

__device__ inline int dtc_matching_post(const dtc_matching_port &port, unsigned kind, unsigned source, unsigned tag,
                                               unsigned communicator, unsigned handle)
{
    if (communicator >= port.communicators)
        return DTC_MATCHING_COMMUNICATOR;
    if (handle >= port.handles)
        return DTC_MATCHING_HANDLE;
    // Receives from any source are of the only partition.
    const unsigned partition = (source & DTC_MATCHING_ANY) ? 0 : source % port.partitions;
    const unsigned ring = 2 * (communicator * port.partitions + partition) + kind;
    unsigned ticket = 0;
    int status = DTC_MATCHING_DONE;
    dtc_matching_store(dtc_matching_outcome_of(port, kind, handle), 0u);
    if (dtc_matching_reserve(port, ring, 1, &ticket, &status) == 0)
        return status;
    dtc_matching_fence(port);
    dtc_matching_fill(port, ring, ticket, source, tag, handle);
    return DTC_MATCHING_DONE;
}

// Posts a message. What the thread wrote before is visible to those who see the outcome of its receive.
__device__ inline int dtc_matching_send(const dtc_matching_port &port, unsigned source, unsigned tag, unsigned communicator,
                                               unsigned handle)
{
    if ((source | tag) & DTC_MATCHING_ANY)
        return DTC_MATCHING_RANGE;
    return dtc_matching_post(port, DTC_MATCHING_MESSAGES, source, tag, communicator, handle);
}

// Posts a receive; source and tag may be DTC_MATCHING_ANY.
__device__ inline int dtc_matching_receive(const dtc_matching_port &port, unsigned source, unsigned tag, unsigned communicator,
                                                  unsigned handle)
{
    if (source > DTC_MATCHING_ANY || tag > DTC_MATCHING_ANY)
        return DTC_MATCHING_RANGE;
    if (((port.refused & 1) && source == DTC_MATCHING_ANY) || ((port.refused & 2) && tag == DTC_MATCHING_ANY))
        return DTC_MATCHING_WILDCARD;
    return dtc_matching_post(port, DTC_MATCHING_RECEIVES, source, tag, communicator, handle);
}

// Whether an entry is matched: DTC_MATCHING_DONE with the other side's handle in `other`, DTC_MATCHING_PENDING, or why the host's
// entry was refused.
__device__ inline int dtc_matching_test(const dtc_matching_port &port, unsigned kind, unsigned handle, unsigned *other)
{
    if (handle >= port.handles)
        return DTC_MATCHING_HANDLE;
    const unsigned outcome = dtc_matching_load(dtc_matching_outcome_of(port, kind, handle));
    if (outcome == 0)
        return DTC_MATCHING_PENDING;
    if (outcome & DTC_MATCHING_REFUSED)
        return (int)(outcome & 0xff);
    dtc_matching_fence(port);
    *other = outcome & ~(unsigned)DTC_MATCHING_MATCHED;
    return DTC_MATCHING_DONE;
}

// Waits for an entry to be matched, at most some nanoseconds. DTC_MATCHING_STOPPED if the service has ended without it.
__device__ inline int dtc_matching_wait(const dtc_matching_port &port, unsigned kind, unsigned handle,
                                               unsigned long long nanoseconds, unsigned *other)
{
    const unsigned long long start = dtc_matching_now();
    for (unsigned turn = 0;; turn++) {
        const int status = dtc_matching_test(port, kind, handle, other);
        if (status != DTC_MATCHING_PENDING)
            return status;
        // The clock and the control are read less often than the outcome.
        if (turn % 16 != 15)
            continue;
        if (dtc_matching_load(&dtc_matching_control_of(port)->running) == 0) {
            // Whatever the service did, it did before.
            dtc_matching_fence(port);
            const int last = dtc_matching_test(port, kind, handle, other);
            return last == DTC_MATCHING_PENDING ? (int)DTC_MATCHING_STOPPED : last;
        }
        if (dtc_matching_now() - start > nanoseconds)
            return DTC_MATCHING_PENDING;
        if (turn > 1024)
            __nanosleep(100);
    }
}

#endif
