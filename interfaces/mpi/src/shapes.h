/*
 * The arguments of the calls in calls.def, in order: A(kind, name), where the kind of counts is that of the call. What A makes of
 * an argument is the includer's: a parameter of the C interface, a machine word, a name.
 */
#ifndef DTC_MPI_SHAPES_H
#define DTC_MPI_SHAPES_H

#define ARGUMENTS_INIT(A, count) A(count_pointer, argc), A(arguments, argv)
#define ARGUMENTS_INIT_THREAD(A, count)                                                                                          \
    A(count_pointer, argc), A(arguments, argv), A(number, required), A(number_pointer, provided)
#define ARGUMENTS_FINALIZE(A, count)
#define ARGUMENTS_COMMIT(A, count) A(datatype_pointer, datatype)
#define ARGUMENTS_PACK(A, count)                                                                                                 \
    A(source, memory), A(count, elements), A(datatype, datatype), A(destination, packed), A(count, size),                         \
        A(count##_pointer, position), A(communicator, communicator)
#define ARGUMENTS_UNPACK(A, count)                                                                                               \
    A(source, packed), A(count, size), A(count##_pointer, position), A(destination, memory), A(count, elements),                  \
        A(datatype, datatype), A(communicator, communicator)
#define ARGUMENTS_SEND(A, count)                                                                                                 \
    A(source, memory), A(count, elements), A(datatype, datatype), A(number, rank), A(number, tag), A(communicator, communicator)
#define ARGUMENTS_RECV(A, count)                                                                                                 \
    A(destination, memory), A(count, elements), A(datatype, datatype), A(number, rank), A(number, tag),                           \
        A(communicator, communicator), A(status, status)
#define ARGUMENTS_MRECV(A, count)                                                                                                \
    A(destination, memory), A(count, elements), A(datatype, datatype), A(message_pointer, message), A(status, status)
#define ARGUMENTS_SENDRECV(A, count)                                                                                             \
    A(source, sent), A(count, sent_elements), A(datatype, sent_datatype), A(number, destination), A(number, sent_tag),            \
        A(destination, received), A(count, received_elements), A(datatype, received_datatype), A(number, source),                 \
        A(number, received_tag), A(communicator, communicator), A(status, status)
#define ARGUMENTS_SENDRECV_REPLACE(A, count)                                                                                     \
    A(destination, memory), A(count, elements), A(datatype, datatype), A(number, destination), A(number, sent_tag),               \
        A(number, source), A(number, received_tag), A(communicator, communicator), A(status, status)

#endif
