/* Communicators: their members as ranks of the world.
 *
 * No messages are added to agree on numbers: hopmap puts together what has the same members and was
 * made as the n-th with these members. Rank 0 of a group writes who its members are.
 */

struct communicator {
    uint64_t handle;
    int id, size, rank, is_inter, foreign; /* size: of the group that partners are in */
    int *world;                            /* partners' ranks in the world */
    int topology, sources, destinations;   /* neighbours, after the first query */
    int *neighbours;                       /* sources, then destinations */
    struct communicator *next;
};

enum { BUCKETS = 1024 };
static struct communicator *communicators[BUCKETS];
static MPI_Group world_group;

static unsigned bucket(uint64_t handle) {
    return (unsigned)((handle * 0x9e3779b97f4a7c15u) >> 54);
}

/* Members as ranks of the world, and a number that stands for them; 0 if one is of elsewhere. */
static uint64_t members(MPI_Group group, int **world, int *size) {
    PMPI_Group_size(group, size);
    size_t n = (size_t)*size;
    int *own = malloc((n + 1) * sizeof *own);
    *world = malloc((n + 1) * sizeof **world);
    for (int i = 0; i < *size; i++) own[i] = i;
    PMPI_Group_translate_ranks(group, *size, own, world_group, *world);
    free(own);
    uint64_t digest = 0xcbf29ce484222325u;
    for (int i = 0; i < *size; i++) {
        if ((*world)[i] == MPI_UNDEFINED) return 0;
        digest = (digest ^ (uint64_t)(*world)[i]) * 0x100000001b3u;
    }
    return digest ? digest : 1;
}

static void write_group(uint64_t digest, const int *world, int size) {
    fprintf(names, "group %llx", (unsigned long long)digest);
    for (int i = 0, j; i < size; i = j) {
        for (j = i + 1; j < size && world[j] == world[j - 1] + 1;) j++;
        fprintf(names, j > i + 1 ? " %d-%d" : " %d", world[i], world[j - 1]);
    }
    fputc('\n', names);
}

/* `like` has the same members. Query it, since MPI forbids queries of MPI_Comm_idup's result. */
static struct communicator *registered(MPI_Comm made, MPI_Comm like) {
    static int latest;
    struct communicator *c = calloc(1, sizeof *c);
    int size, *world;
    MPI_Group group;
    c->handle = (uint64_t)(uintptr_t)made;
    c->id = latest++;
    PMPI_Comm_test_inter(like, &c->is_inter);
    PMPI_Comm_rank(like, &c->rank);
    PMPI_Comm_group(like, &group);
    uint64_t here = members(group, &world, &size), there = 0;
    PMPI_Group_free(&group);
    c->foreign = !here;
    c->size = size;
    c->world = world;
    if (here && c->rank == 0) write_group(here, world, size);
    if (c->is_inter) {
        free(world);
        PMPI_Comm_remote_group(like, &group);
        there = members(group, &c->world, &c->size);
        PMPI_Group_free(&group);
        c->foreign |= !there;
    }
    if (!c->foreign)
        fprintf(names, "comm %d %llx %llx\n", c->id, (unsigned long long)here,
                (unsigned long long)there);
    fflush(names);
    c->next = communicators[bucket(c->handle)];
    return communicators[bucket(c->handle)] = c;
}

static struct communicator *of(MPI_Comm comm) {
    static __thread struct communicator *last;
    uint64_t handle = (uint64_t)(uintptr_t)comm;
    if (last && last->handle == handle) return last;
    struct communicator *c = communicators[bucket(handle)];
    while (c && c->handle != handle) c = c->next;
    return last = c ? c : registered(comm, comm);
}

static struct communicator *locked_of(MPI_Comm comm) {
    if (threads) pthread_mutex_lock(&lock);
    struct communicator *c = of(comm);
    if (threads) pthread_mutex_unlock(&lock);
    return c;
}

/* Its handle may be another's from now on; the structure stays, as a thread may remember it. */
static void forget(struct communicator *gone) {
    struct communicator **c = &communicators[bucket(gone->handle)];
    while (*c && *c != gone) c = &(*c)->next;
    if (*c) *c = gone->next;
    gone->handle = UINT64_MAX;
    free(gone->world);
    free(gone->neighbours);
    gone->world = gone->neighbours = NULL;
}

/* What is sent to a partner, for a profile; whether events can name that partner. */
static int known(struct communicator *c, int peer) {
    if (!c->foreign && peer >= 0 && peer < c->size) return 1;
    if (peer != MPI_PROC_NULL) count(FOREIGN_MESSAGES, 1);
    return 0;
}

static void tally(struct communicator *c, int peer, int64_t size) {
    if (!profile || state != ON) return;
    if (!c->world) { /* freed, while a persistent request lives on */
        count(FOREIGN_MESSAGES, 1);
        return;
    }
    uint64_t *at = &matrix[c->world[peer]].messages;
    at[0] += 1;
    at[1] += (uint64_t)size;
}
