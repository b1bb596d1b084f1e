/* The processes that a collective sends to and receives from. */
#ifndef DTC_MPI_PEERS_H
#define DTC_MPI_PEERS_H

/* A block of a call; `at` is its place in the arguments. */
struct edge {
    int peer, at;
};

/* Blocks for one process, or from it. */
struct group {
    int peer, first, length;
};

/* One direction: blocks in the order of processes, those of one in the order of the call, as the MPI matches them. */
struct peers {
    struct edge *edges;
    struct group *groups;
    int length, count;
};

static void peers_drop(struct peers *peers)
{
    free(peers->edges);
    free(peers->groups);
    *peers = (struct peers){0};
}

static int edge_order(const void *left, const void *right)
{
    const struct edge *a = (const struct edge *)left, *b = (const struct edge *)right;
    return a->peer != b->peer ? (a->peer > b->peer) - (a->peer < b->peer) : (a->at > b->at) - (a->at < b->at);
}

/* Orders the blocks of a call, without those for no process; 0 if there is no memory. */
static int peers_order(struct peers *peers, int length, const int *ranks)
{
    peers->edges = (struct edge *)malloc(((size_t)length + 1) * sizeof *peers->edges);
    peers->groups = (struct group *)malloc(((size_t)length + 1) * sizeof *peers->groups);
    if (!peers->edges || !peers->groups) return 0;
    for (int at = 0; at < length; at++)
        if (ranks[at] != MPI_PROC_NULL) peers->edges[peers->length++] = (struct edge){ranks[at], at};
    qsort(peers->edges, (size_t)peers->length, sizeof *peers->edges, edge_order);
    for (int at = 0; at < peers->length; at++) {
        if (at == 0 || peers->edges[at].peer != peers->edges[at - 1].peer)
            peers->groups[peers->count++] = (struct group){peers->edges[at].peer, at, 0};
        peers->groups[peers->count - 1].length++;
    }
    return 1;
}

/* The neighbors in a Cartesian grid; 0 if some process is a neighbor twice: MPIs differ in which block goes where. */
static int cart_neighbors(MPI_Comm communicator, int length, int *ranks)
{
    int once = 1;
    for (int at = 0; at < length; at += 2) {
        if (PMPI_Cart_shift(communicator, at / 2, 1, &ranks[at], &ranks[at + 1]) != MPI_SUCCESS) return 0;
        for (int other = 0; other < at + 2; other++)
            for (int before = 0; before < other; before++)
                once = once && (ranks[other] == MPI_PROC_NULL || ranks[other] != ranks[before]);
    }
    return once;
}

/* The processes of a graph, as it was made. */
static int graph_neighbors(MPI_Comm communicator, int topology, int own, int out_length, int *out, int in_length, int *in)
{
    if (topology == MPI_GRAPH) {
        int found = PMPI_Graph_neighbors(communicator, own, out_length, out) == MPI_SUCCESS;
        memcpy(in, out, (size_t)out_length * sizeof *in);
        return found;
    }
    int most = out_length > in_length ? out_length : in_length, *weights = (int *)malloc(((size_t)most + 1) * sizeof *weights);
    int found = weights && PMPI_Dist_graph_neighbors(communicator, in_length, in, weights, out_length, out, weights) == MPI_SUCCESS;
    free(weights);
    return found;
}

/* Finds both directions of a call; 0 if this process cannot tell which block goes where. */
static int peers_find(struct peers *out, int out_length, struct peers *in, int in_length, MPI_Comm communicator, int neighbors, int own)
{
    int topology = MPI_UNDEFINED, known = 1, *ranks = (int *)calloc((size_t)out_length + (size_t)in_length + 1, sizeof *ranks);
    int *from = ranks ? ranks + out_length : NULL;
    if (!ranks) return 0;
    if (!neighbors) {
        for (int at = 0; at < out_length; at++) ranks[at] = from[at] = at;
    } else if (PMPI_Topo_test(communicator, &topology) == MPI_SUCCESS && topology == MPI_CART) {
        known = cart_neighbors(communicator, out_length, ranks);
        memcpy(from, ranks, (size_t)in_length * sizeof *from);
    } else {
        known = graph_neighbors(communicator, topology, own, out_length, ranks, in_length, from);
    }
    known = peers_order(out, out_length, ranks) && peers_order(in, in_length, from) && known;
    free(ranks);
    return known;
}

#endif
