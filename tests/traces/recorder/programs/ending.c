/* Ends as its argument says: abort, kill, exit; or not before regions and levels have been told. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, x = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *how = argc > 1 ? argv[1] : "";
    MPI_Pcontrol(1, "steps");
    for (int k = 0; k < 5; k++) {
        if (rank == 0) MPI_Send(&x, 1, MPI_INT, 1, k, MPI_COMM_WORLD);
        if (rank == 1) MPI_Recv(&x, 1, MPI_INT, 0, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Pcontrol(-1, "steps");
    if (!strcmp(how, "kill") && rank == 1) raise(SIGKILL);
    if (!strcmp(how, "abort") && rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
    if (*how) MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Pcontrol(0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(2);
    MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
