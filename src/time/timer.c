/*
 * timer.c - a list of timers, sorted by deadline.
 *
 * A natural merge sort: the list is split into sorted runs, and runs of about the same size are
 * merged in pairs, like the carries of a binary counter. Timers with the same timeout are armed in
 * the order they fire, so runs are long in practice, and often there is just one. There is no
 * allocation and no recursion: a million timers may be due when a machine wakes from a suspend.
 * Rejected: qsort over an array of pointers, because its allocation could fail.
 *
 * I1  A run is a chain by `next`, ended by NULL, in order, with its last node known. `prev` is
 *     meaningless until the end.
 * I2  pile[i] is empty or holds 2^i merged runs; those in pile[i + 1] came before it in the list.
 */
#include "time/timer.h"

struct run {
    struct bz_list *first, *last;
};

/* 2^32 runs are at least 2^32 timers of 48 bytes, more than fits in memory. */
enum { PILES = 32 };

static bool is_before(struct bz_list *a, struct bz_list *b)
{
    return bz_wheel_timer_before(bz_wheel_timer_of(a), bz_wheel_timer_of(b));
}

/* Cut off the longest run at the front of *rest. */
static struct run run_cut(struct bz_list **rest)
{
    struct run r = {*rest, *rest};
    while (r.last->next != NULL && is_before(r.last, r.last->next))
        r.last = r.last->next;
    *rest = r.last->next;
    r.last->next = NULL;
    return r;
}

static struct run run_merge(struct run a, struct run b)
{
    struct bz_list merged, *tail = &merged;
    struct bz_list *last = is_before(a.last, b.last) ? b.last : a.last;
    while (a.first != NULL && b.first != NULL) {
        struct run *from = is_before(a.first, b.first) ? &a : &b;
        tail->next = from->first;
        tail = from->first;
        from->first = tail->next;
    }
    tail->next = a.first != NULL ? a.first : b.first;
    return (struct run){merged.next, last};
}

/* Add a run to the piles: merge it while there is one of its size. */
static void run_pile(struct run *pile, struct run r)
{
    unsigned i = 0;
    for (; pile[i].first != NULL; i++) {
        BZ_ASSERT(i + 1 < PILES);
        r = run_merge(pile[i], r); /* I2 */
        pile[i].first = NULL;
    }
    pile[i] = r;
}

/* Turn the chain back into the list. */
static void list_restore(struct bz_list *head, struct run r)
{
    struct bz_list *before = head;
    head->next = r.first;
    for (struct bz_list *at = r.first; at != NULL; before = at, at = at->next)
        at->prev = before;
    r.last->next = head;
    head->prev = r.last;
}

void bz_wheel_timers_sort(struct bz_list *timers)
{
    struct run pile[PILES] = {{NULL, NULL}};
    struct bz_list *rest = bz_list_first(timers);
    if (rest == NULL)
        return;
    timers->prev->next = NULL; /* I1 */
    struct run all = run_cut(&rest);
    while (rest != NULL) {
        run_pile(pile, all);
        all = run_cut(&rest);
    }
    for (unsigned i = 0; i < PILES; i++)
        if (pile[i].first != NULL)
            all = run_merge(pile[i], all);
    list_restore(timers, all);
}
