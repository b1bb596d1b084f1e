/*
 * What all ABIs share. The mpi.h of an ABI includes this file; with it, one source is compiled for each ABI, and dtc_mpi.h
 * decodes datatypes of each. The MPI is found at run time: a PMPI function is a pointer.
 */
#ifndef DTC_MPI_DECLARATIONS_H
#define DTC_MPI_DECLARATIONS_H

#include <stdint.h>

/* 64-bit platforms alone: see decision 23. */
typedef intptr_t MPI_Aint;
typedef int64_t MPI_Count;

#define MPI_BOTTOM ((void *)0)

enum {
#define CONSTANT(name, mpich, open_mpi, standard) name = DTC_MPI_OF_ABI(mpich, open_mpi, standard),
#include "constants.def"
#undef CONSTANT
};

#ifdef DTC_MPI_HANDLES_ARE_SYMBOLS
#define HANDLE(type, name, mpich, standard, symbol) static type name;
#else
#define HANDLE(type, name, mpich, standard, symbol) static type const name = (type)(intptr_t)DTC_MPI_OF_ABI(mpich, symbol, standard);
#endif
#include "handles.def"
#undef HANDLE

typedef int MPI_Type_copy_attr_function(MPI_Datatype, int, void *, void *, void *, int *);
typedef int MPI_Type_delete_attr_function(MPI_Datatype, int, void *, void *);
typedef int MPI_Comm_copy_attr_function(MPI_Comm, int, void *, void *, void *, int *);
typedef int MPI_Comm_delete_attr_function(MPI_Comm, int, void *, void *);

/* The functions of the MPI that the interposer asks. */
static struct {
#define QUERY(name, needed, parameters) int(*name) parameters;
#include "queries.def"
#undef QUERY
} dtc_mpi_pmpi;

#define PMPI_Query_thread dtc_mpi_pmpi.Query_thread
#define PMPI_Initialized dtc_mpi_pmpi.Initialized
#define PMPI_Finalized dtc_mpi_pmpi.Finalized
#define PMPI_Type_get_attr dtc_mpi_pmpi.Type_get_attr
#define PMPI_Type_set_attr dtc_mpi_pmpi.Type_set_attr
#define PMPI_Type_delete_attr dtc_mpi_pmpi.Type_delete_attr
#define PMPI_Type_create_keyval dtc_mpi_pmpi.Type_create_keyval
#define PMPI_Type_free_keyval dtc_mpi_pmpi.Type_free_keyval
#define PMPI_Type_get_extent_x dtc_mpi_pmpi.Type_get_extent_x
#define PMPI_Type_get_true_extent_x dtc_mpi_pmpi.Type_get_true_extent_x
#define PMPI_Type_size_x dtc_mpi_pmpi.Type_size_x
#define PMPI_Type_get_name dtc_mpi_pmpi.Type_get_name
#define PMPI_Type_free dtc_mpi_pmpi.Type_free
#define PMPI_Type_commit dtc_mpi_pmpi.Type_commit
#define PMPI_Type_vector dtc_mpi_pmpi.Type_vector
#define PMPI_Type_create_struct dtc_mpi_pmpi.Type_create_struct
#define PMPI_Type_create_resized dtc_mpi_pmpi.Type_create_resized
#define PMPI_Get_count dtc_mpi_pmpi.Get_count
#define PMPI_Pack_size dtc_mpi_pmpi.Pack_size
#define PMPI_Pack dtc_mpi_pmpi.Pack
#define PMPI_Unpack dtc_mpi_pmpi.Unpack
#define PMPI_Send dtc_mpi_pmpi.Send
#define PMPI_Sendrecv dtc_mpi_pmpi.Sendrecv
#define PMPI_Type_create_hindexed dtc_mpi_pmpi.Type_create_hindexed
#define PMPI_Test dtc_mpi_pmpi.Test
#define PMPI_Test_cancelled dtc_mpi_pmpi.Test_cancelled
#define PMPI_Request_get_status dtc_mpi_pmpi.Request_get_status
#define PMPI_Request_free dtc_mpi_pmpi.Request_free
#define PMPI_Comm_split dtc_mpi_pmpi.Comm_split
#define PMPI_Comm_free dtc_mpi_pmpi.Comm_free
#define PMPI_Comm_test_inter dtc_mpi_pmpi.Comm_test_inter
#define PMPI_Comm_size dtc_mpi_pmpi.Comm_size
#define PMPI_Comm_remote_size dtc_mpi_pmpi.Comm_remote_size
#define PMPI_Comm_rank dtc_mpi_pmpi.Comm_rank
#define PMPI_Topo_test dtc_mpi_pmpi.Topo_test
#define PMPI_Cartdim_get dtc_mpi_pmpi.Cartdim_get
#define PMPI_Graph_neighbors_count dtc_mpi_pmpi.Graph_neighbors_count
#define PMPI_Dist_graph_neighbors_count dtc_mpi_pmpi.Dist_graph_neighbors_count
#define PMPI_Comm_get_errhandler dtc_mpi_pmpi.Comm_get_errhandler
#define PMPI_Comm_set_errhandler dtc_mpi_pmpi.Comm_set_errhandler
#define PMPI_Errhandler_free dtc_mpi_pmpi.Errhandler_free
#define PMPI_Comm_call_errhandler dtc_mpi_pmpi.Comm_call_errhandler
#define PMPI_Comm_group dtc_mpi_pmpi.Comm_group
#define PMPI_Group_translate_ranks dtc_mpi_pmpi.Group_translate_ranks
#define PMPI_Group_free dtc_mpi_pmpi.Group_free
#define PMPI_Comm_create_keyval dtc_mpi_pmpi.Comm_create_keyval
#define PMPI_Comm_get_attr dtc_mpi_pmpi.Comm_get_attr
#define PMPI_Comm_set_attr dtc_mpi_pmpi.Comm_set_attr
#define PMPI_Comm_delete_attr dtc_mpi_pmpi.Comm_delete_attr
#define PMPI_Cart_shift dtc_mpi_pmpi.Cart_shift
#define PMPI_Graph_neighbors dtc_mpi_pmpi.Graph_neighbors
#define PMPI_Dist_graph_neighbors dtc_mpi_pmpi.Dist_graph_neighbors
#define PMPI_Iprobe dtc_mpi_pmpi.Iprobe
#define PMPI_Bcast dtc_mpi_pmpi.Bcast
#define PMPI_Allgather dtc_mpi_pmpi.Allgather

/* Every MPI is asked in 64 bits; one without large counts has no type that was made with one. */
#define MPI_VERSION 4

static inline int PMPI_Type_get_envelope_c(MPI_Datatype datatype, MPI_Count *integers, MPI_Count *addresses, MPI_Count *counts,
                                           MPI_Count *types, int *combiner)
{
    if (dtc_mpi_pmpi.Type_get_envelope_c)
        return dtc_mpi_pmpi.Type_get_envelope_c(datatype, integers, addresses, counts, types, combiner);
    int few_integers, few_addresses, few_types;
    int status = dtc_mpi_pmpi.Type_get_envelope(datatype, &few_integers, &few_addresses, &few_types, combiner);
    *integers = few_integers;
    *addresses = few_addresses;
    *counts = 0;
    *types = few_types;
    return status;
}

static inline int PMPI_Type_get_contents_c(MPI_Datatype datatype, MPI_Count n_integers, MPI_Count n_addresses, MPI_Count n_counts,
                                           MPI_Count n_types, int *integers, MPI_Aint *addresses, MPI_Count *counts,
                                           MPI_Datatype *types)
{
    if (dtc_mpi_pmpi.Type_get_contents_c)
        return dtc_mpi_pmpi.Type_get_contents_c(datatype, n_integers, n_addresses, n_counts, n_types, integers, addresses, counts,
                                                types);
    return dtc_mpi_pmpi.Type_get_contents(datatype, (int)n_integers, (int)n_addresses, (int)n_types, integers, addresses, types);
}

#endif
