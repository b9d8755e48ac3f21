/* Two threads of each process call collectives at once, each on a communicator of its own. */
#include <mpi.h>
#include <pthread.h>

static MPI_Comm comms[2];

static void *add(void *which) {
    for (int k = 0; k < 50; k++) {
        int x = 1, sum;
        MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, comms[*(int *)which]);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided, rank, which[2] = {0, 1};
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    pthread_create(&thread, NULL, add, &which[rank % 2]);
    add(&which[1 - rank % 2]);
    pthread_join(thread, NULL);
    MPI_Finalize();
    return provided != MPI_THREAD_MULTIPLE;
}
