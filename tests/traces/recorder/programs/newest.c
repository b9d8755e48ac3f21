/* What MPI 4 has beside: partitioned messages, persistent collectives, counts beyond int. */
#include <mpi.h>

int main(int argc, char **argv) {
    int rank;
    double x[8] = {0}, y[8];
    MPI_Request r, both;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) MPI_Psend_init(x, 4, 2, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    else MPI_Precv_init(y, 4, 2, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (int step = 0; step < 2; step++) {
        MPI_Start(&r);
        if (rank == 0) {
            MPI_Pready(2, r);
            MPI_Pready_range(0, 1, r);
            MPI_Pready(3, r);
        }
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&r);
    MPI_Allreduce_init(x, y, 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (int step = 0; step < 2; step++) {
        MPI_Start(&r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&r);
    if (rank == 0) MPI_Send_c(x, (MPI_Count)3, MPI_DOUBLE, 1, 4, MPI_COMM_WORLD);
    else MPI_Recv_c(y, (MPI_Count)8, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Isendrecv(x, 1, MPI_DOUBLE, 1 - rank, 5, y, 1, MPI_DOUBLE, 1 - rank, 5, MPI_COMM_WORLD,
                  &both);
    MPI_Wait(&both, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
