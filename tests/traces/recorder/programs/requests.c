/* Requests that end in every way: two processes, the second answers. */
#include <mpi.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, flag, n, which[4], x[4] = {0};
    MPI_Request r[4];
    MPI_Status s[4];
    MPI_Message message;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        for (int k = 0; k < 4; k++) MPI_Irecv(&x[k], 1, MPI_INT, 1, k, MPI_COMM_WORLD, &r[k]);
        for (int k = 0; k < 100; k++) MPI_Testany(4, r, &which[0], &flag, s); /* in vain */
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Waitany(4, r, &which[0], MPI_STATUS_IGNORE);
        MPI_Waitall(4, r, s);
        for (int k = 0; k < 3; k++) MPI_Irecv(&x[k], 1, MPI_INT, 1, k, MPI_COMM_WORLD, &r[k]);
        for (int done = 0; done < 2; done += n) MPI_Waitsome(2, r, &n, which, MPI_STATUSES_IGNORE);
        do MPI_Test(&r[2], &flag, MPI_STATUS_IGNORE);
        while (!flag);
        /* never comes */
        MPI_Irecv(&x[0], 1, MPI_INT, 1, 77, MPI_COMM_WORLD, &r[0]);
        MPI_Cancel(&r[0]);
        MPI_Wait(&r[0], MPI_STATUS_IGNORE);
        /* nobody waits for it */
        MPI_Isend(x, 2, MPI_INT, 1, 5, MPI_COMM_WORLD, &r[0]);
        MPI_Request_free(&r[0]);
        MPI_Mprobe(1, MPI_ANY_TAG, MPI_COMM_WORLD, &message, s);
        MPI_Mrecv(x, 4, MPI_INT, &message, MPI_STATUS_IGNORE);
        do MPI_Improbe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &flag, &message, s);
        while (!flag);
        MPI_Imrecv(x, 4, MPI_INT, &message, &r[0]);
        MPI_Wait(&r[0], MPI_STATUS_IGNORE);
        MPI_Irecv(x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &r[0]);
        MPI_Wait(&r[0], s);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        for (int k = 0; k < 4; k++) MPI_Isend(&x[k], 1, MPI_INT, 0, k, MPI_COMM_WORLD, &r[k]);
        MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
        for (int k = 0; k < 3; k++) MPI_Isend(&x[k], 1, MPI_INT, 0, k, MPI_COMM_WORLD, &r[k]);
        for (int done = 0; done < 3; done += n) MPI_Testsome(3, r, &n, which, s);
        MPI_Recv(x, 2, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(x, 3, MPI_INT, 0, 6, MPI_COMM_WORLD);
        MPI_Send(x, 4, MPI_INT, 0, 7, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
