/*
 * busy.c - learn that no actor is at work, although no message is counted.
 *
 * One shared count of the actors at work would cost two locked instructions for each message, on a line that all CPUs write.
 * So each machine counts in two fields of its own, with plain stores: actors that it has made busy, and actors that came to rest
 * on it. A thread that wants to know adds up all `rested` first, and all `begun` then.
 *
 *     The first sum is at most the number of rests at the moment between the two passes. The second sum is at least the
 *     number of begins at that moment. Rests are never more than begins. So if both sums are equal, no actor was at work
 *     at that moment.
 *
 * For weak memory: a pass that includes a rest also includes the begin before it, and every begin that the actor has caused
 * before it rested [C]. Equal sums then mean that each begin that was seen has its rest.
 *
 * A sender that is not an actor counts before it pushes. Otherwise this could happen: thread 1 pushes to an idle actor, and is
 * about to count. Thread 2 pushes to the same actor, need not place it, and asks: no actor is at work, although its own message
 * waits. If a sender finds that it need not place the actor, it counts that begin out again. A sender that is an actor needs
 * none of this: it is counted itself.
 *
 *      rest                          watch
 *      1 rested++                    1 watchers++
 *        (compiler barrier)          2 barrier on every thread
 *      2 watchers?                   3 lock; add up: none at work? done. Else enter the queue; unlock
 *        fence, add up: none at
 *        work? lock, add up again,
 *        release the queue
 *
 * [W] is the store-buffer pattern with the expensive half on the watcher's side, as in live.c. At barrier 2 each rest has either
 *     made its rested++ visible to our sum, or will see the watcher and look itself. Of several rests that look, the last one to
 *     fence sees all of them. The lock is the user's (actor/wait_quiet.c): a rest that finds none at work takes it and finds the
 *     watcher in the queue, or the watcher comes later and its sum includes that rest.
 *
 * Without barriers, a fence replaces the compiler barrier and the barrier. A bit in `watchers` says so, so that a rest looks at one
 * word.
 *
 * Rejected: a walk over all actors. It is not one moment: an actor that was idle may be at work before the walk ends.
 * Rejected: a count that is on only while a thread waits. The number to begin with is not known.
 *
 * I1  The sum of begun less that of rested is at least the number of actors that are not idle. An actor at work may have pushed to
 *     others that it has not counted yet.
 *
 * [C] rest: rested release -> sum: rested acquire   begins come before the rests that follow from them
 * [W] rest: rested, fence, watchers -> watch: watchers, barrier, sum
 * [F] was_last: fence -> was_last: fence   of two rests that look, one sees the other
 */
#include "queue/busy.h"

void bz_busy_init(struct bz_busy *b, bool is_plain)
{
    bz_atomic_init(&b->watchers, is_plain ? BZ_BUSY_PLAIN : 0);
    bz_busy_count_init(&b->outside);
}

void bz_busy_watch(struct bz_busy *b, struct bz_barrier *barrier)
{
    if (bz_fetch_add_relaxed(&b->watchers, 1) & BZ_BUSY_PLAIN) /* relaxed: [W] */
        bz_fence_seqcst();                                     /* [W] */
    else
        bz_barrier_pay(barrier); /* [W] */
}

bool bz_busy_is_watched(struct bz_busy *b)
{
    if (bz_load_relaxed(&b->watchers) & BZ_BUSY_PLAIN)            /* relaxed: constant */
        bz_fence_seqcst();                                        /* [W] */
    return (bz_load_relaxed(&b->watchers) & ~BZ_BUSY_PLAIN) != 0; /* relaxed: [W] */
}

void bz_busy_unwatch(struct bz_busy *b)
{
    bz_fetch_sub_relaxed(&b->watchers, 1); /* relaxed: a useless look does no harm */
}

bool bz_busy_is_none(struct bz_busy *b, bz_busy_at *at, void *ctx)
{
    uint64_t rested = bz_load_acquire(&b->outside.rested); /* [C] */
    struct bz_busy_count *c;
    for (unsigned i = 0; (c = at(ctx, i)) != NULL; i++)
        rested += bz_load_acquire(&c->rested);           /* [C] */
    uint64_t begun = bz_load_relaxed(&b->outside.begun); /* relaxed: [C] came before */
    for (unsigned i = 0; (c = at(ctx, i)) != NULL; i++)
        begun += bz_load_relaxed(&c->begun); /* relaxed: likewise */
    return begun == rested;
}

bool bz_busy_was_last(struct bz_busy *b, bz_busy_at *at, void *ctx)
{
    bz_fence_seqcst();                  /* [F] [W] */
    return bz_busy_is_none(b, at, ctx); /* [F]: with the rests that fenced before ours */
}
