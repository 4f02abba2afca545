/*
 * readylist.c - a waker for each child of a future, and the list of children that were woken.
 *
 * A combinator that gives its own waker to its n children does not learn which of them was woken, and
 * polls all: n * n / 2 polls until the last one has ended. With a list, a wake costs one poll.
 *
 * A child's waker points to its entry. A waker may outlive the child and the parent, so the memory is
 * counted. race.c and all.c know how many children there are: list and entries are one block, and each
 * clone of a waker is a reference to it. It comes from the C library's allocator, as a thread's parker does
 * (await.c), once for each combinator. A set (join_set.c) grows: its entries are *loose*, each counts its
 * own wakers and holds a reference to the list.
 *
 * A wake appends the entry to a queue, unless it is queued already, and wakes the parent. The parent's
 * waker is taken out for that: later wakes find none, because the parent is already going to poll. The
 * poll puts a waker back *before* it takes the first entry, so a child that is woken meanwhile wakes the
 * parent again. A poll takes as many entries as were queued when it began: a child that wakes itself in
 * every poll does not keep the parent for ever.
 *
 * One lock guards all of it. It is a leaf and is never held while a waker is called. Rejected: a lock-free
 * stack of entries. It would save one locked instruction a wake, and poll the children in the wrong order.
 *
 * Plain threads have no timers. There a sleep names the time by which it wants to be polled again
 * (bz_waker_by), and the thread sleeps no longer than that. So the list has a heap of these times, made
 * when it is first needed. A poll queues the children that are due and passes the earliest remaining time
 * on to its own waker. Only the parent's poll touches the heap, so it needs no lock. If there is no
 * memory for one more time, the child is queued at once: the next poll polls it, whatever the poll is for.
 *
 * The parent of a set may be a plain thread in one poll and a task in the next. A task does not poll again by a
 * time: a timer wakes it, and the sleep arms the timer when a worker polls it. So a poll on a worker queues all
 * children of the heap, and the heap is empty afterwards.
 *
 * I1  entry.next is NULL, or the entry is in the queue, once. Of the last one it is END.
 * I2  queued is the number of entries in the queue.
 * I3  If the queue is not empty and the parent is not inside its poll, the parent has been woken or closed,
 *     or sleeps until a time that a child in the queue has named.
 * I5  The queue holds a reference to each loose entry in it. A closed list has no queue.
 * I4  The heap holds a child at most once, with the earliest time it has named since it was taken out. It is
 *     empty after the begin of a poll on a worker.
 *
 * [A] drop: refs acq_rel -> drop: refs acq_rel     all uses come before the free
 */
#include "wait/readylist.h"

#include <string.h>

#include "base/alloc.h"
#include "proc/state.h"
#include "wait/waker.h"

/* The end mark behind the last entry in the queue. Only its address is used. */
static struct bz_ready_entry end_of_queue;
#define END (&end_of_queue)

struct block {
    struct bz_readylist list;
    size_t count;
    struct bz_ready_entry entry[];
};

static void list_unref(struct bz_readylist *r)
{
    if (bz_fetch_sub_acqrel(&r->refs, 1) == 1) /* [A] */
        r->free_list(r);
}

/* Append an entry that is not queued. Under the lock. */
static void append(struct bz_readylist *r, struct bz_ready_entry *e)
{
    if (r->free_entry != NULL)
        bz_fetch_add_relaxed(&e->refs, 1); /* relaxed: the caller holds one. I5 */
    e->next = END;                         /* I1 */
    *r->tail = e;
    r->tail = &e->next;
    r->queued++;
}

/* ---- wakers ---- */

static void child_clone(void *entry)
{
    struct bz_ready_entry *e = entry;
    if (e->list->free_entry != NULL)
        bz_fetch_add_relaxed(&e->refs, 1); /* relaxed: the cloner holds one */
    else
        bz_fetch_add_relaxed(&e->list->refs, 1); /* relaxed: likewise */
}

void bz_readylist_push(struct bz_ready_entry *e)
{
    struct bz_readylist *r = e->list;
    bz_lock_take(&r->lock, r->os);
    if (e->next == NULL && !r->is_closed)
        append(r, e);
    blitz_waker parent = r->parent;
    r->parent = (blitz_waker){NULL, NULL}; /* I3 */
    bz_lock_drop(&r->lock, r->os);
    blitz_waker_wake(&parent);
}

static void child_wake_by_ref(void *entry)
{
    bz_readylist_push(entry);
}

void bz_ready_entry_unref(struct bz_ready_entry *e)
{
    struct bz_readylist *r = e->list;
    if (bz_fetch_sub_acqrel(&e->refs, 1) != 1) /* [A] */
        return;
    r->free_entry(e);
    list_unref(r);
}

static void child_drop(void *entry)
{
    struct bz_ready_entry *e = entry;
    if (e->list->free_entry != NULL)
        bz_ready_entry_unref(e);
    else
        list_unref(e->list);
}

static void child_wake(void *entry)
{
    bz_readylist_push(entry);
    child_drop(entry);
}

static const blitz_waker_ops child_waker = {child_clone, child_wake, child_wake_by_ref, child_drop};

bool bz_readylist_is_ours(const blitz_waker *w)
{
    return w->ops ==
               &child_waker && /* relaxed: a hint. A foreign waker is seen before it is kept */
           !bz_load_relaxed(&((struct bz_ready_entry *)w->data)->list->is_foreign);
}

blitz_waker bz_readylist_waker(struct bz_ready_entry *e)
{
    return (blitz_waker){&child_waker, e};
}

/* ---- times ---- */

struct timed {
    uint64_t when;
    struct bz_ready_entry *entry;
};

/* at[0] is not used. */
struct bz_ready_heap {
    uint32_t count, room;
    struct timed at[];
};

static size_t heap_bytes(size_t room)
{
    return sizeof(struct bz_ready_heap) + (room + 1) * sizeof(struct timed);
}

static void heap_put(struct bz_ready_heap *h, uint32_t at, struct timed t)
{
    h->at[at] = t;
    t.entry->place = at;
}

static void heap_up(struct bz_ready_heap *h, uint32_t at, struct timed t)
{
    for (; at > 1 && h->at[at / 2].when > t.when; at /= 2)
        heap_put(h, at, h->at[at / 2]);
    heap_put(h, at, t);
}

static void heap_down(struct bz_ready_heap *h, uint32_t at, struct timed t)
{
    for (uint32_t below; (below = 2 * at) <= h->count; at = below) {
        if (below < h->count && h->at[below + 1].when < h->at[below].when)
            below++;
        if (t.when <= h->at[below].when)
            break;
        heap_put(h, at, h->at[below]);
    }
    heap_put(h, at, t);
}

static void heap_remove(struct bz_ready_heap *h, struct bz_ready_entry *e)
{
    uint32_t at = e->place;
    struct timed last = h->at[h->count--];
    e->place = 0;
    if (last.entry == e)
        return;
    if (at > 1 && h->at[at / 2].when > last.when)
        heap_up(h, at, last);
    else
        heap_down(h, at, last);
}

/* Make room for one more. */
static bool heap_grow(struct bz_readylist *r)
{
    struct bz_ready_heap *old = r->heap;
    uint32_t room = old != NULL ? old->room : 0;
    if (old != NULL && old->count < room)
        return true;
    if (room > UINT32_MAX / 4)
        return false;
    uint32_t more = room == 0 ? 64 : 2 * room;
    struct bz_ready_heap *h =
        bz_alloc(&bz_allocator_libc, heap_bytes(more), _Alignof(struct bz_ready_heap));
    if (h == NULL)
        return false;
    h->count = 0;
    if (old != NULL) {
        memcpy(h, old, heap_bytes(room));
        bz_free(&bz_allocator_libc, old, heap_bytes(room));
    }
    h->room = more;
    r->heap = h;
    return true;
}

/* Record that the child wants to be polled at `when`, or earlier. I4 */
static void remember(struct bz_readylist *r, struct bz_ready_entry *e, uint64_t when)
{
    if (e->place != 0) {
        if (when < r->heap->at[e->place].when)
            heap_up(r->heap, e->place, (struct timed){when, e});
    } else if (heap_grow(r)) {
        heap_up(r->heap, ++r->heap->count, (struct timed){when, e});
    } else {
        bz_lock_take(&r->lock, r->os);
        if (e->next == NULL)
            append(r, e);
        bz_lock_drop(&r->lock, r->os);
    }
}

bool bz_readylist_by(const blitz_waker *w, uint64_t when, const blitz_waker **parent)
{
    if (w->ops != &child_waker)
        return false;
    struct bz_ready_entry *e = w->data;
    if (when != BLITZ_FOREVER)
        remember(e->list, e, when);
    *parent = e->list->poll;
    return true;
}

void bz_readylist_forget(struct bz_ready_entry *e)
{
    if (e->place != 0)
        heap_remove(e->list->heap, e);
}

/* Queue the children that are due. Under the lock. */
static void queue_due(struct bz_readylist *r, uint64_t now)
{
    struct bz_ready_heap *h = r->heap;
    while (h->count > 0 && h->at[1].when <= now) {
        struct bz_ready_entry *e = h->at[1].entry;
        heap_remove(h, e);
        if (e->next == NULL)
            append(r, e);
    }
}

/* ---- the parent ---- */

void bz_readylist_init(struct bz_readylist *r, const blitz_waker *parent,
                       void (*free_list)(struct bz_readylist *),
                       void (*free_entry)(struct bz_ready_entry *))
{
    *r = (struct bz_readylist){
        .os = bz_os_here(), .free_list = free_list, .free_entry = free_entry, .head = END};
    r->tail = &r->head;
    bz_atomic_init(&r->refs, 1);
    bz_atomic_init(&r->is_foreign, !bz_waker_is_ours(parent));
    bz_lock_init(&r->lock);
}

void bz_ready_entry_init(struct bz_ready_entry *e, struct bz_readylist *r)
{
    e->next = NULL;
    e->list = r;
    e->place = 0;
    bz_atomic_init(&e->refs, 1);
    bz_fetch_add_relaxed(&r->refs, 1); /* relaxed: the caller holds one */
}

static void block_free(struct bz_readylist *r)
{
    struct block *b = BZ_CONTAINER_OF(r, struct block, list);
    bz_free(&bz_allocator_libc, b, sizeof *b + b->count * sizeof b->entry[0]);
}

struct bz_readylist *bz_readylist_new(size_t count, const blitz_waker *parent)
{
    if (count > (SIZE_MAX / 2 - sizeof(struct block)) / sizeof(struct bz_ready_entry))
        return NULL;
    size_t bytes = sizeof(struct block) + count * sizeof(struct bz_ready_entry);
    struct block *b = bz_alloc(&bz_allocator_libc, bytes, _Alignof(struct block));
    if (b == NULL)
        return NULL;
    bz_readylist_init(&b->list, parent, block_free, NULL);
    b->count = count;
    for (size_t i = 0; i < count; i++) {
        b->entry[i].next = NULL;
        b->entry[i].list = &b->list;
        b->entry[i].place = 0;
        bz_atomic_init(&b->entry[i].refs, 0);
    }
    return &b->list;
}

struct bz_ready_entry *bz_readylist_at(struct bz_readylist *r, size_t i)
{
    return &BZ_CONTAINER_OF(r, struct block, list)->entry[i];
}

size_t bz_readylist_index(const struct bz_ready_entry *e)
{
    return (size_t)(e - BZ_CONTAINER_OF(e->list, struct block, list)->entry);
}

/* Children whose time is not after the result must be polled now. On a worker these are all: I4. */
static uint64_t due_until(const blitz_waker *parent)
{
    if (bz_machine_self() != NULL)
        return BLITZ_FOREVER;
    return bz_os_now(bz_waker_by(parent, BLITZ_FOREVER));
}

void bz_readylist_begin(struct bz_readylist *r, const blitz_waker *parent)
{
    blitz_waker waker = blitz_waker_clone(parent); /* not under the lock: it may be foreign code */
    bool is_timed = r->heap != NULL && r->heap->count > 0;
    uint64_t now = is_timed ? due_until(parent) : 0;
    if (BZ_UNLIKELY(!bz_waker_is_ours(parent)))
        bz_store_relaxed(&r->is_foreign, 1); /* relaxed: a hint */
    r->poll = parent;
    bz_lock_take(&r->lock, r->os);
    blitz_waker old = r->parent;
    r->parent = waker;
    if (is_timed)
        queue_due(r, now);
    r->batch = r->queued;
    bz_lock_drop(&r->lock, r->os);
    blitz_waker_drop(&old);
}

/* Take the first entry off the queue, which is not empty. Under the lock. */
static struct bz_ready_entry *take(struct bz_readylist *r)
{
    struct bz_ready_entry *e = r->head;
    r->head = e->next;
    if (r->head == END)
        r->tail = &r->head;
    e->next = NULL; /* before the child is polled: a wake from now on counts */
    r->queued--;
    return e;
}

struct bz_ready_entry *bz_readylist_next(struct bz_readylist *r)
{
    if (r->batch == 0)
        return NULL;
    r->batch--;
    bz_lock_take(&r->lock, r->os);
    struct bz_ready_entry *e = take(r);
    bz_lock_drop(&r->lock, r->os);
    return e;
}

void bz_readylist_end(struct bz_readylist *r, const blitz_waker *parent)
{
    r->poll = NULL;
    if (r->heap != NULL && r->heap->count > 0)
        (void)!bz_waker_by(parent, r->heap->at[1].when);
}

void bz_readylist_pause(struct bz_readylist *r)
{
    bz_lock_take(&r->lock, r->os);
    blitz_waker parent = r->parent;
    r->parent = (blitz_waker){NULL, NULL};
    bz_lock_drop(&r->lock, r->os);
    blitz_waker_drop(&parent);
    r->poll = NULL;
}

void bz_readylist_close(struct bz_readylist *r)
{
    struct bz_ready_entry *left = NULL;
    bz_lock_take(&r->lock, r->os);
    blitz_waker parent = r->parent;
    r->parent = (blitz_waker){NULL, NULL};
    r->is_closed = true;
    while (r->queued > 0) {
        struct bz_ready_entry *e = take(r);
        e->next = left;
        left = e;
    }
    bz_lock_drop(&r->lock, r->os);
    blitz_waker_drop(&parent);
    while (r->free_entry != NULL && left != NULL) {
        struct bz_ready_entry *e = left;
        left = e->next;
        bz_ready_entry_unref(e); /* I5 */
    }
    if (r->heap != NULL)
        bz_free(&bz_allocator_libc, r->heap, heap_bytes(r->heap->room));
    r->heap = NULL;
    r->poll = NULL;
    list_unref(r);
}
