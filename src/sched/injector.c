/*
 * injector.c - pushing to and taking from the shared queue. The design is in injector.h.
 */
#include "sched/injector.h"

#include "base/check.h"

enum { BATCH_MIN = 4, BATCH_MAX = BZ_INJECTOR_BATCH };

void bz_injector_init(struct bz_injector *in, const struct bz_os *os)
{
    in->os = os;
    bz_lock_init_ranked(&in->lock, BZ_RANK_INJECTOR);
    bz_entries_init(&in->chain);
    bz_atomic_init(&in->length, 0);
}

/* I1, before the lock is dropped. */
static void publish_length(struct bz_injector *in)
{
    bz_store_relaxed(&in->length, in->chain.count); /* relaxed: the caller fences, [A] */
}

void bz_injector_push(struct bz_injector *in, bz_entry entry)
{
    bz_injector_push_all(in, &entry, 1);
}

void bz_injector_push_all(struct bz_injector *in, const bz_entry *entries, unsigned count)
{
    struct bz_entries chain; /* linked before the lock is taken: they are the caller's still */
    bz_entries_init(&chain);
    for (unsigned i = 0; i < count; i++)
        bz_entries_push(&chain, entries[i]);
    bz_lock_take(&in->lock, in->os);
    bz_entries_append(&in->chain, &chain);
    publish_length(in);
    bz_lock_drop(&in->lock, in->os);
}

/* What one proc of `procs` may have of `length`. */
static unsigned share_of(size_t length, unsigned procs)
{
    size_t share = length / (procs > 0 ? procs : 1);
    return share < BATCH_MIN ? BATCH_MIN : share > BATCH_MAX ? BATCH_MAX : (unsigned)share;
}

unsigned bz_injector_take(struct bz_injector *in, bz_entry *out, unsigned max, unsigned procs)
{
    unsigned taken = 0;
    if (bz_injector_length(in) == 0)
        return 0;
    bz_lock_take(&in->lock, in->os);
    unsigned share = share_of(in->chain.count, procs);
    for (bz_entry e; taken < share && taken < max && (e = bz_entries_take(&in->chain)) != 0;)
        out[taken++] = e;
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
    size_t said = bz_injector_length(in);
    BZ_CHECK(said == in->chain.count, "injector %p: %zu inside, says %zu", (void *)in,
             in->chain.count, said); /* I1 */
    bz_lock_drop(&in->lock, in->os);
}
