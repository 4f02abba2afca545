/*
 * change.c - waiting until the connection of a peer has changed.
 *
 * A waiter looks at the peer under its lock, and enters a list under the same lock. A change takes the whole list. So no change is missed,
 * however many wait. Rejected: one event for all, which each resets before it looks. A waiter that has looked would lose its event to the
 * reset of another.
 *
 * I1  A waiter in the list is on the stack of its caller, which leaves the list itself, or has been taken and waits until it is set.
 */
#include "node/node.h"

struct waiter {
    struct bz_list all; /* guarded by the lock of the peer */
    bool is_taken;      /* likewise */
    blitz_event event;
};

/* The wait has ended by itself. I1 */
static void leave(struct bz_peer *p, struct waiter *w)
{
    bz_peer_lock(p);
    bool is_taken = w->is_taken;
    if (!is_taken)
        bz_list_remove(&w->all);
    bz_peer_unlock(p);
    if (!is_taken)
        return;
    blitz_shield();
    (void)!blitz_event_wait(&w->event, BLITZ_FOREVER);
    blitz_unshield();
}

int bz_peer_wait(struct bz_peer *p, bool (*is_done)(struct bz_peer *p, void *ctx), void *ctx,
                 blitz_deadline until)
{
    for (;;) {
        struct waiter w = {.is_taken = false};
        bz_list_init(&w.all);
        blitz_event_init(&w.event);
        bz_peer_lock(p);
        bool is_over = is_done(p, ctx);
        if (!is_over)
            bz_list_push_back(&p->changes, &w.all);
        bz_peer_unlock(p);
        if (is_over)
            return 0;
        int rc = blitz_event_wait(&w.event, until);
        if (rc != 0) {
            leave(p, &w);
            return rc;
        }
    }
}

void bz_peer_changed(struct bz_peer *p)
{
    struct bz_list taken;
    bz_list_init(&taken);
    bz_peer_lock(p);
    bz_list_splice(&taken, &p->changes);
    for (struct bz_list *l = taken.next; l != &taken; l = l->next)
        BZ_CONTAINER_OF(l, struct waiter, all)->is_taken = true;
    bz_peer_unlock(p);
    while (!bz_list_is_empty(&taken)) {
        struct waiter *w = BZ_CONTAINER_OF(bz_list_take_front(&taken), struct waiter, all);
        blitz_event_set(&w->event); /* its memory is gone */
    }
}
