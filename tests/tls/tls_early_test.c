/* blitz/tls.h: a deadline, a cancel or an error at every single call of the stream below. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "tls/pair.h"

static char byte_at(size_t i, int way)
{
    return (char)(i * 131 + i / 251 + (size_t)way * 17);
}

/* ---- a failure at every call of the stream below ---- */

struct trap {
    blitz_stream below;
    int left; /* calls until it springs; 0: never again */
    int err;  /* of the call that it catches, which does nothing */
    int64_t calls;
    size_t most; /* bytes a call */
};

static bool springs(struct trap *t)
{
    t->calls++;
    return t->left > 0 && --t->left == 0;
}

static int64_t trap_read(void *ctx, void *data, size_t bytes, blitz_deadline until)
{
    struct trap *t = ctx;
    if (until != 0 && springs(t))
        return t->err;
    return blitz_reader_read(t->below.in, data, bytes < t->most ? bytes : t->most, until);
}

static int64_t trap_write(void *ctx, const void *data, size_t bytes, blitz_deadline until)
{
    struct trap *t = ctx;
    if (until != 0 && springs(t))
        return t->err;
    return blitz_writer_write(t->below.out, data, bytes < t->most ? bytes : t->most, until);
}

static const blitz_reader_ops trap_reader = {.name = "trap", .read = trap_read};
static const blitz_writer_ops trap_writer = {.name = "trap", .write = trap_write};

struct trapped {
    struct t_world w;
    blitz_tls_config *config[2];
    blitz_duplex *duplex;
    blitz_stream below[2];
    struct trap trap;
    int sprung; /* how often a call of the client ended early */
};

enum { SAID = 30000 };

static int mirror(void *arg)
{
    struct trapped *t = arg;
    blitz_tls *tls;
    char data[4096];
    int64_t n = -1;
    CHECK_EQ(blitz_tls_new(t->config[1], t->below[1], NULL, &tls), 0);
    if (blitz_tls_handshake(tls, BLITZ_FOREVER) == 0)
        while ((n = blitz_tls_read(tls, data, sizeof data, BLITZ_FOREVER)) > 0)
            if (blitz_tls_write_all(tls, data, (size_t)n, NULL, BLITZ_FOREVER) != 0)
                break;
    if (n == 0)
        blitz_tls_end(tls, BLITZ_FOREVER);
    blitz_duplex_close(t->duplex, 1);
    blitz_tls_unref(tls);
    return 0;
}

/* Again, if it ended early. */
static bool ended_early(struct trapped *t, int64_t n)
{
    t->sprung += n == -ETIMEDOUT || n == -ECANCELED;
    return n == -ETIMEDOUT || n == -ECANCELED;
}

struct writer {
    struct trapped *t;
    blitz_tls *tls;
};

static int say(struct writer *a)
{
    static char said[SAID];
    size_t at = 0, done;
    for (size_t i = 0; i < SAID; i++)
        said[i] = byte_at(i, 0);
    while (at < SAID) {
        int rc = blitz_tls_write_all(a->tls, said + at, SAID - at, &done, BLITZ_FOREVER);
        at += done;
        if (!ended_early(a->t, rc) && rc != 0)
            return rc;
    }
    int rc;
    while (ended_early(a->t, rc = blitz_tls_flush(a->tls, BLITZ_FOREVER)))
        ;
    if (rc != 0)
        return rc;
    while (ended_early(a->t, rc = blitz_tls_end(a->tls, BLITZ_FOREVER)))
        ;
    return rc;
}

/* Reads go on after a failed write; here they need not. */
static int write_said(void *arg)
{
    struct writer *a = arg;
    int rc = say(a);
    t_watch("the writer ended with %d", rc);
    if (rc != 0)
        blitz_duplex_close(a->t->duplex, 0);
    return rc;
}

static int read_said(struct trapped *t, blitz_tls *tls)
{
    char data[3000];
    int64_t n;
    for (size_t at = 0;; at += n > 0 ? (size_t)n : 0) {
        n = blitz_tls_read(tls, data, sizeof data, BLITZ_FOREVER);
        if (n == 0)
            return at == SAID ? 0 : -EIO;
        if (n < 0 && !ended_early(t, n))
            return (int)n;
        for (int64_t i = 0; i < n; i++)
            CHECK_EQ(data[i], byte_at(at + (size_t)i, 0));
    }
}

/* The whole life of a connection. Return its first error that is not early. */
static int life(struct trapped *t)
{
    blitz_tls *tls;
    CHECK_EQ(blitz_duplex_new(5000, t->below, &t->duplex), 0);
    t->trap.below = t->below[0];
    t->trap.most = 7000;
    blitz_stream over = {{&trap_reader, &t->trap}, {&trap_writer, &t->trap}};
    CHECK_EQ(blitz_tls_new(t->config[0], over, "server.test", &tls), 0);
    blitz_task *m = t_spawn(mirror, t);
    int rc;
    while (ended_early(t, rc = blitz_tls_handshake(tls, BLITZ_FOREVER)))
        ;
    if (rc == 0) {
        struct writer a = {t, tls};
        blitz_task *w = t_spawn(write_said, &a);
        rc = read_said(t, tls);
        if (rc != 0)
            blitz_duplex_close(t->duplex, 0);
        int written = t_join(w);
        rc = rc != 0 ? rc : written;
    }
    blitz_duplex_close(t->duplex, 0);
    t_join(m);
    blitz_tls_unref(tls);
    blitz_duplex_unref(t->duplex);
    return rc;
}

static int early_everywhere(void *arg)
{
    struct trapped *t = arg;
    static const int errs[] = {-ETIMEDOUT, -ECANCELED};
    int n;
    for (int e = 0; e < 2; e++) {
        for (n = 1; n < 300; n++) {
            t_watch("call %d", n);
            t->trap = (struct trap){.left = n, .err = errs[e]};
            t->sprung = 0;
            CHECK_EQ(life(t), 0);
            if (t->trap.left > 0)
                break;
        }
        CHECK_GT(n, 10);
    }
    return 0;
}

static int broken_everywhere(void *arg)
{
    struct trapped *t = arg;
    static const int errs[] = {-ECONNRESET, -EPIPE, -ENOMEM, -EIO};
    int n;
    for (n = 1; n < 300; n++) {
        t->trap = (struct trap){.left = n, .err = errs[n % 4]};
        int rc = life(t);
        t_watch("call %d: %d", n, rc);
        if (t->trap.left > 0)
            break;
        CHECK_NE(rc, 0);
    }
    CHECK_GT(n, 10);
    return 0;
}

static void trapped(int (*fn)(void *))
{
    struct trapped *t = calloc(1, sizeof *t);
    CHECK_NOT_NULL(t);
    t_world_new(&t->w);
    t->config[0] = t_client_config(&t->w);
    t->config[1] = t_server_config(&t->w);
    CHECK_EQ(blitz_run(fn, t, &(blitz_runtime_opts){.procs = 1}), 0);
    blitz_tls_config_unref(t->config[0]);
    blitz_tls_config_unref(t->config[1]);
    t_world_free(&t->w);
    free(t);
}

/* A deadline or a cancel at every single wait of a connection's life: each call is repeated, and nothing is lost. */
TEST_LIMIT(tls_early, bug_21_an_early_end_at_every_wait_loses_nothing, 120)
{
    trapped(early_everywhere);
}

/* The stream fails at every single call: an error comes out, and nothing hangs or leaks. */
TEST_LIMIT(tls_early, a_broken_stream_is_an_error_at_every_call, 120)
{
    trapped(broken_everywhere);
}
