/*
 * fresh.c - tasks that have not begun and that only this proc knows.
 *
 * A parent that spawns children mostly joins them soon, and each join runs its child on the spot (park/claim.c). In a
 * public queue such a child costs: its entry can be stolen, so the join leaves a tombstone behind, with a reference
 * that another read-modify-write drops later. So while all procs have work, first-run entries that leave the `next`
 * slot go into a private list, and a join takes its child out of there by plain stores.
 *
 * The list hides work from others, as the batch does (find.c). The same rules bound that:
 *   - A spawn or a join that finds a proc asleep or searching publishes the list.
 *   - The machine publishes it before it looks for another task to run (bz_find_near). So the order of tasks is the
 *     order in which they were spawned.
 *   - If the machine stays in user code, the monitor takes the entries, as it takes those of the batch.
 *
 * A parent with thousands of children has most of them in the ring and the injector. Its joins begin with the oldest, so
 * a join of a child that is in neither list nor `next` slot takes some of the oldest entries back, all with one CAS or
 * under one lock.
 *
 * I1  entry[0, count) are first-run entries, the oldest first, or 0: taken. The last one is not 0.
 * I2  While a simple fiber is in the list, its `place` is its place there. A joiner on another proc may read it
 *     meanwhile. In a task that is elsewhere the field says nothing, so the joiner compares the entry in that place.
 * I3  While the list is not empty a duty is due, so that the fast paths of quick.h do not pass it by.
 */
#include "proc/fresh.h"

#include <assert.h>

#include "proc/place.h"

static_assert(BZ_FRESH_MAX <= UINT8_MAX, "a place fits into its field");

/* Push the first `count` entries to the ring, and keep the others. */
static void publish(struct bz_machine *m, unsigned count)
{
    struct bz_fresh *f = &m->proc->fresh;
    unsigned all = bz_fresh_count(m->proc), left = 0;
    bool is_any = false;
    bz_store_relaxed(&f->count, 0); /* relaxed: ours to touch */
    for (unsigned i = 0; i < all; i++) {
        bz_entry e = bz_get(&f->entry[i]);
        if (e == 0)
            continue;
        if (i >= count) {
            bz_set(&f->entry[left], e);
            bz_fresh_note(e, left++);
            continue;
        }
        bz_push_here(m, e);
        is_any = true;
    }
    bz_store_relaxed(&f->count, left); /* relaxed: likewise */
    if (is_any && bz_idle_may_rouse(&m->rt->idle))
        bz_rouse_one(m->rt);
}

void bz_fresh_publish(struct bz_machine *m)
{
    bz_os_delay(m->rt->os, BZ_OS_AT_PUBLISH);
    publish(m, BZ_FRESH_MAX);
}

void bz_fresh_publish_half(struct bz_machine *m)
{
    bz_os_delay(m->rt->os, BZ_OS_AT_PUBLISH);
    publish(m, BZ_FRESH_MAX / 2);
}

/* Keep the first-run entries of out[], drop tombstones, and return all others to the ring. */
static void sort_in(struct bz_machine *m, const bz_entry *out, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (bz_entry_tag(out[i]) != BZ_ENTRY_FIRST)
            bz_push_here(m, out[i]);
        else if (bz_entry_is_tombstone(out[i]))
            bz_drop_tombstone(out[i]);
        else if (!bz_fresh_keep(m, out[i]))
            bz_push_here(m, out[i]);
}

bool bz_fresh_gather(struct bz_machine *m)
{
    enum { MOST = BZ_FRESH_MAX / 2 };
    struct bz_proc *p = m->proc;
    struct bz_runtime *rt = m->rt;
    bz_entry out[MOST];
    BZ_ASSERT(bz_fresh_count(p) == 0);
    if (!bz_idle_is_quiet(&rt->idle) || bz_injector_urgent(&rt->injector) > 0)
        return false;
    unsigned count = 0;
    if (bz_injector_length(&rt->injector) > 0)
        count = bz_injector_take(&rt->injector, out, MOST, rt->proc_count);
    else
        count = bz_runq_take_first_runs(&p->ring, out, MOST);
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    sort_in(m, out, count);
    if (count > 0)
        bz_rouse_for_batch(m); /* between the queues no searcher saw them */
    return bz_fresh_count(p) > 0;
}
