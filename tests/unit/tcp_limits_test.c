/* Streams when something runs out or fails: descriptors, memory, any system call. */
#include "harness.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "io/attempt.h"
#include "support/alone.h"
#include "support/net.h"
#include "support/on_each.h"

static blitz_deadline soon(void)
{
    return blitz_after(20 * BLITZ_S);
}

/* ---- calls, counted or failed ---- */

static bz_atomic(uint64_t) calls;   /* relaxed: counted, or compared with its own order */
static bz_atomic(uint64_t) accepts; /* relaxed: counted */
static uint64_t fail_at;            /* this call and */
static uint64_t fail_every;         /* each so many after it; 0: it alone */
static int fail_with;

static int count_accepts(const char *call)
{
    if (strcmp(call, "accept") == 0)
        bz_fetch_add_relaxed(&accepts, 1); /* relaxed: as above */
    return 0;
}

static int fail_one(const char *call)
{
    uint64_t n = bz_fetch_add_relaxed(&calls, 1) + 1; /* relaxed: as above */
    bool fails = n == fail_at || (fail_every > 0 && n > fail_at && n % fail_every == 0);
    if (strcmp(call, "accept") == 0 && fail_with == ECONNRESET)
        return 0; /* it never says so */
    return fails ? fail_with : 0;
}

/* ---- descriptors run out ---- */

enum { CLIENTS = 30, SPARE = 5 };

struct crowd {
    blitz_tcp_listener *listener;
    blitz_chan *taken; /* of blitz_tcp * */
    bool is_future;
};

static int accept_one(struct crowd *c, blitz_tcp **out)
{
    blitz_net_future f;
    if (!c->is_future)
        return blitz_tcp_accept(c->listener, out, NULL, BLITZ_FOREVER);
    blitz_tcp_accept_future_init(&f, c->listener);
    int err = blitz_await(&f.future, BLITZ_FOREVER);
    *out = f.tcp;
    return err != 0 ? err : (int)f.result;
}

static int takes_them(void *arg)
{
    struct crowd *c = arg;
    blitz_tcp *t;
    for (int i = 0; i < CLIENTS; i++) {
        CHECK_EQ(accept_one(c, &t), 0);
        CHECK_EQ(blitz_chan_send(c->taken, &t, BLITZ_FOREVER), 0);
    }
    return 0;
}

/* From here on so many more descriptors may be opened. */
static void leave_descriptors(unsigned more)
{
    struct rlimit limit;
    int next = dup(0);
    CHECK_GE(next, 0); /* the lowest that is free */
    close(next);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = (rlim_t)next + more;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    CHECK_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (uint64_t)t.tv_sec * BLITZ_S + (uint64_t)t.tv_nsec;
}

/* 64 descriptors, and more connections than that. */
static int run_out(void *arg)
{
    struct crowd c = {.is_future = arg != NULL};
    blitz_tcp *client[CLIENTS], *t;
    blitz_addr at;
    c.listener = t_listen(&at);
    CHECK_EQ(blitz_chan_new(sizeof t, BLITZ_UNBOUNDED, NULL, &c.taken), 0);
    for (int i = 0; i < CLIENTS; i++)
        CHECK_EQ(blitz_tcp_connect(&at, &client[i], soon()), 0);
    CHECK_EQ(blitz_tcp_accept(c.listener, &t, NULL, soon()), 0); /* all is open */
    blitz_tcp_close(t);
    CHECK_EQ(blitz_tcp_connect(&at, &t, soon()), 0);
    leave_descriptors(SPARE);

    bz_store_relaxed(&accepts, 0); /* relaxed: no task accepts yet */
    uint64_t from = blitz_now(), cpu = cpu_ns();
    blitz_task *task = t_spawn(takes_them, &c);
    CHECK_EQ(blitz_sleep(250 * BLITZ_MS), 0);
    uint64_t wall = blitz_now() - from;
    CHECK_LE(bz_load_relaxed(&accepts), SPARE + 8 + wall / (50 * BLITZ_MS)); /* relaxed: counted */
    CHECK_LT(cpu_ns() - cpu, wall / 2);

    for (int i = 0; i < CLIENTS; i++) { /* as they go, others come */
        blitz_tcp *taken;
        CHECK_EQ(blitz_chan_recv(c.taken, &taken, soon()), 0);
        blitz_tcp_close(taken);
    }
    CHECK_EQ(t_join(task), 0);
    for (int i = 0; i < CLIENTS; i++)
        blitz_tcp_close(client[i]);
    blitz_tcp_close(t);
    blitz_chan_unref(c.taken);
    blitz_tcp_listener_close(c.listener);
    return 0;
}

/* joyent/libuv#690: EMFILE makes accept spin. */
TEST(tcp_limits, bug_19_without_descriptors_accept_naps_and_comes_back)
{
    bz_io_fault = count_accepts;
    CHECK_EQ(blitz_run(run_out, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}

TEST(tcp_limits, bug_19_and_so_does_its_future)
{
    bz_io_fault = count_accepts;
    CHECK_EQ(blitz_run(run_out, &(char){1}, &(blitz_runtime_opts){.procs = 2}), 0);
}

static int napping_accept(void *arg)
{
    blitz_tcp *t;
    return blitz_tcp_accept(arg, &t, NULL, BLITZ_FOREVER);
}

static int no_descriptors(const char *call)
{
    return strcmp(call, "accept") == 0 ? EMFILE : 0;
}

/* With a completion backend the kernel makes the call: the test hook is not called. */
static void needs_faults(void)
{
    const char *keeper = getenv("BLITZ_IO");
    if (keeper != NULL && strcmp(keeper, "uring") == 0)
        t_skip("the kernel accepts by itself");
}

/* While it naps, deadlines and cancels are heeded. */
static int nap_ends(void *arg)
{
    blitz_addr at;
    blitz_tcp_listener *l = t_listen(&at);
    blitz_tcp *client, *t;
    (void)arg;
    CHECK_EQ(blitz_tcp_connect(&at, &client, soon()), 0);
    bz_io_fault = no_descriptors;
    CHECK_EQ(blitz_tcp_accept(l, &t, NULL, blitz_after(30 * BLITZ_MS)), -ETIMEDOUT);
    blitz_task *task = t_spawn(napping_accept, l);
    t_until_waits(task);
    blitz_task_cancel(task);
    CHECK_EQ(t_join(task), -ECANCELED);
    bz_io_fault = NULL;
    CHECK_EQ(blitz_tcp_accept(l, &t, NULL, soon()), 0);
    blitz_tcp_close(t);
    blitz_tcp_close(client);
    blitz_tcp_listener_close(l);
    return 0;
}

TEST(tcp_limits, a_napping_accept_is_ended_by_a_deadline_or_a_cancel)
{
    needs_faults();
    CHECK_EQ(t_run_alone(nap_ends, NULL), 0);
}

/* ---- a herd ---- */

static int accepts_until_closed(void *arg)
{
    blitz_tcp *t;
    int n = 0;
    for (; blitz_tcp_accept(arg, &t, NULL, BLITZ_FOREVER) == 0; n++)
        blitz_tcp_close(t);
    blitz_tcp_listener_unref(arg);
    return n;
}

static int herd(void *arg)
{
    enum { ACCEPTORS = 32, CONNECTIONS = 100 };
    blitz_task *task[ACCEPTORS];
    blitz_addr at;
    blitz_tcp_listener *l = t_listen(&at);
    int sum = 0;
    char c;
    (void)arg;
    for (int i = 0; i < ACCEPTORS; i++) {
        task[i] = t_spawn(accepts_until_closed, blitz_tcp_listener_ref(l));
        t_until_waits(task[i]);
    }
    bz_store_relaxed(&accepts, 0); /* relaxed: all of them wait */
    for (int i = 0; i < CONNECTIONS; i++) {
        blitz_tcp *t;
        CHECK_EQ(blitz_tcp_connect(&at, &t, soon()), 0);
        CHECK_EQ(blitz_tcp_read(t, &c, 1, soon()), 0);
        blitz_tcp_close(t);
    }
    uint64_t tries = bz_load_relaxed(&accepts); /* relaxed: counted */
    t_note("%d acceptors: %.2f tries an accept", (int)ACCEPTORS, (double)tries / CONNECTIONS);
    CHECK_LE(tries, 4u * CONNECTIONS);
    blitz_tcp_listener_close(l);
    for (int i = 0; i < ACCEPTORS; i++)
        sum += t_join(task[i]);
    CHECK_EQ(sum, CONNECTIONS);
    return 0;
}

/* gunicorn#792: each connection wakes all acceptors. */
TEST(tcp_limits, bug_20_a_connection_wakes_few_of_many_acceptors)
{
    bz_io_fault = count_accepts;
    t_on_each(herd, NULL, 0);
}

/* ---- any call fails ---- */

static int echoes(void *arg)
{
    blitz_tcp *t = arg;
    char buffer[100];
    int64_t n;
    while ((n = blitz_tcp_read(t, buffer, sizeof buffer, soon())) > 0)
        if ((n = blitz_tcp_write_all(t, buffer, (size_t)n, NULL, soon())) != 0)
            break;
    blitz_tcp_close(t);
    return (int)n;
}

static int converse(blitz_tcp *t)
{
    char out[200], in[200];
    memset(out, 7, sizeof out);
    int err = blitz_tcp_write_all(t, out, sizeof out, NULL, soon());
    if (err == 0)
        err = blitz_tcp_read_exact(t, in, sizeof in, NULL, soon());
    if (err == 0)
        CHECK_MEM_EQ(in, out, sizeof in);
    if (err == 0)
        err = blitz_tcp_shutdown(t, BLITZ_WRITABLE);
    return err;
}

/* Everything a client and a server do, each step of which may fail. */
static int whole_story(void *arg)
{
    blitz_addr at = blitz_addr_loopback_v4(0);
    blitz_tcp_listener *l = NULL;
    blitz_tcp *client = NULL, *server = NULL;
    blitz_task *task = NULL;
    (void)arg;
    int err = blitz_tcp_listen(&at, NULL, &l);
    if (err == 0)
        err = blitz_tcp_listener_local(l, &at);
    if (err == 0)
        err = blitz_tcp_connect(&at, &client, soon());
    if (err == 0)
        err = blitz_tcp_set_nodelay(client, true);
    if (err == 0)
        err = blitz_tcp_accept(l, &server, NULL, soon());
    if (err == 0)
        task = t_spawn(echoes, server);
    if (err == 0)
        err = converse(client);
    blitz_tcp_close(client);
    blitz_tcp_listener_close(l);
    if (task != NULL) {
        int served = t_join(task);
        err = err != 0 ? err : served;
    }
    return err;
}

TEST(tcp_limits, every_call_may_fail_and_nothing_is_left_open)
{
    static const int errors[] = {ENOMEM, ECONNRESET, EMFILE};
    CHECK_EQ(blitz_run(whole_story, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
    unsigned fds = t_open_fds(), failed = 0;
    bz_io_fault = fail_one;
    for (size_t i = 0; i < BZ_ARRAY_LEN(errors); i++) {
        fail_with = errors[i];
        for (fail_at = 1;; fail_at++) {
            bz_store_relaxed(&calls, 0); /* relaxed: no other thread runs */
            int err = blitz_run(whole_story, NULL, &(blitz_runtime_opts){.procs = 2});
            t_watch("call %u fails with %d: %d", (unsigned)fail_at, errors[i], err);
            CHECK_EQ(t_open_fds(), fds);
            if (bz_load_relaxed(&calls) < fail_at) /* relaxed: no other thread runs */
                break;
            CHECK_LE(err, 0);
            failed += err != 0;
            CHECK_LT(fail_at, 1000u);
        }
    }
    CHECK_GT(failed, 20u);
}

/* And again and again, while it goes on. */
TEST(tcp_limits, every_n_th_call_may_fail_and_nothing_is_left_open)
{
    CHECK_EQ(blitz_run(whole_story, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
    unsigned fds = t_open_fds();
    bz_io_fault = fail_one;
    fail_with = ENOBUFS;
    for (fail_every = 2; fail_every < 40; fail_every++) {
        bz_store_relaxed(&calls, 0); /* relaxed: no other thread runs */
        fail_at = fail_every;
        (void)blitz_run(whole_story, NULL, &(blitz_runtime_opts){.procs = 2});
        CHECK_EQ(t_open_fds(), fds);
    }
}

/* ---- a descriptor that the kernel does not watch ---- */

static int refuse_to_watch(const char *call)
{
    return strcmp(call, "epoll_ctl") == 0 ? ENOSPC : 0;
}

static int wait_in_vain(void *arg)
{
    blitz_addr at;
    blitz_tcp *t, *end[2];
    char byte;
    struct crowd c = {.listener = t_listen(&at)};
    (void)arg;
    CHECK_EQ(blitz_unix_pair(end), 0);
    CHECK_EQ(accept_one(&c, &t), -ENOSPC);
    c.is_future = true;
    CHECK_EQ(accept_one(&c, &t), -ENOSPC);
    CHECK_EQ(blitz_tcp_read(end[0], &byte, 1, BLITZ_FOREVER), -ENOSPC);
    blitz_tcp_unref(end[0]);
    blitz_tcp_unref(end[1]);
    blitz_tcp_listener_unref(c.listener);
    return 0;
}

/* The first wait for a descriptor adds it to the set of the proc. If the set is full, the caller must hear of that: to try
 * again would never end. */
TEST(tcp_limits, a_wait_for_a_descriptor_that_is_not_watched_is_an_error)
{
    bz_io_fault = refuse_to_watch;
    CHECK_EQ(blitz_run(wait_in_vain, NULL, &(blitz_runtime_opts){.procs = 1, .io = "epoll"}), 0);
}
