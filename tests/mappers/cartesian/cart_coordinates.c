/* Coordinates for the cases on stdin, a line for each: those of all its indices, or the error.
 *
 * A case: algorithm, nodes (count smallest largest), ndims, dims, nvectors, vectors, first index,
 * and how many. */
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
    static int vectors[4096];
    while (scanf("%63s", algorithm) == 1) {
        int dims[2 * HOPMAP_MAXDIMS], coords[HOPMAP_MAXDIMS], ndims, nvectors, first, count, error = 0;
        hopmap_nodes nodes;
        nodes.count = number(), nodes.smallest = number(), nodes.largest = number();
        ndims = number();
        for (int d = 0; d < ndims; d++) dims[d] = number();
        nvectors = number();
        for (int i = 0; i < nvectors * ndims; i++) vectors[i] = number();
        first = number(), count = number();
        for (int i = 0; !error && i < count; i++) {
            error = hopmap_coordinates(algorithm, ndims, dims, nodes, nvectors, vectors, first + i,
                                       coords);
            if (error) printf("%d", error);
            for (int d = 0; !error && d < ndims; d++) printf("%d ", coords[d]);
        }
        printf("\n");
    }
    return 0;
}
