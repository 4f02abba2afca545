/*
 * overflow.c - find the fiber of a faulting address.
 *
 * The watched pools are a list under a lock, and so are the slabs of each. A handler cannot wait
 * for a lock that its own thread may hold (an overflow inside the pool's code). So it tries for
 * some time and then gives up: the fault still ends the process, without an explanation. Tasks
 * share stacks, so a stack does not know its task; the scheduler tells which task the faulting
 * thread runs. Rejected: a lock-free index of all stacks, because this path runs once in the life
 * of a process.
 */
#include "task/overflow.h"

#include <errno.h>
#include <stdio.h>

#include "base/check.h"

static struct bz_lock watch_lock = BZ_LOCK_INIT;
static struct bz_list watched = {&watched, &watched}; /* guarded by watch_lock */
static bz_atomic(bz_overflow_teller *) teller;        /* NULL: only names of stacks are known */

void bz_overflow_tell(bz_overflow_teller *fn)
{
    bz_store_relaxed(&teller, fn); /* relaxed: a constant */
}

/* Name the stack: by the task that this thread runs, or by the name given to the stack. */
static void name_of(const struct bz_stack *s, char *out, size_t room)
{
    bz_overflow_teller *tell = bz_load_relaxed(&teller); /* relaxed: a constant, once set */
    if (s->name[0] != '\0')
        snprintf(out, room, "fiber \"%s\"", s->name);
    else if (tell == NULL || !tell(out, room))
        snprintf(out, room, "fiber \"(unnamed)\"");
}

static size_t describe(const struct bz_stack *s, size_t nominal, const void *address, char *text,
                       size_t room)
{
    char name[128];
    name_of(s, name, sizeof name);
    int length = snprintf(text, room,
                          "blitz: stack overflow in %s: address %p is in the guard of its stack, "
                          "%zu KiB at %p (stack_bytes and BLITZ_STACK set the size)\n",
                          name, address, nominal / 1024, (void *)s->low);
    return length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
}

/* Under watch_lock. Return 0 if no watched pool has a guard there. */
static size_t explain_locked(const void *address, char *text, size_t room)
{
    BZ_LIST_FOR_EACH (node, &watched) {
        struct bz_stack_pool *p = BZ_CONTAINER_OF(node, struct bz_stack_pool, watched);
        char *guard;
        struct bz_stack *s = bz_stack_pool_find(p, address, &guard);
        if (s != NULL && s->guard != BZ_STACK_GUARD_CANARY && (const char *)address < s->low)
            return describe(s, p->kind[s->class].nominal_bytes, address, text, room);
    }
    return 0;
}

static size_t explain(const void *address, char *text, size_t room)
{
    size_t length = 0;
    for (int round = 0; round < 1000 && length == 0; round++) {
        if (!bz_lock_try(&watch_lock))
            continue;
        length = explain_locked(address, text, room);
        bz_lock_drop(&watch_lock, &bz_os_system);
        break;
    }
    return length;
}

int bz_overflow_watch(struct bz_stack_pool *p)
{
    int err = 0;
    bz_lock_take(&watch_lock, &bz_os_system);
    if (bz_list_is_linked(&p->watched))
        err = -EALREADY;
    else if (bz_list_is_empty(&watched))
        err = bz_segv_watch(explain);
    if (err == 0)
        bz_list_push_back(&watched, &p->watched);
    bz_lock_drop(&watch_lock, &bz_os_system);
    return err;
}

int bz_overflow_trap(bz_segv_trap_fn *trap)
{
    bz_lock_take(&watch_lock, &bz_os_system);
    int err = bz_segv_trap(trap);
    bz_lock_drop(&watch_lock, &bz_os_system);
    return err;
}

void bz_overflow_untrap(void)
{
    bz_lock_take(&watch_lock, &bz_os_system);
    bz_segv_untrap();
    bz_lock_drop(&watch_lock, &bz_os_system);
}

void bz_overflow_unwatch(struct bz_stack_pool *p)
{
    bz_lock_take(&watch_lock, &bz_os_system);
    BZ_CHECK(bz_list_is_linked(&p->watched), "pool %p is not watched", (void *)p);
    bz_list_remove(&p->watched);
    if (bz_list_is_empty(&watched))
        bz_segv_unwatch();
    bz_lock_drop(&watch_lock, &bz_os_system);
}
