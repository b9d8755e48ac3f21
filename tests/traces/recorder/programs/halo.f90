! A halo between neighbours in a row of processes, and a sum; 80 bytes to each neighbour.
program halo
  use mpi_f08
  implicit none
  type(MPI_Request) :: requests(4)
  real(8) :: inner(10), left(10), right(10), total
  integer :: rank, ranks, before, behind, step
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  before = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  behind = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
  inner = rank
  do step = 1, 2
    call MPI_Irecv(left, 10, MPI_REAL8, before, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(right, 10, MPI_REAL8, behind, 2, MPI_COMM_WORLD, requests(2))
    call MPI_Isend(inner, 10, MPI_REAL8, behind, 1, MPI_COMM_WORLD, requests(3))
    call MPI_Isend(inner, 10, MPI_REAL8, before, 2, MPI_COMM_WORLD, requests(4))
    call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE)
  end do
  total = sum(inner)
  call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
end program halo
