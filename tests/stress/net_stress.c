/*
 * Connections by the thousand on real threads: random cancels, deadlines, half-closes, resets, slow
 * readers and closes by others, in fibers and stackless tasks. Both sides count and hash their
 * bytes: the bytes that one side reports as written are a prefix of the bytes that the other side
 * can read.
 *
 * Bytes are conserved so: every stream is a function of its seed, so a reader knows byte i of it. A
 * cancelled writer knows its progress (`done`) and continues from there; so does a reader. A
 * connection that ended normally carried exactly the written bytes.
 */
#include "harness.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "io/sockaddr.h"
#include "support/net.h"
#include "support/resident.h"
#include "support/sanitizers.h"

static blitz_deadline soon(void)
{
    return blitz_after(60 * BLITZ_S);
}

/* Byte i of the stream of that seed. */
static uint8_t byte_of(uint64_t seed, uint64_t i)
{
    uint64_t x = (seed + i / 8) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint8_t)((x ^ x >> 29) >> (8 * (i % 8)));
}

static void fill(uint8_t *data, size_t bytes, uint64_t seed, uint64_t from)
{
    for (size_t i = 0; i < bytes; i++)
        data[i] = byte_of(seed, from + i);
}

static uint64_t hash_of(uint64_t hash, const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* One direction of one connection. */
struct flow {
    blitz_tcp *tcp;
    uint64_t seed, bytes; /* to be sent in all */
    uint64_t sent, received, sent_hash, received_hash;
    bool is_slow, is_reset;
    int error;
};

static struct t_rng rng_of(const struct flow *f, uint64_t which)
{
    return t_rng_of(f->seed * 4 + which);
}

static blitz_deadline patience(struct t_rng *r)
{
    uint64_t k = t_rng_below(r, 8);
    return k == 0 ? 0 : k < 4 ? blitz_after(t_rng_below(r, 300) * BLITZ_US) : soon();
}

static bool is_given_up(int64_t err)
{
    return err == -ETIMEDOUT || err == -ECANCELED;
}

/* ---- writing, by all the ways there are ---- */

static int64_t write_some(struct flow *f, struct t_rng *r, const uint8_t *data, size_t bytes)
{
    blitz_net_future net;
    size_t done = 0;
    blitz_deadline until = patience(r);
    switch (t_rng_below(r, 4)) {
    case 0:
        return blitz_tcp_write(f->tcp, data, bytes, until);
    case 1: {
        blitz_piece p[2] = {{(void *)data, bytes / 2},
                            {(void *)(data + bytes / 2), bytes - bytes / 2}};
        return blitz_tcp_writev(f->tcp, p, 2, until);
    }
    case 2: {
        int err = blitz_tcp_write_all(f->tcp, data, bytes, &done, until);
        return done > 0 ? (int64_t)done : err;
    }
    default:
        blitz_tcp_write_all_future_init(&net, f->tcp, data, bytes);
        (void)!blitz_await(&net.future, until);
        return net.done > 0 ? (int64_t)net.done : net.result;
    }
}

static int writes(void *arg)
{
    struct flow *f = arg;
    struct t_rng r = rng_of(f, 0);
    uint8_t data[3000];
    while (f->sent < f->bytes) {
        size_t bytes = 1 + t_rng_below(&r, sizeof data - 1);
        bytes = bytes < f->bytes - f->sent ? bytes : f->bytes - f->sent;
        fill(data, bytes, f->seed, f->sent);
        int64_t n = write_some(f, &r, data, bytes);
        if (n == -ECANCELED)
            return -ECANCELED; /* the canceller starts another one */
        if (n < 0 && !is_given_up(n)) {
            f->error = (int)n;
            return 0;
        }
        n = n > 0 ? n : 0;
        f->sent_hash = hash_of(f->sent_hash, data, (size_t)n);
        f->sent += (uint64_t)n;
    }
    (void)blitz_tcp_shutdown(f->tcp, BLITZ_WRITABLE);
    return 0;
}

/* ---- reading ---- */

static int64_t read_some(struct flow *f, struct t_rng *r, uint8_t *data, size_t bytes)
{
    blitz_net_future net;
    size_t done = 0;
    blitz_deadline until = patience(r);
    switch (t_rng_below(r, 4)) {
    case 0:
        return blitz_tcp_read(f->tcp, data, bytes, until);
    case 1: {
        blitz_piece p[2] = {{data, bytes / 2}, {data + bytes / 2, bytes - bytes / 2}};
        return blitz_tcp_readv(f->tcp, p, 2, until);
    }
    case 2: {
        int err = blitz_tcp_read_exact(f->tcp, data, bytes, &done, until);
        return done > 0 ? (int64_t)done : err == -ENODATA ? 0 : err;
    }
    default:
        blitz_tcp_read_future_init(&net, f->tcp, data, bytes);
        (void)!blitz_await(&net.future, until);
        return net.result;
    }
}

static void is_as_sent(const struct flow *f, const uint8_t *data, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        CHECK_EQ(data[i], byte_of(f->seed, f->received + (uint64_t)i));
}

static int reads(void *arg)
{
    struct flow *f = arg;
    struct t_rng r = rng_of(f, 1);
    uint8_t data[3000];
    for (;;) {
        size_t bytes = 1 + t_rng_below(&r, f->is_slow ? 100 : sizeof data - 1);
        int64_t n = read_some(f, &r, data, bytes);
        if (n == -ECANCELED)
            return -ECANCELED;
        if (n > 0)
            is_as_sent(f, data, n);
        if (n > 0) {
            f->received_hash = hash_of(f->received_hash, data, (size_t)n);
            f->received += (uint64_t)n;
        }
        if (n == 0 || (n < 0 && !is_given_up(n))) {
            f->error = n < 0 ? (int)n : f->error;
            return 0;
        }
        if (f->is_slow && t_rng_below(&r, 10) == 0)
            blitz_yield();
    }
}

/* ---- a task that is cancelled now and then, and begun again where it stood ---- */

struct side {
    struct flow *flow;
    int (*fn)(void *);
    uint64_t salt;
};

static int persists(void *arg)
{
    struct side *s = arg;
    struct t_rng r = t_rng_of(s->salt);
    for (;;) {
        int result = 0;
        blitz_task *task = t_spawn(s->fn, s->flow);
        if (t_rng_below(&r, 3) == 0) {
            (void)!blitz_sleep(t_rng_below(&r, 200) * BLITZ_US);
            blitz_task_cancel(task);
        }
        CHECK_EQ(blitz_task_join(task, &result, BLITZ_FOREVER), 0);
        if (result != -ECANCELED)
            return 0;
    }
}

/* Both directions of a connection; one side may reset it in the middle. */
static int one_connection(blitz_tcp *end[2], uint64_t seed)
{
    struct t_rng r = t_rng_of(seed);
    uint64_t bytes = t_rng_below(&r, 20) == 0 ? 300000 : t_rng_below(&r, 20000);
    bool is_reset = t_rng_below(&r, 8) == 0;
    struct flow flow[2] = {{.tcp = end[0], .seed = seed, .bytes = bytes},
                           {.tcp = end[1], .seed = seed + 1, .bytes = bytes / 2}};
    struct flow back[2] = {flow[0], flow[1]};
    struct side side[4];
    blitz_task *task[4];
    for (int i = 0; i < 2; i++) { /* end i writes, the other end reads */
        back[i].tcp = end[!i];
        back[i].is_slow = t_rng_below(&r, 4) == 0;
        side[2 * i] = (struct side){&flow[i], writes, seed + 10 + (uint64_t)i};
        side[2 * i + 1] = (struct side){&back[i], reads, seed + 20 + (uint64_t)i};
    }
    for (int i = 0; i < 4; i++)
        task[i] = t_spawn(persists, &side[i]);
    if (is_reset) {
        (void)!blitz_sleep(t_rng_below(&r, 500) * BLITZ_US);
        (void)blitz_tcp_set_linger(end[0], 0);
        blitz_tcp_close(blitz_tcp_ref(end[0])); /* closed under its users */
    }
    for (int i = 0; i < 4; i++)
        CHECK_EQ(t_join(task[i]), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_LE(back[i].received, flow[i].sent);
        if (is_reset)
            continue;
        CHECK_EQ(flow[i].error, 0);
        CHECK_EQ(back[i].error, 0);
        CHECK_EQ(back[i].received, flow[i].bytes);
        CHECK_EQ(back[i].received_hash, flow[i].sent_hash);
    }
    return (int)(flow[0].sent + flow[1].sent > INT32_MAX);
}

/* ---- many of them ---- */

enum { AT_ONCE = 64 };

static blitz_tcp_listener *listener;
static blitz_addr listening;
static uint64_t rounds, base_seed;
static blitz_mutex pairing = BLITZ_MUTEX_INIT; /* a connect and the accept that belongs to it */

static void connect_pair(blitz_tcp *end[2])
{
    CHECK_EQ(blitz_mutex_lock(&pairing, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_tcp_connect(&listening, &end[0], soon()), 0);
    CHECK_EQ(blitz_tcp_accept(listener, &end[1], NULL, soon()), 0);
    blitz_mutex_unlock(&pairing);
}

static int worker(void *arg)
{
    uint64_t who = (uint64_t)(uintptr_t)arg;
    for (uint64_t i = who; i < rounds; i += AT_ONCE) {
        blitz_tcp *end[2];
        connect_pair(end);
        CHECK_EQ(one_connection(end, base_seed + i * 100), 0);
        t_close_both(end);
    }
    return 0;
}

static int crowd(void *arg)
{
    blitz_task *task[AT_ONCE];
    (void)arg;
    listener = t_listen(&listening);
    for (uint64_t i = 0; i < AT_ONCE; i++)
        task[i] = t_spawn(worker, (void *)(uintptr_t)i);
    for (int i = 0; i < AT_ONCE; i++)
        CHECK_EQ(t_join(task[i]), 0);
    blitz_tcp_listener_close(listener);
    return 0;
}

TEST(net_stress, bug_21_bytes_are_conserved_under_cancels_closes_and_resets)
{
    static const unsigned procs[] = {1, 2, 8};
    unsigned fds = t_open_fds();
    base_seed = t_random() >> 8;
    for (size_t i = 0; i < BZ_ARRAY_LEN(procs); i++) {
        rounds = t_scaled(600);
        CHECK_EQ(blitz_run(crowd, NULL, &(blitz_runtime_opts){.procs = procs[i]}), 0);
        CHECK_EQ(t_open_fds(), fds);
    }
}

/* ---- ten thousand at the same time ---- */

struct idler {
    blitz_frame frame;
    blitz_tcp *tcp;
    blitz_net_future io;
    char byte;
};

/* Without a stack: echo bytes until the end. */
static blitz_poll idler(void *state, blitz_cx *cx)
{
    struct idler *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    for (;;) {
        blitz_tcp_read_future_init(&me->io, me->tcp, &me->byte, 1);
        BLITZ_AWAIT(rc, &me->io.future);
        if (rc != 0 || me->io.result != 1)
            break;
        blitz_tcp_write_all_future_init(&me->io, me->tcp, &me->byte, 1);
        BLITZ_AWAIT(rc, &me->io.future);
        if (rc != 0 || me->io.result != 0)
            break;
    }
    blitz_tcp_close(me->tcp);
    BLITZ_END(0);
}

static void is_answered(blitz_tcp *t, char c)
{
    char back = 0;
    CHECK_EQ(blitz_tcp_write(t, &c, 1, soon()), 1);
    CHECK_EQ(blitz_tcp_read(t, &back, 1, soon()), 1);
    CHECK_EQ(back, c);
}

static int ten_thousand(void *arg)
{
    uint64_t n = (uint64_t)(uintptr_t)arg;
    blitz_tcp **client = calloc(n, sizeof(blitz_tcp *));
    blitz_task **task = calloc(n, sizeof(blitz_task *));
    listener = t_listen(&listening);
    for (uint64_t i = 0; i < n; i++) {
        blitz_tcp *end[2];
        connect_pair(end);
        client[i] = end[0];
        struct idler state = {.tcp = end[1]};
        CHECK_EQ(blitz_spawn_poll(idler, &state, sizeof state, NULL, &task[i]), 0);
    }
    for (uint64_t i = 0; i < n; i++)
        is_answered(client[i], (char)i);
    for (uint64_t i = 0; i < n; i++) {
        if (i % 3 == 0)
            blitz_task_cancel(task[i]);
        else if (i % 3 == 1)
            CHECK_EQ(blitz_tcp_shutdown(client[i], BLITZ_WRITABLE), 0);
        else
            CHECK_EQ(blitz_tcp_set_linger(client[i], 0), 0);
        if (i % 3 == 2)
            blitz_tcp_close(client[i]);
        CHECK_EQ(t_join(task[i]), 0);
        if (i % 3 != 2) {
            char c;
            CHECK_EQ(blitz_tcp_read(client[i], &c, 1, soon()), 0);
            blitz_tcp_close(client[i]);
        }
    }
    blitz_tcp_listener_close(listener);
    free(client);
    free(task);
    return 0;
}

static uint64_t so_many(uint64_t full)
{
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    uint64_t n = t_scaled(full), room = (limit.rlim_cur - 64) / 2;
    n = n < 500 ? 500 : n;
    return n < room ? n : room;
}

TEST(net_stress, ten_thousand_connections_are_answered_and_end_in_three_ways)
{
    uint64_t n = so_many(10000);
    unsigned fds = t_open_fds();
    t_note("%u connections", (unsigned)n);
    CHECK_EQ(blitz_run(ten_thousand, (void *)(uintptr_t)n, &(blitz_runtime_opts){.procs = 2}), 0);
    CHECK_EQ(t_open_fds(), fds);
}

/* ---- memory of an idle connection ---- */

/* Assertions and the plain forms have extra fields. */
#if defined(BZ_PLAIN) || defined(BZ_DEBUG)
enum { IDLE_MAX = 800 };
#else
enum { IDLE_MAX = 600 };
#endif

/* The other end: a descriptor and nothing else. */
static int plain_client(void)
{
    struct bz_sockname s;
    int bytes = bz_sockaddr_of(&listening, &s);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_GE(fd, 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&s, (socklen_t)bytes), 0);
    return fd;
}

static void add_idlers(int *client, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        struct idler state = {.frame = {0, 0}};
        client[i] = plain_client();
        CHECK_EQ(blitz_tcp_accept(listener, &state.tcp, NULL, soon()), 0);
        CHECK_EQ(blitz_spawn_poll(idler, &state, sizeof state, NULL, NULL), 0);
    }
}

static int idle_cost(void *arg)
{
    uint64_t n = (uint64_t)(uintptr_t)arg, first = n / 5;
    int *client = calloc(n, sizeof(int));
    listener = t_listen(&listening);
    memset(client, 1, n * sizeof(int)); /* it is there already */
    add_idlers(client, first);          /* so are pools and tables */
    uint64_t before = t_resident();
    add_idlers(client + first, n - first);
    uint64_t each = (t_resident() - before) / (n - first);
    t_note("%u bytes for an idle connection of a stackless task", (unsigned)each);
    for (uint64_t i = 0; i < n; i++)
        close(client[i]);
    blitz_tcp_listener_close(listener);
    free(client);
    return (int)each;
}

TEST(net_stress, an_idle_connection_of_a_stackless_task_takes_600_bytes_at_most)
{
    uint64_t n = so_many(10000);
    t_no_huge_pages();
    int each = blitz_run(idle_cost, (void *)(uintptr_t)n, &(blitz_runtime_opts){.procs = 1});
    if (T_ASAN || T_TSAN || n < 5000)
        t_skip("too few of them, or a sanitizer's memory");
    CHECK_LE(each, IDLE_MAX);
}

/* ---- closes by other tasks ---- */

static bz_atomic(uint32_t) is_over; /* relaxed: a flag */

static int hammers(void *arg)
{
    blitz_tcp *t = arg;
    char c = 'x';
    while (!bz_load_relaxed(&is_over)) { /* relaxed: a flag */
        int64_t n = blitz_tcp_write(t, &c, 1, blitz_after(50 * BLITZ_US));
        CHECK(n == 1 || n == -ETIMEDOUT || n == -EBADF || n == -EPIPE || n == -ECONNRESET);
        n = blitz_tcp_try_read(t, &c, 1);
        CHECK(n == 1 || n == 0 || n == -EAGAIN || n == -EBADF || n == -ECONNRESET);
        if (n == 1)
            CHECK_EQ(c, 'x');
        (void)blitz_tcp_set_nodelay(t, true);
        blitz_yield();
    }
    blitz_tcp_close(t);
    return 0;
}

/* Handles of closed sockets are used on while others take their places and their numbers: each new
 * connection carries its own byte only. */
static int closed_under(void *arg)
{
    enum { HAMMERS = 6 };
    uint64_t n = (uint64_t)(uintptr_t)arg;
    blitz_task *task[HAMMERS];
    listener = t_listen(&listening);
    bz_store_relaxed(&is_over, 0); /* relaxed: no task runs */
    blitz_tcp *end[2];
    connect_pair(end);
    for (int i = 0; i < HAMMERS; i++)
        task[i] = t_spawn(hammers, blitz_tcp_ref(end[0]));
    for (uint64_t i = 0; i < n; i++) {
        blitz_tcp *fresh[2];
        char c = 0;
        if (i == n / 4)
            t_close_both(end); /* and they continue */
        connect_pair(fresh);
        CHECK_EQ(blitz_tcp_write(fresh[0], "y", 1, soon()), 1);
        CHECK_EQ(blitz_tcp_read(fresh[1], &c, 1, soon()), 1);
        CHECK_EQ(c, 'y');
        CHECK_EQ(blitz_tcp_try_read(fresh[0], &c, 1), -EAGAIN);
        CHECK_EQ(blitz_tcp_try_read(fresh[1], &c, 1), -EAGAIN);
        t_close_both(fresh);
    }
    bz_store_relaxed(&is_over, 1); /* relaxed: a flag */
    for (int i = 0; i < HAMMERS; i++)
        CHECK_EQ(t_join(task[i]), 0);
    blitz_tcp_listener_close(listener);
    return 0;
}

TEST(net_stress, bug_14_a_closed_handle_reaches_no_other_socket)
{
    static const unsigned procs[] = {1, 2, 8};
    for (size_t i = 0; i < BZ_ARRAY_LEN(procs); i++)
        CHECK_EQ(blitz_run(closed_under, (void *)(uintptr_t)t_scaled(1000),
                           &(blitz_runtime_opts){.procs = procs[i]}),
                 0);
}
