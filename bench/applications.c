/*
 * Times exchanges as applications do them, with the MPI alone or with libdtc_mpi preloaded: the same program.
 *
 *   applications halo EDGE      a cube of EDGE^3 cells of 4 bytes for each process, periodic, radius 2, 26 neighbors: all regions packed
 *                               into one buffer, MPI_Alltoallv, and unpacked (Pearson et al. 2020, 5.5); and as 26 messages each way
 *   applications stencil EDGE   a square of EDGE^2 doubles for each process, nine points: rows north and south, then columns east and west
 *                               with the corners (Jenkins et al. 2014, after SHOC)
 *   applications mesh PARTICLES the arrays of a Voronoi mesh, of other lengths in each process, sent to the first (Jenkins et al. 2014)
 *
 * Prints microseconds of an exchange: the least of all rounds, of the slowest process. Every byte that is received is compared.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 7, RADIUS = 2 };

static int rank, ranks, calls = 10;

/* Memory of all that is exchanged. */
static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory) MPI_Abort(MPI_COMM_WORLD, 1);
    return memory;
}

static void expect(int right, const char *what, long at)
{
    if (right) return;
    printf("%s: %ld: expected another value\n", what, at);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void report(const char *what, long size, void exchange(void))
{
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        for (int call = 0; call < calls; call++) exchange();
        double time = (MPI_Wtime() - begin) / calls * 1e6, slowest;
        MPI_Allreduce(&time, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (slowest < best) best = slowest;
    }
    if (rank == 0) printf("%s %ld %d processes %.1f\n", what, size, ranks, best);
}

/* The cube of a process, with its halo. */
static int *cells, edge, whole, place[3], grid[3], neighbor[27];
static MPI_Datatype inner[27], outer[27];
static MPI_Comm cube;
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
    for (at[0] = 0; at[0] < whole; at[0]++)
        for (at[1] = 0; at[1] < whole; at[1]++)
            for (at[2] = 0; at[2] < whole; at[2]++) {
                int inside = 1;
                long cell = ((long)at[0] * whole + at[1]) * whole + at[2];
                for (int axis = 0; axis < 3; axis++) inside = inside && at[axis] >= RADIUS && at[axis] < RADIUS + edge;
                if (halo) expect(cells[cell] == value_at(at), "halo", cell);
                else cells[cell] = inside ? value_at(at) : -1;
            }
}

static MPI_Datatype region(int direction, int is_outer)
{
    int sizes[3], parts[3], starts[3];
    MPI_Datatype made;
    for (int axis = 0; axis < 3; axis++) {
        int to = step(direction, axis);
        sizes[axis] = whole;
        parts[axis] = to ? RADIUS : edge;
        starts[axis] = to < 0 ? (is_outer ? 0 : RADIUS) : to > 0 ? (is_outer ? RADIUS + edge : edge) : RADIUS;
    }
    MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &made);
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
    cells = allocate((size_t)whole * (size_t)whole * (size_t)whole * sizeof *cells);
    packed_out = allocate((size_t)total);
    packed_in = allocate((size_t)total);
    for (int way = 0; way < 2; way++) {
        void (*exchange)(void) = way ? halo_messages : halo_packed;
        fill(0);
        exchange();
        fill(1);
        report(way ? "halo, messages" : "halo, packed", edge, exchange);
    }
    for (int to = 0; to < 27; to++) {
        MPI_Type_free(&inner[to]);
        MPI_Type_free(&outer[to]);
    }
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
                if (check) expect(square[row * wide + place] == (double)(y * across + x), "stencil", row * wide + place);
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
        for (int number = 0; number < 13; number++) expect(*at++ == number_at(peer, ARRAYS, number), "mesh", number);
        for (int array = 0; array < ARRAYS; array++)
            for (int number = 0; number < per_particle[array] * particles_of(peer, particles); number++)
                expect(*at++ == number_at(peer, array, number), "mesh", number);
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

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    edge = argc == 3 ? atoi(argv[2]) : 0;
    if (edge < 2 * RADIUS || ranks > 256) {
        if (rank == 0) fprintf(stderr, "usage: applications halo|stencil|mesh SIZE, on up to 256 processes\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (!strcmp(argv[1], "halo")) halo();
    else if (!strcmp(argv[1], "stencil")) stencil();
    else mesh_of(edge);
    MPI_Finalize();
    return 0;
}
