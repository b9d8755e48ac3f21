! The same in Fortran; for mpi_f08 the test writes "type(MPI_Comm)" for the handle.
program unchanged
  use mpi
  implicit none
  integer :: error, me, rank, kept
  integer :: cart
  character(4096) :: folder, name
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, error)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, [2, 4], [.false., .false.], .true., cart, error)
  call MPI_Comm_rank(cart, rank, error)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, [2, 4], [.false., .false.], .false., cart, error)
  call MPI_Comm_rank(cart, kept, error)
  call get_command_argument(1, folder)
  write (name, '(a, "/", i0, ".txt")') trim(folder), me
  open (10, file=trim(name))
  write (10, *) rank, kept
  close (10)
  call MPI_Finalize(error)
end program
