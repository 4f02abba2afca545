/* The completion backend alone: a ring, files and operations, without a runtime. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/attempt.h"
#include "io/sys.h"
#include "io/uring.h"
#include "support/net.h"

enum { PAIRS = 80, ROOM = 64 };

/* An operation on one end of a pair. */
struct flight {
    struct bz_op op;
    char data[ROOM];
    int told;
};

struct world {
    struct bz_files files;
    struct bz_poll poll;
    unsigned pairs;
    struct bz_file *file[PAIRS]; /* one end */
    int peer[PAIRS];             /* and the other */
    struct flight flight[PAIRS];
};

/* A waker that counts its wake-ups in an int. */
static void waker_clone(void *count)
{
    (void)count;
}

static void waker_count(void *count)
{
    ++*(int *)count;
}

static const blitz_waker_ops counting = {waker_clone, waker_count, waker_count, waker_clone};

static void world_fini(struct world *w)
{
    for (unsigned i = 0; i < w->pairs; i++) {
        bz_file_close(w->file[i], NULL, NULL); /* no task waits, so none is woken */
        close(w->peer[i]);
    }
    bz_poll_fini(&w->poll);
    CHECK_EQ(bz_files_fini(&w->files), 0u);
}

static int world_try_init(struct world *w, unsigned pairs)
{
    memset(w, 0, sizeof *w);
    bz_files_init(&w->files, &bz_os_system, &bz_allocator_libc);
    int err = bz_poll_uring_init(&w->poll, &bz_os_system, &w->files);
    if (err != 0) {
        CHECK_EQ(bz_files_fini(&w->files), 0u);
        return err;
    }
    w->pairs = pairs;
    for (unsigned i = 0; i < pairs; i++) {
        int fd[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
        CHECK_EQ(bz_file_open(&w->files, fd[0], BZ_FILE_STREAM, &w->file[i]), 0);
        w->peer[i] = fd[1];
    }
    return 0;
}

static void world_init(struct world *w, unsigned pairs)
{
    if (world_try_init(w, pairs) != 0)
        t_skip("no rings on this system");
}

static struct flight *begin(struct world *w, unsigned i, enum bz_op_code code)
{
    struct flight *f = &w->flight[i];
    bz_op_init(&f->op, w->file[i], code);
    f->op.buffer.data = f->data;
    f->op.buffer.bytes = ROOM;
    bz_waiter_init_polled(&f->op.request.waiter);
    f->op.request.waiter.waker = (blitz_waker){&counting, &f->told};
    f->told = 0;
    return f;
}

static void hand_in(struct world *w, struct flight *f)
{
    bz_file_lock(f->op.file);
    CHECK(bz_file_enter(f->op.file, &f->op));
    CHECK_EQ(w->poll.ops->submit(&w->poll, &f->op), 0);
    bz_file_unlock(f->op.file);
}

static struct flight *receive(struct world *w, unsigned i)
{
    struct flight *f = begin(w, i, BZ_OP_RECV);
    memset(f->data, 0x55, sizeof f->data);
    hand_in(w, f);
    return f;
}

static void ask_to_end(struct world *w, struct flight *f)
{
    bz_file_lock(f->op.file);
    if (f->op.state == BZ_OP_IN_FLIGHT)
        w->poll.ops->cancel(&w->poll, &f->op);
    bz_file_unlock(f->op.file);
}

/* One turn: sleep until `until`, and deliver. */
static void turn(struct world *w, uint64_t until)
{
    struct bz_reaped heard = {.count = 0};
    struct bz_wake wakes[BZ_SIDES];
    bz_poll_prepare(&w->poll);
    (void)bz_poll_wait(&w->poll, until, &heard);
    CHECK_LE(heard.count, BZ_HARVEST_MAX);
    while (bz_poll_deliver(&w->poll, &heard, wakes))
        for (int s = 0; s < BZ_SIDES; s++)
            bz_wake_deliver(&wakes[s]);
}

/* Only hand in, and deliver what there is. */
static void glance(struct world *w)
{
    struct bz_reaped heard = {.count = 0};
    struct bz_wake wakes[BZ_SIDES];
    bz_poll_reap(&w->poll, &heard);
    CHECK_LE(heard.count, BZ_HARVEST_MAX);
    while (bz_poll_deliver(&w->poll, &heard, wakes))
        for (int s = 0; s < BZ_SIDES; s++)
            bz_wake_deliver(&wakes[s]);
}

static void until_told(struct world *w, struct flight *f)
{
    while (f->told == 0)
        turn(w, BZ_OS_FOREVER);
}

/* Some kernels have no such buffers, and plain builds use none. */
static void needs_lent(struct world *w, struct flight *under_way)
{
    if (bz_uring_provided(&w->poll)->state == BZ_PROVIDED_THERE)
        return;
    CHECK_EQ(bz_uring_provided(&w->poll)->state, BZ_PROVIDED_REFUSED);
    if (under_way != NULL) {
        ask_to_end(w, under_way);
        until_told(w, under_way);
    }
    world_fini(w);
    t_skip("receives bring their own buffers here");
}

static void got(struct flight *f, const char *text)
{
    CHECK_EQ(f->told, 1);
    CHECK_EQ(f->op.result, (int64_t)strlen(text));
    CHECK_MEM_EQ(f->data, text, strlen(text));
}

static void say(struct world *w, unsigned i, const char *text)
{
    CHECK_EQ(write(w->peer[i], text, strlen(text)), (ssize_t)strlen(text));
}

/* The kernel has taken what was said to that end: none is left in the socket. */
static void until_taken(struct world *w, unsigned i)
{
    int left = 1;
    while (left != 0)
        CHECK_EQ(ioctl(w->file[i]->fd, FIONREAD, &left), 0);
}

static struct world w;

/* ---- buffers ---- */

/* glommio#52: the kernel writes into a buffer whose owner has left. Here it has none of the owner's. */
TEST(uring, bug_15_a_receive_leaves_the_buffer_of_its_owner_alone_until_it_is_heard)
{
    char untouched[ROOM];
    world_init(&w, 1);
    struct flight *f = receive(&w, 0);
    memset(untouched, 0x55, sizeof untouched);
    glance(&w);
    needs_lent(&w, f);

    say(&w, 0, "hello");
    until_taken(&w, 0);
    CHECK_MEM_EQ(f->data, untouched, sizeof untouched);

    until_told(&w, f);
    got(f, "hello");
    CHECK_MEM_EQ(f->data + 5, untouched, sizeof untouched - 5);
    world_fini(&w);
}

TEST(uring, buffers_are_lent_again_once_they_were_read)
{
    world_init(&w, 1);
    for (int i = 0; i < 3 * BZ_PROVIDED_FIRST; i++) {
        struct flight *f = receive(&w, 0);
        glance(&w);
        say(&w, 0, "again");
        until_told(&w, f);
        got(f, "again");
    }
    needs_lent(&w, NULL);
    CHECK_EQ(bz_uring_provided(&w.poll)->served, 3u * BZ_PROVIDED_FIRST);
    CHECK_EQ(bz_uring_provided(&w.poll)->dry, 0u);
    CHECK_EQ(bz_uring_provided(&w.poll)->count, BZ_PROVIDED_FIRST);
    world_fini(&w);
}

/* All of them at once, before any completion is taken. */
static void a_burst(void)
{
    char text[16];
    for (unsigned i = 0; i < w.pairs; i++)
        receive(&w, i);
    glance(&w);
    for (unsigned i = 0; i < w.pairs; i++) {
        (void)snprintf(text, sizeof text, "pair %u", i);
        say(&w, i, text);
    }
    for (unsigned i = 0; i < w.pairs; i++)
        until_told(&w, &w.flight[i]);
    for (unsigned i = 0; i < w.pairs; i++) {
        (void)snprintf(text, sizeof text, "pair %u", i);
        got(&w.flight[i], text);
    }
}

/* libuv#3991: when buffers run out what was to have one is begun again, and next time there are enough. */
TEST(uring, bug_17_more_receives_than_buffers_lose_nothing)
{
    world_init(&w, PAIRS);
    a_burst();
    needs_lent(&w, NULL);
    const struct bz_provided *provided = bz_uring_provided(&w.poll);
    CHECK_GT(provided->dry, 0u);
    CHECK_EQ(provided->count, BZ_PROVIDED_FIRST + provided->dry);
    CHECK_EQ(provided->served, PAIRS - provided->dry);
    for (unsigned round = 0; round < 5; round++)
        a_burst();
    CHECK_LE(provided->count, PAIRS);
    CHECK_GE(provided->served, 5u * PAIRS);
    world_fini(&w);
}

/* Rings with room for two, from here to the end of the case, which has a process of its own. */
static void make_rings_tiny(void)
{
    bz_uring_submissions = bz_uring_completions = 2;
}

TEST(uring, bug_17_a_ring_of_two_entries_serves_a_burst)
{
    make_rings_tiny();
    world_init(&w, PAIRS);
    for (unsigned round = 0; round < 5; round++)
        a_burst();
    world_fini(&w);
}

static int echoes(void *arg)
{
    char data[100];
    int64_t n;
    while ((n = blitz_tcp_read(arg, data, sizeof data, BLITZ_FOREVER)) > 0)
        CHECK_EQ(blitz_tcp_write_all(arg, data, (size_t)n, NULL, BLITZ_FOREVER), 0);
    blitz_tcp_close(arg);
    return (int)n;
}

static int asks(void *arg)
{
    char out[300], in[300];
    for (int i = 0; i < 20; i++) {
        memset(out, i, sizeof out);
        CHECK_EQ(blitz_tcp_write_all(arg, out, sizeof out, NULL, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_tcp_read_exact(arg, in, sizeof in, NULL, BLITZ_FOREVER), 0);
        CHECK_MEM_EQ(in, out, sizeof in);
    }
    blitz_tcp_close(arg);
    return 0;
}

static int a_crowd(void *arg)
{
    enum { CROWD = 20 };
    blitz_task *task[2 * CROWD];
    (void)arg;
    for (int i = 0; i < CROWD; i++) {
        blitz_tcp *end[2];
        t_tcp_pair(end);
        for (int e = 0; e < 2; e++)
            CHECK_EQ(blitz_tcp_set_nodelay(end[e], true), 0);
        task[2 * i] = t_spawn(asks, end[0]);
        task[2 * i + 1] = t_spawn(echoes, end[1]);
    }
    for (int i = 0; i < 2 * CROWD; i++)
        CHECK_EQ(t_join(task[i]), 0);
    return 0;
}

TEST(uring, bug_17_rings_of_two_entries_serve_a_crowd)
{
    make_rings_tiny();
    world_init(&w, 0);
    world_fini(&w);
    for (unsigned procs = 1; procs <= 3; procs++)
        CHECK_EQ(blitz_run(a_crowd, NULL, &(blitz_runtime_opts){.procs = procs, .io = "uring"}), 0);
}

static void receive_with(size_t room, int flags)
{
    static char big[BZ_PROVIDED_BYTES + 1];
    struct flight *f = begin(&w, 0, BZ_OP_RECV);
    f->op.buffer.data = big;
    f->op.buffer.bytes = room;
    f->op.flags = flags;
    say(&w, 0, "12345678");
    hand_in(&w, f);
    until_told(&w, f);
    CHECK_EQ(f->op.result, 8);
    CHECK_MEM_EQ(big, "12345678", 8);
}

TEST(uring, a_peek_one_that_waits_for_all_and_a_long_one_bring_their_own)
{
    char text[8];
    world_init(&w, 1);
    receive_with(BZ_PROVIDED_BYTES, 0);
    unsigned served = bz_uring_provided(&w.poll)->served;
    receive_with(BZ_PROVIDED_BYTES + 1, 0);
    receive_with(8, MSG_WAITALL);
    receive_with(8, MSG_PEEK);
    CHECK_EQ(recv(w.file[0]->fd, text, 8, MSG_DONTWAIT), 8); /* it was still there */
    CHECK_EQ(bz_uring_provided(&w.poll)->served, served);
    needs_lent(&w, NULL);
    CHECK_EQ(served, 1u);
    world_fini(&w);
}

TEST(uring, a_cancelled_operation_has_no_effect_or_reports_it)
{
    char text[ROOM];
    world_init(&w, 1);
    for (int was_said = 0; was_said < 2; was_said++) {
        struct flight *f = receive(&w, 0);
        glance(&w);
        if (was_said) {
            say(&w, 0, "hello");
            until_taken(&w, 0);
        }
        ask_to_end(&w, f);
        until_told(&w, f);
        if (was_said)
            got(f, "hello");
        else
            CHECK_EQ(f->op.result, -ECANCELED);
        say(&w, 0, "later");
        CHECK_EQ(recv(w.file[0]->fd, text, sizeof text, MSG_DONTWAIT), 5);
        CHECK_MEM_EQ(text, "later", 5);
    }
    world_fini(&w);
}

/* ---- calls ---- */

static bz_atomic(unsigned) enters; /* calls made since it was set to 0 */
static unsigned fail_at;           /* the call that fails, by number over all names; 0: none */
static int fail_with;
static bz_atomic(unsigned) calls;

static int count_and_fail(const char *call)
{
    if (strcmp(call, "io_uring_enter") == 0)
        bz_fetch_add_relaxed(&enters, 1);             /* relaxed: a count */
    unsigned n = bz_fetch_add_relaxed(&calls, 1) + 1; /* relaxed: a count */
    return n == fail_at ? fail_with : 0;
}

static void count_from_here(void)
{
    bz_store_relaxed(&enters, 0); /* relaxed: no other thread runs */
    bz_store_relaxed(&calls, 0);  /* relaxed: likewise */
    bz_io_fault = count_and_fail;
}

static unsigned entered(void)
{
    return bz_load_relaxed(&enters); /* relaxed: a count */
}

TEST(uring, a_turn_is_one_call)
{
    fail_at = 0;
    world_init(&w, 4);
    for (unsigned i = 0; i < 3; i++)
        receive(&w, i);
    glance(&w); /* buffers are made with the first */
    for (unsigned i = 0; i < 3; i++) {
        say(&w, i, "first");
        until_told(&w, &w.flight[i]);
    }
    for (unsigned i = 0; i < 3; i++)
        receive(&w, i);
    count_from_here();
    turn(&w, bz_os_now(&bz_os_system) + 1000000); /* hands in, and sleeps for nothing */
    CHECK_EQ(entered(), BZ_RING_IS_PLAIN ? 2u : 1u);

    for (unsigned i = 0; i < 2; i++) {
        say(&w, i, "second");
        until_taken(&w, i);
    }
    hand_in(&w, begin(&w, 3, BZ_OP_SEND)); /* one to hand in, and something to hear */
    count_from_here();
    turn(&w, BZ_OS_FOREVER);
    CHECK_EQ(entered(), 1u);
    bz_io_fault = NULL;
    say(&w, 2, "second");
    for (unsigned i = 0; i < 4; i++)
        until_told(&w, &w.flight[i]);
    world_fini(&w);
}

/* A receive, a send, one that is asked to end, two turns each: whatever call fails, once. */
static void story(void)
{
    struct flight *f[3];
    f[0] = receive(&w, 0);
    f[1] = begin(&w, 1, BZ_OP_SEND);
    memcpy(f[1]->data, "from us", 7);
    f[1]->op.buffer.bytes = 7;
    hand_in(&w, f[1]);
    f[2] = receive(&w, 2);
    say(&w, 0, "to us");
    until_told(&w, f[0]);
    until_told(&w, f[1]);
    ask_to_end(&w, f[2]);
    until_told(&w, f[2]);
    got(f[0], "to us");
    CHECK_EQ(f[1]->told, 1);
    CHECK_EQ(f[1]->op.result, 7);
    CHECK_EQ(f[2]->told, 1);
    CHECK_EQ(f[2]->op.result, -ECANCELED);
}

TEST(uring, every_call_may_fail_and_nothing_is_lost_or_left_open)
{
    static const int errors[] = {EAGAIN, EBUSY, EINTR, ENOMEM};
    fail_at = 0;
    world_init(&w, 3);
    world_fini(&w);
    unsigned fds = t_open_fds(), refused = 0;
    for (size_t e = 0; e < BZ_ARRAY_LEN(errors); e++) {
        fail_with = errors[e];
        for (fail_at = 1;; fail_at++) {
            t_watch("call %u fails with %d", fail_at, errors[e]);
            CHECK_LT(fail_at, 100u);
            count_from_here();
            int err = world_try_init(&w, 3);
            if (err == 0) {
                story();
                story();
                world_fini(&w);
            }
            refused += err != 0;
            CHECK_EQ(t_open_fds(), fds);
            if (bz_load_relaxed(&calls) < fail_at) /* relaxed: no other thread runs */
                break;
        }
    }
    bz_io_fault = NULL;
    /* Set-up, the probe and two maps, each with every error; the NOP, which is repeated after EINTR. Buffers
     * are done without. */
    CHECK_EQ(refused, 4 * 4u + 3);
}

/* ---- refusals ---- */

static int refuse_with; /* the error of every enter */

static int refuse_enters(const char *call)
{
    return strcmp(call, "io_uring_enter") == 0 ? refuse_with : 0;
}

static void refuse(int err)
{
    refuse_with = err;
    bz_io_fault = refuse_enters;
}

TEST(uring, a_denied_ring_fails_more_operations_than_one_harvest_holds)
{
    world_init(&w, PAIRS);
    for (unsigned i = 0; i < PAIRS; i++)
        receive(&w, i);
    refuse(EPERM);
    for (unsigned i = 0; i < PAIRS; i++) {
        until_told(&w, &w.flight[i]);
        CHECK_EQ(w.flight[i].op.result, -EIO);
    }
    bz_io_fault = NULL;
    world_fini(&w);
}

/* Open pipes in place of sockets, which cannot be shut down. */
static void add_pipes(void)
{
    for (; w.pairs < PAIRS; w.pairs++) {
        int fd[2];
        CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
        CHECK_EQ(bz_file_open(&w.files, fd[0], BZ_FILE_STREAM, &w.file[w.pairs]), 0);
        w.peer[w.pairs] = fd[1];
    }
}

TEST(uring, a_denied_ring_abandons_more_polls_than_one_harvest_holds)
{
    world_init(&w, 0);
    add_pipes();
    for (unsigned i = 0; i < PAIRS; i++)
        hand_in(&w, begin(&w, i, BZ_OP_POLL));
    glance(&w);
    CHECK_EQ(bz_uring_pending(&w.poll), 0u);
    refuse(EPERM);
    for (unsigned i = 0; i < PAIRS; i++)
        ask_to_end(&w, &w.flight[i]);
    for (unsigned i = 0; i < PAIRS; i++) {
        until_told(&w, &w.flight[i]);
        CHECK_EQ(w.flight[i].op.result, -ECANCELED);
    }
    bz_io_fault = NULL;
    world_fini(&w);
}

enum { KEPT = 10 };

/* A ring of two entries, for receives that it refuses for now: it keeps all but two beside it. */
static void given_kept_receives(unsigned count)
{
    make_rings_tiny();
    world_init(&w, count);
    refuse(EAGAIN);
    for (unsigned i = 0; i < count; i++)
        receive(&w, i);
}

static void end_by_a_word(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        say(&w, i, "hello");
        until_told(&w, &w.flight[i]);
        got(&w.flight[i], "hello");
    }
    world_fini(&w);
}

/* The last one is told at the end of a sleep that nothing else ends. */
TEST(uring, all_that_a_full_ring_has_kept_is_submitted_before_a_sleep)
{
    given_kept_receives(KEPT);
    bz_io_fault = NULL;
    for (unsigned i = KEPT; i-- > 0;) {
        say(&w, i, "hello");
        until_told(&w, &w.flight[i]);
        got(&w.flight[i], "hello");
    }
    world_fini(&w);
}

TEST(uring, a_kept_receive_that_is_cancelled_ends_while_the_ring_is_refused)
{
    given_kept_receives(KEPT);
    for (unsigned i = KEPT; i-- > KEPT / 2;) {
        ask_to_end(&w, &w.flight[i]);
        until_told(&w, &w.flight[i]);
        CHECK_EQ(w.flight[i].op.result, -ECANCELED);
    }
    bz_io_fault = NULL;
    end_by_a_word(KEPT / 2);
}

TEST(uring, a_machine_that_has_submitted_all_it_kept_sleeps_in_the_ring)
{
    given_kept_receives(3);
    fail_at = 0;
    count_from_here();
    turn(&w, bz_os_now(&bz_os_system) + 1000000); /* sleeps for nothing */
    CHECK_EQ(entered(), 3u);                      /* those in the ring, the kept one, the sleep */
    bz_io_fault = NULL;
    end_by_a_word(3);
}

/* As in a program without a standard input. */
static int eventfd_0(unsigned count, int flags)
{
    int fd = eventfd(count, flags);
    CHECK_EQ(dup3(fd, 0, O_CLOEXEC), 0);
    close(fd);
    return 0;
}

TEST(uring, a_bell_that_is_descriptor_0_is_closed)
{
    static struct bz_sys calls_0;
    int input = dup(0);
    calls_0 = bz_sys_system;
    calls_0.eventfd = eventfd_0;
    bz_sys = &calls_0;
    world_init(&w, 0);
    CHECK_GE(fcntl(0, F_GETFD), 0);
    world_fini(&w);
    CHECK_EQ(fcntl(0, F_GETFD), -1);
    CHECK_EQ(dup2(input, 0), 0);
    close(input);
}

/* ---- two threads ---- */

static void *sleeps_there(void *arg)
{
    struct flight *f = arg;
    until_told(&w, f);
    return NULL;
}

/* A machine whose proc was taken sleeps on in its ring, and so may the next: what others begin meanwhile is
 * handed in by them. */
TEST(uring, an_operation_started_beside_a_sleeper_is_submitted)
{
    pthread_t thread;
    fail_at = 0;
    world_init(&w, 2);
    struct flight *first = receive(&w, 0);
    count_from_here();
    CHECK_EQ(pthread_create(&thread, NULL, sleeps_there, first), 0);
    while (entered() == 0) {
    }
    struct flight *second = receive(&w, 1);
    CHECK_EQ(bz_uring_pending(&w.poll), 0u);
    say(&w, 1, "hello");
    until_taken(&w, 1);
    say(&w, 0, "good night");
    CHECK_EQ(pthread_join(thread, NULL), 0);
    bz_io_fault = NULL;
    got(first, "good night");
    until_told(&w, second);
    got(second, "hello");
    world_fini(&w);
}
