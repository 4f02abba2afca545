/*
 * The kqueue backend (io/kqueue.c) on simulated queues of kevents, in virtual time: what queues do and epoll does not. The
 * scenes of sim_net, sim_net_wild and sim_net_fair run on it, too.
 */
#include "blitz/fd.h"
#include "blitz/unix.h"
#include "io/attempt.h"
#include "io/poll.h"
#include "io/sock.h"
#include "io/sys_queues.h"
#include "support/net.h"
#include "support/net_sim.h"

/* A scene on this backend alone, on one to four procs. */
static void on_queues(int (*fn)(void *), struct bz_sim_net_config net, uint64_t seeds)
{
    struct bz_sim_net_books sum = {0};
    for (uint64_t i = 0, n = sim_seeds(seeds); i < n; i++)
        net_on_keeper(fn, NULL, net, 1, 4, "kqueue", &sum);
    t_note("%llu seeds, %llu told", (unsigned long long)sim_seeds(seeds),
           (unsigned long long)sum.told);
}

static int ask_for_the_name(void *arg)
{
    (void)arg;
    CHECK_STR_EQ(bz_machine_self()->rt->procs[0].poll.ops->name, "kqueue");
    return 0;
}

TEST(kqueue, a_runtime_that_asks_for_it_gets_it)
{
    on_queues(ask_for_the_name, (struct bz_sim_net_config){.is_calm = true}, 2);
}

/* ---- one registration a descriptor ---- */

enum { LOOKERS = 3 };

static int look(void *arg)
{
    const blitz_fd *fd = arg;
    CHECK_EQ(blitz_sleep(net_dice(2) * net_dice(20000)), 0);
    CHECK_GE(blitz_fd_wait(*fd, BLITZ_READABLE, BLITZ_FOREVER), 0);
    return 0;
}

/* A program waits for its own descriptor in several tasks. Each wait is a file of its own, with one descriptor: the queue
 * has room for one of them. */
static int look_together(void *arg)
{
    blitz_tcp *end[2];
    blitz_task *looker[LOOKERS];
    blitz_fd fd;
    (void)arg;
    CHECK_EQ(blitz_unix_pair(end), 0);
    CHECK_EQ(blitz_tcp_release(end[0], &fd), 0);
    for (int i = 0; i < LOOKERS; i++)
        looker[i] = t_spawn(look, &fd);
    CHECK_EQ(blitz_sleep(net_dice(2) * BLITZ_MS), 0);
    CHECK_EQ(blitz_tcp_write(end[1], "x", 1, BLITZ_FOREVER), 1);
    for (int i = 0; i < LOOKERS; i++)
        t_join(looker[i]);
    CHECK_EQ(bz_sys->close(fd), 0);
    blitz_tcp_close(end[1]);
    return 0;
}

TEST(kqueue, every_task_that_waits_for_one_descriptor_is_woken)
{
    on_queues(look_together, (struct bz_sim_net_config){0}, 120);
}

/* ---- events of a descriptor whose number is used again ---- */

static int wait_and_hear_nothing(void *arg)
{
    blitz_tcp *t = arg;
    char c;
    int64_t n = blitz_tcp_try_read(t, &c, 1); /* a new file counts as ready until a try */
    CHECK(n == -EAGAIN || n == -EBADF);
    CHECK_EQ(blitz_tcp_wait(t, BLITZ_READABLE, BLITZ_FOREVER), -EBADF);
    blitz_tcp_unref(t);
    return 0;
}

static int write_at_some_time(void *arg)
{
    CHECK_EQ(blitz_sleep(net_dice(2) * net_dice(20000)), 0);
    int64_t n = blitz_tcp_write(arg, "x", 1, BLITZ_FOREVER);
    CHECK(n == 1 || n == -EBADF || n == -EPIPE || n == -ECONNRESET);
    blitz_tcp_unref(arg);
    return 0;
}

static int wait_for_anything(void *arg)
{
    int err = blitz_tcp_wait(arg, BLITZ_READABLE, BLITZ_FOREVER);
    CHECK(err == 0 || err == -EBADF);
    blitz_tcp_unref(arg);
    return 0;
}

/* A pair that is closed while its event is on the way, and then one with the same numbers in which nothing happens. */
static int close_under_an_event(void *arg)
{
    (void)arg;
    for (int round = 0; round < 12; round++) {
        blitz_tcp *loud[2], *quiet[2];
        CHECK_EQ(blitz_unix_pair(loud), 0);
        blitz_task *waiter = t_spawn(wait_for_anything, blitz_tcp_ref(loud[0]));
        blitz_task *writer = t_spawn(write_at_some_time, blitz_tcp_ref(loud[1]));
        CHECK_EQ(blitz_sleep(net_dice(20000)), 0);
        t_close_both(loud);
        t_join(waiter); /* the descriptors are closed with the last call on them */
        CHECK_EQ(blitz_unix_pair(quiet), 0);
        blitz_task *hears = t_spawn(wait_and_hear_nothing, blitz_tcp_ref(quiet[0]));
        t_join(writer);
        CHECK_EQ(blitz_sleep(50000), 0);
        blitz_tcp_close(quiet[0]);
        t_join(hears);
        blitz_tcp_close(quiet[1]);
    }
    return 0;
}

/* The wait trusts its event and makes no call to check, so a stale one would be seen. */
TEST(kqueue, bug_14_a_late_event_does_not_reach_the_next_file_with_that_descriptor)
{
    on_queues(close_under_an_event, (struct bz_sim_net_config){0}, 200);
}

/* ---- no memory, no descriptors ---- */

static unsigned fail_in; /* the n-th call of the backend from here on fails; 0: none */

static int fail_once(const char *call)
{
    if (fail_in == 0 || (strcmp(call, "kqueue") != 0 && strcmp(call, "kevent") != 0))
        return 0;
    return --fail_in == 0 ? ENOMEM : 0;
}

static int fail_each_call(void *arg)
{
    char c;
    (void)arg;
    for (unsigned at = 1; at <= 4; at++) {
        blitz_tcp *end[2];
        CHECK_EQ(blitz_unix_pair(end), 0);
        fail_in = at;
        int64_t n = blitz_tcp_read(end[0], &c, 1, blitz_after(1000));
        CHECK(n == -ENOMEM || n == -ETIMEDOUT);
        fail_in = 0;
        CHECK_EQ(blitz_tcp_read(end[0], &c, 1, blitz_after(1000)), -ETIMEDOUT);
        CHECK_EQ(blitz_tcp_write(end[1], "x", 1, BLITZ_FOREVER), 1);
        CHECK_EQ(blitz_tcp_read(end[0], &c, 1, BLITZ_FOREVER), 1);
        t_close_both(end);
    }
    return 0;
}

TEST(kqueue, a_call_that_fails_is_an_error_of_that_operation_alone)
{
    bz_io_fault = fail_once;
    on_queues(fail_each_call, (struct bz_sim_net_config){0}, 20);
    bz_io_fault = NULL;
}

/* ---- the backend alone, on plain threads ---- */

struct alone {
    const struct bz_os *os;
    struct bz_files files;
    struct bz_poll poll;
    bz_atomic(bool) is_over;
};

/* A thread with its own reaped list. */
struct ear {
    struct alone *a;
    struct bz_os_thread thread;
    struct bz_reaped reaped;
};

static void alone_begin(struct alone *a, const struct bz_os *os, bool is_calm)
{
    struct bz_sim_net_config config = {.is_calm = is_calm};
    CHECK_EQ(bz_sim_net_begin(os, &config), 0);
    a->os = os;
    bz_atomic_init(&a->is_over, false);
    bz_files_init(&a->files, os, &bz_allocator_libc);
    CHECK(bz_poll_kqueue != NULL && bz_poll_kqueue->is_there());
    bz_poll_kqueue->init(&a->poll, os, &a->files);
}

static void alone_end(struct alone *a)
{
    bz_poll_fini(&a->poll);
    CHECK_EQ(bz_files_fini(&a->files), 0u);
    CHECK_EQ(bz_sim_net_end().fds, 0u);
}

/* A pair, of which the first end is a file in the queue that has nothing to read. */
static struct bz_file *watch(struct alone *a, int fd[2])
{
    struct bz_file *f;
    CHECK_EQ(bz_sock_pair(true, fd), 0);
    CHECK_EQ(bz_file_open(&a->files, fd[0], BZ_FILE_STREAM, &f), 0);
    bz_file_lock(f);
    bz_half_set_ready(&f->half[BZ_SIDE_IN], false);
    CHECK_EQ(bz_poll_attach(&a->poll, f), 0);
    bz_file_unlock(f);
    return f;
}

static void pass_time(const struct bz_os *os, uint64_t ns)
{
    bz_os_word word = 0;
    uint64_t until = bz_os_now(os) + ns;
    while (bz_os_wait(os, &word, 0, until) != -ETIMEDOUT)
        ;
}

static void deliver_all(struct ear *e)
{
    struct bz_wake wakes[BZ_SIDES];
    while (bz_poll_deliver(&e->a->poll, &e->reaped, wakes))
        ;
    e->reaped.count = e->reaped.at = 0;
}

static void sleep_until_roused(void *arg)
{
    struct ear *e = arg;
    while (!bz_poll_was_roused(&e->a->poll)) {
        (void)bz_poll_wait(&e->a->poll, BZ_OS_FOREVER, &e->reaped);
        deliver_all(e);
    }
}

static void look_now_and_then(void *arg)
{
    struct ear *e = arg;
    while (!bz_load_relaxed(&e->a->is_over)) { /* relaxed: a flag */
        bz_poll_reap(&e->a->poll, &e->reaped);
        deliver_all(e);
        pass_time(e->a->os, 1 + net_dice(5000));
    }
}

/* Two machines may be in one wait: the one that lost its proc, and the new one. A third thread looks meanwhile. */
static void rouse_two(const struct bz_os *os, void *arg)
{
    static struct alone a;
    static struct ear sleeper[2], looker;
    int fd[2];
    (void)arg;
    alone_begin(&a, os, true); /* no interrupted wait helps a thread out */
    struct bz_file *f = watch(&a, fd);
    bz_poll_prepare(&a.poll); /* the first file has roused it */
    for (int i = 0; i < 2; i++) {
        sleeper[i] = (struct ear){.a = &a};
        CHECK_EQ(bz_os_thread_start(os, &sleeper[i].thread, NULL, sleep_until_roused, &sleeper[i]),
                 0);
    }
    looker = (struct ear){.a = &a};
    CHECK_EQ(bz_os_thread_start(os, &looker.thread, NULL, look_now_and_then, &looker), 0);
    pass_time(os, 1 + net_dice(100000));
    bz_poll_rouse(&a.poll);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(bz_os_thread_join(os, &sleeper[i].thread), 0);
    bz_store_relaxed(&a.is_over, true); /* relaxed: a flag */
    CHECK_EQ(bz_os_thread_join(os, &looker.thread), 0);
    bz_file_close(f, NULL, NULL);
    bz_sock_close(fd[1]);
    alone_end(&a);
}

TEST(kqueue, a_kick_ends_every_wait_in_progress)
{
    t_sim_each_seed(200, rouse_two, NULL);
}

static void close_as_events_come(const struct bz_os *os, void *arg)
{
    enum { ROUNDS = 20 };
    static struct alone a;
    static struct ear looker[2];
    int fd[2];
    (void)arg;
    alone_begin(&a, os, false);
    for (int i = 0; i < 2; i++) {
        looker[i] = (struct ear){.a = &a};
        CHECK_EQ(bz_os_thread_start(os, &looker[i].thread, NULL, look_now_and_then, &looker[i]), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        struct bz_file *f = watch(&a, fd);
        int first = fd[0];
        while (bz_sys->send(fd[1], "x", 1, 0) != 1) /* a signal */
            ;
        pass_time(os, 1 + net_dice(8000));
        bz_file_close(f, NULL, NULL);
        bz_sock_close(fd[1]);
        f = watch(&a, fd);
        CHECK_EQ(fd[0], first); /* the number is used again */
        pass_time(os, 20000);
        CHECK(!bz_half_is_worth_a_try(&f->half[BZ_SIDE_IN]));
        bz_file_close(f, NULL, NULL);
        bz_sock_close(fd[1]);
    }
    bz_store_relaxed(&a.is_over, true); /* relaxed: a flag */
    for (int i = 0; i < 2; i++)
        CHECK_EQ(bz_os_thread_join(os, &looker[i].thread), 0);
    alone_end(&a);
}

/* Between the call that gathers an event and its delivery, the descriptor may have another file. */
TEST(kqueue, bug_14_an_event_that_was_gathered_before_a_close_marks_no_other_file)
{
    t_sim_each_seed(200, close_as_events_come, NULL);
}

/* ---- filters that are refused ---- */

static const struct bz_sys_queues *real_queues;
static int refused_with; /* the filter for writing is refused with this errno; 0: it is not */

static int refusing_kevent(int queue, const struct bz_kevent *changes, int change_count,
                           struct bz_kevent *events, int room, const struct timespec *left)
{
    for (int i = 0; i < change_count; i++) {
        bool is_refused = refused_with != 0 && changes[i].filter == BZ_FILTER_WRITE &&
                          (changes[i].flags & BZ_EV_ADD);
        if (!is_refused)
            continue;
        if (real_queues->kevent(queue, changes, i, NULL, 0, NULL) ==
            0) /* those before it are made */
            errno = refused_with;
        return -1;
    }
    return real_queues->kevent(queue, changes, change_count, events, room, left);
}

static void refuse_a_filter(const struct bz_os *os, void *arg)
{
    static struct alone a;
    static struct ear ear;
    static struct bz_sys_queues refusing;
    struct bz_file *f;
    int fd[2];
    (void)arg;
    alone_begin(&a, os, true);
    real_queues = bz_sys_queues;
    refusing = (struct bz_sys_queues){.kqueue = real_queues->kqueue, .kevent = refusing_kevent};
    bz_sys_queues = &refusing;
    CHECK_EQ(bz_sock_pair(true, fd), 0);
    CHECK_EQ(bz_file_open(&a.files, fd[0], BZ_FILE_STREAM, &f), 0);
    bz_file_lock(f);

    refused_with = ENOMEM;
    CHECK_EQ(bz_poll_attach(&a.poll, f), -ENOMEM);
    refused_with = EINVAL;
    CHECK_EQ(bz_poll_attach(&a.poll, f), 0); /* not -EEXIST: the first try left nothing */
    refused_with = 0;

    CHECK(bz_half_is_over(&f->half[BZ_SIDE_OUT]));
    CHECK(!bz_half_is_over(&f->half[BZ_SIDE_IN]));
    bz_file_unlock(f);
    while (bz_sys->send(fd[1], "x", 1, 0) != 1)
        ;
    ear = (struct ear){.a = &a};
    bz_half_set_ready(&f->half[BZ_SIDE_IN], false);
    bz_poll_prepare(&a.poll);
    while (!bz_half_is_ready(&f->half[BZ_SIDE_IN])) {
        (void)bz_poll_wait(&a.poll, BZ_OS_FOREVER, &ear.reaped);
        deliver_all(&ear);
    }
    bz_file_close(f, NULL, NULL); /* one of the two registrations is missing */
    bz_sock_close(fd[1]);
    bz_sys_queues = real_queues;
    alone_end(&a);
}

TEST(kqueue, a_descriptor_without_one_filter_is_always_ready_on_that_side)
{
    t_sim_each_seed(20, refuse_a_filter, NULL);
}
