/* Where every process of MPI_COMM_WORLD sits: rank, name of its machine, node that it was started
 * for (HOPMAP_NODE of the stand-in for ssh), processors that it is bound to. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    char machine[MPI_MAX_PROCESSOR_NAME], line[1024];
    const char *node = getenv("HOPMAP_NODE");
    cpu_set_t bound;
    int rank, size, length;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(machine, &length);
    sched_getaffinity(0, sizeof bound, &bound);
    length = snprintf(line, sizeof line, "%d %s %s", rank, machine, node ? node : "-");
    for (int cpu = 0; cpu < CPU_SETSIZE && length < 1000; cpu++)
        if (CPU_ISSET(cpu, &bound)) length += sprintf(line + length, " %d", cpu);
    if (rank > 0) {
        MPI_Send(line, length + 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    } else {
        puts(line);
        for (int other = 1; other < size; other++) {
            MPI_Recv(line, sizeof line, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            puts(line);
        }
    }
    return MPI_Finalize();
}
