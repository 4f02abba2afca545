/*
 * far.c - messages to actors of other nodes leave this folder here.
 *
 * An id with a node other than 0 is found by no lookup of this folder: bz_actor_find() returns NULL for it. Only then do the calls look at
 * the node. So a send within the process pays nothing for the others.
 *
 * The functions of src/node are behind one pointer, which the first node of the process sets. They are constant and stay for the life
 * of the process, so a caller needs no lock. Rejected: a pointer for each runtime. An id of another node names no runtime, and plain
 * threads send as well.
 *
 * [N] set: far release -> push, send: far acquire   what the node has prepared before it set the functions
 */
#include "actor/far.h"

#include <errno.h>

#include "wait/waker.h"

static bz_atomic(const struct bz_far_ops *) far;

void bz_far_set(const struct bz_far_ops *ops)
{
    bz_store_release(&far, ops); /* [N] */
}

int bz_far_begin(struct bz_far_sending *s, blitz_actor_id to, uint32_t what, const void *data,
                 size_t size, const blitz_cargo *cargo)
{
    const struct bz_far_ops *ops = bz_load_acquire(&far); /* [N] */
    return ops != NULL ? ops->begin(s, to, what, data, size, cargo) : -ESRCH;
}

/* The functions, after a `begin` that has returned 0: they are there. */
static const struct bz_far_ops *begun(void)
{
    return bz_load_acquire(&far); /* [N] */
}

bool bz_far_poll(struct bz_far_sending *s, const blitz_waker *waker, int *rc)
{
    do {
        if (!bz_request_poll(&s->request, waker))
            return false;
        *rc = begun()->next(s);
    } while (*rc == BZ_MET_WAIT);
    return true;
}

void bz_far_end_send(struct bz_far_sending *s)
{
    begun()->end(s);
}

int bz_far_wait(struct bz_far_sending *s, blitz_deadline until)
{
    int rc;
    bz_waiter_init(&s->request.waiter, NULL, BZ_WAIT_WOKEN);
    do {
        rc = bz_request_wait(&s->request, bz_os_here(), until);
        if (rc >= 0)
            rc = begun()->next(s);
    } while (rc == BZ_MET_WAIT);
    return rc;
}

int bz_far_send(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                const blitz_cargo *cargo, blitz_deadline until)
{
    struct bz_far_sending s;
    int rc = bz_far_begin(&s, to, what, data, size, cargo);
    if (rc != 0)
        return rc;
    rc = bz_far_wait(&s, until);
    bz_far_end_send(&s);
    return rc;
}

static int try_send(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                    const blitz_cargo *cargo)
{
    struct bz_far_sending s;
    int rc = bz_far_begin(&s, to, what, data, size, cargo);
    if (rc != 0)
        return rc;
    rc = begun()->try_now(&s);
    bz_far_end_send(&s);
    return rc;
}

int bz_far_begin_call(struct bz_far_call *c, blitz_actor_id to, uint32_t what, const void *data,
                      size_t size, const blitz_cargo *cargo)
{
    const struct bz_far_ops *ops = bz_load_acquire(&far); /* [N] */
    return ops != NULL ? ops->begin_call(c, to, what, data, size, cargo) : -ESRCH;
}

int bz_far_end_call(struct bz_far_call *c, blitz_actor_id to, uint32_t what, int rc, void *reply,
                    size_t reply_size, blitz_arrival *got)
{
    return begun()->end_call(c, to, what, rc, reply, reply_size, got);
}

int bz_far_begin_join(struct bz_far_call *c, blitz_actor_id to)
{
    const struct bz_far_ops *ops = bz_load_acquire(&far); /* [N] */
    return ops != NULL ? ops->begin_join(c, to) : -ESRCH;
}

int bz_far_end_join(struct bz_far_call *c, blitz_actor_id to, int rc, blitz_exit_reason *why)
{
    return begun()->end_join(c, to, rc, why);
}

int bz_far_push(blitz_actor_id to, uint32_t what, const void *data, size_t size,
                const blitz_cargo *cargo, blitz_reply_to reply, enum bz_send_how how)
{
    if (reply.generation != 0)
        return -EOPNOTSUPP;
    return how == BZ_SEND_WAITS ? BZ_MET_WAIT : try_send(to, what, data, size, cargo);
}

int bz_far_relate(enum bz_far_relation what, blitz_actor_id me, blitz_actor_id other, uint64_t ref)
{
    const struct bz_far_ops *ops = bz_load_acquire(&far); /* [N] */
    return ops != NULL ? ops->relate(what, me, other, ref) : -ESRCH;
}

void bz_far_ended(blitz_actor_id me, blitz_actor_id other, const blitz_exit_reason *why)
{
    begun()->ended(me, other, why); /* a link to another node was made */
}

int bz_far_end(blitz_actor_id me, blitz_actor_id other, const blitz_exit_reason *why)
{
    const struct bz_far_ops *ops = bz_load_acquire(&far); /* [N] */
    return ops != NULL ? ops->exit(me, other, why) : -ESRCH;
}
