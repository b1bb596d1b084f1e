/* With LARGE_COUNTS, a program's calls are the large-count forms. */
#ifdef LARGE_COUNTS

typedef MPI_Count count_type;
typedef MPI_Aint place_type;

#define MPI_Pack MPI_Pack_c
#define MPI_Unpack MPI_Unpack_c
#define MPI_Send MPI_Send_c
#define MPI_Bsend MPI_Bsend_c
#define MPI_Ssend MPI_Ssend_c
#define MPI_Recv MPI_Recv_c
#define MPI_Mrecv MPI_Mrecv_c
#define MPI_Sendrecv MPI_Sendrecv_c
#define MPI_Sendrecv_replace MPI_Sendrecv_replace_c
#define MPI_Isend MPI_Isend_c
#define MPI_Ibsend MPI_Ibsend_c
#define MPI_Issend MPI_Issend_c
#define MPI_Irecv MPI_Irecv_c
#define MPI_Imrecv MPI_Imrecv_c
#define MPI_Isendrecv MPI_Isendrecv_c
#define MPI_Isendrecv_replace MPI_Isendrecv_replace_c
#define MPI_Send_init MPI_Send_init_c
#define MPI_Bsend_init MPI_Bsend_init_c
#define MPI_Ssend_init MPI_Ssend_init_c
#define MPI_Rsend_init MPI_Rsend_init_c
#define MPI_Recv_init MPI_Recv_init_c
#define MPI_Alltoallw MPI_Alltoallw_c
#define MPI_Ialltoallw MPI_Ialltoallw_c
#define MPI_Neighbor_alltoallw MPI_Neighbor_alltoallw_c
#define MPI_Ineighbor_alltoallw MPI_Ineighbor_alltoallw_c
#define MPI_Alltoallw_init MPI_Alltoallw_init_c
#define MPI_Neighbor_alltoallw_init MPI_Neighbor_alltoallw_init_c
#define PMPI_Alltoallw PMPI_Alltoallw_c
#define PMPI_Ialltoallw PMPI_Ialltoallw_c
#define PMPI_Neighbor_alltoallw PMPI_Neighbor_alltoallw_c
#define PMPI_Ineighbor_alltoallw PMPI_Ineighbor_alltoallw_c
#define PMPI_Alltoallw_init PMPI_Alltoallw_init_c
#define PMPI_Neighbor_alltoallw_init PMPI_Neighbor_alltoallw_init_c

#else

typedef int count_type, place_type;

#endif
