/*
 * blitz/select.h - wait for the first of several things.
 *
 *     blitz_select(blitz_after(BLITZ_S)) {
 *         blitz_on_recv(jobs, &job, &err) {
 *             if (err == 0)
 *                 run(job);
 *         }
 *         blitz_on_send(log, &line, &err) { lines++; }
 *         blitz_on_time(next_tick) { tick(); }
 *         blitz_on_future(&reply.future) { use(reply.result); }
 *         blitz_on_timeout { puts("nothing for a second"); }
 *         blitz_on_cancel { stop = 1; }
 *     }
 *
 * Exactly one of the cases happens. Its block runs, and the other cases have no effect. So no message is received and
 * lost, and none is sent twice. A closed channel is ready, with `err` -EPIPE. A NULL channel is never ready: use it
 * to leave a case out.
 *
 * If the task is cancelled, a select that would have to wait ends at once, and only blitz_on_cancel runs. The same
 * holds for each further select. A loop around a select must end on it, or it spins for ever when the runtime shuts
 * down.
 *
 * If several cases are ready, blitz_select chooses one at random, each of n with a chance of one in n. This holds for
 * cases that are ready at once, and for cases that become ready together after a wait. A time is ready when its
 * moment has passed. The chance does not depend on the order or the kind of the cases. The same holds for
 * blitz_select_wait() and blitz_select_future. blitz_select_biased tries the cases in the order in which they are
 * written. A select with blitz_otherwise does not wait.
 *
 * `break` leaves a block, as it leaves a loop; the program continues after the select. The arguments of a case are
 * evaluated once, before any wait. The objects they point to must exist until the select is over, so a compound
 * literal within a case will not do. There may be up to BLITZ_SELECT_MAX cases.
 *
 * Without the statement, use an array of cases and blitz_select_wait(). For stackless tasks there is a future:
 * blitz_select_future.
 *
 * Futures as cases: a revocable one that has lost is cancelled, and nothing has happened. A detachable one continues
 * by itself. A pinned one is asked to stop, and the select waits for it. It may have completed all the same: check
 * its fields. The same holds for a blitz_chan_send_future_init() to a rendezvous channel (blitz/chan.h). With
 * blitz_on_send, a send that has lost was not done.
 */
#ifndef BLITZ_SELECT_H
#define BLITZ_SELECT_H

#include <stdbool.h>
#include <stddef.h>

#include "blitz/api.h"
#include "blitz/chan.h"
#include "blitz/future.h"
#include "blitz/time.h"

BLITZ_BEGIN_DECLS

#define BLITZ_SELECT_MAX 16

typedef enum blitz_select_kind {
    BLITZ_SELECT_SEND = 0,
    BLITZ_SELECT_RECV = 1,
    BLITZ_SELECT_TIME = 2,
    BLITZ_SELECT_FUTURE = 3
} blitz_select_kind;

/* One case. Fill in the first four fields, or use the functions below. */
typedef struct blitz_select_case {
    blitz_select_kind kind;
    int error;            /* if it was chosen: 0, -EPIPE; a send to an unbounded channel: -ENOMEM */
    void *of;             /* the channel, NULL for none; or the future; unused by a time */
    void *value;          /* to send from or receive into; else unused */
    blitz_deadline until; /* for a time */
    void *inside[12];
} blitz_select_case;

/* How to choose. */
enum {
    BLITZ_SELECT_FAIR = 0,
    BLITZ_SELECT_BIASED = 1, /* the first ready case, in their order */
    BLITZ_SELECT_NOW = 2     /* do not wait */
};

/*
 * Wait until one of `count` cases can be done, and do it.
 * Owns:     borrows the cases, and their channels and futures, until it returns. A value that is sent is copied.
 * Suspends: until a case is done, the deadline, or a cancel. Call from anywhere.
 * Returns:  the number of the case, whose `error` has the outcome; -ETIMEDOUT, -ECANCELED, -EAGAIN (BLITZ_SELECT_NOW
 *           and no case is ready), -EINVAL (more than BLITZ_SELECT_MAX, or an invalid case). On error no case
 *           happened.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_select_wait(blitz_select_case *cases, size_t count, unsigned how,
                                               blitz_deadline until);

/* blitz_select_wait() as a future. It is revocable if all its cases are. */
typedef struct blitz_select_future {
    blitz_future future; /* to be awaited */
    int result;          /* when ready: the number of the case, or -EINVAL; after a cancel that came
                            too late (see blitz/chan.h of a rendezvous) also the number */
    unsigned how;
    blitz_select_case *cases;
    size_t count;
    void *inside[16];
} blitz_select_future;

/*
 * Make a future of a select over `count` cases.
 * Owns:     borrows the cases, and their channels and futures, until it is ready or cancelled.
 * Suspends: never. Call from any thread.
 */
BLITZ_API void blitz_select_wait_future_init(blitz_select_future *f, blitz_select_case *cases,
                                             size_t count, unsigned how);

/*
 * Make a case.
 * Owns:     borrows the channel or future, and *value, until the select is over.
 * Suspends: never.
 * Returns:  the case.
 */
static inline blitz_select_case blitz_case_send(blitz_chan *c, const void *value)
{
    blitz_select_case x;
    x.kind = BLITZ_SELECT_SEND;
    x.error = 0;
    x.of = c;
    x.value = (void *)value;
    x.until = BLITZ_FOREVER;
    return x;
}
static inline blitz_select_case blitz_case_recv(blitz_chan *c, void *value)
{
    blitz_select_case x = blitz_case_send(c, value);
    x.kind = BLITZ_SELECT_RECV;
    return x;
}
static inline blitz_select_case blitz_case_time(blitz_deadline when)
{
    blitz_select_case x = blitz_case_send(NULL, NULL);
    x.kind = BLITZ_SELECT_TIME;
    x.until = when;
    return x;
}
static inline blitz_select_case blitz_case_future(blitz_future *f)
{
    blitz_select_case x = blitz_case_send(NULL, NULL);
    x.kind = BLITZ_SELECT_FUTURE;
    x.of = f;
    return x;
}

/* ---- the statement ---- */

/* A select statement goes through its cases twice. In the first pass the cases register; in the second the chosen case
 * runs its block. The cases are seen by the library, the passes are not: the compiler keeps those in registers. Not for
 * users. */
typedef struct blitz_selection_ {
    unsigned count, how;
    bool has_future;
    blitz_deadline until;
    blitz_select_case cases[BLITZ_SELECT_MAX];
} blitz_selection_;
typedef struct blitz_passes_ {
    unsigned pass, at;
    int chosen;
} blitz_passes_;

BLITZ_API BLITZ_SUSPENDS int blitz_selection_wait_(blitz_selection_ *s);
BLITZ_API void blitz_selection_full_(void);

static inline blitz_selection_ *blitz_selection_begin_(blitz_selection_ *s, unsigned how,
                                                       blitz_deadline until)
{
    s->count = 0;
    s->how = how;
    s->has_future = false;
    s->until = until;
    return s;
}
static inline int blitz_selection_pass_(blitz_selection_ *s, blitz_passes_ *p)
{
    if (p->pass == 1)
        p->chosen = blitz_selection_wait_(s);
    p->at = 0;
    return p->pass++ < 2;
}
static inline int blitz_selection_add_(blitz_selection_ *s, blitz_select_kind kind, void *of,
                                       void *value, blitz_deadline until)
{
    blitz_select_case *x = &s->cases[s->count];
    if (s->count == BLITZ_SELECT_MAX)
        blitz_selection_full_();
    s->count++;
    x->kind = kind;
    x->of = of;
    x->value = value;
    if (kind == BLITZ_SELECT_TIME)
        x->until = until;
    if (kind == BLITZ_SELECT_FUTURE)
        s->has_future = true;
    return 0;
}
static inline int blitz_selection_is_(const blitz_selection_ *s, blitz_passes_ *p, int *error)
{
    if (p->chosen != (int)p->at++)
        return 0;
    if (error != NULL)
        *error = s->cases[p->chosen].error;
    return 1;
}
static inline int blitz_selection_now_(blitz_selection_ *s)
{
    s->how |= BLITZ_SELECT_NOW;
    return 0;
}
/* Let the compiler check the type of a case's argument. */
static inline blitz_chan *blitz_chan_of_(blitz_chan *c)
{
    return c;
}
static inline blitz_future *blitz_future_of_(blitz_future *f)
{
    return f;
}
/* Two loops, because one cannot declare both. A `break` ends the inner loop, and the outer one ends with it. */
#define BLITZ_SELECT_HOW_(how, until)                                                            \
    for (blitz_selection_ blitz_s_, *blitz_s_p_ = blitz_selection_begin_(&blitz_s_, how, until); \
         blitz_s_p_ != NULL; blitz_s_p_ = NULL)                                                  \
        for (blitz_passes_ blitz_p_ = {0, 0, 0}; blitz_selection_pass_(&blitz_s_, &blitz_p_);)
#define BLITZ_ON_(kind, of, value, until, error)                                          \
    if (blitz_p_.pass == 1                                                                \
            ? blitz_selection_add_(&blitz_s_, kind, (void *)(of), (void *)(value), until) \
            : blitz_selection_is_(&blitz_s_, &blitz_p_, error))

#define blitz_select(until) BLITZ_SELECT_HOW_(BLITZ_SELECT_FAIR, until)
#define blitz_select_biased(until) BLITZ_SELECT_HOW_(BLITZ_SELECT_BIASED, until)
#define blitz_on_recv(chan, value, error) \
    BLITZ_ON_(BLITZ_SELECT_RECV, blitz_chan_of_(chan), value, BLITZ_FOREVER, error)
#define blitz_on_send(chan, value, error) \
    BLITZ_ON_(BLITZ_SELECT_SEND, blitz_chan_of_(chan), value, BLITZ_FOREVER, error)
#define blitz_on_time(when) BLITZ_ON_(BLITZ_SELECT_TIME, NULL, NULL, when, (int *)0)
#define blitz_on_future(f) \
    BLITZ_ON_(BLITZ_SELECT_FUTURE, blitz_future_of_(f), NULL, BLITZ_FOREVER, (int *)0)
/* Runs if no case is ready; the select does not wait. */
#define blitz_otherwise \
    if (blitz_p_.pass == 1 ? blitz_selection_now_(&blitz_s_) : blitz_p_.chosen == -EAGAIN)
/* Runs if the deadline has passed. */
#define blitz_on_timeout if (blitz_p_.pass == 2 && blitz_p_.chosen == -ETIMEDOUT)
/* Runs if the task was cancelled. */
#define blitz_on_cancel if (blitz_p_.pass == 2 && blitz_p_.chosen == -ECANCELED)

BLITZ_END_DECLS

#endif
