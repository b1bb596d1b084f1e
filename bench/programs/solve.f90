! ScaLAPACK's solver of a system of linear equations, PDGESV, n = 600 in blocks of 4: BLACS makes a datatype for each message.
program solve
  implicit none
  integer, parameter :: n = 600, nb = 4
  integer :: rank, size, context, rows, columns, row, column, local_rows, local_columns, info, i, j, run
  integer :: of_matrix(9), of_right(9)
  integer, allocatable :: pivots(:)
  integer, external :: numroc, indxl2g
  double precision, allocatable :: matrix(:,:), right(:,:)
  call blacs_pinfo(rank, size)
  rows = 1
  do i = 1, int(sqrt(dble(size)) + 0.5)
    if (mod(size, i) == 0) rows = i
  end do
  columns = size / rows
  call blacs_get(-1, 0, context)
  call blacs_gridinit(context, 'R', rows, columns)
  call blacs_gridinfo(context, rows, columns, row, column)
  local_rows = numroc(n, nb, row, 0, rows)
  local_columns = numroc(n, nb, column, 0, columns)
  allocate (matrix(local_rows, local_columns), right(local_rows, 1), pivots(local_rows + nb))
  call descinit(of_matrix, n, n, nb, nb, 0, 0, context, local_rows, info)
  call descinit(of_right, n, 1, nb, nb, 0, 0, context, local_rows, info)
  do run = 1, 4
    do j = 1, local_columns
      do i = 1, local_rows
        matrix(i, j) = 1d0 / (1d0 + abs(indxl2g(i, nb, row, 0, rows) - indxl2g(j, nb, column, 0, columns)))
      end do
    end do
    right = 1d0
    call pdgesv(n, 1, matrix, 1, 1, of_matrix, pivots, right, 1, 1, of_right, info)
    if (info /= 0) stop 1
  end do
  call blacs_gridexit(context)
  call blacs_exit(0)
end program solve
