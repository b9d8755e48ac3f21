/* Every collective once, with root 1 on 4 processes, blocking or (argument i) not; then on halves.
   What a scatter sends says its root alone. */
#include <mpi.h>
#include <string.h>

static double a[64], b[64];

#define EACH(DO)                                                                                   \
    DO(barrier, BARRIER, (MPI_COMM_WORLD MORE))                                                    \
    DO(bcast, BCAST, (a, 3, MPI_INT, 1, MPI_COMM_WORLD MORE))                                      \
    DO(reduce, REDUCE, (a, b, 3, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD MORE))                        \
    DO(allreduce, ALLREDUCE, (MPI_IN_PLACE, b, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD MORE))       \
    DO(gather, GATHER, (a, 2, MPI_INT, b, 2, MPI_INT, 1, MPI_COMM_WORLD MORE))                     \
    DO(scatter, SCATTER, (a, rank == 1 ? 2 : 7, MPI_INT, b, 2, MPI_INT, 1, MPI_COMM_WORLD MORE))   \
    DO(gatherv, GATHERV, (a, rank, MPI_INT, b, counts, displs, MPI_INT, 1, MPI_COMM_WORLD MORE))   \
    DO(scatterv, SCATTERV, (a, counts, displs, MPI_INT, b, rank, MPI_INT, 1, MPI_COMM_WORLD MORE)) \
    DO(allgather, ALLGATHER, (a, 2, MPI_INT, b, 2, MPI_INT, MPI_COMM_WORLD MORE))                  \
    DO(allgatherv, ALLGATHERV, (a, rank, MPI_INT, b, counts, displs, MPI_INT, MPI_COMM_WORLD MORE)) \
    DO(alltoall, ALLTOALL, (a, 2, MPI_INT, b, 2, MPI_INT, MPI_COMM_WORLD MORE))                    \
    DO(alltoallv, ALLTOALLV,                                                                       \
       (a, same, displs, MPI_INT, b, counts, displs, MPI_INT, MPI_COMM_WORLD MORE))                \
    DO(reduce_scatter, REDUCE_SCATTER, (a, b, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD MORE))      \
    DO(reduce_scatter_block, REDUCE_SCATTER_BLOCK, (a, b, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD MORE)) \
    DO(scan, SCAN, (a, b, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD MORE))                               \
    DO(exscan, EXSCAN, (a, b, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD MORE))

#define BLOCKING(lower, upper, arguments) MPI_B_##lower arguments;
#define BACKGROUND(lower, upper, arguments)                                                        \
    MPI_I##lower arguments;                                                                        \
    MPI_Wait(&request, MPI_STATUS_IGNORE);
#define MPI_B_barrier MPI_Barrier
#define MPI_B_bcast MPI_Bcast
#define MPI_B_reduce MPI_Reduce
#define MPI_B_allreduce MPI_Allreduce
#define MPI_B_gather MPI_Gather
#define MPI_B_scatter MPI_Scatter
#define MPI_B_gatherv MPI_Gatherv
#define MPI_B_scatterv MPI_Scatterv
#define MPI_B_allgather MPI_Allgather
#define MPI_B_allgatherv MPI_Allgatherv
#define MPI_B_alltoall MPI_Alltoall
#define MPI_B_alltoallv MPI_Alltoallv
#define MPI_B_reduce_scatter MPI_Reduce_scatter
#define MPI_B_reduce_scatter_block MPI_Reduce_scatter_block
#define MPI_B_scan MPI_Scan
#define MPI_B_exscan MPI_Exscan

int main(int argc, char **argv) {
    int rank, counts[4] = {0, 1, 2, 3}, displs[4] = {0, 1, 3, 6};
    MPI_Request request;
    MPI_Comm half, copy;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int same[4] = {rank, rank, rank, rank};
    if (argc > 1 && !strcmp(argv[1], "i")) {
#define MORE , &request
        EACH(BACKGROUND)
#undef MORE
    } else {
#define MORE
        EACH(BLOCKING)
#undef MORE
    }
    /* halves in turned order: {3, 1} and {2, 0} */
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Bcast(a, 1, MPI_DOUBLE, 0, half);
    if (rank == 3) MPI_Send(a, 1, MPI_DOUBLE, 1, 9, half);
    if (rank == 1) MPI_Recv(a, 1, MPI_DOUBLE, 0, 9, half, MPI_STATUS_IGNORE);
    MPI_Comm_dup(half, &copy);
    MPI_Comm_free(&half);
    MPI_Barrier(copy);
    MPI_Comm_idup(copy, &half, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(half);
    MPI_Barrier(MPI_COMM_SELF);
    MPI_Comm_free(&half);
    MPI_Comm_free(&copy);
    MPI_Finalize();
    return 0;
}
