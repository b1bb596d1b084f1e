/*
 * What the subroutines of fortran.def do with MPICH. A handle is a structure of one integer, a status that of C, and the last argument
 * is null if the program leaves it out. (MPI 4.1, 19.1)
 */
#ifndef DTC_MPI_FORTRAN_H
#define DTC_MPI_FORTRAN_H

/* A status, or what C takes for the object `ignored`, whose address the MPI knows. */
static MPI_Status *status_of(MPI_Status *status, const char *ignored, MPI_Status *ignore)
{
    MPI_Status **object = (MPI_Status **)dtc_mpi_find_object(ignored);
    return object && status == *object ? ignore : status;
}

#define ONE(status) status_of(status, "MPI_F08_STATUS_IGNORE", MPI_STATUS_IGNORE)
#define ALL(statuses) status_of(statuses, "MPI_F08_STATUSES_IGNORE", MPI_STATUSES_IGNORE)

static void tell(int *error, int result)
{
    if (error) *error = result;
}

/* The index of the first request: 1, but 0 in MPICH 4.0, whose programs know. Its own subroutine tells, of a receive from nowhere. */
static int first_index(void)
{
    static int known = -1;
    int index = 1, length = 1, error, found = __atomic_load_n(&known, __ATOMIC_RELAXED);
    MPI_Request request;
    MPI_Status status;
    if (found >= 0) return found;
    void (*theirs)(int *, MPI_Request *, int *, MPI_Status *, int *) =
        (void (*)(int *, MPI_Request *, int *, MPI_Status *, int *))dtc_mpi_find_function("mpi_waitany_f08_");
    if (theirs && mpi.Irecv(&index, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &request) == MPI_SUCCESS)
        theirs(&length, &request, &index, &status, &error);
    __atomic_store_n(&known, index, __ATOMIC_RELAXED);
    return index;
}

/* Turns indices of C into those of Fortran. */
static void give_indices(int *indices, int length, int result)
{
    for (int at = 0; result == MPI_SUCCESS && at < length; at++)
        if (indices[at] != MPI_UNDEFINED) indices[at] += first_index();
}

static void fortran_wait(MPI_Request *request, MPI_Status *status, int *error)
{
    tell(error, wrap_Wait(request, ONE(status)));
}

static void fortran_test(MPI_Request *request, int *flag, MPI_Status *status, int *error)
{
    tell(error, wrap_Test(request, flag, ONE(status)));
}

static void fortran_waitall(const int *length, MPI_Request *requests, MPI_Status *statuses, int *error)
{
    tell(error, wrap_Waitall(*length, requests, ALL(statuses)));
}

static void fortran_testall(const int *length, MPI_Request *requests, int *flag, MPI_Status *statuses, int *error)
{
    tell(error, wrap_Testall(*length, requests, flag, ALL(statuses)));
}

static void fortran_waitany(const int *length, MPI_Request *requests, int *index, MPI_Status *status, int *error)
{
    int result = wrap_Waitany(*length, requests, index, ONE(status));
    give_indices(index, 1, result);
    tell(error, result);
}

static void fortran_testany(const int *length, MPI_Request *requests, int *index, int *flag, MPI_Status *status, int *error)
{
    int result = wrap_Testany(*length, requests, index, flag, ONE(status));
    give_indices(index, 1, result);
    tell(error, result);
}

static void fortran_waitsome(const int *length, MPI_Request *requests, int *ended, int *indices, MPI_Status *statuses, int *error)
{
    int result = wrap_Waitsome(*length, requests, ended, indices, ALL(statuses));
    give_indices(indices, *ended, result);
    tell(error, result);
}

static void fortran_testsome(const int *length, MPI_Request *requests, int *ended, int *indices, MPI_Status *statuses, int *error)
{
    int result = wrap_Testsome(*length, requests, ended, indices, ALL(statuses));
    give_indices(indices, *ended, result);
    tell(error, result);
}

static void fortran_request_get_status(const MPI_Request *request, int *flag, MPI_Status *status, int *error)
{
    tell(error, wrap_Request_get_status(*request, flag, ONE(status)));
}

static void fortran_request_free(MPI_Request *request, int *error)
{
    tell(error, wrap_Request_free(request));
}

static void fortran_finalize(int *error)
{
    tell(error, wrap_Finalize());
}

static void fortran_start(MPI_Request *request, int *error)
{
    tell(error, wrap_Start(request));
}

static void fortran_startall(const int *length, MPI_Request *requests, int *error)
{
    tell(error, wrap_Startall(*length, requests));
}

static void fortran_type_free(MPI_Datatype *datatype, int *error)
{
    tell(error, wrap_Type_free(datatype));
}

static void fortran_comm_free(MPI_Comm *communicator, int *error)
{
    tell(error, wrap_Comm_free(communicator));
}

static void fortran_comm_disconnect(MPI_Comm *communicator, int *error)
{
    tell(error, wrap_Comm_disconnect(communicator));
}

#endif
