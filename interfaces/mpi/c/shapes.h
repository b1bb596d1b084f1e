/*
 * The arguments of the calls in calls.def, in order: A(kind, name), where the kind of counts is that of the call. What A makes of
 * an argument is the includer's: a parameter of the C interface, a machine word, a name. REST_... are the arguments behind memory,
 * elements and datatype, which the interposer replaces.
 */
#ifndef DTC_MPI_SHAPES_H
#define DTC_MPI_SHAPES_H

#define ARGUMENTS_INIT(A, count) A(count_pointer, argc), A(arguments, argv)
#define ARGUMENTS_INIT_THREAD(A, count)                                                                                          \
    A(count_pointer, argc), A(arguments, argv), A(number, required), A(number_pointer, provided)
#define ARGUMENTS_FINALIZE(A, count)
#define ARGUMENTS_COMMIT(A, count) A(datatype_pointer, datatype)
#define ARGUMENTS_TYPE_FREE(A, count) A(datatype_pointer, datatype)
#define ARGUMENTS_COMM_FREE(A, count) A(communicator_pointer, communicator)
#define ARGUMENTS_PACK(A, count)                                                                                                 \
    A(source, memory), A(count, elements), A(datatype, datatype), A(destination, packed), A(count, size),                         \
        A(count##_pointer, position), A(communicator, communicator)
#define ARGUMENTS_UNPACK(A, count)                                                                                               \
    A(source, packed), A(count, size), A(count##_pointer, position), A(destination, memory), A(count, elements),                  \
        A(datatype, datatype), A(communicator, communicator)

#define REST_SEND(A, count) A(number, rank), A(number, tag), A(communicator, communicator)
#define REST_RECV(A, count) REST_SEND(A, count), A(status, status)
#define REST_MRECV(A, count) A(message_pointer, message), A(status, status)
#define REST_ISEND(A, count) REST_SEND(A, count), A(request_pointer, request)
#define REST_IRECV(A, count) REST_SEND(A, count), A(request_pointer, request)
#define REST_IMRECV(A, count) A(message_pointer, message), A(request_pointer, request)
#define SENT(A, count) A(source, memory), A(count, elements), A(datatype, datatype)
#define RECEIVED(A, count) A(destination, memory), A(count, elements), A(datatype, datatype)
#define ARGUMENTS_SEND(A, count) SENT(A, count), REST_SEND(A, count)
#define ARGUMENTS_RECV(A, count) RECEIVED(A, count), REST_RECV(A, count)
#define ARGUMENTS_MRECV(A, count) RECEIVED(A, count), REST_MRECV(A, count)
#define ARGUMENTS_ISEND(A, count) SENT(A, count), REST_ISEND(A, count)
#define ARGUMENTS_IRECV(A, count) RECEIVED(A, count), REST_IRECV(A, count)
#define ARGUMENTS_IMRECV(A, count) RECEIVED(A, count), REST_IMRECV(A, count)
#define ARGUMENTS_SEND_INIT(A, count) ARGUMENTS_ISEND(A, count)
#define ARGUMENTS_RECV_INIT(A, count) ARGUMENTS_IRECV(A, count)

#define BOTH_WAYS(A, count)                                                                                                      \
    A(source, sent), A(count, sent_elements), A(datatype, sent_datatype), A(number, destination), A(number, sent_tag),            \
        A(destination, received), A(count, received_elements), A(datatype, received_datatype), A(number, source),                 \
        A(number, received_tag), A(communicator, communicator)
#define REST_REPLACE(A, count)                                                                                                   \
    A(number, destination), A(number, sent_tag), A(number, source), A(number, received_tag), A(communicator, communicator)
#define ARGUMENTS_SENDRECV(A, count) BOTH_WAYS(A, count), A(status, status)
#define ARGUMENTS_ISENDRECV(A, count) BOTH_WAYS(A, count), A(request_pointer, request)
#define ARGUMENTS_SENDRECV_REPLACE(A, count) RECEIVED(A, count), REST_REPLACE(A, count), A(status, status)
#define ARGUMENTS_ISENDRECV_REPLACE(A, count) RECEIVED(A, count), REST_REPLACE(A, count), A(request_pointer, request)

#define ALL_TO_ALL(A, count, places)                                                                                             \
    A(source, sent), A(count##_array, sent_counts), A(places, sent_places), A(datatypes, sent_datatypes),                         \
        A(destination, received), A(count##_array, received_counts), A(places, received_places),                                  \
        A(datatypes, received_datatypes), A(communicator, communicator)
#define ARGUMENTS_ALLTOALLW(A, count) ALL_TO_ALL(A, count, count##_places)
#define ARGUMENTS_NEIGHBOR_ALLTOALLW(A, count) ALL_TO_ALL(A, count, large_count_places)
#define ARGUMENTS_IALLTOALLW(A, count) ARGUMENTS_ALLTOALLW(A, count), A(request_pointer, request)
#define ARGUMENTS_INEIGHBOR_ALLTOALLW(A, count) ARGUMENTS_NEIGHBOR_ALLTOALLW(A, count), A(request_pointer, request)
#define ARGUMENTS_ALLTOALLW_INIT(A, count) ARGUMENTS_ALLTOALLW(A, count), A(info, info), A(request_pointer, request)
#define ARGUMENTS_NEIGHBOR_ALLTOALLW_INIT(A, count) ARGUMENTS_NEIGHBOR_ALLTOALLW(A, count), A(info, info), A(request_pointer, request)

#define ARGUMENTS_START(A, count) A(request_pointer, request)
#define ARGUMENTS_STARTALL(A, count) A(number, length), A(request_pointer, requests)
#define ARGUMENTS_REQUEST_FREE(A, count) A(request_pointer, request)
#define ARGUMENTS_WAIT(A, count) A(request_pointer, request), A(status, status)
#define ARGUMENTS_TEST(A, count) A(request_pointer, request), A(number_pointer, flag), A(status, status)
#define ARGUMENTS_WAITALL(A, count) A(number, length), A(request_pointer, requests), A(status, statuses)
#define ARGUMENTS_TESTALL(A, count) A(number, length), A(request_pointer, requests), A(number_pointer, flag), A(status, statuses)
#define ARGUMENTS_WAITANY(A, count) A(number, length), A(request_pointer, requests), A(number_pointer, index), A(status, status)
#define ARGUMENTS_TESTANY(A, count)                                                                                              \
    A(number, length), A(request_pointer, requests), A(number_pointer, index), A(number_pointer, flag), A(status, status)
#define ARGUMENTS_SOME(A, count)                                                                                                 \
    A(number, length), A(request_pointer, requests), A(number_pointer, ended), A(number_pointer, indices), A(status, statuses)
#define ARGUMENTS_GET_STATUS(A, count) A(request, request), A(number_pointer, flag), A(status, status)
#define ARGUMENTS_GET_STATUS_ALL(A, count)                                                                                       \
    A(number, length), A(requests, requests), A(number_pointer, flag), A(status, statuses)
#define ARGUMENTS_GET_STATUS_ANY(A, count)                                                                                       \
    A(number, length), A(requests, requests), A(number_pointer, index), A(number_pointer, flag), A(status, status)
#define ARGUMENTS_GET_STATUS_SOME(A, count)                                                                                      \
    A(number, length), A(requests, requests), A(number_pointer, ended), A(number_pointer, indices), A(status, statuses)

#endif
