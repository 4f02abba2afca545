/*
 * lin.h - is a recorded history of channel operations linearizable?
 *
 *     struct lin h = {.capacity = 1};
 *     int i = lin_call(&h, LIN_SEND, 7);           // as it is called
 *     lin_return(&h, i, rc, 0);                    // as it returns
 *     CHECK(lin_is_linearizable(&h));
 *
 * A history is correct if each operation can be assigned one moment between its call and its return
 * such that their sequential execution matches a sequential channel: a queue with a capacity,
 * closed or not. At a rendezvous a send and its receive have one moment together.
 *
 * The search is Wing and Gong's. An operation could be next if no remaining operation returned
 * before it was called. Try each one that the model allows, and continue from there. A pair of
 * completed operations and model state that failed once is not tried again. Up to LIN_MAX
 * operations, which is plenty for a few tasks that meet.
 *
 * Values are different from each other, so a value also tells what was sent.
 *
 * Linearizable is not enough: a channel on which every wait ends by its deadline would be. So an operation
 * that waited for long and timed out must have had a reason, also late in its wait:
 *
 *     h.now = clock;                               // before each call and return, in virtual time
 *     lin_waits_until(&h, i, until);               // after the call, if it waits for long
 *     CHECK(lin_is_prompt(&h));
 *
 * "Late" is the second half of the wait: by then, in virtual time, all others have come to rest. Room or
 * a value that is there all that time was not given to it. At a rendezvous the reason would be that
 * no partner waited: a send and a receive must not wait beside each other for long.
 */
#ifndef T_LIN_H
#define T_LIN_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LIN_MAX = 32, LIN_SLOTS = 16, LIN_SEEN = 1 << 14 };

enum lin_kind {
    LIN_SEND,     /* value; 0, -EPIPE, -ETIMEDOUT, -ECANCELED, -EAGAIN (try) */
    LIN_RECV,     /* gives the value; likewise */
    LIN_CLOSE,    /* 0 */
    LIN_SHUT,     /* how many were dropped */
    LIN_ADD,      /* a counted sender more: 0, -EPIPE */
    LIN_DROP,     /* one less; the last one closes */
    LIN_LEN,      /* how many there are */
    LIN_IS_CLOSED /* 1 or 0 */
};

struct lin_op {
    enum lin_kind kind;
    int value, result;
    uint64_t called, returned;    /* 0: it has not */
    uint64_t called_ns, until_ns; /* of one that waits for long; else until_ns is 0 */
};

/* The channel in its head. */
struct lin_state {
    int queue[LIN_SLOTS];
    int count, senders;
    bool is_closed, is_shut;
};

struct lin {
    int capacity; /* up to LIN_SLOTS */
    int senders;  /* counted ones to begin with */
    uint64_t clock;
    uint64_t now;                    /* the caller's clock */
    uint64_t at_ns[2 * LIN_MAX + 1]; /* the result at each tick */
    int count;
    struct lin_op op[LIN_MAX];
};

static inline uint64_t lin_tick(struct lin *h)
{
    h->at_ns[++h->clock] = h->now;
    return h->clock;
}

static inline int lin_call(struct lin *h, enum lin_kind kind, int value)
{
    int i = h->count++;
    h->op[i] = (struct lin_op){.kind = kind, .value = value, .called = lin_tick(h)};
    h->op[i].called_ns = h->now;
    return i;
}

static inline void lin_waits_until(struct lin *h, int i, uint64_t until_ns)
{
    h->op[i].until_ns = until_ns;
}

static inline void lin_return(struct lin *h, int i, int result, int value)
{
    h->op[i].result = result;
    if (h->op[i].kind == LIN_RECV)
        h->op[i].value = value;
    h->op[i].returned = lin_tick(h);
}

/* ---- the model ---- */

static inline bool lin_send(const struct lin *h, struct lin_state *s, const struct lin_op *op)
{
    switch (op->result) {
    case 0: /* at a rendezvous: together with its receive, below */
        if (s->is_closed || s->count >= h->capacity)
            return false;
        s->queue[s->count++] = op->value;
        return true;
    case -EPIPE:
        return s->is_closed;
    case -EAGAIN: /* a rendezvous: a history does not show waiting parties */
        return !s->is_closed && (h->capacity == 0 || s->count == h->capacity);
    default:
        return true; /* nothing happened */
    }
}

static inline bool lin_recv(struct lin_state *s, const struct lin_op *op)
{
    switch (op->result) {
    case 0:
        if (s->count == 0 || s->queue[0] != op->value)
            return false;
        s->count--;
        memmove(s->queue, s->queue + 1, (size_t)s->count * sizeof s->queue[0]);
        return true;
    case -EPIPE:
        return s->is_closed && s->count == 0;
    case -EAGAIN:
        return !s->is_closed && s->count == 0;
    default:
        return true; /* nothing happened */
    }
}

static inline bool lin_shut(struct lin_state *s, const struct lin_op *op)
{
    bool is_right = op->result == s->count;
    s->count = 0;
    s->is_closed = s->is_shut = true;
    return is_right;
}

static inline bool lin_add(struct lin_state *s, const struct lin_op *op)
{
    s->senders += op->result == 0;
    return op->result == (s->is_closed ? -EPIPE : 0);
}

static inline bool lin_drop(struct lin_state *s)
{
    if (--s->senders == 0)
        s->is_closed = true;
    return s->senders >= 0;
}

/* One operation, all by itself. False: that is not what would have come of it. */
static inline bool lin_step(const struct lin *h, struct lin_state *s, const struct lin_op *op)
{
    switch (op->kind) {
    case LIN_SEND:
        return lin_send(h, s, op);
    case LIN_RECV:
        return lin_recv(s, op);
    case LIN_CLOSE:
        s->is_closed = true;
        return true;
    case LIN_SHUT:
        return lin_shut(s, op);
    case LIN_ADD:
        return lin_add(s, op);
    case LIN_DROP:
        return lin_drop(s);
    case LIN_LEN:
        return op->result == s->count;
    default:
        return op->result == s->is_closed;
    }
}

/* ---- the search ---- */

struct lin_search {
    const struct lin *h;
    uint64_t seen[LIN_SEEN]; /* hashes of what led nowhere; 0: free */
};

static inline uint64_t lin_hash(uint32_t done, const struct lin_state *s)
{
    uint64_t x = UINT64_C(0x9e3779b97f4a7c15) ^ done;
    const int rest[] = {s->count, s->senders, s->is_closed, s->is_shut};
    for (int i = 0; i < 4 + s->count; i++) {
        x ^= (uint64_t)(i < 4 ? rest[i] : s->queue[i - 4]) + UINT64_C(0x9e3779b97f4a7c15);
        x *= UINT64_C(0xbf58476d1ce4e5b9);
        x ^= x >> 29;
    }
    return x | 1;
}

/* Was it there already? It is now. A full table forgets: then it is only slower. */
static inline bool lin_was_here(struct lin_search *f, uint64_t hash)
{
    for (int i = 0; i < 8; i++) {
        uint64_t *at = &f->seen[(hash / 2 + (uint64_t)i) % LIN_SEEN];
        if (*at == hash)
            return true;
        if (*at == 0) {
            *at = hash;
            return false;
        }
    }
    return false;
}

/* The first return among the remaining operations: an operation called later cannot be next. */
static inline uint64_t lin_horizon(const struct lin *h, uint32_t done)
{
    uint64_t first = UINT64_MAX;
    for (int i = 0; i < h->count; i++)
        if (!(done >> i & 1) && h->op[i].returned < first)
            first = h->op[i].returned;
    return first;
}

static bool lin_go_on(struct lin_search *f, uint32_t done, const struct lin_state *s);

/* A send and its receive at a rendezvous, in one moment. */
static inline bool lin_meet(struct lin_search *f, uint32_t done, const struct lin_state *s, int i,
                            uint64_t horizon)
{
    const struct lin *h = f->h;
    if (s->is_closed)
        return false;
    for (int k = 0; k < h->count; k++) {
        const struct lin_op *r = &h->op[k];
        if ((done >> k & 1) || r->kind != LIN_RECV || r->result != 0 || r->called > horizon)
            continue;
        if (r->value == h->op[i].value && lin_go_on(f, done | 1u << i | 1u << k, s))
            return true;
    }
    return false;
}

static bool lin_go_on(struct lin_search *f, uint32_t done, const struct lin_state *s)
{
    const struct lin *h = f->h;
    if (done == (h->count == 32 ? UINT32_MAX : (1u << h->count) - 1))
        return true;
    if (lin_was_here(f, lin_hash(done, s)))
        return false;
    uint64_t horizon = lin_horizon(h, done);
    for (int i = 0; i < h->count; i++) {
        const struct lin_op *op = &h->op[i];
        if ((done >> i & 1) || op->called > horizon)
            continue;
        if (h->capacity == 0 && op->kind == LIN_SEND && op->result == 0) {
            if (lin_meet(f, done, s, i, horizon))
                return true;
            continue;
        }
        struct lin_state next = *s;
        if (lin_step(h, &next, op) && lin_go_on(f, done | 1u << i, &next))
            return true;
    }
    return false;
}

/* All operations have returned. */
static inline bool lin_is_linearizable(const struct lin *h)
{
    static struct lin_search f;
    memset(&f, 0, sizeof f);
    f.h = h;
    bool is_right = lin_go_on(&f, 0, &(struct lin_state){.senders = h->senders});
    f.h = NULL;
    return is_right;
}

/* ---- waiting for long ---- */

static inline bool lin_waited(const struct lin_op *op)
{
    return op->until_ns != 0 && op->result == -ETIMEDOUT;
}

/* Do a send and a receive wait beside each other for at least half of the time of both? */
static inline bool lin_missed(const struct lin_op *a, const struct lin_op *b)
{
    uint64_t from = a->called_ns > b->called_ns ? a->called_ns : b->called_ns;
    uint64_t until = a->until_ns < b->until_ns ? a->until_ns : b->until_ns;
    return a->kind == LIN_SEND && b->kind == LIN_RECV && from < until &&
           2 * (until - from) > a->until_ns - a->called_ns &&
           2 * (until - from) > b->until_ns - b->called_ns;
}

/* All operations have returned, and the history is linearizable. */
static inline bool lin_is_prompt(const struct lin *h)
{
    static struct lin late;
    late = *h;
    for (int i = 0; i < h->count; i++) {
        struct lin_op *op = &late.op[i];
        if (!lin_waited(op))
            continue;
        for (int k = 0; k < h->count && h->capacity == 0; k++)
            if (lin_waited(&h->op[k]) && lin_missed(op, &h->op[k]))
                return false;
        op->result = -EAGAIN; /* as one that was only tried, but late */
        while (op->called < op->returned &&
               2 * (h->at_ns[op->called] - op->called_ns) < op->until_ns - op->called_ns)
            op->called++;
    }
    return lin_is_linearizable(&late);
}

/* For a failure: the history in lines. */
static inline void lin_print(const struct lin *h, char *text, size_t room)
{
    static const char *const name[] = {"send", "recv", "close", "shut",
                                       "add",  "drop", "len",   "is_closed"};
    size_t used = 0;
    for (int i = 0; i < h->count && used < room; i++) {
        const struct lin_op *op = &h->op[i];
        int n = snprintf(text + used, room - used, "%3d..%-3d %s %d -> %d\n", (int)op->called,
                         (int)op->returned, name[op->kind], op->value, op->result);
        used += n > 0 ? (size_t)n : 0;
    }
}

#endif
