/*
 * poll.h - where a worker sleeps: the contract of the I/O backends.
 *
 * Every proc has a *poll*. When its machine has nothing to run, it sleeps there and nowhere else:
 * until an operation completes, until its first timer, or until another thread rouses it because
 * there is work. So there is one way to sleep and one way to rouse, for all backends: io_uring,
 * readiness of descriptors, or none. The null backend, which has no operations, is a sleep word.
 *
 * The interface between sleeping and rousing, so that the protocol of queue/idle.c is written once:
 *
 *      machine                                 any thread
 *      1  bz_poll_prepare: forget rouses       1  make work visible
 *      2  announce its sleep, last check       2  claim the announced sleeper
 *      3  bz_poll_wait                         3  bz_poll_rouse
 *
 * A rouse after prepare is never lost: the wait returns, or does not begin. A rouse before prepare
 * may be lost: the last check sees its cause, or a searching worker handles it. Waits may return
 * spuriously.
 *
 * Operations (op.h) have the form of completions: they are submitted, and complete later with a
 * result. On completion the owner's task is woken, on the proc whose machine got the event. A
 * backend works in one of two ways:
 *
 *   by readiness    An operation is tried at once, and waits in its file if it would block
 *                   (ready.h). When the backend learns that the file is ready, it wakes a waiter to
 *                   try again. To revoke an operation, it is removed from the file's list:
 *                   immediate.
 *   by completion   An operation is given to the kernel with its buffers, and is then in flight;
 *                   the backend gets its result. A cancel is a request; the operation ends when it
 *                   has completed.
 *
 * Event processing has two steps, because a machine that slept may find its proc taken. `wait` and
 * `reap` gather the kernel's events in a *reaped* list, which belongs to the thread.
 * `deliver` processes it, one entry at a time, when the machine is awake and knows whether it has a
 * proc. Gathered events must be delivered: no other thread will see them.
 *
 * A file is *attached* to the poll of the proc on which an operation first waits for it, and stays
 * there. A backend opens its system resources at the first wait on its poll; the first proc's
 * backend opens them with the first file. So a program with files can wait for them even if
 * descriptors have run out since. Without files the machine sleeps on the word, and a program
 * without I/O pays nothing.
 *
 * Requirements for a backend. `wait` returns soon after `roused` is set and kick() was called, in
 * any order relative to its steps. `kick` is called after `roused` has been set, from any thread,
 * also when no thread waits, and neither waits nor fails. Both work while the proc moves to another
 * machine: neither depends on the waiting thread, and a kick ends all waits in progress, because a
 * machine whose proc was taken may still be leaving.
 *
 * [A] rouse: roused release -> was_roused: roused acquire   the rouser's earlier writes are visible
 */
#ifndef BZ_POLL_H
#define BZ_POLL_H

#include <errno.h>

#include "io/file.h"
#include "os/os.h"

struct bz_poll;

/* A ready list: the events that a backend has gathered. The backend defines the words. It is too
 * large for the stack of a fiber, on which its machine may poll: it would touch an extra page
 * there. */
enum { BZ_HARVEST_MAX = 64 };
struct bz_reaped_entry {
    uint64_t key;
    int64_t what;
    uint64_t more;
};
struct bz_reaped {
    unsigned count, at; /* number gathered, and number delivered */
    bool is_far;        /* so many files are watched that they do not stay in the cache */
    struct bz_reaped_entry entry[BZ_HARVEST_MAX];
    uint64_t room[BZ_HARVEST_MAX * 2]; /* the kernel's events, before they are gathered */
};

/* A backend. */
struct bz_poll_ops {
    const char *name;
    bool moves;     /* an attached file may be attached to another poll of this kind, too */
    bool completes; /* by completion; else operations wait in their files until those are ready */
    bool
        has_edges; /* `deliver` is bz_ready_deliver_by() (ready.h), which the scheduler has inline */
    /* Sleep while poll->roused is 0 and there are no events, until until_ns. Returns as below. */
    int (*wait)(struct bz_poll *poll, uint64_t until_ns, struct bz_reaped *reaped);
    /* Gather events without waiting. Any thread; may find nothing if another thread is
     * gathering. */
    void (*reap)(struct bz_poll *poll, struct bz_reaped *reaped);
    /* Process the next entry. `wakes` are the wake-ups to deliver. No lock is held. */
    void (*deliver)(struct bz_poll *poll, struct bz_reaped *reaped, struct bz_wake wakes[BZ_SIDES]);
    /* Open the system resources, if not open yet. Any thread. Returns 0 or a negative errno. NULL:
     * they are open from the start. */
    int (*open)(struct bz_poll *poll);
    /* Start or stop watching a file. Under its lock. attach returns 0 or a negative errno. */
    int (*attach)(struct bz_poll *poll, struct bz_file *f);
    void (*detach)(struct bz_poll *poll, struct bz_file *f);
    /* An operation now waits for this half. Under the file's lock. NULL: not needed. */
    void (*want)(struct bz_poll *poll, struct bz_file *f, enum bz_side side);
    /* By completion: submit an operation, request its cancel. Under its file's lock, any thread. */
    int (*submit)(struct bz_poll *poll, struct bz_op *op);
    void (*cancel)(struct bz_poll *poll, struct bz_op *op);
    /* poll->roused has been set: end the wait in progress, if any. */
    void (*kick)(struct bz_poll *poll);
    void (*fini)(struct bz_poll *poll);
};

struct bz_poll {
    const struct bz_poll_ops *ops; /* constant after init */
    const struct bz_os *os;        /* constant after init */
    struct bz_files *files;        /* constant after init; NULL: this backend has none */
    bz_atomic(void *) own;         /* the backend's state; made with its first file */
    /* attached files, or operations in flight; 0: no events possible */
    bz_atomic(uint32_t) attached;
    bz_atomic(struct bz_poll *) heir; /* files heard of here move there; NULL: they stay */
    bz_os_word roused; /* 1: roused since the last prepare. Cleared by the proc's machine */
};

/* The backend without operations. Cannot fail. */
void bz_poll_null_init(struct bz_poll *poll, const struct bz_os *os);

/* The backends of Linux. None of these fails: resources are opened with the first file. */
void bz_poll_epoll_init(struct bz_poll *poll, const struct bz_os *os, struct bz_files *files);
/* True if the system supports epoll and allows it. A full table of descriptors does not count. */
bool bz_poll_epoll_is_there(void);
/*
 * The backend of macOS and the BSDs (kqueue.c). The pointer is NULL where the build has none: on Linux, unless a simulation
 * sets it.
 */
struct bz_poll_maker {
    bool (*is_there)(void); /* as bz_poll_epoll_is_there */
    void (*init)(struct bz_poll *poll, const struct bz_os *os, struct bz_files *files);
};
extern BZ_HIDDEN const struct bz_poll_maker *bz_poll_kqueue;
extern BZ_HIDDEN const struct bz_poll_maker bz_poll_kqueue_maker;
/* The backend that needs only POSIX. */
bool bz_poll_posix_is_there(void);
void bz_poll_posix_init(struct bz_poll *poll, const struct bz_os *os, struct bz_files *files);
/* The completion backend. Opens its ring at once. Returns 0 or a negative errno, as in ring.h. */
BZ_MUST_USE int bz_poll_uring_init(struct bz_poll *poll, const struct bz_os *os,
                                   struct bz_files *files);

/* Destroy a poll. No thread waits there or rouses any more. */
static inline void bz_poll_fini(struct bz_poll *poll)
{
    poll->ops->fini(poll);
}

/* Call before the announcement: earlier rouses are discarded. The proc's machine only. */
static inline void bz_poll_prepare(struct bz_poll *poll)
{
    bz_store_relaxed(&poll->roused,
                     0); /* relaxed: the cause of a discarded rouse is seen by the last check */
}

/*
 * Sleep. The proc's machine only. Events are in `reaped`, which was empty before.
 * Returns: 0 (roused, events, or spuriously: check), -ETIMEDOUT (not before until_ns).
 */
static inline int bz_poll_wait(struct bz_poll *poll, uint64_t until_ns, struct bz_reaped *reaped)
{
    return poll->ops->wait(poll, until_ns, reaped);
}

/* True if events are possible. */
static inline bool bz_poll_is_used(struct bz_poll *poll)
{
    return bz_load_relaxed(&poll->attached) != 0; /* relaxed: an attach rouses a sleeping machine */
}

/* Gather events without waiting. Any thread. */
static inline void bz_poll_reap(struct bz_poll *poll, struct bz_reaped *reaped)
{
    poll->ops->reap(poll, reaped);
}

/* Deliver the next entry of a reaped list. Return false if none is left. */
BZ_MUST_USE static inline bool bz_poll_deliver(struct bz_poll *poll, struct bz_reaped *reaped,
                                               struct bz_wake wakes[BZ_SIDES])
{
    if (reaped->at == reaped->count)
        return false;
    wakes[0].kind = wakes[1].kind = BZ_WAKE_NONE;
    poll->ops->deliver(poll, reaped, wakes);
    reaped->at++;
    return true;
}

/* Rouse its machine. Any thread. */
static inline void bz_poll_rouse(struct bz_poll *poll)
{
    bz_store_release(&poll->roused, 1); /* [A] */
    poll->ops->kick(poll);
}

/* True if it was roused since the last prepare. */
static inline bool bz_poll_was_roused(struct bz_poll *poll)
{
    return bz_load_acquire(&poll->roused) != 0; /* [A] */
}

/*
 * Start watching a file. Under its lock; it is not attached.
 * Returns: 0; -ENOSYS (no such backend), -EMFILE, -ENOMEM, -ENOSPC (limits), -EEXIST (its
 *          descriptor is watched for another file). On error nothing has changed.
 */
BZ_MUST_USE int bz_poll_attach(struct bz_poll *poll, struct bz_file *f);
/* Listen to an attached file here instead, if this backend can do that. Under its lock. If it fails, all is as
 * before. */
void bz_poll_move(struct bz_poll *to, struct bz_file *f);
/* Stop watching it. Under its lock. */
void bz_poll_detach(struct bz_poll *poll, struct bz_file *f);

/* Sleep on the word for at most `ns`: the system refuses the call in which the poll's machine would sleep,
 * and the machine must not spin. */
void bz_sleep_instead(struct bz_poll *poll, uint64_t ns, uint64_t until_ns);
/* True for an error with which a system call filter, or a kernel without the call, answers each time. */
static inline bool bz_is_denied(int err)
{
    return err == -EPERM || err == -EACCES || err == -ENOSYS;
}

#endif
