/* Messages and requests. Handles of requests that are done at once may be shared by several
 * (Open MPI's empty request, MPICH's lightweight one), so a handle has a queue. */

enum request_kind { NONE, SENDS, RECEIVES, HALF_RECEIVES, MATCHED, COLLECTIVE, NEIGHBOURS, SENDS_PARTS, ONE_SIDED_REQUEST, OTHER };

struct message {
    int peer;
    int64_t size;
};

struct request {
    uint64_t handle;
    int64_t number;
    enum request_kind kind;
    int persistent, active, cancelling;
    struct communicator *comm;
    int peer, tag, operation;
    int64_t size, received;
    int partitions, ready;            /* of a partitioned send */
    int sends, receives;              /* of a collective on neighbours: */
    struct message *messages;         /* sends, then receives */
    struct request *next;
};

enum { REQUEST_BUCKETS = 1 << 14 };
static struct {
    struct request *first, *last;
} requests[REQUEST_BUCKETS];
static struct request *spare;
static int64_t latest_request;
static __thread MPI_Request *held; /* handles before the call */
static __thread MPI_Status *own_statuses;
static __thread int room;

static unsigned place(uint64_t handle) {
    return (unsigned)((handle * 0x9e3779b97f4a7c15u) >> 50);
}

static int64_t bytes(int64_t count, MPI_Datatype type) {
    MPI_Count size = 0;
    if (count <= 0) return 0;
    PMPI_Type_size_x(type, &size);
    return count * (int64_t)size;
}

static int64_t arrived(const MPI_Status *status) {
    MPI_Count size = 0;
    PMPI_Get_elements_x(status, MPI_BYTE, &size);
    return size < 0 ? 0 : (int64_t)size;
}

static struct request *request_of(MPI_Request handle) {
    struct request *r = requests[place((uint64_t)(uintptr_t)handle)].first;
    while (r && r->handle != (uint64_t)(uintptr_t)handle) r = r->next;
    return r;
}

static struct request *new_request(MPI_Request handle, enum request_kind kind) {
    struct request *r = spare ? spare : malloc(sizeof *r);
    if (spare) spare = spare->next;
    *r = (struct request){.handle = (uint64_t)(uintptr_t)handle, .number = ++latest_request,
                          .kind = kind, .active = 1};
    unsigned at = place(r->handle);
    if (requests[at].first) requests[at].last->next = r;
    else requests[at].first = r;
    return requests[at].last = r;
}

static void drop(struct request *gone) {
    unsigned at = place(gone->handle);
    struct request *before = NULL, *r = requests[at].first;
    for (; r != gone; r = r->next) before = r;
    if (before) before->next = gone->next;
    else requests[at].first = gone->next;
    if (requests[at].last == gone) requests[at].last = before;
    free(gone->messages);
    gone->next = spare;
    spare = gone;
}

static void sent(int64_t n, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
    struct communicator *c = of(comm);
    if (!known(c, peer)) return;
    tally(c, peer, bytes(n, type));
    part(SEND, c->id, peer, tag, bytes(n, type), -1);
}

static void received(const MPI_Status *status, MPI_Comm comm) {
    struct communicator *c = of(comm);
    if (known(c, status->MPI_SOURCE))
        part(RECV, c->id, status->MPI_SOURCE, status->MPI_TAG, arrived(status), -1);
}

/* Says that an operation begins which a request stands for. */
static void begins(struct request *r);

static struct request *posted(enum request_kind kind, int64_t n, MPI_Datatype type, int peer,
                              int tag, MPI_Comm comm, MPI_Request handle, int persistent) {
    struct request *r = new_request(handle, kind);
    r->comm = of(comm);
    r->peer = peer;
    r->tag = tag;
    r->size = bytes(n, type);
    r->persistent = persistent;
    r->active = !persistent;
    if (kind == SENDS || kind == SENDS_PARTS ? !known(r->comm, peer) : peer == MPI_PROC_NULL || r->comm->foreign)
        r->kind = NONE;
    if (!persistent) begins(r);
    return r;
}

/* A send that has no request of its own. */
static void unawaited(int64_t n, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
    struct communicator *c = of(comm);
    if (!known(c, peer)) return;
    tally(c, peer, bytes(n, type));
    part(ISEND, c->id, peer, tag, bytes(n, type), ++latest_request);
}

static void other(MPI_Request handle) {
    new_request(handle, OTHER);
}

static void completed_collective(struct request *r);
static void begin_messages(struct request *r);
static void complete_messages(struct request *r);

static void begins(struct request *r) {
    r->active = 1;
    r->ready = 0;
    switch (r->kind) {
    case SENDS:
        tally(r->comm, r->peer, r->size);
        part(ISEND, r->comm->id, r->peer, r->tag, r->size, r->number);
        break;
    case RECEIVES:
    case HALF_RECEIVES: part(IRECV_REQUEST, -1, -1, -1, -1, r->number); break;
    case COLLECTIVE:
        part(COLLECTIVE_REQUEST, r->comm->id, -1, -1, -1, r->number);
        pending.operation = (uint8_t)r->operation;
        break;
    case NEIGHBOURS: begin_messages(r); break;
    default: break;
    }
}

static void start(MPI_Request handle) {
    struct request *r = request_of(handle);
    if (r) begins(r);
    else count(UNKNOWN_REQUESTS, 1);
}

/* A partitioned message is taken to leave when its last partition is ready. */
static void ready(MPI_Request handle, int partitions) {
    struct request *r = request_of(handle);
    if (!r || r->kind != SENDS_PARTS || (r->ready += partitions) != r->partitions) return;
    tally(r->comm, r->peer, r->size);
    part(ISEND, r->comm->id, r->peer, r->tag, r->size, r->number);
}

static void complete(MPI_Request handle, const MPI_Status *status) {
    if (handle == MPI_REQUEST_NULL) return;
    struct request *r = request_of(handle);
    if (!r) {
        count(UNKNOWN_REQUESTS, 1);
        return;
    }
    if (!r->active) return;
    int cancelled = 0;
    if (r->cancelling) PMPI_Test_cancelled(status, &cancelled);
    if (cancelled) part(REQUEST_CANCELLED, -1, -1, -1, -1, r->number);
    else switch (r->kind) {
        case SENDS:
        case SENDS_PARTS: part(ISEND_COMPLETE, -1, -1, -1, -1, r->number); break;
        case RECEIVES:
            if (known(r->comm, status->MPI_SOURCE))
                part(IRECV, r->comm->id, status->MPI_SOURCE, status->MPI_TAG, arrived(status),
                     r->number);
            break;
        case HALF_RECEIVES: /* of MPI_Isendrecv: MPICH 4.0 leaves its status as it was */
            if (r->tag < 0 || !known(r->comm, r->peer)) count(UNKNOWN_REQUESTS, 1);
            else part(IRECV, r->comm->id, r->peer, r->tag, r->size, r->number);
            break;
        case MATCHED: part(IMRECV, -1, -1, -1, arrived(status), r->number); break;
        case COLLECTIVE: completed_collective(r); break;
        case NEIGHBOURS: complete_messages(r); break;
        case ONE_SIDED_REQUEST: part(RMA_OP_COMPLETE_NON_BLOCKING, r->comm->id, -1, r->tag, -1, r->number); break;
        default: break;
        }
    r->active = r->cancelling = 0;
    if (!r->persistent) drop(r);
}

/* Keeps handles, which MPI will put out, and gives statuses where the program wants none. */
static MPI_Status *hold(int n, const MPI_Request *handles, MPI_Status *given, MPI_Status *ignore) {
    if (n > room) {
        held = realloc(held, (size_t)n * sizeof *held);
        own_statuses = realloc(own_statuses, (size_t)n * sizeof *own_statuses);
        room = n;
    }
    if (n > 0) memcpy(held, handles, (size_t)n * sizeof *held);
    return given == ignore ? own_statuses : given;
}

static void complete_all(int n, const MPI_Status *statuses) {
    for (int i = 0; i < n; i++) complete(held[i], &statuses[i]);
}

static void complete_some(int n, const int *which, const MPI_Status *statuses) {
    for (int i = 0; n != MPI_UNDEFINED && i < n; i++) complete(held[which[i]], &statuses[i]);
}

/* A poll that found nothing; one of the requests stands for all. */
static void in_vain(int n) {
    for (int i = 0; i < n; i++) {
        struct request *r = held[i] == MPI_REQUEST_NULL ? NULL : request_of(held[i]);
        if (!r || !r->active) continue;
        fruitless = 1;
        part(REQUEST_TEST, -1, -1, -1, -1, r->number);
        return;
    }
}

static void cancel(MPI_Request handle) {
    struct request *r = request_of(handle);
    if (r) r->cancelling = 1;
}

static void free_request(MPI_Request handle) {
    struct request *r = handle == MPI_REQUEST_NULL ? NULL : request_of(handle);
    if (!r) return;
    if (r->active && r->kind != NONE && r->kind != OTHER) count(FREED_REQUESTS, 1);
    drop(r);
}

static void probed(int found, const MPI_Status *status, MPI_Comm comm, int64_t message) {
    struct communicator *c = of(comm);
    if (!found) fruitless = 1;
    else if (known(c, status->MPI_SOURCE))
        part(PROBE, c->id, status->MPI_SOURCE, status->MPI_TAG, 0, message);
}

/* Matched messages have numbers like requests, and are kept among them by their handle. */
static void matched(int found, const MPI_Status *status, MPI_Comm comm, MPI_Message message) {
    int64_t number = -1;
    if (found && message != MPI_MESSAGE_NO_PROC)
        number = new_request((MPI_Request)message, OTHER)->number;
    probed(found, status, comm, number);
}

static int64_t taken(MPI_Message message) {
    struct request *r = request_of((MPI_Request)message);
    if (!r) return -1;
    int64_t number = r->number;
    drop(r);
    return number;
}

static void received_match(MPI_Message message, const MPI_Status *status) {
    int64_t number = taken(message);
    if (number >= 0) part(MRECV, -1, -1, -1, arrived(status), number);
}

static void posted_match(MPI_Message message, MPI_Request handle) {
    int64_t number = taken(message);
    struct request *r = new_request(handle, number < 0 ? NONE : MATCHED);
    if (number < 0) return;
    part(IMRECV_REQUEST, -1, -1, -1, -1, r->number);
    pending.received = number;
}
