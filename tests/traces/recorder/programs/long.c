/* More messages than a small buffer holds. */
#include <mpi.h>

int main(int argc, char **argv) {
    int rank, x = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int k = 0; k < 20000; k++) {
        if (rank == 0) MPI_Send(&x, 1, MPI_INT, 1, k, MPI_COMM_WORLD);
        else MPI_Recv(&x, 1, MPI_INT, 0, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
