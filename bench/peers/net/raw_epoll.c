/*
 * raw_epoll.c - the floor: an echo and a hello server as plain epoll can do them, with nothing in between.
 *
 * One thread, level-triggered, registered once. A ready connection is read at once; a short read says that
 * there is no more and is not probed. What is read is sent at once; only what the socket does not take is kept, and then
 * the connection waits for room instead of for bytes. All connections share one buffer.
 */
#include "net/serve.h"

#include <sys/epoll.h>

enum { EVENTS = 256, ACCEPTS = 64 };

/* Bytes of a connection that its socket did not take. */
struct owed {
    char *bytes;
    size_t at, len;
};

static struct owed owed[SERVE_FDS];
static unsigned char request_state[SERVE_FDS];
static int epoll;
static bool is_http;
static char *buffer;
static size_t buffer_bytes;

static void arm(int fd, int op, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.fd = fd};
    if (epoll_ctl(epoll, op, fd, &e) != 0)
        bench_die("epoll_ctl: %s", strerror(errno));
}

static void end(int fd)
{
    free(owed[fd].bytes);
    owed[fd] = (struct owed){NULL, 0, 0};
    request_state[fd] = 0;
    close(fd);
}

static void accept_some(int listener)
{
    for (int i = 0; i < ACCEPTS; i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        if (fd >= SERVE_FDS)
            bench_die("more than %d files", SERVE_FDS);
        serve_nodelay(fd);
        arm(fd, EPOLL_CTL_ADD, EPOLLIN);
    }
}

static void keep(int fd, const char *bytes, size_t len)
{
    owed[fd].bytes = malloc(len);
    if (owed[fd].bytes == NULL)
        bench_die("no memory");
    memcpy(owed[fd].bytes, bytes, len);
    owed[fd].at = 0;
    owed[fd].len = len;
    arm(fd, EPOLL_CTL_MOD, EPOLLOUT);
}

/* False: the connection is over, or owes something. */
static bool put(int fd, const char *bytes, size_t len)
{
    ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
    if (n == (ssize_t)len)
        return true;
    if (n < 0 && errno != EAGAIN)
        end(fd);
    else
        keep(fd, bytes + (n < 0 ? 0 : n), len - (size_t)(n < 0 ? 0 : n));
    return false;
}

static bool answer(int fd, size_t len)
{
    if (!is_http)
        return put(fd, buffer, len);
    unsigned count = serve_requests(buffer, len, &request_state[fd]);
    if (count > SERVE_ANSWERS)
        bench_die("more than %d requests in one read", SERVE_ANSWERS);
    return count == 0 || put(fd, serve_answers(), count * (sizeof NET_ANSWER - 1));
}

static void receive(int fd)
{
    for (;;) {
        ssize_t n = recv(fd, buffer, buffer_bytes, 0);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            end(fd);
            return;
        }
        if (!answer(fd, (size_t)n) || (size_t)n < buffer_bytes)
            return;
    }
}

static void put_rest(int fd)
{
    struct owed *o = &owed[fd];
    ssize_t n = send(fd, o->bytes + o->at, o->len - o->at, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) {
        end(fd);
        return;
    }
    o->at += n < 0 ? 0 : (size_t)n;
    if (o->at < o->len)
        return;
    free(o->bytes);
    *o = (struct owed){NULL, 0, 0};
    arm(fd, EPOLL_CTL_MOD, EPOLLIN);
}

int main(int argc, char **argv)
{
    struct epoll_event events[EVENTS];
    const char *name = argc > 1 ? argv[argc - 1] : "echo-64";
    is_http = net_is_http(name);
    buffer_bytes = net_buffer_of(name);
    buffer = malloc(buffer_bytes);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    int listener = serve_listen();
    if (buffer == NULL)
        bench_die("no memory");
    arm(listener, EPOLL_CTL_ADD, EPOLLIN);
    for (;;) {
        int n = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener)
                accept_some(listener);
            else if (owed[fd].bytes != NULL)
                put_rest(fd);
            else
                receive(fd);
        }
    }
}
