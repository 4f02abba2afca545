/*
 * mailbox.h - the messages of an actor, its signals, and its generation: the wake-up protocol of actors.
 *
 * An actor has one queue for messages (base/mailq.h) and one stack for signals. The queue is also the schedule:
 *
 *     the queue is empty        the actor is idle. No worker has it
 *     the queue is not empty    the actor is scheduled, runs, waits in a behaviour, or is muted
 *
 * The sender whose push finds the queue empty places the actor in a run queue. The worker that runs the actor is its owner
 * until it removes the last node. That removal is the last that the worker does to the actor: it may run elsewhere at once,
 * or be gone. There is no other way in or out, so no wake-up can be lost between "looked" and "went to sleep".
 *
 * Signals (exit, down, stop) overtake messages. They are in a stack of their own, which the owner looks at between two
 * messages. To wake an idle actor, a signal needs a node in the queue, too: the *bell*. The sender of a signal first pushes
 * the signal, then rings. If the bell is in the queue already, ringing does nothing: the owner will come to that bell, and
 * looks at the signals then at the latest. Only the sender that finds the stack empty rings: a signal on top of another is
 * taken with it, for the owner always takes the whole stack. The bell must not be pushed while it is in the queue, and the owner cannot say
 * "it is out" after it has removed the last node. So there are two bells, used in turn. The owner that comes to one bell
 * makes the other the next *before* it looks at the signals, and before it removes the first.
 *
 *     ringing     BZ_RINGING: a bell is in the queue. BZ_BELL: the bell that is there, or is next
 *     ring        fetch_or BZ_RINGING: if it was clear, push the bell that was next
 *     hear        add BZ_RINGING: it is clear, and the carry makes the other bell the next. Then look at the signals
 *
 * A cancel needs no memory: it sets a flag elsewhere (task/word.h) and rings.
 *
 * Muting (pressure.c) uses the same word, so that it has an order with each signal. Its marks are set and cleared under one lock:
 *
 *     BZ_MUTED     the actor is in a list of muted actors
 *     BZ_PRESSED   senders are held back for this actor: it looks at its length at the end of each turn
 *     BZ_ALARMED   its long mailbox was reported, and it has not been short since; set without the lock
 *     BZ_HUNGRY    the task for which the actor stands (receive.c) waits for a message that it has not: senders must not be held
 *                  back; set and cleared by that task
 *     BZ_HEAP_LATE a handler has allocated much and has not returned: nothing is collected; set and cleared by the actor
 *     BZ_TRAPS     exit signals of links are messages; set and cleared by the actor, or the task for which it stands
 *
 * press     under the lock, a sender presses the receiver and enters its list. After the lock it rings. The bell brings the
 *           owner to the mark: it cannot rest before it has heard the bell [R]
 * mute      an actor that enters the list sets its own BZ_MUTED, then looks at its signals. If it has some, it goes on instead.
 *           A ringer that comes later finds the mark, and unmutes [M]
 * relieve   the owner takes senders off the list. When it finds no more, it clears BZ_PRESSED, under the lock
 * death     a presser touches `signals` after its mark. If it finds them closed, the actor is dead, and the presser relieves
 *           the list itself. If not, the dying actor acquires the mark with its close [D]
 *
 * Death and the next life. The memory of an actor stays an actor's, and its mailbox is always valid. So a sender needs no
 * reference: it compares the generation of the id with that of the mailbox, and pushes. The actor may die in between, and
 * another may be born in the same memory. So the message carries the generation, and an owner drops what is not for it. A
 * dead actor must never be scheduled by such a late push: its queue is never empty. The last that a dying actor pushes is
 * its *stub*. It removes everything before the stub, and leaves the stub where it is. The next actor in this memory begins
 * with the stub, steps over it, and drops the late messages behind it.
 *
 *     alive      [root] -> [message] -> [bell] -> [message]
 *     dead       [root] -> [stub] -> [late message]
 *     born       [root] -> [stub] -> [late message] -> [start]
 *
 * A sender that has to know whether its message can still be answered (a call) looks at the generation again after its
 * push. The dying actor changes the generation before it pushes the stub. If the push came before the stub, the dying actor
 * finds the message and answers. If the push came after the stub, it reads from that exchange, and so the second look sees
 * the new generation [G]. A signal knows at once: the dying actor closes the stack, and a push is then refused [S].
 *
 * Length. A third locked instruction for each message would be needed to count them. But only a push that finds a node
 * before it has to count: it makes one more pair of neighbours. The owner counts the pairs that it removes, with a plain
 * store. A push to an empty queue and the removal of the last node have their one locked instruction already.
 *
 * Rejected:
 *  - a signal with a node in the queue for itself: two links a signal, and its memory must outlive both;
 *  - a spacer node that the owner pushes behind a bell that is the last (the stub would do): an actor that dies there has
 *    its stub in the queue already;
 *  - reference counts on send: two locked instructions, and a dead actor that lives as long as a forgotten id;
 *  - a closed mark in the queue: an exchange cannot see it before it has pushed.
 *
 * I1  The queue of a dead actor begins with its stub and is never empty. A living actor has stepped over its stub.
 * I2  A bell is in the queue at most once: bit 1 of `ringing` is set from before its push until its owner hears it.
 * I3  If there is a signal that no owner has seen, and the actor is alive, then a bell is in the queue, or the sender of the
 *     oldest such signal is about to ring.
 * I4  generation is odd while the actor is alive. It is changed by the spawner of a dead actor and the owner of a living one.
 * I5  added - removed is the number of pairs of neighbours in the queue, and of messages in the inbox of a porter's task, except
 *     for pushes and steps in progress.
 *
 * [S] signal: signals release -> take, close: signals acquire   the signal is filled
 * [R] ring: ringing acq_rel -> hear: ringing acq_rel   a ringer that finds the bell rung has pushed its signal before the
 *                                                      owner looks; else it finds it quiet, and rings the other
 * [M] ring: ringing acq_rel -> mute: ringing acquire   the actor sees the signal; or the ringer, which comes later, sees the
 *                                                     mark. The lock does the rest
 * [D] press: ringing, then signals release -> close: signals acquire, then ringing   the dying actor sees the mark, or the
 *                                                                                  presser sees the death
 * [G] close: generation, then push of the stub (mailq.h [B]) -> push, then generation   a push behind the stub sees the death
 * [H] close: generation, signals release, open: generation release -> signal: generation, signals acquire   what the actor did in
 *                                                     its life comes before a refused sender frees the signal (hearing.h)
 */
#ifndef BZ_ACTOR_MAILBOX_H
#define BZ_ACTOR_MAILBOX_H

#include "base/check.h"
#include "base/mailq.h"

struct bz_signal_link {
    bz_shared(struct bz_signal_link *) next; /* the sender's, then the owner's */
};

/* Of `ringing`. The carry of BZ_BELL goes to the bit above, which has no meaning. */
enum {
    BZ_KILLED = 1,
    BZ_MUTED = 2,
    BZ_PRESSED = 4,
    BZ_ALARMED = 8,
    BZ_TRAPS = 16,
    BZ_HUNGRY = 32,
    BZ_HEAP_LATE = 64,
    BZ_RINGING = 1 << 29,
    BZ_BELL = 1 << 30
};

struct bz_mailbox {
    struct bz_mailq queue;
    bz_atomic(struct bz_signal_link *) signals; /* newest first; closed: bz_mailbox_closed() */
    struct bz_mpsc_node bell[2];                /* I2 */
    struct bz_mpsc_node stub;                   /* I1 */
    bz_atomic(uint32_t) generation;             /* I4 */
    bz_atomic(uint32_t) ringing;                /* I2, and the marks above */
    bz_atomic(uint32_t) added;                  /* I5; by senders */
    bz_atomic(uint32_t) removed;                /* I5; written by the owner */
};

/* The value of `signals` in a dead actor. */
static inline struct bz_signal_link *bz_mailbox_closed(struct bz_mailbox *b)
{
    return (struct bz_signal_link *)(void *)&b->signals; /* no signal is there */
}

/* A mailbox without an actor, as a dead one leaves it: I1. */
static inline void bz_mailbox_init(struct bz_mailbox *b)
{
    bz_mailq_init(&b->queue);
    bz_atomic_init(&b->signals, bz_mailbox_closed(b));
    bz_atomic_init(&b->generation, 0);
    bz_atomic_init(&b->ringing, 0);
    bz_atomic_init(&b->added, 0);
    bz_atomic_init(&b->removed, 0);
    bool is_first = bz_mailq_push(&b->queue, &b->stub);
    BZ_ASSERT(is_first);
    (void)is_first;
}

/* True if the actor of that generation is alive; the caller may then push to it. */
static BZ_ALWAYS_INLINE bool bz_mailbox_is_for(struct bz_mailbox *b, uint32_t generation)
{
    /* relaxed: the id came from the spawner, after the open; an old value is that of an old id */
    return bz_load_relaxed(&b->generation) == generation;
}

/* The same for a signal: before a sender that is refused frees it, the dead actor has left it. */
static inline bool bz_mailbox_takes_signals(struct bz_mailbox *b, uint32_t generation)
{
    return bz_load_acquire(&b->generation) == generation; /* [H] */
}

/* The same after a push. False: it may be behind the stub, where no actor answers. */
static inline bool bz_mailbox_is_still_for(struct bz_mailbox *b, uint32_t generation)
{
    return bz_load_relaxed(&b->generation) == generation; /* relaxed: [G], the push acquired */
}

/* ---- sending: any thread ---- */

/*
 * Push a message, or another node.
 * Returns: true: the queue was empty; the caller must place the actor. *behind is the number of nodes before this one, about.
 */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool
bz_mailbox_push(struct bz_mailbox *b, struct bz_mpsc_node *node, uint32_t *behind)
{
    *behind = 0;
    if (bz_mailq_push(&b->queue, node))
        return true;
    uint32_t added = bz_fetch_add_relaxed(&b->added, 1) + 1; /* relaxed: a count, I5 */
    uint32_t pairs = added - bz_load_relaxed(&b->removed);   /* relaxed: a count */
    *behind = (int32_t)pairs > 0 ? pairs : 0; /* a pair may be removed before it is counted */
    return false;
}

/* Ring the bell. True: the caller must place the actor. *was: `ringing` before; if the actor was muted and has a signal, the
 * caller must unmute it. */
BZ_MUST_USE static inline bool bz_mailbox_ring_as(struct bz_mailbox *b, uint32_t *was)
{
    uint32_t behind;
    *was = bz_fetch_or_acqrel(&b->ringing, BZ_RINGING); /* [R] [M] */
    return (*was & BZ_RINGING) == 0 &&
           bz_mailbox_push(b, &b->bell[*was / BZ_BELL % 2], &behind); /* I2 */
}

/* The same without a signal. */
BZ_MUST_USE static inline bool bz_mailbox_ring(struct bz_mailbox *b)
{
    uint32_t was;
    return bz_mailbox_ring_as(b, &was);
}

/* After a press and a ring: true if the actor is dead, and will not see it. */
BZ_MUST_USE static inline bool bz_mailbox_is_closed(struct bz_mailbox *b)
{
    struct bz_signal_link *head = bz_load_relaxed(&b->signals); /* relaxed: a first guess */
    while (head != bz_mailbox_closed(b))
        if (bz_cas_weak_rel_rlx(&b->signals, &head, head)) /* [D] */
            return false;
    return true;
}

/* Push a signal. True: it is pushed, and if it *is_first, the caller must ring. False: the actor is dead, and the signal is
 * still the caller's. */
BZ_MUST_USE static inline bool bz_mailbox_signal(struct bz_mailbox *b, struct bz_signal_link *s,
                                                 bool *is_first)
{
    struct bz_signal_link *head = bz_load_acquire(&b->signals); /* [H] */
    for (;;) {
        *is_first = head == NULL;
        if (head == bz_mailbox_closed(b))
            return false;
        bz_set(&s->next, head);
        if (bz_cas_weak_rel_acq(&b->signals, &head, s)) /* [S] I3, [H] if lost */
            return true;
    }
}

/* ---- the owner ---- */

/* Step over the first node. Returns the next; NULL if the first is the last, or a push is in its gap. */
static BZ_ALWAYS_INLINE struct bz_mpsc_node *bz_mailbox_step(struct bz_mailbox *b,
                                                             struct bz_mpsc_node *first)
{
    struct bz_mpsc_node *second = bz_mailq_second(first);
    if (second == NULL)
        return NULL;
    bz_mailq_step(&b->queue, second);
    bz_store_relaxed(&b->removed, bz_load_relaxed(&b->removed) + 1); /* relaxed: ours, I5 */
    return second;
}

static BZ_ALWAYS_INLINE bool bz_mailbox_is_bell(struct bz_mailbox *b,
                                                const struct bz_mpsc_node *node)
{
    return (uintptr_t)node - (uintptr_t)b->bell < sizeof b->bell; /* one comparison for both */
}

/* The first node is this bell. From here on a ringer pushes the other one; take the signals next. */
static inline void bz_mailbox_hear(struct bz_mailbox *b, const struct bz_mpsc_node *bell)
{
    uint32_t was = bz_fetch_add_acqrel(&b->ringing, BZ_RINGING); /* [R] */
    BZ_ASSERT(was & BZ_RINGING);                                 /* I2 */
    BZ_ASSERT(bell == &b->bell[was / BZ_BELL % 2]);              /* I2 */
    (void)was, (void)bell;
}

/* True if there are signals; it may miss some that a bell has not announced yet. */
static BZ_ALWAYS_INLINE bool bz_mailbox_has_signals(struct bz_mailbox *b)
{
    return bz_load_relaxed(&b->signals) != NULL; /* relaxed: the bell is exact, I3 */
}

/* Reverse a list of signals: the oldest first. */
static inline struct bz_signal_link *bz_signals_in_order(struct bz_signal_link *newest)
{
    struct bz_signal_link *oldest = NULL;
    while (newest != NULL) {
        struct bz_signal_link *next = bz_get(&newest->next);
        bz_set(&newest->next, oldest);
        oldest = newest;
        newest = next;
    }
    return oldest;
}

/* Take all signals, the oldest first. */
static inline struct bz_signal_link *bz_mailbox_take_signals(struct bz_mailbox *b)
{
    if (!bz_mailbox_has_signals(b)) /* exact behind a bell that was heard: [R] */
        return NULL;
    return bz_signals_in_order(bz_xchg_acquire(&b->signals, NULL)); /* [S] */
}

/* ---- muting: pressure.c ---- */

/* The owner mutes its actor, under the lock. False: it has signals, and must go on instead; the caller unmutes it. */
BZ_MUST_USE static inline bool bz_mailbox_mute(struct bz_mailbox *b)
{
    bz_fetch_or_acquire(&b->ringing, BZ_MUTED); /* [M] */
    return !bz_mailbox_has_signals(b);
}

/* Under the lock. The caller has taken the actor off its list, and places it. */
static inline void bz_mailbox_unmute(struct bz_mailbox *b)
{
    bz_fetch_and_relaxed(&b->ringing, ~(uint32_t)BZ_MUTED); /* relaxed: the lock */
}

/* True if the actor is muted. Exact under the lock, else a guess. */
static inline bool bz_mailbox_is_muted(struct bz_mailbox *b)
{
    return (bz_load_relaxed(&b->ringing) & BZ_MUTED) != 0; /* relaxed: the lock, or a guess */
}

/* True if senders wait for the actor. The owner: exact behind a bell that was heard. */
static BZ_ALWAYS_INLINE bool bz_mailbox_is_pressed(struct bz_mailbox *b)
{
    return (bz_load_relaxed(&b->ringing) & BZ_PRESSED) != 0; /* relaxed: the bell is exact, [R] */
}

/* A sender enters the list of those that are held back for the actor. Under the lock; the caller rings after it. */
static inline void bz_mailbox_press(struct bz_mailbox *b)
{
    bz_fetch_or_relaxed(&b->ringing, BZ_PRESSED); /* relaxed: [R], the ring that follows; [D] */
}

/* Note that the long mailbox is reported. False: it was before. Any thread. */
BZ_MUST_USE static inline bool bz_mailbox_alarm(struct bz_mailbox *b)
{
    if (bz_load_relaxed(&b->ringing) & BZ_ALARMED) /* relaxed: a first guess */
        return false;
    return (bz_fetch_or_relaxed(&b->ringing, BZ_ALARMED) & BZ_ALARMED) == 0; /* relaxed: alone */
}

/* No sender is in the list. Under the lock. */
static inline void bz_mailbox_relieve(struct bz_mailbox *b)
{
    bz_fetch_and_relaxed(&b->ringing, ~(uint32_t)(BZ_PRESSED | BZ_ALARMED)); /* relaxed: the lock */
}

/* The same, but the mailbox is still long: its report stands. */
static inline void bz_mailbox_relieve_long(struct bz_mailbox *b)
{
    bz_fetch_and_relaxed(&b->ringing, ~(uint32_t)BZ_PRESSED); /* relaxed: the lock */
}

/* The heap of the actor is overdue for a collection; or not any more. The owner. */
static inline void bz_mailbox_set_heap_late(struct bz_mailbox *b, bool is_late)
{
    if (is_late)
        bz_fetch_or_relaxed(&b->ringing, BZ_HEAP_LATE); /* relaxed: for information */
    else
        bz_fetch_and_relaxed(&b->ringing, ~(uint32_t)BZ_HEAP_LATE); /* relaxed: likewise */
}

static inline bool bz_mailbox_is_heap_late(struct bz_mailbox *b)
{
    return (bz_load_relaxed(&b->ringing) & BZ_HEAP_LATE) != 0; /* relaxed: a guess */
}

/* ---- the mailbox of a porter, and the inbox behind it: receive.c ---- */

/* A message has moved on to the inbox, or n have left it. It counts as one in the queue: I5. While the actor lives. */
static inline void bz_mailbox_hold(struct bz_mailbox *b)
{
    bz_fetch_add_relaxed(&b->added, 1); /* relaxed: a count */
}

static inline void bz_mailbox_let_go(struct bz_mailbox *b, uint32_t n)
{
    bz_fetch_sub_relaxed(&b->added, n); /* relaxed: a count */
}

/* Set or clear the mark. Returns true if senders are held back. */
static inline bool bz_mailbox_be_hungry(struct bz_mailbox *b, bool is_hungry)
{
    uint32_t was = is_hungry /* relaxed: a hint; the time bounds what it misses */
                       ? bz_fetch_or_relaxed(&b->ringing, BZ_HUNGRY)
                       : bz_fetch_and_relaxed(&b->ringing, ~(uint32_t)BZ_HUNGRY);
    return (was & BZ_PRESSED) != 0;
}

static inline bool bz_mailbox_is_hungry(struct bz_mailbox *b)
{
    return (bz_load_relaxed(&b->ringing) & BZ_HUNGRY) != 0; /* relaxed: a hint */
}

/* ---- birth and death ---- */

/* Mark the actor as killed, for the reason of its end. A cancel follows. */
static inline void bz_mailbox_kill(struct bz_mailbox *b)
{
    bz_fetch_or_relaxed(&b->ringing, BZ_KILLED); /* relaxed: the cancel publishes it */
}

static inline bool bz_mailbox_is_killed(struct bz_mailbox *b)
{
    return bz_load_relaxed(&b->ringing) & BZ_KILLED; /* relaxed: the cancel was acquired */
}

/* Trap exits, or not. The actor, or its task with a reference. Returns what it was. */
static inline bool bz_mailbox_trap(struct bz_mailbox *b, bool traps)
{
    uint32_t was = traps ? bz_fetch_or_relaxed(&b->ringing, BZ_TRAPS) /* relaxed: a signal that */
                         : bz_fetch_and_relaxed(&b->ringing, ~(uint32_t)BZ_TRAPS); /* ... follows */
    return (was & BZ_TRAPS) != 0; /* from it comes by [S] and [R] */
}

static inline bool bz_mailbox_is_trapping(struct bz_mailbox *b)
{
    return (bz_load_relaxed(&b->ringing) & BZ_TRAPS) != 0; /* relaxed: likewise */
}

/* A new actor. The caller has the dead mailbox to itself; it pushes a start message next, and places the actor.
 * Returns: the generation of the new actor. */
static inline uint32_t bz_mailbox_open(struct bz_mailbox *b)
{
    uint32_t generation = bz_load_relaxed(&b->generation) + 1; /* relaxed: ours, I4 */
    BZ_ASSERT(generation % 2 == 1);
    uint32_t left = bz_load_relaxed(&b->ringing) & /* relaxed: ours */
                    (BZ_KILLED | BZ_TRAPS | BZ_HUNGRY | BZ_ALARMED | BZ_HEAP_LATE);
    if (BZ_UNLIKELY(left != 0))
        bz_fetch_and_relaxed(&b->ringing, ~left); /* relaxed: its reader is born later */
    bz_store_relaxed(&b->signals, NULL);          /* relaxed: the id is given out later */
    bz_store_release(&b->generation, generation); /* [H] */
    return generation;
}

/* The owner's actor dies: no message or signal reaches it from here on. Returns the signals that had come; the owner then steps
 * over all nodes before the stub. */
static inline struct bz_signal_link *bz_mailbox_close(struct bz_mailbox *b)
{
    uint32_t behind;
    uint32_t dead = bz_load_relaxed(&b->generation) + 1; /* relaxed: ours, I4 */
    BZ_ASSERT(bz_mailq_first(&b->queue) != &b->stub);    /* I1 */
    bz_store_release(&b->generation, dead);              /* [H]; of [G] the push releases */
    bool is_idle = bz_mailbox_push(b, &b->stub, &behind);
    BZ_ASSERT(!is_idle); /* the owner's node is in the queue */
    (void)is_idle;
    return bz_signals_in_order(bz_xchg_acqrel(&b->signals, bz_mailbox_closed(b))); /* [S] [D] [H] */
}

/* ---- looking ---- */

/* The number of nodes in the queue, about. Any thread. */
static inline uint32_t bz_mailbox_length(struct bz_mailbox *b)
{
    uint32_t pairs =
        bz_load_relaxed(&b->added) - bz_load_relaxed(&b->removed); /* relaxed: a guess */
    if (bz_mailq_is_empty(&b->queue))
        return 0;
    return (int32_t)pairs > 0 ? pairs + 1 : 1;
}

#endif
