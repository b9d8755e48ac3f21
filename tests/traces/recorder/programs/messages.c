/* Point-to-point in all its blocking forms, on 4 processes; the test knows every message. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, size, data[100] = {0}, more[100];
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    /* a ring, 40 bytes */
    if (rank == 0) {
        MPI_Send(data, 10, MPI_INT, right, 1, MPI_COMM_WORLD);
        MPI_Recv(data, 100, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    } else {
        MPI_Recv(data, 100, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(data, 10, MPI_INT, right, 1, MPI_COMM_WORLD);
    }
    /* shifts; the last has nobody behind it */
    MPI_Sendrecv(data, 5, MPI_DOUBLE, right, 2, more, 5, MPI_DOUBLE, left, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(data, 3, MPI_INT, rank + 1 < size ? rank + 1 : MPI_PROC_NULL, 3,
                         rank ? rank - 1 : MPI_PROC_NULL, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    /* modes, nothing in it, a type with holes */
    if (rank == 0) {
        MPI_Datatype column;
        int bytes = 1000 + MPI_BSEND_OVERHEAD;
        void *buffer = malloc((size_t)bytes);
        MPI_Type_vector(4, 1, 10, MPI_INT, &column);
        MPI_Type_commit(&column);
        MPI_Buffer_attach(buffer, bytes);
        MPI_Bsend(data, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
        MPI_Ssend(data, 0, MPI_INT, 1, 5, MPI_COMM_WORLD);
        MPI_Send(data, 2, column, 1, 6, MPI_COMM_WORLD);
        MPI_Buffer_detach(&buffer, &bytes);
        MPI_Type_free(&column);
    } else if (rank == 1) {
        MPI_Recv(more, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, &status);
        MPI_Recv(more, 0, MPI_INT, 0, 5, MPI_COMM_WORLD, &status);
        MPI_Probe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &status);
        MPI_Recv(more, 100, MPI_INT, status.MPI_SOURCE, 6, MPI_COMM_WORLD, &status);
    }
    MPI_Finalize();
    return 0;
}
