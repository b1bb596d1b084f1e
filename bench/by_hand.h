/* Exchanges of applications.c, packed by kernels of halo.cu and sent as contiguous bytes: what an application does that does not use datatypes. */

enum { REGIONS = 26, THREADS = 256, MOST_BLOCKS = 512 };

/* As halo.cu has it. */
struct region {
    int start[3], size[3], first;
};

static struct {
    int (*ModuleLoad)(void **, const char *);
    int (*ModuleGetFunction)(void **, void *, const char *);
    int (*LaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
    int (*StreamSynchronize)(void *);
} kernels;

static struct {
    /* The file of the kernels; null if nothing is done by hand. */
    const char *path;
    /* Whether packed cells lie in pinned memory of the host: for an MPI without CUDA. */
    int is_pinned;
    void *pack, *unpack;
    /* In the order of the messages. */
    struct region out[REGIONS], in[REGIONS];
    uintptr_t regions_out, regions_in, packed_out, packed_in;
} by_hand;

static int cells_of(const struct region *region)
{
    return region->size[0] * region->size[1] * region->size[2];
}

static uintptr_t packed_memory(size_t bytes)
{
    uintptr_t there = 0;
    void *pinned = NULL;
    if (by_hand.is_pinned) require(!cuda.MemHostAlloc(&pinned, bytes, 3), "pinned", (long)bytes);
    else require(!cuda.MemAlloc_v2(&there, bytes), "memory", (long)bytes);
    return by_hand.is_pinned ? (uintptr_t)pinned : there;
}

static void packed_free(uintptr_t packed)
{
    if (by_hand.is_pinned) cuda.MemFreeHost((void *)packed);
    else cuda.MemFree_v2(packed);
}

static uintptr_t on_device(struct region *regions)
{
    uintptr_t there;
    size_t bytes = REGIONS * sizeof *regions;
    for (int at = 0, first = 0; at < REGIONS; first += cells_of(&regions[at++])) regions[at].first = first;
    require(!cuda.MemAlloc_v2(&there, bytes) && !cuda.MemcpyHtoD_v2(there, regions, bytes), "regions", 0);
    return there;
}

/* Finds two kernels in the file. */
static void load_kernels(const char *pack, const char *unpack)
{
    void *module = NULL;
#define FIND_KERNELS(name)                                                                                                        \
    do {                                                                                                                           \
        void *found = dlsym(RTLD_DEFAULT, "cu" #name);                                                                            \
        require(!!found, "cu" #name, 0);                                                                                           \
        memcpy(&kernels.name, &found, sizeof found);                                                                              \
    } while (0)
    FIND_KERNELS(ModuleLoad);
    FIND_KERNELS(ModuleGetFunction);
    FIND_KERNELS(LaunchKernel);
    FIND_KERNELS(StreamSynchronize);
    require(!kernels.ModuleLoad(&module, by_hand.path), by_hand.path, 0);
    require(!kernels.ModuleGetFunction(&by_hand.pack, module, pack), pack, 0);
    require(!kernels.ModuleGetFunction(&by_hand.unpack, module, unpack), unpack, 0);
}

/* Of the regions of all messages, which both ends number alike. */
static void by_hand_begin(const struct region out[REGIONS], const struct region in[REGIONS])
{
    int cells = 0;
    load_kernels("halo_pack", "halo_unpack");
    memcpy(by_hand.out, out, sizeof by_hand.out);
    memcpy(by_hand.in, in, sizeof by_hand.in);
    by_hand.regions_out = on_device(by_hand.out), by_hand.regions_in = on_device(by_hand.in);
    for (int at = 0; at < REGIONS; at++) cells += cells_of(&out[at]);
    by_hand.packed_out = packed_memory((size_t)cells * sizeof(int)), by_hand.packed_in = packed_memory((size_t)cells * sizeof(int));
}

static void launch(void *kernel, int *cells, int whole, uintptr_t regions, uintptr_t packed, int most)
{
    void *arguments[] = {&cells, &whole, &regions, &packed};
    unsigned blocks = (unsigned)((most + THREADS - 1) / THREADS);
    if (blocks > MOST_BLOCKS) blocks = MOST_BLOCKS;
    require(!kernels.LaunchKernel(kernel, blocks, REGIONS, 1, THREADS, 1, 1, 0, NULL, arguments, NULL), "launch", 0);
    require(!kernels.StreamSynchronize(NULL), "kernel", 0);
}

/* `to` and `from` are the processes of the messages. */
static void by_hand_exchange(int *cells, int whole, const int *to, const int *from, MPI_Comm communicator)
{
    MPI_Request requests[2 * REGIONS];
    int most = 0;
    for (int at = 0; at < REGIONS; at++) {
        const struct region *region = &by_hand.in[at];
        if (cells_of(region) > most) most = cells_of(region);
        void *into = (void *)(by_hand.packed_in + (uintptr_t)region->first * sizeof(int));
        MPI_Irecv(into, cells_of(region), MPI_INT, from[at], at, communicator, &requests[at]);
    }
    launch(by_hand.pack, cells, whole, by_hand.regions_out, by_hand.packed_out, most);
    for (int at = 0; at < REGIONS; at++) {
        const struct region *region = &by_hand.out[at];
        const void *packed = (const void *)(by_hand.packed_out + (uintptr_t)region->first * sizeof(int));
        MPI_Isend(packed, cells_of(region), MPI_INT, to[at], at, communicator, &requests[REGIONS + at]);
    }
    MPI_Waitall(2 * REGIONS, requests, MPI_STATUSES_IGNORE);
    launch(by_hand.unpack, cells, whole, by_hand.regions_in, by_hand.packed_in, most);
}

/* Of `bytes` bytes in blocks at a stride, all multiples of 16. */
static void launch_rows(void *kernel, void *elements, long block, long stride, long bytes, uintptr_t packed)
{
    int in_words[] = {(int)(block / 16), (int)(stride / 16), (int)(bytes / 16)};
    void *arguments[] = {&elements, &in_words[0], &in_words[1], &in_words[2], &packed};
    unsigned blocks = (unsigned)((in_words[2] + THREADS - 1) / THREADS);
    require(!kernels.LaunchKernel(kernel, blocks, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL), "launch", 0);
    require(!kernels.StreamSynchronize(NULL), "kernel", 0);
}

static void by_hand_rows(void *sent, void *received, long block, long stride, long bytes, int other)
{
    launch_rows(by_hand.pack, sent, block, stride, bytes, by_hand.packed_out);
    MPI_Sendrecv((void *)by_hand.packed_out, (int)bytes, MPI_BYTE, other, 0, (void *)by_hand.packed_in, (int)bytes, MPI_BYTE, other, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    launch_rows(by_hand.unpack, received, block, stride, bytes, by_hand.packed_in);
}
