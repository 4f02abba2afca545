/*
 * reaching.c - an actor that ends when nothing holds it: its rest, its answers to the detector, its end.
 *
 * The end. An actor that has handled its last message looks whether anything holds it, before it rests. Each event that can take its last hold
 * away makes it look again: the release of the last reference rings it, and names, groups and links go by signals. Between the
 * look and the end a message may come, from a sender that has nothing but the id. It is dropped like any message to the dead.
 *
 * The references of actors, and their table, are in reach.c. This file calls it, and only actor.c calls this one.
 */
#include "actor/reaching.h"

#include "actor/actors.h"
#include "actor/relating.h"

/* ---- the owner: what the detector wants ---- */

bool bz_reaching_wakes(struct bz_actor *a)
{
    struct bz_runtime *rt = a->task.rt;
    struct bz_actors *all = bz_actors_of(rt);
    blitz_reference *r = *bz_reference_at(a);
    r->has_run = true;
    if (BZ_LIKELY(r->agreed == 0))
        return true;
    r->agreed = 0;
    bz_lock_take(&all->reach_lock, rt->os);
    bool lives = !r->is_condemned;
    bool is_asked = r->group != NULL;
    if (is_asked)
        r->group->is_spared = true;
    bz_lock_drop(&all->reach_lock, rt->os);
    if (is_asked)
        bz_detector_ring(rt);
    return lives;
}

/* Count references; with a report, note them. */
struct noting {
    const struct bz_runtime *rt;
    struct bz_report *to;
    uint32_t count;
};

static void note(blitz_reference *r, void *ctx)
{
    struct noting *n = ctx;
    if (r->rt != n->rt)
        return; /* of another runtime: it counts as held from outside there */
    if (n->to != NULL)
        n->to->edge[n->count] = (struct bz_edge){r->id.index, r->id.generation};
    n->count++;
}

static size_t report_bytes(uint32_t count)
{
    return sizeof(struct bz_report) + count * sizeof(struct bz_edge);
}

void bz_report_free(struct bz_runtime *rt, struct bz_report *report)
{
    if (report != NULL)
        bz_free(&rt->alloc, report, report_bytes(report->count));
}

/* Make a report of what the heap holds. NULL: no memory. */
static struct bz_report *report_new(struct bz_actor *a, blitz_reference *r, const blitz_heap *heap)
{
    struct noting n = {a->task.rt, NULL, 0};
    bz_heap_references(heap, note, &n);
    bz_reach_set_holds(&r->reach, n.count > 0);
    n.to = bz_alloc(&a->task.rt->alloc, report_bytes(n.count), _Alignof(struct bz_report));
    if (n.to == NULL)
        return NULL;
    n.to->count = n.count;
    n.count = 0;
    bz_heap_references(heap, note, &n);
    return n.to;
}

/* Under the lock: the detector gets the report. NULL: something holds the actor, or there was no memory. */
static void hand_in(struct bz_references *t, blitz_reference *r, struct bz_report *report,
                    bool has_failed)
{
    r->is_asked = false;
    r->report = report;
    r->has_failed = has_failed;
    r->next_report = t->reports;
    t->reports = r;
}

/* The detector has asked for a report. Returns whether it still waits for it. */
static bool report(struct bz_actor *a, blitz_reference *r)
{
    struct bz_runtime *rt = a->task.rt;
    struct bz_actors *all = bz_actors_of(rt);
    bool is_held = bz_relations_hold(a);
    bool fails;
    const blitz_heap *heap = bz_actor_heap_between(a, r->has_run, &fails); /* also if it is held */
    struct bz_report *made = is_held ? NULL : report_new(a, r, heap);
    bz_lock_take(&all->reach_lock, rt->os);
    bool is_asked = r->is_asked;
    if (is_asked)
        hand_in(&all->references, r, made, fails || (!is_held && made == NULL));
    else
        r->is_missed = false; /* the caller knows */
    bz_lock_drop(&all->reach_lock, rt->os);
    r->has_run &= !is_asked || fails; /* it must collect in the next pass */
    if (!is_asked)
        bz_report_free(rt, made);
    return is_asked;
}

/* The detector asks whether the actor agrees to end. Under the lock. */
static void agree(struct bz_actor *a, blitz_reference *r)
{
    if (r->group == NULL || r->agreed == r->group->pass)
        return;
    if (r->has_run || bz_relations_hold(a)) {
        r->group->is_spared = true;
        return;
    }
    r->agreed = r->group->pass;
    r->group->open--;
}

/* Answer the detector. True: the actor is condemned. */
static BZ_NOINLINE bool answer(struct bz_actor *a, blitz_reference *r)
{
    struct bz_runtime *rt = a->task.rt;
    struct bz_actors *all = bz_actors_of(rt);
    bz_lock_take(&all->reach_lock, rt->os);
    bool is_asked = r->is_asked, is_missed = r->is_missed, is_condemned = r->is_condemned;
    bz_store_relaxed(&r->is_wanted, 0); /* relaxed: the lock */
    r->is_missed = false;
    if (!is_condemned)
        agree(a, r);
    bz_lock_drop(&all->reach_lock, rt->os);
    if (is_condemned)
        return true;
    if (is_asked)
        is_missed |= !report(a, r);
    if (is_missed && bz_reach_suspect(&r->reach))
        bz_reference_list(r);
    bz_detector_ring(rt);
    return false;
}

/* ---- the owner: rest and end ---- */

/* True if nothing holds the actor, whose word is closed now. *has_more: it has another turn. */
static bool is_unheld(struct bz_actor *a, blitz_reference *r, struct bz_mpsc_node *first,
                      bool *has_more)
{
    uint64_t word;
    do {
        word = bz_reach_look(&r->reach);
        *has_more = !bz_mailq_is_last(&a->box.queue, first) || bz_mailbox_has_signals(&a->box) ||
                    bz_word_is_cancelled(&a->task.word);
        if (*has_more || bz_reach_count(word) > 0 || bz_relations_hold(a))
            return false;
    } while (!bz_reach_close_if(&r->reach, word));
    return true;
}

bool bz_reaching_rests(struct bz_actor *a, struct bz_mpsc_node *first)
{
    blitz_reference *r = *bz_reference_at(a);
    bool has_more;
    if (a->task.slot.flags & BZ_ACTOR_MUTES)
        return false; /* it looks again when it is let go on */
    if (is_unheld(a, r, first, &has_more))
        return true;
    if (has_more)
        return false;
    if (BZ_UNLIKELY(bz_load_relaxed(&r->is_wanted) != 0) && /* relaxed: a bell comes behind it */
        answer(a, r))
        return true;
    if (r->has_run && bz_reach_holds(&r->reach) && bz_reach_suspect(&r->reach))
        bz_reference_list(r);
    if (BZ_UNLIKELY(r->step != NULL))
        r->step(a);
    return false;
}

void bz_reaching_end(struct bz_actor *a)
{
    struct bz_runtime *rt = a->task.rt;
    struct bz_actors *all = bz_actors_of(rt);
    blitz_reference *r = *bz_reference_at(a);
    bz_lock_take(&all->reach_lock, rt->os);
    bz_reach_close(&r->reach);
    bz_reference_hide(&all->references, r);
    bool is_wanted = r->is_asked || r->group != NULL;
    if (r->group != NULL)
        r->group->is_spared = true;
    if (r->is_asked)
        hand_in(&all->references, r, NULL, false);
    bz_lock_drop(&all->reach_lock, rt->os);
    *bz_reference_at(a) = NULL;
    if (is_wanted)
        bz_detector_ring(rt);
    if (bz_reach_end(&r->reach))
        bz_reference_free(r);
}
