/*
 * Datatypes of an MPI as types of dtc.
 *
 * Every MPI tells how a datatype was made: MPI_Type_get_envelope and MPI_Type_get_contents, or their large-count forms. The
 * functions below follow that to the predefined types and make the same type with dtc.h. Bounds are those that the MPI reports at
 * every node, since MPIs differ in them. Nothing here depends on one MPI: compile it with the mpi.h of the program, MPICH's, Open
 * MPI's or that of the standard ABI of MPI 5. (MPI 4.1, 5.1.13)
 *
 *     dtc_mpi_decoder decoder;
 *     dtc_mpi_decoder_init(engine, &decoder);
 *     dtc_type *type;
 *     if (dtc_mpi_committed(&decoder, datatype, &type) == DTC_OK) {
 *         dtc_pack(type, memory, count, 0, packed, size, &done, NULL);
 *         dtc_type_release(type);
 *     }
 *     dtc_mpi_decoder_free(&decoder);
 *
 * Functions return the statuses of dtc.h, and of every failure dtc_message() tells. They call PMPI functions, which profilers do not count, with arguments for which no
 * MPI calls an error handler. They may be called between MPI_Init and MPI_Finalize, by any thread that the MPI allows to call it.
 */
#ifndef DTC_MPI_H
#define DTC_MPI_H

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dtc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Failures of the functions below. */
static inline int dtc_mpi_no_datatype(void)
{
    return dtc_fail(DTC_ERROR_ARGUMENT, "datatype: expected a datatype, found MPI_DATATYPE_NULL");
}

static inline int dtc_mpi_no_memory(void)
{
    return dtc_fail(DTC_ERROR_OUT_OF_MEMORY, "memory: expected enough for what MPI tells of a datatype, found less");
}

static inline int dtc_mpi_no_attribute(void)
{
    return dtc_fail(DTC_ERROR_INTERNAL, "MPI: expected attributes of datatypes, found an error");
}

/* Decodes datatypes and remembers, at each datatype, what it became. */
typedef struct dtc_mpi_decoder {
    /* The engine of the types; the caller's. */
    dtc_engine *engine;
    /* The attribute of datatypes that holds their committed type. It goes with the datatype: handle values are used again. */
    int keyval;
} dtc_mpi_decoder;

/* A datatype on the way to a type. */
typedef struct dtc_mpi_node {
    MPI_Datatype handle;
    /* The type, once it was made. */
    dtc_type *type;
    /* Numbers of the constructor, in the order of dtc_type_create: the integers, then the addresses. */
    int64_t *numbers;
    int64_t n_integers, n_addresses;
    /* Places of the children among the nodes. */
    int64_t *children;
    int64_t n_children;
    /* DTC_COMBINER_..., or 0 for what is made at once. */
    int32_t combiner;
    /* Children whose types are known to be made. */
    int64_t visited;
} dtc_mpi_node;

/* The nodes of one datatype, each once. A datatype may be a graph in which a path to every node costs exponential time. */
typedef struct dtc_mpi_graph {
    dtc_mpi_node *nodes;
    int64_t n_nodes, capacity;
    /* Places of nodes by a hash of their handles, -1 where none is; its length is a power of two. */
    int64_t *places;
    int64_t n_places;
} dtc_mpi_graph;

static inline uint64_t dtc_mpi_hash(MPI_Datatype handle)
{
    uint64_t bits = 0;
    memcpy(&bits, &handle, sizeof handle);
    bits *= UINT64_C(0x9e3779b97f4a7c15);
    return bits ^ bits >> 32;
}

static inline int dtc_mpi_grow(dtc_mpi_graph *graph)
{
    int64_t capacity = graph->capacity ? 2 * graph->capacity : 8, n_places = 2 * capacity;
    dtc_mpi_node *nodes = (dtc_mpi_node *)realloc(graph->nodes, (size_t)capacity * sizeof *nodes);
    if (nodes) graph->nodes = nodes;
    int64_t *places = nodes ? (int64_t *)malloc((size_t)n_places * sizeof *places) : NULL;
    if (!places) return dtc_mpi_no_memory();
    for (int64_t at = 0; at < n_places; at++) places[at] = -1;
    for (int64_t node = 0; node < graph->n_nodes; node++) {
        uint64_t at = dtc_mpi_hash(nodes[node].handle);
        while (places[at & (uint64_t)(n_places - 1)] >= 0) at++;
        places[at & (uint64_t)(n_places - 1)] = node;
    }
    free(graph->places);
    graph->places = places;
    graph->n_places = n_places;
    graph->capacity = capacity;
    return DTC_OK;
}

/* Handles of predefined and unnamed predefined datatypes are not the caller's to free, and freeing the latter aborts in Open MPI. */
static inline int dtc_mpi_is_predefined(int combiner)
{
    switch (combiner) {
    case MPI_COMBINER_NAMED:
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
    case MPI_COMBINER_F90_INTEGER:
/* An enumerator in some MPIs, and a macro in others. It came with MPI 4.1. */
#if defined(MPI_COMBINER_VALUE_INDEX) || MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    case MPI_COMBINER_VALUE_INDEX:
#endif
        return 1;
    default:
        return 0;
    }
}

/* What the envelope of a datatype tells. */
typedef struct dtc_mpi_envelope {
    int combiner;
    int64_t n_integers, n_addresses, n_counts, n_types;
} dtc_mpi_envelope;

static inline dtc_mpi_envelope dtc_mpi_get_envelope(MPI_Datatype handle)
{
    dtc_mpi_envelope envelope;
#if MPI_VERSION >= 4
    MPI_Count integers, addresses, counts, types;
    PMPI_Type_get_envelope_c(handle, &integers, &addresses, &counts, &types, &envelope.combiner);
    envelope.n_counts = counts;
#else
    int integers, addresses, types;
    PMPI_Type_get_envelope(handle, &integers, &addresses, &types, &envelope.combiner);
    envelope.n_counts = 0;
#endif
    envelope.n_integers = integers;
    envelope.n_addresses = addresses;
    envelope.n_types = types;
    return envelope;
}

static inline void dtc_mpi_free_handle(MPI_Datatype handle)
{
    if (!dtc_mpi_is_predefined(dtc_mpi_get_envelope(handle).combiner)) PMPI_Type_free(&handle);
}

/* Finds or adds the node of a handle, which the graph owns from now on; its place, or -1 if there is no memory. */
static inline int64_t dtc_mpi_node_of(dtc_mpi_graph *graph, MPI_Datatype handle)
{
    if (graph->n_nodes == graph->capacity && dtc_mpi_grow(graph) != DTC_OK) return -1;
    uint64_t mask = (uint64_t)(graph->n_places - 1), at = dtc_mpi_hash(handle) & mask;
    for (; graph->places[at] >= 0; at = (at + 1) & mask) {
        if (graph->nodes[graph->places[at]].handle == handle) {
            /* The first reference keeps the datatype, so that its handle stays its own. */
            dtc_mpi_free_handle(handle);
            return graph->places[at];
        }
    }
    dtc_mpi_node *node = &graph->nodes[graph->n_nodes];
    memset(node, 0, sizeof *node);
    node->handle = handle;
    node->visited = -1;
    graph->places[at] = graph->n_nodes;
    return graph->n_nodes++;
}

static inline void dtc_mpi_clear(dtc_mpi_graph *graph)
{
    for (int64_t at = 0; at < graph->n_nodes; at++) {
        dtc_mpi_node *node = &graph->nodes[at];
        if (node->type) dtc_type_release(node->type);
        /* The first node is the caller's datatype. */
        if (at > 0) dtc_mpi_free_handle(node->handle);
        free(node->numbers);
        free(node->children);
    }
    free(graph->nodes);
    free(graph->places);
}

/* What the MPI says of sizes and bounds, in bytes. */
static inline dtc_facts dtc_mpi_facts(MPI_Datatype handle)
{
    dtc_facts facts;
    MPI_Count lb, extent, packed;
    PMPI_Type_get_extent_x(handle, &lb, &extent);
    PMPI_Type_size_x(handle, &packed);
    facts.size = sizeof facts;
    facts.lb = lb;
    facts.extent = extent;
    facts.packed_size = packed;
    return facts;
}

/* Gives a type the bounds that the MPI reports, where they are others. */
static inline int dtc_mpi_with_facts(const dtc_engine *engine, MPI_Datatype handle, dtc_type **type)
{
    dtc_facts facts = dtc_mpi_facts(handle);
    const dtc_type *plain = *type;
    dtc_type *bounded = NULL;
    int status = dtc_type_create(engine, DTC_COMBINER_DUP, NULL, 0, NULL, 0, &plain, 1, &facts, &bounded);
    dtc_type_release(*type);
    *type = bounded;
    return status;
}

/* Makes a predefined type by its name. One that was renamed, or that dtc does not know, is bytes if it is contiguous. */
static inline int dtc_mpi_named(const dtc_engine *engine, MPI_Datatype handle, dtc_type **type)
{
    char name[MPI_MAX_OBJECT_NAME + 1] = "";
    int length = 0;
    MPI_Count true_lb, true_extent;
    dtc_facts facts = dtc_mpi_facts(handle);
    PMPI_Type_get_name(handle, name, &length);
    PMPI_Type_get_true_extent_x(handle, &true_lb, &true_extent);
    if (dtc_type_named(engine, name, type) == DTC_OK) {
        dtc_info info = DTC_INFO_INIT;
        /* Only of committed types does dtc tell bounds. */
        int status = dtc_type_commit(*type, 0);
        if (status == DTC_OK) status = dtc_type_query(*type, &info);
        int same = info.packed_size == facts.packed_size && info.true_extent == true_extent && info.true_lb == true_lb;
        if (status == DTC_OK && same && info.lb == facts.lb && info.extent == facts.extent) return DTC_OK;
        if (status == DTC_OK && same) return dtc_mpi_with_facts(engine, handle, type);
        dtc_type_release(*type);
        *type = NULL;
    }
    if (true_lb != 0 || true_extent != facts.packed_size)
        return dtc_fail(DTC_ERROR_TYPE, "datatype: expected a predefined datatype that dtc knows, or one without gaps, found another one");
    int status = dtc_type_basic(engine, DTC_KIND_BYTES, facts.packed_size, type);
    return status == DTC_OK ? dtc_mpi_with_facts(engine, handle, type) : status;
}

/* Makes a predefined type, or one of Fortran's SELECTED_..._KIND, which have no name. */
static inline int dtc_mpi_predefined(const dtc_engine *engine, MPI_Datatype handle, int combiner, dtc_type **type)
{
    int64_t size = dtc_mpi_facts(handle).packed_size;
    int status;
    switch (combiner) {
    case MPI_COMBINER_F90_REAL:
        status = dtc_type_basic(engine, DTC_KIND_FLOAT, size, type);
        break;
    case MPI_COMBINER_F90_COMPLEX:
        status = dtc_type_basic(engine, DTC_KIND_COMPLEX, size, type);
        break;
    case MPI_COMBINER_F90_INTEGER:
        status = dtc_type_basic(engine, DTC_KIND_SIGNED, size, type);
        break;
    default:
        return dtc_mpi_named(engine, handle, type);
    }
    if (status != DTC_OK) status = dtc_type_basic(engine, DTC_KIND_BYTES, size, type);
    return status == DTC_OK ? dtc_mpi_with_facts(engine, handle, type) : status;
}

static inline int64_t dtc_mpi_distribution(int64_t distribution)
{
    if (distribution == MPI_DISTRIBUTE_BLOCK) return DTC_DISTRIBUTE_BLOCK;
    return distribution == MPI_DISTRIBUTE_CYCLIC ? DTC_DISTRIBUTE_CYCLIC : DTC_DISTRIBUTE_NONE;
}

static inline void dtc_mpi_reverse(int64_t *first, int64_t *last)
{
    while (first < last && first < --last) {
        int64_t number = *first;
        *first++ = *last;
        *last = number;
    }
}

/* Exchanges the numbers before `middle` with those behind it; the order within each stays. */
static inline void dtc_mpi_rotate(int64_t *first, int64_t *middle, int64_t *last)
{
    dtc_mpi_reverse(first, middle);
    dtc_mpi_reverse(middle, last);
    dtc_mpi_reverse(first, last);
}

/* Brings the numbers of a constructor into dtc's order and constants; `large` if counts were in an array of their own. */
static inline int dtc_mpi_translate(int combiner, int large, dtc_mpi_node *node)
{
    int64_t *numbers = node->numbers, n = node->n_integers, dimensions;
    switch (combiner) {
    case MPI_COMBINER_DUP:
        node->combiner = DTC_COMBINER_DUP;
        return DTC_OK;
    case MPI_COMBINER_CONTIGUOUS:
        node->combiner = DTC_COMBINER_CONTIGUOUS;
        return DTC_OK;
    case MPI_COMBINER_VECTOR:
        node->combiner = DTC_COMBINER_VECTOR;
        return DTC_OK;
#if defined(OPEN_MPI) || defined(MPICH)
    /* The constructors of MPI 1 in Fortran, whose strides and displacements are integers. */
    case MPI_COMBINER_HVECTOR - 1:
#endif
    case MPI_COMBINER_HVECTOR:
        node->combiner = DTC_COMBINER_HVECTOR;
        node->n_addresses = 1;
        break;
    case MPI_COMBINER_INDEXED:
        node->combiner = DTC_COMBINER_INDEXED;
        return DTC_OK;
#if defined(OPEN_MPI) || defined(MPICH)
    case MPI_COMBINER_HINDEXED - 1:
#endif
    case MPI_COMBINER_HINDEXED:
        node->combiner = DTC_COMBINER_HINDEXED;
        node->n_addresses = numbers[0];
        break;
    case MPI_COMBINER_INDEXED_BLOCK:
        node->combiner = DTC_COMBINER_INDEXED_BLOCK;
        return DTC_OK;
    case MPI_COMBINER_HINDEXED_BLOCK:
        node->combiner = DTC_COMBINER_HINDEXED_BLOCK;
        node->n_addresses = numbers[0];
        break;
#if defined(OPEN_MPI) || defined(MPICH)
    case MPI_COMBINER_STRUCT - 1:
#endif
    case MPI_COMBINER_STRUCT:
        node->combiner = DTC_COMBINER_STRUCT;
        node->n_addresses = numbers[0];
        break;
    case MPI_COMBINER_RESIZED:
        node->combiner = DTC_COMBINER_RESIZED;
        node->n_addresses = 2;
        break;
    case MPI_COMBINER_SUBARRAY:
        node->combiner = DTC_COMBINER_SUBARRAY;
        /* ndims, order, then the counts: the order goes to the end. */
        if (large) dtc_mpi_rotate(numbers + 1, numbers + 2, numbers + n);
        numbers[n - 1] = numbers[n - 1] == MPI_ORDER_C ? DTC_ORDER_C : DTC_ORDER_FORTRAN;
        return DTC_OK;
    case MPI_COMBINER_DARRAY:
        node->combiner = DTC_COMBINER_DARRAY;
        dimensions = numbers[2];
        /* The global sizes are the counts, behind everything else: they go behind ndims. */
        if (large) dtc_mpi_rotate(numbers + 3, numbers + n - dimensions, numbers + n);
        for (int64_t at = 0; at < dimensions; at++) {
            int64_t *distribution = &numbers[3 + dimensions + at], *argument = &numbers[3 + 2 * dimensions + at];
            *distribution = dtc_mpi_distribution(*distribution);
            if (*argument == MPI_DISTRIBUTE_DFLT_DARG) *argument = DTC_DISTRIBUTE_DEFAULT;
        }
        numbers[n - 1] = numbers[n - 1] == MPI_ORDER_C ? DTC_ORDER_C : DTC_ORDER_FORTRAN;
        return DTC_OK;
    default:
        return dtc_fail(DTC_ERROR_TYPE, "datatype: expected a constructor of MPI 5.0, found another one");
    }
    node->n_integers -= node->n_addresses;
    return DTC_OK;
}

/* Commits a type and leaves a reference to it at its datatype; the caller keeps its own. */
static inline int dtc_mpi_keep(const dtc_mpi_decoder *decoder, MPI_Datatype handle, dtc_type *type)
{
    int status = dtc_type_commit(type, 0);
    if (status != DTC_OK || dtc_type_retain(type) != DTC_OK) return status;
    if (PMPI_Type_set_attr(handle, decoder->keyval, type) != MPI_SUCCESS) dtc_type_release(type);
    return DTC_OK;
}

/* Asks for the contents of a node and adds its children, unless its type is known. */
static inline int dtc_mpi_read(const dtc_mpi_decoder *decoder, dtc_mpi_graph *graph, int64_t place)
{
    MPI_Datatype handle = graph->nodes[place].handle;
    dtc_type **type = &graph->nodes[place].type;
    int found = 0;
    graph->nodes[place].visited = 0;
    PMPI_Type_get_attr(handle, decoder->keyval, type, &found);
    if (found) return dtc_type_retain(*type);
    *type = NULL;
    dtc_mpi_envelope envelope = dtc_mpi_get_envelope(handle);
    if (dtc_mpi_is_predefined(envelope.combiner)) {
        int made = dtc_mpi_predefined(decoder->engine, handle, envelope.combiner, type);
        return made == DTC_OK ? dtc_mpi_keep(decoder, handle, *type) : made;
    }
    int64_t n = envelope.n_integers + envelope.n_addresses + envelope.n_counts;
    int *integers = (int *)malloc((size_t)envelope.n_integers * sizeof *integers + 1);
    MPI_Aint *addresses = (MPI_Aint *)malloc((size_t)envelope.n_addresses * sizeof *addresses + 1);
    MPI_Count *counts = (MPI_Count *)malloc((size_t)envelope.n_counts * sizeof *counts + 1);
    MPI_Datatype *handles = (MPI_Datatype *)malloc((size_t)envelope.n_types * sizeof *handles + 1);
    int64_t *numbers = (int64_t *)malloc((size_t)n * sizeof *numbers + 1);
    int64_t *children = (int64_t *)malloc((size_t)envelope.n_types * sizeof *children + 1);
    int status = DTC_ERROR_OUT_OF_MEMORY, complete = integers && addresses && counts && handles && numbers && children;
    graph->nodes[place].numbers = numbers;
    graph->nodes[place].children = children;
    if (!complete) dtc_mpi_no_memory();
    if (complete) {
#if MPI_VERSION >= 4
        PMPI_Type_get_contents_c(handle, envelope.n_integers, envelope.n_addresses, envelope.n_counts, envelope.n_types,
                                 integers, addresses, counts, handles);
#else
        PMPI_Type_get_contents(handle, (int)envelope.n_integers, (int)envelope.n_addresses, (int)envelope.n_types,
                               integers, addresses, handles);
#endif
        for (int64_t at = 0; at < envelope.n_integers; at++) *numbers++ = integers[at];
        for (int64_t at = 0; at < envelope.n_addresses; at++) *numbers++ = addresses[at];
        for (int64_t at = 0; at < envelope.n_counts; at++) *numbers++ = counts[at];
        graph->nodes[place].n_integers = n;
        graph->nodes[place].n_children = envelope.n_types;
        status = dtc_mpi_translate(envelope.combiner, envelope.n_counts > 0, &graph->nodes[place]);
        for (int64_t at = 0; at < envelope.n_types; at++) {
            children[at] = dtc_mpi_node_of(graph, handles[at]);
            if (children[at] < 0) {
                /* Nothing holds this handle. */
                dtc_mpi_free_handle(handles[at]);
                status = DTC_ERROR_OUT_OF_MEMORY;
            }
        }
    }
    free(integers);
    free(addresses);
    free(counts);
    free(handles);
    return status;
}

/* Makes the type of a node whose children have theirs. */
static inline int dtc_mpi_make(const dtc_engine *engine, dtc_mpi_graph *graph, dtc_mpi_node *node)
{
    const dtc_type **types = (const dtc_type **)malloc((size_t)node->n_children * sizeof *types + 1);
    if (!types) return dtc_mpi_no_memory();
    for (int64_t at = 0; at < node->n_children; at++) types[at] = graph->nodes[node->children[at]].type;
    dtc_facts facts = dtc_mpi_facts(node->handle);
    int status = dtc_type_create(engine, node->combiner, node->numbers, node->n_integers, node->numbers + node->n_integers,
                                 node->n_addresses, types, node->n_children, &facts, &node->type);
    free(types);
    return status;
}

/*
 * Makes the type of any datatype, committed or not, down to the parts whose types are known. Takes time in proportion to the
 * numbers of their constructors; datatypes of any depth need no stack.
 *
 * `datatype`: the datatype; it stays the caller's.
 * `type`: receives the type, which the caller releases and, to use it, commits.
 *
 * DTC_ERROR_ARGUMENT: `datatype` is MPI_DATATYPE_NULL.
 * DTC_ERROR_TYPE: a constructor, or a predefined type with gaps, that dtc does not know; sizes and bounds that leave 64 bits.
 * DTC_ERROR_OUT_OF_MEMORY: there is no memory for what the MPI tells.
 */
static inline int dtc_mpi_type(const dtc_mpi_decoder *decoder, MPI_Datatype datatype, dtc_type **type)
{
    if (datatype == MPI_DATATYPE_NULL) return dtc_mpi_no_datatype();
    dtc_mpi_graph graph;
    memset(&graph, 0, sizeof graph);
    int64_t *path = NULL, depth = 0, capacity = 0;
    int status = dtc_mpi_node_of(&graph, datatype) < 0 ? DTC_ERROR_OUT_OF_MEMORY : DTC_OK;
    /* The path from the datatype to the node that is looked at; the last one's children are made before it. */
    int64_t next = 0;
    while (status == DTC_OK && next >= 0) {
        if (depth == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            int64_t *longer = (int64_t *)realloc(path, (size_t)capacity * sizeof *path);
            if (!longer) {
                status = dtc_mpi_no_memory();
                break;
            }
            path = longer;
        }
        path[depth++] = next;
        if (graph.nodes[next].visited < 0) status = dtc_mpi_read(decoder, &graph, next);
        for (next = -1; status == DTC_OK && next < 0 && depth > 0;) {
            dtc_mpi_node *node = &graph.nodes[path[depth - 1]];
            while (next < 0 && node->visited < node->n_children) {
                int64_t child = node->children[node->visited++];
                if (!graph.nodes[child].type) next = child;
            }
            if (next < 0) {
                if (!node->type) status = dtc_mpi_make(decoder->engine, &graph, node);
                depth--;
            }
        }
    }
    if (status == DTC_OK) {
        *type = graph.nodes[0].type;
        graph.nodes[0].type = NULL;
    }
    free(path);
    dtc_mpi_clear(&graph);
    return status;
}

static inline int dtc_mpi_copy_attribute(MPI_Datatype datatype, int keyval, void *extra, void *value, void *copy, int *flag)
{
    (void)datatype, (void)keyval, (void)extra;
    /* A duplicate moves the same bytes. */
    *flag = dtc_type_retain((dtc_type *)value) == DTC_OK;
    memcpy(copy, &value, sizeof value);
    return MPI_SUCCESS;
}

static inline int dtc_mpi_delete_attribute(MPI_Datatype datatype, int keyval, void *value, void *extra)
{
    (void)datatype, (void)keyval, (void)extra;
    dtc_type_release((dtc_type *)value);
    return MPI_SUCCESS;
}

/*
 * Prepares a decoder. It is written once and may then be used by all threads.
 *
 * `engine`: the engine of its types; it must outlive the decoder.
 * `decoder`: receives the decoder.
 */
static inline int dtc_mpi_decoder_init(dtc_engine *engine, dtc_mpi_decoder *decoder)
{
    decoder->engine = engine;
    int made = PMPI_Type_create_keyval(dtc_mpi_copy_attribute, dtc_mpi_delete_attribute, &decoder->keyval, NULL);
    return made == MPI_SUCCESS ? DTC_OK : dtc_mpi_no_attribute();
}

/*
 * Ends a decoder, before MPI_Finalize. Types stay with their datatypes until those are freed.
 */
static inline int dtc_mpi_decoder_free(dtc_mpi_decoder *decoder)
{
    return PMPI_Type_free_keyval(&decoder->keyval) == MPI_SUCCESS ? DTC_OK : dtc_mpi_no_attribute();
}

/*
 * The committed type of a datatype: made by the first call, and kept at the datatype until dtc_mpi_forget, or until MPI destroys that,
 * which may be after MPI_Type_free, when its last operation ends. Two threads that call it first at once make two types; the datatype
 * keeps one.
 *
 * `type`: receives the type, which the caller releases.
 *
 * Errors are those of dtc_mpi_type.
 */
static inline int dtc_mpi_committed(const dtc_mpi_decoder *decoder, MPI_Datatype datatype, dtc_type **type)
{
    int found = 0;
    if (datatype == MPI_DATATYPE_NULL) return dtc_mpi_no_datatype();
    PMPI_Type_get_attr(datatype, decoder->keyval, type, &found);
    if (found) return dtc_type_retain(*type);
    int status = dtc_mpi_type(decoder, datatype, type);
    if (status != DTC_OK) return status;
    status = dtc_mpi_keep(decoder, datatype, *type);
    if (status != DTC_OK) dtc_type_release(*type);
    return status;
}

/*
 * Takes the type away from a datatype, which may have none. A program calls it before MPI_Type_free if a message of the datatype may be
 * under way and other threads call MPI meanwhile: MPI then destroys the datatype in whichever thread makes progress, and calls back to
 * release the type. MPICH 4.0 gives its lock up for that in the middle of progress, and ends the process if another thread makes progress too
 * (ucp_worker.c: Assertion `worker->inprogress++ == 0' failed).
 *
 * Handles of one datatype may have several owners, by MPI_Type_get_contents: no other thread may call dtc_mpi_committed or dtc_mpi_type
 * with it, or with a datatype made of it, at the same time.
 *
 * DTC_ERROR_ARGUMENT: `datatype` is MPI_DATATYPE_NULL.
 * DTC_ERROR_INTERNAL: MPI refuses to take the attribute away.
 */
static inline int dtc_mpi_forget(const dtc_mpi_decoder *decoder, MPI_Datatype datatype)
{
    dtc_type *type;
    int found = 0;
    if (datatype == MPI_DATATYPE_NULL) return dtc_mpi_no_datatype();
    PMPI_Type_get_attr(datatype, decoder->keyval, &type, &found);
    /* Open MPI calls the error handler for an attribute that there is not. */
    return !found || PMPI_Type_delete_attr(datatype, decoder->keyval) == MPI_SUCCESS ? DTC_OK : dtc_mpi_no_attribute();
}

#ifdef __cplusplus
}
#endif

#endif
