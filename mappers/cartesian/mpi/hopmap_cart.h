/* hopmap_cart.h: Cartesian communicators reordered so that neighbours share nodes.
 *
 * MPI_Cart_create may reorder ranks; Gropp (2018) found no library that does. hopmap_cart_create
 * reorders, by the formulas of hopmap's mappers of the same names. Every process computes its own
 * coordinates, which equal the Python's rank by rank.
 *
 *     int dims[2] = {20, 10}, periods[2] = {0, 0};
 *     MPI_Comm cart;
 *     hopmap_cart_create(MPI_COMM_WORLD, 2, dims, periods, "squarest_strips", 0, NULL, &cart);
 *
 * C99 or C++. With HOPMAP_NO_MPI defined it needs no mpi.h and has the coordinates only. Functions
 * return 0, an error of MPI, or one of the codes HOPMAP_E..., the same on all processes.
 *
 * Part of hopmap. MIT licence.
 */
#ifndef HOPMAP_CART_H
#define HOPMAP_CART_H

/* Of this interface: 100 * major + minor. */
#define HOPMAP_CART_VERSION 200

#include "hopmap_coordinates.h"

#ifndef HOPMAP_NO_MPI
#include <mpi.h>
#include <stdlib.h>

/* As hopmap_cart_create, for any levels of the machine, and for weights of the vectors.
 *
 * levels[0] holds the processes that share this process' node, levels[1] the ones of these that share
 * its socket, and so on. Processes are taken node by node, however `old` numbers them: nodes in the
 * order of their first processes in `old`, sockets in that of theirs in the node. A level costs an
 * MPI_Exscan and an MPI_Bcast, all of them an MPI_Allreduce; then there is a split.
 */
static inline int hopmap_cart_create_levels(MPI_Comm old, int nlevels, const MPI_Comm levels[],
                                            int ndims, const int dims[], const int periods[],
                                            const char *algorithm, int nvectors,
                                            const int vectors[], const int weights[],
                                            MPI_Comm *cart)
{
    int before[HOPMAP_MAXLEVELS][2], sizes[HOPMAP_MAXLEVELS], found[2 + 2 * HOPMAP_MAXLEVELS];
    int coords[HOPMAP_MAXDIMS], ranks = hopmap_ranks(ndims, dims), index = 0, key = 0;
    int size, rank, error;
    hopmap_nodes nodes[HOPMAP_MAXLEVELS];
    MPI_Comm ordered;

    *cart = MPI_COMM_NULL;
    if (ranks < 0) return ranks;
    if (nlevels < 1 || nlevels > HOPMAP_MAXLEVELS) return HOPMAP_ELEVELS;
    if ((error = MPI_Comm_size(old, &size))) return error;
    if (ranks > size) return HOPMAP_EPROCESSES;

    /* Processes and parts before this part, within the part of the level before. */
    found[1] = 0;
    for (int l = 0; l < nlevels; l++) {
        MPI_Comm parent = l ? levels[l - 1] : old;
        int own[2], same[2], parent_rank;
        if ((error = MPI_Comm_rank(parent, &parent_rank)) ||
            (error = MPI_Comm_size(levels[l], &sizes[l])) ||
            (error = MPI_Comm_rank(levels[l], &rank)))
            return error;
        own[0] = rank == 0 ? sizes[l] : 0;
        own[1] = rank == 0;
        if ((error = MPI_Exscan(own, before[l], 2, MPI_INT, MPI_SUM, parent))) return error;
        if (parent_rank == 0) before[l][0] = before[l][1] = 0; /* undefined by the standard */
        if ((error = MPI_Bcast(before[l], 2, MPI_INT, 0, levels[l]))) return error;
        if (l) { /* are all of this part in one part of the level before? */
            same[0] = before[l - 1][1];
            same[1] = -same[0];
            if ((error = MPI_Allreduce(MPI_IN_PLACE, same, 2, MPI_INT, MPI_MAX, levels[l])))
                return error;
            if (same[0] != -same[1]) found[1] = 1;
        }
        index += before[l][0];
    }

    /* Nodes that the grid reaches, and how many of its ranks they and their parts get. */
    found[0] = index < ranks ? before[0][1] + 1 : 0;
    for (int l = nlevels - 1, first = index; l >= 0; first -= before[l--][0]) {
        int share = ranks - first < sizes[l] ? ranks - first : sizes[l];
        found[2 + 2 * l] = share;
        found[3 + 2 * l] = share > 0 ? -share : -INT_MAX;
    }
    error = MPI_Allreduce(MPI_IN_PLACE, found, 2 + 2 * nlevels, MPI_INT, MPI_MAX, old);
    if (error) return error;
    if (found[1]) return HOPMAP_ELEVELS;
    for (int l = 0; l < nlevels; l++) {
        nodes[l].count = found[0];
        nodes[l].largest = found[2 + 2 * l];
        nodes[l].smallest = -found[3 + 2 * l];
    }
    index += rank;

    /* Processes that are left out compute a place too, so that all see the same error. */
    error = hopmap_coordinates_of(algorithm, ndims, dims, nlevels, nodes, nvectors, vectors, weights,
                                  index < ranks ? index : 0, coords);
    if (error) return error;
    for (int d = 0; d < ndims; d++) key = key * dims[d] + coords[d];
    error = MPI_Comm_split(old, index < ranks ? 0 : MPI_UNDEFINED, key, &ordered);
    if (error || ordered == MPI_COMM_NULL) return error;
    error = MPI_Cart_create(ordered, ndims, dims, periods, 0, cart);
    MPI_Comm_free(&ordered);
    return error;
}

/* As hopmap_cart_create, for any nodes: `node` holds the processes that share one. For sockets say
 * also which share a node: hopmap_cart_create_levels. */
static inline int hopmap_cart_create_nodes(MPI_Comm old, MPI_Comm node, int ndims,
                                           const int dims[], const int periods[],
                                           const char *algorithm, int nvectors,
                                           const int vectors[], MPI_Comm *cart)
{
    return hopmap_cart_create_levels(old, 1, &node, ndims, dims, periods, algorithm, nvectors,
                                     vectors, NULL, cart);
}

/* MPI_Cart_create, with ranks reordered for a stencil on nodes of shared memory.
 *
 * Algorithm and stencil as in hopmap_coordinates_of. Processes beyond the grid get MPI_COMM_NULL.
 */
static inline int hopmap_cart_create(MPI_Comm old, int ndims, const int dims[], const int periods[],
                                     const char *algorithm, int nvectors, const int vectors[],
                                     MPI_Comm *cart)
{
    int rank, error;
    MPI_Comm node;
    *cart = MPI_COMM_NULL;
    if ((error = MPI_Comm_rank(old, &rank))) return error;
    error = MPI_Comm_split_type(old, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    if (error) return error;
    error = hopmap_cart_create_nodes(old, node, ndims, dims, periods, algorithm, nvectors, vectors,
                                     cart);
    MPI_Comm_free(&node);
    return error;
}

/* Rank in `cart` of the neighbour at `sign` times the vector, or MPI_PROC_NULL beyond a border. */
static inline int hopmap_impl_neighbour(MPI_Comm cart, int ndims, const int dims[],
                                        const int periods[], const int coords[], const int vector[],
                                        int sign, int *neighbour)
{
    int place[HOPMAP_MAXDIMS];
    *neighbour = MPI_PROC_NULL;
    for (int d = 0; d < ndims; d++) {
        int64_t at = coords[d] + (int64_t)sign * vector[d];
        if (!periods[d] && (at < 0 || at >= dims[d])) return MPI_SUCCESS;
        place[d] = (int)((at % dims[d] + dims[d]) % dims[d]);
    }
    return MPI_Cart_rank(cart, place, neighbour);
}

/* Sources (from vector v), destinations (to vector v) and weights of a process, `*count` of each but
 * for those beyond a border; the arrays have room for all vectors. Without vectors: the star. */
static inline int hopmap_impl_neighbours(MPI_Comm cart, int nvectors, const int vectors[],
                                         const int weights[], int sources[], int *nsources,
                                         int source_weights[], int destinations[],
                                         int *ndestinations, int destination_weights[])
{
    int dims[HOPMAP_MAXDIMS], periods[HOPMAP_MAXDIMS], coords[HOPMAP_MAXDIMS], ndims, error;
    if ((error = MPI_Cartdim_get(cart, &ndims))) return error;
    if (ndims > HOPMAP_MAXDIMS) return HOPMAP_EDIMS;
    if ((error = MPI_Cart_get(cart, ndims, dims, periods, coords))) return error;
    *nsources = *ndestinations = 0;
    for (int v = 0; v < (vectors ? nvectors : 2 * ndims); v++) {
        int star[HOPMAP_MAXDIMS] = {0}, rank, weight = weights ? weights[v] : 1;
        const int *vector = vectors ? vectors + (int64_t)v * ndims : star;
        if (weight < 0) return HOPMAP_EWEIGHTS;
        if (!vectors) star[v / 2] = v % 2 ? -1 : 1;
        error = hopmap_impl_neighbour(cart, ndims, dims, periods, coords, vector, -1, &rank);
        if (error) return error;
        if (rank != MPI_PROC_NULL) {
            source_weights[*nsources] = weight;
            sources[(*nsources)++] = rank;
        }
        error = hopmap_impl_neighbour(cart, ndims, dims, periods, coords, vector, 1, &rank);
        if (error) return error;
        if (rank != MPI_PROC_NULL) {
            destination_weights[*ndestinations] = weight;
            destinations[(*ndestinations)++] = rank;
        }
    }
    return MPI_SUCCESS;
}

static inline int *hopmap_impl_room(MPI_Comm cart, int nvectors, const int vectors[], int *room)
{
    int ndims = 0, error = MPI_Cartdim_get(cart, &ndims);
    *room = vectors ? nvectors : 2 * ndims;
    return error || *room < 0 ? NULL : (int *)malloc((4 * (size_t)*room + 1) * sizeof(int));
}

/* A communicator for MPI_Neighbor_... along a stencil that is no star, of the same ranks as `cart`:
 * a process sends to its place plus each vector, in their order, and receives from minus; those
 * beyond a border are left out. Its weights are the caller's, or 1; nothing is reordered again. */
static inline int hopmap_cart_neighbours(MPI_Comm cart, int nvectors, const int vectors[],
                                         const int weights[], MPI_Comm *graph)
{
    int room, nsources, ndestinations, error;
    int *lists = hopmap_impl_room(cart, nvectors, vectors, &room);
    *graph = MPI_COMM_NULL;
    if (!lists) return MPI_ERR_OTHER;
    error = hopmap_impl_neighbours(cart, nvectors, vectors, weights, lists, &nsources, lists + room,
                                   lists + 2 * room, &ndestinations, lists + 3 * room);
    if (!error)
        error = MPI_Dist_graph_create_adjacent(cart, nsources, lists, lists + room, ndestinations,
                                               lists + 2 * room, lists + 3 * room, MPI_INFO_NULL, 0,
                                               graph);
    free(lists);
    return error;
}

/* What leaves the nodes by a stencil: messages, or the weights of the vectors. On all processes of
 * `cart`, in sum and for the worst node. `node` holds the processes of `cart` that share a node, or
 * is MPI_COMM_NULL for levels of shared memory. */
static inline int hopmap_cart_cost(MPI_Comm cart, MPI_Comm node, int nvectors, const int vectors[],
                                   const int weights[], long long *worst, long long *sum)
{
    int room, nsources, ndestinations, rank, error;
    int *lists = hopmap_impl_room(cart, nvectors, vectors, &room), *there;
    long long leaving = 0;
    MPI_Comm shared = node;
    MPI_Group all, here;
    *worst = *sum = 0;
    if (!lists) return MPI_ERR_OTHER;
    error = hopmap_impl_neighbours(cart, nvectors, vectors, weights, lists, &nsources, lists + room,
                                   lists + 2 * room, &ndestinations, lists + 3 * room);
    if (!error) error = MPI_Comm_rank(cart, &rank);
    if (!error && node == MPI_COMM_NULL)
        error = MPI_Comm_split_type(cart, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &shared);
    if (error) {
        free(lists);
        return error;
    }
    there = lists; /* sources are not needed */
    MPI_Comm_group(cart, &all);
    MPI_Comm_group(shared, &here);
    error = MPI_Group_translate_ranks(all, ndestinations, lists + 2 * room, here, there);
    for (int i = 0; i < ndestinations && !error; i++)
        if (there[i] == MPI_UNDEFINED) leaving += lists[3 * room + i];
    MPI_Group_free(&all);
    MPI_Group_free(&here);
    free(lists);
    if (!error) error = MPI_Allreduce(&leaving, sum, 1, MPI_LONG_LONG, MPI_SUM, cart);
    if (!error) error = MPI_Allreduce(MPI_IN_PLACE, &leaving, 1, MPI_LONG_LONG, MPI_SUM, shared);
    if (!error) error = MPI_Allreduce(&leaving, worst, 1, MPI_LONG_LONG, MPI_MAX, cart);
    if (node == MPI_COMM_NULL) MPI_Comm_free(&shared);
    return error;
}
#endif /* HOPMAP_NO_MPI */
#endif /* HOPMAP_CART_H */
