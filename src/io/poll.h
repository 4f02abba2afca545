/*
 * poll.h - where a worker sleeps: the contract of what completes operations.
 *
 * Every proc has a *poll*. Its machine sleeps there, and nowhere else, when it has nothing to run:
 * until something completes, until its first timer, or until somebody rouses it because there is
 * work. So there is one way to sleep and one to rouse, whatever keeps the contract: a ring of the
 * kernel's, readiness by file descriptor, or nothing at all. The null keeper, which has no
 * operations, is a sleep word.
 *
 * The seam between sleeping and rousing, so that the protocol of sched/idle.c is written once:
 *
 *      machine                                 anybody
 *      1  bz_poll_prepare: forget rouses       1  make work visible
 *      2  announce its sleep, last look        2  claim the announced sleeper
 *      3  bz_poll_wait                         3  bz_poll_rouse
 *
 * A rouse that comes after prepare is never lost: the wait returns, or does not begin. One from
 * before may be: its reason is seen by the last look, or answered for by who searches. Waits may
 * return for no reason.
 *
 * Operations (op.h) are completion-shaped: handed in, and complete later, with what was done. What
 * completes is *told*: its owner's task goes on, on the proc whose machine heard of it. A keeper does
 * that in one of two ways, and says which:
 *
 *   by readiness    An operation is tried at once, and waits in its file if it cannot be done (ready.h).
 *                   The keeper hears when the file has become ready, and who waits is told to try
 *                   again. To revoke it is to take it out of the file's list: immediate.
 *   by completion   An operation is handed to the kernel, with its buffers, and flies; the keeper
 *                   hears how it went. To cancel it is to ask; it is over when it has completed.
 *
 * Hearing has two halves, because a machine that slept may find its proc taken. `wait` and `reap`
 * gather what the kernel has to say in a *harvest*, which is the thread's own; `deliver` looks through
 * it, an entry at a time, when the machine is up again and knows whether it has a proc. What
 * was gathered must be delivered: nobody else will hear of it.
 *
 * A file is *attached* to the poll of the proc on which somebody first waits for it, and stays there.
 * A keeper opens what it needs of the system when somebody first waits there, and the first proc's when the
 * first file is opened, so that a program that has files can wait for them, also when descriptors have run
 * out since. Without any its machine sleeps on the word, and a program without I/O pays nothing.
 *
 * What a keeper owes. `wait` returns soon after `roused` is set and kick() was called, in whatever
 * order those two fall between its steps; `kick` is called after `roused` has been set, from any
 * thread, also when nobody waits, and neither waits nor fails. Both work while the proc changes
 * hands: nothing in them depends on which thread waits, and a kick ends all waits that are under way,
 * since a machine whose proc was taken in its sleep may be on its way out.
 *
 * [A] rouse: roused release -> was_roused: roused acquire   what the rouser did before is visible
 */
#ifndef BZ_POLL_H
#define BZ_POLL_H

#include "io/file.h"
#include "os/os.h"

struct bz_poll;

/* What a keeper has heard. The words mean what it wants them to. Too large for the stack of a fiber, on
 * which its machine may hear: it would touch a page there that nothing else does. */
enum { BZ_HARVEST_MAX = 64 };
struct bz_harvest {
    unsigned count, at; /* gathered, and delivered of them */
    struct {
        uint64_t key;
        int64_t what;
        uint64_t more;
    } entry[BZ_HARVEST_MAX];
    uint64_t room[BZ_HARVEST_MAX * 2]; /* for what the kernel writes, before it is gathered */
};

/* A keeper. */
struct bz_poll_ops {
    const char *name;
    bool moves;     /* an attached file may be attached to another poll of this kind, too */
    bool completes; /* operations fly; else they wait in their files until those are ready */
    /* Sleep while poll->roused is 0 and nothing completes, until until_ns. Returns as below. */
    int (*wait)(struct bz_poll *poll, uint64_t until_ns, struct bz_harvest *harvest);
    /* Gather what there is, without waiting. Any thread; may find nothing if another is at it. */
    void (*reap)(struct bz_poll *poll, struct bz_harvest *harvest);
    /* Look at the next entry. `wakes` are the wake-ups to deliver. No lock is held. */
    void (*deliver)(struct bz_poll *poll, struct bz_harvest *harvest,
                    struct bz_wake wakes[BZ_SIDES]);
    /* What it needs of the system, if it is not there yet. Any thread. 0, or a negative errno. NULL: it
     * is there from the start. */
    int (*open)(struct bz_poll *poll);
    /* Begin to listen to a file, or end. Under its lock. attach: 0, or a negative errno. */
    int (*attach)(struct bz_poll *poll, struct bz_file *f);
    void (*detach)(struct bz_poll *poll, struct bz_file *f);
    /* An operation waits for that half from here on. Under the file's lock. NULL: no need to know. */
    void (*want)(struct bz_poll *poll, struct bz_file *f, enum bz_side side);
    /* By completion: hand an operation in, ask for its end. Under its file's lock, any thread. */
    int (*submit)(struct bz_poll *poll, struct bz_op *op);
    void (*cancel)(struct bz_poll *poll, struct bz_op *op);
    /* poll->roused has been set: end the wait that is under way, if any. */
    void (*kick)(struct bz_poll *poll);
    void (*fini)(struct bz_poll *poll);
};

struct bz_poll {
    const struct bz_poll_ops *ops;    /* constant after init */
    const struct bz_os *os;           /* constant after init */
    struct bz_files *files;           /* constant after init; NULL: this keeper has none */
    bz_atomic(void *) own;            /* the keeper's; made with its first file */
    bz_atomic(uint32_t) attached;     /* files, or operations that fly; 0: nothing to hear */
    bz_atomic(struct bz_poll *) heir; /* files heard of here move there; NULL: they stay */
    bz_os_word roused;                /* 1: since the last prepare. Cleared by the proc's machine */
};

/* The keeper without operations. Cannot fail. */
void bz_poll_null_init(struct bz_poll *poll, const struct bz_os *os);

/* The keepers of Linux. None of these fails: what they need is opened with the first file. */
void bz_poll_epoll_init(struct bz_poll *poll, const struct bz_os *os, struct bz_files *files);
/* Does the system have it, and let us? A full table of descriptors says nothing of that. */
bool bz_poll_epoll_is_there(void);
/* The one that needs POSIX only. */
void bz_poll_posix_init(struct bz_poll *poll, const struct bz_os *os, struct bz_files *files);
/* By completion. Opens its ring at once: 0, or a negative errno, as ring.h says. */
BZ_MUST_USE int bz_poll_uring_init(struct bz_poll *poll, const struct bz_os *os,
                                   struct bz_files *files);

/* Nobody waits there or rouses any more. */
static inline void bz_poll_fini(struct bz_poll *poll)
{
    poll->ops->fini(poll);
}

/* Before the announcement: rouses that came so far are forgotten. The proc's machine. */
static inline void bz_poll_prepare(struct bz_poll *poll)
{
    bz_store_relaxed(&poll->roused,
                     0); /* relaxed: what a forgotten rouse was for is seen otherwise */
}

/*
 * Sleep. The proc's machine. What was heard is in the harvest, which was empty.
 * Returns: 0 (roused, something was heard, or for no reason: look), -ETIMEDOUT (not before
 *          until_ns).
 */
static inline int bz_poll_wait(struct bz_poll *poll, uint64_t until_ns, struct bz_harvest *harvest)
{
    return poll->ops->wait(poll, until_ns, harvest);
}

/* Is there anything to hear of? */
static inline bool bz_poll_is_used(struct bz_poll *poll)
{
    return bz_load_relaxed(&poll->attached) != 0; /* relaxed: who attached is roused, or awake */
}

/* Hear what there is. Any thread. */
static inline void bz_poll_reap(struct bz_poll *poll, struct bz_harvest *harvest)
{
    poll->ops->reap(poll, harvest);
}

/* The next entry of a harvest; false: there is none left. */
BZ_MUST_USE static inline bool bz_poll_deliver(struct bz_poll *poll, struct bz_harvest *harvest,
                                               struct bz_wake wakes[BZ_SIDES])
{
    if (harvest->at == harvest->count)
        return false;
    wakes[0].kind = wakes[1].kind = BZ_WAKE_NONE;
    poll->ops->deliver(poll, harvest, wakes);
    harvest->at++;
    return true;
}

/* Have its machine look again. Any thread. */
static inline void bz_poll_rouse(struct bz_poll *poll)
{
    bz_store_release(&poll->roused, 1); /* [A] */
    poll->ops->kick(poll);
}

/* Has anybody roused it since the last prepare? */
static inline bool bz_poll_was_roused(struct bz_poll *poll)
{
    return bz_load_acquire(&poll->roused) != 0; /* [A] */
}

/*
 * Listen to a file from here on. Under its lock; it is attached nowhere.
 * Returns: 0; -ENOSYS (no such keeper), -EMFILE, -ENOMEM, -ENOSPC (limits), -EEXIST (its descriptor
 *          is known under another file). On error nothing has happened.
 */
BZ_MUST_USE int bz_poll_attach(struct bz_poll *poll, struct bz_file *f);
/* Listen to an attached file here instead, if this backend can do that. Under its lock. If it fails, all is as
 * before. */
void bz_poll_move(struct bz_poll *to, struct bz_file *f);
/* No longer. Under its lock. */
void bz_poll_detach(struct bz_poll *poll, struct bz_file *f);

/*
 * The system refuses the call in which the poll's machine would sleep (a filter that came after the start):
 * say so once, and sleep on the word for a few milliseconds at most, so that the machine does not spin.
 */
void bz_sleep_refused(struct bz_poll *poll, const char *call, int err, uint64_t until_ns);

#endif
