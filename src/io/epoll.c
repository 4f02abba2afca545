/*
 * epoll.c - the readiness backend for Linux.
 *
 * Each proc has an epoll set. A file joins it at its first wait, edge-triggered and for both
 * directions, and stays: no operation changes the set. ready.c describes how waiters are notified.
 * So a request and its answer cost one read, one write, and a share of one epoll_wait.
 *
 * The set is opened with the first file; a machine without files sleeps on the word, which is
 * cheaper to rouse. A machine that sleeps on the word when the first file joins is roused (poll.c).
 *
 * An event carries the file's key, index and generation, and never an address: file.c. The set's
 * own descriptor for kicks has key 0: generations begin at 1.
 *
 * A file that does not support epoll (a regular file: EPERM) is always ready.
 *
 * Two threads may wait in one set: a machine that lost its proc while it slept, and the proc's new
 * machine. One of them then gets each edge and delivers it, with or without a proc.
 *
 * If a filter refuses epoll_wait after the start, no event is heard any more. Then every operation that waits is tried
 * again each LOOK_NS: slow, but nothing is lost.
 *
 * [A] make_own: own acq_rel -> own_of: acquire   the set is open
 */
#define _GNU_SOURCE 1
#include <assert.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/compiler.h"
#include "base/log.h"
#include "io/attempt.h"
#include "io/kick.h"
#include "io/poll.h"
#include "io/ready.h"
#include "io/sys.h"
#include "io/sys_sets.h"

enum { LOOK_NS = 5000000 };
/* With up to this many files, all that an event touches stays in the second-level cache: no prefetches. */
enum { FEW_FILES = 256 };

struct epoll_own {
    int set;
    struct bz_kick kick;
    bz_atomic(uint32_t) is_coarse;  /* the system supports only millisecond timeouts */
    bz_atomic(uint32_t) is_refused; /* the system refuses to wait at all */
    bz_atomic(uint64_t) looked_ns;  /* when the files were last looked at instead */
    bz_atomic(size_t) look_at;      /* and from which place on to look next */
};

/* ---- made with the first file ---- */

static int open_set(struct epoll_own *own)
{
    int fault = bz_io_fault_of("epoll_create");
    struct epoll_event kick = {.events = EPOLLIN, .data.u64 = 0};
    if (fault != 0)
        return -fault;
    own->set = bz_sys_sets->epoll_create1(EPOLL_CLOEXEC);
    if (own->set < 0)
        return -errno;
    int fd = bz_sys->eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0 || bz_sys_sets->epoll_ctl(own->set, EPOLL_CTL_ADD, fd, &kick) != 0) {
        int err = -errno;
        bz_sys->close(own->set);
        if (fd >= 0)
            bz_sys->close(fd);
        return err;
    }
    bz_kick_init(&own->kick, fd, fd);
    bz_atomic_init(&own->is_coarse, 0);
    bz_atomic_init(&own->is_refused, 0);
    bz_atomic_init(&own->looked_ns, 0);
    bz_atomic_init(&own->look_at, 0);
    return 0;
}

static struct epoll_own *own_of(struct bz_poll *poll)
{
    return bz_load_acquire(&poll->own); /* [A] */
}

/* Another thread may be making it, too: the first one wins. */
static int make_own(struct bz_poll *poll)
{
    const blitz_allocator *a = poll->files->alloc;
    void *none = NULL;
    struct epoll_own *own = bz_alloc(a, sizeof *own, _Alignof(struct epoll_own));
    if (own == NULL)
        return -ENOMEM;
    int err = open_set(own);
    if (err == 0 && bz_cas_strong_acqrel_acq(&poll->own, &none, own)) /* [A] */
        return 0;
    if (err == 0) {
        bz_sys->close(own->kick.in);
        bz_sys->close(own->set);
    }
    bz_free(a, own, sizeof *own);
    return err;
}

static int epoll_open(struct bz_poll *poll)
{
    return own_of(poll) == NULL ? make_own(poll) : 0;
}

static void epoll_fini(struct bz_poll *poll)
{
    struct epoll_own *own = own_of(poll);
    if (own != NULL) {
        bz_sys->close(own->kick.in);
        bz_sys->close(own->set);
        bz_free(poll->files->alloc, own, sizeof *own);
    }
    poll->ops = NULL;
}

/* ---- gathering events ---- */

static unsigned meaning_in_full(int64_t events)
{
    unsigned what = 0;
    if (events & (EPOLLIN | EPOLLPRI | EPOLLERR))
        what |= BZ_READY_IN;
    if (events & (EPOLLOUT | EPOLLERR))
        what |= BZ_READY_OUT;
    if (events & EPOLLRDHUP)
        what |= BZ_READY_IN_OVER;
    if (events & (EPOLLPRI | EPOLLERR))
        /* such an event can make a read short before the stream is empty */
        what |= BZ_READY_IN_OVER;
    if (events & EPOLLHUP)
        what |= BZ_READY_OVER;
    return what;
}

/* Nearly all events say only that a file can be read or written. */
static BZ_ALWAYS_INLINE unsigned meaning_of(int64_t events)
{
    static_assert((int)EPOLLIN == (int)BZ_READY_IN, "no shift translates it");
    static_assert((int)EPOLLOUT == 2 * (int)BZ_READY_OUT, "a shift translates it");
    unsigned usual = (unsigned)events & (EPOLLIN | EPOLLOUT);
    return BZ_LIKELY((unsigned)events == usual) ? (usual & EPOLLIN) | (usual & EPOLLOUT) >> 1
                                                : meaning_in_full(events);
}

static struct epoll_event *room_of(struct bz_reaped *reaped)
{
    static_assert(sizeof(struct epoll_event[BZ_HARVEST_MAX]) <= sizeof reaped->room, "it fits");
    return (struct epoll_event *)(void *)reaped->room;
}

static void gather(struct bz_poll *poll, struct bz_reaped *reaped, int count)
{
    const struct epoll_event *event = room_of(reaped), *end = event + (count > 0 ? count : 0);
    struct bz_reaped_entry *entry = &reaped->entry[reaped->count];
    bool is_far = bz_load_relaxed(&poll->attached) > FEW_FILES; /* relaxed: a hint */
    for (; event < end; event++) {
        uint64_t key = event->data.u64;
        if (key == 0)
            continue; /* a kick */
        if (BZ_UNLIKELY(is_far))
            bz_file_fetch(poll->files, key);
        entry->key = key;
        entry->what = meaning_of(event->events);
        entry++;
    }
    reaped->is_far = is_far;
    reaped->count = (unsigned)(entry - reaped->entry);
}

/* True if the system lacks the call, or a seccomp filter refuses it. Old filters return EPERM for
 * unknown calls. */
static bool is_refused(int err)
{
    return err == ENOSYS || err == EPERM || err == EACCES;
}

static int wait_coarse(struct epoll_own *own, struct epoll_event *events, uint64_t left_ns)
{
    uint64_t ms = left_ns == BZ_OS_FOREVER ? 0 : (left_ns + 999999) / 1000000;
    return bz_sys_sets->epoll_wait(own->set, events, BZ_HARVEST_MAX,
                                   left_ns == BZ_OS_FOREVER ? -1
                                   : ms > INT32_MAX         ? INT32_MAX
                                                            : (int)ms);
}

static int wait_fine(struct epoll_own *own, struct epoll_event *events, uint64_t left_ns)
{
    struct timespec left = {(time_t)(left_ns / 1000000000), (long)(left_ns % 1000000000)};
    if (left_ns != BZ_OS_FOREVER && !bz_load_relaxed(&own->is_coarse)) { /* relaxed: a hint */
        int n = bz_sys_sets->epoll_pwait2(own->set, events, BZ_HARVEST_MAX, &left);
        if (n >= 0 || !is_refused(errno))
            return n;
        bz_store_relaxed(&own->is_coarse, 1); /* relaxed: a hint */
    }
    return wait_coarse(own, events, left_ns);
}

/* A filter refuses epoll_wait since the start. Then each operation that waits is tried every few milliseconds. */
static void gather_by_hand(struct bz_poll *poll, struct bz_reaped *reaped)
{
    struct epoll_own *own = own_of(poll);
    uint64_t keys[BZ_HARVEST_MAX], now = bz_os_now(poll->os);
    size_t at = bz_load_relaxed(&own->look_at); /* relaxed: a place to begin, as good as any */
    if (at == 0 && now - bz_load_relaxed(&own->looked_ns) < LOOK_NS) /* relaxed: a hint */
        return;
    bz_store_relaxed(&own->looked_ns, now); /* relaxed: a hint */
    size_t count = bz_files_waited_for(poll->files, poll, &at, keys, BZ_HARVEST_MAX);
    bz_store_relaxed(&own->look_at, at); /* relaxed: likewise */
    for (size_t i = 0; i < count; i++) {
        reaped->entry[reaped->count].key = keys[i];
        reaped->entry[reaped->count++].what = BZ_READY_IN | BZ_READY_OUT;
    }
}

static void was_refused(struct bz_poll *poll, int err)
{
    bz_log_once(BLITZ_LOG_WARN,
                "epoll_wait is refused (error %d) since the start: files are looked at every %d ms",
                err, LOOK_NS / 1000000);
    bz_store_relaxed(&own_of(poll)->is_refused, 1); /* relaxed: a hint, never unsaid */
}

static int wait_in_set(struct bz_poll *poll, uint64_t until_ns, struct bz_reaped *reaped)
{
    struct epoll_own *own = own_of(poll);
    uint64_t now = until_ns != BZ_OS_FOREVER ? bz_os_now(poll->os) : 0, left = BZ_OS_FOREVER;
    if (until_ns != BZ_OS_FOREVER)
        left = until_ns > now ? until_ns - now : 0;
    if (!bz_kick_enter(&own->kick, poll->os, &poll->roused))
        return 0;
    int n = wait_fine(own, room_of(reaped), left);
    int err = n < 0 ? errno : 0;
    bz_kick_leave(&own->kick, poll->os);
    if (BZ_UNLIKELY(is_refused(err))) {
        was_refused(poll, err);
        bz_sleep_instead(poll, LOOK_NS, until_ns);
        gather_by_hand(poll, reaped);
        return reaped->count == 0 && until_ns != BZ_OS_FOREVER ? -ETIMEDOUT : 0;
    }
    gather(poll, reaped, n);
    return n == 0 ? -ETIMEDOUT : 0; /* a signal, or another failure: check again */
}

static int epoll_keeper_wait(struct bz_poll *poll, uint64_t until_ns, struct bz_reaped *reaped)
{
    if (bz_poll_is_used(poll)) {
        int err = wait_in_set(poll, until_ns, reaped);
        bool is_early = err == -ETIMEDOUT && bz_os_now(poll->os) < until_ns;
        return is_early ? 0 : err;
    }
    int err = bz_os_wait(poll->os, &poll->roused, 0, until_ns);
    return err == -ETIMEDOUT ? err : 0; /* -EAGAIN: it has been roused already */
}

static void epoll_reap(struct bz_poll *poll, struct bz_reaped *reaped)
{
    struct epoll_own *own = own_of(poll);
    if (own == NULL || reaped->count > 0)
        return;
    if (BZ_UNLIKELY(bz_load_relaxed(&own->is_refused))) /* relaxed: a hint */
        gather_by_hand(poll, reaped);
    else
        gather(poll, reaped, bz_sys_sets->epoll_wait(own->set, room_of(reaped), BZ_HARVEST_MAX, 0));
}

static void epoll_kick(struct bz_poll *poll)
{
    struct epoll_own *own = own_of(poll);
    bz_os_wake(poll->os, &poll->roused, UINT32_MAX); /* rouse a machine that sleeps on the word */
    if (own != NULL)
        bz_kick(&own->kick, poll->os);
}

/* ---- files ---- */

static void epoll_deliver(struct bz_poll *poll, struct bz_reaped *reaped,
                          struct bz_wake wakes[BZ_SIDES])
{
    bz_ready_deliver_by(poll, reaped, poll->files, wakes, NULL);
}

static int epoll_attach(struct bz_poll *poll, struct bz_file *f)
{
    struct epoll_event what = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET,
                               .data.u64 = bz_file_key(f)};
    int err = epoll_open(poll);
    int fault = err == 0 ? bz_io_fault_of("epoll_ctl") : 0;
    if (err != 0 || fault != 0)
        return err != 0 ? err : -fault;
    if (bz_sys_sets->epoll_ctl(own_of(poll)->set, EPOLL_CTL_ADD, f->fd, &what) == 0)
        return 0;
    if (errno != EPERM)
        return -errno;
    bz_half_set_over(&f->half[BZ_SIDE_IN], true);
    bz_half_set_over(&f->half[BZ_SIDE_OUT], true);
    return 0;
}

static void epoll_detach(struct bz_poll *poll, struct bz_file *f)
{
    struct epoll_event none = {0};
    (void)bz_sys_sets->epoll_ctl(own_of(poll)->set, EPOLL_CTL_DEL, f->fd,
                                 &none); /* the file may not be in the set */
}

static const struct bz_poll_ops epoll_ops = {
    .name = "epoll",
    .moves = true,
    .has_edges = true,
    .wait = epoll_keeper_wait,
    .reap = epoll_reap,
    .deliver = epoll_deliver,
    .open = epoll_open,
    .attach = epoll_attach,
    .detach = epoll_detach,
    .kick = epoll_kick,
    .fini = epoll_fini,
};

/* Test epoll: make a set and check that it reports a ready descriptor. A filter may refuse any of
 * the calls. Return 0 or the errno of the first call that failed. */
static int try_set(void)
{
    struct epoll_own own = {.set = -1};
    struct epoll_event event;
    uint64_t one = 1;
    int err = -open_set(&own);
    if (err != 0)
        return err;
    bool is_heard = bz_sys->write(own.kick.out, &one, sizeof one) == (ssize_t)sizeof one &&
                    bz_sys_sets->epoll_wait(own.set, &event, 1, 0) >= 0;
    err = is_heard ? 0 : errno;
    bz_sys->close(own.kick.in);
    bz_sys->close(own.set);
    return err;
}

bool bz_poll_epoll_is_there(void)
{
    return !is_refused(try_set());
}

void bz_poll_epoll_init(struct bz_poll *poll, const struct bz_os *os, struct bz_files *files)
{
    poll->ops = &epoll_ops;
    poll->os = os;
    poll->files = files;
    bz_atomic_init(&poll->own, NULL);
    bz_atomic_init(&poll->attached, 0);
    bz_atomic_init(&poll->heir, NULL);
    bz_atomic_init(&poll->roused, 0);
}
