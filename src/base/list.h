/*
 * list.h - intrusive lists: the link is a member of the listed object.
 *
 * Two shapes. bz_list is doubly linked and circular through a head, so a node can be unlinked in
 * O(1) without its list: cancelled waiters, full slabs. bz_chain is singly linked with first, last
 * and a count, so a batch is counted and appended in O(1): the injector and the inboxes use chains.
 * Neither allocates or locks.
 *
 * I1  In a bz_list, n->next->prev == n and n->prev->next == n for every node and the head.
 * I2  A node that is on no list points at itself, so bz_list_remove may be called twice and
 *     bz_list_is_linked can tell.
 * I3  A chain of count 0 has first == last == NULL; else last is reached from first in count - 1
 *     steps and last->next is NULL.
 */
#ifndef BZ_LIST_H
#define BZ_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "base/compiler.h"

struct bz_list {
    struct bz_list *next, *prev;
};

static inline void bz_list_init(struct bz_list *l)
{
    l->next = l;
    l->prev = l;
}

static inline bool bz_list_is_empty(const struct bz_list *head)
{
    return head->next == head;
}

static inline bool bz_list_is_linked(const struct bz_list *node)
{
    return node->next != node;
}

static inline void bz_list_insert_after(struct bz_list *at, struct bz_list *node)
{
    BZ_ASSERT(!bz_list_is_linked(node));
    node->next = at->next;
    node->prev = at;
    at->next->prev = node;
    at->next = node;
}

static inline void bz_list_push_front(struct bz_list *head, struct bz_list *node)
{
    bz_list_insert_after(head, node);
}

static inline void bz_list_push_back(struct bz_list *head, struct bz_list *node)
{
    bz_list_insert_after(head->prev, node);
}

static inline void bz_list_remove(struct bz_list *node)
{
    node->next->prev = node->prev; /* I1 */
    node->prev->next = node->next;
    bz_list_init(node); /* I2 */
}

/* The first node, or NULL. It stays where it is. */
static inline struct bz_list *bz_list_first(const struct bz_list *head)
{
    return bz_list_is_empty(head) ? NULL : head->next;
}

static inline struct bz_list *bz_list_last(const struct bz_list *head)
{
    return bz_list_is_empty(head) ? NULL : head->prev;
}

/* Unlink and return the first node, or NULL. */
static inline struct bz_list *bz_list_take_front(struct bz_list *head)
{
    struct bz_list *node = bz_list_first(head);
    if (node != NULL)
        bz_list_remove(node);
    return node;
}

/* Move all of `from` to the end of `to`; `from` is empty afterwards. */
static inline void bz_list_splice(struct bz_list *to, struct bz_list *from)
{
    if (bz_list_is_empty(from))
        return;
    from->next->prev = to->prev;
    from->prev->next = to;
    to->prev->next = from->next;
    to->prev = from->prev;
    bz_list_init(from);
}

/* Iterate. In the _SAFE form the body may remove the current node. */
#define BZ_LIST_FOR_EACH(node, head) \
    for (struct bz_list *node = (head)->next; node != (head); node = node->next)
#define BZ_LIST_FOR_EACH_SAFE(node, head)                                                 \
    for (struct bz_list *node = (head)->next, *after_##node = node->next; node != (head); \
         node = after_##node, after_##node = node->next)

/* Check I1 by a walk. Return the number of nodes; abort with a message if it is broken. */
size_t bz_list_check(const struct bz_list *head);

/* ---- chains ---- */

struct bz_link {
    struct bz_link *next;
};

struct bz_chain {
    struct bz_link *first, *last;
    size_t count;
};

static inline void bz_chain_init(struct bz_chain *c)
{
    *c = (struct bz_chain){NULL, NULL, 0};
}

static inline bool bz_chain_is_empty(const struct bz_chain *c)
{
    return c->count == 0;
}

static inline void bz_chain_push_back(struct bz_chain *c, struct bz_link *link)
{
    link->next = NULL;
    if (c->last != NULL)
        c->last->next = link;
    else
        c->first = link;
    c->last = link;
    c->count++;
}

static inline void bz_chain_push_front(struct bz_chain *c, struct bz_link *link)
{
    link->next = c->first;
    if (c->first == NULL)
        c->last = link;
    c->first = link;
    c->count++;
}

/* Unlink and return the first, or NULL. */
static inline struct bz_link *bz_chain_take_front(struct bz_chain *c)
{
    struct bz_link *link = c->first;
    if (link == NULL)
        return NULL;
    c->first = link->next;
    if (c->first == NULL)
        c->last = NULL;
    c->count--;
    return link;
}

/* Move all of `from` to the end of `to`; `from` is empty afterwards. */
static inline void bz_chain_append(struct bz_chain *to, struct bz_chain *from)
{
    if (from->count == 0)
        return;
    if (to->last != NULL)
        to->last->next = from->first;
    else
        to->first = from->first;
    to->last = from->last;
    to->count += from->count;
    bz_chain_init(from);
}

/* Check I3 by a walk. Abort with a message if it is broken. */
void bz_chain_check(const struct bz_chain *c);

#endif
