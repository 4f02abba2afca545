/*
 * kqueue.c - the readiness backend for macOS and the BSDs.
 *
 * Each proc has a queue of kevents. A file joins it at its first wait with two registrations, one for each direction, both
 * by edge, and stays: no operation changes the queue. ready.c describes how waiters are notified. The queue is opened with
 * the first file, as in epoll.c; a machine without files sleeps on the word.
 *
 * The calls are a table with types of our own (sys_queues.h), so this file is the same on all these systems, and runs on
 * Linux in the simulator.
 *
 * The differences from epoll that must not be forgotten:
 *
 *   One registration  A queue knows a descriptor once. A second registration replaces the key of the first without an
 *                     error: the waiters of the first file would never be woken. Two files may have one descriptor, if
 *                     a program waits for its own descriptor twice (net/fd.c). So the backend has a table of the
 *                     registered descriptors, and returns -EEXIST as epoll does; the caller then takes a duplicate.
 *   Ends              An end comes as a flag of the event for reading, perhaps together with the last bytes, and an
 *                     error as an end with a number. Such an edge leaves the half ready permanently (is_over), because
 *                     a short read would otherwise hide the end (ready.c).
 *   Kicks             A user event. It is by edge, so one thread takes it, while two may wait: a machine that lost its
 *                     proc, and the new one. Each thread that leaves triggers it again while others are inside. A thread
 *                     that looks without waiting may take it, too, and gives it back.
 *
 * Rejected: a user event by level, which every waiter sees. It must be reset, and the reset that all systems know is to
 *           delete it and add it again, which needs memory. A trigger that is left over costs one useless look.
 * Rejected: EV_RECEIPT, to learn of both registrations in one call: NetBSD 9 has none. If the call for both fails, which
 *           is rare, each is made alone.
 *
 * A descriptor that a filter refuses (regular files on some systems, one end of a pipe) is always ready on that side.
 *
 * [A] make_own: own acq_rel -> own_of: acquire   the queue is open
 *
 * I1  key[fd] != 0 while a file with that descriptor is registered in the queue. Guarded by the lock.
 * I2  While a thread is inside and is_kicked, the user event is triggered, or a thread that took it is about to trigger it
 *     or to leave. Guarded by the kick's lock.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "io/attempt.h"
#include "io/kick.h"
#include "io/poll.h"
#include "io/ready.h"
#include "io/sys.h"
#include "io/sys_queues.h"

enum {
    EVENTS_MAX = 32, /* in one call: so many have room in a reaped list */
    PAGE_FDS = 256,  /* descriptors in one page of the table */
    FEW_FILES = 256  /* with up to this many files no event needs a prefetch: epoll.c */
};

struct kqueue_own {
    int queue;
    struct bz_kick kick;
    struct bz_lock lock; /* guards the table; taken under a file's lock */
    uint64_t **page;     /* page[fd / PAGE_FDS][fd % PAGE_FDS]: the key of the file, 0: none. I1 */
    size_t pages;
};

static struct kqueue_own *own_of(struct bz_poll *poll)
{
    return bz_load_acquire(&poll->own); /* [A] */
}

static int change(const struct kqueue_own *own, const struct bz_kevent *changes, int count)
{
    return bz_sys_queues->kevent(own->queue, changes, count, NULL, 0, NULL) < 0 ? -errno : 0;
}

/* ---- made with the first file ---- */

static int open_queue(struct kqueue_own *own)
{
    static const struct bz_kevent kick = {.filter = BZ_FILTER_USER,
                                          .flags = BZ_EV_ADD | BZ_EV_CLEAR};
    int fault = bz_io_fault_of("kqueue");
    if (fault != 0)
        return -fault;
    own->queue = bz_sys_queues->kqueue();
    if (own->queue < 0)
        return -errno;
    int err = change(own, &kick, 1);
    if (err != 0)
        bz_sys->close(own->queue);
    return err;
}

static void own_free(struct bz_poll *poll, struct kqueue_own *own)
{
    const blitz_allocator *a = poll->files->alloc;
    for (size_t i = 0; i < own->pages; i++)
        if (own->page[i] != NULL)
            bz_free(a, own->page[i], PAGE_FDS * sizeof(uint64_t));
    if (own->page != NULL)
        bz_free(a, own->page, own->pages * sizeof *own->page);
    bz_free(a, own, sizeof *own);
}

/* Another thread may be making it, too: the first one wins. */
static int make_own(struct bz_poll *poll)
{
    void *none = NULL;
    struct kqueue_own *own = bz_alloc(poll->files->alloc, sizeof *own, _Alignof(struct kqueue_own));
    if (own == NULL)
        return -ENOMEM;
    *own = (struct kqueue_own){.queue = -1};
    bz_lock_init(&own->lock);
    bz_kick_init(&own->kick, -1, -1);
    int err = open_queue(own);
    if (err == 0 && bz_cas_strong_acqrel_acq(&poll->own, &none, own)) /* [A] */
        return 0;
    if (err == 0)
        bz_sys->close(own->queue);
    own_free(poll, own);
    return err;
}

static int kqueue_open(struct bz_poll *poll)
{
    return own_of(poll) == NULL ? make_own(poll) : 0;
}

static void kqueue_fini(struct bz_poll *poll)
{
    struct kqueue_own *own = own_of(poll);
    if (own != NULL) {
        bz_sys->close(own->queue);
        own_free(poll, own);
    }
    poll->ops = NULL;
}

/* ---- kicks ---- */

static bool trigger(const struct kqueue_own *own)
{
    static const struct bz_kevent now = {.filter = BZ_FILTER_USER, .flags = BZ_EV_TRIGGER};
    return change(own, &now, 1) == 0;
}

static void kick(struct kqueue_own *own, const struct bz_os *os)
{
    bz_lock_take(&own->kick.lock, os);
    if (own->kick.inside > 0 && !own->kick.is_kicked)
        own->kick.is_kicked = trigger(own);
    bz_lock_drop(&own->kick.lock, os);
}

/* Pass a kick on that this thread may have taken from one that waits: I2. */
static void pass_kick(struct kqueue_own *own, const struct bz_os *os, unsigned leaving)
{
    struct bz_kick *k = &own->kick;
    bz_lock_take(&k->lock, os);
    k->inside -= leaving;
    if (k->is_kicked && k->inside > 0)
        (void)!trigger(own);
    else if (k->inside == 0)
        k->is_kicked = false;
    bz_lock_drop(&k->lock, os);
}

static void kqueue_kick(struct bz_poll *poll)
{
    struct kqueue_own *own = own_of(poll);
    bz_os_wake(poll->os, &poll->roused, UINT32_MAX); /* rouse a machine that sleeps on the word */
    if (own != NULL)
        kick(own, poll->os);
}

/* ---- gathering events ---- */

static unsigned meaning_of(const struct bz_kevent *e)
{
    unsigned what = e->filter == BZ_FILTER_READ ? BZ_READY_IN : BZ_READY_OUT;
    if (e->flags & BZ_EV_URGENT)
        what |= BZ_READY_IN_OVER; /* it can make a read short before the stream is empty */
    if (e->flags & BZ_EV_EOF)
        what |= e->filter == BZ_FILTER_READ && e->error == 0 ? BZ_READY_IN_OVER : BZ_READY_OVER;
    return what;
}

static struct bz_kevent *room_of(struct bz_reaped *reaped)
{
    static_assert(sizeof(struct bz_kevent[EVENTS_MAX]) <= sizeof reaped->room, "it fits");
    return (struct bz_kevent *)(void *)reaped->room;
}

/* Return true if a kick is among the events. */
static bool gather(struct bz_poll *poll, struct bz_reaped *reaped, int count)
{
    const struct bz_kevent *event = room_of(reaped);
    bool has_kick = false,
         is_far = bz_load_relaxed(&poll->attached) > FEW_FILES; /* relaxed: a hint */
    for (int i = 0; i < count; i++, event++) {
        if (event->filter == BZ_FILTER_USER) {
            has_kick = true;
            continue;
        }
        if (BZ_UNLIKELY(is_far))
            bz_file_fetch(poll->files, event->key);
        struct bz_reaped_entry *entry = &reaped->entry[reaped->count++];
        entry->key = event->key;
        entry->what = meaning_of(event);
    }
    reaped->is_far = is_far;
    return has_kick;
}

static int wait_in_queue(struct bz_poll *poll, uint64_t until_ns, struct bz_reaped *reaped)
{
    struct kqueue_own *own = own_of(poll);
    uint64_t now = until_ns != BZ_OS_FOREVER ? bz_os_now(poll->os) : 0;
    uint64_t ns = until_ns > now ? until_ns - now : 0;
    struct timespec left = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    if (!bz_kick_enter(&own->kick, poll->os, &poll->roused))
        return 0;
    int n = bz_sys_queues->kevent(own->queue, NULL, 0, room_of(reaped), EVENTS_MAX,
                                  until_ns != BZ_OS_FOREVER ? &left : NULL);
    pass_kick(own, poll->os, 1);
    (void)gather(poll, reaped, n);
    return n == 0 ? -ETIMEDOUT : 0; /* a signal, or another failure: check again */
}

static int kqueue_wait(struct bz_poll *poll, uint64_t until_ns, struct bz_reaped *reaped)
{
    int err;
    if (bz_poll_is_used(poll))
        err = wait_in_queue(poll, until_ns, reaped);
    else
        err = bz_os_wait(poll->os, &poll->roused, 0, until_ns);
    return err == -ETIMEDOUT && bz_os_now(poll->os) >= until_ns ? err : 0;
}

static void kqueue_reap(struct bz_poll *poll, struct bz_reaped *reaped)
{
    static const struct timespec none;
    struct kqueue_own *own = own_of(poll);
    if (own == NULL || reaped->count > 0)
        return;
    int n = bz_sys_queues->kevent(own->queue, NULL, 0, room_of(reaped), EVENTS_MAX, &none);
    if (gather(poll, reaped, n))
        pass_kick(own, poll->os, 0);
}

static void kqueue_deliver(struct bz_poll *poll, struct bz_reaped *reaped,
                           struct bz_wake wakes[BZ_SIDES])
{
    bz_ready_deliver_by(poll, reaped, poll->files, wakes, NULL);
}

/* ---- the table of descriptors ---- */

static int grow(struct bz_poll *poll, struct kqueue_own *own, size_t pages)
{
    const blitz_allocator *a = poll->files->alloc;
    size_t room = 2 * own->pages > pages ? 2 * own->pages : pages;
    uint64_t **page = bz_alloc(a, room * sizeof *page, _Alignof(uint64_t *));
    if (page == NULL)
        return -ENOMEM;
    memset(page, 0, room * sizeof *page);
    if (own->page != NULL) {
        memcpy(page, own->page, own->pages * sizeof *page);
        bz_free(a, own->page, own->pages * sizeof *page);
    }
    own->page = page;
    own->pages = room;
    return 0;
}

/* The place of a descriptor. Under the lock. NULL: no memory. */
static uint64_t *place_of(struct bz_poll *poll, struct kqueue_own *own, int fd)
{
    size_t at = (size_t)fd / PAGE_FDS;
    if (at >= own->pages && grow(poll, own, at + 1) != 0)
        return NULL;
    if (own->page[at] == NULL) {
        own->page[at] =
            bz_alloc(poll->files->alloc, PAGE_FDS * sizeof(uint64_t), _Alignof(uint64_t));
        if (own->page[at] == NULL)
            return NULL;
        memset(own->page[at], 0, PAGE_FDS * sizeof(uint64_t));
    }
    return &own->page[at][(size_t)fd % PAGE_FDS];
}

/* Note the descriptor of a file. Returns 0, -EEXIST (another file has it), -ENOMEM. */
static int note(struct bz_poll *poll, struct kqueue_own *own, const struct bz_file *f)
{
    bz_lock_take(&own->lock, poll->os);
    uint64_t *key = place_of(poll, own, f->fd);
    int err = key == NULL ? -ENOMEM : *key != 0 ? -EEXIST : 0; /* I1 */
    if (err == 0)
        *key = bz_file_key(f);
    bz_lock_drop(&own->lock, poll->os);
    return err;
}

static void forget(struct bz_poll *poll, struct kqueue_own *own, const struct bz_file *f)
{
    bz_lock_take(&own->lock, poll->os);
    own->page[(size_t)f->fd / PAGE_FDS][(size_t)f->fd % PAGE_FDS] = 0;
    bz_lock_drop(&own->lock, poll->os);
}

/* ---- files ---- */

static void changes_of(const struct bz_file *f, unsigned flags, struct bz_kevent out[BZ_SIDES])
{
    for (int s = 0; s < BZ_SIDES; s++)
        out[s] = (struct bz_kevent){.fd = f->fd,
                                    .filter = s == BZ_SIDE_IN ? BZ_FILTER_READ : BZ_FILTER_WRITE,
                                    .flags = (uint16_t)flags,
                                    .key = bz_file_key(f)};
}

/* Remove both registrations, or the one that there is: a call for both ends at the first that is missing. */
static void unregister(const struct kqueue_own *own, const struct bz_file *f)
{
    struct bz_kevent both[BZ_SIDES];
    changes_of(f, BZ_EV_DELETE, both);
    if (change(own, both, BZ_SIDES) != 0)
        for (int s = 0; s < BZ_SIDES; s++)
            (void)change(own, &both[s], 1);
}

/* True if the descriptor has no such events: it is always ready. */
static bool is_refused(int err)
{
    return err == -EINVAL || err == -EPERM || err == -EOPNOTSUPP || err == -ENODEV || err == -EPIPE;
}

static int register_both(const struct kqueue_own *own, struct bz_file *f)
{
    struct bz_kevent both[BZ_SIDES];
    changes_of(f, BZ_EV_ADD | BZ_EV_CLEAR, both);
    if (change(own, both, BZ_SIDES) == 0)
        return 0;
    for (int s = 0; s < BZ_SIDES; s++) {
        int err = change(own, &both[s], 1);
        if (err != 0 && !is_refused(err)) {
            unregister(own, f);
            return err;
        }
        if (err != 0)
            bz_half_set_over(&f->half[s], true);
    }
    return 0;
}

static int kqueue_attach(struct bz_poll *poll, struct bz_file *f)
{
    int err = kqueue_open(poll);
    int fault = err == 0 ? bz_io_fault_of("kevent") : 0;
    if (err != 0 || fault != 0)
        return err != 0 ? err : -fault;
    struct kqueue_own *own = own_of(poll);
    err = note(poll, own, f);
    if (err != 0)
        return err;
    err = register_both(own, f);
    if (err != 0)
        forget(poll, own, f);
    return err;
}

static void kqueue_detach(struct bz_poll *poll, struct bz_file *f)
{
    struct kqueue_own *own = own_of(poll);
    unregister(own, f);
    forget(poll, own, f);
}

static const struct bz_poll_ops kqueue_ops = {
    .name = "kqueue",
    .moves = true,
    .has_edges = true,
    .wait = kqueue_wait,
    .reap = kqueue_reap,
    .deliver = kqueue_deliver,
    .open = kqueue_open,
    .attach = kqueue_attach,
    .detach = kqueue_detach,
    .kick = kqueue_kick,
    .fini = kqueue_fini,
};

static bool kqueue_is_there(void)
{
    struct kqueue_own own = {.queue = -1};
    if (bz_sys_queues == NULL)
        return false;
    int err = open_queue(&own);
    if (err == 0)
        bz_sys->close(own.queue);
    return err == 0 || err == -EMFILE || err == -ENFILE; /* a full table does not count */
}

static void kqueue_init(struct bz_poll *poll, const struct bz_os *os, struct bz_files *files)
{
    poll->ops = &kqueue_ops;
    poll->os = os;
    poll->files = files;
    bz_atomic_init(&poll->own, NULL);
    bz_atomic_init(&poll->attached, 0);
    bz_atomic_init(&poll->heir, NULL);
    bz_atomic_init(&poll->roused, 0);
}

const struct bz_poll_maker bz_poll_kqueue_maker = {.is_there = kqueue_is_there,
                                                   .init = kqueue_init};
