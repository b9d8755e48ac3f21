/* libhopmapcart.so: MPI_Cart_create that reorders, under programs that are not changed.
 *
 *     mpicc -shared -fPIC -O2 hopmapcart.c -o libhopmapcart.so
 *     mpirun -x LD_PRELOAD=$PWD/libhopmapcart.so ...        (MPICH: -genv LD_PRELOAD ...)
 *
 * Where a program, in C or Fortran, asks MPI_Cart_create to reorder, hopmap_cart_create_levels does
 * it. What is unset has its default:
 *
 *   HOPMAP_CART            off: every call goes to MPI as it is
 *   HOPMAP_CART_ALGORITHM  stencil_strips, or another one of hopmap_coordinates_of
 *   HOPMAP_CART_STENCIL    star, or vectors like 1:0/-1:0/0:2, for grids of as many dimensions
 *   HOPMAP_CART_WEIGHTS    of the vectors, like 1000:1000:1; of the star +1 before -1
 *   HOPMAP_CART_LEVELS     node, or node,socket
 *   HOPMAP_CART_NODE_SIZE  so many consecutive processes of MPI_COMM_WORLD are treated as a node
 *   HOPMAP_CART_SOCKET_SIZE  so many consecutive processes of a node are treated as a socket
 *   HOPMAP_CART_VERBOSE    1: a line a call on stderr, with what leaves the nodes before and after
 *
 * A setting that cannot be read ends the program with a line; a grid that the algorithm cannot take
 * is made by MPI, as is, and a line says so.
 *
 * Part of hopmap. MIT licence.
 */
#define _POSIX_C_SOURCE 200809L
#include "hopmap_cart.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define HOPMAP_MOST_VECTORS 1024

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

/* The first process says what is wrong and ends them all; the others wait for that. */
static void refuse(MPI_Comm comm, const char *name, const char *expected)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (rank) PMPI_Barrier(comm);
    fprintf(stderr, "hopmapcart: %s=%s: expected %s\n", name, getenv(name), expected);
    fflush(stderr);
    sleep(1); /* MPICH's launcher forgets what it has not read when the end comes */
    MPI_Abort(MPI_COMM_WORLD, 2);
}

/* Numbers joined by any of the separators; how many, or -1. */
static int numbers(const char *text, const char *separators, int most, int found[])
{
    int count = 0;
    for (;;) {
        char *end;
        long number;
        errno = 0;
        number = strtol(text, &end, 10);
        if (end == text || errno || number < INT_MIN || number > INT_MAX || count == most) return -1;
        found[count++] = (int)number;
        if (!*end) return count;
        if (!strchr(separators, *end)) return -1;
        text = end + 1;
    }
}

/* A whole number of at least 1, or 0 where it is unset. */
static int size_of(MPI_Comm comm, const char *name)
{
    int size = 0;
    if (*setting(name, "") && (numbers(getenv(name), "", 1, &size) != 1 || size < 1))
        refuse(comm, name, "a whole number of at least 1");
    return size;
}

static void say(MPI_Comm comm, const char *text)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (rank == 0) fprintf(stderr, "hopmapcart: %s\n", text);
}

/* The stencil for so many dimensions; 0 vectors for the star. */
static int stencil(MPI_Comm comm, int ndims, int vectors[])
{
    const char *text = setting("HOPMAP_CART_STENCIL", "star");
    int per_vector = 1, count;
    if (!strcmp(text, "star")) return 0;
    count = numbers(text, ":/", HOPMAP_MOST_VECTORS * HOPMAP_MAXDIMS, vectors);
    for (const char *at = text; *at && *at != '/'; at++) per_vector += *at == ':';
    for (const char *at = text; count > 0 && *at;) { /* all vectors as long as the first */
        int length = 1;
        for (; *at && *at != '/'; at++) length += *at == ':';
        if (length != per_vector) count = -1;
        at += *at == '/';
    }
    if (count < 1 || count / per_vector > HOPMAP_MOST_VECTORS)
        refuse(comm, "HOPMAP_CART_STENCIL", "star, or vectors like 1:0/-1:0/0:1/0:-1");
    if (per_vector != ndims) {
        say(comm, "HOPMAP_CART_STENCIL has not the dimensions of this grid: the star is taken");
        return 0;
    }
    return count / ndims;
}

/* Processes of a socket; the node's own where MPI knows none. Collective over the node. */
static int socket_of(MPI_Comm node, MPI_Comm *socket)
{
    int rank, size = size_of(node, "HOPMAP_CART_SOCKET_SIZE"), error, some;
    MPI_Comm_rank(node, &rank);
    if (size) return MPI_Comm_split(node, rank / size, rank, socket);
#if defined(OPEN_MPI)
    error = MPI_Comm_split_type(node, OMPI_COMM_TYPE_SOCKET, rank, MPI_INFO_NULL, socket);
#elif MPI_VERSION >= 4
    {
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpi_hw_resource_type", "package");
        error = MPI_Comm_split_type(node, MPI_COMM_TYPE_HW_GUIDED, rank, info, socket);
        MPI_Info_free(&info);
    }
#else
    *socket = MPI_COMM_NULL;
    error = MPI_SUCCESS;
#endif
    if (error) return error;
    some = *socket != MPI_COMM_NULL; /* of some processes only: for all of them none */
    MPI_Allreduce(MPI_IN_PLACE, &some, 1, MPI_INT, MPI_MIN, node);
    if (some) return MPI_SUCCESS;
    if (*socket != MPI_COMM_NULL) MPI_Comm_free(socket);
    return MPI_Comm_dup(node, socket);
}

/* Nodes, and sockets where they are wanted; how many levels. */
static int levels_of(MPI_Comm old, MPI_Comm levels[], int *error)
{
    const char *text = setting("HOPMAP_CART_LEVELS", "node");
    int rank, world, size = size_of(old, "HOPMAP_CART_NODE_SIZE"), sockets = !strcmp(text, "node,socket");
    if (!sockets && strcmp(text, "node")) refuse(old, "HOPMAP_CART_LEVELS", "node or node,socket");
    MPI_Comm_rank(old, &rank);
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    if (size)
        *error = MPI_Comm_split(old, world / size, rank, &levels[0]);
    else
        *error = MPI_Comm_split_type(old, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &levels[0]);
    if (!*error && sockets) *error = socket_of(levels[0], &levels[1]);
    return 1 + sockets;
}

/* What leaves the nodes, of a communicator that some processes of `old` have. */
static int cost(MPI_Comm cart, MPI_Comm node, int nvectors, const int vectors[],
                const int weights[], long long found[2])
{
    MPI_Comm here;
    int error, first, rank;
    MPI_Group all, part;
    /* Nodes by the rank in `cart` of their first process. */
    MPI_Comm_group(cart, &all);
    MPI_Comm_group(node, &part);
    MPI_Comm_size(node, &first);
    MPI_Comm_rank(cart, &rank);
    for (int i = 0, size = first, at; i < size; i++) {
        MPI_Group_translate_ranks(part, 1, &i, all, &at);
        if (i == 0) first = INT_MAX;
        if (at != MPI_UNDEFINED && at < first) first = at;
    }
    MPI_Group_free(&all);
    MPI_Group_free(&part);
    if ((error = MPI_Comm_split(cart, first, rank, &here))) return error;
    error = hopmap_cart_cost(cart, here, nvectors, vectors, weights, &found[0], &found[1]);
    MPI_Comm_free(&here);
    return error;
}

int MPI_Cart_create(MPI_Comm old, int ndims, const int dims[], const int periods[], int reorder,
                    MPI_Comm *cart)
{
    int vectors[HOPMAP_MOST_VECTORS * HOPMAP_MAXDIMS], weights[HOPMAP_MOST_VECTORS];
    const char *algorithm = setting("HOPMAP_CART_ALGORITHM", "stencil_strips");
    const char *given = setting("HOPMAP_CART_WEIGHTS", NULL);
    int nvectors, nlevels, kind = MPI_UNDEFINED, error;
    MPI_Comm levels[2] = {MPI_COMM_NULL, MPI_COMM_NULL};
    char line[256];

    if (!reorder || !strcmp(setting("HOPMAP_CART", "on"), "off"))
        return PMPI_Cart_create(old, ndims, dims, periods, reorder, cart);
    if (old != MPI_COMM_NULL) MPI_Comm_test_inter(old, &kind);
    if (old == MPI_COMM_NULL || kind || ndims < 0 || ndims > HOPMAP_MAXDIMS) /* MPI's own errors */
        return PMPI_Cart_create(old, ndims, dims, periods, reorder, cart);
    if (strcmp(setting("HOPMAP_CART", "on"), "on")) refuse(old, "HOPMAP_CART", "on or off");
    nvectors = stencil(old, ndims, vectors);
    if (given) {
        int count = numbers(given, ":", HOPMAP_MOST_VECTORS, weights);
        for (int v = 0; v < count; v++)
            if (weights[v] < 0) count = -1;
        if (count < 0) refuse(old, "HOPMAP_CART_WEIGHTS", "whole numbers of at least 0, like 1000:1");
        if (count != (nvectors ? nvectors : 2 * ndims)) {
            say(old, "HOPMAP_CART_WEIGHTS needs one weight for each vector of this grid: all count the same");
            given = NULL;
        }
    }
    nlevels = levels_of(old, levels, &error);
    if (!error)
        error = hopmap_cart_create_levels(old, nlevels, levels, ndims, dims, periods, algorithm,
                                          nvectors, vectors, given ? weights : NULL, cart);
    if (error == HOPMAP_EALGORITHM)
        refuse(old, "HOPMAP_CART_ALGORITHM", "a mapper's name, like stencil_strips or hyperplane");
    if (error) {
        sprintf(line, "%.64s cannot place this grid (code %d): made as MPI does", algorithm, error);
        say(old, line);
        error = PMPI_Cart_create(old, ndims, dims, periods, reorder, cart);
    } else if (!strcmp(setting("HOPMAP_CART_VERBOSE", "0"), "1")) {
        MPI_Comm plain;
        long long before[2] = {0, 0}, after[2] = {0, 0};
        const int *along = nvectors ? vectors : NULL, *by = given ? weights : NULL;
        error = PMPI_Cart_create(old, ndims, dims, periods, 0, &plain);
        if (!error && plain != MPI_COMM_NULL) {
            error = cost(plain, levels[0], nvectors, along, by, before);
            MPI_Comm_free(&plain);
        }
        if (!error && *cart != MPI_COMM_NULL)
            error = cost(*cart, levels[0], nvectors, along, by, after);
        sprintf(line, "%.64s: worst node %lld, sum %lld leave the nodes (in MPI's order %lld, %lld)",
                algorithm, after[0], after[1], before[0], before[1]);
        if (!error && *cart != MPI_COMM_NULL) say(*cart, line);
    }
    for (int l = 0; l < 2; l++)
        if (levels[l] != MPI_COMM_NULL) MPI_Comm_free(&levels[l]);
    return error;
}

/* Fortran: mpif.h and the modules mpi and mpi_f08, where ierror may be left out. */
static void from_fortran(const MPI_Fint *old, const MPI_Fint *ndims, const MPI_Fint dims[],
                         const MPI_Fint periods[], const MPI_Fint *reorder, MPI_Fint *cart,
                         MPI_Fint *ierror)
{
    int sides[HOPMAP_MAXDIMS], around[HOPMAP_MAXDIMS], error = MPI_ERR_DIMS;
    MPI_Comm made = MPI_COMM_NULL;
    if (*ndims >= 0 && *ndims <= HOPMAP_MAXDIMS) {
        for (int d = 0; d < *ndims; d++) {
            sides[d] = (int)dims[d];
            around[d] = periods[d] != 0;
        }
        error = MPI_Cart_create(MPI_Comm_f2c(*old), (int)*ndims, sides, around, *reorder != 0,
                                &made);
    } else {
        say(MPI_COMM_WORLD, "a grid of more than 16 dimensions");
    }
    if (!error) *cart = MPI_Comm_c2f(made);
    if (ierror) *ierror = error;
}

#define FORTRAN(name)                                                                              \
    void name(const MPI_Fint *old, const MPI_Fint *ndims, const MPI_Fint dims[],                   \
              const MPI_Fint periods[], const MPI_Fint *reorder, MPI_Fint *cart, MPI_Fint *ierror); \
    void name(const MPI_Fint *old, const MPI_Fint *ndims, const MPI_Fint dims[],                   \
              const MPI_Fint periods[], const MPI_Fint *reorder, MPI_Fint *cart, MPI_Fint *ierror) \
    {                                                                                              \
        from_fortran(old, ndims, dims, periods, reorder, cart, ierror);                            \
    }

FORTRAN(mpi_cart_create)
FORTRAN(mpi_cart_create_)
FORTRAN(mpi_cart_create__)
FORTRAN(MPI_CART_CREATE)
FORTRAN(mpi_cart_create_f08_)
