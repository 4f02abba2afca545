/*
 * kernel.c - the simulated network: descriptors, pending events, and waiting.
 *
 * Simulated threads run one at a time and switch only at decision points (sim/sim.h), so the tables
 * here need no lock as long as no change contains a call to the simulator. So a call is: a decision
 * point; the change, uninterrupted; then waiters are woken, which is the next decision point.
 *
 * All waiters share one word: it counts changes, and every waiter checks again after a change. With
 * a few threads that is cheap, and no wake-up can be lost by a mistake here; the rules under test
 * are the driver's.
 *
 * Anything that takes time (bytes, ends, acknowledgements, late edges and completions) is an event
 * with a due time. The *wire*, a simulated thread, executes due events in any order. Events refer
 * to their object by index and generation, so they need not be unlinked when it is freed.
 *
 * A new descriptor is the lowest free number, as POSIX requires, so numbers are reused at once.
 * They start high, so that they never collide with real descriptors.
 *
 * Rejected: a pair of real sockets with a filter between them. The real kernel has its own threads
 *           and its own time.
 *
 * ThreadSanitizer does not instrument this code: it would treat the order in which simulated
 * threads enter it as synchronization, and the network's accesses to buffers as races.
 *
 * I1  A file is in use while it has references: descriptors, waits, flights, a place in an accept
 *     queue.
 * I2  Nothing here calls the simulator but bz_sim_call, bz_sim_called, bz_sim_sleep and the wire.
 */
#include "sim/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/check.h"
#include "io/poll.h"
#include "sim/sim.h"

enum { CALL_NS_MAX = 500, LINGER_NS_MAX = 20000 };

struct sim_kernel *bz_sim_kernel;

/* ---- chance ---- */

uint32_t bz_sim_below(uint32_t n)
{
    return bz_rng_below(&bz_sim_kernel->rng, n);
}

bool bz_sim_odd(uint32_t n)
{
    return !bz_sim_kernel->config.is_calm && n != 0 && bz_sim_below(n) == 0;
}

uint64_t bz_sim_delay(void)
{
    struct sim_kernel *k = bz_sim_kernel;
    if (k->config.is_calm || bz_sim_below(2) == 0)
        return 0;
    uint64_t ns = bz_sim_below((uint32_t)k->delay_ns_max);
    return bz_sim_below(32) == 0 ? 10 * ns : ns;
}

/* ---- calls ---- */

void bz_sim_call(void)
{
    bz_sim_kernel->books.calls++;
    bz_sim_burn(bz_sim_odd(2) ? bz_sim_below(CALL_NS_MAX) : 0);
}

void bz_sim_called(void)
{
    struct sim_kernel *k = bz_sim_kernel;
    bool owes_wire = k->owes_wire, owes_wake = k->owes_wake;
    k->owes_wire = k->owes_wake = false;
    if (owes_wire)
        bz_os_wake(k->os, &k->under_way, 1);
    if (owes_wake)
        bz_os_wake(k->os, &k->changed, UINT32_MAX);
}

uint32_t bz_sim_changes(void)
{
    return bz_load_relaxed(&bz_sim_kernel->changed); /* relaxed: one simulated thread at a time */
}

void bz_sim_sleep(uint32_t was, uint64_t until_ns)
{
    bz_sim_called();
    (void)bz_os_wait(bz_sim_kernel->os, &bz_sim_kernel->changed, was, until_ns);
}

uint64_t bz_sim_until_ms(int ms)
{
    if (ms <= 0)
        return ms == 0 ? 0 : BZ_OS_FOREVER;
    return bz_os_now(bz_sim_kernel->os) + (uint64_t)ms * 1000000;
}

/* Other threads may see the effect before the call returns. */
int64_t bz_sim_outcome(int64_t result)
{
    bz_sim_called();
    if (bz_sim_odd(2))
        bz_sim_burn(bz_sim_odd(8) ? bz_sim_below(LINGER_NS_MAX) : 0);
    if (result >= 0)
        return result;
    errno = (int)-result;
    return -1;
}

/* Not memcpy and memset: ThreadSanitizer intercepts them everywhere. */
void bz_sim_copy(void *to, const void *from, size_t bytes)
{
    /* lint: allow raw-atomic: keeps the compiler from making a memcpy of it */
    volatile uint8_t *out = to;
    for (size_t i = 0; i < bytes; i++)
        out[i] = ((const uint8_t *)from)[i];
}

void bz_sim_zero(void *at, size_t bytes)
{
    /* lint: allow raw-atomic: keeps the compiler from making a memset of it */
    volatile uint8_t *out = at;
    for (size_t i = 0; i < bytes; i++)
        out[i] = 0;
}

/* ---- files and descriptors ---- */

struct sim_file *bz_sim_file_new(enum sim_kind kind)
{
    struct sim_kernel *k = bz_sim_kernel;
    struct sim_file *f = k->file;
    while (f < k->file + SIM_FILES && f->kind != SIM_NO_FILE)
        f++;
    BZ_CHECK(f < k->file + SIM_FILES, "the simulated system has room for %d files", SIM_FILES);
    uint32_t generation = f->generation;
    bz_sim_zero(f, sizeof *f);
    f->kind = kind;
    f->generation = generation;
    f->refs = 1;
    bz_list_init(&f->watchers);
    bz_list_init(&f->notes);
    bz_list_init(&f->parked);
    k->books.files++;
    return f;
}

static void end_by_kind(struct sim_file *f)
{
    if (f->kind == SIM_SOCKET)
        bz_sim_socket_end(f);
    else if (f->kind == SIM_SET)
        bz_sim_set_end(f);
    else if (f->kind == SIM_RING)
        bz_sim_ring_end(f);
    else if (f->kind == SIM_QUEUE)
        bz_sim_queue_end(f);
    else if (f->counter.reader != NULL)
        bz_sim_file_unref(f->counter.reader);
}

void bz_sim_file_unref(struct sim_file *f)
{
    BZ_CHECK(f->kind != SIM_NO_FILE && f->refs > 0, "a simulated file that is gone is given up");
    if (--f->refs > 0) /* I1 */
        return;
    bz_sim_forget(f);
    end_by_kind(f);
    f->kind = SIM_NO_FILE;
    f->generation++;
    bz_sim_kernel->books.files--;
}

static unsigned fds_max(void)
{
    unsigned asked = bz_sim_kernel->config.fds;
    return asked != 0 && asked < SIM_FDS ? asked : SIM_FDS;
}

static int lowest_free(void)
{
    for (unsigned i = 0; i < fds_max(); i++)
        if (bz_sim_kernel->fd[i] == NULL)
            return (int)i;
    return -EMFILE;
}

bool bz_sim_fd_is_free(void)
{
    return lowest_free() >= 0;
}

int bz_sim_fd_new(struct sim_file *f)
{
    int i = lowest_free();
    if (i < 0) {
        bz_sim_file_unref(f);
        return i;
    }
    bz_sim_kernel->fd[i] = f;
    bz_sim_kernel->books.fds++;
    return SIM_FD_FIRST + i;
}

struct sim_file *bz_sim_file_at(int fd)
{
    return fd >= SIM_FD_FIRST && fd < SIM_FD_FIRST + SIM_FDS ? bz_sim_kernel->fd[fd - SIM_FD_FIRST]
                                                             : NULL;
}

struct sim_file *bz_sim_file_of(int fd, enum sim_kind kind)
{
    struct sim_file *f = bz_sim_file_at(fd);
    BZ_CHECK(f != NULL, "a call on descriptor %d, which is not open", fd);
    return kind == SIM_NO_FILE || f->kind == kind ? f : NULL;
}

void bz_sim_fd_drop(int fd)
{
    struct sim_file *f = bz_sim_file_of(fd, SIM_NO_FILE);
    bz_sim_queues_forget(fd);
    bz_sim_kernel->fd[fd - SIM_FD_FIRST] = NULL;
    bz_sim_kernel->books.fds--;
    if (f->kind == SIM_RING)
        bz_sim_ring_closed(f);
    bz_sim_file_unref(f);
}

/* ---- calls that any descriptor takes ---- */

/* The same call may also close real descriptors: those of regular files. */
static int sim_close(int fd)
{
    if (fd < SIM_FD_FIRST)
        return close(fd);
    bz_sim_call();
    bz_sim_fd_drop(fd);
    return (int)bz_sim_outcome(0);
}

static int sim_fcntl(int fd, int what, int value)
{
    int64_t result = 0;
    if (fd < SIM_FD_FIRST)
        return fcntl(fd, what, value);
    bz_sim_call();
    struct sim_file *f = bz_sim_file_of(fd, SIM_NO_FILE);
    if (what == F_GETFL) {
        result = O_RDWR | (f->blocks ? 0 : O_NONBLOCK);
    } else if (what == F_SETFL) {
        f->blocks = !(value & O_NONBLOCK);
    } else if (what == F_DUPFD_CLOEXEC) {
        f->refs++;
        result = bz_sim_fd_new(f);
    }
    return (int)bz_sim_outcome(result);
}

/* ---- real system calls ---- */

static int sim_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags,
                        struct timespec *left)
{
    (void)fd;
    (void)messages;
    (void)count;
    (void)flags;
    (void)left;
    errno = EOPNOTSUPP;
    return -1;
}

static int sim_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    return sim_recvmmsg(fd, messages, count, flags, NULL);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the system's */
static ssize_t sim_sendfile(int to, int from, off_t *at, size_t bytes)
{
    (void)to;
    (void)from;
    (void)at;
    (void)bytes;
    errno = EINVAL;
    return -1;
}

/* ---- pending events ---- */

void bz_sim_send_event(enum sim_event_kind kind, struct sim_file *f, struct sim_flight *flight,
                       uint64_t delay_ns)
{
    struct sim_kernel *k = bz_sim_kernel;
    struct sim_event *e = k->event;
    while (e < k->event + SIM_EVENTS && e->kind != SIM_NO_EVENT)
        e++;
    BZ_CHECK(e < k->event + SIM_EVENTS, "the simulated network has room for %d events", SIM_EVENTS);
    *e = (struct sim_event){.kind = kind,
                            .due_ns = delay_ns != 0 ? bz_os_now(k->os) + delay_ns : 0,
                            .file = f,
                            .flight = flight,
                            .generation = flight != NULL ? flight->generation : f->generation};
    bz_fetch_add_relaxed(&k->under_way, 1); /* relaxed: one simulated thread at a time */
    k->owes_wire = true;
}

/* Choose a due event; or return NULL and the time of the first. */
static struct sim_event *next_due(uint64_t now, uint64_t *first_ns)
{
    struct sim_kernel *k = bz_sim_kernel;
    struct sim_event *picked = NULL;
    uint32_t seen = 0;
    *first_ns = BZ_OS_FOREVER;
    for (struct sim_event *e = k->event; e < k->event + SIM_EVENTS; e++) {
        if (e->kind == SIM_NO_EVENT)
            continue;
        if (e->due_ns <= now && bz_sim_below(++seen) == 0)
            picked = e;
        if (e->due_ns < *first_ns)
            *first_ns = e->due_ns;
    }
    return picked;
}

/* The first of several that are delayed reports the sides of all. */
static void late_edge(struct sim_file *f)
{
    unsigned sides = f->late_sides;
    f->late_sides = 0;
    bz_sim_edge(f, sides);
}

static void happen(struct sim_event *e)
{
    struct sim_event now = *e;
    e->kind = SIM_NO_EVENT;
    bool is_of_flight = now.flight != NULL;
    uint32_t generation = is_of_flight ? now.flight->generation : now.file->generation;
    if (generation != now.generation)
        return; /* the object was freed */
    if (is_of_flight)
        bz_sim_flight_event(&now);
    else if (now.kind == SIM_EDGE)
        late_edge(now.file);
    else
        bz_sim_socket_event(&now);
}

static void wire_main(void *arg)
{
    struct sim_kernel *k = arg;
    while (!k->is_ending) {
        uint32_t seen = bz_load_relaxed(&k->under_way); /* relaxed: as above */
        uint64_t first_ns;
        struct sim_event *e = next_due(bz_os_now(k->os), &first_ns);
        if (e == NULL) {
            (void)bz_os_wait(k->os, &k->under_way, seen, first_ns);
            continue;
        }
        bz_sim_burn(0);
        happen(e); /* only the wire executes events, so it is the same one */
        bz_sim_called();
    }
}

/* ---- the whole ---- */

static void ends(uint32_t thread)
{
    bz_sim_flights_of(thread);
    bz_sim_called();
}

static struct bz_sys table; /* filled when the first network begins */

static void fill_table(void)
{
    table = (struct bz_sys){.is_simulated = true,
                            .close = sim_close,
                            .fcntl = sim_fcntl,
                            .recvmmsg = sim_recvmmsg,
                            .sendmmsg = sim_sendmmsg,
                            .sendfile = sim_sendfile};
    bz_sim_sock_calls(&table);
    bz_sim_set_calls(&table);
}

static int kernel_new(const struct bz_os *os, struct sim_kernel **out)
{
    struct bz_os_slab slab;
    size_t page = bz_os_page_bytes(os);
    size_t bytes = (sizeof(struct sim_kernel) + page - 1) / page * page;
    int err = bz_os_slab_reserve(os, &slab, bytes, 0, BZ_OS_SLAB_SMALL_PAGES, "blitz-sim-net");
    if (err != 0)
        return err;
    *out = (struct sim_kernel *)(void *)slab.base;
    (*out)->slab = slab;
    (*out)->os = os;
    return 0;
}

static void kernel_free(struct sim_kernel *k, const struct bz_os *os)
{
    for (struct sim_file *f = k->file; f < k->file + SIM_FILES; f++)
        if (f->kind == SIM_RING)
            bz_os_slab_release(os, &f->ring.slab);
    struct bz_os_slab slab = k->slab; /* freed with it */
    bz_os_slab_release(os, &slab);
}

int bz_sim_net_begin(const struct bz_os *os, const struct bz_sim_net_config *config)
{
    static const uint32_t delays[] = {1, 300, 20000, 2000000};
    static const struct bz_os_thread_opts opts = {.name = "wire"};
    struct sim_kernel *k;
    uint64_t seed;
    if (bz_sim_kernel != NULL)
        kernel_free(bz_sim_kernel, os);
    bz_sim_kernel = NULL;
    int err = bz_os_entropy(os, &seed, sizeof seed);
    if (err == 0)
        err = kernel_new(os, &k);
    if (err != 0)
        return err;
    k->config = *config;
    bz_rng_init(&k->rng, seed);
    k->delay_ns_max = delays[bz_rng_below(&k->rng, BZ_ARRAY_LEN(delays))];
    k->port = 40000;
    bz_sim_kernel = k;
    fill_table();
    err = bz_os_thread_start(os, &k->wire, &opts, wire_main, k);
    if (err != 0) {
        bz_sim_kernel = NULL;
        kernel_free(k, os);
        return err;
    }
    bz_sim_at_thread_end(ends);
    bz_sys = &table;
    bz_sys_sets = &bz_sim_sets;
    bz_sys_rings = &bz_sim_rings;
    bz_sys_queues = &bz_sim_queues;
    bz_poll_kqueue = &bz_poll_kqueue_maker;
    return 0;
}

void bz_sim_net_weather(const struct bz_sim_net_config *config)
{
    struct bz_sim_net_config *is = &bz_sim_kernel->config;
    is->reset_one_in = config->reset_one_in;
    is->refuse_one_in = config->refuse_one_in;
    is->stall_one_in = config->stall_one_in;
    is->stall_ns = config->stall_ns;
}

struct bz_sim_net_books bz_sim_net_books(void)
{
    return bz_sim_kernel->books;
}

struct bz_sim_net_books bz_sim_net_end(void)
{
    struct sim_kernel *k = bz_sim_kernel;
    const struct bz_os *os = k->os;
    k->is_ending = true;
    bz_fetch_add_relaxed(&k->under_way, 1); /* relaxed: one simulated thread at a time */
    bz_os_wake(os, &k->under_way, 1);
    (void)!bz_os_thread_join(os, &k->wire); /* another object has the slot */
    struct bz_sim_net_books books = k->books;
    bz_sim_at_thread_end(NULL);
    bz_sys = &bz_sys_system;
    bz_sys_sets = &bz_sys_sets_system;
    bz_sys_rings = &bz_sys_rings_system;
    bz_sys_queues = NULL;
    bz_poll_kqueue = NULL;
    bz_sim_kernel = NULL;
    kernel_free(k, os);
    return books;
}
