/* hopmap_coordinates.h: where the mappers of Cartesian grids put a process, without MPI.
 *
 * The formulas of hopmap's mappers of the same names, whose files tell their sources (Lehr 2019;
 * Gropp 2018; Hunold, von Kirchbach, Lehr, Schulz, Traeff 2020; Niethammer, Rabenseifner 2019);
 * coordinates equal the Python's rank by rank. C99 or C++.
 *
 * Part of hopmap. MIT licence.
 */
#ifndef HOPMAP_COORDINATES_H
#define HOPMAP_COORDINATES_H

#include <limits.h>
#include <stdint.h>
#include <string.h>

#define HOPMAP_MAXDIMS 16
#define HOPMAP_MAXLEVELS 4

enum {
    HOPMAP_SUCCESS = 0,
    HOPMAP_EDIMS = -1,      /* ndims not in 0..HOPMAP_MAXDIMS, a dim below 1, over INT_MAX ranks */
    HOPMAP_EINDEX = -2,     /* index not in the grid */
    HOPMAP_ENODES = -3,     /* node sizes below 1, not dividing, or unequal where they must not */
    HOPMAP_ESTENCIL = -4,   /* no vectors */
    HOPMAP_EALGORITHM = -5, /* no such algorithm */
    HOPMAP_EPROCESSES = -6, /* fewer processes than the grid has */
    HOPMAP_EWEIGHTS = -7,   /* a weight below 0, or too much across a dimension for an int */
    HOPMAP_ELEVELS = -8     /* not 1..HOPMAP_MAXLEVELS levels, or parts that span two of a coarser */
};

/* How many ranks the nodes have; or the parts of nodes (sockets), whose count is not read. */
typedef struct {
    int count, smallest, largest;
} hopmap_nodes;

/* Number of ranks of a grid, or an error. */
static inline int hopmap_ranks(int ndims, const int dims[])
{
    int64_t ranks = 1;
    if (ndims < 0 || ndims > HOPMAP_MAXDIMS) return HOPMAP_EDIMS;
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

/* What crosses a cut across each dimension: weight times reach, summed over the vectors. A weight of
 * each vector; all count 1 where weights is NULL. */
static inline int hopmap_impl_crossing(int ndims, int nvectors, const int vectors[],
                                       const int weights[], int64_t crossing[])
{
    for (int d = 0; d < ndims; d++) {
        crossing[d] = 0;
        for (int v = 0; v < nvectors; v++) {
            int64_t step = vectors[(int64_t)v * ndims + d];
            if (weights && weights[v] < 0) return HOPMAP_EWEIGHTS;
            crossing[d] += (step < 0 ? -step : step) * (weights ? weights[v] : 1);
            if (crossing[d] > INT_MAX) return HOPMAP_EWEIGHTS;
        }
    }
    return HOPMAP_SUCCESS;
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

/* Halves, each time across the dimension of the largest size / factor, dimensions of factor 0 first.
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

/* Skewed k-d tree: sizes count by how few vectors go along them (section 5.4), or with weights by
 * how little crosses a cut. A stencil is nvectors vectors of ndims numbers, one after the other, and
 * a weight of each or NULL. O(d vectors + d log n). */
static inline int hopmap_skewed_kd_tree(int ndims, const int dims[], int nvectors,
                                        const int vectors[], const int weights[], int index,
                                        int coords[])
{
    int64_t factors[HOPMAP_MAXDIMS];
    int error = hopmap_impl_check(ndims, dims, index);
    if (error) return error;
    if (nvectors < 1 || !vectors) return HOPMAP_ESTENCIL;
    for (int d = 0; d < ndims; d++) {
        factors[d] = 0;
        for (int v = 0; v < nvectors; v++) factors[d] += vectors[(int64_t)v * ndims + d] != 0;
    }
    if (weights) error = hopmap_impl_crossing(ndims, nvectors, vectors, weights, factors);
    if (error) return error;
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

/* Place on a path through the grid along columns, so that consecutive indices are neighbours, as
 * along_snake in hopmap's mappers/cartesian/strips.py. O(d). */
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

/* Stencil strips (Hunold et al.): strips of the proportions of the stencil, or with weights of what
 * crosses a cut. The node size is the mean. O(d vectors + d^2 log n). */
static inline int hopmap_stencil_strips(int ndims, const int dims[], int node_size, int nvectors,
                                        const int vectors[], const int weights[], int index,
                                        int coords[])
{
    int order[HOPMAP_MAXDIMS], used = 0, left = node_size;
    double extents[HOPMAP_MAXDIMS], product = 1, low = 1, high = 1;
    int64_t crossing[HOPMAP_MAXDIMS];
    hopmap_impl_cut cuts[HOPMAP_MAXDIMS];
    int error = hopmap_impl_check(ndims, dims, index);
    if (error) return error;
    if (node_size < 1) return HOPMAP_ENODES;
    if (nvectors < 1 || !vectors) return HOPMAP_ESTENCIL;
    if (weights && (error = hopmap_impl_crossing(ndims, nvectors, vectors, weights, crossing)))
        return error;
    for (int d = 0; d < ndims; d++) {
        double least = 0, most = 0;
        for (int v = 0; v < nvectors; v++) {
            int step = vectors[(int64_t)v * ndims + d];
            if (step < least) least = step;
            if (step > most) most = step;
        }
        extents[d] = weights ? (double)crossing[d] : most - least;
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

/* Hyperplane (Hunold et al.): halves of whole nodes, across dimensions of small angles with the
 * stencil, each by its weight. The node size has to divide the grid.
 * O(d vectors + d (d + log n) log n). */
static inline int hopmap_hyperplane(int ndims, const int dims[], int node_size, int nvectors,
                                    const int vectors[], const int weights[], int index,
                                    int coords[])
{
    int order[HOPMAP_MAXDIMS], rest[HOPMAP_MAXDIMS], ranks = hopmap_ranks(ndims, dims);
    double angles[HOPMAP_MAXDIMS] = {0}, total = 0;
    int64_t crossing[HOPMAP_MAXDIMS];
    int error = hopmap_impl_check(ndims, dims, index);
    if (error) return error;
    if (node_size < 1 || ranks % node_size) return HOPMAP_ENODES;
    if (nvectors < 1 || !vectors) return HOPMAP_ESTENCIL;
    if (weights && (error = hopmap_impl_crossing(ndims, nvectors, vectors, weights, crossing)))
        return error;
    for (int v = 0; v < nvectors; v++) {
        const int *vector = vectors + (int64_t)v * ndims;
        double length = 0, weight = weights ? weights[v] : 1;
        total += weight;
        for (int d = 0; d < ndims; d++) length += (double)vector[d] * vector[d];
        for (int d = 0; d < ndims && length > 0; d++)
            angles[d] += weight * vector[d] * vector[d] / length;
    }
    if (!weights || total < 1) total = 1;
    /* In steps of 2^-32, as in the Python: equal angles are so in any order of additions. */
    for (int d = 0; d < ndims; d++) 
        angles[d] = (double)(int64_t)(angles[d] / total * 4294967296.0 + 0.5);
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

/* A box of that many ranks whose sides divide the dims; O(d sqrt size) for a large prime factor. */
static inline void hopmap_impl_box(int ndims, const int dims[], int size, int box[])
{
    int primes[32], count = 0, left = size;
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
}

/* Gropp: a box of one shape for every node, and in it for every socket, ...; sizes[0] ranks a node,
 * sizes[1] a socket; each has to divide the one before, the first the grid. */
static inline int hopmap_gropp_levels(int ndims, const int dims[], int nlevels, const int sizes[],
                                      int index, int coords[])
{
    int whole[HOPMAP_MAXDIMS], box[HOPMAP_MAXDIMS] = {0}, error;
    int all = hopmap_ranks(ndims, dims);
    if ((error = hopmap_impl_check(ndims, dims, index))) return error;
    memcpy(whole, dims, (size_t)ndims * sizeof *dims);
    memset(coords, 0, (size_t)ndims * sizeof *coords);
    for (int l = 0; l <= nlevels; l++) {
        int size = l < nlevels ? sizes[l] : 1, part;
        if (size < 1 || all % size) return HOPMAP_ENODES;
        hopmap_impl_box(ndims, whole, size, box);
        part = index / size;
        for (int d = ndims - 1; d >= 0; d--) {
            int along = whole[d] / box[d];
            coords[d] += part % along * box[d];
            part /= along;
            whole[d] = box[d];
        }
        index %= size;
        all = size;
    }
    return HOPMAP_SUCCESS;
}

/* Gropp's boxes for nodes only. */
static inline int hopmap_gropp(int ndims, const int dims[], int node_size, int index, int coords[])
{
    return hopmap_gropp_levels(ndims, dims, 1, &node_size, index, coords);
}

/* Factors of a number that divide what is left of the dims, factors of the least sum of weight times
 * factor; of equal sums those that differ least, then the first. */
typedef struct {
    const int64_t *weights;
    const int *rest;
    int ndims, factors[HOPMAP_MAXDIMS], best[HOPMAP_MAXDIMS], spread;
    int64_t cost;
} hopmap_impl_choice;

static inline void hopmap_impl_choose(hopmap_impl_choice *choice, int d, int number)
{
    int least = INT_MAX, most = 0;
    int64_t cost = 0;
    if (d < choice->ndims - 1) {
        for (int f = 1; f <= number && f <= choice->rest[d]; f++)
            if (number % f == 0 && choice->rest[d] % f == 0) {
                choice->factors[d] = f;
                hopmap_impl_choose(choice, d + 1, number / f);
            }
        return;
    }
    if (choice->rest[d] % number) return;
    choice->factors[d] = number;
    for (int i = 0; i < choice->ndims; i++) {
        cost += choice->weights[i] * choice->factors[i];
        if (choice->factors[i] < least) least = choice->factors[i];
        if (choice->factors[i] > most) most = choice->factors[i];
    }
    if (choice->cost < 0 || cost < choice->cost ||
        (cost == choice->cost && most - least < choice->spread)) {
        choice->cost = cost;
        choice->spread = most - least;
        memcpy(choice->best, choice->factors, sizeof choice->best);
    }
}

/* Factorisation (Niethammer, Rabenseifner): boxes within boxes, for parts[0] nodes of parts[1]
 * sockets ... of parts[nparts - 1] ranks, whose product is the grid. O(d divisors^(d-1)). */
static inline int hopmap_factorisation(int ndims, const int dims[], int nparts, const int parts[],
                                       int nvectors, const int vectors[], const int weights[],
                                       int index, int coords[])
{
    int rest[HOPMAP_MAXDIMS], error = hopmap_impl_check(ndims, dims, index), size, all = 1;
    int64_t weight[HOPMAP_MAXDIMS], unit = 0, most = 0;
    if (error) return error;
    size = hopmap_ranks(ndims, dims);
    for (int l = 0; l < nparts; l++) {
        if (parts[l] < 1 || size / all % parts[l]) return HOPMAP_ENODES;
        all *= parts[l];
    }
    if (all != size) return HOPMAP_ENODES;
    if (nvectors < 1 || !vectors) return HOPMAP_ESTENCIL;
    if ((error = hopmap_impl_crossing(ndims, nvectors, vectors, weights, weight))) return error;
    for (int d = 0; d < ndims; d++) { /* a cut is as large as the other dims; in lowest terms */
        int64_t a = weight[d] *= size / dims[d], b = unit;
        while (b) {
            int64_t left = a % b;
            a = b;
            b = left;
        }
        unit = a;
    }
    for (int d = 0; d < ndims && unit > 0; d++) {
        weight[d] /= unit;
        if (weight[d] > (INT64_MAX - most) / dims[d]) return HOPMAP_EWEIGHTS;
        most += weight[d] * dims[d];
    }
    memcpy(rest, dims, (size_t)ndims * sizeof *dims);
    memset(coords, 0, (size_t)ndims * sizeof *coords);
    for (int l = 0; l < nparts; l++) {
        hopmap_impl_choice choice = {weight, rest, ndims, {0}, {0}, 0, -1};
        int part;
        hopmap_impl_choose(&choice, 0, parts[l]);
        size /= parts[l];
        part = index / size;
        index %= size;
        for (int d = ndims - 1; d >= 0; d--) {
            coords[d] = coords[d] * choice.best[d] + part % choice.best[d];
            part /= choice.best[d];
        }
        for (int d = 0; d < ndims; d++) {
            rest[d] /= choice.best[d];
            weight[d] *= choice.best[d];
        }
    }
    return HOPMAP_SUCCESS;
}

/* Coordinates by the mapper of this name, as hopmap writes it: row_major, kd_tree, skewed_kd_tree,
 * squarest_strips, squarest_strips(carry=narrower), squarest_strips(path=snake), stencil_strips,
 * hyperplane, gropp or factorisation. levels[0] are the nodes, levels[1] parts of nodes of
 * consecutive indices (sockets), and so on: gropp and factorisation make boxes of these too, others
 * give each a run of indices. Without vectors the stencil is the star of both neighbours in every
 * dimension, each +1 before -1; weights has one of each vector, or is NULL. O(mean node size) more
 * for hyperplane. */
static inline int hopmap_coordinates_of(const char *algorithm, int ndims, const int dims[],
                                        int nlevels, const hopmap_nodes levels[], int nvectors,
                                        const int vectors[], const int weights[], int index,
                                        int coords[])
{
    int star[2 * HOPMAP_MAXDIMS * HOPMAP_MAXDIMS] = {0}, ranks = hopmap_ranks(ndims, dims), mean;
    int parts[HOPMAP_MAXLEVELS + 1], error = hopmap_impl_check(ndims, dims, index), equal = 1;
    hopmap_nodes nodes;
    if (error) return error;
    if (ndims == 0) { /* one process, as in a row of one */
        int one = 1, place;
        return hopmap_coordinates_of(algorithm, 1, &one, nlevels, levels, 0, NULL, NULL, 0, &place);
    }
    if (nlevels < 1 || nlevels > HOPMAP_MAXLEVELS) return HOPMAP_ELEVELS;
    nodes = levels[0];
    if (nodes.count < 1 || nodes.smallest < 1 || nodes.largest > ranks) return HOPMAP_ENODES;
    if (nvectors == 0) {
        for (int v = 0; v < 2 * ndims; v++) star[v * ndims + v / 2] = v % 2 ? -1 : 1;
        nvectors = 2 * ndims;
        vectors = star;
    }
    parts[0] = nodes.count;
    for (int l = 0; l < nlevels; l++) { /* parts[l] of each part of the level before */
        int inner = l + 1 < nlevels ? levels[l + 1].largest : 1;
        if (levels[l].smallest != levels[l].largest || inner < 1 || levels[l].largest % inner)
            equal = 0;
        parts[l + 1] = inner < 1 ? 0 : levels[l].largest / inner;
    }
    mean = ranks / nodes.count;
    if (!algorithm) return HOPMAP_EALGORITHM;
    if (!strcmp(algorithm, "row_major")) return hopmap_row_major(ndims, dims, index, coords);
    if (!strcmp(algorithm, "kd_tree")) return hopmap_kd_tree(ndims, dims, index, coords);
    if (!strcmp(algorithm, "skewed_kd_tree"))
        return hopmap_skewed_kd_tree(ndims, dims, nvectors, vectors, weights, index, coords);
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
        return hopmap_stencil_strips(ndims, dims, mean, nvectors, vectors, weights, index, coords);
    if (!strcmp(algorithm, "hyperplane")) {
        while (mean > 1 && ranks % mean) mean--;
        return hopmap_hyperplane(ndims, dims, mean, nvectors, vectors, weights, index, coords);
    }
    if (!strcmp(algorithm, "gropp")) {
        int sizes[HOPMAP_MAXLEVELS];
        if (!equal) return HOPMAP_ENODES;
        for (int l = 0; l < nlevels; l++) sizes[l] = levels[l].largest;
        return hopmap_gropp_levels(ndims, dims, nlevels, sizes, index, coords);
    }
    if (!strcmp(algorithm, "factorisation")) {
        if (!equal) return HOPMAP_ENODES;
        return hopmap_factorisation(ndims, dims, nlevels + 1, parts, nvectors, vectors, weights,
                                    index, coords);
    }
    return HOPMAP_EALGORITHM;
}

/* The same for nodes only, where every vector counts the same. */
static inline int hopmap_coordinates(const char *algorithm, int ndims, const int dims[],
                                     hopmap_nodes nodes, int nvectors, const int vectors[],
                                     int index, int coords[])
{
    return hopmap_coordinates_of(algorithm, ndims, dims, 1, &nodes, nvectors, vectors, NULL, index,
                                 coords);
}

#endif /* HOPMAP_COORDINATES_H */
