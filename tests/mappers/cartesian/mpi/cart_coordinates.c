/* Coordinates for the cases on stdin, a line for each: those of all its indices, or the error.
 *
 * A case: algorithm, nodes (count smallest largest), ranks a socket (0: no sockets), ndims, dims,
 * nvectors, vectors, whether weights follow, those, first index, and how many. */
#define HOPMAP_NO_MPI
#include "hopmap_cart.h"

#include <stdio.h>

static int number(void)
{
    int x = 0;
    return scanf("%d", &x) == 1 ? x : -1;
}

int main(void)
{
    char algorithm[64];
    static int vectors[4096], weights[512];
    while (scanf("%63s", algorithm) == 1) {
        int dims[2 * HOPMAP_MAXDIMS], coords[HOPMAP_MAXDIMS], ndims, nvectors, first, count, error = 0;
        int socket, weighted;
        hopmap_nodes nodes[2];
        nodes[0].count = number(), nodes[0].smallest = number(), nodes[0].largest = number();
        socket = number();
        nodes[1].count = 0, nodes[1].smallest = nodes[1].largest = socket;
        ndims = number();
        for (int d = 0; d < ndims; d++) dims[d] = number();
        nvectors = number();
        for (int i = 0; i < nvectors * ndims; i++) vectors[i] = number();
        weighted = number();
        for (int i = 0; weighted && i < nvectors; i++) weights[i] = number();
        first = number(), count = number();
        for (int i = 0; !error && i < count; i++) {
            error = hopmap_coordinates_of(algorithm, ndims, dims, socket ? 2 : 1, nodes, nvectors,
                                          vectors, weighted ? weights : NULL, first + i, coords);
            if (error) printf("%d", error);
            for (int d = 0; !error && d < ndims; d++) printf("%d ", coords[d]);
        }
        printf("\n");
    }
    return 0;
}
