/* The beginning and the end of a run: files, clocks; regions of the program. */

static MPI_Comm private_comm = MPI_COMM_NULL; /* of all processes, for clocks alone */
static int user_regions, open_regions[64], depth;
static char *user_region[1024];

static int opened(const char *folder, int rank, const char *what) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%d.%s", folder, rank, what) >= (int)sizeof path) return -1;
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
}

static void *mapped(int file, size_t size) {
    int error = posix_fallocate(file, 0, (off_t)size);
    void *at = error ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (error) errno = error;
    return at == MAP_FAILED ? NULL : at;
}

/* What is the same for processes with one clock. */
static uint64_t host(int rank) {
    char text[64] = "";
    uint64_t digest = 0xcbf29ce484222325u;
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY);
    if (file < 0 || read(file, text, sizeof text - 1) <= 0) gethostname(text, sizeof text - 1);
    if (file >= 0) close(file);
    for (char *c = text; *c; c++) digest = (digest ^ (unsigned char)*c) * 0x100000001b3u;
#ifdef HOPMAP_RECORD_SKEW
    digest += (uint64_t)rank;
#else
    (void)rank;
#endif
    return digest;
}

/* How far this process's clock is ahead of rank 0's: by the quickest of several questions.
 * Only the first process of every host asks. Source: F. Cristian, Probabilistic clock
 * synchronization, Distributed Computing 3, 1989. */
static void align_clocks(void) {
    enum { ROUNDS = 20 };
    int rank = header->rank, ranks = header->ranks;
    uint64_t *hosts = malloc((size_t)ranks * sizeof *hosts), question = 0;
    if (PMPI_Allgather(&header->host, 1, MPI_UINT64_T, hosts, 1, MPI_UINT64_T, private_comm)) return;
    header->clock[header->clocks].at = now();
    for (int r = 1; r < ranks; r++) {
        int first = 0;
        while (hosts[first] != hosts[r]) first++;
        if (first != r || (rank != 0 && rank != r)) continue;
        uint64_t best = UINT64_MAX;
        for (int i = 0; i < ROUNDS; i++) {
            if (rank == r) {
                uint64_t before = now(), there;
                PMPI_Send(&question, 1, MPI_UINT64_T, 0, 0, private_comm);
                PMPI_Recv(&there, 1, MPI_UINT64_T, 0, 0, private_comm, MPI_STATUS_IGNORE);
                uint64_t behind = now();
                if (behind - before >= best) continue;
                best = behind - before;
                header->clock[header->clocks].at = before + best / 2;
                header->clock[header->clocks].ahead = (int64_t)(before + best / 2 - there);
            } else {
                PMPI_Recv(&question, 1, MPI_UINT64_T, r, 0, private_comm, MPI_STATUS_IGNORE);
                question = now();
                PMPI_Send(&question, 1, MPI_UINT64_T, r, 0, private_comm);
            }
        }
    }
    header->clocks++;
    free(hosts);
}

static void start_recording(const char *folder, int required, int provided) {
    int rank, ranks, worked = 1;
    uint64_t run;
    const char *asked = getenv("HOPMAP_RECORD_PROFILE"), *room_for = getenv("HOPMAP_RECORD_BUFFER");
    profile = asked && *asked == '1';
    if (room_for) {
        uint64_t units = strtoull(room_for, NULL, 10) / WINDOW_UNIT;
        window_bytes = (units ? units : 1) * WINDOW_UNIT;
    }
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    event_file = opened(folder, rank, "events");
    int name_file = event_file < 0 ? -1 : opened(folder, rank, "names");
    if (name_file >= 0) header = mapped(event_file, PAGE);
    int error = header ? 0 : errno;
    if (header && profile) {
        int file = opened(folder, rank, "matrix");
        matrix = file < 0 ? NULL : mapped(file, (size_t)ranks * sizeof *matrix);
        if (!matrix) error = errno;
    }
    int fine = !error;
    PMPI_Allreduce(&fine, &worked, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!worked) {
        if (error)
            fprintf(stderr, "hopmap: rank %d: not recorded: a file in %s: %s\n", rank, folder,
                    strerror(error));
        header = NULL;
        return;
    }
    run = now();
    PMPI_Bcast(&run, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    *header = (struct header){.version = VERSION, .record_size = sizeof(struct record),
                              .rank = rank, .ranks = ranks, .run = run, .host = host(rank),
                              .required = required, .provided = provided, .open = -1,
                              .profile = profile};
    cpu_set_t cpus;
    if (!sched_getaffinity(0, sizeof cpus, &cpus)) memcpy(header->cpus, &cpus, sizeof cpus);
    gethostname(header->node, sizeof header->node - 1);
    memcpy(header->magic, "hopmaprc", sizeof header->magic);
    names = fdopen(name_file, "w");
    window_at = PAGE;
    threads = provided == MPI_THREAD_MULTIPLE;
    if (!profile && !next_window()) return;
    PMPI_Comm_group(MPI_COMM_WORLD, &world_group);
    registered(MPI_COMM_WORLD, MPI_COMM_WORLD);
    registered(MPI_COMM_SELF, MPI_COMM_SELF);
    PMPI_Comm_dup(MPI_COMM_WORLD, &private_comm);
    align_clocks();
    state = ON;
}

static int initialised(int rc, int region, const char *name, uint64_t at, int required,
                       int provided) {
    const char *folder = getenv("HOPMAP_RECORD_DIR");
    if (rc != MPI_SUCCESS || !folder || !*folder) return rc;
    inside = 1;
    start_recording(folder, required, provided);
    if (state == ON) {
        name_region(region, name);
        begun = at;
        parts = 0;
        returned();
        handles(CREATE_HANDLE, MPI_COMM_WORLD);
        leaving(region);
    }
    inside = 0;
    return rc;
}

int MPI_Init(int *argc, char ***argv) {
    int (*real)(int *, char ***) = (int (*)(int *, char ***))real_function("PMPI_Init");
    uint64_t at = now();
    inside++; /* MPICH's bindings may call another entry of MPI */
    int rc = real(argc, argv);
    inside--;
    if (inside) return rc;
    return initialised(rc, REGION_MPI_Init, "MPI_Init", at, MPI_THREAD_SINGLE, MPI_THREAD_SINGLE);
}
int PMPI_Init(int *argc, char ***argv) __attribute__((alias("MPI_Init")));

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int (*real)(int *, char ***, int, int *) =
        (int (*)(int *, char ***, int, int *))real_function("PMPI_Init_thread");
    uint64_t at = now();
    inside++;
    int rc = real(argc, argv, required, provided);
    inside--;
    if (inside) return rc;
    return initialised(rc, REGION_MPI_Init_thread, "MPI_Init_thread", at, required, *provided);
}
int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
    __attribute__((alias("MPI_Init_thread")));

#if MPI_VERSION >= 4
/* Sessions alone have no MPI_COMM_WORLD, whose ranks a recording is of: that is said at once. */
int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session) {
    int (*real)(MPI_Info, MPI_Errhandler, MPI_Session *) =
        (int (*)(MPI_Info, MPI_Errhandler, MPI_Session *))real_function("PMPI_Session_init");
    const char *folder = getenv("HOPMAP_RECORD_DIR");
    int file = state == UNSTARTED && folder && *folder ? opened(folder, 0, "sessions") : -1;
    if (file >= 0) {
        fprintf(stderr, "hopmap: MPI_Session_init: MPI Sessions alone are not recorded: expected "
                        "MPI_Init or MPI_Init_thread as well\n");
        close(file);
    }
    return real(info, handler, session);
}
int PMPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session)
    __attribute__((alias("MPI_Session_init")));
#endif

static void leave_user_region(void) {
    struct record r = {.begin = now(), .kind = REGION_LEAVE, .region = NO_REGION,
                       .tag = open_regions[--depth]};
    store(&r, r.begin);
}

int MPI_Finalize(void) {
    int (*real)(void) = (int (*)(void))real_function("PMPI_Finalize");
    if (state == UNSTARTED || inside) return real();
    while (depth) leave_user_region();
    entering(REGION_MPI_Finalize, "MPI_Finalize");
    align_clocks();
    PMPI_Comm_free(&private_comm);
    PMPI_Group_free(&world_group);
    int rc = real();
    returned();
    handles(DESTROY_HANDLE, MPI_COMM_WORLD);
    leaving(REGION_MPI_Finalize);
    if (state == UNSTARTED) return rc;
    state = UNSTARTED;
    header->finished = 1;
    if (!profile && ftruncate(event_file, (off_t)(window_at + filled * sizeof(struct record))))
        count(FLUSHES, 0); /* then zeros stay behind the records, which is as good */
    fclose(names);
    names = NULL;
    return rc;
}
int PMPI_Finalize(void) __attribute__((alias("MPI_Finalize")));

int MPI_Abort(MPI_Comm comm, int code) {
    int (*real)(MPI_Comm, int) = (int (*)(MPI_Comm, int))real_function("PMPI_Abort");
    if (!entering(REGION_MPI_Abort, "MPI_Abort")) return real(comm, code);
    returned();
    leaving(REGION_MPI_Abort);
    header->finished = 2;
    return real(comm, code);
}
int PMPI_Abort(MPI_Comm comm, int code) __attribute__((alias("MPI_Abort")));

/* Whether this is readable text of one line; a program may have none. */
static int is_name(const char *text) {
    static int ends[2];
    if (!ends[1] && pipe2(ends, O_CLOEXEC | O_NONBLOCK)) return 0;
    for (int i = 0; i < 256; i++) {
        char c;
        if (write(ends[1], text + i, 1) != 1 || read(ends[0], &c, 1) != 1) return 0;
        if (!c) return i > 0;
        if ((unsigned char)c < ' ' || c == 127) return 0;
    }
    return 0;
}

static int number_of(const char *name) {
    int k = 0;
    while (k < user_regions && strcmp(user_region[k], name) != 0) k++;
    if (k == 1024) return -1;
    if (k == user_regions) user_region[user_regions++] = strdup(name);
    name_region(FIRST_USER_REGION + k, name);
    return FIRST_USER_REGION + k;
}

/* (1, "name") begins a region and (-1, "name") ends the latest, as for IPM; 0 switches recording
 * off, and any other level on. */
int MPI_Pcontrol(const int level, ...) {
    va_list more;
    va_start(more, level);
    const char *name = level == 1 || level == -1 ? va_arg(more, const char *) : NULL;
    va_end(more);
    if (state == UNSTARTED || inside) return MPI_SUCCESS;
    if (threads) pthread_mutex_lock(&lock);
    struct record r = {.begin = now(), .region = NO_REGION};
    if (level == -1) {
        if (depth) leave_user_region();
    } else if (level == 1 && state == ON && is_name(name)) {
        r.tag = number_of(name);
        r.kind = REGION_ENTER;
        if (r.tag < 0 || depth == 64) count(LOST_REGIONS, 1);
        else open_regions[depth++] = r.tag, store(&r, r.begin);
    } else if (level == 0 && state == ON) {
        while (depth) leave_user_region();
        r.kind = RECORDING_OFF;
        store(&r, r.begin);
        state = OFF;
    } else if (level > 0 && state == OFF) {
        state = ON;
        r.kind = RECORDING_ON;
        store(&r, r.begin);
    }
    if (threads) pthread_mutex_unlock(&lock);
    return MPI_SUCCESS;
}
int PMPI_Pcontrol(const int level, ...) __attribute__((alias("MPI_Pcontrol")));
