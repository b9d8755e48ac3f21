/* hopmap_cart.h: Cartesian communicators reordered so that neighbours share nodes.
 *
 * MPI_Cart_create may reorder ranks; Gropp (2018) found no library that does. hopmap_cart_create
 * reorders, by the formulas of hopmap's mappers of the same names, whose files tell their sources
 * (Lehr 2019; Gropp 2018; Hunold, von Kirchbach, Lehr, Schulz, Traeff 2020). Every process computes
 * its own coordinates, which are those of the Python rank by rank.
 *
 *     int dims[2] = {20, 10}, periods[2] = {0, 0};
 *     MPI_Comm cart;
 *     hopmap_cart_create(MPI_COMM_WORLD, 2, dims, periods, "squarest_strips", 0, NULL, &cart);
 *
 * C99 or C++. With HOPMAP_NO_MPI defined it needs no mpi.h and has the coordinates only. Functions
 * return 0, an error of MPI, or one of the codes below, the same on all processes.
 *
 * Part of hopmap. MIT licence.
 */
#ifndef HOPMAP_CART_H
#define HOPMAP_CART_H

#include <limits.h>
#include <stdint.h>
#include <string.h>

#define HOPMAP_MAXDIMS 16

enum {
    HOPMAP_SUCCESS = 0,
    HOPMAP_EDIMS = -1,      /* ndims not in 1..HOPMAP_MAXDIMS, a dim below 1, over INT_MAX ranks */
    HOPMAP_EINDEX = -2,     /* index not in the grid */
    HOPMAP_ENODES = -3,     /* node sizes below 1, not dividing the grid, or unequal for gropp */
    HOPMAP_ESTENCIL = -4,   /* no vectors */
    HOPMAP_EALGORITHM = -5, /* no such algorithm */
    HOPMAP_EPROCESSES = -6  /* fewer processes than the grid has */
};

/* How many ranks the nodes have. */
typedef struct {
    int count, smallest, largest;
} hopmap_nodes;

/* Number of ranks of a grid, or an error. */
static inline int hopmap_ranks(int ndims, const int dims[])
{
    int64_t ranks = 1;
    if (ndims < 1 || ndims > HOPMAP_MAXDIMS) return HOPMAP_EDIMS;
    for (int d = 0; d < ndims; d++) {
        if (dims[d] < 1 || (ranks *= dims[d]) > INT_MAX) return HOPMAP_EDIMS;
    }
    return (int)ranks;
}

static inline int hopmap_impl_check(int ndims, const int dims[], int index)
{
    int ranks = hopmap_ranks(ndims, dims);
    if (ranks < 0) return ranks;
    return index < 0 || index >= ranks ? HOPMAP_EINDEX : HOPMAP_SUCCESS;
}

/* Longest dimension, the first of several. */
static inline int hopmap_impl_longest(int ndims, const int dims[])
{
    int longest = 0;
    for (int d = 1; d < ndims; d++)
        if (dims[d] > dims[longest]) longest = d;
    return longest;
}

/* ---- Coordinates of one index. Indices number the processes node by node. ------------------- */

/* What MPI_Cart_create does: the last dimension varies fastest. O(d). */
static inline int hopmap_row_major(int ndims, const int dims[], int index, int coords[])
{
    int error = hopmap_impl_check(ndims, dims, index);
    for (int d = ndims - 1; !error && d >= 0; d--) {
        coords[d] = index % dims[d];
        index /= dims[d];
    }
    return error;
}

/* Halves, each time across the dimension of the largest size / factor, those of factor 0 first.
 * Compared as products, which is exact. */
static inline int hopmap_impl_halves(int ndims, const int dims[], const int64_t factors[],
                                     int index, int coords[])
{
    int rest[HOPMAP_MAXDIMS], elements = hopmap_ranks(ndims, dims);
    memcpy(rest, dims, (size_t)ndims * sizeof *dims);
    memset(coords, 0, (size_t)ndims * sizeof *coords);
    while (elements > 1) {
        int k = -1, half, left;
        for (int d = 0; d < ndims; d++)
            if (rest[d] > 1 && (k < 0 || rest[d] * factors[k] > rest[k] * factors[d])) k = d;
        half = rest[k] / 2;
        left = elements / rest[k] * half;
        if (index < left) {
            rest[k] = half;
            elements = left;
        } else {
            coords[k] += half;
            rest[k] -= half;
            index -= left;
            elements -= left;
        }
    }
    return HOPMAP_SUCCESS;
}

/* k-d tree: halves across the longest dimension (Lehr, chapter 5). O(d log n). */
static inline int hopmap_kd_tree(int ndims, const int dims[], int index, int coords[])
{
    int64_t factors[HOPMAP_MAXDIMS];
    int error = hopmap_impl_check(ndims, dims, index);
    if (error) return error;
    for (int d = 0; d < ndims; d++) factors[d] = 1;
    return hopmap_impl_halves(ndims, dims, factors, index, coords);
}

/* Skewed k-d tree: sizes count by how few vectors go along them (section 5.4). A stencil is
 * nvectors vectors of ndims numbers, one after the other. O(d vectors + d log n). */
static inline int hopmap_skewed_kd_tree(int ndims, const int dims[], int nvectors,
                                        const int vectors[], int index, int coords[])
{
    int64_t factors[HOPMAP_MAXDIMS];
    int error = hopmap_impl_check(ndims, dims, index);
    if (error) return error;
    if (nvectors < 1 || !vectors) return HOPMAP_ESTENCIL;
    for (int d = 0; d < ndims; d++) {
        factors[d] = 0;
        for (int v = 0; v < nvectors; v++) factors[d] += vectors[(int64_t)v * ndims + d] != 0;
    }
    return hopmap_impl_halves(ndims, dims, factors, index, coords);
}

/* Whether base^degree <= limit. */
static inline int hopmap_impl_fits(double base, int degree, double limit)
{
    double power = 1;
    while (degree-- > 0 && power <= limit) power *= base;
    return power <= limit;
}

/* Integer part of a root, at least 1; of those above `most` only that they are. */
static inline int hopmap_impl_root(double radicand, int degree, int most)
{
    int low = 1, high = most;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (hopmap_impl_fits(middle, degree, radicand * (1 + 1e-12))) /* exact roots stay so */
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* A dimension as `wide` strips of width + 1, then strips of width. */
typedef struct {
    int width, wide;
} hopmap_impl_cut;

static inline hopmap_impl_cut hopmap_impl_strips(int size, int target)
{
    int strips = size / target;
    hopmap_impl_cut cut;
    cut.width = size / strips;
    cut.wide = size % strips;
    return cut;
}

/* Dimensions in their order, but the longest moved last: along it columns run. */
static inline void hopmap_impl_last_longest(int ndims, const int dims[], int order[])
{
    int longest = hopmap_impl_longest(ndims, dims), n = 0;
    for (int d = 0; d < ndims; d++)
        if (d != longest) order[n++] = d;
    order[n] = longest;
}

/* Place in columns that are filled slice by slice, up and down (Lehr, section 6.1.2). O(d^2). */
static inline int hopmap_impl_columns(int ndims, const int dims[], const int order[],
                                      const hopmap_impl_cut cuts[], int index, int coords[])
{
    int widths[HOPMAP_MAXDIMS], flipped[HOPMAP_MAXDIMS], flip = 0;
    int row = hopmap_ranks(ndims, dims); /* ranks in the part of the grid that is left */
    for (int i = 0; i < ndims; i++) {
        int size = dims[order[i]], width = cuts[i].width, border = cuts[i].wide * (width + 1);
        int height, strip, first;
        row /= size;
        height = flip ? size - 1 - index / row : index / row;
        if (height < border) {
            strip = height / (width + 1);
            first = strip * (width + 1);
            widths[i] = width + 1;
        } else {
            strip = cuts[i].wide + (height - border) / width;
            first = border + (strip - cuts[i].wide) * width;
            widths[i] = width;
        }
        index -= row * (flip ? size - first - widths[i] : first);
        row *= widths[i];
        coords[order[i]] = first;
        flipped[i] = flip;
        flip ^= strip % 2;
    }
    for (int i = ndims - 1; i >= 0; i--) {
        int place = index % widths[i];
        coords[order[i]] += flipped[i] ? widths[i] - 1 - place : place;
        index /= widths[i];
    }
    return HOPMAP_SUCCESS;
}

/* Place on a path through the grid along columns, so that consecutive indices are neighbours; its
 * steps are told in hopmap's file snake.py. O(d). */
static inline int hopmap_impl_snake(int ndims, const int dims[], const int order[],
                                    const hopmap_impl_cut cuts[], int index, int coords[])
{
    int path = hopmap_ranks(ndims, dims); /* cells of the path along the dimensions that are left */
    for (int i = 0; i < ndims - 1; i++) {
        int size = dims[order[i]], width = cuts[i].width + 1, count = cuts[i].wide;
        int strips = count + (size - count * width) / cuts[i].width;
        int narrow_first, strip = 0, first = 0, nth, cell, height;
        path /= size;
        narrow_first = path % 2 == 0 && width % 2 == 0 && count % 2 == 1 && count < strips;
        if (narrow_first) {
            count = strips - count;
            width--;
        }
        if (index / path >= count * width) {
            strip = count;
            first = count * width;
            index -= first * path;
            width += narrow_first ? 1 : -1;
        }
        nth = index / path / width; /* of this width */
        strip += nth;
        first += nth * width;
        index -= nth * width * path;
        cell = index / width;
        height = cell % 2 ? width - 1 - index % width : index % width;
        if (path % 2 == 0 && width % 2 == 0 && nth % 2 == 1) {
            if (cell < 2) {
                height = index / 2;
                cell = (index + height + 1) % 2;
            } else {
                height = width - 1 - height;
            }
        } else if (path % 2 == 0 && cell >= path - 2 && strip < strips - 1) {
            index -= (path - 2) * width;
            height = index / 2;
            cell = path - 2 + (index + height) % 2;
        }
        height += first;
        coords[order[i]] = narrow_first ? size - 1 - height : height;
        index = strip % 2 ? path - 1 - cell : cell;
    }
    coords[order[ndims - 1]] = index;
    return HOPMAP_SUCCESS;
}

/* Which of a dimension's two strip widths counts for the next root. */
enum { HOPMAP_WIDER, HOPMAP_NARROWER };
/* How columns are filled: slice by slice, or so that nodes of any sizes are connected. */
enum { HOPMAP_ROWS, HOPMAP_SNAKE };

/* Squarest strips (Lehr, chapter 6), with HOPMAP_WIDER and HOPMAP_ROWS as published. The node size
 * is the largest. O(d^2 log n). */
static inline int hopmap_squarest_strips(int ndims, const int dims[], int node_size, int carry,
                                         int path, int index, int coords[])
{
    int order[HOPMAP_MAXDIMS], error = hopmap_impl_check(ndims, dims, index);
    hopmap_impl_cut cuts[HOPMAP_MAXDIMS];
    int64_t section = 1;
    if (error) return error;
    if (node_size < 1) return HOPMAP_ENODES;
    hopmap_impl_last_longest(ndims, dims, order);
    for (int i = 0; i < ndims - 1; i++) {
        int size = dims[order[i]];
        double radicand = (double)node_size / (double)section;
        cuts[i] = hopmap_impl_strips(size, hopmap_impl_root(radicand, ndims - i, size));
        section *= cuts[i].width + (carry == HOPMAP_WIDER && cuts[i].wide > 0);
    }
    cuts[ndims - 1] = hopmap_impl_strips(dims[order[ndims - 1]], 1);
    if (path == HOPMAP_SNAKE)
        return hopmap_impl_snake(ndims, dims, order, cuts, index, coords);
    return hopmap_impl_columns(ndims, dims, order, cuts, index, coords);
}

/* Stencil strips (Hunold et al.): strips of the proportions of the stencil. The node size is the
 * mean. O(d vectors + d^2 log n). */
static inline int hopmap_stencil_strips(int ndims, const int dims[], int node_size, int nvectors,
                                        const int vectors[], int index, int coords[])
{
    int order[HOPMAP_MAXDIMS], used = 0, left = node_size;
    double extents[HOPMAP_MAXDIMS], product = 1, low = 1, high = 1;
    hopmap_impl_cut cuts[HOPMAP_MAXDIMS];
    int error = hopmap_impl_check(ndims, dims, index);
    if (error) return error;
    if (node_size < 1) return HOPMAP_ENODES;
    if (nvectors < 1 || !vectors) return HOPMAP_ESTENCIL;
    for (int d = 0; d < ndims; d++) {
        double least = 0, most = 0;
        for (int v = 0; v < nvectors; v++) {
            int step = vectors[(int64_t)v * ndims + d];
            if (step < least) least = step;
            if (step > most) most = step;
        }
        extents[d] = most - least;
        if (extents[d] > 0) {
            used++;
            product *= extents[d];
            if (extents[d] > high) high = extents[d];
        }
    }
    for (int i = 0; used && i < 100; i++) { /* their geometric mean, by bisection */
        double middle = (low + high) / 2;
        if (hopmap_impl_fits(middle, used, product))
            low = middle;
        else
            high = middle;
    }
    hopmap_impl_last_longest(ndims, dims, order);
    for (int i = 0; i < ndims - 1; i++) {
        int size = dims[order[i]];
        double radicand = left * (extents[order[i]] / low);
        cuts[i] = hopmap_impl_strips(size, hopmap_impl_root(radicand, ndims, size));
        left /= cuts[i].width;
    }
    cuts[ndims - 1] = hopmap_impl_strips(dims[order[ndims - 1]], 1);
    return hopmap_impl_columns(ndims, dims, order, cuts, index, coords);
}

/* Dimensions by the stencil's angles, the smallest first, then by size, the largest first. */
static inline void hopmap_impl_preferred(int ndims, const int dims[], const double angles[],
                                         int order[])
{
    for (int d = 0; d < ndims; d++) {
        int i = d;
        for (; i > 0; i--) {
            int other = order[i - 1];
            if (angles[other] < angles[d]) break;
            if (!(angles[d] < angles[other]) && dims[other] >= dims[d]) break;
            order[i] = other;
        }
        order[i] = d;
    }
}

static inline int hopmap_impl_gcd(int a, int b)
{
    while (b) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Hyperplane (Hunold et al.): halves of whole nodes. The node size has to divide the grid.
 * O(d vectors + d (d + log n) log n). */
static inline int hopmap_hyperplane(int ndims, const int dims[], int node_size, int nvectors,
                                    const int vectors[], int index, int coords[])
{
    int order[HOPMAP_MAXDIMS], rest[HOPMAP_MAXDIMS], ranks = hopmap_ranks(ndims, dims);
    double angles[HOPMAP_MAXDIMS] = {0};
    int error = hopmap_impl_check(ndims, dims, index);
    if (error) return error;
    if (node_size < 1 || ranks % node_size) return HOPMAP_ENODES;
    if (nvectors < 1 || !vectors) return HOPMAP_ESTENCIL;
    for (int v = 0; v < nvectors; v++) {
        const int *vector = vectors + (int64_t)v * ndims;
        double length = 0;
        for (int d = 0; d < ndims; d++) length += (double)vector[d] * vector[d];
        for (int d = 0; d < ndims && length > 0; d++)
            angles[d] += (double)vector[d] * vector[d] / length;
    }
    /* In steps of 2^-32, as in the Python: equal angles are so in any order of additions. */
    for (int d = 0; d < ndims; d++) angles[d] = (double)(int64_t)(angles[d] * 4294967296.0 + 0.5);
    memcpy(rest, dims, (size_t)ndims * sizeof *dims);
    memset(coords, 0, (size_t)ndims * sizeof *coords);
    while (ranks / node_size > 2) {
        int i = 0, d, step, lower, below;
        hopmap_impl_preferred(ndims, rest, angles, order);
        for (;; i++) { /* as node sizes divide what is left, one dimension can be cut */
            d = order[i];
            step = node_size / hopmap_impl_gcd(node_size, ranks / rest[d]);
            if (step <= rest[d] / 2) break;
        }
        lower = rest[d] / 2 / step * step; /* the smaller part is at the nearer border */
        if (coords[d] + rest[d] / 2 >= dims[d] / 2) lower = rest[d] - lower;
        below = ranks / rest[d] * lower;
        if (index < below) {
            rest[d] = lower;
            ranks = below;
        } else {
            rest[d] -= lower;
            coords[d] += lower;
            index -= below;
            ranks -= below;
        }
    }
    hopmap_impl_preferred(ndims, rest, angles, order);
    for (int i = ndims - 1; i >= 0; i--) {
        coords[order[i]] += index % rest[order[i]];
        index /= rest[order[i]];
    }
    return HOPMAP_SUCCESS;
}

/* Gropp: a box of one shape for every node; the node size has to divide the grid. O(d sqrt n) at
 * worst, for a large prime factor. */
static inline int hopmap_gropp(int ndims, const int dims[], int node_size, int index, int coords[])
{
    int box[HOPMAP_MAXDIMS], primes[32], count = 0, left = node_size;
    int error = hopmap_impl_check(ndims, dims, index), node, core;
    if (error) return error;
    if (node_size < 1 || hopmap_ranks(ndims, dims) % node_size) return HOPMAP_ENODES;
    for (int factor = 2; factor <= left / factor;) {
        if (left % factor) {
            factor++;
        } else {
            primes[count++] = factor;
            left /= factor;
        }
    }
    if (left > 1) primes[count++] = left;
    for (int d = 0; d < ndims; d++) box[d] = 1;
    while (count-- > 0) { /* the largest first, to the shortest side that still divides by it */
        int shortest = -1;
        for (int d = 0; d < ndims; d++)
            if (dims[d] / box[d] % primes[count] == 0 && (shortest < 0 || box[d] < box[shortest]))
                shortest = d;
        box[shortest] *= primes[count];
    }
    node = index / node_size;
    core = index % node_size;
    for (int d = ndims - 1; d >= 0; d--) {
        int nodes = dims[d] / box[d];
        coords[d] = node % nodes * box[d] + core % box[d];
        node /= nodes;
        core /= box[d];
    }
    return HOPMAP_SUCCESS;
}

/* Coordinates by the mapper of this name, as hopmap writes it: row_major, kd_tree, skewed_kd_tree,
 * squarest_strips, squarest_strips(carry=narrower), squarest_strips(path=snake), stencil_strips,
 * hyperplane or gropp. Without vectors the stencil is the star of both neighbours in every
 * dimension. O(mean node size) more for hyperplane. */
static inline int hopmap_coordinates(const char *algorithm, int ndims, const int dims[],
                                     hopmap_nodes nodes, int nvectors, const int vectors[],
                                     int index, int coords[])
{
    int star[2 * HOPMAP_MAXDIMS * HOPMAP_MAXDIMS] = {0}, ranks = hopmap_ranks(ndims, dims), mean;
    if (ranks < 0) return ranks;
    if (nodes.count < 1 || nodes.smallest < 1 || nodes.largest > ranks) return HOPMAP_ENODES;
    if (nvectors == 0) {
        for (int v = 0; v < 2 * ndims; v++) star[v * ndims + v / 2] = v % 2 ? -1 : 1;
        nvectors = 2 * ndims;
        vectors = star;
    }
    mean = ranks / nodes.count;
    if (!algorithm) return HOPMAP_EALGORITHM;
    if (!strcmp(algorithm, "row_major")) return hopmap_row_major(ndims, dims, index, coords);
    if (!strcmp(algorithm, "kd_tree")) return hopmap_kd_tree(ndims, dims, index, coords);
    if (!strcmp(algorithm, "skewed_kd_tree"))
        return hopmap_skewed_kd_tree(ndims, dims, nvectors, vectors, index, coords);
    if (!strcmp(algorithm, "squarest_strips"))
        return hopmap_squarest_strips(ndims, dims, nodes.largest, HOPMAP_WIDER, HOPMAP_ROWS,
                                      index, coords);
    if (!strcmp(algorithm, "squarest_strips(carry=narrower)"))
        return hopmap_squarest_strips(ndims, dims, nodes.largest, HOPMAP_NARROWER, HOPMAP_ROWS,
                                      index, coords);
    if (!strcmp(algorithm, "squarest_strips(path=snake)"))
        return hopmap_squarest_strips(ndims, dims, nodes.largest, HOPMAP_WIDER, HOPMAP_SNAKE,
                                      index, coords);
    if (!strcmp(algorithm, "stencil_strips"))
        return hopmap_stencil_strips(ndims, dims, mean, nvectors, vectors, index, coords);
    if (!strcmp(algorithm, "hyperplane")) {
        while (mean > 1 && ranks % mean) mean--;
        return hopmap_hyperplane(ndims, dims, mean, nvectors, vectors, index, coords);
    }
    if (!strcmp(algorithm, "gropp")) {
        if (nodes.smallest != nodes.largest) return HOPMAP_ENODES;
        return hopmap_gropp(ndims, dims, nodes.largest, index, coords);
    }
    return HOPMAP_EALGORITHM;
}

#ifndef HOPMAP_NO_MPI
#include <mpi.h>

/* As hopmap_cart_create, for any nodes: `node` holds the processes that share one (or a socket).
 *
 * Processes are taken node by node, however `old` numbers them: nodes in the order of their first
 * processes in `old`, processes of a node as in `node`. Three small collectives and a split.
 */
static inline int hopmap_cart_create_nodes(MPI_Comm old, MPI_Comm node, int ndims,
                                           const int dims[], const int periods[],
                                           const char *algorithm, int nvectors,
                                           const int vectors[], MPI_Comm *cart)
{
    int size, rank, node_size, node_rank, own[2], before[2] = {0, 0}, filled[3], share;
    int coords[HOPMAP_MAXDIMS], ranks = hopmap_ranks(ndims, dims), index, key = 0, error;
    hopmap_nodes nodes;
    MPI_Comm ordered;

    *cart = MPI_COMM_NULL;
    if (ranks < 0) return ranks;
    if ((error = MPI_Comm_size(old, &size)) || (error = MPI_Comm_rank(old, &rank)) ||
        (error = MPI_Comm_size(node, &node_size)) || (error = MPI_Comm_rank(node, &node_rank)))
        return error;
    if (ranks > size) return HOPMAP_EPROCESSES;

    /* Processes and nodes before this node, known to its first process. */
    own[0] = node_rank == 0 ? node_size : 0;
    own[1] = node_rank == 0;
    if ((error = MPI_Exscan(own, before, 2, MPI_INT, MPI_SUM, old))) return error;
    if (rank == 0) before[0] = before[1] = 0; /* undefined by the standard */
    if ((error = MPI_Bcast(before, 2, MPI_INT, 0, node))) return error;
    index = before[0] + node_rank;

    /* Nodes that the grid reaches, and how many of its ranks they get. */
    share = ranks - before[0] < node_size ? ranks - before[0] : node_size;
    filled[0] = share > 0 ? before[1] + 1 : 0;
    filled[1] = share;
    filled[2] = share > 0 ? -share : -INT_MAX;
    if ((error = MPI_Allreduce(MPI_IN_PLACE, filled, 3, MPI_INT, MPI_MAX, old))) return error;
    nodes.count = filled[0];
    nodes.largest = filled[1];
    nodes.smallest = -filled[2];

    /* Processes that are left out compute a place too, so that all see the same error. */
    error = hopmap_coordinates(algorithm, ndims, dims, nodes, nvectors, vectors,
                               index < ranks ? index : 0, coords);
    if (error) return error;
    for (int d = 0; d < ndims; d++) key = key * dims[d] + coords[d];
    error = MPI_Comm_split(old, index < ranks ? 0 : MPI_UNDEFINED, key, &ordered);
    if (error || ordered == MPI_COMM_NULL) return error;
    error = MPI_Cart_create(ordered, ndims, dims, periods, 0, cart);
    MPI_Comm_free(&ordered);
    return error;
}

/* MPI_Cart_create, with ranks reordered for a stencil on nodes of shared memory.
 *
 * Algorithm and stencil as in hopmap_coordinates. Processes beyond the grid get MPI_COMM_NULL.
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
#endif /* HOPMAP_NO_MPI */
#endif /* HOPMAP_CART_H */
