/* Under MPI: what hopmap_cart_create makes, for the cases in a file, a line for each process.
 *
 * A case: algorithm, ndims, dims, periods, nvectors, vectors, then "given" and the node of every
 * process, or "real" for this machine's. A line: case, process, error, rank in the new communicator, coords,
 * periods; rank -1 without a communicator. */
#include "hopmap_cart.h"

#include <stdio.h>
#include <stdlib.h>

static int number(FILE *file)
{
    int x = 0;
    if (fscanf(file, "%d", &x) != 1) MPI_Abort(MPI_COMM_WORLD, 1);
    return x;
}

static void report(int n, int me, int error, MPI_Comm cart, int ndims)
{
    char line[512];
    int dims[HOPMAP_MAXDIMS], periods[HOPMAP_MAXDIMS], coords[HOPMAP_MAXDIMS], rank = -1, length;
    if (cart != MPI_COMM_NULL) {
        MPI_Comm_rank(cart, &rank);
        MPI_Cart_get(cart, ndims, dims, periods, coords);
    }
    length = sprintf(line, "%d %d %d %d", n, me, error, rank);
    for (int d = 0; rank >= 0 && d < ndims; d++) length += sprintf(line + length, " %d", coords[d]);
    for (int d = 0; rank >= 0 && d < ndims; d++) length += sprintf(line + length, " %d", periods[d]);
    if (me > 0) {
        MPI_Send(line, length + 1, MPI_CHAR, 0, n, MPI_COMM_WORLD);
        return;
    }
    MPI_Comm_size(MPI_COMM_WORLD, &length);
    puts(line);
    for (int other = 1; other < length; other++) {
        MPI_Recv(line, sizeof line, MPI_CHAR, other, n, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        puts(line);
    }
}

int main(int argc, char **argv)
{
    int me, size, cases, dims[32], periods[32], vectors[256];
    FILE *file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    file = fopen(argv[1], "r");
    if (!file) MPI_Abort(MPI_COMM_WORLD, 1);
    cases = number(file);
    for (int n = 0; n < cases; n++) {
        char algorithm[64], kind[16];
        int ndims, nvectors, own = 0, error;
        MPI_Comm node, cart;
        if (fscanf(file, "%63s", algorithm) != 1) MPI_Abort(MPI_COMM_WORLD, 1);
        ndims = number(file);
        for (int d = 0; d < ndims; d++) dims[d] = number(file);
        for (int d = 0; d < ndims; d++) periods[d] = number(file);
        nvectors = number(file);
        for (int i = 0; i < nvectors * ndims; i++) vectors[i] = number(file);
        if (fscanf(file, "%15s", kind) != 1) MPI_Abort(MPI_COMM_WORLD, 1);
        if (!strcmp(kind, "real")) {
            error = hopmap_cart_create(MPI_COMM_WORLD, ndims, dims, periods, algorithm, nvectors,
                                       vectors, &cart);
        } else {
            for (int other = 0; other < size; other++) {
                int color = number(file);
                if (other == me) own = color;
            }
            MPI_Comm_split(MPI_COMM_WORLD, own, me, &node);
            error = hopmap_cart_create_nodes(MPI_COMM_WORLD, node, ndims, dims, periods, algorithm,
                                             nvectors, vectors, &cart);
            MPI_Comm_free(&node);
        }
        report(n, me, error, cart, ndims);
        if (cart != MPI_COMM_NULL) MPI_Comm_free(&cart);
    }
    fclose(file);
    return MPI_Finalize();
}
