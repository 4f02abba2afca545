/*
 * actor.c - an actor from spawn to end: its turns, its rest, its death.
 *
 * An actor is a task whose `run` handles messages. mailbox.h has the protocol by which it is scheduled. Here is the owner's side:
 *
 *     run     look at signals and at the cancel flag; handle the first node; step over it; again. The turn ends when the
 *             first node is the last (BZ_RAN_REST), or when the turn is used up (BZ_RAN_AGAIN)
 *     rest    called by the loop when it has done everything else: remove the last node, and with it the actor. If that
 *             fails, note that the first node was handled, and queue the actor again. An actor that has sent to an overloaded
 *             one is muted here instead (pressure.c)
 *
 * The handler is called on the runner's stack. If it waits, the task keeps that stack, and `run` goes on with the next message
 * when it is resumed. The state word of an actor stays *running* from its spawn to its end, also while it is idle: it is in
 * no queue, and no worker has it. Only a wait behind a waker (park/await.c) parks the word.
 *
 * A turn ends after BZ_TURN_MESSAGES messages or BZ_TURN_REDUCTIONS reductions. A message counts 1 and a send counts 8: an
 * actor that sends to itself would otherwise never end its turn. Signals of links and monitors count as sends.
 *
 * The end. `exit` is called first, while the actor can still be found. Then it loses its names and groups, so that they are free
 * when its id is found dead. Then the mailbox is closed, and messages and signals that came before are answered. Links and
 * monitors are told last. No step of that allocates: a relation is the signal that it will become (relate.c).
 *
 * I1  The owner of the mailbox (mailbox.h) is the owner of all other fields.
 * I2  BZ_ACTOR_DONE is set only between a rest that failed and the next turn.
 */
#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "actor/cargo.h"
#include "actor/trap.h"
#include "life/escape.h"
#include "life/spawn.h"
#include "sched/loop.h"

/* ---- the state ---- */

static BZ_NOINLINE void free_rare_state(struct bz_actor *a)
{
    if (a->task.slot.flags & BZ_ACTOR_HEAP)
        bz_actor_heap_end(a);
    if (a->task.slot.flags & BZ_ACTOR_FAR)
        bz_free(&a->task.rt->alloc, bz_actor_room_of(a), bz_actor_room(bz_actor_own_behaviour(a)));
    if (a->task.slot.flags & BZ_ACTOR_VERSION)
        bz_version_leave(a->task.rt, bz_version_of(bz_actor_own_behaviour(a)));
    a->task.slot.flags &= ~(uint32_t)(BZ_ACTOR_FAR | BZ_ACTOR_VERSION);
}

static void free_state(struct bz_actor *a)
{
    if (BZ_UNLIKELY(a->task.slot.flags & (BZ_ACTOR_HEAP | BZ_ACTOR_FAR | BZ_ACTOR_VERSION)))
        free_rare_state(a);
}

/* ---- messages ---- */

static BZ_ALWAYS_INLINE const blitz_handler *handler_for(const blitz_behaviour *b, uint32_t what)
{
    if (BZ_LIKELY(what < b->handler_count && b->handlers[what].what == what))
        return &b->handlers[what];
    for (size_t i = 0; i < b->handler_count; i++)
        if (b->handlers[i].what == what)
            return &b->handlers[i];
    /* The table of a porter (receive.c) has one handler, for any message. */
    return b->handler_count == 1 && b->handlers[0].what == BZ_MSG_ANY ? &b->handlers[0] : NULL;
}

/* Call init or a handler of an actor whose faults are trapped: trap.c. */
static BZ_NOINLINE int call_trapped(struct bz_actor *a, bz_guard_fn *fn, const blitz_msg *m)
{
    char text[BLITZ_EXIT_TEXT_MAX];
    int rc = bz_trap_call(a, fn, bz_actor_state(a), m, text);
    return BZ_LIKELY(text[0] == '\0') ? rc : blitz_actor_fail(rc, text);
}

/* No handler takes the message: answer a call. */
static BZ_NOINLINE int refuse(struct bz_actor *a, const blitz_msg *m)
{
    if (m->reply.generation != 0)
        bz_ticket_answer(a->task.rt, m->reply, -EOPNOTSUPP, NULL, 0);
    return 0;
}

/* Call the handler h, NULL: none, for a message of that size. */
static BZ_ALWAYS_INLINE int call_handler(struct bz_actor *a, const blitz_handler *h, uint32_t size,
                                         const blitz_msg *m)
{
    if (BZ_UNLIKELY(h == NULL))
        return refuse(a, m);
    if (BZ_UNLIKELY(h->size != size) && h->size != BLITZ_ANY_SIZE)
        return refuse(a, m);
    if (BZ_LIKELY(!(a->task.slot.flags & (BZ_ACTOR_FAR | BZ_ACTOR_HEAP | BZ_ACTOR_TRAPS))))
        return h->fn(a + 1, m);
    if (BZ_UNLIKELY(a->task.slot.flags & BZ_ACTOR_TRAPS))
        return call_trapped(a, bz_trap_fn(h->fn), m);
    return h->fn(bz_actor_state(a), m);
}

int bz_actor_handle(struct bz_actor *a, const blitz_msg *m)
{
    return call_handler(a, handler_for(bz_actor_own_behaviour(a), m->what), m->size, m);
}

/* The first that an actor does. */
static int begin(struct bz_actor *a)
{
    const blitz_behaviour *b = bz_actor_own_behaviour(a);
    int rc = 0;
    if (b->init != NULL && (a->task.slot.flags & BZ_ACTOR_TRAPS))
        rc = call_trapped(a, bz_trap_fn(b->init), NULL);
    else if (b->init != NULL)
        rc = b->init(bz_actor_state(a));
    if (rc == 0)
        a->task.slot.flags |= BZ_ACTOR_BEGUN;
    return rc;
}

/* A message with cargo, which is released behind its handler. */
static BZ_NOINLINE int handle_loaded(struct bz_actor *a, struct bz_letter *l, blitz_msg *m)
{
    bz_letter_show((struct bz_block_owner){a->task.slot.index, bz_actor_generation(a)}, l, m);
    int rc = bz_actor_handle(a, m);
    bz_letter_unload(l);
    return rc;
}

static BZ_ALWAYS_INLINE int handle_letter(struct bz_actor *a, struct bz_letter *l)
{
    struct bz_runtime *rt = a->task.rt;
    if (BZ_UNLIKELY(l->generation != bz_actor_generation(a))) {
        if (l->reply.generation != 0)
            bz_ticket_answer(rt, l->reply, -ESRCH, NULL, 0);
        bz_letter_unload(l);
        return 0; /* it was sent to an actor that had this memory before */
    }
    if (BZ_UNLIKELY(l->what == BZ_MSG_START))
        return begin(a);
    blitz_msg m = {.what = l->what, .size = l->size, .data = l->data, .reply = l->reply};
    if (l->from_generation != 0)
        m.from = bz_actor_id_make(rt, l->from_index, l->from_generation);
    if (BZ_UNLIKELY(l->cargo != BZ_CARGO_NONE))
        return handle_loaded(a, l, &m);
    return call_handler(a, handler_for(bz_actor_own_behaviour(a), l->what), l->size, &m);
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

static void call_exit(struct bz_actor *a, blitz_exit_reason *why)
{
    const blitz_behaviour *b = bz_actor_own_behaviour(a);
    blitz_exit_reason shown = *why; /* the function may fault, which is then why */
    if (BZ_UNLIKELY(a->task.slot.flags & BZ_ACTOR_TRAPS))
        bz_trap_call_last(a, bz_trap_fn(b->exit), bz_actor_state(a), &shown, why);
    else
        b->exit(bz_actor_state(a), why);
}

static void call_drop(struct bz_actor *a, blitz_exit_reason *why)
{
    const blitz_behaviour *b = bz_actor_own_behaviour(a);
    if (BZ_UNLIKELY(a->task.slot.flags & BZ_ACTOR_TRAPS))
        bz_trap_call_last(a, bz_trap_fn(b->drop), bz_actor_state(a), b->ctx, why);
    else
        b->drop(bz_actor_state(a), b->ctx);
}

static void die(struct bz_actor *a, struct end *e)
{
    struct bz_task *t = &a->task;
    uint32_t generation = bz_actor_generation(a);
    if (is_cancelled(t)) /* a kill is stronger than what it made a handler return */
        e->why = (blitz_exit_reason){.kind = bz_mailbox_is_killed(&a->box) ? BLITZ_EXIT_KILLED
                                                                           : BLITZ_EXIT_SHUTDOWN};
    if ((t->slot.flags & BZ_ACTOR_BEGUN) && bz_actor_own_behaviour(a)->exit != NULL)
        call_exit(a, &e->why);
    if (bz_actor_own_behaviour(a)->drop != NULL)
        call_drop(a, &e->why);
    bz_locals_end(t);
    if (bz_actor_is_porter(a) || a->relations != NULL)
        bz_relations_unname(a);
    struct bz_signal_link *late = bz_mailbox_close(&a->box);
    bz_signals_bury(a, e->left);
    bz_signals_bury(a, late);
    if (BZ_UNLIKELY(bz_mailbox_is_pressed(&a->box))) /* mailbox.h [D] */
        bz_actor_relieve_all(a);
    drain(a, e->first, e->is_handled);
    bz_relations_end(a, generation, &e->why, e->left != NULL || late != NULL);
    free_state(a);
    t->result = e->why.kind == BLITZ_EXIT_ERROR ? e->why.code : 0;
    bz_actor_count_out(t->rt, bz_busy_here());
}

static void actor_drop(struct bz_task *t)
{
    bz_slot_free(t);
}

/* ---- turns ---- */

/* Free a letter that was handled, and has no cargo any more. In the runtime. */
static BZ_ALWAYS_INLINE void free_letter(struct bz_machine *m, struct bz_letter *l)
{
    if (BZ_LIKELY(m->proc != NULL))
        bz_letter_give(&m->proc->tasks, l->kind, l);
    else
        bz_letter_free(m->rt, l);
}

/* The same between two messages. */
static BZ_ALWAYS_INLINE void free_node(struct bz_actor *a, struct bz_mpsc_node *node)
{
    uint32_t was;
    if (BZ_UNLIKELY(bz_mailbox_is_bell(&a->box, node)))
        return;
    struct bz_machine *m = bz_machine_self();
    (void)!bz_enter_on(m, &was); /* with a proc or without */
    free_letter(m, BZ_CONTAINER_OF(node, struct bz_letter, node));
    bz_leave_on(m, was);
}

/* True if a cancel or signals wait; it may miss signals that a bell has not announced yet. */
static BZ_ALWAYS_INLINE bool is_asked(struct bz_actor *a)
{
    return BZ_UNLIKELY(is_cancelled(&a->task)) || BZ_UNLIKELY(bz_mailbox_has_signals(&a->box));
}

/* Look at the signals. True: the actor has ended. `reaches`: it ends when it is unreachable (reaching.c). */
static BZ_ALWAYS_INLINE bool look_at_signals(struct bz_actor *a, struct bz_mpsc_node *first,
                                             bool is_handled, bool reaches)
{
    struct end e = {.first = first, .is_handled = is_handled, .why.kind = BLITZ_EXIT_UNREACHABLE};
    if (!is_cancelled(&a->task) && (!reaches || bz_reaching_wakes(a)) &&
        bz_signals_handle(a, bz_mailbox_take_signals(&a->box), &e.left, &e.why))
        return false;
    if (reaches)
        bz_reaching_end(a);
    die(a, &e);
    return true;
}

static BZ_NOINLINE bool ends_by_signal(struct bz_actor *a, struct bz_mpsc_node *first,
                                       bool is_handled)
{
    return look_at_signals(a, first, is_handled, false);
}

static BZ_NOINLINE bool reaching_ends_by_signal(struct bz_actor *a, struct bz_mpsc_node *first,
                                                bool is_handled)
{
    return look_at_signals(a, first, is_handled, true);
}

/* The handler of the first node has returned something else than 0, or the actor has a heap. True: it has ended. */
static BZ_ALWAYS_INLINE bool look_at_result(struct bz_actor *a, struct bz_mpsc_node *first, int rc,
                                            bool reaches)
{
    struct end e = {.first = first, .is_handled = true};
    if (rc == 0 && bz_actor_tidy(a))
        return false;
    reason_of(a, rc != 0 ? rc : blitz_actor_fail(-ENOMEM, "no_memory"), &e.why);
    if (reaches)
        bz_reaching_end(a);
    die(a, &e);
    return true;
}

static BZ_NOINLINE bool ends_by_handler(struct bz_actor *a, struct bz_mpsc_node *first, int rc)
{
    return look_at_result(a, first, rc, false);
}

static BZ_NOINLINE bool reaching_ends_by_handler(struct bz_actor *a, struct bz_mpsc_node *first,
                                                 int rc)
{
    return look_at_result(a, first, rc, true);
}

/* A message comes to an actor that is to end with its circle: it is dropped, as any message to the dead. */
static BZ_NOINLINE bool ends_condemned(struct bz_actor *a, struct bz_mpsc_node *first)
{
    struct end e = {.first = first, .is_handled = false, .why.kind = BLITZ_EXIT_UNREACHABLE};
    bz_reaching_end(a);
    die(a, &e);
    return true;
}

/* The last message was handled. True: nothing holds the actor, and it has ended. */
static BZ_NOINLINE bool ends_unreachable(struct bz_actor *a, struct bz_mpsc_node *first)
{
    struct end e = {.first = first, .is_handled = true, .why.kind = BLITZ_EXIT_UNREACHABLE};
    if (!bz_reaching_rests(a, first))
        return false;
    bz_reaching_end(a);
    die(a, &e);
    return true;
}

/* Handle the first node, and the signals before and after it: behind a bell, and before a rest. True: the actor has ended. */
static BZ_ALWAYS_INLINE bool handle_first(struct bz_actor *a, struct bz_mpsc_node *first,
                                          bool reaches)
{
    if (BZ_UNLIKELY(bz_mailbox_is_bell(&a->box, first))) {
        bz_mailbox_hear(&a->box, first);
    } else {
        if (BZ_UNLIKELY(is_asked(a)) &&
            (reaches ? reaching_ends_by_signal(a, first, false) : ends_by_signal(a, first, false)))
            return true;
        if (reaches && !bz_reaching_wakes(a))
            return ends_condemned(a, first);
        int rc = handle_letter(a, BZ_CONTAINER_OF(first, struct bz_letter, node));
        unsigned is_rare = (unsigned)rc | (a->task.slot.flags & BZ_ACTOR_HEAP);
        if (BZ_UNLIKELY(is_rare != 0) &&
            (reaches ? reaching_ends_by_handler(a, first, rc) : ends_by_handler(a, first, rc)))
            return true;
    }
    return BZ_UNLIKELY(is_asked(a)) &&
           (reaches ? reaching_ends_by_signal(a, first, true) : ends_by_signal(a, first, true));
}

static bool is_used_up(struct bz_actor *a)
{
    a->task.slot.flags += BZ_ACTOR_REDUCTION;
    return a->task.slot.flags / BZ_ACTOR_REDUCTION >= BZ_TURN_REDUCTIONS;
}

static BZ_ALWAYS_INLINE enum bz_ran turn(struct bz_actor *a, bool is_handled, bool reaches)
{
    struct bz_mpsc_node *first = bz_mailq_first(&a->box.queue);
    if (BZ_UNLIKELY(first ==
                    &a->box.stub)) { /* its first turn. It must not die before: mailbox.h I1 */
        first = bz_mailbox_step(&a->box, first);
        if (first == NULL)
            return BZ_RAN_AGAIN; /* a late push is in its gap */
    }
    for (unsigned count = 0; count < BZ_TURN_MESSAGES; count++) {
        if (BZ_UNLIKELY(is_handled)
                ? is_asked(a) && (reaches ? reaching_ends_by_signal(a, first, true)
                                          : ends_by_signal(a, first, true))
                : handle_first(a, first, reaches))
            return BZ_RAN_DONE;
        struct bz_mpsc_node *next = bz_mailbox_step(&a->box, first);
        if (next == NULL)
            return reaches && ends_unreachable(a, first) ? BZ_RAN_DONE : BZ_RAN_REST;
        free_node(a, first);
        first = next;
        is_handled = false;
        if (is_used_up(a))
            break;
    }
    if (BZ_LIKELY(!(a->task.slot.flags & BZ_ACTOR_MUTES)))
        return BZ_RAN_AGAIN;
    a->task.slot.flags |= BZ_ACTOR_NEXT;
    return BZ_RAN_REST;
}

static BZ_ALWAYS_INLINE enum bz_ran run(struct bz_task *t, bool reaches)
{
    struct bz_actor *a = bz_actor_of(t);
    bool is_done = t->slot.flags & BZ_ACTOR_DONE;
    t->slot.flags &= (BZ_ACTOR_REDUCTION - 1) & ~(uint32_t)BZ_ACTOR_DONE;
    t->marks = 0;
    enum bz_ran ran = turn(a, is_done, reaches);
    if (BZ_UNLIKELY(bz_mailbox_is_pressed(&a->box)) && ran != BZ_RAN_DONE) {
        if (ran == BZ_RAN_AGAIN)
            bz_actor_drop_oldest(a);
        bz_actor_relieve(a);
    }
    return ran;
}

static BZ_NOINLINE enum bz_ran actor_run(struct bz_task *t)
{
    BZ_STOP_EXCEPTIONS();
    return run(t, false);
}

static BZ_NOINLINE enum bz_ran reaching_run(struct bz_task *t)
{
    BZ_STOP_EXCEPTIONS();
    return run(t, true);
}

/* The last that the loop does to the actor: after it the actor may run elsewhere, or be gone. In the runtime. */
static void actor_rest(struct bz_task *t)
{
    struct bz_actor *a = bz_actor_of(t);
    struct bz_runtime *rt = t->rt;
    if (BZ_UNLIKELY(t->slot.flags & BZ_ACTOR_MUTES)) {
        bz_actor_mute(a);
        return;
    }
    struct bz_mpsc_node *first = bz_mailq_first(&a->box.queue);
    bool is_letter = !bz_mailbox_is_bell(&a->box, first);
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    if (BZ_LIKELY(bz_mailq_rest(&a->box.queue, first))) {
        if (BZ_LIKELY(is_letter))
            free_letter(bz_machine_self(), BZ_CONTAINER_OF(first, struct bz_letter, node));
        bz_actor_count_out(rt, bz_busy_here());
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

static void actor_cancel(struct bz_task *t)
{
    bz_actor_ring(bz_actor_of(t));
}

static const char *actor_idles(struct bz_task *t)
{
    struct bz_mailbox *b = &bz_actor_of(t)->box;
    if (bz_mailq_is_empty(&b->queue))
        return "";
    return bz_mailbox_is_muted(b) ? "an overloaded actor" : NULL;
}

static uintptr_t actor_begun_in(const struct bz_task *t)
{
    struct bz_actor *a = bz_actor_of((struct bz_task *)(uintptr_t)t); /* NOLINT: only read */
    const blitz_behaviour *b = bz_actor_behaviour(a);
    /* The functions of a version may be written again when no actor has it (versions.c), which we cannot know. */
    return b->version == 0 && b->handler_count > 0 ? (uintptr_t)b->handlers[0].fn : 0;
}

const struct bz_task_ops bz_actor_ops = {.kind = bz_actor_kind,
                                         .run = actor_run,
                                         .drop = actor_drop,
                                         .begun_in = actor_begun_in,
                                         .rest = actor_rest,
                                         .cancel = actor_cancel,
                                         .idles = actor_idles};

const struct bz_task_ops bz_reaching_ops = {.kind = bz_actor_kind,
                                            .run = reaching_run,
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
        if (first != &a->box.stub && !bz_mailbox_is_bell(&a->box, first))
            bz_letter_drop(t->rt, BZ_CONTAINER_OF(first, struct bz_letter, node));
    }
}

static void actors_begin(struct bz_runtime *rt, void *more)
{
    struct bz_actors *all = more;
    memset(all, 0, sizeof *all);
    bz_lock_init(&all->lock);
    bz_pressures_init(rt, all);
    bz_lock_init(&all->reach_lock);
    bz_lock_init_ranked(&all->quiet_lock, BZ_RANK_WAIT);
    bz_list_init(&all->quiet);
    bz_versions_init(&all->versions);
}

static void actors_end(struct bz_runtime *rt, void *more)
{
    bz_pressures_end(rt, ((struct bz_actors *)more)->pressure);
    bz_tickets_end(rt, more);
    bz_names_end(rt, more);
    bz_groups_end(rt, more);
    bz_references_end(rt, more);
    bz_versions_end(rt, &((struct bz_actors *)more)->versions);
    bz_traps_end(more);
}

static void actors_fini(struct bz_runtime *rt, void *more)
{
    bz_tickets_fini(rt, more);
    bz_versions_fini(rt, &((struct bz_actors *)more)->versions);
}

const struct bz_slot_ops bz_actor_slot_ops = {.make = slot_make,
                                              .reclaim = slot_reclaim,
                                              .more_bytes = sizeof(struct bz_actors),
                                              .begin = actors_begin,
                                              .end = actors_end,
                                              .fini = actors_fini};

struct bz_actors *bz_actors_make(struct bz_runtime *rt)
{
    return bz_slots_more(rt, &bz_actor_slot_ops);
}

/* ---- looking ---- */

bool blitz_actor_is_alive(blitz_actor_id id)
{
    struct bz_runtime *visited = bz_actor_visit(id);
    bool is_alive = bz_actor_find(id) != NULL;
    bz_actor_leave(visited);
    return is_alive;
}
