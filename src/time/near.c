/*
 * near.c - the near-heap: a pairing heap of timers.
 *
 * A slot of the wheel is a millisecond, and a sleep of 30 µs must not wait for its end. So the
 * timers of the current millisecond are in a heap ordered by their exact deadline. It is a pairing
 * heap: a tree in which each timer fires before its children, and the children are a list. One
 * comparison merges two heaps (the later root becomes a child of the earlier), so a push is O(1). A
 * take of the root merges its children in pairs, and then all, which is O(log n) amortized.
 * Rejected: a binary heap in an array, which must grow (and may fail to) or be bounded (but a
 *           hundred thousand sleeps may end in one millisecond). Also a sorted list, which is too
 *           slow for a hundred thousand timers under a lock.
 *
 * I1  A timer does not fire before its parent.
 * I2  kin.prev of a first child is the parent, of another the sibling before it, of the root NULL;
 *     kin.next is the sibling behind it or NULL.
 *
 * There is no recursion: a heap may be as deep as it has timers.
 */
#include "time/near.h"

/* Merge two heaps, either of which may be empty. Their roots have no siblings. */
static struct bz_wheel_timer *meld(struct bz_wheel_timer *a, struct bz_wheel_timer *b)
{
    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    struct bz_wheel_timer *up = bz_wheel_timer_before(b, a) ? b : a;
    struct bz_wheel_timer *down = up == a ? b : a;
    down->kin.next = up->child;
    down->kin.prev = up;
    if (up->child != NULL)
        up->child->kin.prev = down;
    up->child = down; /* I1, I2 */
    return up;
}

/* Cut the first off a list of siblings. */
static struct bz_wheel_timer *sibling_take(struct bz_wheel_timer **list)
{
    struct bz_wheel_timer *t = *list;
    if (t != NULL) {
        *list = t->kin.next;
        t->kin.next = t->kin.prev = NULL;
    }
    return t;
}

/* Merge a list of siblings into one heap: pairs from the front, then the pairs from the back. */
static struct bz_wheel_timer *meld_all(struct bz_wheel_timer *siblings)
{
    struct bz_wheel_timer *pairs = NULL, *all = NULL, *t;
    while ((t = sibling_take(&siblings)) != NULL) {
        t = meld(t, sibling_take(&siblings));
        t->kin.next = pairs;
        pairs = t;
    }
    while ((t = sibling_take(&pairs)) != NULL)
        all = meld(all, t);
    return all;
}

void bz_near_push(struct bz_wheel_timer **root, struct bz_wheel_timer *t)
{
    t->child = t->kin.next = t->kin.prev = NULL;
    *root = meld(*root, t);
}

/* Unlink t, which is not the root, with its subtree. */
static void cut(struct bz_wheel_timer *t)
{
    struct bz_wheel_timer *prev = t->kin.prev;
    if (prev->child == t)
        prev->child = t->kin.next;
    else
        prev->kin.next = t->kin.next;
    if (t->kin.next != NULL)
        t->kin.next->kin.prev = prev; /* I2 */
}

void bz_near_remove(struct bz_wheel_timer **root, struct bz_wheel_timer *t)
{
    BZ_ASSERT(*root != NULL);
    if (t == *root) {
        *root = meld_all(t->child);
    } else {
        cut(t);
        *root = meld(*root, meld_all(t->child));
    }
}

/* The parent of t, or NULL for the root. */
static struct bz_wheel_timer *parent_of(struct bz_wheel_timer *t)
{
    while (t->kin.prev != NULL && t->kin.prev->child != t)
        t = t->kin.prev;
    return t->kin.prev;
}

/* Children first, then siblings, then the parent's siblings. */
struct bz_wheel_timer *bz_near_walk(struct bz_wheel_timer *t)
{
    if (t->child != NULL)
        return t->child;
    while (t != NULL && t->kin.next == NULL)
        t = parent_of(t);
    return t == NULL ? NULL : t->kin.next;
}

static void check_child(struct bz_wheel_timer *parent, struct bz_wheel_timer *t)
{
    BZ_CHECK(bz_wheel_timer_before(parent, t), "near: %p fires before its parent %p", (void *)t,
             (void *)parent); /* I1 */
    BZ_CHECK(t->kin.next == NULL || t->kin.next->kin.prev == t, "near: %p is behind %p and says %p",
             (void *)t->kin.next, (void *)t, (void *)t->kin.next->kin.prev); /* I2 */
}

size_t bz_near_check(struct bz_wheel_timer *root)
{
    size_t count = 0;
    if (root == NULL)
        return 0;
    BZ_CHECK(root->kin.prev == NULL && root->kin.next == NULL, "near: the root %p has kin",
             (void *)root); /* I2 */
    for (struct bz_wheel_timer *t = root; t != NULL; t = bz_near_walk(t), count++) {
        BZ_CHECK(t->child == NULL || t->child->kin.prev == t,
                 "near: %p is a child of %p and says %p", (void *)t->child, (void *)t,
                 (void *)t->child->kin.prev); /* I2 */
        for (struct bz_wheel_timer *c = t->child; c != NULL; c = c->kin.next)
            check_child(t, c);
    }
    return count;
}
