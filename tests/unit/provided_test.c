/*
 * Provided buffers: when a cancelled read returns, the caller owns its buffer again. The kernel
 * does not write into it later, and every byte in it is reported.
 */
#include "harness.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "blitz.h"
#include "blitz/tcp.h"
#include "blitz/unix.h"
#include "io/ring.h"

enum { ROOM = 64, RETIRED = 32, POISON = 0xee };

/* A stream of numbered bytes, and the buffers that were given back while it ran. */
struct river {
    blitz_tcp *from;
    unsigned long bytes, seen; /* in all, and so far */
    unsigned given_up;
    unsigned char retired[RETIRED][ROOM];
    unsigned next;
};

struct pour {
    int fd;
    unsigned long bytes;
    struct t_rng rng;
};

/* A plain thread writes, a few bytes at a time and at any moment. */
static void *pour(void *arg)
{
    struct pour *p = arg;
    unsigned char data[ROOM];
    for (unsigned long done = 0; done < p->bytes;) {
        unsigned long n = 1 + t_rng_below(&p->rng, ROOM);
        n = n < p->bytes - done ? n : p->bytes - done;
        for (unsigned long i = 0; i < n; i++)
            data[i] = (unsigned char)((done + i) % 200);
        CHECK_EQ(write(p->fd, data, n), (ssize_t)n);
        done += n;
        for (uint64_t i = t_rng_below(&p->rng, 4); i > 0; i--)
            sched_yield();
    }
    return NULL;
}

static void check_all_retired(const struct river *r)
{
    for (unsigned i = 0; i < RETIRED; i++)
        for (unsigned k = 0; k < ROOM; k++)
            CHECK_EQ(r->retired[i][k], POISON);
}

/* The result of one read into the current buffer. */
static void account(struct river *r, int64_t got)
{
    unsigned char *data = r->retired[r->next];
    CHECK(got > 0 || got == -ETIMEDOUT || got == -ECANCELED);
    for (int64_t i = 0; i < got; i++)
        CHECK_EQ(data[i], (unsigned char)((r->seen + (unsigned long)i) % 200));
    r->seen += got > 0 ? (unsigned long)got : 0;
    r->given_up += got < 0;
    memset(data, POISON, ROOM);
    r->next = (r->next + 1) % RETIRED;
    if (r->next == 0)
        check_all_retired(r);
}

static int64_t read_some(struct river *r, blitz_deadline until)
{
    return blitz_tcp_read(r->from, r->retired[r->next], ROOM, until);
}

static int reads(void *arg)
{
    return (int)read_some(arg, BLITZ_FOREVER);
}

/* Cancelled before it has begun, while it is handed in, in flight, complete: wherever it is by then. */
static int64_t read_and_cancel(struct river *r)
{
    blitz_task *t;
    int result = 0;
    CHECK_EQ(blitz_spawn(reads, r, NULL, &t), 0);
    for (uint64_t i = t_random_below(4); i > 0; i--)
        blitz_yield();
    blitz_task_cancel(t);
    CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
    return result;
}

static int follow_the_river(void *arg)
{
    struct river *r = arg;
    memset(r->retired, POISON, sizeof r->retired);
    while (r->seen < r->bytes) {
        bool by_deadline = t_random_below(2) == 0;
        blitz_deadline until = blitz_after(t_random_below(20) * BLITZ_US);
        account(r, by_deadline ? read_some(r, until) : read_and_cancel(r));
    }
    CHECK_EQ(r->seen, r->bytes);
    account(
        /* nothing arrives: these are cancelled for certain */
        r, read_some(r, blitz_after(BLITZ_MS)));
    account(r, read_and_cancel(r));
    CHECK_EQ(r->seen, r->bytes);
    check_all_retired(r);
    return 0;
}

static int rivers(void *arg)
{
    struct river r = {.bytes = t_scaled(20000)};
    struct pour p = {.bytes = r.bytes, .rng = t_rng_of(1)};
    pthread_t thread;
    int fd[2];
    (void)arg;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    p.fd = fd[1];
    CHECK_EQ(blitz_tcp_adopt(fd[0], &r.from), 0);
    CHECK_EQ(pthread_create(&thread, NULL, pour, &p), 0);
    CHECK_EQ(follow_the_river(&r), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    blitz_tcp_close(r.from);
    close(fd[1]);
    t_note("%u reads were given up", r.given_up);
    CHECK_GT(r.given_up, 0u);
    return 0;
}

static bool has_rings(void)
{
    struct bz_ring r;
    if (bz_ring_open(&r, 2, 4) != 0)
        return false;
    bz_ring_close(&r);
    return true;
}

TEST(provided, bug_15_a_buffer_that_was_given_back_is_left_alone)
{
    const char *keepers[] = {"epoll", "poll", "uring"};
    for (int i = 0; i < (has_rings() ? 3 : 2); i++)
        for (unsigned procs = 1; procs <= 2; procs++) {
            t_watch("%s, %u procs", keepers[i], procs);
            CHECK_EQ(
                blitz_run(rivers, NULL, &(blitz_runtime_opts){.procs = procs, .io = keepers[i]}),
                0);
        }
}
