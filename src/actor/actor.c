/*
 * actor.c - an actor from spawn to end: its turns, its rest, its death.
 *
 * An actor is a task whose `run` handles messages. mailbox.h has the protocol by which it is scheduled. Here is the owner's side:
 *
 *     run     look at signals and at the cancel flag; handle the first node; step over it; again. The turn ends when the
 *             first node is the last (BZ_RAN_REST), or when the turn is used up (BZ_RAN_AGAIN)
 *     rest    called by the loop when it has done everything else: remove the last node, and with it the actor. If that
 *             fails, note that the first node was handled, and queue the actor again
 *
 * The handler is called on the runner's stack. If it waits, the task keeps that stack, and `run` goes on with the next message
 * when it is resumed. The state word of an actor stays *running* from its spawn to its end, also while it is idle: it is in
 * no queue, and no worker has it. Only a wait behind a waker (park/await.c) parks the word.
 *
 * A turn ends after BZ_TURN_MESSAGES messages or BZ_TURN_REDUCTIONS reductions. A message counts 1 and a send counts 8: an
 * actor that sends to itself would otherwise never end its turn.
 *
 * The end. `exit` is called first, while the actor can still be found. Then the mailbox is closed, and messages and signals
 * that came before are answered. Links and monitors are told last. No step of that allocates: a relation is the signal that it
 * will become (relate.c).
 *
 * I1  The owner of the mailbox (mailbox.h) is the owner of all other fields.
 * I2  BZ_ACTOR_DONE is set only between a rest that failed and the next turn.
 */
#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "life/escape.h"
#include "life/spawn.h"
#include "runtime/runtimes.h"
#include "sched/loop.h"

/* ---- the state ---- */

static void *place_of(struct bz_actor *a)
{
    return a + 1;
}

static void *state_of(struct bz_actor *a)
{
    return a->task.slot.flags & BZ_ACTOR_FAR ? *(void **)place_of(a) : place_of(a);
}

static void free_state(struct bz_actor *a)
{
    if (a->task.slot.flags & BZ_ACTOR_FAR)
        bz_free(&a->task.rt->alloc, state_of(a), bz_actor_behaviour(a)->state_bytes);
    a->task.slot.flags &= ~(uint32_t)BZ_ACTOR_FAR;
}

/* ---- ids ---- */

blitz_actor_id bz_actor_id_make(struct bz_runtime *rt, uint32_t index, uint32_t generation)
{
    return (blitz_actor_id){index, generation, 0, rt->creation};
}

blitz_actor_id bz_actor_id_of(struct bz_actor *a)
{
    return bz_actor_id_make(a->task.rt, a->task.slot.index, bz_actor_generation(a));
}

struct bz_runtime *bz_actor_runtime(blitz_actor_id id)
{
    struct bz_machine *m = bz_machine_self();
    if (id.node != 0 || id.generation == 0)
        return NULL;
    if (BZ_LIKELY(m != NULL && m->rt->creation == id.creation))
        return m->rt;
    return bz_runtimes_find(id.creation);
}

struct bz_actor *bz_actor_find(blitz_actor_id id)
{
    struct bz_runtime *rt = bz_actor_runtime(id);
    struct bz_task *t = rt != NULL ? bz_slot_at(&rt->tasks.slots, id.index) : NULL;
    if (t == NULL || !bz_mailbox_is_for(&bz_actor_of(t)->box, id.generation))
        return NULL;
    return bz_actor_of(t);
}

/* ---- messages ---- */

static const blitz_handler *handler_for(const blitz_behaviour *b, uint32_t what)
{
    if (BZ_LIKELY(what < b->handler_count && b->handlers[what].what == what))
        return &b->handlers[what];
    for (size_t i = 0; i < b->handler_count; i++)
        if (b->handlers[i].what == what)
            return &b->handlers[i];
    return NULL;
}

int bz_actor_handle(struct bz_actor *a, const blitz_msg *m)
{
    const blitz_handler *h = handler_for(bz_actor_behaviour(a), m->what);
    if (h == NULL || (h->size != m->size && h->size != BLITZ_ANY_SIZE)) {
        if (m->reply.generation != 0)
            bz_ticket_answer(a->task.rt, m->reply, -EOPNOTSUPP, NULL, 0);
        return 0;
    }
    return h->fn(state_of(a), m);
}

void bz_letter_bury(struct bz_runtime *rt, struct bz_letter *l)
{
    if (l->reply.generation != 0)
        bz_ticket_answer(rt, l->reply, -ESRCH, NULL, 0);
    bz_letter_free(rt, l);
}

/* The first that an actor does. */
static int begin(struct bz_actor *a)
{
    int rc = bz_actor_behaviour(a)->init != NULL ? bz_actor_behaviour(a)->init(state_of(a)) : 0;
    if (rc == 0)
        a->task.slot.flags |= BZ_ACTOR_BEGUN;
    return rc;
}

static int handle_letter(struct bz_actor *a, struct bz_letter *l)
{
    struct bz_runtime *rt = a->task.rt;
    if (BZ_UNLIKELY(l->generation != bz_actor_generation(a))) {
        if (l->reply.generation != 0)
            bz_ticket_answer(rt, l->reply, -ESRCH, NULL, 0);
        return 0; /* it was sent to an actor that had this memory before */
    }
    if (BZ_UNLIKELY(l->what == BZ_MSG_START))
        return begin(a);
    blitz_msg m = {.what = l->what, .size = l->size, .data = l->data, .reply = l->reply};
    if (l->from_generation != 0)
        m.from = bz_actor_id_make(rt, l->from_index, l->from_generation);
    return bz_actor_handle(a, &m);
}

/* The reason that follows from the result of a handler. */
static void reason_of(struct bz_actor *a, int rc, blitz_exit_reason *why)
{
    *why = (blitz_exit_reason){.kind = rc < 0 ? BLITZ_EXIT_ERROR : BLITZ_EXIT_NORMAL};
    why->code = rc < 0 ? rc : 0;
    if (a->task.slot.flags & BZ_ACTOR_STOPS)
        bz_relations_take_reason(a, why);
}

/* ---- the end ---- */

static bool is_cancelled(struct bz_task *t)
{
    return bz_word_is_cancelled(&t->word);
}

/* The node behind `first`, which is not the stub. A push may be in its gap: wait for it. */
static struct bz_mpsc_node *next_for_sure(struct bz_actor *a, struct bz_mpsc_node *first)
{
    struct bz_mpsc_node *next;
    for (unsigned round = 0; (next = bz_mailbox_step(&a->box, first)) == NULL; round++) {
        bz_os_relax(a->task.rt->os, round);
        bz_yield();
    }
    return next;
}

/* Drop everything before the stub. If the first node is a bell, is_heard says whether it was heard. */
static void drain(struct bz_actor *a, struct bz_mpsc_node *first, bool is_heard)
{
    while (first != &a->box.stub) {
        struct bz_mpsc_node *next = next_for_sure(a, first);
        if (!bz_mailbox_is_bell(&a->box, first))
            bz_letter_bury(a->task.rt, BZ_CONTAINER_OF(first, struct bz_letter, node));
        else if (!is_heard)
            bz_mailbox_hear(&a->box, first);
        is_heard = false;
        first = next;
    }
}

/* The end of an actor in its turn. */
struct end {
    struct bz_mpsc_node *first;  /* the first node, which is dropped with the rest */
    bool is_handled;             /* it was handled: a bell was heard */
    struct bz_signal_link *left; /* signals that were taken and not handled */
    blitz_exit_reason why;
};

static enum bz_ran die(struct bz_actor *a, struct end *e)
{
    struct bz_task *t = &a->task;
    uint32_t generation = bz_actor_generation(a);
    if (is_cancelled(t)) /* a kill is stronger than what it made a handler return */
        e->why = (blitz_exit_reason){.kind = bz_mailbox_is_killed(&a->box) ? BLITZ_EXIT_KILLED
                                                                           : BLITZ_EXIT_SHUTDOWN};
    if ((t->slot.flags & BZ_ACTOR_BEGUN) && bz_actor_behaviour(a)->exit != NULL)
        bz_actor_behaviour(a)->exit(state_of(a), &e->why);
    if (bz_actor_behaviour(a)->drop != NULL)
        bz_actor_behaviour(a)->drop(state_of(a), bz_actor_behaviour(a)->ctx);
    bz_locals_end(t);
    struct bz_signal_link *late = bz_mailbox_close(&a->box);
    bz_signals_bury(a, e->left);
    bz_signals_bury(a, late);
    drain(a, e->first, e->is_handled);
    bz_relations_end(a, generation, &e->why);
    free_state(a);
    t->result = e->why.kind == BLITZ_EXIT_ERROR ? e->why.code : 0;
    return BZ_RAN_DONE;
}

static void actor_drop(struct bz_task *t)
{
    bz_slot_free(t);
}

/* ---- turns ---- */

/* Handle the first node. Returns what its handler returned. */
static int handle(struct bz_actor *a, struct bz_mpsc_node *first)
{
    if (BZ_UNLIKELY(bz_mailbox_is_bell(&a->box, first))) {
        bz_mailbox_hear(&a->box, first); /* the caller looks at the signals next */
        return 0;
    }
    return handle_letter(a, BZ_CONTAINER_OF(first, struct bz_letter, node));
}

static void free_node(struct bz_actor *a, struct bz_mpsc_node *node)
{
    if (BZ_LIKELY(!bz_mailbox_is_bell(&a->box, node)))
        bz_letter_free(a->task.rt, BZ_CONTAINER_OF(node, struct bz_letter, node));
}

/* Look at the signals. True: the actor is to end, for e->why. */
static bool look_aside(struct bz_actor *a, struct end *e)
{
    if (BZ_UNLIKELY(is_cancelled(&a->task)))
        return true;
    if (BZ_LIKELY(!bz_mailbox_has_signals(&a->box)))
        return false;
    return !bz_signals_handle(a, bz_mailbox_take_signals(&a->box), &e->left, &e->why);
}

/* Handle the first node, and the signals before and after it: behind a bell, and before a rest. True: the actor is to end. */
static bool handle_first(struct bz_actor *a, struct end *e)
{
    if (BZ_LIKELY(!e->is_handled)) {
        if (!bz_mailbox_is_bell(&a->box, e->first) && look_aside(a, e))
            return true;
        int rc = handle(a, e->first);
        e->is_handled = true;
        if (BZ_UNLIKELY(rc != 0)) {
            reason_of(a, rc, &e->why);
            return true;
        }
    }
    return look_aside(a, e);
}

static bool is_used_up(struct bz_actor *a)
{
    a->task.slot.flags += BZ_ACTOR_REDUCTION;
    return a->task.slot.flags / BZ_ACTOR_REDUCTION >= BZ_TURN_REDUCTIONS;
}

static enum bz_ran turn(struct bz_actor *a, bool is_handled)
{
    struct end e = {.first = bz_mailq_first(&a->box.queue), .is_handled = is_handled};
    if (BZ_UNLIKELY(e.first ==
                    &a->box.stub)) { /* its first turn. It must not die before: mailbox.h I1 */
        e.first = bz_mailbox_step(&a->box, e.first);
        if (e.first == NULL)
            return BZ_RAN_AGAIN; /* a late push is in its gap */
    }
    for (unsigned count = 0; count < BZ_TURN_MESSAGES; count++) {
        if (handle_first(a, &e))
            return die(a, &e);
        struct bz_mpsc_node *next = bz_mailbox_step(&a->box, e.first);
        if (next == NULL)
            return BZ_RAN_REST;
        free_node(a, e.first);
        e.first = next;
        e.is_handled = false;
        if (is_used_up(a))
            break;
    }
    return BZ_RAN_AGAIN;
}

static BZ_NOINLINE enum bz_ran actor_run(struct bz_task *t)
{
    BZ_STOP_EXCEPTIONS();
    struct bz_actor *a = bz_actor_of(t);
    bool is_done = t->slot.flags & BZ_ACTOR_DONE;
    t->slot.flags &= (BZ_ACTOR_REDUCTION - 1) & ~(uint32_t)BZ_ACTOR_DONE;
    t->marks = 0;
    return turn(a, is_done);
}

/* The last that the loop does to the actor: after it the actor may run elsewhere, or be gone. In the runtime. */
static void actor_rest(struct bz_task *t)
{
    struct bz_actor *a = bz_actor_of(t);
    struct bz_runtime *rt = t->rt;
    struct bz_mpsc_node *first = bz_mailq_first(&a->box.queue);
    bool is_letter = !bz_mailbox_is_bell(&a->box, first);
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    if (BZ_LIKELY(bz_mailq_rest(&a->box.queue, first))) {
        if (BZ_LIKELY(is_letter))
            bz_letter_free(rt, BZ_CONTAINER_OF(first, struct bz_letter, node));
        return;
    }
    t->slot.flags |= BZ_ACTOR_DONE; /* I2 */
    bz_place_last(bz_entry_resumed(t));
}

void bz_actor_abandon(struct bz_actor *a)
{
    struct bz_task *t = &a->task;
    t->slot.flags &= ~(uint32_t)BZ_ACTOR_FAR;      /* the block is the spawner's */
    if (bz_word_exit(&t->word, 1) == BZ_EXIT_LAST) /* else a walk looks at it, and drops it */
        actor_drop(t);
}

void bz_actor_ring(struct bz_actor *a)
{
    bz_os_delay(a->task.rt->os, BZ_OS_AT_PUBLISH);
    if (bz_mailbox_ring(&a->box))
        bz_actor_place(a);
}

static void actor_cancel(struct bz_task *t)
{
    bz_actor_ring(bz_actor_of(t));
}

static const char *actor_idles(struct bz_task *t)
{
    return bz_mailq_is_empty(&bz_actor_of(t)->box.queue) ? "" : NULL;
}

static uintptr_t actor_begun_in(const struct bz_task *t)
{
    struct bz_actor *a = bz_actor_of((struct bz_task *)(uintptr_t)t); /* NOLINT: only read */
    const blitz_behaviour *b = bz_actor_behaviour(a);
    return b->handler_count > 0 ? (uintptr_t)b->handlers[0].fn : 0;
}

const struct bz_task_ops bz_actor_ops = {.kind = "actor",
                                         .run = actor_run,
                                         .drop = actor_drop,
                                         .begun_in = actor_begun_in,
                                         .rest = actor_rest,
                                         .cancel = actor_cancel,
                                         .idles = actor_idles};

/* ---- slots ---- */

static void slot_make(struct bz_task *t)
{
    bz_mailbox_init(&bz_actor_of(t)->box);
}

/* No thread looks any more. Drop what came behind the stub. */
static void slot_reclaim(struct bz_task *t)
{
    struct bz_actor *a = bz_actor_of(t);
    struct bz_mpsc_node *first = bz_mailq_first(&a->box.queue), *next;
    for (; first != NULL; first = next) { /* NULL: it was never opened, or handed out */
        next = bz_mailbox_step(&a->box, first);
        if (first != &a->box.stub)
            free_node(a, first);
    }
}

static void actors_begin(struct bz_runtime *rt, void *more)
{
    struct bz_actors *all = more;
    (void)rt;
    memset(all, 0, sizeof *all);
    bz_lock_init(&all->lock);
}

static void actors_end(struct bz_runtime *rt, void *more)
{
    bz_tickets_end(rt, more);
    bz_names_end(rt, more);
}

const struct bz_slot_ops bz_actor_slot_ops = {.make = slot_make,
                                              .reclaim = slot_reclaim,
                                              .more_bytes = sizeof(struct bz_actors),
                                              .begin = actors_begin,
                                              .end = actors_end};

struct bz_actors *bz_actors_of(struct bz_runtime *rt)
{
    return bz_slots_more(rt, &bz_actor_slot_ops);
}

/* ---- looking ---- */

blitz_actor_id blitz_actor_self(void)
{
    struct bz_actor *a = bz_actor_self();
    return a != NULL ? bz_actor_id_of(a) : (blitz_actor_id){0, 0, 0, 0};
}

bool blitz_actor_is_alive(blitz_actor_id id)
{
    return bz_actor_find(id) != NULL;
}
