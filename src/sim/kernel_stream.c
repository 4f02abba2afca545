/*
 * kernel_stream.c - the simulated network: stream sockets.
 *
 * A connection is two sockets, each with a queue of incoming bytes: written by the other end,
 * partly arrived, partly read, and partly acknowledged. So both bytes in transit and unread bytes
 * make a write short, and room comes back after a delay. Bytes arrive in parts of random sizes, and
 * the end arrives with the last bytes or after them.
 *
 * The guarantees of the real system hold. A short read has emptied the socket, and later bytes
 * cause an edge. A short write is followed by an edge when at least a third of the room is free. An
 * end is permanent. The seed decides everything else.
 *
 * A close with unread bytes, or with SO_LINGER 0, resets the connection; so does a write to a
 * closed peer. Bytes that have arrived can still be read, and the error is returned once.
 *
 * I1  a->socket.peer == b exactly while b->socket.peer == a.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>

#include "base/check.h"
#include "sim/kernel.h"

enum { SYN_AGAIN_NS = 1000000, CAPACITY_LEAST = 4 };

void bz_sim_socket_init(struct sim_file *f)
{
    struct sim_queue *q = &f->socket.in;
    q->capacity = bz_sim_kernel->config.is_calm
                      ? SIM_BYTES
                      : CAPACITY_LEAST + bz_sim_below(SIM_BYTES - CAPACITY_LEAST + 1);
}

static bool is_gone(const struct sim_socket *s)
{
    return s->state == SIM_CONNECTED && s->peer == NULL;
}

static uint32_t room_of(const struct sim_socket *s)
{
    const struct sim_queue *q = s->peer != NULL ? &s->peer->socket.in : &s->in;
    return s->peer != NULL ? q->capacity - (q->put - q->freed) : q->capacity;
}

static bool is_writable(const struct sim_socket *s)
{
    return 3 * room_of(s) >= (s->peer != NULL ? s->peer->socket.in.capacity : 0);
}

unsigned bz_sim_socket_mask(struct sim_file *f)
{
    struct sim_socket *s = &f->socket;
    unsigned mask = s->error != 0 ? EPOLLERR | EPOLLIN | EPOLLOUT : 0;
    if (s->state == SIM_LISTENS)
        return s->line_count > 0 ? EPOLLIN : 0;
    if (s->state == SIM_FRESH)
        return mask | EPOLLOUT | EPOLLHUP;
    if (s->state == SIM_CONNECTS)
        return mask;
    bool is_over = s->in.is_end_here || s->is_deaf;
    if (is_over)
        mask |= EPOLLIN | EPOLLRDHUP;
    if (s->in.here != s->in.got)
        mask |= EPOLLIN;
    if (s->is_dead || (is_over && s->is_ended))
        mask |= EPOLLHUP;
    if (s->is_dead || s->is_ended || is_writable(s))
        mask |= EPOLLOUT;
    else
        s->wants_room = true; /* the error is returned once */
    return mask;
}

/* ---- pending events ---- */

static void let_arrive(struct sim_file *f)
{
    if (!f->arrives)
        bz_sim_send_event(SIM_ARRIVE, f, NULL, bz_sim_delay());
    f->arrives = true;
}

static void let_room(struct sim_file *f)
{
    if (!f->rooms)
        bz_sim_send_event(SIM_ROOM, f, NULL, bz_sim_delay());
    f->rooms = true;
}

static void reset(struct sim_file *f)
{
    struct sim_socket *s = &f->socket;
    if (s->is_dead || s->state != SIM_CONNECTED)
        return;
    bz_sim_kernel->books.resets++;
    s->in.put = s->in.here; /* bytes in transit are lost */
    s->in.has_end = s->in.is_end_here = true;
    s->is_dead = true;
    s->error = ECONNRESET;
    bz_sim_edge_soon(f, SIM_EDGE_BOTH);
}

/* True if this direction stands; then the arrival comes later. */
static bool stands(struct sim_file *f)
{
    struct sim_kernel *k = bz_sim_kernel;
    struct sim_queue *q = &f->socket.in;
    if (k->config.stall_one_in == 0 && q->stands_until_ns == 0)
        return false;
    uint64_t now = bz_os_now(k->os);
    if (q->stands_until_ns <= now && bz_sim_odd(k->config.stall_one_in)) {
        q->stands_until_ns = now + bz_sim_below((uint32_t)(k->config.stall_ns / 1000)) * 1000u;
        k->books.stalls++;
    }
    if (q->stands_until_ns <= now)
        return false;
    bz_sim_send_event(SIM_ARRIVE, f, NULL, q->stands_until_ns - now);
    return true;
}

static void arrive(struct sim_file *f)
{
    struct sim_queue *q = &f->socket.in;
    uint32_t left = q->put - q->here;
    if (stands(f))
        return;
    f->arrives = false;
    if (bz_sim_odd(bz_sim_kernel->config.reset_one_in) && f->socket.peer != NULL) {
        bz_sim_send_event(SIM_RESET, f->socket.peer, NULL, bz_sim_delay());
        reset(f);
        return;
    }
    q->here += left > 1 && bz_sim_odd(3) ? 1 + bz_sim_below(left) : left;
    bool is_whole = q->here == q->put;
    q->is_end_here |= is_whole && q->has_end && !bz_sim_odd(2);
    if (!is_whole || q->is_end_here != q->has_end)
        let_arrive(f);
    bz_sim_edge_soon(f, SIM_EDGE_IN);
}

static void room(struct sim_file *f)
{
    struct sim_socket *s = &f->socket;
    f->rooms = false;
    if (s->peer != NULL)
        s->peer->socket.in.freed = s->peer->socket.in.got;
    if (s->wants_room && is_writable(s)) {
        s->wants_room = false;
        bz_sim_edge_soon(f, SIM_EDGE_OUT);
    }
}

/* ---- connecting ---- */

static uint16_t *port_in(struct sockaddr_storage *name)
{
    return &((struct sockaddr_in *)(void *)name)->sin_port; /* IPv6 has it at the same place */
}

static bool is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b, socklen_t n)
{
    for (socklen_t i = 0; i < n; i++)
        if (((const uint8_t *)a)[i] != ((const uint8_t *)b)[i])
            return false;
    return true;
}

static bool is_at(struct sim_file *f, struct sockaddr_storage *name, socklen_t bytes)
{
    struct sim_socket *s = &f->socket;
    if (f->kind != SIM_SOCKET || s->state != SIM_LISTENS || s->name.ss_family != name->ss_family)
        return false;
    if (name->ss_family == AF_UNIX)
        return s->name_bytes == bytes && is_same(&s->name, name, bytes);
    return *port_in(&s->name) == *port_in(name); /* there is only one host */
}

static struct sim_file *listener_at(struct sockaddr_storage *name, socklen_t bytes)
{
    for (struct sim_file *f = bz_sim_kernel->file; f < bz_sim_kernel->file + SIM_FILES; f++)
        if (is_at(f, name, bytes))
            return f;
    return NULL;
}

bool bz_sim_is_taken(struct sockaddr_storage *name, socklen_t bytes)
{
    return listener_at(name, bytes) != NULL;
}

void bz_sim_be_peers(struct sim_file *a, struct sim_file *b)
{
    a->socket.peer = b; /* I1 */
    b->socket.peer = a;
    a->socket.state = b->socket.state = SIM_CONNECTED;
}

/* 0: connected, in the accept queue of the listener; -EAGAIN: the queue is full. */
static int join_line(struct sim_file *f)
{
    struct sim_socket *s = &f->socket;
    struct sim_file *l = listener_at(&s->peer_name, s->peer_name_bytes);
    if (l == NULL || bz_sim_odd(bz_sim_kernel->config.refuse_one_in))
        return -ECONNREFUSED;
    if (l->socket.line_count == l->socket.line_room)
        return -EAGAIN;
    struct sim_file *other = bz_sim_file_new(SIM_SOCKET);
    bz_sim_socket_init(other);
    other->socket.family = s->family;
    bz_sim_copy(&other->socket.name, &l->socket.name, sizeof l->socket.name);
    other->socket.name_bytes = l->socket.name_bytes;
    bz_sim_copy(&other->socket.peer_name, &s->name, sizeof s->name);
    other->socket.peer_name_bytes = s->name_bytes;
    other->socket.resets_at_close = true; /* until it is accepted */
    bz_sim_be_peers(f, other);
    l->socket.line[l->socket.line_count++] = other;
    bz_sim_edge_soon(l, SIM_EDGE_IN);
    return 0;
}

static void syn(struct sim_file *f)
{
    int err = join_line(f);
    if (err == -EAGAIN) {
        bz_sim_send_event(SIM_SYN, f, NULL, SYN_AGAIN_NS);
        return;
    }
    if (err != 0) {
        f->socket.error = -err;
        f->socket.state = SIM_FRESH;
    }
    bz_sim_edge_soon(f, SIM_EDGE_BOTH);
}

void bz_sim_name_it(struct sim_socket *s)
{
    if (s->name_bytes != 0)
        return;
    bz_sim_zero(&s->name, sizeof s->name);
    s->name.ss_family = (sa_family_t)s->family;
    s->name_bytes = offsetof(struct sockaddr, sa_data);
    if (s->family == AF_UNIX)
        return;
    s->name_bytes = s->family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    *port_in(&s->name) = htons(bz_sim_kernel->port++);
    if (s->family == AF_INET)
        ((struct sockaddr_in *)(void *)&s->name)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        ((struct sockaddr_in6 *)(void *)&s->name)->sin6_addr = in6addr_loopback;
}

int64_t bz_sim_connect(struct sim_file *f, const struct sockaddr *name, socklen_t bytes)
{
    struct sim_socket *s = &f->socket;
    if (s->state != SIM_FRESH)
        return s->state == SIM_CONNECTS ? -EALREADY : -EISCONN;
    if (bytes > sizeof s->peer_name)
        return -EINVAL;
    bz_sim_copy(&s->peer_name, name, bytes);
    s->peer_name_bytes = bytes;
    bz_sim_name_it(s);
    if (s->family == AF_UNIX || bz_sim_odd(4))
        return join_line(f);
    s->state = SIM_CONNECTS;
    bz_sim_send_event(SIM_SYN, f, NULL, bz_sim_delay());
    return -EINPROGRESS;
}

int64_t bz_sim_accept(struct sim_file *f, struct sockaddr *name, socklen_t *bytes, bool blocks)
{
    struct sim_socket *s = &f->socket;
    if (s->state != SIM_LISTENS)
        return -EINVAL;
    if (s->line_count == 0)
        return -EAGAIN;
    if (!bz_sim_fd_is_free())
        return -EMFILE;
    if (bz_sim_odd(64))
        return -ECONNABORTED;
    struct sim_file *other = s->line[0];
    s->line_count--;
    for (unsigned i = 0; i < s->line_count; i++)
        s->line[i] = s->line[i + 1];
    other->blocks = blocks;
    other->socket.resets_at_close = false;
    if (name != NULL) {
        socklen_t have = other->socket.peer_name_bytes;
        bz_sim_copy(name, &other->socket.peer_name, have < *bytes ? have : *bytes);
        *bytes = have;
    }
    return bz_sim_fd_new(other);
}

/* ---- bytes ---- */

static size_t sum_of(const struct iovec *vector, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += vector[i].iov_len;
    return bytes;
}

/* Copy between a queue, starting at counter `at`, and the caller's iovecs. */
static void transfer(struct sim_queue *q, uint32_t at, const struct iovec *vector, size_t bytes,
                     bool is_read)
{
    for (; bytes > 0; vector++) {
        size_t n = vector->iov_len < bytes ? vector->iov_len : bytes;
        for (size_t i = 0; i < n; i++, at++) {
            uint8_t *in = &q->data[at % SIM_BYTES], *out = (uint8_t *)vector->iov_base + i;
            bz_sim_copy(is_read ? out : in, is_read ? in : out, 1);
        }
        bytes -= n;
    }
}

static int take_error(struct sim_socket *s)
{
    int err = s->error;
    s->error = 0;
    return -err;
}

int bz_sim_error_of(struct sim_file *f)
{
    return -take_error(&f->socket);
}

int64_t bz_sim_recv(struct sim_file *f, const struct iovec *vector, size_t count, int flags)
{
    struct sim_socket *s = &f->socket;
    struct sim_queue *q = &s->in;
    size_t have = q->here - q->got, want = sum_of(vector, count), n = have < want ? have : want;
    if (s->state != SIM_CONNECTED && s->error == 0)
        return s->state == SIM_CONNECTS ? -EAGAIN : -ENOTCONN;
    if (n == 0 && want > 0) {
        if (s->error != 0)
            return take_error(s);
        return q->is_end_here || s->is_deaf ? 0 : -EAGAIN;
    }
    transfer(q, q->got, vector, n, true);
    if (flags & MSG_PEEK)
        return (int64_t)n;
    q->got += (uint32_t)n;
    if (s->peer != NULL)
        let_room(s->peer);
    return (int64_t)n;
}

/* A write to a closed peer: an error. */
static int64_t send_to_nobody(struct sim_file *f, size_t bytes)
{
    if (f->socket.family == AF_UNIX)
        return -EPIPE;
    bz_sim_send_event(SIM_RESET, f, NULL, bz_sim_delay());
    return (int64_t)bytes;
}

int64_t bz_sim_send(struct sim_file *f, const struct iovec *vector, size_t count)
{
    struct sim_socket *s = &f->socket;
    size_t want = sum_of(vector, count), n = room_of(s);
    if (s->error != 0)
        return take_error(s);
    if (s->is_dead || s->is_ended)
        return -EPIPE;
    if (s->state != SIM_CONNECTED)
        return s->state == SIM_CONNECTS ? -EAGAIN : -ENOTCONN;
    if (is_gone(s) || s->peer->socket.is_dead)
        return send_to_nobody(f, want);
    n = n < want ? n : want;
    if (n > 1 && bz_sim_odd(8)) {
        /* short although there is room: an edge follows later */
        n = 1 + bz_sim_below((uint32_t)n - 1);
        let_room(f);
    }
    s->wants_room |= n < want;
    if (n == 0)
        return want == 0 ? 0 : -EAGAIN;
    struct sim_queue *q = &s->peer->socket.in;
    transfer(q, q->put, vector, n, false);
    q->put += (uint32_t)n;
    let_arrive(s->peer);
    return (int64_t)n;
}

/* ---- the end ---- */

void bz_sim_say_end(struct sim_file *f)
{
    struct sim_socket *s = &f->socket;
    if (s->peer != NULL && !s->is_ended) {
        s->peer->socket.in.has_end = true;
        let_arrive(s->peer);
    }
    s->is_ended = true;
}

void bz_sim_socket_end(struct sim_file *f)
{
    struct sim_socket *s = &f->socket;
    struct sim_file *peer = s->peer;
    for (unsigned i = 0; i < s->line_count; i++)
        bz_sim_file_unref(s->line[i]);
    s->line_count = 0;
    if (peer == NULL)
        return;
    bool is_rude = s->resets_at_close || s->in.put != s->in.got;
    if (is_rude)
        bz_sim_send_event(SIM_RESET, peer, NULL, bz_sim_delay());
    else
        bz_sim_say_end(f);
    s->peer = peer->socket.peer = NULL; /* I1 */
    let_room(peer);                     /* its writes are discarded */
}

void bz_sim_socket_event(struct sim_event *e)
{
    if (e->kind == SIM_SYN)
        syn(e->file);
    else if (e->kind == SIM_ARRIVE)
        arrive(e->file);
    else if (e->kind == SIM_ROOM)
        room(e->file);
    else
        reset(e->file);
}
