/*
 * tasks.h - where task headers live, how they are counted, and how all of them are found.
 *
 * Headers are slab objects of a few sizes. Each proc has slabs of its own and allocates without an
 * atomic operation; threads without a proc share some under a lock. There is no list of tasks: to
 * find them all, a walk goes over the slabs and reads each state word. Its references say
 * whether the slot holds a live header. tasks.c has the design.
 */
#ifndef BZ_TASKS_H
#define BZ_TASKS_H

#include <stddef.h>
#include <stdint.h>

#include "arch/own.h"
#include "base/slab.h"
#include "life/slots.h"
#include "os/lock.h"
#include "task/live.h"
#include "task/task.h"

enum {
    BZ_TASK_CLASSES = 5,
    BZ_TASK_ALIGN = 64,      /* of every header: on most machines no two share a line */
    BZ_TASK_BYTES_MAX = 512, /* the largest class; larger state is allocated elsewhere */
    BZ_LETTER_KINDS = 2
};

/*
 * Headers ready for a spawn, of fibers that have just ended on a proc or made in advance (fiber.c): constant fields are
 * set, the others are as in a fresh task. Most tasks are spawned where others end, so most spawns find one here.
 * None in builds that look for uses of freed memory.
 */
#if defined(BZ_DEBUG) || defined(BZ_WATCH)
enum { BZ_STASH_MAX = 0 };
#else
enum { BZ_STASH_MAX = 256 }; /* more than the tombstones that a full ring drops at once */
#endif
struct bz_task_stash {
    unsigned count;
    unsigned max;  /* constant: 0 disables the fast spawn: a limit on tasks, the plain form */
    unsigned fill; /* how many to make ready when there is none: more each time, until a rest */
    struct bz_task *ready[BZ_STASH_MAX + 1]; /* + 1: no array is empty */
};

/*
 * Letters (letters.h) that were freed on a proc a moment ago, of any owner: most messages are sent where others were handled,
 * and their memory is in the cache. As the stash of headers, none in builds that look for uses of freed memory.
 */
enum { BZ_LETTERS_KEPT = 4 * BZ_STASH_MAX };
struct bz_letter_stash {
    struct bz_kept_letter {
        struct bz_kept_letter *next;
    } * first; /* the last that was freed */
    unsigned count;
    unsigned max; /* constant: 0 in the shared home */
};

struct bz_ticket;

/* A proc's slabs and counts; and those that threads without a proc share, under outside_lock. */
struct bz_task_home {
    struct bz_task_stash stash; /* a proc's; fibers of class 0 */
    struct bz_slab slab[BZ_TASK_CLASSES];
    struct bz_slab letter[BZ_LETTER_KINDS]; /* messages: letters.h */
    struct bz_letter_stash kept[BZ_LETTER_KINDS];
    struct bz_slot_home slots; /* free slots of actors */
    struct bz_ticket *tickets; /* free ones: actor/ticket.c */
    uint32_t ticket_count;
    struct bz_live_count live; /* of a proc; the shared count is in bz_live */
    uint64_t id_next, id_end;  /* ids to give out */
};

struct bz_machine;

struct bz_tasks {
    struct bz_slab_class kind[BZ_TASK_CLASSES];        /* constant */
    struct bz_slab_class letter_kind[BZ_LETTER_KINDS]; /* constant */
    struct bz_slots slots;                             /* headers of actors */
    uint64_t max;                                      /* constant; 0: any number of tasks */
    bz_atomic(uint32_t) is_short; /* a stack was refused: spawns reserve theirs. machine.c */
    struct bz_live live;
    struct bz_lock outside_lock;
    struct bz_task_home outside;           /* outside_lock guards what is private in a proc's */
    BZ_OWN_LINE bz_atomic(uint64_t) alive; /* number of tasks, if there is a limit */
    bz_atomic(uint64_t) left;              /* headers that outlive the runtime: tasks.c [L] */
};

/* Called for a task that is referenced; it may have ended. The walk holds a reference. */
typedef void bz_tasks_fn(struct bz_task *t, void *ctx);

/* Initialize the runtime's part; its procs exist, and nothing runs. */
void bz_tasks_init(struct bz_runtime *rt, uint64_t tasks_max);

/* The number of headers in use when no task lives and no machine runs: handles or wakers hold
 * them. */
uint64_t bz_tasks_out(struct bz_runtime *rt);

/*
 * The runtime has ended, its machines are gone, and its user gives it up. Handles and wakers may still hold
 * headers; the last of them calls bz_runtime_release().
 * Returns: true if there are none: the caller releases.
 */
BZ_MUST_USE bool bz_tasks_close(struct bz_runtime *rt);
/* Free the memory of the slabs. */
void bz_tasks_fini(struct bz_runtime *rt);

/*
 * Allocate a header of `bytes` (to BZ_TASK_BYTES_MAX) in all, with its id set and no references in its word:
 * no walk finds it before bz_word_init. NULL if there is no memory. Any thread.
 */
struct bz_task *bz_task_alloc(struct bz_runtime *rt, size_t bytes);

/* Free a header: its last reference is gone, or it never had one. Any thread, also when the runtime
 * is gone. */
void bz_task_free(struct bz_task *t);

/* The slow half of a new id: get another block. */
void bz_task_ids_refill(struct bz_task_home *h);

/* A new id for a task in a slot. m is the caller's machine, with a proc, or NULL. In the runtime. */
uint64_t bz_task_id_next(struct bz_runtime *rt, struct bz_machine *m);

/* An object that bz_tasks_close() has counted was freed. If it was the last, the runtime is gone on return. */
void bz_task_left(struct bz_runtime *rt);

/* Keep the memory of a runtime that has not ended, as a header in use does, until bz_task_left(). Any thread. */
void bz_task_stay(struct bz_runtime *rt);

/* Take a ready-made fiber header with a new id, or NULL: then bz_task_alloc. The proc's machine
 * only. */
static BZ_ALWAYS_INLINE struct bz_task *bz_task_unstash(struct bz_task_home *h)
{
    struct bz_task_stash *s = &h->stash;
    unsigned count = s->count;
    uint64_t id = h->id_next;
    if (BZ_UNLIKELY(count == 0))
        return NULL;
    if (BZ_UNLIKELY(id == h->id_end)) {
        bz_task_ids_refill(h);
        id = h->id_next;
    }
    struct bz_task *t = s->ready[count - 1];
    bz_own_add_plain(&s->count, -1);
    bz_own_add_plain(&h->id_next, 1);
    t->id = id;
    return t;
}

/* A letter of that kind; NULL if there is no memory. The proc's machine only. */
static BZ_ALWAYS_INLINE void *bz_letter_take(struct bz_task_home *h, unsigned kind)
{
    struct bz_letter_stash *s = &h->kept[kind];
    struct bz_kept_letter *l = s->first;
    if (BZ_UNLIKELY(l == NULL))
        return bz_slab_alloc(&h->letter[kind]);
    s->first = l->next;
    s->count--;
    return l;
}

/* Keep a letter of that kind, or free it. The proc's machine only. */
static BZ_ALWAYS_INLINE void bz_letter_give(struct bz_task_home *h, unsigned kind, void *letter)
{
    struct bz_letter_stash *s = &h->kept[kind];
    struct bz_kept_letter *l = letter;
    if (BZ_UNLIKELY(s->count >= s->max)) {
        bz_slab_free(&h->letter[kind], letter);
        return;
    }
    l->next = s->first;
    s->first = l;
    s->count++;
}

/* Return ready headers to their slabs until only `keep` are left. The proc's machine only. */
void bz_tasks_return(struct bz_task_home *h, unsigned keep);

/* Keep a fiber's header that has no references any more. False if there is no room. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_task_stash(struct bz_task_home *h, struct bz_task *t)
{
    struct bz_task_stash *s = &h->stash;
    if (s->count >= s->max)
        return false;
    s->ready[s->count++] = t;
    return true;
}

/*
 * Count a task in, after bz_word_init and before it is queued.
 * Returns: 0, -ESHUTDOWN (the runtime is stopping), -EAGAIN (the limit on tasks). On error the caller
 *          drops the references it made.
 */
BZ_MUST_USE int bz_task_enlist(struct bz_task *t);

/* Count a task of the runtime out: it has ended; its header may be gone. Between bz_enter and
 * bz_leave. */
void bz_task_strike(struct bz_runtime *rt);

/* Call fn for every task that is referenced during the walk; the walk may miss a task that is
 * spawned meanwhile. Any thread; fn may do anything that the caller may, except start a walk. */
void bz_tasks_each(struct bz_runtime *rt, bz_tasks_fn *fn, void *ctx);

/* The machine is about to sleep or to leave: return remote frees to their owners, and take in those
 * that others have sent. */
void bz_tasks_rest(struct bz_task_home *home);

/* Bytes of the slabs, free objects included; approximate while something runs. */
uint64_t bz_tasks_bytes(struct bz_runtime *rt);

#endif
