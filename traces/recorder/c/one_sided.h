/* One-sided operations as Score-P tells them: a matching number stands for what is under way to one
 * target of a window, or for one request. It completes here, and at the target, by the calls
 * that complete it. */

struct pending_request {
    int64_t number;
    int target;
    struct pending_request *next;
};

struct window {
    uint64_t handle;
    int id, allocated;
    struct communicator *comm;
    struct target {
        int64_t number;
        char here, there; /* what of it is not complete yet */
    } * targets;
    struct pending_request *requests;
    uint64_t access, exposure; /* groups */
    struct window *next;
};
static struct window *windows;
enum { EVERYBODY = -1000 }; /* no rank, and not MPI_PROC_NULL either */

static struct window **place_of(MPI_Win win) {
    struct window **w = &windows;
    while (*w && (*w)->handle != (uint64_t)(uintptr_t)win) w = &(*w)->next;
    return w;
}

/* The window, unless it has processes of elsewhere. */
static struct window *window_of(MPI_Win win) {
    struct window *w = *place_of(win);
    return w && !w->comm->foreign ? w : NULL;
}

static void of_window(int kind, const struct window *w, int target, int64_t size, int64_t number) {
    part(kind, w->comm->id, target < 0 ? -1 : target, w->id, size, number);
}

/* A barrier of all in the window, or more. */
static void window_collective(int operation, const struct window *w) {
    if (profile && state == ON && operation != BARRIER) header->collectives[operation].calls += 1;
    of_window(RMA_COLLECTIVE_END, w, -1, 0, 3); /* of processes and of memory */
    pending.received = 0;
    pending.operation = (uint8_t)operation;
}

static void made_window(int operation, MPI_Comm comm, MPI_Win win) {
    static int latest;
    struct window *w = calloc(1, sizeof *w);
    *w = (struct window){.handle = (uint64_t)(uintptr_t)win, .id = latest++, .comm = of(comm),
                         .allocated = operation != CREATE_HANDLE, .next = windows};
    windows = w;
    if (w->comm->foreign) {
        count(FOREIGN_COLLECTIVES, 1);
        return;
    }
    w->targets = calloc((size_t)w->comm->size, sizeof *w->targets);
    fprintf(names, "window %d %d\n", w->id, w->comm->id);
    fflush(names);
    of_window(RMA_WIN_CREATE, w, -1, -1, -1);
    window_collective(operation, w);
}

/* Tells that what is under way to a target, or to everybody, is complete: here, or there as well. */
static void completes(struct window *w, int target, int there) {
    for (int t = target < 0 ? 0 : target; t < (target < 0 ? w->comm->size : target + 1); t++) {
        struct target *to = &w->targets[t];
        if (to->here) of_window(RMA_OP_COMPLETE_BLOCKING, w, -1, -1, to->number);
        if (to->there && there) of_window(RMA_OP_COMPLETE_REMOTE, w, -1, -1, to->number);
        to->here = 0;
        to->there &= !there;
    }
    /* A request completes here by the call that waits for it. */
    struct pending_request **r = &w->requests;
    while (there && *r) {
        struct pending_request *done = *r;
        if (target >= 0 && done->target != target) {
            r = &done->next;
            continue;
        }
        of_window(RMA_OP_COMPLETE_REMOTE, w, -1, -1, done->number);
        *r = done->next;
        free(done);
    }
}

static void completed(MPI_Win win, int target, int there) {
    struct window *w = window_of(win);
    if (w && target != MPI_PROC_NULL) completes(w, target, there);
}

static void freed_window(MPI_Win win) {
    struct window **w = place_of(win), *gone = *w;
    if (!gone) return;
    if (!gone->comm->foreign) {
        completes(gone, EVERYBODY, 1);
        of_window(RMA_WIN_DESTROY, gone, -1, -1, -1);
        window_collective(gone->allocated ? DESTROY_HANDLE_AND_DEALLOCATE : DESTROY_HANDLE, gone);
    } else
        count(FOREIGN_COLLECTIVES, 1);
    *w = gone->next;
    free(gone->targets);
    while (gone->requests) {
        struct pending_request *r = gone->requests;
        gone->requests = r->next;
        free(r);
    }
    free(gone);
}

static void fenced(MPI_Win win) {
    struct window *w = window_of(win);
    if (!w) return;
    completes(w, EVERYBODY, 1);
    window_collective(BARRIER, w);
}

/* Elements that go to the target: none where data are fetched only. */
#define GIVEN(n, op) ((op) == MPI_NO_OP ? 0 : (n))

/* Tells of an operation; returns its number, or 0. */
static int64_t moves(int kind, int atomic, int64_t size, int64_t back, int target, MPI_Win win,
                     int64_t number) {
    struct window *w = window_of(win);
    if (target == MPI_PROC_NULL) return 0;
    if (!w) {
        count(FOREIGN_MESSAGES, 1);
        return 0;
    }
    if (profile) {
        count(ONE_SIDED, 1);
        count(ONE_SIDED_BYTES, (uint64_t)(size + (back > 0 ? back : 0)));
        return 0;
    }
    struct target *to = &w->targets[target];
    if (number) {
        if (kind != RMA_GET) {
            struct pending_request *r = malloc(sizeof *r);
            *r = (struct pending_request){number, target, w->requests};
            w->requests = r;
        }
    } else {
        if (!to->here && !to->there) to->number = ++latest_request;
        to->here = to->there = 1;
        number = to->number;
    }
    of_window(kind, w, target, size, number);
    if (kind == RMA_ATOMIC) pending.received = back, pending.operation = (uint8_t)atomic;
    return number;
}

/* The same with a request, which completes where it is waited for. */
static void requested(int kind, int atomic, int64_t size, int64_t back, int target, MPI_Win win,
                      MPI_Request handle) {
    struct request *r = new_request(handle, OTHER);
    if (!moves(kind, atomic, size, back, target, win, r->number)) return;
    r->kind = ONE_SIDED_REQUEST;
    r->comm = window_of(win)->comm;
    r->tag = window_of(win)->id;
}

static void locks(MPI_Win win, int target, int shared) {
    struct window *w = window_of(win);
    if (!w || target == MPI_PROC_NULL) return;
    of_window(RMA_REQUEST_LOCK, w, target, -1, 0);
    pending.operation = (uint8_t)shared;
}

static void unlocks(MPI_Win win, int target) {
    struct window *w = window_of(win);
    if (!w || target == MPI_PROC_NULL) return;
    completes(w, target, 1);
    of_window(RMA_RELEASE_LOCK, w, target, -1, 0);
}

/* What stands for a group's members, which are written down once. */
static uint64_t members_of(MPI_Group group) {
    static uint64_t *written;
    static int count, room_for;
    int *world, size, k = 0;
    uint64_t digest = members(group, &world, &size);
    while (k < count && written[k] != digest) k++;
    if (digest && k == count) {
        if (count == room_for) {
            room_for = 2 * room_for + 16;
            written = realloc(written, (size_t)room_for * sizeof *written);
        }
        written[count++] = digest;
        write_group(digest, world, size);
        fflush(names);
    }
    free(world);
    return digest;
}

static void group_sync(const struct window *w, uint64_t group, int level) {
    of_window(RMA_GROUP_SYNC, w, -1, (int64_t)group, -1);
    pending.operation = (uint8_t)level;
}

static void opens(MPI_Win win, MPI_Group group, int exposes) {
    struct window *w = window_of(win);
    if (!w) return;
    uint64_t digest = members_of(group);
    *(exposes ? &w->exposure : &w->access) = digest;
    if (digest) group_sync(w, digest, 1); /* OTF2_RMA_SYNC_LEVEL_PROCESS */
}

static void closes(MPI_Win win, int exposed) {
    struct window *w = window_of(win);
    if (!w) return;
    if (!exposed) completes(w, EVERYBODY, 1);
    uint64_t digest = exposed ? w->exposure : w->access;
    if (digest) group_sync(w, digest, 3);
}

static void not_closed(MPI_Win win) {
    struct window *w = window_of(win);
    fruitless = 1;
    if (w && w->exposure) group_sync(w, w->exposure, 0);
}
