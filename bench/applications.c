/*
 * Times exchanges as applications do them, with the MPI alone or with libdtc_mpi preloaded: the same program.
 *
 *   applications halo EDGE      a cube of EDGE^3 cells of 4 bytes for each process, periodic, radius 2, 26 neighbors: all regions packed
 *                               into one buffer, MPI_Alltoallv, and unpacked (Pearson et al. 2020, 5.5); and as 26 messages each way
 *   applications stencil EDGE   a square of EDGE^2 doubles for each process, nine points: rows north and south, then columns east and west
 *                               with the corners (Jenkins et al. 2014, after SHOC)
 *   applications mesh PARTICLES the arrays of a Voronoi mesh, of other lengths in each process, sent to the first (Jenkins et al. 2014)
 *
 *   applications halo EDGE device
 *                               the same cube in memory of a GPU, as messages and as MPI_Neighbor_alltoallw, without the packed one
 *   applications halo EDGE device halo.cubin [pinned]
 *                               the same, and packed by hand (halo.cu) into memory of the GPU, or into pinned memory of the host, and sent as
 *                               contiguous bytes
 *   applications vector BLOCK device [halo.cubin [pinned]]
 *                               elements in memory of a GPU, in blocks of so many bytes at a stride of 512 or of twice as many: exchanged
 *                               between 2 processes by MPI_Sendrecv and by MPI_Alltoallw, beside as many contiguous bytes on the GPU and in
 *                               pinned memory of the host, and packed by hand
 *
 * Prints microseconds of an exchange: the least of all rounds, of the slowest process. Every byte that is received is compared.
 */
#include "../interfaces/mpi/tests/programs/device.h"

enum { ROUNDS = 7, RADIUS = 2 };

/* Most bytes of a vector with its gaps, which the processor fills and compares. */
static const long MOST = 1L << 30;

/* Seconds that the calls of a round should take. */
static const double SECONDS = 0.02;

static int rank, ranks;
static enum where where;

/* Memory of all that is exchanged. */
static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory) MPI_Abort(MPI_COMM_WORLD, 1);
    return memory;
}

static void require(int right, const char *what, long at)
{
    if (right) return;
    printf("%s: %ld: expected another value\n", what, at);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void report(const char *what, long size, void exchange(void))
{
    double best = 1e9;
    int calls = 1, rounds = ROUNDS;
    for (int round = -1; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        for (int call = 0; call < calls; call++) exchange();
        double time = (MPI_Wtime() - begin) / calls, slowest;
        MPI_Allreduce(&time, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (round >= 0 || slowest > 1) best = slowest < best ? slowest : best;
        /* The first call tells how many make a round; one that takes long is not repeated. */
        if (round < 0) calls = slowest < SECONDS / 100 ? 100 : slowest < SECONDS ? (int)(SECONDS / slowest) : 1;
        if (slowest > 1) rounds = 0;
    }
    if (rank == 0) printf("%s %ld %d processes %.1f\n", what, size, ranks, best * 1e6);
    fflush(stdout);
}

#include "by_hand.h"

/* The cube of a process, with its halo. */
static int *cells, *mirror, edge, whole, place[3], grid[3], neighbor[27];
static MPI_Datatype inner[27], outer[27];
static MPI_Comm cube, graph;
static char *packed_out, *packed_in;
static int out_bytes[256], in_bytes[256], out_places[256], in_places[256];

/* Directions are 0 to 26, each digit to base 3 a step of -1, 0 or 1; the last digit is x. */
static int step(int direction, int axis)
{
    return (axis == 0 ? direction / 9 : axis == 1 ? direction / 3 % 3 : direction % 3) - 1;
}

static int value_at(const int at[3])
{
    long value = 0;
    for (int axis = 0; axis < 3; axis++) {
        long all = (long)grid[axis] * edge, global = ((long)place[axis] * edge + at[axis] - RADIUS + all) % all;
        value = value * all + global;
    }
    return (int)(value * 2654435761u);
}

static void fill(int halo)
{
    int at[3];
    size_t bytes = (size_t)whole * (size_t)whole * (size_t)whole * sizeof *cells;
    if (where == ON_DEVICE && halo) require(!cuda.MemcpyDtoH_v2(mirror, (uintptr_t)cells, bytes), "copy", 0);
    for (at[0] = 0; at[0] < whole; at[0]++)
        for (at[1] = 0; at[1] < whole; at[1]++)
            for (at[2] = 0; at[2] < whole; at[2]++) {
                int inside = 1;
                long cell = ((long)at[0] * whole + at[1]) * whole + at[2];
                for (int axis = 0; axis < 3; axis++) inside = inside && at[axis] >= RADIUS && at[axis] < RADIUS + edge;
                if (halo) require(mirror[cell] == value_at(at), "halo", cell);
                else mirror[cell] = inside ? value_at(at) : -1;
            }
    if (where == ON_DEVICE && !halo) require(!cuda.MemcpyHtoD_v2((uintptr_t)cells, mirror, bytes), "copy", 0);
}

/* The cells that are sent in a direction, or received from there. */
static struct region box(int direction, int is_outer)
{
    struct region made = {0};
    for (int axis = 0; axis < 3; axis++) {
        int to = step(direction, axis);
        made.size[axis] = to ? RADIUS : edge;
        made.start[axis] = to < 0 ? (is_outer ? 0 : RADIUS) : to > 0 ? (is_outer ? RADIUS + edge : edge) : RADIUS;
    }
    return made;
}

static MPI_Datatype region(int direction, int is_outer)
{
    int sizes[3] = {whole, whole, whole};
    struct region cells = box(direction, is_outer);
    MPI_Datatype made;
    MPI_Type_create_subarray(3, sizes, cells.size, cells.start, MPI_ORDER_C, MPI_INT, &made);
    MPI_Type_commit(&made);
    return made;
}

static void halo_packed(void)
{
    int out = 0, in = 0, total = 0;
    for (int peer = 0; peer < ranks; peer++) {
        int begin = out;
        for (int to = 0; to < 27; to++)
            if (to != 13 && neighbor[to] == peer) MPI_Pack(cells, 1, inner[to], packed_out, 1 << 30, &out, cube);
        out_places[peer] = begin;
        out_bytes[peer] = in_bytes[peer] = out - begin;
        in_places[peer] = total;
        total += out - begin;
    }
    MPI_Alltoallv(packed_out, out_bytes, out_places, MPI_PACKED, packed_in, in_bytes, in_places, MPI_PACKED, cube);
    for (int peer = 0; peer < ranks; peer++)
        for (int to = 0; to < 27; to++)
            if (to != 13 && neighbor[26 - to] == peer) MPI_Unpack(packed_in, 1 << 30, &in, cells, 1, outer[26 - to], cube);
}

static void halo_messages(void)
{
    MPI_Request requests[52];
    int length = 0;
    for (int to = 0; to < 27; to++)
        if (to != 13) MPI_Irecv(cells, 1, outer[to], neighbor[to], 26 - to, cube, &requests[length++]);
    for (int to = 0; to < 27; to++)
        if (to != 13) MPI_Isend(cells, 1, inner[to], neighbor[to], to, cube, &requests[length++]);
    MPI_Waitall(length, requests, MPI_STATUSES_IGNORE);
}

/* Neighbors in the order of the directions that blocks go; those that come from there are of the opposite ones. */
static void halo_neighbors(void)
{
    int ones[26];
    MPI_Aint zeros[26] = {0};
    MPI_Datatype out[26], in[26];
    for (int at = 0; at < 26; at++) {
        int to = at < 13 ? at : at + 1;
        ones[at] = 1;
        out[at] = inner[to];
        in[at] = outer[26 - to];
    }
    MPI_Neighbor_alltoallw(cells, ones, zeros, out, cells, ones, zeros, in, graph);
}

/* By the number of the message: a block goes in a direction, and the one that is received comes from the opposite. */
static int sources[26], destinations[26];

static void halo_by_hand(void)
{
    by_hand_exchange(cells, whole, destinations, sources, cube);
}

static void make_graph(void)
{
    struct region out[26], in[26];
    for (int at = 0; at < 26; at++) {
        int to = at < 13 ? at : at + 1;
        destinations[at] = neighbor[to];
        sources[at] = neighbor[26 - to];
        out[at] = box(to, 0), in[at] = box(26 - to, 1);
    }
    if (by_hand.path) by_hand_begin(out, in);
    /* Of the world, whose ranks are those of the cube: Open MPI 5.0 takes a graph of a grid for a grid. */
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 26, sources, MPI_UNWEIGHTED, 26, destinations, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
}

static void halo(void)
{
    int periodic[3] = {1, 1, 1}, bytes, total = 0;
    whole = edge + 2 * RADIUS;
    MPI_Dims_create(ranks, 3, grid);
    MPI_Cart_create(MPI_COMM_WORLD, 3, grid, periodic, 0, &cube);
    MPI_Cart_coords(cube, rank, 3, place);
    for (int to = 0; to < 27; to++) {
        int other[3];
        for (int axis = 0; axis < 3; axis++) other[axis] = place[axis] + step(to, axis);
        MPI_Cart_rank(cube, other, &neighbor[to]);
        inner[to] = region(to, 0);
        outer[to] = region(to, 1);
        MPI_Type_size(inner[to], &bytes);
        if (to != 13) total += bytes;
    }
    size_t all = (size_t)whole * (size_t)whole * (size_t)whole * sizeof *cells;
    uintptr_t there = 0;
    cells = mirror = allocate(all);
    if (where == ON_DEVICE) require(!cuda.MemAlloc_v2(&there, all), "memory", (long)all);
    if (there) cells = (int *)there;
    make_graph();
    packed_out = allocate((size_t)total);
    packed_in = allocate((size_t)total);
    static const char *const names[] = {"halo, packed", "halo, messages", "halo, neighbors", "halo, by hand"};
    void (*const exchanges[])(void) = {halo_packed, halo_messages, halo_neighbors, halo_by_hand};
    for (int way = where == ON_DEVICE; way < 3 + !!by_hand.path; way++) {
        fill(0);
        exchanges[way]();
        fill(1);
        report(names[way], edge, exchanges[way]);
    }
    for (int to = 0; to < 27; to++) {
        MPI_Type_free(&inner[to]);
        MPI_Type_free(&outer[to]);
    }
    MPI_Comm_free(&graph);
    MPI_Comm_free(&cube);
}

/* The square of a process, with its halo. */
static double *square;
static int north, south, west, east;
static MPI_Datatype column;
static MPI_Comm plane;

static void stencil_exchange(void)
{
    long wide = edge + 2;
    MPI_Sendrecv(square + wide + 1, edge, MPI_DOUBLE, north, 0, square + (wide - 1) * wide + 1, edge, MPI_DOUBLE, south, 0, plane,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(square + (wide - 2) * wide + 1, edge, MPI_DOUBLE, south, 1, square + 1, edge, MPI_DOUBLE, north, 1, plane,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(square + 1, 1, column, west, 2, square + wide - 1, 1, column, east, 2, plane, MPI_STATUS_IGNORE);
    MPI_Sendrecv(square + wide - 2, 1, column, east, 3, square, 1, column, west, 3, plane, MPI_STATUS_IGNORE);
}

static void stencil(void)
{
    int dimensions[2] = {0, 0}, periodic[2] = {1, 1}, at[2];
    long wide = edge + 2;
    MPI_Dims_create(ranks, 2, dimensions);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dimensions, periodic, 0, &plane);
    MPI_Cart_coords(plane, rank, 2, at);
    MPI_Cart_shift(plane, 0, 1, &north, &south);
    MPI_Cart_shift(plane, 1, 1, &west, &east);
    MPI_Type_vector((int)wide, 1, (int)wide, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    square = allocate((size_t)(wide * wide) * sizeof *square);
    for (int check = 0; check < 2; check++) {
        for (long row = 0; row < wide; row++)
            for (long place = 0; place < wide; place++) {
                long down = (long)dimensions[0] * edge, across = (long)dimensions[1] * edge;
                long y = (at[0] * (long)edge + row - 1 + down) % down, x = (at[1] * (long)edge + place - 1 + across) % across;
                int inside = row > 0 && row <= edge && place > 0 && place <= edge;
                if (check) require(square[row * wide + place] == (double)(y * across + x), "stencil", row * wide + place);
                else square[row * wide + place] = inside ? (double)(y * across + x) : -1;
            }
        if (!check) stencil_exchange();
    }
    report("stencil", edge, stencil_exchange);
    MPI_Type_free(&column);
    MPI_Comm_free(&plane);
}

/* Seven counts and six bounds, then arrays of floats and integers, of which there are that many for each particle. */
enum { ARRAYS = 8 };
static const int per_particle[ARRAYS] = {21, 3, 1, 1, 14, 40, 1, 14};
static int *mesh, lengths[256], starts[ARRAYS];
static MPI_Datatype of_mesh;
static char *received;

static void mesh_exchange(void)
{
    MPI_Request request;
    MPI_Isend(mesh, 1, of_mesh, 0, 0, MPI_COMM_WORLD, &request);
    long to = 0;
    for (int peer = 0; rank == 0 && peer < ranks; to += lengths[peer++])
        MPI_Recv(received + to, lengths[peer], MPI_PACKED, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static int number_at(int process, int array, int at)
{
    return process * 1000003 + array * 10007 + at;
}

/* As many particles as in process 0, and up to half as many more. */
static int particles_of(int process, int particles)
{
    return particles + particles * (process * 5 % 8) / 16;
}

static void compare_mesh(int particles)
{
    const int *at = (const int *)received;
    for (int peer = 0; peer < ranks; peer++) {
        for (int number = 0; number < 13; number++) require(*at++ == number_at(peer, ARRAYS, number), "mesh", number);
        for (int array = 0; array < ARRAYS; array++)
            for (int number = 0; number < per_particle[array] * particles_of(peer, particles); number++)
                require(*at++ == number_at(peer, array, number), "mesh", number);
    }
}

static void mesh_of(int particles)
{
    int own = particles_of(rank, particles), blocks[ARRAYS + 1] = {13}, total = 64, bytes, all = 0;
    MPI_Aint places[ARRAYS + 1] = {0};
    MPI_Datatype kinds[ARRAYS + 1] = {MPI_INT};
    for (int array = 0; array < ARRAYS; array++) {
        starts[array] = total;
        blocks[array + 1] = per_particle[array] * own;
        places[array + 1] = (MPI_Aint)total * (MPI_Aint)sizeof *mesh;
        kinds[array + 1] = array < 4 ? MPI_FLOAT : MPI_INT;
        total += blocks[array + 1] + 64;
    }
    mesh = allocate((size_t)total * sizeof *mesh);
    for (int at = 0; at < 13; at++) mesh[at] = number_at(rank, ARRAYS, at);
    for (int array = 0; array < ARRAYS; array++)
        for (int at = 0; at < blocks[array + 1]; at++) mesh[starts[array] + at] = number_at(rank, array, at);
    MPI_Type_create_struct(ARRAYS + 1, blocks, places, kinds, &of_mesh);
    MPI_Type_commit(&of_mesh);
    MPI_Type_size(of_mesh, &bytes);
    MPI_Allgather(&bytes, 1, MPI_INT, lengths, 1, MPI_INT, MPI_COMM_WORLD);
    for (int peer = 0; peer < ranks; peer++) all += lengths[peer];
    received = allocate((size_t)all);
    mesh_exchange();
    if (rank == 0) compare_mesh(particles);
    report("mesh", particles, mesh_exchange);
    MPI_Type_free(&of_mesh);
}

/* Both sides of an exchange of vectors: elements, contiguous bytes in the same memory, and pinned ones. */
static unsigned char *sent, *got;
static void *pinned_out, *pinned_in;
static long vector_bytes;
static MPI_Datatype rows;

static void between_pinned(void)
{
    MPI_Sendrecv(pinned_out, (int)vector_bytes, MPI_BYTE, !rank, 0, pinned_in, (int)vector_bytes, MPI_BYTE, !rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void between_contiguous(void)
{
    MPI_Sendrecv(sent, (int)vector_bytes, MPI_BYTE, !rank, 0, got, (int)vector_bytes, MPI_BYTE, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void between_vectors(void)
{
    MPI_Sendrecv(sent, 1, rows, !rank, 0, got, 1, rows, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void all_vectors(void)
{
    int counts[2] = {rank, !rank}, places[2] = {0};
    MPI_Datatype types[2] = {rows, rows};
    MPI_Alltoallw(sent, counts, places, types, got, counts, places, types, MPI_COMM_WORLD);
}

static long block_bytes, stride_bytes;

static void vectors_by_hand(void)
{
    by_hand_rows(sent, got, block_bytes, stride_bytes, vector_bytes, !rank);
}

static unsigned char byte_of(int process, long at)
{
    return (unsigned char)(at * 167 + (at >> 8) * 13 + (at >> 16) * 5 + process * 77);
}

static void vectors(int way, void exchange(void))
{
    static const char *const names[] = {"contiguous, pinned", "contiguous", "vector, MPI_Sendrecv", "vector, MPI_Alltoallw", "vector, by hand"};
    long length = vector_bytes / block_bytes * stride_bytes;
    unsigned char *values = allocate((size_t)length);
    for (long at = 0; at < length; at++) values[at] = byte_of(rank, at);
    require(!cuda.MemcpyHtoD_v2((uintptr_t)sent, values, (size_t)length), "copy", 0);
    memset(values, 0xa5, (size_t)length);
    require(!cuda.MemcpyHtoD_v2((uintptr_t)got, values, (size_t)length), "copy", 0);
    exchange();
    require(!cuda.MemcpyDtoH_v2(values, (uintptr_t)got, (size_t)length), "copy", 0);
    for (long at = 0; at < length && way > 0; at++) {
        int received = way == 1 ? at < vector_bytes : at % stride_bytes < block_bytes;
        require(values[at] == (received ? byte_of(!rank, at) : 0xa5), names[way], at);
    }
    free(values);
    report(names[way], vector_bytes, exchange);
}

static void vectors_of(long block)
{
    void (*const exchanges[])(void) = {between_pinned, between_contiguous, between_vectors, all_vectors, vectors_by_hand};
    int ways = by_hand.path && block % 16 == 0 ? 5 : 4;
    block_bytes = block, stride_bytes = block < 512 ? 512 : 2 * block;
    if (ways == 5) load_kernels("rows_pack", "rows_unpack");
    for (vector_bytes = 1 << 16; vector_bytes <= 64 << 20; vector_bytes *= vector_bytes < 1 << 24 ? 16 : 4) {
        uintptr_t out, in;
        size_t length = (size_t)(vector_bytes / block_bytes * stride_bytes);
        if ((long)length > MOST) break;
        MPI_Type_vector((int)(vector_bytes / block_bytes), (int)block_bytes, (int)stride_bytes, MPI_BYTE, &rows);
        MPI_Type_commit(&rows);
        require(!cuda.MemAlloc_v2(&out, length) && !cuda.MemAlloc_v2(&in, length), "memory", (long)length);
        require(!cuda.MemHostAlloc(&pinned_out, (size_t)vector_bytes, 3) && !cuda.MemHostAlloc(&pinned_in, (size_t)vector_bytes, 3), "pinned", 0);
        if (ways == 5) by_hand.packed_out = packed_memory((size_t)vector_bytes), by_hand.packed_in = packed_memory((size_t)vector_bytes);
        sent = (unsigned char *)out, got = (unsigned char *)in;
        for (int way = 0; way < ways; way++) vectors(way, exchanges[way]);
        if (ways == 5) packed_free(by_hand.packed_out), packed_free(by_hand.packed_in);
        cuda.MemFree_v2(out), cuda.MemFree_v2(in), cuda.MemFreeHost(pinned_out), cuda.MemFreeHost(pinned_in);
        MPI_Type_free(&rows);
    }
}

int main(int argc, char **argv)
{
    if (argc >= 4 && !strcmp(argv[3], "device")) open_device(launched_rank());
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    edge = argc >= 3 ? atoi(argv[2]) : 0;
    int is_vector = argc >= 2 && !strcmp(argv[1], "vector");
    if (argc >= 5 && (is_vector || !strcmp(argv[1], "halo"))) by_hand.path = argv[4], by_hand.is_pinned = argc == 6 && !strcmp(argv[5], "pinned");
    where = (argc == 4 || by_hand.path) && (is_vector || !strcmp(argv[1], "halo")) && !strcmp(argv[3], "device") ? ON_DEVICE : ON_HOST;
    if ((argc > 3 || is_vector) && where == ON_HOST) edge = 0;
    if (edge < 2 * RADIUS || ranks > 256 || (is_vector && ranks != 2)) {
        if (rank == 0) fprintf(stderr, "usage: applications halo|stencil|mesh SIZE, or halo|vector SIZE device [halo.cubin [pinned]]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (!strcmp(argv[1], "halo")) halo();
    else if (is_vector) vectors_of(edge);
    else if (!strcmp(argv[1], "stencil")) stencil();
    else mesh_of(edge);
    MPI_Finalize();
    return 0;
}
