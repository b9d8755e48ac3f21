/* Two sides of 4 processes, {0, 2} and {1, 3}, that talk; a group of some; a graph; then one again. */
#include <mpi.h>

int main(int argc, char **argv) {
    int rank, half_rank, x = 0, who[3] = {3, 0, 1};
    int index[4] = {1, 2, 2, 2}, edges[2] = {1, 0}, y[4];
    MPI_Comm half, sides, all, some = MPI_COMM_NULL, graph;
    MPI_Group world, group;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_rank(half, &half_rank);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 11, &sides);
    if (rank == 0) MPI_Send(&x, 1, MPI_INT, 1, 5, sides); /* to 3 */
    if (rank == 3) MPI_Recv(&x, 1, MPI_INT, 0, 5, sides, MPI_STATUS_IGNORE);
    MPI_Bcast(&x, 1, MPI_INT, rank == 2 ? MPI_ROOT : rank == 0 ? MPI_PROC_NULL : 1, sides);
    MPI_Intercomm_merge(sides, rank % 2, &all);
    MPI_Barrier(all);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 3, who, &group);
    if (rank != 2) {
        MPI_Comm_create_group(MPI_COMM_WORLD, group, 7, &some);
        MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, some);
    }
    MPI_Comm_create(MPI_COMM_WORLD, group, &half);
    MPI_Graph_create(MPI_COMM_WORLD, 4, index, edges, 0, &graph);
    MPI_Neighbor_allgather(&x, 1, MPI_INT, y, 1, MPI_INT, graph);
    MPI_Finalize();
    return 0;
}
