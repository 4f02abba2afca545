/*
 * injector.c - pushing to and taking from the shared queue. The design is in injector.h.
 */
#include "queue/injector.h"

#include "base/check.h"

enum { BATCH_MIN = 4, BATCH_MAX = BZ_INJECTOR_BATCH };
enum { AHEAD = 16 }; /* entries: so many misses of the cache are under way at a time */

void bz_injector_init(struct bz_injector *in, const struct bz_os *os)
{
    in->os = os;
    bz_lock_init_ranked(&in->lock, BZ_RANK_INJECTOR);
    bz_entries_init(&in->chain);
    bz_entries_init(&in->urgent);
    in->row = 0;
    bz_atomic_init(&in->length, 0);
    bz_atomic_init(&in->urgent_length, 0);
}

/* Publish the lengths before the lock is dropped: I1. */
static void publish_length(struct bz_injector *in)
{
    size_t urgent = in->urgent.count;
    bz_store_relaxed(&in->urgent_length, urgent);            /* relaxed: a hint */
    bz_store_relaxed(&in->length, in->chain.count + urgent); /* relaxed: the caller fences, [A] */
}

void bz_injector_push(struct bz_injector *in, bz_entry entry)
{
    bz_injector_push_all(in, &entry, 1);
}

void bz_injector_push_all(struct bz_injector *in, const bz_entry *entries, unsigned count)
{
    struct bz_entries chain; /* linked before the lock is taken: the caller still owns them */
    bz_entries_init(&chain);
    for (unsigned i = 0; i < count; i++)
        bz_entries_push(&chain, entries[i]);
    bz_lock_take(&in->lock, in->os);
    bz_entries_append(&in->chain, &chain);
    publish_length(in);
    bz_lock_drop(&in->lock, in->os);
}

void bz_injector_push_urgent(struct bz_injector *in, bz_entry entry)
{
    bz_lock_take(&in->lock, in->os);
    bz_entries_push(&in->urgent, entry);
    publish_length(in);
    bz_lock_drop(&in->lock, in->os);
}

/* Under the lock: true if the next entry to take is an urgent one. */
static bool is_urgent_next(struct bz_injector *in)
{
    bool is_next = in->urgent.count > 0 && (in->row < BZ_URGENT_ROW || in->chain.count == 0);
    in->row = is_next ? in->row + 1 : 0;
    return is_next;
}

/* Return how many of `length` entries one of `procs` procs may take. */
static unsigned share_of(size_t length, unsigned procs)
{
    size_t share = length / (procs > 0 ? procs : 1);
    return share < BATCH_MIN ? BATCH_MIN : share > BATCH_MAX ? BATCH_MAX : (unsigned)share;
}

/* Tasks that were spawned in a row are at equal distances: prefetch the one that is likely to come some entries later. */
static inline void look_ahead(bz_entry e, bz_entry next)
{
    bz_entry later = next + (next - e) * AHEAD;
    __builtin_prefetch((const void *)later);
    __builtin_prefetch((const void *)(later + BZ_FETCHED));
}

unsigned bz_injector_take(struct bz_injector *in, bz_entry *out, unsigned max, unsigned procs)
{
    unsigned taken = 0;
    if (bz_injector_length(in) == 0)
        return 0;
    bz_lock_take(&in->lock, in->os);
    unsigned share = share_of(in->chain.count, procs);
    if (max > 0 && is_urgent_next(in)) {
        out[taken++] = bz_entries_take(&in->urgent);
        share = 0;
    }
    for (bz_entry e; taken < share && taken < max && (e = bz_entries_take(&in->chain)) != 0;) {
        if (in->chain.count > AHEAD)
            look_ahead(e, in->chain.first);
        out[taken++] = e;
    }
    publish_length(in);
    bz_lock_drop(&in->lock, in->os);
    return taken;
}

unsigned bz_injector_take_dead(struct bz_injector *in, bool (*is_dead)(bz_entry e), bz_entry *out,
                               unsigned max)
{
    unsigned taken = 0;
    if (bz_injector_length(in) == 0)
        return 0;
    bz_lock_take(&in->lock, in->os);
    while (taken < max && in->chain.first != 0 && is_dead(in->chain.first))
        out[taken++] = bz_entries_take(&in->chain);
    publish_length(in);
    bz_lock_drop(&in->lock, in->os);
    return taken;
}

void bz_injector_check(struct bz_injector *in)
{
    bz_lock_take(&in->lock, in->os);
    bz_entries_check(&in->chain);
    bz_entries_check(&in->urgent);
    size_t inside = in->chain.count + in->urgent.count, said = bz_injector_length(in);
    BZ_CHECK(said == inside, "injector %p: %zu inside, says %zu", (void *)in, inside,
             said); /* I1 */
    BZ_CHECK(bz_injector_urgent(in) == in->urgent.count, "injector %p: %zu urgent, says %zu",
             (void *)in, in->urgent.count, bz_injector_urgent(in)); /* I1 */
    bz_lock_drop(&in->lock, in->os);
}
