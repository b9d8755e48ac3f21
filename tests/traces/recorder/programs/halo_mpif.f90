! The same as halo.f90, with mpif.h or (by the test) the module mpi.
program halo
  implicit none
  include 'mpif.h'
  integer :: requests(4)
  real(8) :: inner(10), left(10), right(10), total
  integer :: rank, ranks, before, behind, step, error
  call MPI_INIT(error)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, error)
  call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, error)
  before = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  behind = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
  inner = rank
  do step = 1, 2
    call MPI_IRECV(left, 10, MPI_REAL8, before, 1, MPI_COMM_WORLD, requests(1), error)
    call MPI_IRECV(right, 10, MPI_REAL8, behind, 2, MPI_COMM_WORLD, requests(2), error)
    call MPI_ISEND(inner, 10, MPI_REAL8, behind, 1, MPI_COMM_WORLD, requests(3), error)
    call MPI_ISEND(inner, 10, MPI_REAL8, before, 2, MPI_COMM_WORLD, requests(4), error)
    call MPI_WAITALL(4, requests, MPI_STATUSES_IGNORE, error)
  end do
  total = sum(inner)
  call MPI_ALLREDUCE(MPI_IN_PLACE, total, 1, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD, error)
  call MPI_FINALIZE(error)
end program halo
