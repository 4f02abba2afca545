/*
 * list.c - the functions too long for list.h: cutting a chain, and the validators.
 *
 * The essay and the invariants are in list.h.
 */
#include "base/list.h"

size_t bz_list_check(const struct bz_list *head)
{
    size_t count = 0;
    const struct bz_list *node = head;
    do {
        BZ_CHECK(node->next != NULL, "list %p: node %p has no next", (void *)head, (void *)node);
        BZ_CHECK(node->next->prev == node, "list %p: %p -> %p, but back to %p", (void *)head,
                 (void *)node, (void *)node->next, (void *)node->next->prev); /* I1 */
        node = node->next;
        count++;
    } while (node != head);
    return count - 1; /* the loop also counted the head */
}

void bz_chain_check(const struct bz_chain *c)
{
    size_t count = 0;
    const struct bz_link *last = NULL;
    for (const struct bz_link *l = c->first; l != NULL; l = l->next) {
        last = l;
        count++;
        BZ_CHECK(count <= c->count, "chain %p: more than its %zu links", (const void *)c, c->count);
    }
    BZ_CHECK(count == c->count, "chain %p: %zu links, says %zu", (const void *)c, count, c->count);
    BZ_CHECK(last == c->last, "chain %p: ends at %p, says %p", (const void *)c, (const void *)last,
             (const void *)c->last);
}
