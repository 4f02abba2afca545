/* blitz/tls.h: every byte arrives once and in order, from every kind of caller, with deadlines and cancels between. */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "support/keepers.h"
#include "tls/pair.h"

static char byte_at(size_t i, int way)
{
    return (char)(i * 131 + i / 251 + (size_t)way * 17);
}

/* ---- the ways to call ---- */

enum form { FIBER, AWAITS, STACKLESS, THREAD, FORMS };
static const char *const form_name[] = {"fiber", "awaiting fiber", "stackless task", "thread"};

/* One direction of a connection, seen from one end. */
struct party {
    blitz_tls *tls;
    enum form form;
    int way;
    bool is_sender;
    size_t total, at; /* bytes */
    struct bz_rng rng;
    char data[40000];
    blitz_task *task;
    pthread_t thread;
};

static size_t next_size(struct party *p)
{
    size_t most = bz_rng_below(&p->rng, 4) == 0 ? sizeof p->data : 700;
    size_t n = 1 + bz_rng_below(&p->rng, most);
    return n < p->total - p->at ? n : p->total - p->at;
}

static size_t prepare(struct party *p)
{
    size_t n = next_size(p);
    for (size_t i = 0; p->is_sender && i < n; i++)
        p->data[i] = byte_at(p->at + i, p->way);
    return n;
}

static void account(struct party *p, int64_t n)
{
    t_watch("way %d, %s, byte %zu: %d", p->way, form_name[p->form], p->at, (int)n);
    if (n == -ETIMEDOUT)
        return;
    CHECK_GT(n, 0);
    for (size_t i = 0; !p->is_sender && i < (size_t)n; i++)
        if (p->data[i] != byte_at(p->at + i, p->way))
            CHECK_EQ(p->data[i], byte_at(p->at + i, p->way));
    p->at += (size_t)n;
}

/* A deadline that may be over before, during or after the wait. */
static blitz_deadline soon(struct party *p)
{
    return bz_rng_below(&p->rng, 3) == 0 ? blitz_after(bz_rng_below(&p->rng, 120) * BLITZ_US)
                                         : BLITZ_FOREVER;
}

static int64_t call(struct party *p, size_t n)
{
    return p->is_sender ? blitz_tls_write(p->tls, p->data, n, soon(p))
                        : blitz_tls_read(p->tls, p->data, n, soon(p));
}

static void future(struct party *p, blitz_tls_future *f, size_t n)
{
    if (p->is_sender)
        blitz_tls_write_future_init(f, p->tls, p->data, n);
    else
        blitz_tls_read_future_init(f, p->tls, p->data, n);
}

static void finish(struct party *p)
{
    char more[1];
    if (p->is_sender)
        CHECK_EQ(blitz_tls_end(p->tls, BLITZ_FOREVER), 0);
    else
        CHECK_EQ(blitz_tls_read(p->tls, more, 1, BLITZ_FOREVER), 0);
}

static int calling(void *arg)
{
    struct party *p = arg;
    while (p->at < p->total)
        account(p, call(p, prepare(p)));
    finish(p);
    return 0;
}

static void *on_thread(void *arg)
{
    calling(arg);
    return NULL;
}

/* A pinned future: after a deadline its result says what was done. */
static int awaiting(void *arg)
{
    struct party *p = arg;
    blitz_tls_future f;
    while (p->at < p->total) {
        future(p, &f, prepare(p));
        int rc = blitz_await(&f.future, soon(p));
        account(p, f.result == -ECANCELED && rc == -ETIMEDOUT ? rc : f.result);
    }
    finish(p);
    return 0;
}

struct polled {
    blitz_frame frame;
    struct party *p;
    blitz_tls_future io;
    blitz_sleep_future timer;
};

static blitz_poll polling(void *state, blitz_cx *cx)
{
    struct polled *s = state;
    int rc;
    BLITZ_BEGIN(&s->frame, cx);
    while (s->p->at < s->p->total) {
        future(s->p, &s->io, prepare(s->p));
        BLITZ_AWAIT_UNTIL(rc, &s->io.future, &s->timer, soon(s->p));
        account(s->p, s->io.result == -ECANCELED && rc == -ETIMEDOUT ? rc : s->io.result);
    }
    if (s->p->is_sender) {
        blitz_tls_end_future_init(&s->io, s->p->tls);
        BLITZ_AWAIT(rc, &s->io.future);
        CHECK_EQ(s->io.result, 0);
    } else {
        blitz_tls_read_future_init(&s->io, s->p->tls, s->p->data, 1);
        BLITZ_AWAIT(rc, &s->io.future);
        CHECK_EQ(s->io.result, 0);
    }
    BLITZ_END(0);
}

static void party_start(struct party *p)
{
    struct polled s = {.p = p};
    if (p->form == THREAD)
        CHECK_EQ(pthread_create(&p->thread, NULL, on_thread, p), 0);
    else if (p->form == STACKLESS)
        CHECK_EQ(blitz_spawn_poll(polling, &s, sizeof s, NULL, &p->task), 0);
    else
        p->task = t_spawn(p->form == AWAITS ? awaiting : calling, p);
}

static int thread_join(void *arg)
{
    return pthread_join(*(pthread_t *)arg, NULL);
}

static void party_join(struct party *p)
{
    if (p->form == THREAD)
        CHECK_EQ(blitz_blocking(thread_join, &p->thread), 0);
    else
        CHECK_EQ(t_join(p->task), 0);
}

/* Four parties: two directions at once, in four forms. */
static void all_ways(struct t_pair *p, size_t total, uint64_t seed)
{
    struct party *party = calloc(4, sizeof *party);
    CHECK_NOT_NULL(party);
    for (int i = 0; i < 4; i++) {
        party[i] = (struct party){.tls = p->end[i / 2], .is_sender = i % 2 == 0, .total = total};
        party[i].way = party[i].is_sender ? i / 2 : 1 - i / 2;
        bz_rng_init(&party[i].rng, seed + (uint64_t)i);
        party[i].form = bz_rng_below(&party[i].rng, FORMS);
    }
    for (int i = 0; i < 4; i++)
        party_start(&party[i]);
    for (int i = 0; i < 4; i++)
        party_join(&party[i]);
    free(party);
}

struct world {
    struct t_world w;
    size_t total;
    int rounds;
};

static void over(struct world *w, int kind, blitz_tls_config *c, blitz_tls_config *s)
{
    static const size_t rooms[] = {100, 1000, 20000, 100000};
    struct t_pair *p = calloc(1, sizeof *p);
    CHECK_NOT_NULL(p);
    if (kind == 0)
        t_pair_tcp(p, c, s, "server.test");
    else
        t_pair_memory(p, rooms[t_random_below(4)], c, s, "server.test");
    CHECK_EQ(p->err[0], 0);
    CHECK_EQ(p->err[1], 0);
    all_ways(p, w->total, t_random());
    t_pair_free(p);
    free(p);
}

static int transfers(void *arg)
{
    struct world *w = arg;
    blitz_tls_config *c = t_client_config(&w->w), *s = t_server_config(&w->w);
    for (int i = 0; i < w->rounds; i++)
        over(w, i % 2, c, s);
    blitz_tls_config_unref(c);
    blitz_tls_config_unref(s);
    return 0;
}

/* Fibers, stackless tasks and plain threads; over sockets and memory; deadlines that come at any time. */
TEST_LIMIT(tls_bytes, bug_21_both_directions_at_once_from_every_caller_lose_nothing, 120)
{
    struct world *w = calloc(1, sizeof *w);
    CHECK_NOT_NULL(w);
    t_world_new(&w->w);
    w->total = 300000;
    w->rounds = (int)t_scaled(6);
    t_on_keepers(transfers, w);
    t_world_free(&w->w);
    free(w);
}

/* ---- the end ---- */

static int truncated(void *arg)
{
    struct t_world *w = arg;
    struct t_pair p;
    char data[16];
    blitz_tls_text text;
    blitz_tls_config *c = t_client_config(w), *s = t_server_config(w);
    for (int is_proper = 0; is_proper < 2; is_proper++) {
        t_pair_tcp(&p, c, s, "server.test");
        CHECK_EQ(blitz_tls_write(p.end[1], "abc", 3, BLITZ_FOREVER), 3);
        if (is_proper) {
            CHECK_EQ(blitz_tls_end(p.end[1], BLITZ_FOREVER), 0);
            CHECK_EQ(blitz_tls_end(p.end[1], BLITZ_FOREVER), 0);
            CHECK_EQ(blitz_tls_write(p.end[1], "d", 1, BLITZ_FOREVER), -EPIPE);
        }
        CHECK_EQ(blitz_tcp_shutdown(p.tcp[1], BLITZ_WRITABLE), 0);
        CHECK_EQ(blitz_tls_read(p.end[0], data, 16, BLITZ_FOREVER), 3);
        for (int i = 0; i < 2; i++) /* and again */
            CHECK_EQ(blitz_tls_read(p.end[0], data, 16, BLITZ_FOREVER),
                     is_proper ? 0 : -ECONNABORTED);
        blitz_tls_error(p.end[0], &text);
        CHECK_SAYS(text.text, is_proper ? "no error" : "without the peer's close_notify");
        if (is_proper) { /* the other direction goes on */
            CHECK_EQ(blitz_tls_write(p.end[0], "xyz", 3, BLITZ_FOREVER), 3);
            CHECK_EQ(blitz_tls_read_exact(p.end[1], data, 3, NULL, BLITZ_FOREVER), 0);
            CHECK_MEM_EQ(data, "xyz", 3);
        }
        t_pair_free(&p);
    }
    blitz_tls_config_unref(c);
    blitz_tls_config_unref(s);
    return 0;
}

/* An attacker can close a connection, but not sign its end. */
TEST(tls_bytes, an_end_without_close_notify_is_reported_as_truncation)
{
    struct t_world *w = calloc(1, sizeof *w);
    CHECK_NOT_NULL(w);
    t_world_new(w);
    t_on_keepers(truncated, w);
    t_world_free(w);
    free(w);
}

/* ---- waits that end ---- */

static int slow(void *arg)
{
    struct t_world *w = arg;
    struct t_pair p;
    static char big[200000];
    char data[1000];
    size_t sum = 0, got = 0;
    int64_t n;
    blitz_tls_config *c = t_client_config(w), *s = t_server_config(w);
    t_pair_memory(&p, 1000, c, s, "server.test");
    CHECK_EQ(blitz_tls_read(p.end[0], data, 4, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_tls_read(p.end[0], data, 4, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = byte_at(i, 0);
    /* The peer does not read: one write is accepted, then nothing fits. */
    while ((n = blitz_tls_write(p.end[0], big + sum, sizeof big - sum, blitz_after(BLITZ_MS))) > 0)
        sum += (size_t)n;
    CHECK_EQ(n, -ETIMEDOUT);
    CHECK_GT(sum, 0);
    CHECK_EQ(blitz_tls_flush(p.end[0], blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_tls_end(p.end[0], 0), -ETIMEDOUT);
    /* It reads again: a read of ours helps to send the rest. */
    while (got < sum) {
        n = blitz_tls_read(p.end[1], data, sizeof data, 0);
        if (n == -ETIMEDOUT)
            CHECK_EQ(blitz_tls_read(p.end[0], data, 4, 0), -ETIMEDOUT);
        for (int64_t i = 0; i < n; i++)
            CHECK_EQ(data[i], byte_at(got + (size_t)i, 0));
        got += n > 0 ? (size_t)n : 0;
    }
    CHECK_EQ(blitz_tls_flush(p.end[0], BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_tls_read(p.end[1], data, 4, 0), -ETIMEDOUT);
    t_pair_free(&p);
    blitz_tls_config_unref(c);
    blitz_tls_config_unref(s);
    return 0;
}

TEST(tls_bytes, a_slow_peer_holds_a_write_up_and_loses_nothing)
{
    struct t_world *w = calloc(1, sizeof *w);
    CHECK_NOT_NULL(w);
    t_world_new(w);
    CHECK_EQ(blitz_run(slow, w, NULL), 0);
    t_world_free(w);
    free(w);
}

static int waits(void *arg)
{
    char data[4];
    return (int)blitz_tls_read(arg, data, 4, BLITZ_FOREVER);
}

static int cancelled(void *arg)
{
    struct t_world *w = arg;
    struct t_pair p;
    char data[4];
    blitz_tls_config *c = t_client_config(w), *s = t_server_config(w);
    t_pair_tcp(&p, c, s, "server.test");
    for (int i = 0; i < 3; i++) {
        blitz_task *first = t_spawn(waits, p.end[0]);
        t_until_waits(first);
        blitz_task *second = t_spawn(waits, p.end[0]); /* waits for its turn */
        t_until_waits(second);
        blitz_task_cancel(i == 0 ? first : second);
        CHECK_EQ(t_join(i == 0 ? first : second), -ECANCELED);
        CHECK_EQ(blitz_tls_write(p.end[1], "once", 4, BLITZ_FOREVER), 4);
        CHECK_EQ(t_join(i == 0 ? second : first), 4);
    }
    CHECK_EQ(blitz_tls_write(p.end[1], "more", 4, BLITZ_FOREVER), 4);
    CHECK_EQ(blitz_tls_read_exact(p.end[0], data, 4, NULL, BLITZ_FOREVER), 0);
    t_pair_free(&p);
    blitz_tls_config_unref(c);
    blitz_tls_config_unref(s);
    return 0;
}

TEST(tls_bytes, bug_21_a_cancelled_reader_passes_its_turn_on)
{
    struct t_world *w = calloc(1, sizeof *w);
    CHECK_NOT_NULL(w);
    t_world_new(w);
    t_on_keepers(cancelled, w);
    t_world_free(w);
    free(w);
}

/* ---- room ---- */

struct shallow {
    struct t_pair p;
    blitz_tls_config *config[2];
    int end;
};

static int shake_one(void *arg)
{
    struct shallow *s = arg;
    return blitz_tls_handshake(s->p.end[s->end], BLITZ_FOREVER);
}

static int shallow(void *arg)
{
    struct t_world *w = arg;
    struct shallow s[2] = {{.end = 0}, {.end = 1}};
    blitz_task *t[2];
    blitz_tls_config *c = t_client_config(w), *sv = t_server_config(w);
    CHECK_EQ(blitz_duplex_new(4096, s[0].p.below, &s[0].p.duplex), 0);
    CHECK_EQ(blitz_tls_new(c, s[0].p.below[0], "server.test", &s[0].p.end[0]), 0);
    CHECK_EQ(blitz_tls_new(sv, s[0].p.below[1], NULL, &s[0].p.end[1]), 0);
    s[1].p = s[0].p;
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_spawn(shake_one, &s[i], &(blitz_spawn_opts){.stack_bytes = 64 << 10}, &t[i]),
                 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(t_join(t[i]), 0);
    t_pair_free(&s[0].p);
    blitz_tls_config_unref(c);
    blitz_tls_config_unref(sv);
    return 0;
}

/* docs/tls.md promises it. */
TEST(tls_bytes, a_handshake_needs_no_more_than_64_kib_of_stack)
{
    struct t_world *w = calloc(1, sizeof *w);
    CHECK_NOT_NULL(w);
    t_world_new(w);
    CHECK_EQ(blitz_run(shallow, w, NULL), 0);
    t_world_free(w);
    free(w);
}
