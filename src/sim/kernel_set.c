/*
 * kernel_set.c - the simulated network: readiness events.
 *
 * A change of a file is an *edge*. Every set with the file adds it to its ready list, and waiters
 * check the list. A wait reports what is ready *then*, not what happened: several edges make one
 * event for both halves, and an edge whose cause is gone reports nothing. The real system works in
 * the same way. A level-triggered file stays in the ready list while it is ready.
 *
 * The seed decides the order, how many files are reported at once, spurious events, interrupted
 * waits, and the delay of an edge.
 *
 * A wait holds references to its files, as in the real system: a file closed meanwhile stays open
 * until the wait has ended (bug class 16 in backends that wait with a list).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>

#include "base/check.h"
#include "sim/kernel.h"

enum { ALWAYS = EPOLLERR | EPOLLHUP, POLL_MAX = 128 };

/* ---- readiness of a file ---- */

static unsigned counter_mask(const struct sim_file *f)
{
    return f->counter.reader != NULL ? EPOLLOUT
           : f->counter.count > 0    ? EPOLLIN | EPOLLOUT
                                     : EPOLLOUT;
}

unsigned bz_sim_mask(struct sim_file *f)
{
    return f->kind == SIM_SOCKET    ? bz_sim_socket_mask(f)
           : f->kind == SIM_COUNTER ? counter_mask(f)
                                    : 0;
}

void bz_sim_has_changed(void)
{
    bz_fetch_add_relaxed(&bz_sim_kernel->changed, 1); /* relaxed: one simulated thread at a time */
    bz_sim_kernel->owes_wake = true;
}

void bz_sim_edge(struct sim_file *f, unsigned sides)
{
    BZ_LIST_FOR_EACH (node, &f->watchers) {
        struct sim_item *i = BZ_CONTAINER_OF(node, struct sim_item, of_file);
        if (!bz_list_is_linked(&i->ready))
            bz_list_push_back(&i->set->set.ready, &i->ready);
    }
    bz_sim_queues_edge(f, sides);
    bz_sim_flights_edge(f);
    bz_sim_has_changed();
}

void bz_sim_edge_soon(struct sim_file *f, unsigned sides)
{
    if (bz_sim_odd(4)) {
        f->late_sides |= (uint8_t)sides;
        bz_sim_send_event(SIM_EDGE, f, NULL, bz_sim_delay());
    } else {
        bz_sim_edge(f, sides);
    }
}

/* ---- sets ---- */

static void item_drop(struct sim_item *i)
{
    bz_list_remove(&i->of_set);
    bz_list_remove(&i->of_file);
    bz_list_remove(&i->ready);
    i->set = NULL;
}

void bz_sim_forget(struct sim_file *f)
{
    while (!bz_list_is_empty(&f->watchers))
        item_drop(BZ_CONTAINER_OF(f->watchers.next, struct sim_item, of_file));
}

void bz_sim_set_end(struct sim_file *f)
{
    while (!bz_list_is_empty(&f->set.items))
        item_drop(BZ_CONTAINER_OF(f->set.items.next, struct sim_item, of_set));
}

static struct sim_item *item_of(struct sim_file *set, struct sim_file *f, int fd)
{
    BZ_LIST_FOR_EACH (node, &set->set.items) {
        struct sim_item *i = BZ_CONTAINER_OF(node, struct sim_item, of_set);
        if (i->file == f && i->fd == fd)
            return i;
    }
    return NULL;
}

static void item_add(struct sim_file *set, struct sim_file *f, int fd,
                     const struct epoll_event *event)
{
    struct sim_item *i = bz_sim_kernel->item;
    while (i < bz_sim_kernel->item + SIM_ITEMS && i->set != NULL)
        i++;
    BZ_CHECK(i < bz_sim_kernel->item + SIM_ITEMS, "simulated sets have room for %d files",
             SIM_ITEMS);
    *i = (struct sim_item){.set = set, .file = f, .fd = fd, .event = *event};
    bz_list_init(&i->of_set);
    bz_list_init(&i->of_file);
    bz_list_init(&i->ready);
    bz_list_push_back(&set->set.items, &i->of_set);
    bz_list_push_back(&f->watchers, &i->of_file);
    if (bz_sim_mask(f) & (event->events | ALWAYS)) {
        bz_list_push_back(&set->set.ready, &i->ready);
        bz_sim_has_changed();
    }
}

static unsigned ready_count(struct sim_file *set)
{
    unsigned n = 0;
    BZ_LIST_FOR_EACH (node, &set->set.ready)
        n++;
    return n;
}

static struct sim_item *take_ready(struct sim_file *set, unsigned pick)
{
    struct bz_list *node = set->set.ready.next;
    while (pick-- > 0)
        node = node->next;
    bz_list_remove(node);
    return BZ_CONTAINER_OF(node, struct sim_item, ready);
}

/* Check the ready list in a random order, perhaps not all of it. */
static int gather(struct sim_file *set, struct epoll_event *events, int room)
{
    struct bz_list again;
    unsigned left = ready_count(set);
    int n = 0;
    bz_list_init(&again);
    for (; left > 0 && n < room; left--) {
        if (n > 0 && bz_sim_odd(4))
            break;
        struct sim_item *i =
            take_ready(set, bz_sim_kernel->config.is_calm ? 0 : bz_sim_below(left));
        unsigned mask = bz_sim_mask(i->file) & (i->event.events | ALWAYS);
        if (mask != 0 && i->file->kind == SIM_SOCKET && bz_sim_odd(8))
            mask |= EPOLLIN | EPOLLOUT; /* a spurious event */
        if (mask == 0)
            continue;
        if (!(i->event.events & EPOLLET))
            bz_list_push_back(&again, &i->ready);
        events[n].events = mask;
        events[n++].data = i->event.data;
    }
    bz_list_splice(&set->set.ready, &again);
    bz_sim_kernel->books.told += (uint64_t)n;
    return n;
}

static int wait_in(int fd, struct epoll_event *events, int room, uint64_t until_ns)
{
    struct sim_file *set = bz_sim_file_of(fd, SIM_SET);
    int64_t n;
    set->refs++;
    for (;;) {
        uint32_t was = bz_sim_changes();
        n = gather(set, events, room);
        if (n > 0 || until_ns == 0 || bz_os_now(bz_sim_kernel->os) >= until_ns)
            break;
        if (bz_sim_odd(64)) {
            n = -EINTR;
            break;
        }
        bz_sim_sleep(was, until_ns);
    }
    bz_sim_file_unref(set);
    return (int)bz_sim_outcome(n);
}

/* ---- calls ---- */

static int sim_epoll_create1(int flags)
{
    (void)flags;
    bz_sim_call();
    struct sim_file *f = bz_sim_file_new(SIM_SET);
    bz_list_init(&f->set.items);
    bz_list_init(&f->set.ready);
    return (int)bz_sim_outcome(bz_sim_fd_new(f));
}

static int sim_epoll_ctl(int set_fd, int what, int fd, struct epoll_event *event)
{
    bz_sim_call();
    struct sim_file *set = bz_sim_file_of(set_fd, SIM_SET), *f = bz_sim_file_of(fd, SIM_NO_FILE);
    struct sim_item *i = item_of(set, f, fd);
    int err = 0;
    if (what == EPOLL_CTL_ADD)
        err = i != NULL ? -EEXIST : 0;
    else if (i == NULL)
        err = -ENOENT;
    if (err == 0 && what != EPOLL_CTL_ADD)
        item_drop(i);
    if (err == 0 && what != EPOLL_CTL_DEL)
        item_add(set, f, fd, event);
    return (int)bz_sim_outcome(err);
}

static int sim_epoll_wait(int set, struct epoll_event *events, int room, int ms)
{
    bz_sim_call();
    return wait_in(set, events, room, bz_sim_until_ms(ms));
}

static int sim_epoll_pwait2(int set, struct epoll_event *events, int room,
                            const struct timespec *left)
{
    uint64_t until = BZ_OS_FOREVER;
    bz_sim_call();
    if (left != NULL && left->tv_sec < 1000000000) {
        uint64_t ns = (uint64_t)left->tv_sec * 1000000000 + (uint64_t)left->tv_nsec;
        until = ns == 0 ? 0 : bz_os_now(bz_sim_kernel->os) + ns;
    }
    return wait_in(set, events, room, until);
}

/* ---- poll(2) ---- */

static int look_at(struct pollfd *list, nfds_t count, struct sim_file **held)
{
    int n = 0;
    for (nfds_t i = 0; i < count; i++) {
        struct pollfd *p = &list[i];
        p->revents = 0;
        if (p->fd < 0)
            continue;
        unsigned want = (unsigned short)p->events | ALWAYS;
        p->revents = held[i] != NULL ? (short)(bz_sim_mask(held[i]) & want) : POLLNVAL;
        n += p->revents != 0;
    }
    return n;
}

static int sim_poll(struct pollfd *list, nfds_t count, int ms)
{
    struct sim_file *held[POLL_MAX];
    int64_t n;
    bz_sim_call();
    uint64_t until = bz_sim_until_ms(ms);
    BZ_CHECK(count <= POLL_MAX, "a simulated poll has room for %d descriptors", POLL_MAX);
    for (nfds_t i = 0; i < count; i++) {
        held[i] = bz_sim_file_at(list[i].fd);
        if (held[i] != NULL)
            held[i]->refs++;
    }
    for (;;) {
        uint32_t was = bz_sim_changes();
        n = look_at(list, count, held);
        if (n > 0 || ms == 0 || bz_os_now(bz_sim_kernel->os) >= until)
            break;
        if (bz_sim_odd(64)) {
            n = -EINTR;
            break;
        }
        bz_sim_sleep(was, until);
    }
    for (nfds_t i = 0; i < count; i++)
        if (held[i] != NULL)
            bz_sim_file_unref(held[i]);
    return (int)bz_sim_outcome(n);
}

/* ---- counters, and pipes that count ---- */

static int sim_eventfd(unsigned count, int flags)
{
    bz_sim_call();
    struct sim_file *f = bz_sim_file_new(SIM_COUNTER);
    f->blocks = !(flags & EFD_NONBLOCK);
    f->counter.count = count;
    return (int)bz_sim_outcome(bz_sim_fd_new(f));
}

/* The write end has a reference to the read end. */
static int sim_pipe2(int fd[2], int flags)
{
    bz_sim_call();
    struct sim_file *in = bz_sim_file_new(SIM_COUNTER), *out = bz_sim_file_new(SIM_COUNTER);
    in->blocks = out->blocks = !(flags & O_NONBLOCK);
    out->counter.reader = in;
    in->refs++;
    fd[0] = bz_sim_fd_new(in);
    fd[1] = fd[0] >= 0 ? bz_sim_fd_new(out) : -EMFILE;
    if (fd[0] < 0)
        bz_sim_file_unref(out);
    else if (fd[1] < 0)
        bz_sim_fd_drop(fd[0]);
    return (int)bz_sim_outcome(fd[1] < 0 ? -EMFILE : 0);
}

/* Written in words of 8 bytes, read as their sum: enough for a kick. */
static ssize_t sim_read(int fd, void *data, size_t bytes)
{
    bz_sim_call();
    struct sim_file *f = bz_sim_file_of(fd, SIM_COUNTER);
    if (bytes < sizeof f->counter.count)
        return (ssize_t)bz_sim_outcome(-EINVAL);
    if (f->counter.count == 0)
        return (ssize_t)bz_sim_outcome(-EAGAIN);
    bz_sim_copy(data, &f->counter.count, sizeof f->counter.count);
    f->counter.count = 0;
    return (ssize_t)bz_sim_outcome(sizeof f->counter.count);
}

static ssize_t sim_write(int fd, const void *data, size_t bytes)
{
    uint64_t more;
    bz_sim_call();
    struct sim_file *f = bz_sim_file_of(fd, SIM_COUNTER);
    f = f->counter.reader != NULL ? f->counter.reader : f;
    if (bytes != sizeof more)
        return (ssize_t)bz_sim_outcome(-EINVAL);
    bz_sim_copy(&more, data, sizeof more);
    f->counter.count += more;
    bz_sim_edge(f, SIM_EDGE_IN);
    return (ssize_t)bz_sim_outcome(sizeof more);
}

void bz_sim_set_calls(struct bz_sys *out)
{
    out->poll = sim_poll;
    out->pipe2 = sim_pipe2;
    out->eventfd = sim_eventfd;
    out->read = sim_read;
    out->write = sim_write;
}

const struct bz_sys_sets bz_sim_sets = {
    .epoll_create1 = sim_epoll_create1,
    .epoll_ctl = sim_epoll_ctl,
    .epoll_wait = sim_epoll_wait,
    .epoll_pwait2 = sim_epoll_pwait2,
};
