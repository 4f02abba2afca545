/*
 * net_scenes.h - building blocks of network scenes: bytes that encode their position, users of a
 * socket that are tasks or plain threads, and transfers in all forms.
 */
#ifndef T_NET_SCENES_H
#define T_NET_SCENES_H

#include "blitz/tcp.h"
#include "blitz/unix.h"
#include "support/net.h"
#include "support/net_sim.h"

/* ---- bytes that say where they belong ---- */

/* The byte number `at` of stream `id`. */
static inline uint8_t byte_of(unsigned id, uint64_t at)
{
    return (uint8_t)((id * 31 + at) * 167 >> 3);
}

static inline void fill_in(uint8_t *data, size_t bytes, unsigned id, uint64_t at)
{
    for (size_t i = 0; i < bytes; i++)
        data[i] = byte_of(id, at + i);
}

static inline void look_through(const uint8_t *data, size_t bytes, unsigned id, uint64_t at)
{
    for (size_t i = 0; i < bytes; i++)
        CHECK_EQ(data[i], byte_of(id, at + i));
}

enum { PIECE = 48 };

/* Soon, later, or never. */
static inline blitz_deadline some_deadline(void)
{
    static const uint64_t ns[] = {0, 1, 1000, 50000, 3000000};
    uint32_t which = net_dice(BZ_ARRAY_LEN(ns) + 1);
    return which == BZ_ARRAY_LEN(ns) ? BLITZ_FOREVER : which == 0 ? 0 : blitz_after(ns[which]);
}

/* ---- users of a socket ---- */

/* A task, or a plain thread: that one tries while machines hear of its file, wherever it is. */
struct user {
    int (*fn)(void *);
    void *arg;
    blitz_task *task;
    struct bz_os_thread thread;
};

static inline void thread_of(void *arg)
{
    struct user *u = arg;
    CHECK_EQ(u->fn(u->arg), 0);
}

static inline int join_the_thread(void *thread)
{
    return bz_os_thread_join(bz_os_outside(), thread);
}

static inline void user_start(struct user *u, int (*fn)(void *), void *arg)
{
    *u = (struct user){.fn = fn, .arg = arg};
    if (net_dice(2) == 0)
        u->task = t_spawn(fn, arg);
    else
        CHECK_EQ(bz_os_thread_start(bz_os_outside(), &u->thread, NULL, thread_of, u), 0);
}

static inline void user_join(struct user *u)
{
    if (u->task != NULL)
        CHECK_EQ(t_join(u->task), 0);
    else
        CHECK_EQ(blitz_blocking(join_the_thread, &u->thread), 0);
}

/* ---- one transfer of a stream ---- */

struct stream {
    blitz_tcp *t;
    unsigned id;
    uint64_t bytes; /* to be sent */
    uint64_t sent, got;
};

/* One write of a stream, in one of the ways there are. Returns its result, or a negative errno. */
static inline int64_t write_some(struct stream *s, const uint8_t *data, size_t n)
{
    blitz_piece piece[2] = {{(void *)(uintptr_t)data, n / 2},
                            {(void *)(uintptr_t)(data + n / 2), n - n / 2}};
    size_t done = 0;
    int err;
    switch (net_dice(4)) {
    case 0:
        return blitz_tcp_write(s->t, data, n, some_deadline());
    case 1:
        return blitz_tcp_writev(s->t, piece, 2, some_deadline());
    case 2:
        err = blitz_tcp_write_all(s->t, data, n, &done, some_deadline());
        return done > 0 ? (int64_t)done : err;
    default:
        err = blitz_tcp_wait(s->t, BLITZ_WRITABLE, some_deadline());
        return err != 0 ? err : blitz_tcp_try_write(s->t, data, n);
    }
}

static inline int64_t read_some(struct stream *s, uint8_t *data, size_t n)
{
    blitz_piece piece[2] = {{data, n / 2}, {data + n / 2, n - n / 2}};
    size_t done = 0;
    int64_t seen;
    int err;
    switch (net_dice(5)) {
    case 0:
        return blitz_tcp_read(s->t, data, n, some_deadline());
    case 1:
        return blitz_tcp_readv(s->t, piece, 2, some_deadline());
    case 2:
        err = blitz_tcp_read_exact(s->t, data, n, &done, some_deadline());
        return done > 0 ? (int64_t)done : err == -ENODATA ? 0 : err;
    case 3:
        seen = blitz_tcp_peek(s->t, data, n, some_deadline());
        if (seen > 0)
            look_through(data, (size_t)seen, s->id, s->got);
        return seen > 0 ? -EAGAIN : seen;
    default:
        err = blitz_tcp_wait(s->t, BLITZ_READABLE, some_deadline());
        return err != 0 ? err : blitz_tcp_try_read(s->t, data, n);
    }
}

static inline bool is_a_pause(int64_t result)
{
    return result == -ETIMEDOUT || result == -EAGAIN;
}

#endif
