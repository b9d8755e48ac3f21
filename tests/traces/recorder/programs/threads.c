/* Two threads of each of two processes talk at the same time. */
#include <mpi.h>
#include <pthread.h>

static int rank;

static void *talk(void *tag) {
    int t = *(int *)tag, x = 0;
    for (int k = 0; k < 200; k++) {
        if (rank == 0) MPI_Send(&x, 1, MPI_INT, 1, t, MPI_COMM_WORLD);
        else MPI_Recv(&x, 1, MPI_INT, 0, t, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided, tags[2] = {1, 2};
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (provided == MPI_THREAD_MULTIPLE) {
        pthread_create(&thread, NULL, talk, &tags[0]);
        talk(&tags[1]);
        pthread_join(thread, NULL);
    }
    MPI_Finalize();
    return provided != MPI_THREAD_MULTIPLE;
}
