/*
 * invoke.c - a few calls at the same time.
 *
 * All but the first are forked, the last one first, so that the joins come in the order of the calls
 * and each finds its job in front. The caller makes the first call itself: it has the arguments in
 * its cache.
 *
 * I1  When it returns, every call has been made or given up; none is made after that.
 */
#include <errno.h>

#include "blitz/fork.h"
#include "blitz/task.h"

struct invocation {
    const blitz_call *calls;
    size_t count;
};

static int call_one(void *arg)
{
    const blitz_call *call = arg;
    return blitz_is_cancelled() ? -ECANCELED : call->fn(call->arg);
}

static int call_all(void *arg)
{
    const struct invocation *all = arg;
    blitz_job job[BLITZ_INVOKE_MAX];
    for (size_t i = all->count; i-- > 1;)
        blitz_fork(&job[i], call_one, (void *)(uintptr_t)&all->calls[i]);
    int result = call_one((void *)(uintptr_t)&all->calls[0]);
    for (size_t i = 1; i < all->count; i++) {
        int other = blitz_join(&job[i]);
        if (result == 0)
            result = other;
    }
    return result; /* I1 */
}

int blitz_invoke(const blitz_call *calls, size_t count)
{
    struct invocation all = {calls, count};
    if (count > BLITZ_INVOKE_MAX)
        return -EINVAL;
    for (size_t i = 0; i < count; i++)
        if (calls[i].fn == NULL)
            return -EINVAL;
    return count == 0 ? 0 : blitz_par_call_(call_all, &all);
}
