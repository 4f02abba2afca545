/* block/io.h on the default backend: operations of fibers, polls and threads, step by step. */
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "blitz.h"
#include "block/io.h"
#include "io/attempt.h"
#include "io/ready.h"
#include "proc/enter.h"
#include "support/alone.h"
#include "support/bell.h"
#include "support/on_each.h"

enum { MANY = 64, BIG = 1 << 20 };

/* Two ends of a stream, each a file. */
struct pair {
    struct bz_file *end[2];
};

static void pair_open(struct pair *p)
{
    int fd[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(bz_io_open(fd[i], BZ_FILE_STREAM, &p->end[i]), 0);
}

static void pair_close(struct pair *p)
{
    for (int i = 0; i < 2; i++)
        bz_io_close(p->end[i]);
}

static int64_t receive(struct bz_file *f, void *data, size_t bytes, blitz_deadline until)
{
    struct bz_op op;
    bz_op_init(&op, f, BZ_OP_RECV);
    op.buffer.data = data;
    op.buffer.bytes = bytes;
    return bz_io_run(&op, "receive", until);
}

static int64_t send_some(struct bz_file *f, const void *data, size_t bytes, blitz_deadline until)
{
    struct bz_op op;
    bz_op_init(&op, f, BZ_OP_SEND);
    op.buffer.data = (void *)data;
    op.buffer.bytes = bytes;
    return bz_io_run(&op, "send", until);
}

static blitz_deadline soon(void)
{
    return blitz_after(BLITZ_MS);
}

/* ---- fibers ---- */

static int echo(void *arg)
{
    struct bz_file *f = arg;
    char data[16];
    for (;;) {
        int64_t n = receive(f, data, sizeof data, BLITZ_FOREVER);
        if (n <= 0)
            return (int)n;
        CHECK_EQ(send_some(f, data, (size_t)n, BLITZ_FOREVER), n);
    }
}

static int talk(void *arg)
{
    struct pair p;
    char data[16];
    blitz_task *t;
    (void)arg;
    pair_open(&p);
    CHECK_EQ(blitz_spawn(echo, p.end[1], NULL, &t), 0);
    for (int i = 0; i < 1000; i++) {
        memset(data, i, sizeof data);
        size_t bytes = 1 + (size_t)i % sizeof data;
        CHECK_EQ(send_some(p.end[0], data, bytes, BLITZ_FOREVER), bytes);
        for (size_t have = 0; have < bytes;) {
            int64_t n = receive(p.end[0], data + have, bytes - have, BLITZ_FOREVER);
            CHECK(n > 0);
            have += (size_t)n;
        }
        CHECK_EQ((unsigned char)data[bytes - 1], i & 255);
    }
    shutdown(p.end[0]->fd, SHUT_WR);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    pair_close(&p);
    return 0;
}

TEST(io, two_fibers_talk_over_a_stream)
{
    t_on_each(talk, NULL, 0);
}

/* ---- in which order ---- */

enum { QUEUE = 8 };
struct in_turn {
    struct pair pair;
    blitz_task *task;
    uint64_t key;
};

static int is_served(void *arg)
{
    struct in_turn *c = arg;
    char data;
    CHECK_EQ(receive(c->pair.end[1], &data, 1, BLITZ_FOREVER), 1);
    return 0;
}

static bz_entry entry_of(const struct in_turn *c, uint64_t key)
{
    while (c->key != key)
        c++;
    return bz_entry_resumed((struct bz_task *)c->task);
}

/* One of the last `count` entries of the proc's queue; the next slot comes before them, if it is used. In the runtime.
 * Counted from the tail: the monitor may share entries from the head, but slots keep what was in them. */
static bz_entry queued_at(struct bz_proc *p, unsigned i, unsigned count)
{
    uint64_t tail = bz_load_relaxed(&p->ring.tail); /* relaxed: ours */
    bz_entry next = bz_load_relaxed(&p->next);      /* relaxed: ours */
    if (next != 0 && i == 0)
        return next;
    return bz_get(bz_runq_slot(&p->ring, tail - count + i));
}

/* Another thread may hear of some of them, or take the proc, before this one is in the runtime; then there is less to see. */
static int hears_many(void *arg)
{
    struct in_turn c[QUEUE];
    struct bz_reaped heard;
    bz_entry place[QUEUE] = {0};
    uint32_t was;
    (void)arg;
    heard.count = heard.at = 0;
    for (int i = 0; i < QUEUE; i++) {
        pair_open(&c[i].pair);
        c[i].key = bz_file_key(c[i].pair.end[1]);
        CHECK_EQ(blitz_spawn(is_served, &c[i], NULL, &c[i].task), 0);
        while (bz_load_acquire(&((struct bz_task *)c[i].task)->wait) ==
               0) /* it is what we wait for */
            blitz_yield();
    }
    for (int i = 0; i < QUEUE; i++)
        CHECK_EQ(write(c[i].pair.end[0]->fd, "x", 1), 1);
    struct bz_machine *m = bz_enter(&was);
    if (m != NULL) {
        bz_poll_reap(&m->proc->poll, &heard);
        bz_io_deliver(m->proc, &heard);
        for (unsigned i = 0; i < heard.count; i++)
            place[i] = queued_at(m->proc, i, heard.count);
    }
    bz_leave(was);
    for (unsigned i = 0; i < heard.count; i++)
        CHECK_EQ(place[i], entry_of(c, heard.entry[i].key));
    t_note("heard %u at once", heard.count);
    for (int i = 0; i < QUEUE; i++) {
        CHECK_EQ(blitz_task_join(c[i].task, NULL, BLITZ_FOREVER), 0);
        pair_close(&c[i].pair);
    }
    return 0;
}

/* Tasks are served in the order of their events. */
TEST(io, of_those_that_are_heard_at_once_the_first_is_served_first)
{
    CHECK_EQ(blitz_run(hears_many, NULL, &(blitz_runtime_opts){.procs = 1, .io = "epoll"}), 0);
}

/* ---- the end of a wait ---- */

static int deadlines(void *arg)
{
    struct pair p;
    char data[4];
    (void)arg;
    pair_open(&p);
    CHECK_EQ(receive(p.end[0], data, 4, 0), -ETIMEDOUT);
    CHECK_EQ(receive(p.end[0], data, 4, soon()), -ETIMEDOUT);
    CHECK_EQ(send_some(p.end[1], "abcd", 4, 0), 4);
    CHECK_EQ(receive(p.end[0], data, 4, 0), 4); /* an operation that need not wait is done */
    CHECK_MEM_EQ(data, "abcd", 4);
    pair_close(&p);
    return 0;
}

TEST(io, a_deadline_ends_a_wait_and_nothing_is_lost)
{
    t_on_each(deadlines, NULL, 0);
}

struct reader {
    struct bz_file *file;
    int64_t got;
};

static int read_one(void *arg)
{
    struct reader *r = arg;
    char data[8];
    r->got = receive(r->file, data, sizeof data, BLITZ_FOREVER);
    return 0;
}

/* Let all ready tasks run until they wait. */
static void let_others(void)
{
    for (int i = 0; i < MANY; i++)
        blitz_yield();
}

/* Until as many as that are at it. */
static void await_users(struct bz_file *f, unsigned users)
{
    for (bool are_there = false; !are_there;) {
        blitz_yield();
        bz_file_lock(f);
        are_there = f->users > users;
        bz_file_unlock(f);
    }
}

static int cancels(void *arg)
{
    struct pair p;
    blitz_task *t;
    (void)arg;
    pair_open(&p);
    struct reader r = {p.end[0], 0};
    CHECK_EQ(blitz_spawn(read_one, &r, NULL, &t), 0);
    await_users(p.end[0], 1);
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(r.got, -ECANCELED);
    CHECK_EQ(send_some(p.end[1], "late", 4, BLITZ_FOREVER), 4);
    char data[8];
    CHECK_EQ(receive(p.end[0], data, sizeof data, BLITZ_FOREVER), 4);
    pair_close(&p);
    return 0;
}

TEST(io, bug_21_a_cancelled_read_has_read_nothing)
{
    t_on_each(cancels, NULL, 0);
}

static int closes(void *arg)
{
    struct pair p;
    blitz_task *t[4];
    struct reader r[4];
    char data;
    (void)arg;
    pair_open(&p);
    int number = p.end[0]->fd;
    for (int i = 0; i < 4; i++) {
        r[i] = (struct reader){p.end[0], 0};
        CHECK_EQ(blitz_spawn(read_one, &r[i], NULL, &t[i]), 0);
    }
    await_users(p.end[0], 4);
    bz_io_close(p.end[0]);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
        CHECK_EQ(r[i].got, -EBADF);
    }
    CHECK_EQ(fcntl(number, F_GETFD), -1);                    /* it is closed */
    CHECK_EQ(receive(p.end[1], &data, 1, BLITZ_FOREVER), 0); /* and the peer sees it */
    bz_io_close(p.end[1]);
    return 0;
}

TEST(io, bug_16_close_ends_waiting_operations_and_the_peer_sees_it)
{
    t_on_each(closes, NULL, 0);
}

/* The end came with the last bytes: one edge for both. */
static int ends(void *arg)
{
    struct pair p;
    char data[64];
    blitz_task *t;
    (void)arg;
    for (int i = 0; i < 20; i++) {
        pair_open(&p);
        struct reader r = {p.end[0], 0};
        CHECK_EQ(blitz_spawn(read_one, &r, NULL, &t), 0);
        let_others();
        CHECK_EQ(send_some(p.end[1], "bye", 3, BLITZ_FOREVER), 3);
        bz_io_close(p.end[1]);
        CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
        CHECK_EQ(r.got, 3);
        CHECK_EQ(receive(p.end[0], data, sizeof data, BLITZ_FOREVER), 0);
        CHECK_EQ(receive(p.end[0], data, sizeof data, BLITZ_FOREVER), 0);
        bz_io_close(p.end[0]);
    }
    return 0;
}

TEST(io, an_end_that_comes_with_the_last_bytes_is_seen)
{
    t_on_each(ends, NULL, 0);
}

/* ---- full, and empty again ---- */

static int pour(void *arg)
{
    static char data[BIG];
    struct bz_file *f = arg;
    for (size_t done = 0; done < BIG;) {
        int64_t n = send_some(f, data + done, BIG - done, BLITZ_FOREVER);
        CHECK(n > 0);
        if (n <= 0)
            return 1;
        done += (size_t)n;
    }
    bz_io_close(f);
    return 0;
}

static int drinks(void *arg)
{
    struct pair p;
    blitz_task *t;
    char data[777];
    size_t have = 0;
    (void)arg;
    pair_open(&p);
    CHECK_EQ(blitz_spawn(pour, p.end[1], NULL, &t), 0);
    for (int64_t n; (n = receive(p.end[0], data, sizeof data, BLITZ_FOREVER)) > 0;)
        have += (size_t)n;
    CHECK_EQ(have, BIG);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    bz_io_close(p.end[0]);
    return 0;
}

TEST(io, a_writer_waits_for_room)
{
    t_on_each(drinks, NULL, 0);
}

/* ---- the same number again ---- */

/* The old file has no readers, its number is reused at once, and a late event of the old file wakes
 * no task. */
static int reuses(void *arg)
{
    struct pair p, q;
    (void)arg;
    for (int i = 0; i < 50; i++) {
        blitz_task *t;
        pair_open(&p);
        struct reader r = {p.end[0], 0};
        CHECK_EQ(blitz_spawn(read_one, &r, NULL, &t), 0);
        await_users(p.end[0], 1);
        int number = p.end[0]->fd;
        CHECK_EQ(write(p.end[1]->fd, "x", 1), 1); /* heard, perhaps, and not delivered */
        bz_io_close(p.end[0]);
        pair_open(&q);
        CHECK(q.end[0]->fd == number || q.end[1]->fd == number || q.end[0]->fd > 0);
        CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
        CHECK(r.got == 1 || r.got == -EBADF);
        char data;
        CHECK_EQ(receive(q.end[0], &data, 1, soon()), -ETIMEDOUT);
        pair_close(&q);
        bz_io_close(p.end[1]);
    }
    return 0;
}

TEST(io, bug_14_a_reused_number_is_another_file)
{
    t_on_each(reuses, NULL, 0);
}

static void wakes_nothing(struct bz_wake *wake, void *arg)
{
    (void)wake;
    (void)arg;
    CHECK(!"no operation waits");
}

TEST(io, bug_14_a_key_of_an_earlier_use_finds_nothing)
{
    struct bz_files files;
    struct bz_file *f, *again;
    bz_files_init(&files, &bz_os_system, &bz_allocator_libc);
    CHECK_EQ(bz_file_open(&files, dup(0), 0, &f), 0);
    uint64_t key = bz_file_key(f);
    CHECK(bz_file_find(&files, key) == f);
    bz_file_unlock(f);
    bz_file_close(f, wakes_nothing, NULL);
    CHECK(bz_file_find(&files, key) == NULL);
    CHECK_EQ(bz_file_open(&files, dup(0), 0, &again), 0);
    CHECK(again == f); /* the same memory */
    CHECK(bz_file_find(&files, key) == NULL);
    CHECK_EQ(bz_files_fini(&files), 1);
}

/* The last user of a closed file may stay for long. No late event and no late operation may get in beside it. */
TEST(io, bug_14_a_file_that_is_closed_beside_a_user_is_found_by_no_key)
{
    struct bz_files files;
    struct bz_file *f;
    struct bz_op user, late, any;
    bz_files_init(&files, &bz_os_system, &bz_allocator_libc);
    CHECK_EQ(bz_file_open(&files, dup(0), 0, &f), 0);
    uint64_t key = bz_file_key(f);
    bz_op_init(&user, f, BZ_OP_RECV);
    bz_op_init(&late, f, BZ_OP_RECV);
    bz_op_init(&any, f, BZ_OP_RECV); /* of no generation */
    late.generation = f->generation;
    bz_file_lock(f);
    CHECK(bz_file_enter(f, &user));
    bz_file_unlock(f);

    bz_file_close(f, wakes_nothing, NULL);

    CHECK(bz_file_find(&files, key) == NULL);
    bz_file_lock(f);
    CHECK(!bz_file_enter(f, &late));
    CHECK(!bz_file_enter(f, &any));
    CHECK_EQ(f->users, 1u);
    bz_file_leave_unlock(f, &user);
    CHECK_EQ(bz_files_fini(&files), 0u);
}

/* ---- many for one ---- */

static int share_one(void *arg)
{
    struct pair p;
    blitz_task *t[MANY];
    struct reader r[MANY];
    int64_t sum = 0;
    (void)arg;
    pair_open(&p);
    for (int i = 0; i < MANY; i++) {
        r[i] = (struct reader){p.end[0], 0};
        CHECK_EQ(blitz_spawn(read_one, &r[i], NULL, &t[i]), 0);
    }
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(send_some(p.end[1], "12345678", 8, BLITZ_FOREVER), 8);
        if (i % 8 == 0)
            let_others();
    }
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
        sum += r[i].got;
    }
    CHECK_EQ(sum, 8 * MANY);
    pair_close(&p);
    return 0;
}

TEST(io, bug_20_many_readers_of_one_file_all_get_their_share)
{
    t_on_each(share_one, NULL, 0);
}

/* ---- without a stack ---- */

struct receiving {
    struct bz_io_future f;
    char data[8];
};

static void receiving_init(struct receiving *r, struct bz_file *file)
{
    bz_io_future_init(&r->f, file, BZ_OP_RECV);
    r->f.op.buffer.data = r->data;
    r->f.op.buffer.bytes = sizeof r->data;
}

/* Cancelled, and over: a pinned one must be asked until it is. */
static void future_end(blitz_future *f, const blitz_waker *w)
{
    f->ops->cancel(f);
    while (f->ops->kind == BLITZ_PINNED && f->ops->poll(f, w) != BLITZ_READY)
        (void)!blitz_sleep(BLITZ_MS / 10);
}

static int futures(void *arg)
{
    struct pair p;
    struct receiving a;
    struct t_bell bell = {.holders = 1};
    blitz_waker w = t_bell_waker(&bell);
    (void)arg;
    pair_open(&p);
    receiving_init(&a, p.end[0]);
    CHECK_EQ(blitz_await(&a.f.future, soon()), -ETIMEDOUT); /* revoked */
    receiving_init(&a, p.end[0]);
    CHECK_EQ(a.f.future.ops->poll(&a.f.future, &w), BLITZ_PENDING);
    CHECK_EQ(a.f.future.ops->poll(&a.f.future, &w), BLITZ_PENDING);
    CHECK_EQ(bell.holders, 2);
    CHECK_EQ(send_some(p.end[1], "one", 3, BLITZ_FOREVER), 3);
    while (bell.rung == 0)
        (void)!blitz_sleep(BLITZ_MS / 10);
    CHECK_EQ(a.f.future.ops->poll(&a.f.future, &w), BLITZ_READY);
    CHECK_EQ(bz_io_future_result(&a.f), 3);
    CHECK_EQ(blitz_future_output(&a.f.future), 3);
    receiving_init(&a, p.end[0]);
    CHECK_EQ(a.f.future.ops->poll(&a.f.future, &w), BLITZ_PENDING);
    future_end(&a.f.future, &w);
    CHECK_EQ(bell.holders, 1);
    pair_close(&p);
    return 0;
}

TEST(io, futures_wait_are_revoked_and_drop_their_wakers)
{
    CHECK_EQ(t_run_alone(futures, NULL), 0);
}

/* A notified waiter leaves without a try: the next one is notified. */
static int passes_on(void *arg)
{
    struct pair p;
    struct receiving a;
    struct t_bell bell = {.holders = 1};
    blitz_waker w = t_bell_waker(&bell);
    blitz_task *t;
    (void)arg;
    pair_open(&p);
    receiving_init(&a, p.end[0]);
    if (a.f.future.ops->kind == BLITZ_PINNED) { /* the kernel has both, and completes either */
        pair_close(&p);
        return 0;
    }
    CHECK_EQ(a.f.future.ops->poll(&a.f.future, &w), BLITZ_PENDING);
    struct reader r = {p.end[0], 0};
    CHECK_EQ(blitz_spawn(read_one, &r, NULL, &t), 0);
    let_others();
    CHECK_EQ(send_some(p.end[1], "one", 3, BLITZ_FOREVER), 3);
    while (bell.rung == 0)
        (void)!blitz_sleep(BLITZ_MS / 10);
    future_end(&a.f.future, &w);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(r.got, 3);
    CHECK_EQ(bell.holders, 1);
    pair_close(&p);
    return 0;
}

TEST(io, bug_22_a_notified_future_that_is_cancelled_notifies_the_next)
{
    CHECK_EQ(t_run_alone(passes_on, NULL), 0);
}

/* ---- several at once ---- */

enum { BYTES = 2000 };

static int drips(void *arg)
{
    for (uint64_t i = 0; i < t_scaled(BYTES); i++) {
        CHECK_EQ(send_some(arg, "x", 1, BLITZ_FOREVER), 1);
        if (i % 3 == 0)
            blitz_yield();
    }
    return 0;
}

/* Woken for one, it cancels the other, which is being notified meanwhile, or has been. */
static int reads_from_two(void *arg)
{
    struct pair p[2];
    blitz_task *t[2];
    struct receiving r[2];
    uint64_t have[2] = {0, 0}, want = t_scaled(BYTES);
    (void)arg;
    for (int i = 0; i < 2; i++) {
        pair_open(&p[i]);
        CHECK_EQ(blitz_spawn(drips, p[i].end[1], NULL, &t[i]), 0);
    }
    while (have[0] + have[1] < 2 * want) {
        for (int i = 0; i < 2; i++)
            receiving_init(&r[i], p[i].end[0]);
        int first = BLITZ_FIRST_OF(BLITZ_FOREVER, &r[0].f.future, &r[1].f.future);
        CHECK(first == 0 || first == 1);
        CHECK_GT(bz_io_future_result(&r[first].f), 0);
        for (int i = 0; i < 2; i++) /* by completion both may have been done */
            if (bz_io_future_result(&r[i].f) > 0)
                have[i] += (uint64_t)bz_io_future_result(&r[i].f);
    }
    CHECK_EQ(have[0], want);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
        pair_close(&p[i]);
    }
    return 0;
}

TEST(io, bug_21_of_two_reads_the_one_that_is_given_up_loses_nothing)
{
    t_on_each(reads_from_two, NULL, 0);
}

/* ---- plain threads ---- */

static void *thread_echo(void *arg)
{
    return (void *)(intptr_t)echo(arg);
}

static int with_a_thread(void *arg)
{
    struct pair p;
    char data[8];
    pthread_t thread;
    void *result;
    (void)arg;
    pair_open(&p);
    CHECK_EQ(pthread_create(&thread, NULL, thread_echo, p.end[1]), 0);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(send_some(p.end[0], "ping", 4, BLITZ_FOREVER), 4);
        CHECK_EQ(receive(p.end[0], data, sizeof data, BLITZ_FOREVER), 4);
    }
    shutdown(p.end[0]->fd, SHUT_WR);
    CHECK_EQ(pthread_join(thread, &result), 0);
    pair_close(&p);
    return 0;
}

TEST(io, a_plain_thread_waits_like_a_fiber)
{
    t_on_each(with_a_thread, NULL, 0);
}

enum { SENT = 100 };

/* Deadlines pass before, while and after a byte comes. Each time the frame of the operation is used again. */
static void *thread_counts(void *end)
{
    unsigned char byte = 0;
    intptr_t got = 0, late = 0;
    while (got < SENT) {
        int64_t n = receive(end, &byte, 1, blitz_after(50 * BLITZ_US));
        CHECK(n == -ETIMEDOUT || (n == 1 && byte == got));
        got += n == 1;
        late += n != 1;
    }
    return (void *)late;
}

static int to_an_impatient_thread(void *arg)
{
    struct pair p;
    pthread_t thread;
    void *late;
    (void)arg;
    pair_open(&p);
    CHECK_EQ(pthread_create(&thread, NULL, thread_counts, p.end[1]), 0);
    for (unsigned i = 0; i < SENT; i++) {
        unsigned char byte = (unsigned char)i;
        CHECK_EQ(blitz_sleep(i % 8 * 20 * BLITZ_US), 0);
        CHECK_EQ(send_some(p.end[0], &byte, 1, BLITZ_FOREVER), 1);
    }
    CHECK_EQ(pthread_join(thread, &late), 0);
    t_note("%d deadlines passed", (int)(intptr_t)late);
    pair_close(&p);
    return 0;
}

TEST(io, bug_21_a_plain_thread_whose_deadlines_pass_loses_nothing)
{
    t_on_each(to_an_impatient_thread, NULL, 0);
}

/* ---- an edge in the middle of a try ---- */

static struct bz_file *edged;

/* The call finds nothing, and the edge comes right after it. */
static int edge_after_the_call(const char *call)
{
    struct bz_wake wakes[BZ_SIDES];
    if (strcmp(call, "recv") != 0)
        return 0;
    bz_file_lock(edged);
    bz_ready_event(edged, BZ_READY_IN, wakes);
    bz_file_unlock(edged);
    return EAGAIN;
}

TEST(io, bug_13_an_edge_in_the_middle_of_a_try_is_not_taken_for_an_older_one)
{
    struct bz_files files;
    struct bz_wake next;
    struct bz_op op;
    char data;
    bz_files_init(&files, &bz_os_system, &bz_allocator_libc);
    CHECK_EQ(bz_file_open(&files, dup(0), BZ_FILE_STREAM, &edged), 0);
    bz_op_init(&op, edged, BZ_OP_RECV);
    op.buffer.data = &data;
    op.buffer.bytes = 1;
    bz_io_fault = edge_after_the_call;
    CHECK(!bz_ready_try(&op, &next));
    bz_io_fault = NULL;
    bz_file_lock(edged);
    CHECK(bz_ready_wait(&op)); /* worth another try */
    bz_file_leave_unlock(edged, &op);
    CHECK_EQ(bz_files_fini(&files), 1);
}

static int ends_told; /* so many more calls are interrupted by the end */

/* The call finds nothing; before it is back the last bytes come, and the end with them. */
static int end_after_the_call(const char *call)
{
    struct bz_wake wakes[BZ_SIDES];
    if (strcmp(call, "recv") != 0 || ends_told-- <= 0)
        return 0;
    bz_file_lock(edged);
    bz_ready_event(edged, BZ_READY_IN | BZ_READY_IN_OVER, wakes);
    bz_file_unlock(edged);
    return EAGAIN;
}

TEST(io, bug_13_an_end_in_the_middle_of_a_try_is_seen_behind_the_last_bytes)
{
    struct bz_files files;
    struct bz_wake next;
    struct bz_op op;
    char data[8];
    int fd[2];
    bz_files_init(&files, &bz_os_system, &bz_allocator_libc);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    CHECK_EQ(bz_file_open(&files, fd[0], BZ_FILE_STREAM, &edged), 0);
    CHECK_EQ(write(fd[1], "bye", 3), 3);
    close(fd[1]);
    ends_told = 1;
    bz_io_fault = end_after_the_call;
    for (int64_t want = 3; want >= 0; want -= 3) {
        bz_op_init(&op, edged, BZ_OP_RECV);
        op.buffer.data = data;
        op.buffer.bytes = sizeof data;
        while (!bz_ready_try(&op, &next)) {
            bz_file_lock(edged);
            CHECK(bz_half_is_worth_a_try(&edged->half[BZ_SIDE_IN]));
            bz_file_unlock(edged); /* it does not wait: no edge will come any more */
        }
        CHECK_EQ(op.result, want);
    }
    bz_io_fault = NULL;
    CHECK_EQ(bz_files_fini(&files), 1);
}

/* ---- hogs ---- */

static bz_atomic(uint32_t) is_over;

static int burn(void *arg)
{
    (void)arg;
    while (bz_load_relaxed(&is_over) == 0) { /* relaxed: a flag */
    }
    return 0;
}

static int beside_hogs(void *arg)
{
    blitz_task *hog[2];
    (void)arg;
    bz_store_relaxed(&is_over, 0); /* relaxed: before the spawns */
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_spawn(burn, NULL, NULL, &hog[i]), 0);
    let_others();
    struct pair p;
    char data[8];
    blitz_task *t;
    pair_open(&p);
    CHECK_EQ(blitz_spawn(echo, p.end[1], NULL, &t), 0);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(send_some(p.end[0], "ping", 4, BLITZ_FOREVER), 4);
        CHECK_EQ(receive(p.end[0], data, sizeof data, BLITZ_FOREVER), 4);
    }
    bz_io_close(p.end[0]);
    CHECK_EQ(blitz_task_join(t, NULL, BLITZ_FOREVER), 0);
    bz_store_relaxed(&is_over, 1); /* relaxed: a flag */
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_task_join(hog[i], NULL, BLITZ_FOREVER), 0);
    bz_io_close(p.end[1]);
    return 0;
}

TEST(io, goes_on_beside_hogs_on_every_proc)
{
    for (unsigned procs = 1; procs <= 2; procs++)
        CHECK_EQ(blitz_run(beside_hogs, NULL, &(blitz_runtime_opts){.procs = procs}), 0);
}
