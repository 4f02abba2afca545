/*
 * text.c - ranges of code that a signal handler looks at while others change them.
 *
 * The handler cannot wait: it may have interrupted the thread that changes them. So it reads
 * between two looks at a version, and if that was odd or has changed it says no, which is always a
 * right answer: the monitor will ask again. A writer makes the version odd, changes one range, and
 * makes it even. A range is used again when it was removed, so a start and an end that do not belong
 * together could be seen; the version is what tells.
 *
 * Rejected: ranges that are never used again (a program that loads and unloads a library again and
 * again would run out of them); a list in fresh memory (when is the old one free?).
 *
 * I1  Only who holds the lock writes.
 *
 * [A] change: version (even) release -> has: version acquire   a version's ranges are there
 * [B] change: start and end release -> has: start and end acquire   who reads a range in the middle
 *     of a change sees at its second look that the version has moved on
 */
#include "sched/text.h"

#include <errno.h>

/* Under the lock. */
static void change(struct bz_text *t, struct bz_text_range *r, uintptr_t start, uintptr_t end)
{
    uint32_t version = bz_load_relaxed(&t->version); /* relaxed: ours, I1 */
    bz_store_relaxed(&t->version, version + 1);      /* relaxed: [B] publishes it */
    bz_store_release(&r->start, start);              /* [B] */
    bz_store_release(&r->end, end);                  /* [B] */
    bz_store_release(&t->version, version + 2);      /* [A] */
}

/* Under the lock: that very range, or NULL. 0, 0 is one that is free. */
static struct bz_text_range *find(struct bz_text *t, uintptr_t start, uintptr_t end)
{
    for (unsigned i = 0; i < BZ_TEXT_RANGES; i++) {
        struct bz_text_range *r = &t->range[i];
        /* relaxed: ours, I1 */
        if (bz_load_relaxed(&r->start) == start && bz_load_relaxed(&r->end) == end)
            return r;
    }
    return NULL;
}

int bz_text_add(struct bz_text *t, const struct bz_os *os, uintptr_t start, uintptr_t end)
{
    bz_lock_take(&t->lock, os);
    struct bz_text_range *r = find(t, 0, 0);
    if (r != NULL)
        change(t, r, start, end);
    bz_lock_drop(&t->lock, os);
    return r != NULL ? 0 : -ENOSPC;
}

int bz_text_remove(struct bz_text *t, const struct bz_os *os, uintptr_t start, uintptr_t end)
{
    bz_lock_take(&t->lock, os);
    struct bz_text_range *r = find(t, start, end);
    if (r != NULL)
        change(t, r, 0, 0);
    bz_lock_drop(&t->lock, os);
    return r != NULL ? 0 : -ENOENT;
}

bool bz_text_has(struct bz_text *t, uintptr_t pc)
{
    uint32_t version = bz_load_acquire(&t->version); /* [A] */
    bool is_in = false;
    for (unsigned i = 0; i < BZ_TEXT_RANGES && !is_in; i++) {
        uintptr_t start = bz_load_acquire(&t->range[i].start); /* [B] */
        uintptr_t end = bz_load_acquire(&t->range[i].end);     /* [B] */
        is_in = start <= pc && pc < end;
    }
    return is_in && version % 2 == 0 &&
           bz_load_relaxed(&t->version) == version; /* relaxed: after [B] */
}
