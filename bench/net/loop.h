/*
 * loop.h - the closed loop: connections that each keep `depth` messages on their way and check what returns.
 *
 * Every connection sends a stream of its own, of which each byte follows from the connection, the
 * message and the place in it; nothing sent is kept to be compared with. A message begins with a
 * number that identifies its connection and its position in the stream; the number determines the
 * other bytes. So the check finds messages that are lost, doubled, swapped or sent to another
 * connection. A wrong byte ends the run.
 *
 * One thread, epoll, never asleep: a generator that sleeps lets the server pay for waking it. What came back
 * by one recv is answered with as many messages by one send.
 *
 * Closed loop: the next message waits for an answer. When the server stalls, the messages that would have come meanwhile are
 * not sent and not counted as late; a stall shows once for each message on its way. So percentiles
 * compare servers under this load and do not tell what clients would see who come by the clock.
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include "bench.h"
#include "net/hist.h"
#include "net/shape.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LOOP_EVENTS = 256, LOOP_ROOM = 65536, LOOP_PATTERN = 4096, LOOP_STUCK_S = 10 };

struct loop_conn {
    int fd;
    bool waits_for_room; /* EPOLLOUT is armed */
    uint64_t id;
    uint64_t due;                  /* bytes of its stream that may be sent by now */
    uint64_t sent;                 /* sent <= due */
    uint64_t got;                  /* got <= sent: came back and was right */
    uint64_t at_ns[NET_DEPTH_MAX]; /* when message k became due, at k % depth */
};

struct loop {
    struct net_shape shape;
    struct loop_conn *conns;
    unsigned count; /* of them that are open */
    int epoll;
    int wait_ms;        /* how long to sleep for an event: 0, or a second (net_calm) */
    bool is_draining;   /* answers are not followed by another message */
    uint64_t now_ns;    /* read once for every event */
    uint64_t done;      /* messages that came back */
    struct hist *times; /* where latencies go, or NULL */
    char pattern[LOOP_PATTERN + NET_BYTES_MAX];
    char out[LOOP_ROOM + NET_BYTES_MAX];
    char in[LOOP_ROOM];
};

static inline uint64_t loop_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline void loop_init(struct loop *l, struct net_shape shape)
{
    memset(l, 0, sizeof *l);
    l->shape = shape;
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->conns = calloc(shape.conns, sizeof *l->conns);
    if (l->epoll < 0 || l->conns == NULL)
        bench_die("epoll: %s", strerror(errno));
    for (size_t i = 0; i < sizeof l->pattern; i++)
        l->pattern[i] = (char)loop_mix(i + 1);
}

/* The number that message k of a connection begins with. */
static inline uint64_t loop_head(const struct loop_conn *c, uint64_t k)
{
    return loop_mix((c->id << 40) + k + 1);
}

static inline void loop_write(const struct loop *l, const struct loop_conn *c, uint64_t k, char *to)
{
    uint64_t head = loop_head(c, k);
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, l->pattern + head % LOOP_PATTERN, l->shape.bytes - sizeof head);
}

static inline void loop_wrong(const struct loop_conn *c, uint64_t at)
{
    bench_die("connection %u: wrong within 64 KiB after byte %llu", (unsigned)c->id,
              (unsigned long long)at);
}

/* Is a whole message what it should be? */
static inline bool loop_is_message(const struct loop *l, const struct loop_conn *c, const char *is)
{
    uint64_t head = loop_head(c, c->got / l->shape.bytes), has;
    memcpy(&has, is, sizeof has);
    return has == head && memcmp(is + sizeof head, l->pattern + head % LOOP_PATTERN,
                                 l->shape.bytes - sizeof head) == 0;
}

/* Check a piece of a message; returns its bytes. */
static inline size_t loop_check_piece(struct loop *l, struct loop_conn *c, const char *is,
                                      size_t len)
{
    size_t begin = c->got % l->shape.bytes;
    size_t n = l->shape.bytes - begin < len ? l->shape.bytes - begin : len;
    loop_write(l, c, c->got / l->shape.bytes, l->out);
    if (memcmp(l->out + begin, is, n) != 0)
        loop_wrong(c, c->got);
    return n;
}

static inline size_t loop_check_some(struct loop *l, struct loop_conn *c, const char *is,
                                     size_t len)
{
    if (c->got % l->shape.bytes != 0 || len < l->shape.bytes)
        return loop_check_piece(l, c, is, len);
    if (!loop_is_message(l, c, is))
        loop_wrong(c, c->got);
    return l->shape.bytes;
}

static inline void loop_message_done(struct loop *l, struct loop_conn *c)
{
    uint64_t k = c->got / l->shape.bytes - 1;
    uint64_t *at = &c->at_ns[k % l->shape.depth];
    l->done++;
    if (l->times != NULL)
        hist_add(l->times, l->now_ns - *at);
    if (!l->is_draining) {
        c->due += l->shape.bytes;
        *at = l->now_ns; /* message k + depth takes its place */
    }
}

static inline void loop_check(struct loop *l, struct loop_conn *c, size_t len)
{
    if (len > c->sent - c->got)
        bench_die("connection %u: %zu bytes that were never sent", (unsigned)c->id, len);
    for (const char *is = l->in; len > 0;) {
        size_t n = loop_check_some(l, c, is, len);
        c->got += n;
        is += n;
        len -= n;
        if (c->got % l->shape.bytes == 0)
            loop_message_done(l, c);
    }
}

static inline void loop_arm(struct loop *l, struct loop_conn *c, int op, bool for_room)
{
    struct epoll_event e = {.events = EPOLLIN | (for_room ? EPOLLOUT : 0u), .data.ptr = c};
    if (epoll_ctl(l->epoll, op, c->fd, &e) != 0)
        bench_die("epoll_ctl: %s", strerror(errno));
    c->waits_for_room = for_room;
}

/* Fill l->out with the bytes that may be sent now, starting in the middle of a message if needed.
 * Return their number. */
static inline const char *loop_next(struct loop *l, const struct loop_conn *c, size_t *len)
{
    uint64_t k = c->sent / l->shape.bytes, room = 0;
    size_t begin = c->sent % l->shape.bytes, left = (size_t)(c->due - c->sent);
    while (room < begin + left && room < LOOP_ROOM) {
        loop_write(l, c, k++, l->out + room);
        room += l->shape.bytes;
    }
    *len = room - begin < left ? room - begin : left;
    return l->out + begin;
}

static inline void loop_send(struct loop *l, struct loop_conn *c)
{
    bool is_full = false;
    while (c->sent < c->due && !is_full) {
        size_t len;
        const char *from = loop_next(l, c, &len);
        ssize_t n = send(c->fd, from, len, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
            bench_die("send: %s", strerror(errno));
        c->sent += n < 0 ? 0 : (uint64_t)n;
        is_full = n < (ssize_t)len;
    }
    if (is_full != c->waits_for_room)
        loop_arm(l, c, EPOLL_CTL_MOD, is_full);
}

static inline void loop_receive(struct loop *l, struct loop_conn *c)
{
    ssize_t n = recv(c->fd, l->in, sizeof l->in, 0);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0)
        bench_die("connection %u ended: %s", (unsigned)c->id,
                  n == 0 ? "end of file" : strerror(errno));
    l->now_ns = bench_now_ns();
    loop_check(l, c, (size_t)n);
}

static inline void loop_turn(struct loop *l)
{
    struct epoll_event events[LOOP_EVENTS];
    int n = epoll_wait(l->epoll, events, LOOP_EVENTS, l->wait_ms);
    l->now_ns = bench_now_ns();
    for (int i = 0; i < n; i++) {
        struct loop_conn *c = events[i].data.ptr;
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            loop_receive(l, c);
        if (c->sent < c->due)
            loop_send(l, c);
    }
}

/*
 * Turn for so long, and for so many messages at least: on a machine that others use a span may be too short for
 * every connection to have its turn. A server from which nothing comes for LOOP_STUCK_S is stuck.
 */
static inline void loop_run(struct loop *l, uint64_t ns, uint64_t messages)
{
    uint64_t began = bench_now_ns(), moved = began, seen = l->done, enough = l->done + messages;
    for (l->now_ns = began; l->now_ns - began < ns || l->done < enough;) {
        loop_turn(l);
        if (l->done != seen)
            moved = l->now_ns;
        seen = l->done;
        if (l->now_ns - moved > LOOP_STUCK_S * 1000000000ull)
            bench_die("nothing came back for %d s", LOOP_STUCK_S);
    }
}

/* Send nothing new, and see everything that is on its way come back. */
static inline void loop_drain(struct loop *l)
{
    uint64_t began = bench_now_ns();
    l->is_draining = true;
    for (unsigned i = 0; i < l->count;) {
        if (l->conns[i].got == l->conns[i].due) {
            i++;
            continue;
        }
        loop_turn(l);
        if (l->now_ns - began > LOOP_STUCK_S * 1000000000ull)
            bench_die("connection %u: no answer to its last message", i);
    }
    l->is_draining = false;
}

static inline int loop_connect(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        bench_die("connect: %s", strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

/* Open so many more connections; each has one message answered, which proves that it is served. */
static inline void loop_open(struct loop *l, int port, unsigned more)
{
    enum { AT_ONCE = 256 }; /* below every server's backlog */
    while (more > 0) {
        unsigned now = more < AT_ONCE ? more : AT_ONCE;
        for (unsigned i = 0; i < now; i++) {
            struct loop_conn *c = &l->conns[l->count];
            c->id = l->count++;
            c->fd = loop_connect(port);
            loop_arm(l, c, EPOLL_CTL_ADD, false);
            c->due = l->shape.bytes;
            loop_send(l, c);
        }
        loop_drain(l);
        more -= now;
    }
}

/* Fill every connection up to its depth. */
static inline void loop_begin(struct loop *l)
{
    l->now_ns = bench_now_ns();
    for (unsigned i = 0; i < l->count; i++) {
        struct loop_conn *c = &l->conns[i];
        c->due += l->shape.depth * l->shape.bytes;
        for (unsigned k = 0; k < l->shape.depth; k++)
            c->at_ns[k] = l->now_ns;
        loop_send(l, c);
    }
}

/* Resets, not ends: ten thousand connections in TIME_WAIT would be the next run's. */
static inline void loop_close(struct loop *l)
{
    struct linger none = {.l_onoff = 1};
    for (unsigned i = 0; i < l->count; i++) {
        setsockopt(l->conns[i].fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
        close(l->conns[i].fd);
    }
    l->count = 0;
}

#endif
