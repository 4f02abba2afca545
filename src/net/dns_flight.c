/*
 * dns_flight.c - lookups that wait for name servers.
 *
 * A flight is a task that looks one host up, and the waiters for its result. A second caller with the same host joins
 * the flight: a thousand connects to one host ask one question. The task is a fiber, so that dns_ask.c is a loop of
 * blocking calls. It belongs to the flight and not to a caller: a caller may leave at its deadline while an operation of
 * io_uring still has the flight's buffers. When the last waiter leaves, it cancels the task.
 *
 * A flight has two events. `done` has the whole answer. `early` comes first if the addresses of one family are there and
 * those of the other are late: with IPv6 addresses at once, with IPv4 addresses after 50 ms (RFC 8305, section 3). An
 * eager waiter, one that connects, takes these.
 *
 * A flight is shared only within one runtime, because its task ends with the runtime.
 *
 * I1  A flight is in the resolver's list while its result may still be waited for: until its task ends or its last
 *     waiter leaves.
 * I2  Answers that `early` or `done` announce do not change any more. The events publish them.
 *
 * [F] unref: refs release -> the last unref: refs acquire    the accesses of all holders happen before the end
 */
#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "blitz/task.h"
#include "net/dns.h"
#include "proc/state.h"

enum { EARLY_MS = 50 };

struct bz_dns_flight {
    struct bz_list in; /* the resolver's list; guarded by its lock, as are the next three */
    bool is_listed;    /* I1 */
    unsigned waiters;
    blitz_task *task;         /* NULL until it is started */
    bz_atomic(uint32_t) refs; /* the task's, and one for each waiter */
    blitz_resolver *r;        /* a reference; constant, as are the next two */
    const void *rt;
    struct bz_dns_host host;
    struct bz_dns_setup *setup; /* a reference; the task's own, as is `ask` until an event is set */
    struct bz_dns_ask ask;
    int early;  /* the question whose addresses `early` announces; -1: none */
    int result; /* when done: 0: `ask` has the addresses; -EINPROGRESS: look again; else an error */
    blitz_event early_event, done_event;
    blitz_addr found
        [BLITZ_RESOLVE_MAX]; /* room for the task: the hosts file is looked at again by the waiters */
};

static const void *runtime_here(void)
{
    struct bz_machine *m = bz_machine_self();
    return m != NULL ? m->rt : NULL;
}

/* ---- the task ---- */

static void say_early(struct bz_dns_flight *f, unsigned i)
{
    if (f->early >= 0)
        return;
    f->early = (int)i;
    blitz_event_set(&f->early_event);
}

/* Keep each answer as it comes: the task may be cancelled before the next one. */
static void came(struct bz_dns_ask *a, unsigned i)
{
    struct bz_dns_flight *f = BZ_CONTAINER_OF(a, struct bz_dns_flight, ask);
    bz_dns_keep(f->r, f->setup, a, i);
    if (a->verdict[i] != BZ_DNS_FOUND || !a->is_open[1 - i])
        return;
    if (a->q[i].type == BZ_DNS_AAAA)
        say_early(f, i);
    else
        a->hint_at = blitz_after(EARLY_MS * BLITZ_MS);
}

static void hint(struct bz_dns_ask *a)
{
    struct bz_dns_flight *f = BZ_CONTAINER_OF(a, struct bz_dns_flight, ask);
    for (unsigned i = 0; i < BZ_DNS_QUESTIONS; i++)
        if (!a->is_open[i] && a->verdict[i] == BZ_DNS_FOUND)
            say_early(f, i);
}

static int look_up(struct bz_dns_flight *f)
{
    int err = bz_dns_setup_get(f->r, &f->setup);
    if (err != 0)
        return err;
    f->ask.conf = &f->setup->conf;
    int n = bz_dns_by_sources(f->r, f->setup, &f->host, &f->ask, true, f->found);
    return n > 0 ? -EINPROGRESS : n;
}

static void unlist(struct bz_dns_flight *f)
{
    if (f->is_listed)
        bz_list_remove(&f->in);
    f->is_listed = false;
}

static void flight_unref(struct bz_dns_flight *f)
{
    if (bz_fetch_sub_acqrel(&f->refs, 1) != 1) /* [F] */
        return;
    blitz_task_detach(f->task);
    bz_dns_setup_unref(f->setup);
    blitz_resolver_unref(f->r);
    bz_free(&bz_allocator_libc, f, sizeof *f);
}

/* Tell the waiters the result, and drop the task's reference. */
static void land(struct bz_dns_flight *f, int result)
{
    f->result = result;
    bz_resolver_lock(f->r);
    unlist(f); /* I1 */
    bz_resolver_unlock(f->r);
    blitz_event_set(&f->done_event);
    blitz_event_set(&f->early_event);
    flight_unref(f);
}

static int fly(void *arg)
{
    struct bz_dns_flight *f = arg;
    land(f, look_up(f));
    return 0;
}

/* ---- waiters ---- */

static struct bz_dns_flight *flight_new(blitz_resolver *r, const struct bz_dns_host *h)
{
    struct bz_dns_flight *f =
        bz_alloc(&bz_allocator_libc, sizeof *f, _Alignof(struct bz_dns_flight));
    if (f == NULL)
        return NULL;
    memset(f, 0, sizeof *f);
    bz_atomic_init(&f->refs, 2); /* the task, and the first waiter */
    bz_list_init(&f->in);
    f->waiters = 1;
    f->rt = runtime_here();
    f->host = *h;
    f->early = -1;
    f->ask.came = came;
    f->ask.hint = hint;
    f->ask.hint_at = BLITZ_FOREVER;
    blitz_event_init(&f->early_event);
    blitz_event_init(&f->done_event);
    f->r = blitz_resolver_ref(r);
    return f;
}

/* Find the flight for a host and join it, under the lock. */
static struct bz_dns_flight *join_other(blitz_resolver *r, const struct bz_dns_flight *like)
{
    BZ_LIST_FOR_EACH (l, &r->flights) {
        struct bz_dns_flight *f = BZ_CONTAINER_OF(l, struct bz_dns_flight, in);
        if (f->rt != like->rt || f->host.is_absolute != like->host.is_absolute ||
            strcmp(f->host.name, like->host.name) != 0)
            continue;
        f->waiters++;
        bz_fetch_add_relaxed(&f->refs,
                             1); /* relaxed: the task holds a reference while it is listed */
        return f;
    }
    return NULL;
}

/* The reference of the task that was not started is the caller's. */
static int start(struct bz_dns_flight *f)
{
    blitz_task *task;
    int err = blitz_spawn(fly, f, &(blitz_spawn_opts){.name = "resolve"}, &task);
    if (err != 0) {
        land(f, err);
        return err;
    }
    bz_resolver_lock(f->r);
    f->task = task; /* it is cancelled by the last waiter: not before the caller leaves */
    bz_resolver_unlock(f->r);
    return 0;
}

int bz_dns_flight_join(blitz_resolver *r, const struct bz_dns_host *h, struct bz_dns_flight **out)
{
    struct bz_dns_flight *mine = flight_new(r, h);
    if (mine == NULL)
        return -ENOMEM;
    bz_resolver_lock(r);
    struct bz_dns_flight *other = join_other(r, mine);
    if (other == NULL) {
        bz_list_push_back(&r->flights, &mine->in);
        mine->is_listed = true;
    }
    bz_resolver_unlock(r);
    if (other != NULL) {
        flight_unref(mine);
        flight_unref(mine);
        *out = other;
        return 0;
    }
    int err = start(mine);
    if (err != 0)
        bz_dns_flight_leave(mine);
    else
        *out = mine;
    return err;
}

blitz_event *bz_dns_flight_event(struct bz_dns_flight *f, bool is_eager)
{
    return is_eager ? &f->early_event : &f->done_event;
}

int bz_dns_flight_result(struct bz_dns_flight *f, bool is_eager, blitz_addr *out, size_t room,
                         bool *is_partial)
{
    bool is_done = blitz_event_is_set(&f->done_event);
    *is_partial = !is_done;
    if (is_done && f->result != 0)
        return f->result;
    size_t bytes = BLITZ_RESOLVE_MAX * sizeof(blitz_addr), n = 0;
    blitz_addr *found = bz_alloc(&bz_allocator_libc, bytes, _Alignof(blitz_addr));
    if (found == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < BZ_DNS_QUESTIONS; i++) /* I2 */
        if (is_done || (int)i == f->early)
            n += bz_dns_addresses(&f->ask, i, found + n, BLITZ_RESOLVE_MAX - n);
    int count = bz_dns_give(found, n, is_eager, out, room);
    bz_free(&bz_allocator_libc, found, bytes);
    return count;
}

void bz_dns_flight_leave(struct bz_dns_flight *f)
{
    bz_resolver_lock(f->r);
    BZ_CHECK(f->waiters > 0, "resolver: a waiter of %s leaves twice", f->host.name);
    f->waiters--;
    bool is_unwanted = f->waiters == 0 && f->is_listed;
    if (is_unwanted)
        unlist(f); /* I1: no caller joins a flight that ends */
    bz_resolver_unlock(f->r);
    if (is_unwanted)
        blitz_task_cancel(f->task);
    flight_unref(f);
}
