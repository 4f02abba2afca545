/*
 * relate.c - links, monitors and exit signals.
 *
 * A relation is kept on both sides, each by the actor it concerns and by no other. So there is no lock: an actor changes its own
 * list, and asks the other by a signal. The signal that asks for a relation becomes the entry in the other's list, and at the
 * end of its owner that entry becomes the signal that tells. So an actor can end without memory.
 *
 *     A: link(B)       LINK in A's list; LINK is sent, and is in B's list once B has seen it
 *     A ends           its LINK entry is sent to B as LINK_EXIT. B acts on it only if it has an entry of A
 *     A: monitor(B)    WATCHES in A's list, with a ref; MONITOR is sent to B
 *     B ends           its MONITOR entry is sent to A as DOWN. A acts on it only if it has the ref, and removes that
 *     A: demonitor     WATCHES is removed, so a DOWN that is on its way is dropped; the entry is sent to B as DEMONITOR
 *     A ends           its WATCHES entries are sent as DEMONITOR, or a long-lived B would keep them for ever
 *
 * So there is exactly one DOWN for a monitor. None is lost: B's entry exists until it is sent, or the request is refused and A
 * makes the DOWN itself. A second one finds no ref.
 *
 * Rejected: a lock for each pair (an actor's end would take the locks of all its relations); a table of relations for each
 * runtime (a lock that all actors share).
 *
 * I1  An entry in a list is the list owner's alone.
 * I2  Whatever is sent to a dead actor is answered by its death, or by the sender: bz_signal_send() says which.
 */
#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "life/handle.h"

/* ---- signals ---- */

struct bz_signal *bz_signal_new(struct bz_runtime *rt, enum bz_signal_kind kind)
{
    struct bz_signal *s = bz_letter_alloc(rt, sizeof *s);
    if (s == NULL)
        return NULL;
    memset(s, 0, sizeof *s);
    s->kind = kind;
    return s;
}

bool bz_signal_send(struct bz_runtime *rt, uint32_t index, uint32_t generation, struct bz_signal *s)
{
    struct bz_task *t = bz_slot_at(&rt->tasks.slots, index);
    if (t == NULL || !bz_mailbox_is_for(&bz_actor_of(t)->box, generation))
        return false;
    s->generation = generation;
    if (!bz_mailbox_signal(&bz_actor_of(t)->box, &s->link))
        return false;
    bz_actor_ring(bz_actor_of(t));
    return true;
}

/* Send it, or free it if there is no such actor. */
static void send_or_free(struct bz_runtime *rt, uint32_t index, uint32_t generation,
                         struct bz_signal *s)
{
    if (!bz_signal_send(rt, index, generation, s))
        bz_letter_free(rt, s);
}

/* The sender of a signal, when it is an actor. */
static void sign(struct bz_signal *s, struct bz_actor *me)
{
    s->peer_index = me->task.slot.index;
    s->peer_generation = bz_actor_generation(me);
}

/* ---- lists ---- */

static void add(struct bz_actor *a, struct bz_signal *s)
{
    s->next = a->relations;
    a->relations = s;
}

static bool is_match(const struct bz_signal *s, uint32_t kind, uint32_t index, uint32_t generation,
                     uint64_t ref)
{
    return s->kind == kind && s->ref == ref &&
           (kind == BZ_SIGNAL_WATCHES ||
            (s->peer_index == index && s->peer_generation == generation));
}

/* Take an entry out of the list; NULL if there is none. Of a WATCHES entry the ref alone counts. */
static struct bz_signal *take(struct bz_actor *a, uint32_t kind, uint32_t index,
                              uint32_t generation, uint64_t ref)
{
    for (struct bz_signal **at = &a->relations; *at != NULL; at = &(*at)->next)
        if (is_match(*at, kind, index, generation, ref)) {
            struct bz_signal *s = *at;
            *at = s->next;
            return s;
        }
    return NULL;
}

static void remove_and_free(struct bz_actor *a, uint32_t kind, uint32_t index, uint32_t generation,
                            uint64_t ref)
{
    struct bz_signal *s = take(a, kind, index, generation, ref);
    if (s != NULL)
        bz_letter_free(a->task.rt, s);
}

bool bz_relations_owe(struct bz_actor *a, blitz_reply_to to)
{
    struct bz_signal *s = bz_signal_new(a->task.rt, BZ_SIGNAL_OWES);
    if (s == NULL)
        return false;
    s->peer_index = to.index;
    s->peer_generation = to.creation;
    s->ref = to.generation;
    add(a, s);
    return true;
}

void bz_relations_take_reason(struct bz_actor *a, blitz_exit_reason *why)
{
    struct bz_signal *s = take(a, BZ_SIGNAL_REASON, 0, 0, 0);
    if (s == NULL)
        return;
    *why = s->reason;
    bz_letter_free(a->task.rt, s);
}

/* ---- a living actor's signals ---- */

/* A message about an actor that has ended. Returns what the handler returned. */
static int tell(struct bz_actor *a, uint32_t what, const struct bz_signal *s)
{
    blitz_down down = {.ref = s->ref,
                       .who = bz_actor_id_make(a->task.rt, s->peer_index, s->peer_generation),
                       .reason = s->reason};
    blitz_msg m = {.what = what, .size = sizeof down, .data = &down, .from = down.who};
    return bz_actor_handle(a, &m);
}

/* The result of a handler as a verdict. */
static bool goes_on(struct bz_actor *a, int rc, blitz_exit_reason *why)
{
    if (rc == 0)
        return true;
    *why = (blitz_exit_reason){.kind = rc < 0 ? BLITZ_EXIT_ERROR : BLITZ_EXIT_NORMAL,
                               .code = rc < 0 ? rc : 0};
    if (a->task.slot.flags & BZ_ACTOR_STOPS)
        bz_relations_take_reason(a, why);
    return false;
}

/* An exit signal. False: the actor ends of it. */
static bool hear_exit(struct bz_actor *a, struct bz_signal *s, blitz_exit_reason *why)
{
    if (a->task.slot.flags & BZ_ACTOR_TRAPS)
        return goes_on(a, tell(a, BLITZ_MSG_EXIT, s), why);
    *why = s->reason;
    return s->reason.kind == BLITZ_EXIT_NORMAL;
}

static bool hear_link_exit(struct bz_actor *a, struct bz_signal *s, blitz_exit_reason *why)
{
    struct bz_signal *mine = take(a, BZ_SIGNAL_LINK, s->peer_index, s->peer_generation, 0);
    if (mine == NULL)
        return true; /* it was unlinked */
    bz_letter_free(a->task.rt, mine);
    return hear_exit(a, s, why);
}

static bool hear_down(struct bz_actor *a, struct bz_signal *s, blitz_exit_reason *why)
{
    struct bz_signal *mine = take(a, BZ_SIGNAL_WATCHES, 0, 0, s->ref);
    if (mine == NULL)
        return true; /* it was demonitored, or told before */
    bz_letter_free(a->task.rt, mine);
    return goes_on(a, tell(a, BLITZ_MSG_DOWN, s), why);
}

/* Handle one signal and free it, unless it is kept as a relation. False: the actor ends of it. */
static bool hear(struct bz_actor *a, struct bz_signal *s, blitz_exit_reason *why)
{
    bool lives = true;
    switch ((enum bz_signal_kind)s->kind) {
    case BZ_SIGNAL_LINK: /* once for each peer */
        remove_and_free(a, BZ_SIGNAL_LINK, s->peer_index, s->peer_generation, 0);
        add(a, s);
        return true;
    case BZ_SIGNAL_MONITOR:
    case BZ_SIGNAL_AWAIT:
    case BZ_SIGNAL_NAME:
        add(a, s);
        return true;
    case BZ_SIGNAL_UNLINK:
        remove_and_free(a, BZ_SIGNAL_LINK, s->peer_index, s->peer_generation, 0);
        break;
    case BZ_SIGNAL_DEMONITOR:
        remove_and_free(a, s->peer_generation != 0 ? BZ_SIGNAL_MONITOR : BZ_SIGNAL_AWAIT,
                        s->peer_index, s->peer_generation, s->ref);
        break;
    case BZ_SIGNAL_EXIT:
        lives = hear_exit(a, s, why);
        break;
    case BZ_SIGNAL_LINK_EXIT:
        lives = hear_link_exit(a, s, why);
        break;
    case BZ_SIGNAL_DOWN:
        lives = hear_down(a, s, why);
        break;
    case BZ_SIGNAL_STOP:
        *why = s->reason;
        lives = false;
        break;
    case BZ_SIGNAL_WATCHES:
    case BZ_SIGNAL_OWES:
    case BZ_SIGNAL_REASON:
        BZ_CHECK(0, "signal %u was sent", s->kind);
    }
    bz_letter_free(a->task.rt, s);
    return lives;
}

/* ---- signals for the dead ---- */

static void end_one(struct bz_runtime *rt, uint32_t index, uint32_t generation, struct bz_signal *s,
                    const blitz_exit_reason *why);

/* A signal for an actor that had this memory before: answer for it. */
static void answer_for_the_dead(struct bz_actor *a, struct bz_signal *s)
{
    static const blitz_exit_reason noproc = {.kind = BLITZ_EXIT_NOPROC};
    end_one(a->task.rt, a->task.slot.index, s->generation, s, &noproc);
}

bool bz_signals_handle(struct bz_actor *a, struct bz_signal_link *s, struct bz_signal_link **rest,
                       blitz_exit_reason *why)
{
    while (s != NULL) {
        struct bz_signal *signal = BZ_CONTAINER_OF(s, struct bz_signal, link);
        s = bz_get(&s->next);
        if (signal->generation != bz_actor_generation(a)) {
            answer_for_the_dead(a, signal);
        } else if (!hear(a, signal, why)) {
            *rest = s;
            return false;
        }
    }
    *rest = NULL;
    return true;
}

/* True if the signal asks for an answer at the end of its receiver. */
static bool is_kept(const struct bz_signal *s)
{
    return s->kind == BZ_SIGNAL_LINK || s->kind == BZ_SIGNAL_MONITOR ||
           s->kind == BZ_SIGNAL_AWAIT || s->kind == BZ_SIGNAL_NAME;
}

void bz_signals_bury(struct bz_actor *a, struct bz_signal_link *s)
{
    while (s != NULL) {
        struct bz_signal *signal = BZ_CONTAINER_OF(s, struct bz_signal, link);
        blitz_exit_reason none;
        s = bz_get(&s->next);
        if (is_kept(signal))
            add(a, signal);
        else if (signal->kind == BZ_SIGNAL_UNLINK || signal->kind == BZ_SIGNAL_DEMONITOR)
            (void)hear(a, signal, &none);
        else
            bz_letter_free(a->task.rt, signal);
    }
}

/* Tell one relation that the actor `index` has ended. The entry is sent or freed. */
static void end_one(struct bz_runtime *rt, uint32_t index, uint32_t generation, struct bz_signal *s,
                    const blitz_exit_reason *why)
{
    uint32_t to = s->peer_index, to_generation = s->peer_generation;
    blitz_reply_to ticket = {s->peer_index, (uint32_t)s->ref, rt->creation};
    switch ((enum bz_signal_kind)s->kind) {
    case BZ_SIGNAL_LINK:
        s->kind = BZ_SIGNAL_LINK_EXIT;
        break;
    case BZ_SIGNAL_MONITOR:
        s->kind = BZ_SIGNAL_DOWN;
        break;
    case BZ_SIGNAL_WATCHES:
        s->kind = BZ_SIGNAL_DEMONITOR;
        break;
    case BZ_SIGNAL_AWAIT:
        bz_ticket_answer(rt, ticket, 0, why, sizeof *why);
        bz_letter_free(rt, s);
        return;
    case BZ_SIGNAL_OWES:
        bz_ticket_answer(rt, ticket, -ESRCH, NULL, 0);
        bz_letter_free(rt, s);
        return;
    case BZ_SIGNAL_NAME:
        (void)bz_name_remove(rt, s->reason.text, index, generation);
        bz_letter_free(rt, s);
        return;
    default:
        bz_letter_free(rt, s);
        return;
    }
    s->peer_index = index;
    s->peer_generation = generation;
    s->reason = *why;
    send_or_free(rt, to, to_generation, s);
}

void bz_relations_end(struct bz_actor *a, uint32_t generation, const blitz_exit_reason *why)
{
    struct bz_signal *s = a->relations;
    a->relations = NULL;
    for (struct bz_signal *next; s != NULL; s = next) {
        next = s->next;
        end_one(a->task.rt, a->task.slot.index, generation, s, why);
    }
}

/* ---- the calling actor ---- */

/* Send a request to the other; if it is dead, the answer comes to the caller itself. */
static void ask(struct bz_actor *me, blitz_actor_id other, struct bz_signal *s)
{
    static const blitz_exit_reason noproc = {.kind = BLITZ_EXIT_NOPROC};
    sign(s, me);
    if (other.node != 0 || other.creation != me->task.rt->creation ||
        !bz_signal_send(me->task.rt, other.index, other.generation, s))
        end_one(me->task.rt, other.index, other.generation, s, &noproc);
}

static struct bz_signal *new_for(struct bz_actor *me, enum bz_signal_kind kind,
                                 blitz_actor_id other)
{
    struct bz_signal *s = bz_signal_new(me->task.rt, kind);
    if (s != NULL) {
        s->peer_index = other.index;
        s->peer_generation = other.generation;
    }
    return s;
}

int blitz_actor_link(blitz_actor_id other)
{
    struct bz_actor *me = bz_actor_self();
    if (me == NULL || blitz_actor_id_equal(other, bz_actor_id_of(me)))
        return -EINVAL;
    struct bz_signal *mine = new_for(me, BZ_SIGNAL_LINK, other);
    struct bz_signal *its = new_for(me, BZ_SIGNAL_LINK, other);
    if (mine == NULL || its == NULL) {
        if (mine != NULL)
            bz_letter_free(me->task.rt, mine);
        if (its != NULL)
            bz_letter_free(me->task.rt, its);
        return -ENOMEM;
    }
    remove_and_free(me, BZ_SIGNAL_LINK, other.index, other.generation, 0);
    add(me, mine);
    ask(me, other, its);
    return 0;
}

int blitz_actor_unlink(blitz_actor_id other)
{
    struct bz_actor *me = bz_actor_self();
    if (me == NULL)
        return -EINVAL;
    struct bz_signal *s = take(me, BZ_SIGNAL_LINK, other.index, other.generation, 0);
    if (s == NULL)
        return 0;
    s->kind = BZ_SIGNAL_UNLINK;
    sign(s, me);
    send_or_free(me->task.rt, other.index, other.generation, s);
    return 0;
}

bool blitz_actor_trap_exit(bool traps)
{
    struct bz_actor *me = bz_actor_self();
    if (me == NULL)
        return false;
    bool was = me->task.slot.flags & BZ_ACTOR_TRAPS;
    me->task.slot.flags &= ~(uint32_t)BZ_ACTOR_TRAPS;
    me->task.slot.flags |= traps ? BZ_ACTOR_TRAPS : 0;
    return was;
}

int blitz_actor_monitor(blitz_actor_id other, uint64_t *ref)
{
    struct bz_actor *me = bz_actor_self();
    if (me == NULL || ref == NULL)
        return -EINVAL;
    struct bz_signal *mine = new_for(me, BZ_SIGNAL_WATCHES, other);
    struct bz_signal *its = new_for(me, BZ_SIGNAL_MONITOR, other);
    if (mine == NULL || its == NULL) {
        if (mine != NULL)
            bz_letter_free(me->task.rt, mine);
        if (its != NULL)
            bz_letter_free(me->task.rt, its);
        return -ENOMEM;
    }
    /* relaxed: uniqueness is enough */
    *ref = mine->ref = its->ref = bz_fetch_add_relaxed(&bz_actors_of(me->task.rt)->refs, 1) + 1;
    add(me, mine);
    ask(me, other, its);
    return 0;
}

int blitz_actor_demonitor(uint64_t ref)
{
    struct bz_actor *me = bz_actor_self();
    if (me == NULL)
        return -EINVAL;
    struct bz_signal *s = take(me, BZ_SIGNAL_WATCHES, 0, 0, ref);
    if (s == NULL)
        return -ESRCH;
    uint32_t to = s->peer_index, to_generation = s->peer_generation;
    s->kind = BZ_SIGNAL_DEMONITOR;
    sign(s, me);
    send_or_free(me->task.rt, to, to_generation, s);
    return 0;
}

/* ---- ending others, and oneself ---- */

int blitz_actor_kill(blitz_actor_id id)
{
    struct bz_actor *a = bz_actor_find(id);
    if (a == NULL || !bz_word_try_ref(&a->task.word))
        return -ESRCH;
    bool is_it = bz_mailbox_is_for(&a->box, id.generation); /* it stays so: we have a reference */
    if (is_it) {
        bz_mailbox_kill(&a->box);
        bz_task_cancel(&a->task);
    }
    bz_task_unref(&a->task);
    return is_it ? 0 : -ESRCH;
}

static int send_exit(blitz_actor_id id, enum bz_signal_kind kind, const blitz_exit_reason *why)
{
    struct bz_actor *a = bz_actor_find(id), *me = bz_actor_self();
    if (a == NULL)
        return -ESRCH;
    struct bz_runtime *rt = a->task.rt;
    struct bz_signal *s = bz_signal_new(rt, kind);
    if (s == NULL)
        return -ENOMEM;
    s->reason = *why;
    if (me != NULL && me->task.rt == rt)
        sign(s, me);
    if (bz_signal_send(rt, id.index, id.generation, s))
        return 0;
    bz_letter_free(rt, s);
    return -ESRCH;
}

int blitz_actor_stop(blitz_actor_id id)
{
    static const blitz_exit_reason shutdown = {.kind = BLITZ_EXIT_SHUTDOWN};
    return send_exit(id, BZ_SIGNAL_STOP, &shutdown);
}

int blitz_actor_exit_send(blitz_actor_id id, const blitz_exit_reason *why)
{
    if (why->kind == BLITZ_EXIT_KILLED)
        return blitz_actor_kill(id);
    return send_exit(id, BZ_SIGNAL_EXIT, why);
}

int blitz_actor_exit(const blitz_exit_reason *why)
{
    struct bz_actor *me = bz_actor_self();
    int rc = why->kind == BLITZ_EXIT_ERROR && why->code < 0 ? why->code : BLITZ_ACTOR_STOP;
    struct bz_signal *s = me != NULL ? bz_signal_new(me->task.rt, BZ_SIGNAL_REASON) : NULL;
    if (s == NULL)
        return me == NULL ? -EINVAL : rc; /* without memory: the code alone */
    s->reason = *why;
    s->reason.text[BLITZ_EXIT_TEXT_MAX - 1] = '\0';
    add(me, s);
    me->task.slot.flags |= BZ_ACTOR_STOPS;
    return rc;
}

int blitz_actor_fail(int code, const char *text)
{
    blitz_exit_reason why = {.kind = BLITZ_EXIT_ERROR, .code = code};
    size_t size = text != NULL ? strnlen(text, BLITZ_EXIT_TEXT_MAX - 1) : 0;
    if (size > 0)
        memcpy(why.text, text, size);
    return blitz_actor_exit(&why);
}
