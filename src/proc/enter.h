/*
 * enter.h - the door to the private state of a proc: enter, leave, count.
 */
#ifndef BZ_PROC_ENTER_H
#define BZ_PROC_ENTER_H

#include "proc/state.h"

/* bz_enter for the current machine. True if it has a proc. */
BZ_MUST_USE static BZ_ALWAYS_INLINE bool bz_enter_on(struct bz_machine *m, uint32_t *was)
{
    if (BZ_UNLIKELY(!bz_retake_enter(&m->taken, was)))
        bz_proc_lost(m);
    return BZ_LIKELY(m->proc != NULL);
}

/* bz_leave for a machine that is still current: the caller has not suspended since bz_enter_on. */
static BZ_ALWAYS_INLINE void bz_leave_on(struct bz_machine *m, uint32_t was)
{
    bz_retake_leave(&m->taken, was);
}

/*
 * Begin to access the private state of the proc: retake.h. *was is for bz_leave. May be nested.
 * Returns: the current machine, if it has a proc. NULL: the caller is a plain thread, or a machine that has
 *          lost its proc; it acts as a plain thread until bz_leave.
 */
BZ_MUST_USE static BZ_ALWAYS_INLINE struct bz_machine *bz_enter(uint32_t *was)
{
    struct bz_machine *m = bz_machine_self();
    if (BZ_UNLIKELY(m == NULL)) {
        *was = BZ_IN_USER;
        return NULL;
    }
    return bz_enter_on(m, was) ? m : NULL;
}

/* The same for a caller that is a machine, with a proc or without. */
static BZ_ALWAYS_INLINE struct bz_machine *bz_enter_as(uint32_t *was)
{
    (void)!bz_enter(was);
    return bz_machine_self();
}

/* End bz_enter, on the current machine: the task may have suspended and moved since. */
static BZ_ALWAYS_INLINE void bz_leave(uint32_t was)
{
    struct bz_machine *m = bz_machine_self();
    if (BZ_LIKELY(m != NULL))
        bz_retake_leave(&m->taken, was);
}

/* The current machine, if it belongs to that runtime and has a proc; else NULL. In the runtime. */
static BZ_ALWAYS_INLINE struct bz_machine *bz_machine_in(const struct bz_runtime *rt)
{
    struct bz_machine *m = bz_machine_self();
    if (m == NULL || m->rt != rt || m->proc == NULL)
        return NULL;
    BZ_ASSERT(bz_retake_where(&m->taken) == BZ_IN_RUNTIME);
    return m;
}

/* Count an event of the machine, in the runtime. */
#define bz_count_many_here(m, name, n)                         \
    do {                                                       \
        if (BZ_LIKELY((m)->proc != NULL))                      \
            bz_count_many(&(m)->proc->counters, name, n);      \
        else                                                   \
            bz_count_many_shared(&(m)->rt->counters, name, n); \
    } while (0)

#define bz_count_here(m, name) bz_count_many_here(m, name, 1)

/* True if the runtime has ended and machines leave. */
static inline bool bz_is_ending(struct bz_machine *m)
{
    return bz_load_acquire(&m->rt->is_ending) != 0; /* runtime.c [A] */
}

typedef void bz_drop_fn(void *value, void *ctx);
/* callout.c: call a user function that does not suspend, from the runtime or from user code: retake.h. */
void bz_call_out(void (*fn)(void *), void *arg);
void bz_drop_out(bz_drop_fn *drop, void *value, void *ctx);

#endif
