/* One-sided operations: what is put and got, and the communicators of windows. */

static struct window {
    uint64_t handle;
    struct communicator *comm;
    struct window *next;
} *windows;

static void made_window(int operation, MPI_Comm comm, MPI_Win win) {
    struct window *w = malloc(sizeof *w);
    handles(operation, comm);
    *w = (struct window){(uint64_t)(uintptr_t)win, of(comm), windows};
    windows = w;
}

static struct window **window_of(MPI_Win win) {
    struct window **w = &windows;
    while (*w && (*w)->handle != (uint64_t)(uintptr_t)win) w = &(*w)->next;
    return w;
}

static void freed_window(MPI_Win win) {
    struct window **w = window_of(win), *gone = *w;
    if (!gone) return;
    struct volume v = {DESTROY_HANDLE, NO_ROOT, gone->comm, 0, 0};
    collective(v);
    *w = gone->next;
    free(gone);
}

/* kind: PUT, GET or ATOMIC. */
static void one_sided(int kind, int64_t n, MPI_Datatype type, int target, MPI_Win win) {
    struct window *w = *window_of(win);
    if (target == MPI_PROC_NULL) return;
    if (!w || w->comm->foreign) {
        count(FOREIGN_MESSAGES, 1);
        return;
    }
    count(ONE_SIDED, 1);
    count(ONE_SIDED_BYTES, (uint64_t)bytes(n, type));
    part(kind, w->comm->id, target, -1, bytes(n, type), -1);
}
