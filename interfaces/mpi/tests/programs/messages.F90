! Messages of derived datatypes in Fortran, begun and completed in several ways, between two ranks: with the module mpi_f08 or mpi, or
! mpif.h; and a few blocking calls, with the constants that are addresses.
#ifdef F08
#define REQUEST type(MPI_Request)
#define DATATYPE type(MPI_Datatype)
#define MESSAGE type(MPI_Message)
#define COMMUNICATOR type(MPI_Comm)
#define STATUSES(n) type(MPI_Status) :: statuses(n)
#define STATUS(i) statuses(i)
#else
#define REQUEST integer
#define DATATYPE integer
#define MESSAGE integer
#define COMMUNICATOR integer
#define STATUSES(n) integer :: statuses(MPI_STATUS_SIZE, n)
#define STATUS(i) statuses(:, i)
#endif
program messages
#ifdef F08
    use mpi_f08
    implicit none
#elif defined(MODULE)
    use mpi
    implicit none
#else
    implicit none
    include 'mpif.h'
#endif
    integer, parameter :: rows = 4000
    integer :: rank, other, way, error, found, ended, indices(4), at, done, first
    integer, asynchronous :: sent(2 * rows), received(2 * rows), number
    logical :: flag
    REQUEST :: requests(4)
    MESSAGE :: matched
    integer :: lengths(1), counts(2), places(2)
    integer(kind=MPI_ADDRESS_KIND) :: addresses(1)
    DATATYPE :: strided, absolute, copy, datatypes(2)
    COMMUNICATOR :: world
    STATUSES(4)
    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    other = 1 - rank
    call MPI_Type_vector(rows, 1, 2, MPI_INTEGER, strided, error)
    call MPI_Type_commit(strided, error)
    ! MPICH 4.0 counts from 0 in mpi_f08.
    call MPI_Irecv(number, 0, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, requests(1), error)
    call MPI_Waitany(1, requests, first, MPI_STATUS_IGNORE, error)
    do way = 1, 11
        sent = [(at * 10 + way + rank, at = 1, 2 * rows)]
        received = -1
        number = -1
        if (way < 10) then
            call MPI_Irecv(received, 1, strided, other, 1, MPI_COMM_WORLD, requests(1), error)
            call MPI_Irecv(number, 1, MPI_INTEGER, other, 2, MPI_COMM_WORLD, requests(2), error)
            call MPI_Isend(sent, 1, strided, other, 1, MPI_COMM_WORLD, requests(3), error)
            call MPI_Isend(way, 1, MPI_INTEGER, other, 2, MPI_COMM_WORLD, requests(4), error)
        else
            call MPI_Recv_init(received, 1, strided, other, 1, MPI_COMM_WORLD, requests(1), error)
            call MPI_Recv_init(number, 1, MPI_INTEGER, other, 2, MPI_COMM_WORLD, requests(2), error)
            call MPI_Send_init(sent, 1, strided, other, 1, MPI_COMM_WORLD, requests(3), error)
            call MPI_Send_init(way, 1, MPI_INTEGER, other, 2, MPI_COMM_WORLD, requests(4), error)
            if (way == 10) call MPI_Startall(4, requests, error)
            if (way == 11) then
                do at = 1, 4
                    call MPI_Start(requests(at), error)
                end do
            end if
        end if
        found = rows
        flag = .false.
        done = 0
        select case (way)
        case (1)
            do at = 1, 4
                call MPI_Wait(requests(at), STATUS(at), error)
            end do
            call MPI_Get_count(STATUS(1), MPI_INTEGER, found, error)
        case (2)
            call MPI_Waitall(4, requests, statuses, error)
            call MPI_Get_count(STATUS(1), MPI_INTEGER, found, error)
        case (3)
            do at = 1, 4
                flag = .false.
                do while (.not. flag)
                    call MPI_Test(requests(at), flag, MPI_STATUS_IGNORE, error)
                end do
            end do
        case (4)
            do while (.not. flag)
                call MPI_Testall(4, requests, flag, statuses, error)
            end do
            call MPI_Get_count(STATUS(1), MPI_INTEGER, found, error)
        case (5)
            do at = 1, 4
                call MPI_Waitany(4, requests, ended, STATUS(1), error)
                if (ended == first) call MPI_Get_count(STATUS(1), MPI_INTEGER, found, error)
                if (ended < first .or. ended > first + 3) call fail(way)
            end do
        case (6)
            do while (done < 4)
                call MPI_Testany(4, requests, ended, flag, MPI_STATUS_IGNORE, error)
                if (flag) done = done + 1
            end do
        case (7)
            do while (done < 4)
                call MPI_Waitsome(4, requests, ended, indices, statuses, error)
                do at = 1, ended
                    if (indices(at) == first) call MPI_Get_count(STATUS(at), MPI_INTEGER, found, error)
                end do
                done = done + ended
            end do
        case (8)
            do while (done < 4)
                call MPI_Testsome(4, requests, ended, indices, MPI_STATUSES_IGNORE, error)
                done = done + ended
            end do
        case (9)
            do while (.not. flag)
                call MPI_Request_get_status(requests(1), flag, STATUS(1), error)
            end do
            call MPI_Get_count(STATUS(1), MPI_INTEGER, found, error)
            if (received(1) /= 10 + way + other) call fail(way)
            call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, error)
        case default
            call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, error)
            do at = 1, 4
                call MPI_Request_free(requests(at), error)
            end do
        end select
        if (found /= rows .or. number /= way) call fail(way)
        do at = 1, 4
            if (requests(at) /= MPI_REQUEST_NULL) call fail(way)
        end do
        call check_received(way)
    end do
    received = -1
    call MPI_Sendrecv(sent, 1, strided, other, 3, received, 1, strided, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    call check_received(12)
    ! Probes of all kinds, whose statuses tell what comes.
    do way = 1, 4
        call MPI_Isend(sent, 1, strided, other, way, MPI_COMM_WORLD, requests(1), error)
        received = -1
        flag = .false.
        if (way == 1) call MPI_Probe(other, way, MPI_COMM_WORLD, STATUS(1), error)
        if (way == 3) call MPI_Mprobe(other, way, MPI_COMM_WORLD, matched, STATUS(1), error)
        do while (way == 2 .and. .not. flag)
            call MPI_Iprobe(other, way, MPI_COMM_WORLD, flag, STATUS(1), error)
        end do
        do while (way == 4 .and. .not. flag)
            call MPI_Improbe(other, way, MPI_COMM_WORLD, flag, matched, STATUS(1), error)
        end do
        call MPI_Get_count(STATUS(1), MPI_INTEGER, found, error)
        if (found /= rows) call fail(20 + way)
        if (way < 3) call MPI_Recv(received, 1, strided, other, way, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        if (way > 2) call MPI_Mrecv(received, 1, strided, matched, MPI_STATUS_IGNORE, error)
        call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
        call check_received(20 + way)
    end do
    ! The MPI moves these.
    received = -1
    lengths = 1
    call MPI_Get_address(received, addresses(1), error)
    call MPI_Type_create_hindexed(1, lengths, addresses, strided, absolute, error)
    call MPI_Type_commit(absolute, error)
    call MPI_Sendrecv(sent, 1, strided, other, 4, MPI_BOTTOM, 1, absolute, other, 4, MPI_COMM_WORLD, STATUS(1), error)
    call check_received(13)
    call MPI_Type_free(absolute, error)
    received = sent
    counts = 0
    counts(other + 1) = 1
    places = 0
    datatypes = strided
    call MPI_Alltoallw(MPI_IN_PLACE, counts, places, datatypes, received, counts, places, datatypes, MPI_COMM_WORLD, error)
    received(2::2) = -1
    call check_received(14)
#ifdef PERSISTENT
    call MPI_Alltoallw_init(sent, counts, places, datatypes, received, counts, places, datatypes, MPI_COMM_WORLD, MPI_INFO_NULL, &
        requests(1), error)
    do way = 15, 16
        received = -1
        call MPI_Start(requests(1), error)
        call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
        call check_received(way)
    end do
    call MPI_Request_free(requests(1), error)
#endif
    ! Handles that are freed, the first while its message is under way.
    call MPI_Type_dup(strided, copy, error)
    received = -1
    call MPI_Irecv(received, 1, copy, other, 5, MPI_COMM_WORLD, requests(1), error)
    call MPI_Type_free(copy, error)
    if (copy /= MPI_DATATYPE_NULL) call fail(17)
    call MPI_Send(sent, 1, strided, other, 5, MPI_COMM_WORLD, error)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
    call check_received(17)
    do way = 18, 19
        call MPI_Comm_dup(MPI_COMM_WORLD, world, error)
        if (way == 18) call MPI_Comm_free(world, error)
        if (way == 19) call MPI_Comm_disconnect(world, error)
        if (world /= MPI_COMM_NULL) call fail(way)
    end do
    call MPI_Type_free(strided, error)
    if (rank == 0) print *, 'messages: done'
    call MPI_Finalize(error)
contains
    ! The last thing that was sent is of the way before 12.
    subroutine check_received(way)
        integer, intent(in) :: way
        do at = 1, 2 * rows
            if (mod(at, 2) == 1 .and. received(at) /= at * 10 + min(way, 11) + other) call fail(way)
            if (mod(at, 2) == 0 .and. received(at) /= -1) call fail(way)
        end do
    end subroutine
    subroutine fail(way)
        integer, intent(in) :: way
        integer :: code
        print *, 'messages: way', way
        call MPI_Abort(MPI_COMM_WORLD, 1, code)
    end subroutine
end program
