/*
 * blitz.c - our servers for bench-net: echo by a fiber for each connection, or by a stackless task (--task,
 * or a case whose name says so), and HTTP hello.
 *
 * A fiber reads small messages into a buffer on its stack. Otherwise an idle connection holds no buffer: one belongs
 * to the thread and is used only where nothing waits, between a read that does not wait and a write that does not.
 * What the socket did not take is copied, and written by a call that waits. HTTP has the parser of the example.
 */
#include "bench.h"
#include "net/shape.h"
#include "../examples/http_parse.h"

#include <blitz.h>

enum { SMALL = 1100, BUFFER_MAX = 2 * 16384, HTTP_BUFFER = 4096, DATE_BYTES = 64 };
enum { OVER = 0, OWES = 1 }; /* besides -EAGAIN */

static size_t buffer_bytes;

struct owed {
    char *bytes;
    size_t len;
};

static int owe(struct owed *o, const char *bytes, size_t len)
{
    o->bytes = malloc(len);
    if (o->bytes == NULL)
        return OVER;
    memcpy(o->bytes, bytes, len);
    o->len = len;
    return OWES;
}

/*
 * Echo the available bytes. Return OVER at the end, OWES if the caller must write the rest and may
 * wait, -EAGAIN to wait for more. A read that did not fill its buffer also returns -EAGAIN, because
 * another read would find nothing. This function does not wait, so the thread-local buffer stays
 * valid.
 */
static __attribute__((noinline)) int echo_some(blitz_tcp *t, struct owed *o)
{
    static _Thread_local char buffer[BUFFER_MAX];
    int64_t n, sent;
    do {
        n = blitz_tcp_try_read(t, buffer, buffer_bytes);
        if (n <= 0)
            return n == -EAGAIN ? -EAGAIN : OVER;
        sent = blitz_tcp_try_write(t, buffer, (size_t)n);
        if (sent < 0 && sent != -EAGAIN)
            return OVER;
        if (sent != n)
            return owe(o, buffer + (sent < 0 ? 0 : sent), (size_t)(n - (sent < 0 ? 0 : sent)));
    } while (n == (int64_t)buffer_bytes);
    return -EAGAIN;
}

/*
 * Small messages: a buffer within the one stack page that a fiber uses anyway, and a plain read and
 * write. A read that fills it is followed by reads into the thread's buffer.
 */
static int echo_small(blitz_tcp *t)
{
    char small[SMALL];
    int64_t n;
    do {
        n = blitz_tcp_read(t, small, sizeof small, BLITZ_FOREVER);
        if (n <= 0 || blitz_tcp_write_all(t, small, (size_t)n, NULL, BLITZ_FOREVER) != 0)
            return OVER;
    } while (n < (int64_t)sizeof small);
    return -EAGAIN;
}

static int echo_fiber(void *arg)
{
    blitz_tcp *t = arg;
    struct owed o;
    if (buffer_bytes == NET_BUFFER && echo_small(t) == OVER) {
        blitz_tcp_close(t);
        return 0;
    }
    for (int rc; (rc = echo_some(t, &o)) != OVER;) {
        if (rc == OWES) {
            rc = blitz_tcp_write_all(t, o.bytes, o.len, NULL, BLITZ_FOREVER);
            free(o.bytes);
        } else {
            rc = blitz_tcp_wait(t, BLITZ_READABLE, BLITZ_FOREVER);
        }
        if (rc != 0)
            break;
    }
    blitz_tcp_close(t);
    return 0;
}

struct echo {
    blitz_frame frame;
    blitz_tcp *tcp;
    struct owed owed;
    blitz_net_future io;
};

static blitz_poll echo_task(void *state, blitz_cx *cx)
{
    struct echo *s = state;
    int rc;
    BLITZ_BEGIN(&s->frame, cx);
    while ((rc = echo_some(s->tcp, &s->owed)) != OVER) {
        if (rc == OWES) {
            blitz_tcp_write_all_future_init(&s->io, s->tcp, s->owed.bytes, s->owed.len);
            BLITZ_AWAIT(rc, &s->io.future);
            free(s->owed.bytes);
        } else {
            blitz_tcp_wait_future_init(&s->io, s->tcp, BLITZ_READABLE);
            BLITZ_AWAIT(rc, &s->io.future);
        }
        if (rc != 0 || s->io.result < 0)
            break;
    }
    blitz_tcp_close(s->tcp);
    BLITZ_END(0);
}

/* ---- http ---- */

/* The date changes once a second; each thread has its own. Nothing waits in here. */
static __attribute__((noinline)) size_t answer(char *out)
{
    static _Thread_local time_t at;
    static _Thread_local char date[DATE_BYTES];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (now.tv_sec != at) {
        struct tm utc;
        at = now.tv_sec;
        strftime(date, sizeof date, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", gmtime_r(&at, &utc));
    }
    static const char line[] = "HTTP/1.1 200 OK\r\n";
    static const char rest[] = "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 13\r\n"
                               "\r\n" NET_BODY;
    size_t date_len = strlen(date), len = 0;
    memcpy(out, line, sizeof line - 1);
    len += sizeof line - 1;
    memcpy(out + len, date, date_len);
    len += date_len;
    memcpy(out + len, rest, sizeof rest - 1);
    return len + sizeof rest - 1;
}

/* Answer every whole request; *have is what is left in the buffer. False: the connection is to end. */
static bool answer_all(blitz_tcp *t, char *buffer, size_t *have)
{
    struct http_request r;
    char out[16 * 256];
    size_t used = 0, len = 0;
    int got;
    while ((got = http_parse(buffer + used, *have - used, &r)) > 0 && len < sizeof out - 256) {
        used += (size_t)got;
        len += answer(out + len);
    }
    *have -= used;
    memmove(buffer, buffer + used, *have);
    return got >= 0 && (len == 0 || blitz_tcp_write_all(t, out, len, NULL, BLITZ_FOREVER) == 0);
}

static int http_fiber(void *arg)
{
    blitz_tcp *t = arg;
    char buffer[HTTP_BUFFER];
    size_t have = 0;
    int64_t n;
    while (have < sizeof buffer &&
           (n = blitz_tcp_read(t, buffer + have, sizeof buffer - have, BLITZ_FOREVER)) > 0) {
        have += (size_t)n;
        if (!answer_all(t, buffer, &have))
            break;
    }
    blitz_tcp_close(t);
    return 0;
}

/* ---- all of them ---- */

struct how {
    bool is_http, is_task;
};

static int serve(const struct how *how, blitz_tcp *t)
{
    struct echo s = {.tcp = t};
    if (how->is_http)
        return blitz_spawn(http_fiber, t, NULL, NULL);
    return how->is_task ? blitz_spawn_poll(echo_task, &s, sizeof s, NULL, NULL)
                        : blitz_spawn(echo_fiber, t, NULL, NULL);
}

static int serve_all(void *arg)
{
    blitz_tcp_listener *listener;
    blitz_addr at = blitz_addr_loopback_v4(0);
    blitz_tcp *t;
    int rc = blitz_tcp_listen(&at, NULL, &listener);
    if (rc != 0 || (rc = blitz_tcp_listener_local(listener, &at)) != 0)
        bench_die("listen: %s", strerror(-rc));
    printf("port %d\n", blitz_addr_port(&at));
    fflush(stdout);
    while ((rc = blitz_tcp_accept(listener, &t, NULL, BLITZ_FOREVER)) == 0) {
        blitz_tcp_set_nodelay(t, true);
        if (serve(arg, t) != 0)
            blitz_tcp_close(t);
    }
    bench_die("accept: %s", strerror(-rc));
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[argc - 1] : "echo-64";
    struct how how = {
        .is_http = net_is_http(name),
        .is_task = strstr(name, "task") != NULL || (argc > 2 && strcmp(argv[1], "--task") == 0),
    };
    buffer_bytes = net_buffer_of(name);
    if (buffer_bytes > BUFFER_MAX)
        buffer_bytes = BUFFER_MAX;
    return blitz_run(serve_all, &how, NULL);
}
