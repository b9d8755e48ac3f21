/* Collectives on neighbours, which OTF2 does not know: messages to and from each of them. */

enum { NEIGHBOUR_TAG = 0x7fff0000 };

static struct communicator *with_neighbours(MPI_Comm comm) {
    struct communicator *c = of(comm);
    if (c->neighbours) return c;
    int topology, in = 0, out = 0, weighted;
    PMPI_Topo_test(comm, &topology);
    if (topology == MPI_CART) {
        int dimensions;
        PMPI_Cartdim_get(comm, &dimensions);
        c->neighbours = malloc((size_t)(4 * dimensions + 1) * sizeof(int));
        in = out = 2 * dimensions;
        for (int k = 0; k < dimensions; k++)
            PMPI_Cart_shift(comm, k, 1, &c->neighbours[2 * k], &c->neighbours[2 * k + 1]);
        memcpy(&c->neighbours[in], c->neighbours, (size_t)in * sizeof(int));
    } else if (topology == MPI_GRAPH) {
        PMPI_Graph_neighbors_count(comm, c->rank, &in);
        out = in;
        c->neighbours = malloc((size_t)(2 * in + 1) * sizeof(int));
        PMPI_Graph_neighbors(comm, c->rank, in, c->neighbours);
        memcpy(&c->neighbours[in], c->neighbours, (size_t)in * sizeof(int));
    } else if (topology == MPI_DIST_GRAPH) {
        PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
        c->neighbours = malloc((size_t)(in + out + 1) * sizeof(int));
        int *weights = malloc((size_t)(in + out + 1) * sizeof(int));
        PMPI_Dist_graph_neighbors(comm, in, c->neighbours, weights, out, &c->neighbours[in],
                                  &weights[in]);
        free(weights);
    }
    c->sources = in;
    c->destinations = out;
    return c;
}

/* Adds up what goes to each neighbour and comes from each. */
static struct request *exchange(MPI_Request handle, struct communicator *c) {
    struct request *r = new_request(handle, c->foreign ? NONE : NEIGHBOURS);
    r->comm = c;
    r->sends = c->destinations;
    r->receives = c->sources;
    r->messages = malloc((size_t)(r->sends + r->receives + 1) * sizeof *r->messages);
    for (int i = 0; i < r->sends; i++) r->messages[i].peer = c->neighbours[c->sources + i];
    for (int i = 0; i < r->receives; i++) r->messages[r->sends + i].peer = c->neighbours[i];
    latest_request += r->sends + r->receives; /* a number for each */
    return r;
}

#define OUT_ONE(i, n, type) bytes(n, type)
#define OUT_EACH(i, n, type) bytes((n)[i], type)
#define OUT_TYPED(i, n, type) bytes((n)[i], (type)[i])
/* A request of the sizes that SENT and GOT say. */
#define EXCHANGE(handle, comm, SENT, n, type, GOT, m, to_type)                                     \
    ({                                                                                             \
        struct request *r_ = exchange(handle, with_neighbours(comm));                              \
        for (int i_ = 0; i_ < r_->sends; i_++) r_->messages[i_].size = SENT(i_, n, type);          \
        for (int i_ = 0; i_ < r_->receives; i_++)                                                  \
            r_->messages[r_->sends + i_].size = GOT(i_, m, to_type);                               \
        r_;                                                                                        \
    })

static void begin_messages(struct request *r) {
    for (int i = r->sends; i < r->sends + r->receives; i++)
        if (r->messages[i].peer >= 0)
            part(IRECV_REQUEST, -1, -1, -1, -1, r->number + 1 + i);
    for (int i = 0; i < r->sends; i++) {
        if (!known(r->comm, r->messages[i].peer)) continue;
        tally(r->comm, r->messages[i].peer, r->messages[i].size);
        part(ISEND, r->comm->id, r->messages[i].peer, NEIGHBOUR_TAG, r->messages[i].size,
             r->number + 1 + i);
    }
}

static void complete_messages(struct request *r) {
    for (int i = 0; i < r->sends; i++)
        if (r->messages[i].peer >= 0)
            part(ISEND_COMPLETE, -1, -1, -1, -1, r->number + 1 + i);
    for (int i = r->sends; i < r->sends + r->receives; i++)
        if (r->messages[i].peer >= 0)
            part(IRECV, r->comm->id, r->messages[i].peer, NEIGHBOUR_TAG, r->messages[i].size,
                 r->number + 1 + i);
}

static void exchanged(struct request *r) {
    begins(r);
    if (r->kind == NEIGHBOURS) complete_messages(r);
    drop(r);
}

static void exchange_request(struct request *r, int persistent) {
    r->persistent = persistent;
    if (persistent) r->active = 0;
    else begins(r);
}
