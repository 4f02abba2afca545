/*
 * injector.c - pushing to and taking from the shared queue. The design is in injector.h.
 */
#include "sched/injector.h"

#include "base/check.h"

enum { BATCH_MIN = 4, BATCH_MAX = 64 };

void bz_injector_init(struct bz_injector *in, const struct bz_os *os)
{
    in->os = os;
    bz_lock_init(&in->lock);
    bz_chain_init(&in->chain);
    bz_atomic_init(&in->length, 0);
}

/* I1, before the lock is dropped. */
static void publish_length(struct bz_injector *in)
{
    bz_store_relaxed(&in->length, in->chain.count); /* relaxed: the caller fences, [A] */
}

void bz_injector_push(struct bz_injector *in, struct bz_link *link)
{
    struct bz_chain one;
    bz_chain_init(&one);
    bz_chain_push_back(&one, link);
    bz_injector_push_all(in, &one);
}

void bz_injector_push_all(struct bz_injector *in, struct bz_chain *chain)
{
    bz_lock_take(&in->lock, in->os);
    bz_chain_append(&in->chain, chain);
    publish_length(in);
    bz_lock_drop(&in->lock, in->os);
}

struct bz_chain bz_injector_take(struct bz_injector *in, unsigned procs)
{
    struct bz_chain taken;
    bz_chain_init(&taken);
    if (bz_injector_length(in) == 0)
        return taken;
    bz_lock_take(&in->lock, in->os);
    size_t share = in->chain.count / (procs > 0 ? procs : 1);
    share = share < BATCH_MIN ? BATCH_MIN : share > BATCH_MAX ? BATCH_MAX : share;
    taken = bz_chain_cut(&in->chain, share);
    publish_length(in);
    bz_lock_drop(&in->lock, in->os);
    return taken;
}

void bz_injector_check(struct bz_injector *in)
{
    bz_lock_take(&in->lock, in->os);
    bz_chain_check(&in->chain);
    size_t said = bz_injector_length(in);
    BZ_CHECK(said == in->chain.count, "injector %p: %zu inside, says %zu", (void *)in,
             in->chain.count, said); /* I1 */
    bz_lock_drop(&in->lock, in->os);
}
