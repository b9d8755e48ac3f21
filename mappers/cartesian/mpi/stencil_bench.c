/* stencil_bench: how long a stencil exchange takes after each way of placing the grid.
 *
 *     mpicc -O2 stencil_bench.c -o stencil_bench
 *     mpirun -np 1056 ./stencil_bench --grid 44x24 --bytes 1000,1000000 --out times.csv
 *
 * The exchange is listing 7.2 of Lehr's thesis (Efficient process mapping for Cartesian topologies,
 * TU Wien 2019): a barrier, then each process posts all receives and all sends and waits; a time is
 * the maximum over the processes of each one's own, and the first five are not counted. What was
 * received is checked after each. Then for each mapper how long its communicator takes to create.
 *
 *   --grid 20x10        as many processes as there are; more are left out
 *   --stencil V/V/...   vectors like 1:0/-1:0; the star when left out
 *   --mappers A,B,...   row_major,kd_tree,squarest_strips,stencil_strips,hyperplane when left out;
 *                       row_major are the processes node by node, mpi is MPI_Cart_create itself
 *   --bytes N,N,...     to each neighbour; 1000,1000000 when left out
 *   --iterations N      counted times; 100 when left out
 *   --out FILE          stdout when left out
 *   --alloc FILE        where the processes are: MPI_Rank,allocation
 *
 * Columns of the CSV: collective,nodes,tasks_per_node,mpi,mpi_version,gpu_aware,notes,algorithm,
 * buffer_bytes,iterations,median_ns,min_ns,max_ns; collective is the traffic as hopmap writes it, or
 * cart_create with 0 bytes, algorithm the mapper, buffer_bytes what each neighbour gets, notes what
 * leaves the worst node and all nodes.
 *
 * Part of hopmap. MIT licence.
 */
#define _POSIX_C_SOURCE 200809L
#include "hopmap_cart.h"

#include <stdio.h>
#include <unistd.h>

#define MOST 1024
#define WARM_UP 5

static int me;

static void stop(const char *what, const char *value, const char *expected)
{
    if (me == 0) {
        fprintf(stderr, "stencil_bench: %s %s: expected %s\n", what, value, expected);
        sleep(1); /* MPICH's launcher forgets what it has not read when the end comes */
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* the others wait for the end, or it may come before the line */
}

/* Numbers joined by any of the separators. */
static int numbers(const char *what, const char *text, const char *separators, int least,
                   const char *expected, int found[])
{
    const char *at = text;
    int count = 0;
    for (;;) {
        char *end;
        long number = strtol(at, &end, 10);
        if (end == at || number < least || number > INT_MAX || count == MOST ||
            (*end && !strchr(separators, *end)))
            stop(what, text, expected);
        found[count++] = (int)number;
        if (!*end) return count;
        at = end + 1;
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One exchange; seconds of this process. */
static double exchange(MPI_Comm graph, int nin, const int in[], int nout, const int out[], int bytes,
                       const char *sent, char *got, MPI_Request requests[],
                       MPI_Status statuses[])
{
    double begin;
    MPI_Barrier(graph);
    begin = MPI_Wtime();
    for (int i = 0; i < nin; i++)
        MPI_Irecv(got + (size_t)i * bytes, bytes, MPI_BYTE, in[i], 1, graph, &requests[i]);
    for (int i = 0; i < nout; i++)
        MPI_Isend(sent, bytes, MPI_BYTE, out[i], 1, graph, &requests[nin + i]);
    MPI_Waitall(nin + nout, requests, statuses);
    return MPI_Wtime() - begin;
}

/* Times of so many exchanges, each the maximum over the processes. */
static void measure(MPI_Comm graph, int bytes, int iterations, double times[])
{
    int nin, nout, weighted, rank, *lists;
    char *sent, *got;
    MPI_Request *requests;
    MPI_Status *statuses;
    MPI_Dist_graph_neighbors_count(graph, &nin, &nout, &weighted);
    MPI_Comm_rank(graph, &rank);
    lists = (int *)malloc(2 * (size_t)(nin + nout + 1) * sizeof(int));
    requests = (MPI_Request *)malloc((size_t)(nin + nout + 1) * sizeof(MPI_Request));
    statuses = (MPI_Status *)malloc((size_t)(nin + nout + 1) * sizeof(MPI_Status));
    sent = (char *)malloc((size_t)bytes + 1);
    got = (char *)malloc((size_t)bytes * nin + 1);
    if (!lists || !requests || !statuses || !sent || !got) stop("--bytes", "", "less than there is memory for");
    MPI_Dist_graph_neighbors(graph, nin, lists, lists + nin + nout, nout, lists + nin,
                             lists + 2 * nin + nout);
    for (int n = -WARM_UP; n < iterations; n++) {
        double time;
        memset(sent, (rank + n) % 127, (size_t)bytes);
        memset(got, -1, (size_t)bytes * nin);
        time = exchange(graph, nin, lists, nout, lists + nin, bytes, sent, got, requests,
                        statuses);
        for (int i = 0; i < nin; i++)
            for (int b = 0; b < bytes; b += bytes > 1 ? bytes - 1 : 1)
                if (got[(size_t)i * bytes + b] != (char)((lists[i] + n) % 127))
                    stop("received", "wrong data", "what the neighbour sent");
        MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, graph);
        if (n >= 0) times[n] = time;
    }
    free(lists), free(requests), free(statuses), free(sent), free(got);
}

/* What every row of the CSV begins with. */
typedef struct {
    FILE *file;
    char grid[512], mpi[64];
    int nodes, most;
} job;

static void row(const job *job, const char *collective, const char *notes, const char *mapper,
                int bytes, int iterations, double times[])
{
    double median;
    if (me) return;
    qsort(times, (size_t)iterations, sizeof *times, by_size);
    median = (times[(iterations - 1) / 2] + times[iterations / 2]) / 2;
    fprintf(job->file, "\"%s\",%d,%d,%s,no,%s,%s,%d,%d,%.1f,%.0f,%.0f\n", collective, job->nodes,
            job->most, job->mpi, notes, mapper, bytes, iterations, median * 1e9, times[0] * 1e9,
            times[iterations - 1] * 1e9);
}

static void one(const job *job, MPI_Comm world, int ndims, const int dims[], const char *mapper,
                int nvectors, const int vectors[], int nsizes, const int sizes[], int iterations,
                double times[])
{
    int periods[HOPMAP_MAXDIMS] = {0}, mpi = !strcmp(mapper, "mpi");
    long long worst, sum;
    char notes[96];
    MPI_Comm cart, graph;
    for (int n = -1; n < iterations; n++) {
        double time;
        int error;
        MPI_Barrier(world);
        time = MPI_Wtime();
        error = mpi ? MPI_Cart_create(world, ndims, dims, periods, 1, &cart)
                    : hopmap_cart_create(world, ndims, dims, periods, mapper, nvectors, vectors, &cart);
        if (error == HOPMAP_ENODES) {
            if (me == 0) fprintf(stderr, "stencil_bench: left out, cannot take these nodes: %s\n", mapper);
            return;
        }
        if (error) stop("--mappers", mapper, "mpi, or a mapper that hopmap_cart.h knows");
        time = MPI_Wtime() - time;
        MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, world);
        if (n >= 0) times[n] = time;
        if (n + 1 < iterations) MPI_Comm_free(&cart);
    }
    hopmap_cart_cost(cart, MPI_COMM_NULL, nvectors, vectors, NULL, &worst, &sum);
    sprintf(notes, "worst node %lld sum %lld", worst, sum);
    row(job, "cart_create", notes, mapper, 0, iterations, times);
    hopmap_cart_neighbours(cart, nvectors, vectors, NULL, &graph);
    for (int i = 0; i < nsizes; i++) {
        measure(graph, sizes[i], iterations, times);
        row(job, job->grid, notes, mapper, sizes[i], iterations, times);
    }
    MPI_Comm_free(&graph);
    MPI_Comm_free(&cart);
}

/* Nodes, and the most processes on one. */
static void nodes_of(MPI_Comm world, job *job)
{
    int size, rank, first;
    MPI_Comm node;
    MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &size);
    MPI_Comm_rank(node, &rank);
    first = rank == 0;
    MPI_Allreduce(&first, &job->nodes, 1, MPI_INT, MPI_SUM, world);
    MPI_Allreduce(&size, &job->most, 1, MPI_INT, MPI_MAX, world);
    MPI_Comm_free(&node);
}

static FILE *opened(const char *what, const char *name)
{
    FILE *file = fopen(name, "w");
    if (!file) stop(what, name, "a file that can be written");
    return file;
}

static void write_alloc(MPI_Comm world, const char *name)
{
    char host[MPI_MAX_PROCESSOR_NAME] = "", *all = NULL;
    int length, size;
    MPI_Get_processor_name(host, &length);
    MPI_Comm_size(world, &size);
    if (me == 0 && !(all = (char *)malloc((size_t)size * sizeof host)))
        stop("--alloc", name, "memory for the hosts' names");
    MPI_Gather(host, sizeof host, MPI_CHAR, all, sizeof host, MPI_CHAR, 0, world);
    if (me) return;
    FILE *file = opened("--alloc", name);
    fprintf(file, "MPI_Rank,allocation\n");
    for (int i = 0; i < size; i++) fprintf(file, "%d,%s\n", i, all + (size_t)i * sizeof host);
    fclose(file);
    free(all);
}

int main(int argc, char **argv)
{
    const char *grid = "", *stencil = "star", *out = NULL, *alloc = NULL, *bytes = "1000,1000000";
    char mappers[1024] = "row_major,kd_tree,squarest_strips,stencil_strips,hyperplane";
    int dims[MOST], vectors[MOST], sizes[MOST], iterations[MOST] = {100}, nvectors = 0, nsizes, ndims;
    int ranks, processes;
    double *times;
    job job;
    MPI_Comm world;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!value) stop(argv[i], "", "a value");
        if (!strcmp(argv[i], "--grid")) grid = value;
        else if (!strcmp(argv[i], "--stencil")) stencil = value;
        else if (!strcmp(argv[i], "--mappers") && strlen(value) < sizeof mappers) strcpy(mappers, value);
        else if (!strcmp(argv[i], "--bytes")) bytes = value;
        else if (!strcmp(argv[i], "--iterations")) numbers(argv[i], value, "", 1, "at least 1", iterations);
        else if (!strcmp(argv[i], "--out")) out = value;
        else if (!strcmp(argv[i], "--alloc")) alloc = value;
        else stop("argument", argv[i], "--grid, --stencil, --mappers, --bytes, --iterations, --out or --alloc");
    }
    ndims = numbers("--grid", grid, "x", 1, "sizes like 20x10", dims);
    if ((ranks = hopmap_ranks(ndims, dims)) < 0) stop("--grid", grid, "at most 16 dimensions");
    if (strcmp(stencil, "star")) {
        int count = numbers("--stencil", stencil, ":/", -INT_MAX, "vectors like 1:0/-1:0", vectors);
        if (count % ndims) stop("--stencil", stencil, "vectors of as many numbers as --grid");
        nvectors = count / ndims;
    }
    nsizes = numbers("--bytes", bytes, ",", 1, "sizes of at least 1", sizes);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    if (ranks > processes) stop("--grid", grid, "no more than there are processes");
    if (strlen(grid) + strlen(stencil) > 480) stop("--stencil", "", "a shorter one");

    MPI_Comm_split(MPI_COMM_WORLD, me < ranks ? 0 : MPI_UNDEFINED, me, &world);
    if (world != MPI_COMM_NULL) {
        char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
        int length;
        MPI_Get_library_version(version, &length);
        sprintf(job.grid, "stencil:%s,%s", grid, stencil);
#if defined(OPEN_MPI)
        sprintf(job.mpi, "OMPI,%d.%d.%d", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                OMPI_RELEASE_VERSION);
#elif defined(MPICH_VERSION)
        sprintf(job.mpi, "MPICH,%.32s", MPICH_VERSION);
#else
        version[strcspn(version, ",\n\"")] = 0;
        sprintf(job.mpi, "%.40s,null", version);
#endif
        nodes_of(world, &job);
        job.file = out && me == 0 ? opened("--out", out) : stdout;
        times = (double *)malloc((size_t)iterations[0] * sizeof *times);
        if (!times) stop("--iterations", "", "fewer");
        if (me == 0)
            fprintf(job.file, "collective,nodes,tasks_per_node,mpi,mpi_version,gpu_aware,notes,algorithm,"
                              "buffer_bytes,iterations,median_ns,min_ns,max_ns\n");
        for (char *mapper = strtok(mappers, ","); mapper; mapper = strtok(NULL, ","))
            one(&job, world, ndims, dims, mapper, nvectors, nvectors ? vectors : NULL, nsizes, sizes,
                iterations[0], times);
        if (alloc) write_alloc(world, alloc);
        if (job.file != stdout) fclose(job.file);
        free(times);
        MPI_Comm_free(&world);
    }
    return MPI_Finalize();
}
