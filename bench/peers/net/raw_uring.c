/*
 * raw_uring.c - the other floor: the same servers as io_uring can do them.
 *
 * One thread, one enter a turn. Accepts and receives are multishot; a receive takes a buffer only when there are bytes, and the
 * answer is sent out of it. A connection has one send on its way at a time, later
 * buffers wait in a list, so bytes stay in order. When all buffers are out, receives end with -ENOBUFS and
 * are started again as soon as one is back.
 */
#include "net/serve.h"
#include "peers/net/ring.h"

enum { ENTRIES = 4096, COMPLETIONS = 32768, BUFFERS = 1024, NONE = -1 };
enum op { OP_ACCEPT, OP_RECEIVE, OP_SEND };

struct conn {
    int first, last;  /* buffers to be sent, linked by next_of; NONE: none */
    unsigned answers; /* http: owed, those being sent included */
    unsigned sending; /* http: answers on their way */
    bool is_sending, is_receiving, is_starved, is_over;
    unsigned char request_state;
};

static struct ring ring;
static struct ring_buffers buffers;
static struct conn conns[SERVE_FDS];
static int next_of[BUFFERS];
static unsigned bytes_of[BUFFERS];
static int starved[SERVE_FDS];
static unsigned starved_count;
static bool is_http;

static struct io_uring_sqe *prepare(enum op op, int fd)
{
    struct io_uring_sqe *e = ring_get(&ring);
    e->fd = fd;
    e->user_data = (uint64_t)op << 32 | (unsigned)fd;
    return e;
}

static void start_accept(int listener)
{
    struct io_uring_sqe *e = prepare(OP_ACCEPT, listener);
    e->opcode = IORING_OP_ACCEPT;
    e->ioprio = IORING_ACCEPT_MULTISHOT;
}

static void start_receive(int fd)
{
    struct io_uring_sqe *e = prepare(OP_RECEIVE, fd);
    e->opcode = IORING_OP_RECV;
    e->ioprio = IORING_RECV_MULTISHOT;
    e->flags = IOSQE_BUFFER_SELECT;
    conns[fd].is_receiving = true;
}

static void start_send(int fd, const char *bytes, size_t len)
{
    struct io_uring_sqe *e = prepare(OP_SEND, fd);
    e->opcode = IORING_OP_SEND;
    e->addr = (uint64_t)(uintptr_t)bytes;
    e->len = (unsigned)len;
    e->msg_flags = MSG_WAITALL | MSG_NOSIGNAL; /* the whole of it, or an error */
    conns[fd].is_sending = true;
}

static void give_back(int id)
{
    ring_give(&buffers, (unsigned)id);
    ring_give_done(&buffers);
    while (starved_count > 0) {
        int fd = starved[--starved_count];
        conns[fd].is_starved = false;
        if (!conns[fd].is_over) {
            start_receive(fd);
            return;
        }
        close(fd); /* it sends nothing any more, or it would not be over */
    }
}

static void send_next(int fd)
{
    struct conn *c = &conns[fd];
    if (is_http && c->answers > 0) {
        c->sending = c->answers < SERVE_ANSWERS ? c->answers : SERVE_ANSWERS;
        start_send(fd, serve_answers(), c->sending * (sizeof NET_ANSWER - 1));
    } else if (c->first != NONE) {
        start_send(fd, ring_buffer(&buffers, (unsigned)c->first), bytes_of[c->first]);
    }
}

static void end_if_over(int fd)
{
    struct conn *c = &conns[fd];
    if (!c->is_over || c->is_sending || c->is_receiving)
        return; /* its completion comes here again */
    while (c->first != NONE) {
        int id = c->first;
        c->first = next_of[id];
        give_back(id);
    }
    if (!c->is_starved)
        close(fd); /* else it is in the list, and closed when it is taken out */
}

static void on_accept(int listener, const struct io_uring_cqe *done)
{
    if (!(done->flags & IORING_CQE_F_MORE))
        start_accept(listener);
    if (done->res < 0)
        return;
    if (done->res >= SERVE_FDS)
        bench_die("more than %d files", SERVE_FDS);
    conns[done->res] = (struct conn){.first = NONE, .last = NONE};
    serve_nodelay(done->res);
    start_receive(done->res);
}

static void keep(struct conn *c, int id, unsigned len)
{
    next_of[id] = NONE;
    bytes_of[id] = len;
    if (c->first == NONE)
        c->first = id;
    else
        next_of[c->last] = id;
    c->last = id;
}

static void on_bytes(int fd, int id, unsigned len)
{
    struct conn *c = &conns[fd];
    if (is_http) {
        c->answers += serve_requests(ring_buffer(&buffers, (unsigned)id), len, &c->request_state);
        give_back(id);
    } else {
        keep(c, id, len);
    }
    if (!c->is_sending)
        send_next(fd);
}

static void on_receive(int fd, const struct io_uring_cqe *done)
{
    struct conn *c = &conns[fd];
    c->is_receiving = (done->flags & IORING_CQE_F_MORE) != 0;
    if (done->res > 0) {
        on_bytes(fd, (int)(done->flags >> IORING_CQE_BUFFER_SHIFT), (unsigned)done->res);
        if (!c->is_receiving)
            start_receive(fd);
    } else if (done->res == -ENOBUFS) {
        c->is_starved = true;
        starved[starved_count++] = fd;
    } else {
        c->is_over = true;
        end_if_over(fd);
    }
}

static void on_send(int fd, const struct io_uring_cqe *done)
{
    struct conn *c = &conns[fd];
    c->is_sending = false;
    if (is_http) {
        c->answers -= c->sending;
    } else {
        int id = c->first;
        c->first = next_of[id];
        give_back(id);
    }
    if (done->res < 0)
        c->is_over = true;
    if (c->is_over)
        end_if_over(fd);
    else
        send_next(fd);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[argc - 1] : "echo-64";
    is_http = net_is_http(name);
    ring_init(&ring, ENTRIES, COMPLETIONS);
    ring_buffers_init(&ring, &buffers, BUFFERS, (unsigned)net_buffer_of(name));
    start_accept(serve_listen());
    for (;;) {
        ring_enter(&ring, 1);
        unsigned head = atomic_load_explicit(ring.cq_head, memory_order_relaxed);
        for (struct io_uring_cqe *done; (done = ring_peek(&ring, head)) != NULL; head++) {
            int fd = (int)(unsigned)done->user_data;
            enum op op = (enum op)(done->user_data >> 32);
            if (op == OP_ACCEPT)
                on_accept(fd, done);
            else if (op == OP_RECEIVE)
                on_receive(fd, done);
            else
                on_send(fd, done);
        }
        atomic_store_explicit(ring.cq_head, head, memory_order_release);
    }
}
