/*
 * letters.c - memory for messages.
 *
 * Two sizes, because most messages are a number or two: 64 bytes are one cache line for header and payload. The slabs, the letters
 * that a proc keeps, and their end are those of task headers: tasks.c.
 */
#include "life/letters.h"

#include "base/check.h"
#include "life/tasks.h"
#include "proc/enter.h"
#include "proc/state.h"

void *bz_letter_alloc(struct bz_runtime *rt, size_t bytes)
{
    unsigned kind = bytes > BZ_LETTER_SMALL;
    uint32_t was;
    void *letter;
    BZ_ASSERT(bytes <= BZ_LETTER_LARGE);
    (void)!bz_enter(&was);
    struct bz_machine *m = bz_machine_in(rt);
    if (BZ_LIKELY(m != NULL)) {
        letter = bz_letter_take(&m->proc->tasks, kind);
    } else {
        bz_lock_take(&rt->tasks.outside_lock, rt->os);
        letter = bz_slab_alloc(&rt->tasks.outside.letter[kind]);
        bz_lock_drop(&rt->tasks.outside_lock, rt->os);
    }
    bz_leave(was);
    return letter;
}

void bz_letter_free(struct bz_runtime *rt, void *letter)
{
    uint32_t was;
    (void)!bz_enter(&was);
    struct bz_machine *m = bz_machine_in(rt);
    if (BZ_LIKELY(m != NULL)) {
        size_t kind = (size_t)(bz_slab_kind(letter) - rt->tasks.letter_kind);
        bz_letter_give(&m->proc->tasks, (unsigned)kind, letter);
    } else if (!bz_slab_free_outside(letter)) {
        bz_task_left(rt);
    }
    bz_leave(was);
}
