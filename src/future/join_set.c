/*
 * join_set.c - tasks and futures that come and go, taken out in the order in which they end.
 *
 * Each member has an entry in a list of the woken members (wait/readylist.h), and a waker of its
 * own. A new member is queued at once, so that the next poll polls it for the first time; from then on it is
 * polled when it was woken. A task is polled by a join (join.c), a future by its own poll. So a member costs
 * two polls: no list of all members is ever walked, except to cancel them.
 *
 * The blocking call, the try and the future are one function, take_one(), with a waker or without.
 *
 * Which thread may touch a member? Its future, its join and its place in the heap of times belong to the *taker*: the
 * one caller that takes members out at a time. `taker` identifies it. The lock guards whether a member is in the
 * set. A cancel may come from any thread, so it does not touch futures: it marks the member
 * and queues it, and the taker cancels the future. Of a task it takes a handle under the lock.
 *
 * A cancel must reach the members that are in the set when it begins, and may not hold the lock while it
 * cancels a task. So cancels are numbered. A member has the number of the last cancel that it has seen; a
 * new member has seen all. A cancel takes members off the front of `members` as long as they have not
 * seen it, and puts them back at the end.
 *
 * Rejected: a task for each future that polls it. It would let futures make progress without a taker, but
 * cost a task, and a future that is polled on another thread than its owner's surprises. Several takers: two
 * polls of one future at the same time.
 *
 * I1  A member is in `members` if it was added and not taken out; `count` counts them.
 * I2  In `members` those that have not seen the last cancel come first.
 * I3  A member that is in the set holds one reference to its entry, and a task's handle.
 * I4  The adder holds a reference until it has queued the member. As soon as the lock is free, a detach, or a taker
 *     that a cancel has woken, may take the member out.
 */
#include "blitz/join_set.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/list.h"
#include "future/children.h"
#include "life/handle.h"
#include "life/joiner.h"
#include "park/join.h"
#include "proc/state.h"
#include "wait/readylist.h"

struct blitz_join_set {
    struct bz_readylist list; /* its references: one for all handles, one for each entry */
    bz_atomic(size_t) handles;
    struct bz_lock lock;
    struct bz_list members; /* I1; guarded by lock, as is the rest */
    size_t count;
    uint64_t cancels;  /* the number of cancels so far */
    const void *taker; /* NULL: no caller takes members out */
};

struct member {
    struct bz_ready_entry entry;
    struct bz_list in; /* guarded by the set's lock, as are the next three */
    uint64_t seen;     /* the last cancel that it has seen */
    bool is_in;
    bool must_stop;
    void *key;            /* constant, as is the task, NULL for a future */
    struct bz_task *task; /* I3 */
    union {
        struct bz_join join;
        blitz_child child;
    }; /* used by the taker only */
};

static struct member *member_of(struct bz_ready_entry *e)
{
    return BZ_CONTAINER_OF(e, struct member, entry);
}

static void lock(blitz_join_set *s)
{
    bz_lock_take(&s->lock, s->list.os);
}

static void unlock(blitz_join_set *s)
{
    bz_lock_drop(&s->lock, s->list.os);
}

/* ---- making and adding ---- */

static void set_free(struct bz_readylist *list)
{
    blitz_join_set *s = BZ_CONTAINER_OF(list, struct blitz_join_set, list);
    bz_free(&bz_allocator_libc, s, sizeof *s);
}

static void member_free(struct bz_ready_entry *e)
{
    bz_free(&bz_allocator_libc, member_of(e), sizeof(struct member));
}

int blitz_join_set_new(blitz_join_set **out)
{
    static const blitz_waker none = {NULL, NULL};
    if (out == NULL)
        return -EINVAL;
    blitz_join_set *s = bz_alloc(&bz_allocator_libc, sizeof *s, _Alignof(struct blitz_join_set));
    if (s == NULL)
        return -ENOMEM;
    bz_readylist_init(&s->list, &none, set_free, member_free);
    bz_atomic_init(&s->handles, 1);
    bz_lock_init(&s->lock);
    bz_list_init(&s->members);
    s->count = 0;
    s->cancels = 0;
    s->taker = NULL;
    *out = s;
    return 0;
}

static struct member *member_new(blitz_join_set *s, void *key)
{
    struct member *m = bz_alloc(&bz_allocator_libc, sizeof *m, _Alignof(struct member));
    if (m == NULL)
        return NULL;
    bz_ready_entry_init(&m->entry, &s->list);
    bz_list_init(&m->in);
    m->is_in = true;
    m->must_stop = false;
    m->key = key;
    m->task = NULL;
    return m;
}

static void enter(blitz_join_set *s, struct member *m)
{
    bz_fetch_add_relaxed(&m->entry.refs, 1); /* relaxed: ours so far. I4 */
    lock(s);
    m->seen = s->cancels;
    bz_list_push_back(&s->members, &m->in); /* I1, I2 */
    s->count++;
    unlock(s);
    bz_readylist_push(&m->entry);
    bz_ready_entry_unref(&m->entry); /* I4 */
}

/* Make m the member of a task. The ops only distinguish a join by a future from a blocking join. */
static void be_task(struct member *m, blitz_task *t)
{
    static const blitz_future_ops ops = {"join", BLITZ_REVOCABLE, bz_join_poll, bz_join_cancel,
                                         NULL};
    m->task = (struct bz_task *)t;
    bz_join_init(&m->join, &ops, m->task);
}

int blitz_join_set_add_task(blitz_join_set *set, blitz_task *t, void *key)
{
    if (set == NULL || t == NULL)
        return -EINVAL;
    struct member *m = member_new(set, key);
    if (m == NULL)
        return -ENOMEM;
    be_task(m, t);
    enter(set, m);
    return 0;
}

int blitz_join_set_add_future(blitz_join_set *set, blitz_future *f, void *key)
{
    if (set == NULL || f == NULL)
        return -EINVAL;
    struct member *m = member_new(set, key);
    if (m == NULL)
        return -ENOMEM;
    m->child = (blitz_child){f, BLITZ_UNASKED};
    enter(set, m);
    return 0;
}

/* Add the member of a task whose spawn returned `err`, or free the member after an error. */
static int enter_spawned(blitz_join_set *s, struct member *m, blitz_task *t, int err)
{
    if (err != 0) {
        bz_ready_entry_unref(&m->entry);
        return err;
    }
    be_task(m, t);
    enter(s, m);
    return 0;
}

int blitz_join_set_spawn(blitz_join_set *set, int (*fn)(void *arg), void *arg, void *key,
                         const blitz_spawn_opts *opts)
{
    blitz_task *t = NULL;
    if (set == NULL)
        return -EINVAL;
    struct member *m = member_new(set, key); /* first: a running task cannot be taken back */
    if (m == NULL)
        return -ENOMEM;
    int err = blitz_spawn(fn, arg, opts, &t);
    return enter_spawned(set, m, t, err);
}

int blitz_join_set_spawn_poll(blitz_join_set *set, blitz_poll (*poll)(void *state, blitz_cx *cx),
                              const void *state, size_t bytes, void *key,
                              const blitz_spawn_opts *opts)
{
    blitz_task *t = NULL;
    if (set == NULL)
        return -EINVAL;
    struct member *m = member_new(set, key);
    if (m == NULL)
        return -ENOMEM;
    int err = blitz_spawn_poll(poll, state, bytes, opts, &t);
    return enter_spawned(set, m, t, err);
}

/* ---- taking out ---- */

static bool become_taker(blitz_join_set *s, const void *who)
{
    lock(s);
    bool may = s->taker == NULL || s->taker == who;
    if (may)
        s->taker = who;
    unlock(s);
    return may;
}

static void be_taker_no_more(blitz_join_set *s)
{
    bz_readylist_pause(&s->list);
    lock(s);
    s->taker = NULL;
    unlock(s);
}

/* Take m out of the set. Called by the taker. */
static void leave(blitz_join_set *s, struct member *m)
{
    bz_readylist_forget(&m->entry);
    lock(s);
    bz_list_remove(&m->in);
    m->is_in = false;
    s->count--;
    unlock(s);
    if (m->task != NULL)
        bz_task_unref(m->task);
    bz_ready_entry_unref(&m->entry); /* I3 */
}

/* True if the member is in the set. Set *must_stop if a cancel has marked its future. */
static bool look_at(blitz_join_set *s, struct member *m, bool *must_stop)
{
    lock(s);
    bool is_in = m->is_in;
    *must_stop = m->must_stop;
    m->must_stop = false;
    unlock(s);
    return is_in;
}

/* Poll a task's join, or a future. Return true and set out->result if the member has ended. */
static bool ask_task(struct member *m, blitz_joined *out, const blitz_waker *w)
{
    if (bz_join_poll(&m->join.f, w) == BLITZ_PENDING)
        return false;
    bz_join_cancel(&m->join.f); /* the finisher may still hold our node */
    out->result = bz_task_result(m->task);
    return true;
}

static bool ask_future(struct member *m, blitz_joined *out, const blitz_waker *w, bool must_stop)
{
    if (must_stop) {
        bz_child_stop(&m->child);
        out->result = -ECANCELED;
        if (!bz_child_is_open(&m->child))
            return true;
    }
    if (!bz_child_poll(&m->child, w))
        return false;
    out->result = blitz_future_output(m->child.future);
    return true;
}

/* Poll a woken member. If it has ended, take it out of the set, fill in *out and return true. */
static bool ask(blitz_join_set *s, struct member *m, blitz_joined *out, bool has_pointer)
{
    bool must_stop;
    blitz_waker w = bz_readylist_waker(&m->entry);
    *out = (blitz_joined){.key = m->key};
    if (!look_at(s, m, &must_stop))
        return false;
    bool has_ended = m->task != NULL ? ask_task(m, out, &w) : ask_future(m, out, &w, must_stop);
    if (!has_ended)
        return false;
    if (m->task == NULL)
        out->future = m->child.future;
    else if (has_pointer)
        out->pointer = bz_task_take_pointer(m->task);
    leave(s, m);
    return true;
}

/* Take out one member. Return 0, -ENOENT, or -EAGAIN: then the waker will be woken. Called by the taker. */
static int take_one(blitz_join_set *s, const blitz_waker *waker, blitz_joined *out,
                    bool has_pointer)
{
    bool has_ended = false;
    bz_readylist_begin(&s->list, waker);
    for (struct bz_ready_entry *e; !has_ended && (e = bz_readylist_next(&s->list)) != NULL;) {
        has_ended = ask(s, member_of(e), out, has_pointer);
        bz_ready_entry_unref(e); /* the reference of the queue */
    }
    if (has_ended)
        return 0;
    if (blitz_join_set_count(s) == 0)
        return -ENOENT;
    bz_readylist_end(&s->list, waker);
    return -EAGAIN;
}

enum { WAITING, DROPPING, OVER };

static blitz_join_set_future *next_of(blitz_future *f)
{
    return BZ_CONTAINER_OF(f, blitz_join_set_future, future);
}

static blitz_poll next_poll(blitz_future *f, const blitz_waker *waker)
{
    blitz_join_set_future *n = next_of(f);
    if (n->step == OVER)
        return BLITZ_READY;
    n->result = -EBUSY;
    if (become_taker(n->set, n)) {
        n->result = take_one(n->set, waker, &n->joined, n->step == WAITING);
        if (n->result == -EAGAIN)
            return BLITZ_PENDING;
        be_taker_no_more(n->set);
    }
    n->step = OVER;
    return BLITZ_READY;
}

static void next_cancel(blitz_future *f)
{
    blitz_join_set_future *n = next_of(f);
    if (n->step == OVER)
        return;
    n->step = OVER;
    n->result = -ECANCELED;
    be_taker_no_more(n->set);
}

static int next_output(blitz_future *f)
{
    return next_of(f)->result;
}

void blitz_join_set_next_future_init(blitz_join_set_future *f, blitz_join_set *set)
{
    static const blitz_future_ops ops = {"join set", BLITZ_REVOCABLE, next_poll, next_cancel,
                                         next_output};
    *f = (blitz_join_set_future){.future = {&ops}, .set = set, .step = WAITING};
    if (set == NULL) {
        f->step = OVER;
        f->result = -EINVAL;
    }
}

int blitz_join_set_next(blitz_join_set *set, blitz_joined *out, blitz_deadline until)
{
    blitz_join_set_future f;
    if (set == NULL || out == NULL)
        return -EINVAL;
    blitz_join_set_next_future_init(&f, set);
    int err = blitz_await(&f.future, until);
    if (err == 0)
        err = f.result;
    if (err == 0)
        *out = f.joined;
    return err;
}

int blitz_join_set_try_next(blitz_join_set *set, blitz_joined *out)
{
    static const blitz_waker none = {NULL, NULL};
    blitz_joined joined = {.key = NULL};
    if (set == NULL || out == NULL)
        return -EINVAL;
    if (!become_taker(set, &joined))
        return -EBUSY;
    int err = take_one(set, &none, &joined, true);
    be_taker_no_more(set);
    if (err == 0)
        *out = joined;
    return err;
}

/* ---- all of them ---- */

/* Return the next member that has not seen the cancel, marked and with a reference, or NULL. Set *task to its task,
 * also with a reference. */
static struct member *next_to_cancel(blitz_join_set *s, uint64_t number, struct bz_task **task)
{
    struct member *m = NULL;
    lock(s);
    struct bz_list *l = bz_list_take_front(&s->members);
    if (l != NULL) {
        m = BZ_CONTAINER_OF(l, struct member, in);
        bool is_new = m->seen < number;
        if (is_new) {
            m->seen = number;
            m->must_stop = true;
            bz_list_push_back(&s->members, l);       /* I2 */
            bz_fetch_add_relaxed(&m->entry.refs, 1); /* relaxed: the set holds one, I3 */
            *task = m->task;
            if (m->task != NULL)
                bz_task_ref(m->task); /* I3 */
        } else {
            bz_list_push_front(&s->members, l);
            m = NULL;
        }
    }
    unlock(s);
    return m;
}

void blitz_join_set_cancel(blitz_join_set *set)
{
    struct bz_task *task;
    if (set == NULL)
        return;
    lock(set);
    uint64_t number = ++set->cancels;
    unlock(set);
    for (struct member *m; (m = next_to_cancel(set, number, &task)) != NULL;) {
        if (task != NULL) {
            bz_task_cancel(task);
            bz_task_unref(task);
        } else {
            bz_readylist_push(&m->entry);
        }
        bz_ready_entry_unref(&m->entry);
    }
}

/* Cancel the join or the future of a member and take the member out. A pinned future stays. Called by the taker. */
static void let_go(blitz_join_set *s, struct member *m)
{
    if (m->task != NULL) {
        bz_join_cancel(&m->join.f);
    } else {
        bz_child_stop(&m->child);
        if (bz_child_is_open(&m->child)) {
            bz_readylist_push(&m->entry); /* it may be ready by now */
            return;
        }
    }
    leave(s, m);
}

int blitz_join_set_detach(blitz_join_set *set)
{
    struct bz_task *task = NULL;
    if (set == NULL)
        return -EINVAL;
    if (!become_taker(set, &task))
        return -EBUSY;
    lock(set);
    uint64_t number = ++set->cancels;
    unlock(set);
    for (struct member *m; (m = next_to_cancel(set, number, &task)) != NULL;) {
        struct bz_ready_entry *e = &m->entry;
        if (task != NULL)
            bz_task_unref(task);
        let_go(set, m);
        bz_ready_entry_unref(e);
    }
    be_taker_no_more(set);
    return 0;
}

size_t blitz_join_set_count(blitz_join_set *set)
{
    lock(set);
    size_t count = set->count;
    unlock(set);
    return count;
}

/* ---- handles ---- */

blitz_join_set *blitz_join_set_ref(blitz_join_set *set)
{
    bz_fetch_add_relaxed(&set->handles, 1); /* relaxed: the caller holds one */
    return set;
}

/* Cancel all members and wait for each, without taking their results. */
static void end(blitz_join_set *s)
{
    blitz_join_set_future f;
    blitz_join_set_cancel(s);
    blitz_shield();
    do {
        blitz_join_set_next_future_init(&f, s);
        f.step = DROPPING;
        (void)!blitz_await(&f.future, BLITZ_FOREVER);
    } while (f.result == 0);
    blitz_unshield();
}

void blitz_join_set_unref(blitz_join_set *set)
{
    if (set == NULL ||
        bz_fetch_sub_acqrel(&set->handles, 1) != 1) /* all uses come before the end */
        return;
    if (blitz_join_set_count(set) > 0)
        end(set);
    bz_readylist_close(&set->list);
}
