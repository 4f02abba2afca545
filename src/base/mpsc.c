/*
 * mpsc.c - the validator of the intrusive queue; the queue itself is inline in mpsc.h.
 */
#include "base/mpsc.h"

#include "base/check.h"

size_t bz_mpsc_check(struct bz_mpsc *q)
{
    struct bz_mpsc_node *last = bz_load_relaxed(&q->last); /* relaxed: no push is in progress */
    struct bz_mpsc_node *node = &q->root;
    size_t count = 0;
    while (node != last) {
        struct bz_mpsc_node *next = bz_load_relaxed(&node->next); /* relaxed: as above */
        BZ_CHECK(next != NULL, "mpsc %p: node %p leads nowhere, last is %p", (void *)q,
                 (void *)node, (void *)last);                                 /* I1 */
        BZ_CHECK(next != &q->root, "mpsc %p: the root is inside", (void *)q); /* I1 */
        node = next;
        count++;
    }
    struct bz_mpsc_node *behind = bz_load_relaxed(&last->next); /* relaxed: as above */
    BZ_CHECK(behind == NULL, "mpsc %p: %p is behind the last", (void *)q, (void *)behind);
    return count;
}
