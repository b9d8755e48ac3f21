/* The files of a process: records of calls, and counts that stand in the header. */

enum { PAGE = 4096, NO_REGION = 0xffff, FIRST_USER_REGION = 0x8000, KEPT_POLLS = 16 };
enum { WINDOW_UNIT = 512 * 64 }; /* whole records in whole pages */
enum { UNSTARTED, ON, OFF };

struct header { /* numbers.py has the same */
    char magic[8];
    uint32_t version, record_size;
    int32_t rank, ranks;
    uint64_t run, host;
    unsigned char cpus[CPU_SETSIZE / 8]; /* on which the process may run, a bit each */
    char node[64]; /* name of the host; cut, it still ends in a zero */
    int32_t required, provided; /* thread levels */
    struct {
        uint64_t at;
        int64_t ahead; /* of rank 0's clock; ns */
    } clock[2];
    int32_t clocks;   /* how many of them were measured */
    int32_t finished; /* 1: MPI_Finalize, 2: MPI_Abort, -errno: could not be written */
    int32_t open;     /* region that was entered last and not left, or -1 */
    int32_t profile;
    uint64_t counts[COUNTS];
    struct {
        uint64_t calls, sent, received;
    } collectives[OPERATIONS];
};

struct record {
    uint64_t begin, end; /* ns; end is stored last and never 0 */
    int64_t size, received, request;
    int32_t comm, peer, tag;
    uint16_t region; /* NO_REGION: a part of the call whose record follows */
    uint8_t kind, operation;
    int32_t thread, unused; /* 0: the one that began MPI */
};

static struct header *header;
static int state, profile, event_file = -1;
static FILE *names;
static struct record *window;
static uint64_t window_bytes = 32 * WINDOW_UNIT, window_at, filled; /* bytes, bytes, records */
static struct {
    uint64_t messages, bytes;
} *matrix; /* of a profile: sent to each rank of the world */
static unsigned char named[NO_REGION];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int threads; /* whether several may call at once */

static __thread int inside; /* a call of MPI by this thread, or of MPI by MPI */
static __thread uint64_t begun, ended;
static __thread struct record pending; /* the latest part of the open call */
static __thread int parts, fruitless;
static __thread int own_thread = -1;

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#ifdef HOPMAP_RECORD_SKEW /* for tests: clocks that go wrong, by rank */
    int rank = header ? header->rank : 0;
    ns += (uint64_t)rank * HOPMAP_RECORD_SKEW + (ns >> 20) * (uint64_t)rank;
#endif
    return ns;
}

static void count(int what, uint64_t by) {
    if (header) header->counts[what] += by;
}

/* Ends the recording, not the program. */
static void give_up(int error) {
    if (header) header->finished = -error;
    state = UNSTARTED;
    fprintf(stderr, "hopmap: rank %d: recording ends here: %s\n", header ? header->rank : -1,
            strerror(error));
}

/* Maps the next window of the file; returns whether there is one. */
static int next_window(void) {
    uint64_t begin = now();
    if (window) {
        munmap(window, window_bytes);
        window_at += window_bytes;
    }
    window = NULL;
    int error = posix_fallocate(event_file, (off_t)window_at, (off_t)window_bytes);
    if (!error) {
        window = mmap(NULL, window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event_file,
                      (off_t)window_at);
        if (window == MAP_FAILED) error = errno;
    }
    if (error) {
        window = NULL;
        give_up(error);
        return 0;
    }
    filled = 0;
    if (window_at > PAGE) count(FLUSHES, 1), count(FLUSH_NS, now() - begin);
    return 1;
}

static void store(const struct record *from, uint64_t end) {
    if (state != ON || profile) return;
    if (filled == window_bytes / sizeof *from && !next_window()) return;
    static int counted;
    if (own_thread < 0) own_thread = __atomic_fetch_add(&counted, 1, __ATOMIC_RELAXED);
    struct record *to = &window[filled++];
    *to = *from;
    to->thread = own_thread;
    __atomic_store_n(&to->end, end, __ATOMIC_RELEASE);
}

/* Says what the open call did; several times if it did several things. */
static void part(int kind, int32_t comm, int32_t peer, int32_t tag, int64_t size, int64_t request) {
    if (parts++) store(&pending, ended);
    pending = (struct record){.begin = begun, .size = size, .received = -1, .request = request,
                              .comm = comm, .peer = peer, .tag = tag, .region = NO_REGION,
                              .kind = (uint8_t)kind, .operation = 255};
}

static void name_region(int region, const char *name) {
    if (named[region] || !names) return;
    named[region] = 1;
    fprintf(names, "region %d %s\n", region, name);
    fflush(names);
}

/* Begins a call, unless it is one of MPI's own or the run is not recorded. */
static int entering(int region, const char *name) {
    if (state == UNSTARTED || inside) return 0;
    inside = 1;
    parts = fruitless = 0;
    if (!named[region]) {
        if (threads) pthread_mutex_lock(&lock);
        name_region(region, name);
        if (threads) pthread_mutex_unlock(&lock);
    }
    header->open = region;
    begun = now();
    return 1;
}

static void returned(void) {
    ended = now();
    if (threads) pthread_mutex_lock(&lock);
}

/* Many polls in a row that find nothing become one that lasts as long. */
static int merged_poll(int region) {
    static int polled = -1, polls;
    static uint64_t behind;
    uint64_t at = window_at / sizeof(struct record) + filled;
    polls = fruitless && polled == region && behind == at && filled ? polls + 1 : 0;
    polled = fruitless ? region : -1;
    if (polls < KEPT_POLLS) {
        behind = at + 1;
        return 0;
    }
    window[filled - 1].end = ended;
    count(MERGED_POLLS, 1);
    return 1;
}

static void leaving(int region) {
    if (state == ON && !profile && !merged_poll(region)) {
        if (!parts)
            pending = (struct record){.begin = begun, .size = -1, .received = -1, .request = -1,
                                      .comm = -1, .peer = -1, .tag = -1, .kind = NOTHING,
                                      .operation = 255};
        pending.region = (uint16_t)region;
        store(&pending, ended);
    } else if (state == OFF)
        count(CALLS_WHILE_OFF, 1);
    header->open = -1;
    if (threads) pthread_mutex_unlock(&lock);
    inside = 0;
}

static void *real_function(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "hopmap: no %s behind the recorder: is it built for this MPI?\n", name);
        abort();
    }
    return found;
}
