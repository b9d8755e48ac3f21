/* Eight processes: levels, neighbourhoods, costs and a grid of no dimensions. Each writes what it
 * found into a file of its own, in the folder that is given: "word numbers", a line each. */
#include "hopmap_cart.h"

#include <stdio.h>

static FILE *file;

static void cost_of(const char *what, MPI_Comm cart, MPI_Comm node, int nvectors,
                    const int vectors[], const int weights[])
{
    long long worst, sum;
    int error = hopmap_cart_cost(cart, node, nvectors, vectors, weights, &worst, &sum);
    fprintf(file, "%s %d %lld %lld\n", what, error, worst, sum);
}

/* The nodes of `old`, for the processes of `cart`. */
static MPI_Comm nodes_in(MPI_Comm cart, int node_id)
{
    int rank;
    MPI_Comm node;
    MPI_Comm_rank(cart, &rank);
    MPI_Comm_split(cart, node_id, rank, &node);
    return node;
}

int main(int argc, char **argv)
{
    int me, dims[2] = {4, 2}, periods[2] = {0, 1}, open[2] = {0, 0}, error, rank;
    int vectors[4] = {1, 1, 0, 2}, weights[4] = {10, 10, 1, 1}, got[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
    int nin, nout, weighted, in[4], out[4], in_weights[4], out_weights[4], own[2] = {7, 9};
    char name[4096];
    MPI_Comm world = MPI_COMM_WORLD, levels[2], wrong[2], cart, graph, node;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(world, &me);
    if (argc < 2) MPI_Abort(world, 1);
    sprintf(name, "%.4000s/%d.txt", argv[1], me);
    if (!(file = fopen(name, "w"))) MPI_Abort(world, 1);

    /* Processes go round: node 0, node 1, node 0, ...; in a node socket 0, socket 1, ... */
    MPI_Comm_split(world, me % 2, me, &levels[0]);
    MPI_Comm_split(world, me % 2 * 2 + me / 2 % 2, me, &levels[1]);
    hopmap_cart_create_nodes(world, levels[1], 2, dims, open, "row_major", 0, NULL, &cart);
    node = nodes_in(cart, me % 2);
    cost_of("sockets_alone", cart, node, 0, NULL, NULL);
    MPI_Comm_free(&node);
    MPI_Comm_free(&cart);
    hopmap_cart_create_levels(world, 2, levels, 2, dims, open, "row_major", 0, NULL, NULL, &cart);
    node = nodes_in(cart, me % 2);
    MPI_Comm_rank(cart, &rank);
    fprintf(file, "place %d\n", rank);
    cost_of("levels", cart, node, 0, NULL, NULL);
    cost_of("weighed", cart, node, 0, NULL, weights);
    cost_of("shared_memory", cart, MPI_COMM_NULL, 0, NULL, NULL);
    MPI_Comm_free(&node);
    MPI_Comm_free(&cart);

    /* Sockets are no parts of what is said to be the nodes. */
    wrong[0] = levels[1], wrong[1] = levels[0];
    error = hopmap_cart_create_levels(world, 2, wrong, 2, dims, open, "row_major", 0, NULL, NULL,
                                      &cart);
    fprintf(file, "spanning %d %d\n", error, cart == MPI_COMM_NULL);

    hopmap_cart_create(world, 2, dims, periods, "row_major", 2, vectors, &cart);
    error = hopmap_cart_neighbours(cart, 2, vectors, own, &graph);
    MPI_Comm_rank(graph, &rank);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, graph);
    MPI_Dist_graph_neighbors_count(graph, &nin, &nout, &weighted);
    MPI_Dist_graph_neighbors(graph, 4, in, in_weights, 4, out, out_weights);
    fprintf(file, "neighbours %d %d %d", error, rank, nin);
    for (int i = 0; i < nin; i++) fprintf(file, " %d %d %d", in[i], in_weights[i], got[i]);
    for (int i = 0; i < nout; i++) fprintf(file, " %d %d", out[i], out_weights[i]);
    fprintf(file, "\n");
    MPI_Comm_free(&graph);
    MPI_Comm_free(&cart);

    error = hopmap_cart_create(world, 0, NULL, NULL, "hyperplane", 0, NULL, &cart);
    rank = -1;
    if (cart != MPI_COMM_NULL) MPI_Cartdim_get(cart, &rank);
    fprintf(file, "no_dimensions %d %d\n", error, rank);
    fclose(file);
    return MPI_Finalize();
}
