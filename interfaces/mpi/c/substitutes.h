/*
 * Calls that the MPI lacks, made of those that it has. This library exports them all the same, so that programs that look for them at run
 * time, as mpi4py does, find them. A large-count form takes counts that an `int` holds, and refuses others.
 */
#ifndef DTC_MPI_SUBSTITUTES_H
#define DTC_MPI_SUBSTITUTES_H

/* Whether an `int` holds each of some numbers. */
static int are_small(const int64_t *numbers, int length)
{
    for (int at = 0; numbers && at < length; at++)
        if (numbers[at] != (int)numbers[at]) return 0;
    return 1;
}

#define LARGE_source(name) 0
#define LARGE_destination(name) 0
#define LARGE_number(name) 0
#define LARGE_large_count(name) name
#define LARGE_datatype(name) 0
#define LARGE_communicator(name) 0
#define LARGE_message_pointer(name) 0
#define LARGE_request_pointer(name) 0
#define LARGE_status(name) 0
#define LARGE(kind, name) LARGE_##kind(name)

#define SMALL_source(name) name
#define SMALL_destination(name) name
#define SMALL_number(name) name
#define SMALL_large_count(name) (int)name
#define SMALL_datatype(name) name
#define SMALL_communicator(name) name
#define SMALL_message_pointer(name) name
#define SMALL_request_pointer(name) name
#define SMALL_status(name) name
#define SMALL(kind, name) SMALL_##kind(name)

/* A call whose counts are single numbers. */
#define SUBSTITUTE_NUMBERS(name, shape)                                                                                           \
    static int substitute_##name##_c(ARGUMENTS_##shape(PARAMETER, large_count))                                                  \
    {                                                                                                                              \
        const int64_t counts[] = {ARGUMENTS_##shape(LARGE, large_count)};                                                        \
        if (!are_small(counts, sizeof counts / sizeof *counts)) return fail(MPI_ERR_COUNT);                                       \
        return mpi.name(ARGUMENTS_##shape(SMALL, large_count));                                                                   \
    }

#define SUBSTITUTE_SEND(name) SUBSTITUTE_NUMBERS(name, SEND)
#define SUBSTITUTE_RECV(name) SUBSTITUTE_NUMBERS(name, RECV)
#define SUBSTITUTE_MRECV(name) SUBSTITUTE_NUMBERS(name, MRECV)
#define SUBSTITUTE_SENDRECV(name) SUBSTITUTE_NUMBERS(name, SENDRECV)
#define SUBSTITUTE_SENDRECV_REPLACE(name) SUBSTITUTE_NUMBERS(name, SENDRECV_REPLACE)
#define SUBSTITUTE_ISEND(name) SUBSTITUTE_NUMBERS(name, ISEND)
#define SUBSTITUTE_IRECV(name) SUBSTITUTE_NUMBERS(name, IRECV)
#define SUBSTITUTE_IMRECV(name) SUBSTITUTE_NUMBERS(name, IMRECV)
#define SUBSTITUTE_ISENDRECV(name) SUBSTITUTE_NUMBERS(name, ISENDRECV)
#define SUBSTITUTE_ISENDRECV_REPLACE(name) SUBSTITUTE_NUMBERS(name, ISENDRECV_REPLACE)
#define SUBSTITUTE_SEND_INIT(name) SUBSTITUTE_NUMBERS(name, SEND_INIT)
#define SUBSTITUTE_RECV_INIT(name) SUBSTITUTE_NUMBERS(name, RECV_INIT)

#define SUBSTITUTE_PACK(name)                                                                                                     \
    static int substitute_##name##_c(ARGUMENTS_PACK(PARAMETER, large_count))                                                     \
    {                                                                                                                              \
        const int64_t counts[] = {elements, size, *position};                                                                     \
        int at = (int)*position;                                                                                                   \
        if (!are_small(counts, 3)) return fail(MPI_ERR_COUNT);                                                                    \
        int result = mpi.name(memory, (int)elements, datatype, packed, (int)size, &at, communicator);                             \
        *position = at;                                                                                                            \
        return result;                                                                                                             \
    }

#define SUBSTITUTE_UNPACK(name)                                                                                                   \
    static int substitute_##name##_c(ARGUMENTS_UNPACK(PARAMETER, large_count))                                                   \
    {                                                                                                                              \
        const int64_t counts[] = {elements, size, *position};                                                                     \
        int at = (int)*position;                                                                                                   \
        if (!are_small(counts, 3)) return fail(MPI_ERR_COUNT);                                                                    \
        int result = mpi.name(packed, (int)size, &at, memory, (int)elements, datatype, communicator);                             \
        *position = at;                                                                                                            \
        return result;                                                                                                             \
    }

/* The numbers of processes that a call of all to all sends to and receives from; 0 if the communicator is none for it. */
static int degrees_of(MPI_Comm communicator, int neighbors, int *out, int *in)
{
    int inter = 0;
    if (exchange_degrees(communicator, neighbors, out, in)) return 1;
    if (neighbors || PMPI_Comm_test_inter(communicator, &inter) != MPI_SUCCESS || !inter) return 0;
    return PMPI_Comm_remote_size(communicator, out) == MPI_SUCCESS && (*in = *out, 1);
}

/* Writes numbers as `int`; returns the place behind them. */
static int *make_small(int *small, const int64_t *numbers, int length)
{
    for (int at = 0; at < length; at++) small[at] = (int)numbers[at];
    return small + length;
}

/* The MPIs that lack the large-count forms have read counts and displacements when a nonblocking call returns, or one that makes a persistent
   request. Displacements of neighbors are as large in either form. */
#define SUBSTITUTE_ARRAYS(name, shape, neighbors, places, last)                                                                  \
    static int substitute_##name##_c(ARGUMENTS_##shape(PARAMETER, large_count))                                                  \
    {                                                                                                                              \
        int out = 0, in = 0, in_place = sent == MPI_IN_PLACE;                                                                     \
        if (!degrees_of(communicator, neighbors, &out, &in)) return fail(MPI_ERR_COMM);                                           \
        out = in_place ? 0 : out;                                                                                                  \
        int small = are_small(sent_counts, out) && are_small(received_counts, in);                                                \
        small = small && (neighbors || (are_small(sent_places, out) && are_small(received_places, in)));                           \
        int *counts = small ? (int *)malloc(2 * ((size_t)out + (size_t)in) * sizeof *counts + 1) : NULL;                          \
        if (!counts) return fail(small ? MPI_ERR_NO_MEM : MPI_ERR_COUNT);                                                         \
        int *small_received = make_small(counts, sent_counts, out), *to = make_small(small_received, received_counts, in);        \
        int *small_places = neighbors ? to : make_small(to, sent_places, out);                                                    \
        if (!neighbors) make_small(small_places, received_places, in);                                                            \
        int result = mpi.name(sent, counts, places(sent_places, to), sent_datatypes, received, small_received,                    \
                              places(received_places, small_places), received_datatypes, communicator last);                      \
        free(counts);                                                                                                              \
        return result;                                                                                                             \
    }

#define AS_GIVEN(given, small) given
#define AS_SMALL(given, small) small
#define AND_REQUEST , request
#define AND_INFO , info, request
#define SUBSTITUTE_ALLTOALLW(name) SUBSTITUTE_ARRAYS(name, ALLTOALLW, 0, AS_SMALL, )
#define SUBSTITUTE_IALLTOALLW(name) SUBSTITUTE_ARRAYS(name, IALLTOALLW, 0, AS_SMALL, AND_REQUEST)
#define SUBSTITUTE_NEIGHBOR_ALLTOALLW(name) SUBSTITUTE_ARRAYS(name, NEIGHBOR_ALLTOALLW, 1, AS_GIVEN, )
#define SUBSTITUTE_INEIGHBOR_ALLTOALLW(name) SUBSTITUTE_ARRAYS(name, INEIGHBOR_ALLTOALLW, 1, AS_GIVEN, AND_REQUEST)

#define SUBSTITUTE_ALLTOALLW_INIT(name) SUBSTITUTE_ARRAYS(name, ALLTOALLW_INIT, 0, AS_SMALL, AND_INFO)
#define SUBSTITUTE_NEIGHBOR_ALLTOALLW_INIT(name) SUBSTITUTE_ARRAYS(name, NEIGHBOR_ALLTOALLW_INIT, 1, AS_GIVEN, AND_INFO)

#define CALL(name, shape, count)
#define BOTH(name, shape) SUBSTITUTE_##shape(name)
#include "calls.def"
#undef CALL

/* Sends a packed copy, so that the memory is the program's again at once. The copy is freed when the send has ended. */
static int send_copy(const void *memory, int elements, MPI_Datatype datatype, int rank, int tag, MPI_Comm communicator)
{
    int bytes = 0, position = 0, result = PMPI_Pack_size(elements, datatype, communicator, &bytes);
    if (result != MPI_SUCCESS) return result;
    struct operation *operation = operation_new(NULL, NULL);
    if (operation) operation->copy = malloc((size_t)bytes + 1);
    if (!operation || !operation->copy) {
        free(operation);
        return fail(MPI_ERR_NO_MEM);
    }
    result = PMPI_Pack(memory, elements, datatype, operation->copy, bytes, &position, communicator);
    if (result == MPI_SUCCESS) result = mpi.Isend(operation->copy, position, MPI_PACKED, rank, tag, communicator, &operation->request);
    if (result == MPI_SUCCESS) add_freed(operation);
    else operation_drop(operation);
    return result;
}

/* The request is that of the receive. */
static int substitute_Isendrecv(ARGUMENTS_ISENDRECV(PARAMETER, count))
{
    int result = MPI_SUCCESS;
    if (destination != MPI_PROC_NULL)
        result = send_copy(sent, sent_elements, sent_datatype, destination, sent_tag, communicator);
    if (result != MPI_SUCCESS) return result;
    return mpi.Irecv(received, received_elements, received_datatype, source, received_tag, communicator, request);
}

static int substitute_Isendrecv_replace(ARGUMENTS_ISENDRECV_REPLACE(PARAMETER, count))
{
    return substitute_Isendrecv(memory, elements, datatype, destination, sent_tag, memory, elements, datatype, source, received_tag,
                                communicator, request);
}

static int substitute_Request_get_status_all(int length, const MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    *flag = 1;
    for (int at = 0; *flag && at < length; at++) {
        MPI_Status *status = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[at];
        int result = mpi.Request_get_status(requests[at], flag, status);
        if (result != MPI_SUCCESS) return result;
    }
    return MPI_SUCCESS;
}

static int substitute_Request_get_status_any(int length, const MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
    int active = 0;
    *index = MPI_UNDEFINED;
    for (int at = 0; at < length; at++) {
        if (requests[at] == MPI_REQUEST_NULL) continue;
        active = 1;
        int result = mpi.Request_get_status(requests[at], flag, status);
        if (result != MPI_SUCCESS || *flag) {
            *index = at;
            return result;
        }
    }
    *flag = 0;
    if (active) return MPI_SUCCESS;
    /* An empty status has no error; that of a call with one status is left as it was. (MPI 4.1, 3.7.3 and 3.2.5) */
    if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = MPI_SUCCESS;
    return mpi.Request_get_status(MPI_REQUEST_NULL, flag, status);
}

static int substitute_Request_get_status_some(int length, const MPI_Request *requests, int *ended, int *indices, MPI_Status *statuses)
{
    int active = 0, found = 0;
    for (int at = 0; at < length; at++) {
        if (requests[at] == MPI_REQUEST_NULL) continue;
        int flag = 0, result;
        active = 1;
        result = mpi.Request_get_status(requests[at], &flag, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[found]);
        if (result != MPI_SUCCESS) return result;
        if (flag) indices[found++] = at;
    }
    *ended = active ? found : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

/* Puts substitutes where the MPI has no function. */
static void substitute(dtc_mpi_function functions[DTC_MPI_CALLS])
{
#define PUT(name) functions[DTC_MPI_CALL_##name] = (dtc_mpi_function)substitute_##name
    if (!functions[DTC_MPI_CALL_Isendrecv]) PUT(Isendrecv);
    if (!functions[DTC_MPI_CALL_Isendrecv_replace]) PUT(Isendrecv_replace);
    /* Open MPI 4.1 has them as extensions. */
#define FIND_EXTENSION(name)                                                                                                     \
    if (!functions[DTC_MPI_CALL_##name]) functions[DTC_MPI_CALL_##name] = dtc_mpi_find_function("MPIX_" #name)
    FIND_EXTENSION(Alltoallw_init);
    FIND_EXTENSION(Neighbor_alltoallw_init);
#undef FIND_EXTENSION
#define CALL(name, shape, count)
#define BOTH(name, shape)                                                                                                         \
    if (!functions[DTC_MPI_CALL_##name##_c] && functions[DTC_MPI_CALL_##name]) PUT(name##_c);
#include "calls.def"
#undef CALL
    if (!functions[DTC_MPI_CALL_Request_get_status_all]) PUT(Request_get_status_all);
    if (!functions[DTC_MPI_CALL_Request_get_status_any]) PUT(Request_get_status_any);
    if (!functions[DTC_MPI_CALL_Request_get_status_some]) PUT(Request_get_status_some);
#undef PUT
}

#endif
