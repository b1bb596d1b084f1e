/* Datatypes of an MPI as types of dtc, for one ABI: compiled once for each, with its mpi.h. The crate finds the MPI's functions by itself; those that the
   decoder calls are found here. */
#include <mpi.h>

#include <dtc_mpi.h>

#define NAME_OF(abi) NAME(abi)
#define NAME(abi) dtc_mpi_decode_##abi

/* In ../src/find.rs. */
void *dtc_mpi_find(const char *name);
void *dtc_mpi_find_object(const char *name);

/* Finds the functions and handles; 0 if one is missing that is needed. Threads that come here at once write the same. */
static int find(void)
{
    static char found;
    if (__atomic_load_n(&found, __ATOMIC_ACQUIRE)) return 1;
    MPI_DATATYPE_NULL = (MPI_Datatype)DTC_MPI_DATATYPE_NULL;
    if (!MPI_DATATYPE_NULL) return 0;
#define FIND(name, needed, parameters)                                                                                            \
    dtc_mpi_pmpi.name = (int(*) parameters)dtc_mpi_find("PMPI_" #name);                                                           \
    if (needed && !dtc_mpi_pmpi.name) return 0;
    DTC_MPI_QUERIES(FIND)
#undef FIND
    __atomic_store_n(&found, 1, __ATOMIC_RELEASE);
    return 1;
}

/* dtc_mpi_type() with a decoder of this engine and key. */
int NAME_OF(DTC_MPI_ABI)(dtc_engine *engine, int key, MPI_Datatype datatype, dtc_type **type)
{
    const dtc_mpi_decoder decoder = {engine, key};
    return find() ? dtc_mpi_type(&decoder, datatype, type) : DTC_ERROR_INTERNAL;
}
