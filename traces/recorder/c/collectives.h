/* Collectives. Bytes are counted as Score-P counts them: the whole operation at each member, its
 * own part included, except for what MPI_IN_PLACE leaves where it is. */

struct volume {
    int operation, root;
    struct communicator *comm;
    int64_t sent, received;
};

enum { NO_ROOT = -1, MYSELF_ROOT = -2 };

static struct volume volume(int operation, MPI_Comm comm, int root, int64_t sent, int64_t received) {
    struct volume v = {operation, root, of(comm), sent, received};
    if (v.comm->is_inter && root == MPI_ROOT) v.root = MYSELF_ROOT;
    else if (root < 0) v.root = NO_ROOT;
    return v;
}

static void tell(const struct volume *v, int kind, int64_t request) {
    if (profile && state == ON && v->operation < OPERATIONS) {
        header->collectives[v->operation].calls += 1;
        header->collectives[v->operation].sent += (uint64_t)v->sent;
        header->collectives[v->operation].received += (uint64_t)v->received;
    }
    if (v->comm->foreign) {
        count(FOREIGN_COLLECTIVES, 1);
        return;
    }
    part(kind, v->comm->id, v->root, -1, v->sent, request);
    pending.received = v->received;
    pending.operation = (uint8_t)v->operation;
}

static void collective(struct volume v) {
    tell(&v, COLLECTIVE_END, -1);
}

static void completed_collective(struct request *r) {
    struct volume v = {r->operation, r->peer, r->comm, r->size, r->received};
    tell(&v, COLLECTIVE_COMPLETE, r->number);
}

static void collective_request(struct volume v, MPI_Request handle, int persistent) {
    struct request *r = new_request(handle, v.comm->foreign ? NONE : COLLECTIVE);
    if (v.comm->foreign) count(FOREIGN_COLLECTIVES, 1);
    r->operation = v.operation;
    r->peer = v.root;
    r->comm = v.comm;
    r->size = v.sent;
    r->received = v.received;
    r->persistent = persistent;
    r->active = !persistent;
    if (persistent && (v.operation == ALLTOALLV || v.operation == ALLTOALLW))
        count(UNCOUNTED_PAIRS, 1);
    if (!persistent) begins(r);
}

static int is_root(const struct communicator *c, int root) {
    return c->is_inter ? root == MPI_ROOT : root == c->rank;
}

static struct volume barrier(MPI_Comm comm) {
    return volume(BARRIER, comm, NO_ROOT, 0, 0);
}

static struct volume bcast(int64_t n, MPI_Datatype type, int root, MPI_Comm comm) {
    struct communicator *c = of(comm);
    int64_t b = bytes(n, type), here = is_root(c, root);
    int gets = root != MPI_PROC_NULL && !(here && c->is_inter);
    return volume(BCAST, comm, root, here ? b * c->size : 0, gets ? b : 0);
}

static struct volume reduce(const void *from, int64_t n, MPI_Datatype type, int root,
                            MPI_Comm comm) {
    struct communicator *c = of(comm);
    int64_t b = bytes(n, type), others = from == MPI_IN_PLACE || c->is_inter;
    if (is_root(c, root))
        return volume(REDUCE, comm, root, others ? 0 : b,
                      b * (c->size - (from == MPI_IN_PLACE)));
    return volume(REDUCE, comm, root, root == MPI_PROC_NULL ? 0 : b, 0);
}

/* Gather and scatter: `own` is one's block on the side of many, `block` one of the root's. */
static struct volume gather(int operation, const void *in_place, int64_t own, MPI_Datatype own_type,
                            int64_t block, MPI_Datatype block_type, int root, MPI_Comm comm) {
    struct communicator *c = of(comm);
    int64_t mine = 0, all = 0;
    int placed = is_root(c, root) && in_place == MPI_IN_PLACE;
    if (is_root(c, root)) all = bytes(block, block_type) * (c->size - placed);
    if (!placed && root != MPI_PROC_NULL && !(c->is_inter && is_root(c, root)))
        mine = bytes(own, own_type);
    return operation == GATHER ? volume(operation, comm, root, mine, all)
                               : volume(operation, comm, root, all, mine);
}

/* One block for each member on both sides. */
static struct volume blocks(int operation, const void *from, int64_t n, MPI_Datatype type,
                            int64_t m, MPI_Datatype to_type, MPI_Comm comm) {
    int64_t size = of(comm)->size, b = bytes(m, to_type);
    if (from == MPI_IN_PLACE) return volume(operation, comm, NO_ROOT, b * (size - 1), b * (size - 1));
    return volume(operation, comm, NO_ROOT, bytes(n, type) * size, b * size);
}

static struct volume scan(int operation, const void *from, int64_t n, MPI_Datatype type,
                          MPI_Comm comm) {
    struct communicator *c = of(comm);
    int64_t b = bytes(n, type), own = operation == SCAN && from != MPI_IN_PLACE;
    return volume(operation, comm, NO_ROOT, b * (c->size - c->rank - 1 + own), b * (c->rank + own));
}

/* Sum of an array of counts, of int or MPI_Count, without entry `but`. */
#define TOTAL(counts, n, but)                                                                      \
    ({                                                                                             \
        int64_t total_ = 0;                                                                        \
        for (int i_ = 0; i_ < (n); i_++) total_ += i_ == (but) ? 0 : (int64_t)(counts)[i_];        \
        total_;                                                                                    \
    })

#define GATHERS(operation, in_place, own, own_type, counts, type, root, comm)                      \
    ({                                                                                             \
        struct communicator *c_ = of(comm);                                                        \
        int placed_ = is_root(c_, root) && (in_place) == MPI_IN_PLACE;                             \
        int64_t all_ = 0, mine_ = 0;                                                               \
        if (is_root(c_, root))                                                                     \
            all_ = bytes(TOTAL(counts, c_->size, placed_ ? c_->rank : -1), type);                  \
        if (!placed_ && (root) != MPI_PROC_NULL && !(c_->is_inter && is_root(c_, root)))           \
            mine_ = bytes(own, own_type);                                                          \
        (operation) == GATHERV ? volume(operation, comm, root, mine_, all_)                        \
                               : volume(operation, comm, root, all_, mine_);                       \
    })

#define ALLGATHERS(from, n, type, counts, to_type, comm)                                           \
    ({                                                                                             \
        struct communicator *c_ = of(comm);                                                        \
        int placed_ = (from) == MPI_IN_PLACE;                                                      \
        int64_t own_ = placed_ ? bytes((counts)[c_->rank], to_type) : bytes(n, type);              \
        volume(ALLGATHERV, comm, NO_ROOT, own_ * (c_->size - placed_),                             \
               bytes(TOTAL(counts, c_->size, placed_ ? c_->rank : -1), to_type));                  \
    })

#define REDUCE_SCATTERS(from, counts, type, comm)                                                  \
    ({                                                                                             \
        struct communicator *c_ = of(comm);                                                        \
        int placed_ = (from) == MPI_IN_PLACE;                                                      \
        volume(REDUCE_SCATTER, comm, NO_ROOT,                                                      \
               bytes(TOTAL(counts, c_->size, placed_ ? c_->rank : -1), type),                      \
               bytes((counts)[c_->rank], type) * (c_->size - placed_));                            \
    })

/* Who gets how much stands in parts of its own, as OTF2 has only sums. */
static void pair(const struct communicator *c, int peer, int64_t size) {
    if (size && c->size > 1 && !c->foreign && !profile) part(PAIR, c->id, peer, -1, size, -1);
}

#define TYPE_V(types, i) (types)
#define TYPE_W(types, i) (types)[i]
#define PAIRS(operation, TYPE, from, counts, types, to_counts, to_types, comm)                     \
    ({                                                                                             \
        struct communicator *c_ = of(comm);                                                        \
        int placed_ = (from) == MPI_IN_PLACE;                                                      \
        int64_t out_ = 0, in_ = 0;                                                                 \
        for (int i_ = 0; i_ < c_->size; i_++) {                                                    \
            if (placed_ && i_ == c_->rank) continue;                                               \
            int64_t gets_ = bytes((to_counts)[i_], TYPE(to_types, i_));                            \
            int64_t gives_ = placed_ ? gets_ : bytes((counts)[i_], TYPE(types, i_));               \
            pair(c_, i_, gives_);                                                                  \
            out_ += gives_;                                                                        \
            in_ += gets_;                                                                          \
        }                                                                                          \
        volume(operation, comm, NO_ROOT, out_, in_);                                               \
    })

/* What makes or frees handles, on the communicator of all that call. */
static void handles(int operation, MPI_Comm comm) {
    collective(volume(operation, comm, NO_ROOT, 0, 0));
}

static void created(MPI_Comm comm, MPI_Comm made) {
    if (comm != MPI_COMM_NULL) handles(CREATE_HANDLE, comm);
    if (made != MPI_COMM_NULL) {
        struct communicator *c = registered(made, made);
        if (c->foreign) count(FOREIGN_COMMUNICATORS, 1);
        if (comm == MPI_COMM_NULL) handles(CREATE_HANDLE, made);
    }
}

static void created_later(MPI_Comm comm, MPI_Comm made, MPI_Request handle) {
    collective_request(volume(CREATE_HANDLE, comm, NO_ROOT, 0, 0), handle, 0);
    if (registered(made, comm)->foreign) count(FOREIGN_COMMUNICATORS, 1);
}

static void freed(struct communicator *gone) {
    struct volume v = {DESTROY_HANDLE, NO_ROOT, gone, 0, 0};
    collective(v);
    forget(gone);
}
