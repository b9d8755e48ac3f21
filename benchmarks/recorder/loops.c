/* Loops to measure a recorder by: prints the least seconds a step.
 *
 * pingpong BYTES   a message there and back between two processes, as osu_latency's
 * halo BYTES       as a step of the NAS benchmarks' solvers: some computation, non-blocking messages
 *                  to both sides, a sum over all; by one process, in its own CPU time
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static char out[1 << 22], in[1 << 22], more[1 << 22];
static double grid[1 << 16];

static void pingpong(int rank, int bytes) {
    if (rank == 0) {
        MPI_Send(out, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    }
}

static void halo(int rank, int bytes) {
    MPI_Request r[4];
    MPI_Status s[4];
    double sum = 0, all;
    int other = rank;
    for (int i = 1; i < (1 << 16) - 1; i++) sum += grid[i] = 0.3 * (grid[i - 1] + grid[i + 1]) + 1;
    MPI_Irecv(in, bytes, MPI_CHAR, other, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Irecv(more, bytes, MPI_CHAR, other, 2, MPI_COMM_WORLD, &r[1]);
    MPI_Isend(out, bytes, MPI_CHAR, other, 1, MPI_COMM_WORLD, &r[2]);
    MPI_Isend(out, bytes, MPI_CHAR, other, 2, MPI_COMM_WORLD, &r[3]);
    MPI_Waitall(4, r, s);
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static double seconds(int of_cpu) {
    struct timespec t;
    clock_gettime(of_cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv) {
    int rank, is_halo = argc > 1 && argv[1][0] == 'h', bytes = argc > 2 ? atoi(argv[2]) : 0;
    int steps = is_halo ? 200 : 1000;
    double least = 1e9;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < 40; round++) {
        double begin = seconds(is_halo);
        for (int k = 0; k < steps; k++) (is_halo ? halo : pingpong)(rank, bytes);
        double step = (seconds(is_halo) - begin) / steps;
        if (step < least) least = step;
    }
    if (rank == 0) printf("%.9f\n", least);
    MPI_Finalize();
    return 0;
}
