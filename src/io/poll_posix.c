/*
 * poll_posix.c - the backend that needs only poll(2).
 *
 * It is for systems without a better interface, and a reference for the other backends. It passes
 * the list of all its files to the kernel at each wait, so the cost is proportional to the number
 * of files: slow with thousands, but correct.
 *
 * poll(2) reports which files *are* ready, not which have become ready. So a file is active in the
 * list only while an operation waits for it: a waiter activates it (want), and an event deactivates
 * it. A waiter that is notified and finds nothing activates it again. An inactive file has a
 * negative number in the list, which the kernel skips; otherwise a hung-up file would end every
 * wait.
 *
 * The list changes while a thread waits, so each wait uses a copy. If a file becomes active while a
 * thread waits, the thread is kicked and retries with the new list. The same happens when a file is
 * closed. The kernel holds references to the files of a poll(2) call for its duration, so a socket
 * closed meanwhile would stay open, and its peer would not see the end (bug class 16).
 *
 * A poll without waiting costs as much as one with waiting. So a busy machine spaces its polls by
 * the duration of the last one: at most a LOOK_SHARE of the time.
 *
 * [A] make_own: own acq_rel -> own_of: acquire   the list is there
 *
 * I1  list[f->kept - 1] belongs to f while it is attached. Guarded by the lock, like everything
 *     here.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "io/attempt.h"
#include "io/kick.h"
#include "io/poll.h"
#include "io/ready.h"
#include "io/sys.h"

enum { FIRST = 64, LOOK_SHARE = 10, BLIND_MS = 10 };

struct posix_own {
    struct bz_lock lock;
    struct bz_kick kick;
    unsigned count, room;  /* length of the list, which begins with the kick's descriptor */
    struct pollfd *list;   /* the events of each file */
    struct bz_file **file; /* the file; NULL: the kick's descriptor */
    /* where the last ready list ended: the next file comes first. A hint */
    bz_atomic(uint32_t) turn;
    uint64_t due_ns; /* the earliest time of the next poll without waiting */
};

static struct posix_own *own_of(struct bz_poll *poll)
{
    return bz_load_acquire(&poll->own); /* [A] */
}

/* ---- the list ---- */

static void lists_free(struct bz_poll *poll, struct posix_own *own)
{
    const blitz_allocator *a = poll->files->alloc;
    if (own->list != NULL)
        bz_free(a, own->list, own->room * sizeof *own->list);
    if (own->file != NULL)
        bz_free(a, own->file, own->room * sizeof(void *));
}

static int grow(struct bz_poll *poll, struct posix_own *own)
{
    const blitz_allocator *a = poll->files->alloc;
    struct posix_own more = {.room = own->room != 0 ? 2 * own->room : FIRST};
    more.list = bz_alloc(a, more.room * sizeof *more.list, _Alignof(struct pollfd));
    more.file = bz_alloc(a, more.room * sizeof(void *), _Alignof(void *));
    if (more.list == NULL || more.file == NULL) {
        lists_free(poll, &more);
        return -ENOMEM;
    }
    if (own->count > 0) {
        memcpy(more.list, own->list, own->count * sizeof *own->list);
        memcpy(more.file, own->file, own->count * sizeof(void *));
    }
    lists_free(poll, own);
    own->list = more.list;
    own->file = more.file;
    own->room = more.room;
    return 0;
}

/* Append an entry; there is room. Return its position. */
static unsigned add(struct posix_own *own, int fd, struct bz_file *f, short events)
{
    unsigned at = own->count++;
    own->list[at] = (struct pollfd){.fd = events != 0 ? fd : ~fd, .events = events};
    own->file[at] = f;
    return at;
}

/* ---- made with the first file ---- */

static void own_free(struct bz_poll *poll, struct posix_own *own)
{
    lists_free(poll, own);
    bz_sys->close(own->kick.in);
    bz_sys->close(own->kick.out);
    bz_free(poll->files->alloc, own, sizeof *own);
}

static int make_own(struct bz_poll *poll)
{
    int fd[2], fault = bz_io_fault_of("pipe");
    void *none = NULL;
    struct posix_own *own = bz_alloc(poll->files->alloc, sizeof *own, _Alignof(struct posix_own));
    if (own == NULL || fault != 0 || bz_sys->pipe2(fd, O_CLOEXEC | O_NONBLOCK) != 0) {
        int err = own == NULL ? -ENOMEM : fault != 0 ? -fault : -errno;
        if (own != NULL)
            bz_free(poll->files->alloc, own, sizeof *own);
        return err;
    }
    *own = (struct posix_own){.count = 0};
    bz_lock_init(&own->lock);
    bz_kick_init(&own->kick, fd[0], fd[1]);
    int err = grow(poll, own);
    if (err == 0)
        add(own, fd[0], NULL, POLLIN);
    if (err == 0 && bz_cas_strong_acqrel_acq(&poll->own, &none, own)) /* [A] */
        return 0;
    own_free(poll, own);
    return err;
}

static int posix_open(struct bz_poll *poll)
{
    return own_of(poll) == NULL ? make_own(poll) : 0;
}

static void posix_fini(struct bz_poll *poll)
{
    if (own_of(poll) != NULL)
        own_free(poll, own_of(poll));
    poll->ops = NULL;
}

/* ---- gathering events ---- */

struct copy {
    unsigned count;
    struct pollfd *list;
    uint64_t *key; /* 0: the kick's descriptor */
};

/* Copy the list for the kernel. Return false if there is no memory. */
static bool copy_make(struct bz_poll *poll, struct posix_own *own, struct copy *c)
{
    const blitz_allocator *a = poll->files->alloc;
    bz_lock_take(&own->lock, poll->os);
    c->count = own->count;
    bz_lock_drop(&own->lock, poll->os);
    c->list = bz_alloc(a, c->count * sizeof *c->list, _Alignof(struct pollfd));
    c->key = bz_alloc(a, c->count * sizeof *c->key, _Alignof(uint64_t));
    if (c->list == NULL || c->key == NULL)
        return false;
    bz_lock_take(&own->lock, poll->os);
    unsigned now = own->count < c->count ? own->count : c->count; /* later changes kick us */
    memcpy(c->list, own->list, now * sizeof *c->list);
    for (unsigned i = 0; i < now; i++)
        c->key[i] = own->file[i] != NULL ? bz_file_key(own->file[i]) : 0;
    for (unsigned i = now; i < c->count; i++)
        c->list[i].fd = -1;
    bz_lock_drop(&own->lock, poll->os);
    return true;
}

static void copy_free(struct bz_poll *poll, struct copy *c)
{
    const blitz_allocator *a = poll->files->alloc;
    if (c->list != NULL)
        bz_free(a, c->list, c->count * sizeof *c->list);
    if (c->key != NULL)
        bz_free(a, c->key, c->count * sizeof *c->key);
}

static int poll_all(struct copy *c, int ms)
{
    return bz_sys->poll(c->list, c->count, ms);
}

static void gather(struct posix_own *own, const struct copy *c, struct bz_reaped *reaped)
{
    unsigned turn = bz_load_relaxed(&own->turn); /* relaxed: a hint, two threads may be here */
    unsigned first = c->count > 0 ? turn % c->count : 0, i;
    for (i = 0; i < c->count && reaped->count < BZ_HARVEST_MAX; i++) {
        const struct pollfd *p = &c->list[(first + i) % c->count];
        uint64_t key = c->key[(first + i) % c->count];
        if (p->fd < 0 || p->revents == 0 || key == 0)
            continue;
        reaped->entry[reaped->count].key = key;
        reaped->entry[reaped->count++].what = p->revents;
    }
    bz_store_relaxed(&own->turn, first + i); /* relaxed: as above */
}

static int timeout_ms(struct bz_poll *poll, uint64_t until_ns)
{
    if (until_ns == BZ_OS_FOREVER)
        return -1;
    uint64_t now = bz_os_now(poll->os), left = until_ns > now ? until_ns - now : 0;
    uint64_t ms = (left + 999999) / 1000000;
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

/* Without memory for a copy no event is seen for a moment. */
static void wait_blind(struct posix_own *own, int ms)
{
    struct pollfd kick = {.fd = own->kick.in, .events = POLLIN};
    (void)!bz_sys->poll(&kick, 1, ms < 0 || ms > BLIND_MS ? BLIND_MS : ms);
}

static int wait_for_files(struct bz_poll *poll, struct posix_own *own, uint64_t until_ns,
                          struct bz_reaped *reaped)
{
    struct copy c = {.count = 0};
    int ms = timeout_ms(poll, until_ns), n = 1;
    if (!bz_kick_enter(&own->kick, poll->os, &poll->roused))
        return 0;
    bool has_copy = copy_make(poll, own, &c); /* after enter: a change from now on kicks */
    if (has_copy)
        n = poll_all(&c, ms);
    else
        wait_blind(own, ms);
    bz_kick_leave(&own->kick, poll->os);
    if (has_copy && n > 0)
        gather(own, &c, reaped);
    copy_free(poll, &c);
    return n == 0 ? -ETIMEDOUT : 0;
}

static int posix_wait(struct bz_poll *poll, uint64_t until_ns, struct bz_reaped *reaped)
{
    int err;
    if (bz_poll_is_used(poll))
        err = wait_for_files(poll, own_of(poll), until_ns, reaped);
    else
        err = bz_os_wait(poll->os, &poll->roused, 0, until_ns);
    return err == -ETIMEDOUT && bz_os_now(poll->os) >= until_ns ? err : 0;
}

static void posix_reap(struct bz_poll *poll, struct bz_reaped *reaped)
{
    struct posix_own *own = own_of(poll);
    struct copy c = {.count = 0};
    uint64_t now = bz_os_now(poll->os);
    if (own == NULL || reaped->count > 0)
        return;
    bz_lock_take(&own->lock, poll->os);
    bool is_due = now >= own->due_ns;
    bz_lock_drop(&own->lock, poll->os);
    if (is_due && copy_make(poll, own, &c) && poll_all(&c, 0) > 0)
        gather(own, &c, reaped);
    copy_free(poll, &c);
    uint64_t took = bz_os_now(poll->os) - now;
    bz_lock_take(&own->lock, poll->os);
    if (is_due)
        own->due_ns = now + LOOK_SHARE * took;
    bz_lock_drop(&own->lock, poll->os);
}

static void posix_kick(struct bz_poll *poll)
{
    struct posix_own *own = own_of(poll);
    bz_os_wake(poll->os, &poll->roused, UINT32_MAX); /* rouse a machine that sleeps on the word */
    if (own != NULL)
        bz_kick(&own->kick, poll->os);
}

/* ---- files ---- */

static unsigned meaning_of(int64_t events)
{
    unsigned what = 0;
    if (events & (POLLIN | POLLPRI | POLLERR | POLLNVAL))
        what |= BZ_READY_IN;
    if (events & (POLLOUT | POLLERR | POLLNVAL))
        what |= BZ_READY_OUT;
    if (events & POLLRDHUP)
        what |= BZ_READY_IN_OVER;
    if (events & POLLHUP)
        what |= BZ_READY_OVER;
    return what;
}

/* Under the file's lock: change the events of the file. */
static void set_wanted(struct bz_poll *poll, struct bz_file *f, short events, bool is_wanted)
{
    struct posix_own *own = own_of(poll);
    bz_lock_take(&own->lock, poll->os);
    struct pollfd *p = &own->list[f->kept - 1]; /* I1 */
    p->events = (short)(is_wanted ? p->events | events : p->events & ~events);
    p->fd = p->events != 0 ? f->fd : ~f->fd;
    bz_lock_drop(&own->lock, poll->os);
}

static void posix_deliver(struct bz_poll *poll, struct bz_reaped *reaped,
                          struct bz_wake wakes[BZ_SIDES])
{
    struct bz_file *f = bz_file_find(poll->files, reaped->entry[reaped->at].key);
    if (f == NULL)
        return; /* the file was closed meanwhile */
    unsigned what = meaning_of(reaped->entry[reaped->at].what);
    short events = 0;
    if (what & (BZ_READY_IN | BZ_READY_OVER | BZ_READY_IN_OVER))
        events |= POLLIN | POLLRDHUP;
    if (what & (BZ_READY_OUT | BZ_READY_OVER))
        events |= POLLOUT;
    if (f->poll == poll)
        set_wanted(poll, f, events, false);
    bz_ready_event(f, what, wakes);
    bz_file_unlock(f);
}

static void posix_want(struct bz_poll *poll, struct bz_file *f, enum bz_side side)
{
    set_wanted(poll, f, side == BZ_SIDE_IN ? POLLIN | POLLRDHUP : POLLOUT, true);
    bz_kick(&own_of(poll)->kick, poll->os);
}

static int posix_attach(struct bz_poll *poll, struct bz_file *f)
{
    int err = posix_open(poll);
    if (err != 0)
        return err;
    struct posix_own *own = own_of(poll);
    bz_lock_take(&own->lock, poll->os);
    if (own->count == own->room)
        err = grow(poll, own);
    if (err == 0)
        f->kept = add(own, f->fd, f, 0) + 1;
    bz_lock_drop(&own->lock, poll->os);
    return err;
}

static void posix_detach(struct bz_poll *poll, struct bz_file *f)
{
    struct posix_own *own = own_of(poll);
    bz_lock_take(&own->lock, poll->os);
    size_t at = f->kept - 1;
    own->count--;
    own->list[at] = own->list[own->count];
    own->file[at] = own->file[own->count];
    own->file[at]->kept = at + 1; /* I1: move the last entry, which may be f itself */
    f->kept = 0;
    bz_lock_drop(&own->lock, poll->os);
    bz_kick(&own->kick, poll->os); /* a wait with an old copy keeps the descriptor open */
}

static const struct bz_poll_ops posix_ops = {
    .name = "poll",
    .wait = posix_wait,
    .reap = posix_reap,
    .deliver = posix_deliver,
    .open = posix_open,
    .attach = posix_attach,
    .detach = posix_detach,
    .want = posix_want,
    .kick = posix_kick,
    .fini = posix_fini,
};

bool bz_poll_posix_is_there(void)
{
    return true;
}

void bz_poll_posix_init(struct bz_poll *poll, const struct bz_os *os, struct bz_files *files)
{
    poll->ops = &posix_ops;
    poll->os = os;
    poll->files = files;
    bz_atomic_init(&poll->own, NULL);
    bz_atomic_init(&poll->attached, 0);
    bz_atomic_init(&poll->heir, NULL);
    bz_atomic_init(&poll->roused, 0);
}
