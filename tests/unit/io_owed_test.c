/*
 * Duties of the driver beyond its callers, on every backend: foreign calls beside operations in
 * flight, an operation whose thread has ended, descriptors that have run out.
 */
#include "harness.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz/net.h"
#include "blitz/unix.h"
#include "io/attempt.h"
#include "proc/state.h"
#include "runtime/runtime.h"
#include "support/keepers.h"
#include "support/net.h"

static blitz_deadline soon(void)
{
    return blitz_after(20 * BLITZ_S);
}

/* ---- a timed receive by foreign code ---- */

enum { TIME_MS = 20 };

static bz_atomic(uint32_t) is_over; /* relaxed: a flag */

/* A library that knows nothing of blitz: it blocks, and has a time limit of its own. */
struct timed {
    int fd[2];
    bool has_data;
    ssize_t got;
    int error;
    uint64_t took_ns;
};

static int timed_recv(void *arg)
{
    struct timed *t = arg;
    char data[8];
    uint64_t from = bz_os_now(&bz_os_system);
    t->got = recv(t->fd[0], data, sizeof data, 0);
    t->error = errno;
    t->took_ns = bz_os_now(&bz_os_system) - from;
    return 0;
}

static int in_place(void *arg)
{
    int err = blitz_block_in_place(timed_recv, arg);
    bz_store_relaxed(&is_over, 1); /* relaxed: a flag */
    return err;
}

/* Operations in flight, all the time: each read waits before its byte comes. */
static int reads(void *arg)
{
    char c;
    int64_t n;
    while ((n = blitz_tcp_read(arg, &c, 1, BLITZ_FOREVER)) == 1)
        continue;
    return (int)n;
}

static int beside_operations(struct timed *t)
{
    const struct timeval limit = {.tv_usec = TIME_MS * 1000};
    blitz_tcp *pair[2];
    CHECK_EQ(blitz_unix_pair(pair), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, t->fd), 0);
    CHECK_EQ(setsockopt(t->fd[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    bz_store_relaxed(&is_over, 0); /* relaxed: before the spawns */
    blitz_task *reader = t_spawn(reads, pair[1]);
    blitz_task *foreign = t_spawn(in_place, t);
    unsigned sent = 0;
    do {
        CHECK_EQ(blitz_tcp_write(pair[0], "x", 1, soon()), 1);
        if (++sent == 50 && t->has_data)
            CHECK_EQ(write(t->fd[1], "hello", 5), 5);
        blitz_yield();
    } while (bz_load_relaxed(&is_over) == 0 || sent < 50); /* relaxed: a flag */
    CHECK_EQ(t_join(foreign), 0);
    blitz_tcp_close(pair[0]);
    CHECK_EQ(t_join(reader), 0);
    blitz_tcp_close(pair[1]);
    close(t->fd[0]);
    close(t->fd[1]);
    return 0;
}

static int timed_out(void *arg)
{
    struct timed t = {.has_data = false};
    (void)arg;
    CHECK_EQ(beside_operations(&t), 0);
    CHECK_EQ(t.got, -1);
    CHECK_EQ(t.error, EAGAIN); /* and not EINTR */
    CHECK_GE(t.took_ns, (uint64_t)(TIME_MS - 1) * 1000000);
    return 0;
}

static int with_data(void *arg)
{
    struct timed t = {.has_data = true};
    (void)arg;
    CHECK_EQ(beside_operations(&t), 0);
    if (t.got < 0) /* it had its time before the bytes were sent: this machine is slow */
        CHECK_EQ(t.error, EAGAIN);
    else
        CHECK_EQ(t.got, 5);
    return 0;
}

/* A plain ring interrupts calls of the thread that handed operations in: a recv with a time limit came
 * back with EINTR. In block_in_place it does not. */
TEST(io_owed, a_timed_receive_by_foreign_code_has_its_time_or_its_data)
{
    t_on_keepers(timed_out, NULL);
    t_on_keepers(with_data, NULL);
}

/* ---- a thread that has gone ---- */

/* A system on which a thread that is idle in the pool has been so for ten seconds at once. */
static int hasty_wait(const struct bz_os *os, bz_os_word *word, uint32_t expected, uint64_t until)
{
    uint64_t now = os->now(os);
    if (until != BZ_OS_FOREVER && until > now + BZ_POOL_IDLE_NS / 2)
        until = now + 1000000;
    return bz_os_system.wait(os, word, expected, until);
}

struct gone {
    blitz_tcp *pair[3][2];
    blitz_task *reader[3];
    bz_atomic(uint32_t) tid; /* relaxed: of the thread the hog burns on, 0 until it does */
};

static int burns(void *arg)
{
    struct gone *g = arg;
    bz_store_relaxed(&g->tid, (uint32_t)syscall(SYS_gettid)); /* relaxed: as above */
    while (bz_load_relaxed(&is_over) == 0) {                  /* relaxed: a flag */
    }
    return 0;
}

static int reads_five(void *arg)
{
    char data[5];
    int err = blitz_tcp_read_exact(arg, data, sizeof data, NULL, soon());
    return err != 0 ? err : memcmp(data, "hello", 5);
}

static void answer(struct gone *g, int i)
{
    CHECK_EQ(blitz_tcp_write_all(g->pair[i][0], "hello", 5, NULL, soon()), 0);
    CHECK_EQ(t_join(g->reader[i]), 0);
}

static bool is_thread(uint32_t tid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%u", tid);
    return access(path, F_OK) == 0;
}

/* A machine submits or watches the reads and then burns. Its proc is taken and continues with the
 * operations in flight. When the burning ends, the old thread has nothing to do and ends. */
static int taken_and_retired(void *arg)
{
    struct gone g;
    (void)arg;
    bz_store_relaxed(&is_over, 0); /* relaxed: before the spawns */
    bz_atomic_init(&g.tid, 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(blitz_unix_pair(g.pair[i]), 0);
        g.reader[i] = t_spawn(reads_five, g.pair[i][1]);
        t_until_waits(g.reader[i]);
    }
    answer(&g, 0);
    blitz_task *hog = t_spawn(burns, &g);
    while (bz_load_relaxed(&g.tid) == 0) /* relaxed: as above */
        blitz_yield();
    answer(&g, 1);                 /* its proc is another's by now */
    bz_store_relaxed(&is_over, 1); /* relaxed: a flag */
    CHECK_EQ(t_join(hog), 0);
    while (is_thread(bz_load_relaxed(&g.tid))) /* relaxed: as above */
        CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    answer(&g, 2); /* by an operation of that thread's */
    for (int i = 0; i < 3; i++)
        t_close_both(g.pair[i]);
    return 0;
}

TEST(io_owed, bug_15_operations_go_on_when_their_proc_is_taken_and_their_thread_has_left)
{
    static const char *const keepers[] = {"epoll", "poll", "uring"};
    static struct bz_os hasty;
    hasty = bz_os_system;
    hasty.wait = hasty_wait;
    for (size_t i = 0; i < BZ_ARRAY_LEN(keepers) - !t_has_rings(); i++) {
        struct bz_runtime *rt;
        t_watch("%s", keepers[i]);
        CHECK_EQ(bz_runtime_new(&hasty, &(blitz_runtime_opts){.procs = 1, .io = keepers[i]}, &rt),
                 0);
        CHECK_EQ(blitz_runtime_block_on((blitz_runtime *)rt, taken_and_retired, NULL), 0);
        CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, soon()), 0);
        (void)!blitz_runtime_unref((blitz_runtime *)rt);
    }
}

/* ---- 64 descriptors ---- */

enum { CLIENTS = 40 };

static int echoes(void *arg)
{
    char c;
    while (blitz_tcp_read(arg, &c, 1, blitz_after(2 * BLITZ_S)) == 1 &&
           blitz_tcp_write(arg, &c, 1, soon()) == 1)
        continue;
    blitz_tcp_close(arg);
    return 0;
}

static int serves(void *arg)
{
    blitz_tcp *t;
    int err;
    while ((err = blitz_tcp_accept(arg, &t, NULL, BLITZ_FOREVER)) == 0)
        CHECK_EQ(blitz_spawn(echoes, t, NULL, NULL), 0);
    CHECK_EQ(err, -EBADF);
    blitz_tcp_listener_unref(arg);
    return 0;
}

static int is_served(void *arg)
{
    char c = 0;
    CHECK_EQ(blitz_tcp_write(arg, "x", 1, soon()), 1);
    CHECK_EQ(blitz_tcp_read(arg, &c, 1, soon()), 1);
    CHECK_EQ(c, 'x');
    blitz_tcp_close(arg);
    return 0;
}

/* All of them are in the backlog, and hold a descriptor each, before the first is accepted. */
static int few_descriptors(void *arg)
{
    blitz_task *server, *task[CLIENTS];
    blitz_tcp *client[CLIENTS];
    blitz_addr at;
    blitz_tcp_listener *l = t_listen(&at);
    (void)arg;
    for (int i = 0; i < CLIENTS; i++)
        CHECK_EQ(blitz_tcp_connect(&at, &client[i], soon()), 0);
    unsigned left = 64 - (t_open_fds() - 3); /* less ".", ".." and the folder itself */
    CHECK_LT(left, (unsigned)CLIENTS);
    server = t_spawn(serves, blitz_tcp_listener_ref(l));
    for (int i = 0; i < CLIENTS; i++)
        task[i] = t_spawn(is_served, client[i]);
    for (int i = 0; i < CLIENTS; i++)
        CHECK_EQ(t_join(task[i]), 0);
    t_note("64 descriptors: %d clients are served by the %u that they left", (int)CLIENTS, left);
    blitz_tcp_listener_close(l);
    CHECK_EQ(t_join(server), 0);
    return 0;
}

/* Both ends of forty connections, and sixty-four descriptors: some wait in the backlog for a while,
 * all are served. */
TEST(io_owed, bug_19_with_64_descriptors_every_client_is_served)
{
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 64;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    t_on_keepers(few_descriptors, NULL);
}

static bz_atomic(uint32_t) opened; /* relaxed: counted */

/* One backend can be opened. (Whether the system has epoll is asked once before.) */
static int only_one(const char *call)
{
    bool is_set = strcmp(call, "epoll_create") == 0, is_pipe = strcmp(call, "pipe") == 0;
    if (!is_set && !is_pipe)
        return 0;
    return bz_fetch_add_relaxed(&opened, 1) >= (is_set ? 2 : 1) ? EMFILE : 0; /* relaxed: counted */
}

static int on_every_proc(void *arg)
{
    enum { PROCS = 3 };
    blitz_tcp *pair[PROCS][2];
    blitz_task *reader[PROCS];
    (void)arg;
    for (unsigned i = 0; i < PROCS; i++) {
        const blitz_spawn_opts there = {.proc = BLITZ_ON_PROC(i)};
        CHECK_EQ(blitz_unix_pair(pair[i]), 0);
        CHECK_EQ(blitz_spawn(reads_five, pair[i][1], &there, &reader[i]), 0);
        t_until_waits(reader[i]);
    }
    for (int i = 0; i < PROCS; i++) {
        CHECK_EQ(blitz_tcp_write_all(pair[i][0], "hello", 5, NULL, soon()), 0);
        CHECK_EQ(t_join(reader[i]), 0);
        t_close_both(pair[i]);
    }
    return 0;
}

/* A file opened before descriptors ran out can be waited for, on any proc. */
TEST(io_owed, bug_19_a_proc_that_cannot_open_a_backend_uses_another_s)
{
    static const char *const keepers[] = {"epoll", "poll"};
    bz_io_fault = only_one;
    for (size_t i = 0; i < BZ_ARRAY_LEN(keepers); i++) {
        bz_store_relaxed(&opened, 0); /* relaxed: no file is open yet */
        t_watch("%s", keepers[i]);
        CHECK_EQ(
            blitz_run(on_every_proc, NULL, &(blitz_runtime_opts){.procs = 3, .io = keepers[i]}), 0);
        CHECK_GE(bz_load_relaxed(&opened), 2u); /* relaxed: counted */
    }
}
