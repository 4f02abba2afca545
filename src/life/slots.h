/*
 * slots.h - task headers that have a number, and memory that stays: actors.
 *
 * A slot is a task header with room behind it. It is found by its index in constant time, and its memory is never given
 * back while the runtime lives. So any thread may look at a slot whose task has ended long ago: it finds the same kind of
 * object there, free or in its next life. The user tells the lives apart (actor/mailbox.h has a generation).
 *
 * slots.c has the design.
 */
#ifndef BZ_SLOTS_H
#define BZ_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "os/lock.h"
#include "task/task.h"

/* The sizes of slots: a header, and so many bytes behind it. */
struct bz_runtime;

enum { BZ_SLOT_KINDS = 3, BZ_SLOT_SEGMENTS = 22, BZ_SLOT_KIND_BITS = 2 };
enum { BZ_SLOT_FIRST_BITS = 6, BZ_SLOT_FIRST = 1 << BZ_SLOT_FIRST_BITS };
enum {
    BZ_SLOT_KEEP = 64,
    BZ_SLOT_BATCH = 32
}; /* free slots of a proc, and how many move at once */

struct bz_slot_kind {
    bz_atomic(char *) segment[BZ_SLOT_SEGMENTS]; /* each is twice the size of the one before */
    size_t size;                                 /* of a slot; constant */
    bz_atomic(uint32_t) made; /* slots with a valid word; written under the lock */
    struct bz_task *free;     /* linked by `pointer`; guarded by the lock */
    uint32_t free_count;      /* likewise */
};

struct bz_slots {
    struct bz_lock lock;
    bool is_closed; /* guarded by lock: the runtime has ended, and each free counts: tasks.c [L] */
    struct bz_slot_kind kind[1 << BZ_SLOT_KIND_BITS]; /* those from BZ_SLOT_KINDS up have no slot */
    const struct bz_slot_ops *ops;                    /* set with `more`; guarded by lock */
    bz_atomic(void *) more; /* shared by the slots: ops->more_bytes; slots.c [M] */
};

struct bz_slot_ops {
    void (*make)(struct bz_task *t);    /* prepare a slot that was never used; its word is set */
    void (*reclaim)(struct bz_task *t); /* the runtime ends: free what a dead task still holds */
    size_t more_bytes;
    void (*begin)(struct bz_runtime *rt, void *more); /* with the first slot */
    void (*end)(struct bz_runtime *rt, void *more);   /* after the last reclaim */
    void (*fini)(struct bz_runtime *rt,
                 void *more); /* free the memory: no thread uses it any more */
};

/* The free slots of a proc. */
struct bz_slot_home {
    struct bz_task *free[BZ_SLOT_KINDS];
    uint32_t count[BZ_SLOT_KINDS];
};

/* The memory that all slots share; it is made by the first call. NULL: no memory. Any thread. */
void *bz_slots_more(struct bz_runtime *rt, const struct bz_slot_ops *ops);

void bz_slots_init(struct bz_slots *s);
void bz_slot_home_init(struct bz_slot_home *h);

/*
 * Take a free slot with at least `bytes` in all: the header and what follows. bz_slots_more() comes first.
 * Returns: NULL: no memory, or more than the largest kind has. The word has no references. Any thread.
 */
struct bz_task *bz_slot_alloc(struct bz_runtime *rt, size_t bytes);
/* Free a slot without references. Any thread, also when the runtime is gone. */
void bz_slot_free(struct bz_task *t);
/* The bytes of the largest kind. */
size_t bz_slot_bytes_max(void);

/* The segment of slot number `at` of its kind, and its place there. */
static BZ_ALWAYS_INLINE uint32_t bz_slot_segment(uint32_t at)
{
    return 31 - (uint32_t)__builtin_clz(at + BZ_SLOT_FIRST) - BZ_SLOT_FIRST_BITS;
}

static BZ_ALWAYS_INLINE size_t bz_slot_offset(uint32_t at, uint32_t segment)
{
    return at + BZ_SLOT_FIRST - (BZ_SLOT_FIRST << segment);
}

/* The slot with that index, used or free; NULL if there was never one. Any thread. */
static BZ_ALWAYS_INLINE struct bz_task *bz_slot_at(struct bz_slots *s, uint32_t index)
{
    struct bz_slot_kind *k = &s->kind[index % (1u << BZ_SLOT_KIND_BITS)];
    uint32_t at = index >> BZ_SLOT_KIND_BITS;
    if (BZ_UNLIKELY(at >= bz_load_acquire(&k->made))) /* slots.c [M] */
        return NULL;
    uint32_t segment = bz_slot_segment(at);
    char *first = bz_load_acquire(&k->segment[segment]); /* slots.c [S] */
    return (struct bz_task *)(void *)(first + bz_slot_offset(at, segment) * k->size);
}

/* Call fn for every slot that is referenced: as bz_tasks_each. */
void bz_slots_each(struct bz_slots *s, void (*fn)(struct bz_task *t, void *ctx), void *ctx);
/* Give a proc's free slots back. */
void bz_slots_rest(struct bz_slots *s, struct bz_slot_home *h, const struct bz_os *os);
/* Bytes of all slots that were made. */
uint64_t bz_slots_bytes(struct bz_slots *s);
/* The number of slots in use; all homes are empty. */
uint64_t bz_slots_out(struct bz_slots *s, const struct bz_os *os);
/* The runtime ends: reclaim dead slots, and count those in use. From here on each free counts as one of them. */
uint64_t bz_slots_close(struct bz_runtime *rt);
void bz_slots_fini(struct bz_runtime *rt);

#endif
