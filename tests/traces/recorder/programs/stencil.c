/* A periodic 2 x 2 grid: halos by persistent requests, by neighbours' collectives, by a graph. */
#include <mpi.h>

int main(int argc, char **argv) {
    int rank, dims[2] = {2, 2}, periods[2] = {1, 0};
    double out[4][8] = {{0}}, in[4][8];
    MPI_Comm grid, graph;
    MPI_Request halo[8];
    MPI_Init(&argc, &argv);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    for (int k = 0; k < 2; k++) {
        int down, up;
        MPI_Cart_shift(grid, k, 1, &down, &up);
        MPI_Recv_init(in[2 * k], 8, MPI_DOUBLE, down, k, grid, &halo[4 * k]);
        MPI_Recv_init(in[2 * k + 1], 8, MPI_DOUBLE, up, k, grid, &halo[4 * k + 1]);
        MPI_Send_init(out[2 * k], 8, MPI_DOUBLE, down, k, grid, &halo[4 * k + 2]);
        MPI_Send_init(out[2 * k + 1], 8, MPI_DOUBLE, up, k, grid, &halo[4 * k + 3]);
    }
    for (int step = 0; step < 3; step++) {
        MPI_Startall(8, halo);
        MPI_Waitall(8, halo, MPI_STATUSES_IGNORE);
    }
    for (int k = 0; k < 8; k++) MPI_Request_free(&halo[k]);
    MPI_Neighbor_alltoall(out, 4, MPI_DOUBLE, in, 4, MPI_DOUBLE, grid);
    /* 0 tells all others, and they tell nobody */
    int sources[1] = {0}, all[3] = {1, 2, 3};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank > 0, sources, MPI_UNWEIGHTED,
                                   rank ? 0 : 3, all, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    MPI_Request told;
    MPI_Ineighbor_allgather(out, 5, MPI_DOUBLE, in, 5, MPI_DOUBLE, graph, &told);
    MPI_Wait(&told, MPI_STATUS_IGNORE);
    MPI_Comm_free(&graph);
    MPI_Comm_free(&grid);
    MPI_Finalize();
    return 0;
}
