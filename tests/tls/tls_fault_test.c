/* blitz/tls.h without memory: every allocation of OpenSSL and of libblitz-tls fails once. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "tls/pair.h"

static _Atomic(long) left = -1; /* allocations until one fails; less than 0: none does */
static _Atomic(long) live;

static bool fails(void)
{
    return left >= 0 && left-- == 0;
}

static void *may_malloc(size_t bytes, const char *file, int line)
{
    (void)file;
    (void)line;
    void *p = fails() ? NULL : malloc(bytes);
    live += p != NULL;
    return p;
}

static void *may_realloc(void *old, size_t bytes, const char *file, int line)
{
    (void)file;
    (void)line;
    if (old == NULL)
        return may_malloc(bytes, file, line);
    return fails() ? NULL : realloc(old, bytes);
}

static void may_free(void *p, const char *file, int line)
{
    (void)file;
    (void)line;
    live -= p != NULL;
    free(p);
}

/* Before OpenSSL allocates anything. */
__attribute__((constructor)) static void hook(void)
{
    if (CRYPTO_set_mem_functions(may_malloc, may_realloc, may_free) != 1)
        abort();
}

struct scarce {
    struct t_world w;
    blitz_tls_config *config[2];
    long fail_at;
    bool has_failed;
};

static int life(struct scarce *s)
{
    struct t_pair p = {.duplex = NULL};
    char data[64];
    CHECK_EQ(blitz_duplex_new(40000, p.below, &p.duplex), 0);
    left = s->fail_at;
    int rc = blitz_tls_new(s->config[0], p.below[0], "server.test", &p.end[0]);
    if (rc == 0)
        rc = blitz_tls_new(s->config[1], p.below[1], NULL, &p.end[1]);
    if (rc == 0) {
        blitz_task *t = t_spawn(t_shake_server, &p);
        rc = blitz_tls_handshake(p.end[0], BLITZ_FOREVER);
        if (rc != 0)
            blitz_duplex_close(p.duplex, 0);
        t_join(t);
        rc = rc != 0 ? rc : p.err[1];
    }
    for (int i = 0; i < 2 && rc == 0; i++) {
        rc = blitz_tls_write_all(p.end[i], "hello", 5, NULL, BLITZ_FOREVER);
        if (rc == 0)
            rc = blitz_tls_read_exact(p.end[1 - i], data, 5, NULL, blitz_after(20 * BLITZ_S));
    }
    s->has_failed = left < 0 && s->fail_at >= 0;
    left = -1;
    blitz_tls_unref(p.end[0]);
    blitz_tls_unref(p.end[1]);
    blitz_duplex_unref(p.duplex);
    return rc;
}

static int lives(void *arg)
{
    struct scarce *s = arg;
    long n = 0;
    int refused = 0;
    s->fail_at = -1;
    CHECK_EQ(life(s), 0);
    for (;; n += 1 + (long)t_random_below(t_scaled(30) < 30 ? 60 : 12)) {
        s->fail_at = n;
        int rc = life(s);
        t_watch("allocation %ld: %d", n, rc);
        CHECK_LE(rc, 0);
        CHECK_NE(rc, -ETIMEDOUT);
        if (!s->has_failed)
            break;
        refused += rc != 0;
    }
    CHECK_GT(n, 100);
    CHECK_GT(refused, 10);
    s->fail_at = -1;
    CHECK_EQ(life(s), 0); /* the configurations are as good as before */
    return 0;
}

TEST_LIMIT(tls_fault, a_connection_survives_the_failure_of_each_allocation, 300)
{
    struct scarce *s = calloc(1, sizeof *s);
    CHECK_NOT_NULL(s);
    t_world_new(&s->w);
    s->config[0] = t_client_config(&s->w);
    s->config[1] = t_server_config(&s->w);
    CHECK_EQ(blitz_run(lives, s, &(blitz_runtime_opts){.procs = 1}), 0);
    blitz_tls_config_unref(s->config[0]);
    blitz_tls_config_unref(s->config[1]);
    t_world_free(&s->w);
    free(s);
}

TEST_LIMIT(tls_fault, a_configuration_without_memory_is_an_error_and_leaves_nothing, 300)
{
    struct t_world *w = calloc(1, sizeof *w);
    CHECK_NOT_NULL(w);
    t_world_new(w);
    static const char *const alpn[] = {"h2"};
    blitz_tls_opts opts = {.certs = &w->server_cert,
                           .cert_count = 1,
                           .verify = BLITZ_TLS_VERIFY_REQUIRE,
                           .ca_pem = w->ca.pem,
                           .alpn = alpn,
                           .alpn_count = 1};
    blitz_tls_config *c = t_config(BLITZ_TLS_SERVER, &opts);
    blitz_tls_config_unref(c);
    long n = 0;
    for (bool has_failed = true; has_failed; n += 1 + (long)t_random_below(12)) {
        blitz_tls_text why = {{0}};
        left = n;
        int rc = blitz_tls_config_new(BLITZ_TLS_SERVER, &opts, &why, &c);
        has_failed = left < 0;
        left = -1;
        t_watch("allocation %ld: %d, %s", n, rc, why.text);
        CHECK_LE(rc, 0);
        if (rc == 0)
            blitz_tls_config_unref(c);
    }
    CHECK_GT(n, 100);
    t_world_free(w);
    free(w);
}
