/*
 * clockwork.h - the virtual clock of a runtime, and how it moves: blitz/clock.h.
 *
 * A runtime whose options ask for it has a clock that can be paused (time/clock.h). A paused clock moves if a caller
 * wants it at a later moment, or by itself to the next timer, and only when every task waits. clockwork.c has the
 * rules.
 *
 * All of this is for tests. A runtime with the system's clock pays one comparison at each reading of the clock in
 * the loop (find.c), and one before a sleep (search.c).
 */
#ifndef BZ_RUNTIME_CLOCKWORK_H
#define BZ_RUNTIME_CLOCKWORK_H

#include "base/list.h"
#include "os/lock.h"
#include "time/clock.h"
#include "wait/waiter.h"

struct bz_machine;
struct bz_runtime;

struct bz_clockwork {
    struct bz_clock clock;  /* changed under lock, read by any thread */
    struct bz_lock lock;    /* rank: BZ_RANK_WAIT; guards the next two */
    struct bz_list callers; /* struct bz_goal: callers that wait until the clock has arrived */
    bool is_auto;           /* while it is paused, it moves to the next timer by itself */
    /* 1: a caller waits, or is_auto. Written under lock; machines look. */
    bz_atomic(uint32_t) is_wanted;
    bz_atomic(uint32_t) movers; /* threads that move tasks without a proc: BZ_MOVER */
};

/* A caller that wants the clock at a later moment: a request (park/request.h), under the lock of the clockwork. */
struct bz_goal {
    struct bz_request request;
    struct bz_runtime *rt; /* constant, as is */
    uint64_t ns;           /* how far to move */
    uint64_t at;           /* the moment; written when it enters */
};

void bz_clockwork_init(struct bz_clockwork *c, const struct bz_os *os);

/* Under the lock: say in is_wanted whether machines must look at the clock before they sleep. */
void bz_clockwork_say_wanted(struct bz_clockwork *c);

/*
 * The function of rt->mains. A machine of a runtime with a virtual clock has announced its sleep; *until is its first
 * timer. If every task waits, move the clock. Set *until to the system's time at which the machine must look again.
 * Returns: true: the clock has moved, or a caller was woken: do not sleep.
 */
BZ_MUST_USE bool bz_clockwork_look(struct bz_machine *m, uint64_t *until);

/* Let the machines look at the clock, which was paused, moved or resumed, or is wanted at another moment. Any thread,
 * without the lock. */
void bz_clockwork_tell(struct bz_runtime *rt);

/* The low bits of `movers` count the threads, the others how often one began. */
enum { BZ_MOVER = 1 << 12 };

/* A thread without a proc is about to fire timers, to deliver events of I/O or to take tasks out of queues; and it has
 * made all of these tasks visible again. */
static inline void bz_clockwork_moves(struct bz_clockwork *c)
{
    bz_fetch_add_acqrel(&c->movers, BZ_MOVER + 1); /* clockwork.c [D] */
}
static inline void bz_clockwork_moved(struct bz_clockwork *c)
{
    bz_fetch_sub_release(&c->movers, 1); /* clockwork.c [D] */
}

#endif
