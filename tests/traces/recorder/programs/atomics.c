/* One-sided operations that bring something back, and those that only do that. */
#include <mpi.h>

int main(int argc, char **argv) {
    int rank, size;
    double *memory, mine[500] = {0}, theirs[500] = {0};
    MPI_Win win;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size;
    MPI_Win_allocate(500 * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &win);
    MPI_Win_lock_all(0, win);
    for (int turn = 0; turn < 4; turn++)
        MPI_Get_accumulate(mine, 500, MPI_DOUBLE, theirs, 500, MPI_DOUBLE, next, 0, 500,
                           MPI_DOUBLE, MPI_SUM, win);
    MPI_Win_flush(next, win);
    MPI_Rget_accumulate(mine, 0, MPI_DOUBLE, theirs, 10, MPI_DOUBLE, next, 0, 10, MPI_DOUBLE,
                        MPI_NO_OP, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Raccumulate(mine, 3, MPI_DOUBLE, next, 0, 3, MPI_DOUBLE, MPI_SUM, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Rget(theirs, 2, MPI_DOUBLE, next, 0, 2, MPI_DOUBLE, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    long expected = 0, new = 1, old;
    MPI_Compare_and_swap(&new, &expected, &old, MPI_LONG, next, 0, win);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
