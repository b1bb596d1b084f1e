/* What the programs of messages and exchanges share: their datatypes, and what an MPI has. */
#include "check.h"

/* MPI_Request_get_status_all and its relatives. */
#define HAS_GET_STATUS_OF_MANY (MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1))
#if defined(OMPI_MAJOR_VERSION)
#define HAS_ISENDRECV (OMPI_MAJOR_VERSION >= 5)
/* Open MPI 4.1 sends other data from the second start of a buffered send on. */
#define HAS_BSEND_INIT (OMPI_MAJOR_VERSION >= 5)
#define HAS_LARGE_COUNTS 0
/* Open MPI 4.1 has them by other names. Like 5.0, it loses datatypes that are freed before the request. */
#define HAS_PERSISTENT_COLLECTIVES (OMPI_MAJOR_VERSION >= 5)
#define LOSES_FREED_DATATYPES 1
#else
/* MPI_Isendrecv of MPICH 4.0 frees datatypes that the program has. */
#define HAS_ISENDRECV HAS_GET_STATUS_OF_MANY
#define HAS_BSEND_INIT 1
#define HAS_LARGE_COUNTS (MPI_VERSION >= 4)
#define HAS_PERSISTENT_COLLECTIVES (MPI_VERSION >= 4)
#define LOSES_FREED_DATATYPES 0
#endif

/* The rank of this process, and the number of ranks. */
static int rank, ranks;

/* Begins the MPI. */
static inline void begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

/* A committed vector. */
static inline MPI_Datatype vector_of(int count, int blocklength, int stride, MPI_Datatype of)
{
    MPI_Datatype made;
    MPI_Type_vector(count, blocklength, stride, of, &made);
    MPI_Type_commit(&made);
    return made;
}

/* The same, of ints. */
static inline MPI_Datatype vector(int count, int blocklength, int stride)
{
    return vector_of(count, blocklength, stride, MPI_INT);
}

/* Elements of differing sizes, with gaps, in 40 bytes from `lb` on; committed. */
static inline MPI_Datatype structure(MPI_Aint lb)
{
    MPI_Datatype made, resized, parts[] = {MPI_DOUBLE, MPI_SHORT, MPI_CHAR};
    int lengths[] = {1, 3, 1};
    MPI_Aint places[] = {16, 2, 30};
    MPI_Type_create_struct(3, lengths, places, parts, &made);
    MPI_Type_create_resized(made, lb, 40, &resized);
    MPI_Type_free(&made);
    MPI_Type_commit(&resized);
    return resized;
}
