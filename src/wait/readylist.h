/*
 * readylist.h - a waker for each child of a future, and the list of children that were woken.
 *
 *     bz_readylist_begin(r, waker);                     in each poll of the parent
 *     while ((e = bz_readylist_next(r)) != NULL)
 *         poll the child of e with the waker bz_readylist_waker(e);
 *     bz_readylist_end(r, waker);                        unless it says "ready"
 *     ...
 *     bz_readylist_close(r);                             the parent polls no more; wakers may outlive it
 *
 * The parent calls all of these, one thread at a time, except for wakers and bz_readylist_push(). The
 * rules are in readylist.c.
 */
#ifndef BZ_READYLIST_H
#define BZ_READYLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "base/compiler.h"
#include "blitz/future.h"
#include "os/lock.h"

/* A child's entry, the target of its wakers. */
struct bz_ready_entry {
    struct bz_ready_entry *next; /* guarded by the list's lock; NULL: not queued */
    struct bz_readylist *list;   /* constant */
    bz_atomic(uint32_t) refs;    /* of a loose entry */
    uint32_t place;              /* in the heap, from 1; 0: not there. The parent's */
};

struct bz_readylist {
    const struct bz_os *os; /* constant, like the next two */
    void (*free_list)(struct bz_readylist *r);
    void (*free_entry)(
        struct bz_ready_entry *e); /* NULL: the entries are in the list's own block */
    bz_atomic(size_t) refs;
    bz_atomic(uint32_t) is_foreign; /* 1: a poll had a waker that is not one of the runtime's own */
    struct bz_lock lock;
    struct bz_ready_entry *head, **tail; /* guarded by lock, like the next three */
    size_t queued;
    bool is_closed;
    blitz_waker parent; /* empty: the parent is going to poll, or the list is closed */
    /* The rest belongs to the parent's poll. */
    size_t batch;               /* entries that this poll may still take */
    const blitz_waker *poll;    /* the waker of the running poll; NULL: none runs */
    struct bz_ready_heap *heap; /* NULL: no child has named a time */
};

void bz_readylist_init(struct bz_readylist *r, const blitz_waker *parent,
                       void (*free_list)(struct bz_readylist *),
                       void (*free_entry)(struct bz_ready_entry *));

/* A loose entry holds a reference to its list, and has one reference, which unref gives up. */
void bz_ready_entry_init(struct bz_ready_entry *e, struct bz_readylist *r);
void bz_ready_entry_unref(struct bz_ready_entry *e);

/* The list of `count` entries in one block, and the number of an entry. NULL: no memory. */
struct bz_readylist *bz_readylist_new(size_t count, const blitz_waker *parent);
struct bz_ready_entry *bz_readylist_at(struct bz_readylist *r, size_t i);
size_t bz_readylist_index(const struct bz_ready_entry *e);

/* The waker of a child, borrowed. */
blitz_waker bz_readylist_waker(struct bz_ready_entry *e);

/* Queue an entry and wake the parent, as its waker does. Call from any thread that holds a reference. */
void bz_readylist_push(struct bz_ready_entry *e);

/* Keep the parent's waker for children that are woken from now on, and open the batch of those that
 * were woken before. */
void bz_readylist_begin(struct bz_readylist *r, const blitz_waker *parent);

/* Take the next entry of the batch; a loose entry comes with a reference. NULL: the batch is
 * empty. */
struct bz_ready_entry *bz_readylist_next(struct bz_readylist *r);

/* End a poll in which the parent returns "pending". */
void bz_readylist_end(struct bz_readylist *r, const blitz_waker *parent);

/* Drop the parent's waker: the parent does not wait, for now. */
void bz_readylist_pause(struct bz_readylist *r);

/* Drop the parent's waker and the owner's reference. */
void bz_readylist_close(struct bz_readylist *r);

/* Forget the time that this child has named, if any: it is polled no more. */
void bz_readylist_forget(struct bz_ready_entry *e);

/* True if w is the waker of a child whose parent's waker is one of the runtime's own. */
bool bz_readylist_is_ours(const blitz_waker *w);

/* For bz_waker_by(). False: w is no child's waker. Else *parent is the waker of the running
 * poll. */
BZ_MUST_USE bool bz_readylist_by(const blitz_waker *w, uint64_t when, const blitz_waker **parent);

#endif
