/*
 * libuv.c - the echo server on libuv, its fastest way: one buffer for all connections, written at
 * once by uv_try_write. If the socket does not take all bytes, the server copies the rest, calls
 * uv_write and stops reading meanwhile.
 */
#include "bench.h"
#include "net/shape.h"

#include <netinet/in.h>
#include <uv.h>

struct rest {
    uv_write_t request;
    char bytes[];
};

static char *buffer;
static size_t buffer_bytes;

static void lend(uv_handle_t *handle, size_t hint, uv_buf_t *out)
{
    (void)handle, (void)hint;
    *out = uv_buf_init(buffer, (unsigned)buffer_bytes);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);

static void on_written(uv_write_t *request, int status)
{
    uv_stream_t *stream = request->handle;
    free(request);
    if (status == 0)
        uv_read_start(stream, lend, on_read);
    else if (!uv_is_closing((uv_handle_t *)stream))
        uv_close((uv_handle_t *)stream, on_closed);
}

static void write_rest(uv_stream_t *stream, const char *bytes, size_t len)
{
    struct rest *rest = malloc(sizeof *rest + len);
    if (rest == NULL)
        bench_die("no memory");
    memcpy(rest->bytes, bytes, len);
    uv_buf_t out = uv_buf_init(rest->bytes, (unsigned)len);
    uv_read_stop(stream);
    if (uv_write(&rest->request, stream, &out, 1, on_written) != 0)
        bench_die("uv_write");
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    if (n == 0)
        return;
    uv_buf_t out = uv_buf_init(buf->base, n > 0 ? (unsigned)n : 0);
    int sent = n < 0 ? (int)n : uv_try_write(stream, &out, 1);
    if (sent == n && n > 0)
        return;
    if (n < 0 || (sent < 0 && sent != UV_EAGAIN)) {
        uv_close((uv_handle_t *)stream, on_closed);
        return;
    }
    sent = sent < 0 ? 0 : sent;
    write_rest(stream, buf->base + sent, (size_t)(n - sent));
}

static void on_connection(uv_stream_t *listener, int status)
{
    uv_tcp_t *tcp = malloc(sizeof *tcp);
    if (status != 0 || tcp == NULL)
        bench_die("accept: %s", uv_strerror(status));
    uv_tcp_init(listener->loop, tcp);
    if (uv_accept(listener, (uv_stream_t *)tcp) != 0) {
        uv_close((uv_handle_t *)tcp, on_closed);
        return;
    }
    uv_tcp_nodelay(tcp, 1);
    uv_read_start((uv_stream_t *)tcp, lend, on_read);
}

int main(int argc, char **argv)
{
    static uv_tcp_t listener;
    struct sockaddr_in at;
    int len = sizeof at;
    buffer_bytes = net_buffer_of(argc > 1 ? argv[argc - 1] : "echo-64");
    buffer = malloc(buffer_bytes);
    uv_ip4_addr("127.0.0.1", 0, &at);
    uv_tcp_init(uv_default_loop(), &listener);
    if (buffer == NULL || uv_tcp_bind(&listener, (struct sockaddr *)&at, 0) != 0 ||
        uv_listen((uv_stream_t *)&listener, 4096, on_connection) != 0 ||
        uv_tcp_getsockname(&listener, (struct sockaddr *)&at, &len) != 0)
        bench_die("listen");
    printf("port %d\n", ntohs(at.sin_port));
    fflush(stdout);
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
