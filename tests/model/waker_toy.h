/* waker_toy.h - wakers, as in await.c, for models. */
#ifndef MODEL_WAKER_TOY_H
#define MODEL_WAKER_TOY_H

#include "wait/wait.h"
#include "wait/waker.h"

blitz_waker blitz_waker_clone(const blitz_waker *w)
{
    if (w->ops != NULL)
        w->ops->clone(w->data);
    return *w;
}

void blitz_waker_wake(blitz_waker *w)
{
    blitz_waker taken = *w;
    *w = (blitz_waker){NULL, NULL};
    if (taken.ops != NULL)
        taken.ops->wake(taken.data);
}

void blitz_waker_drop(blitz_waker *w)
{
    if (w->ops != NULL)
        w->ops->drop(w->data);
    *w = (blitz_waker){NULL, NULL};
}

/* Its clone is cheap and calls nothing: it is made under the lock of the primitive. */
bool bz_waker_is_ours(const blitz_waker *w)
{
    (void)w;
    return true;
}

#endif
