! Exchanges ghost cells of fields on GPUs as codes on 2DECOMP&FFT do: a side of a field is an MPI_TYPE_VECTOR, and the calls of
! MPI are given memory of the GPU. Each process has a box, and its neighbours along one axis are periodic.
!
!     mpif90 -O2 -acc=gpu vector_halo.F90 -o vector_halo               nvfortran
!     mpif90 -O2 -fopenacc vector_halo.F90 -o vector_halo -lcudart     gfortran, with its plugin for GPUs
!     mpif90 -O2 vector_halo.F90 -o vector_halo                        the fields are in memory of the host
!
!     mpirun -n 2 ./vector_halo x 128 256 256 1 5 10
!     mpirun -n 2 env LD_PRELOAD=/opt/dtc/lib/libdtc_mpi.so ./vector_halo x 128 256 256 1 5 10
!
! Arguments: the axis, x or y; cells along x, y and z of each process; ghost layers; fields; steps.
program vector_halo
    use, intrinsic :: iso_c_binding, only: c_int
    use, intrinsic :: iso_fortran_env, only: int64, real64
    use mpi
#ifdef _OPENACC
    use openacc
#endif
    implicit none
    integer :: cells(3), ghosts, fields, steps, rank, ranks, left, right, side, step, field, ierror
    integer(int64) :: wrong
    character(len=1) :: axis
    logical :: on_gpu = .false.
    real(real64), allocatable :: u(:, :, :, :)
    real(real64) :: start, first, took

    first = 0
    call read_arguments()
    ! Open MPI uses the link between GPUs only if the GPU is chosen before.
    call choose_gpu()
    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
    left = modulo(rank - 1, ranks)
    right = modulo(rank + 1, ranks)

    allocate (u(1 - ghosts:cells(1) + ghosts, 1 - ghosts:cells(2) + ghosts, 1 - ghosts:cells(3) + ghosts, fields))
    call fill()
    side = side_of_field()
    !$acc data copy(u)
    start = MPI_Wtime()
    do step = 1, steps
        do field = 1, fields
            call exchange(u(:, :, :, field))
        end do
        if (step == 1) first = MPI_Wtime() - start
    end do
    took = MPI_Wtime() - start
    !$acc end data

    call count_wrong()
    if (rank == 0) then
        print '(2a)', 'fields in memory of ', merge('a GPU   ', 'the host', on_gpu)
        print '(i0, a)', wrong, ' wrong cells'
        print '(a, f0.3, a)', 'first step ', first * 1e3, ' ms'
        if (steps > 1) print '(a, f0.3, a)', 'later steps ', (took - first) / (steps - 1) * 1e3, ' ms each'
    end if
    call MPI_Type_free(side, ierror)
    call MPI_Finalize(ierror)
    if (wrong > 0) error stop

contains

    ! The ghost layers of one field, from both neighbours.
    subroutine exchange(f)
        real(real64), intent(inout) :: f(1 - ghosts:cells(1) + ghosts, 1 - ghosts:cells(2) + ghosts, 1 - ghosts:cells(3) + ghosts)
        integer :: requests(4), low, n

        low = 1 - ghosts
        !$acc host_data use_device(f)
        if (axis == 'x') then
            n = cells(1)
            call MPI_Irecv(f(low, low, low), 1, side, left, 1, MPI_COMM_WORLD, requests(1), ierror)
            call MPI_Irecv(f(n + 1, low, low), 1, side, right, 2, MPI_COMM_WORLD, requests(2), ierror)
            call MPI_Issend(f(n + low, low, low), 1, side, right, 1, MPI_COMM_WORLD, requests(3), ierror)
            call MPI_Issend(f(1, low, low), 1, side, left, 2, MPI_COMM_WORLD, requests(4), ierror)
        else
            n = cells(2)
            call MPI_Irecv(f(low, low, low), 1, side, left, 1, MPI_COMM_WORLD, requests(1), ierror)
            call MPI_Irecv(f(low, n + 1, low), 1, side, right, 2, MPI_COMM_WORLD, requests(2), ierror)
            call MPI_Issend(f(low, n + low, low), 1, side, right, 1, MPI_COMM_WORLD, requests(3), ierror)
            call MPI_Issend(f(low, 1, low), 1, side, left, 2, MPI_COMM_WORLD, requests(4), ierror)
        end if
        !$acc end host_data
        call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierror)
    end subroutine

    ! The datatype of one side: across x, pieces of `ghosts` values; across y, pieces of `ghosts` rows.
    integer function side_of_field() result(type)
        integer :: stored(3)

        stored = cells + 2 * ghosts
        if (axis == 'x') then
            call MPI_Type_vector(stored(2) * stored(3), ghosts, stored(1), MPI_DOUBLE_PRECISION, type, ierror)
        else
            call MPI_Type_vector(stored(3), ghosts * stored(1), stored(1) * stored(2), MPI_DOUBLE_PRECISION, type, ierror)
        end if
        call MPI_Type_commit(type, ierror)
    end function

    ! A value for every cell of every process and field.
    pure real(real64) function cell_value(owner, i, j, k, l)
        integer, intent(in) :: owner, i, j, k, l

        cell_value = ((((owner * 32_int64 + l) * 2048 + k + 16) * 2048 + j + 16) * 2048 + i + 16)
    end function

    subroutine fill()
        integer :: i, j, k, l

        do concurrent (l = 1:fields, k = lbound(u, 3):ubound(u, 3), j = lbound(u, 2):ubound(u, 2), i = lbound(u, 1):ubound(u, 1))
            u(i, j, k, l) = cell_value(rank, i, j, k, l)
        end do
    end subroutine

    ! Compares all cells: the ghosts are the neighbour's, all others this process's.
    subroutine count_wrong()
        integer :: i, j, k, l, place(3), at, n, owner
        integer(int64) :: mine

        mine = 0
        at = merge(1, 2, axis == 'x')
        n = cells(at)
        do l = 1, fields
            do k = lbound(u, 3), ubound(u, 3)
                do j = lbound(u, 2), ubound(u, 2)
                    do i = lbound(u, 1), ubound(u, 1)
                        place = [i, j, k]
                        owner = rank
                        if (place(at) < 1) owner = left
                        if (place(at) > n) owner = right
                        place(at) = modulo(place(at) - 1, n) + 1
                        if (u(i, j, k, l) /= cell_value(owner, place(1), place(2), place(3), l)) mine = mine + 1
                    end do
                end do
            end do
        end do
        call MPI_Allreduce(mine, wrong, 1, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD, ierror)
    end subroutine

    ! The GPU with the number of the process on its machine, which launchers leave in the environment.
    subroutine choose_gpu()
#ifdef _OPENACC
#ifdef __GFORTRAN__
        interface
            integer(c_int) function cudaSetDevice(device) bind(c, name='cudaSetDevice')
                import
                integer(c_int), value :: device
            end function
        end interface
#endif
        character(len=26), parameter :: names(3) = [character(len=26) :: &
            'OMPI_COMM_WORLD_LOCAL_RANK', 'MPI_LOCALRANKID', 'SLURM_LOCALID']
        character(len=16) :: text
        integer :: name, number, status

        on_gpu = acc_get_num_devices(acc_device_nvidia) > 0
        if (.not. on_gpu) return
        do name = 1, size(names)
            call get_environment_variable(names(name), text, status=status)
            if (status /= 0) cycle
            read (text, *) number
            number = modulo(number, acc_get_num_devices(acc_device_nvidia))
#ifdef __GFORTRAN__
            ! The plugin would make a context of its own beside that of CUDA's runtime. It takes the one that is current.
            if (cudaSetDevice(number) /= 0) error stop 'vector_halo: cudaSetDevice failed'
#endif
            call acc_set_device_num(number, acc_device_nvidia)
            return
        end do
#endif
    end subroutine

    subroutine read_arguments()
        character(len=16) :: text
        integer :: number, numbers(6), status

        if (command_argument_count() /= 7) error stop 'usage: vector_halo x|y CELLS CELLS CELLS GHOSTS FIELDS STEPS'
        call get_command_argument(1, axis)
        do number = 1, 6
            call get_command_argument(number + 1, text)
            read (text, *, iostat=status) numbers(number)
            if (status /= 0 .or. numbers(number) < 1) error stop 'vector_halo: expected a number from 1 on'
        end do
        cells = numbers(1:3)
        ghosts = numbers(4)
        fields = numbers(5)
        steps = numbers(6)
        if ((axis /= 'x' .and. axis /= 'y') .or. ghosts > 16 .or. ghosts > minval(cells) .or. fields > 31) &
            error stop 'vector_halo: expected the axis x or y, up to 16 ghost layers within the cells, and up to 31 fields'
    end subroutine
end program
