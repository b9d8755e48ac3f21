/* A program as others write them: what MPI_Cart_create gives it, into a file of each process. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int me, rank, kept, dims[2] = {2, 4}, periods[2] = {0, 0};
    char name[4096];
    FILE *file;
    MPI_Comm cart;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &cart);
    MPI_Comm_rank(cart, &rank);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
    MPI_Comm_rank(cart, &kept);
    sprintf(name, "%.4000s/%d.txt", argv[1], me);
    file = fopen(name, "w");
    fprintf(file, "%d %d\n", rank, kept);
    fclose(file);
    return MPI_Finalize();
}
