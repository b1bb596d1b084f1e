/*
 * What the decoder uses of all ABIs. The mpi.h of an ABI includes this file; with it, one source is compiled for each ABI, and dtc_mpi.h
 * decodes datatypes of each. The MPI is found at run time: a PMPI function is a pointer.
 */
#ifndef DTC_MPI_DECLARATIONS_H
#define DTC_MPI_DECLARATIONS_H

#include <stdint.h>

/* 64-bit platforms alone: see decision 23. */
typedef intptr_t MPI_Aint;
typedef int64_t MPI_Count;

enum {
#define CONSTANT(name, mpich, open_mpi, standard) name = DTC_MPI_OF_ABI(mpich, open_mpi, standard),
#include "constants.def"
#undef CONSTANT
};

/* Set when the MPI is found. */
static MPI_Datatype MPI_DATATYPE_NULL;

typedef int MPI_Type_copy_attr_function(MPI_Datatype, int, void *, void *, void *, int *);
typedef int MPI_Type_delete_attr_function(MPI_Datatype, int, void *, void *);

/* The functions of the MPI that dtc_mpi.h calls: QUERY(name, whether every MPI has it, parameters). */
#define DTC_MPI_QUERIES(QUERY)                                                                                                    \
    QUERY(Type_get_attr, 1, (MPI_Datatype, int, void *, int *))                                                                   \
    QUERY(Type_set_attr, 1, (MPI_Datatype, int, void *))                                                                          \
    QUERY(Type_delete_attr, 1, (MPI_Datatype, int))                                                                               \
    QUERY(Type_create_keyval, 1, (MPI_Type_copy_attr_function *, MPI_Type_delete_attr_function *, int *, void *))                 \
    QUERY(Type_free_keyval, 1, (int *))                                                                                           \
    QUERY(Type_get_envelope, 1, (MPI_Datatype, int *, int *, int *, int *))                                                       \
    QUERY(Type_get_envelope_c, 0, (MPI_Datatype, MPI_Count *, MPI_Count *, MPI_Count *, MPI_Count *, int *))                      \
    QUERY(Type_get_contents, 1, (MPI_Datatype, int, int, int, int *, MPI_Aint *, MPI_Datatype *))                                 \
    QUERY(Type_get_contents_c, 0, (MPI_Datatype, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int *, MPI_Aint *, MPI_Count *, MPI_Datatype *))\
    QUERY(Type_get_extent_x, 1, (MPI_Datatype, MPI_Count *, MPI_Count *))                                                         \
    QUERY(Type_get_true_extent_x, 1, (MPI_Datatype, MPI_Count *, MPI_Count *))                                                    \
    QUERY(Type_size_x, 1, (MPI_Datatype, MPI_Count *))                                                                            \
    QUERY(Type_get_name, 1, (MPI_Datatype, char *, int *))                                                                        \
    QUERY(Type_free, 1, (MPI_Datatype *))

#define MEMBER(name, needed, parameters) int(*name) parameters;
static struct {
    DTC_MPI_QUERIES(MEMBER)
} dtc_mpi_pmpi;
#undef MEMBER

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
