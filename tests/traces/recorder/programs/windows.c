/* One-sided: what is put, got and added, by fences, locks, flushes, groups and requests. */
#include <mpi.h>

int main(int argc, char **argv) {
    int rank, size;
    double *memory, mine[4] = {0}, theirs[4] = {0};
    MPI_Win win;
    MPI_Group world, before, behind;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    MPI_Win_allocate(4 * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &win);
    MPI_Win_fence(0, win);
    MPI_Put(mine, 2, MPI_DOUBLE, next, 0, 2, MPI_DOUBLE, win);
    MPI_Put(mine, 1, MPI_DOUBLE, next, 3, 1, MPI_DOUBLE, win);
    MPI_Put(mine, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, 1, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);
    MPI_Get(mine, 1, MPI_DOUBLE, (rank + 2) % size, 0, 1, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Accumulate(mine, 3, MPI_DOUBLE, 0, 0, 3, MPI_DOUBLE, MPI_SUM, win);
    MPI_Win_unlock(0, win);
    MPI_Win_lock_all(0, win);
    MPI_Fetch_and_op(mine, theirs, MPI_DOUBLE, next, 0, MPI_SUM, win);
    MPI_Win_flush_local(next, win);
    MPI_Win_flush(next, win);
    MPI_Rput(mine, 2, MPI_DOUBLE, next, 0, 2, MPI_DOUBLE, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush_all(win);
    MPI_Win_unlock_all(win);

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &last, &before);
    MPI_Group_incl(world, 1, &next, &behind);
    MPI_Win_post(before, 0, win);
    MPI_Win_start(behind, 0, win);
    MPI_Put(mine, 4, MPI_DOUBLE, next, 0, 4, MPI_DOUBLE, win);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    MPI_Group_free(&before);
    MPI_Group_free(&behind);
    MPI_Group_free(&world);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
