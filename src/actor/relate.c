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
 * A task that receives has the relations of its porter (receive.c), the actor behind its id. So there are two that change
 * that list, the porter and the task, and they take the lock of the porter's header. The task changes it only while the
 * porter lives. A DOWN or an exit goes through the inbox of the task. The entry stays until the task receives the message, so that
 * an unlink or a demonitor before that drops it.
 *
 * A link with an actor of another node has an entry here, and one in the node (node/relations.c). The end of the actor tells the
 * other side itself, because the node may hear of a link when its actor is dead and its reason forgotten.
 *
 * A reply token that an actor keeps is in its list as well, so that its end answers the call. The answer does not remove the entry: any
 * thread may give it. So the actor looks for entries that are answered when their number has doubled since it last looked. The
 * newest entry has both numbers.
 *
 * A request that the other has not heard yet is withdrawn instead (hearing.h): the other drops it. So an entry that an actor has
 * made by a request has a pointer to it.
 *
 * Rejected: a lock for each pair (an actor's end would take the locks of all its relations); a table of relations for each
 * runtime (a lock that all actors share).
 *
 * I1  An entry in a list is the list owner's alone; that of a porter also its task's.
 * I2  Whatever is sent to a dead actor is answered by its death, or by the sender: bz_signal_send() says which.
 * I3  The list of a porter is guarded by task.lock. Its task looks at the generation under that lock, and holds a reference, so that
 *     the memory is not another actor's.
 * I4  An entry of a porter that a message in the inbox tells of is taken by the task, with the message.
 * I5  A handler that hears a signal may be killed in it, as in a message: no other one runs after it.
 * I6  While an entry of a living actor is in its list, the request that it points to exists: the other frees a request only when
 *     it hears that the entry is gone, and otherwise sends it back. An actor that is linked again forgets the pointer, because
 *     the second request frees the first. Entries of tasks have none: their ids may end meanwhile. If the other is refused because
 *     the actor has ended, it frees the request, and has acquired the actor's last look (mailbox.h [H]).
 * I7  A link with an actor of another node has a number, and so has the node's half. An exit or an unlink of the node has the number of its
 *     link. A lost connection ends links whose actors live. So an exit may come when the actor has linked again, and must not end that link.
 */
#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "actor/far.h"
#include "actor/relating.h"
#include "life/handle.h"

enum { OWED_FEW = 32 }; /* kept tokens that are not looked at */

/* ---- signals ---- */

struct bz_signal *bz_signal_new(struct bz_runtime *rt, enum bz_signal_kind kind)
{
    struct bz_signal *s = bz_letter_alloc(rt, sizeof *s);
    if (s == NULL)
        return NULL;
    s->kind = kind; /* field by field: the text of the reason is long, and most signals have none */
    s->peer_index = s->peer_generation = 0;
    s->ref = 0;
    s->its = NULL;
    bz_hearing_init(&s->hearing);
    s->reason.kind = BLITZ_EXIT_NORMAL;
    s->reason.code = 0;
    s->reason.text[0] = '\0';
    return s;
}

bool bz_signal_send(struct bz_runtime *rt, uint32_t index, uint32_t generation, struct bz_signal *s)
{
    struct bz_task *t = bz_slot_at(&rt->tasks.slots, index);
    if (t == NULL || !bz_mailbox_takes_signals(&bz_actor_of(t)->box, generation))
        return false;
    s->generation = generation;
    bool is_first;
    if (!bz_mailbox_signal(&bz_actor_of(t)->box, &s->link, &is_first))
        return false;
    if (is_first || bz_is_plain(rt))
        bz_actor_ring(bz_actor_of(t));
    return true;
}

struct bz_signal *bz_signal_new_far(struct bz_runtime *rt, enum bz_signal_kind kind,
                                    blitz_actor_id far)
{
    struct bz_signal *s = bz_signal_new(rt, kind);
    if (s == NULL)
        return NULL;
    s->peer_index = far.index;
    s->peer_generation = far.generation;
    s->far_node = far.node;
    s->far_creation = far.creation;
    return s;
}

static bool is_far(const struct bz_signal *s)
{
    return s->kind >= BZ_SIGNAL_FAR_LINK;
}

/* Send it, or free it if there is no such actor. */
static void send_or_free(struct bz_runtime *rt, uint32_t index, uint32_t generation,
                         struct bz_signal *s)
{
    if (!bz_signal_send(rt, index, generation, s))
        bz_letter_free(rt, s);
}

/* ---- lists ---- */

/* I3. Returns whether it was locked, for unlock_list(). */
static bool lock_list(struct bz_actor *a)
{
    if (BZ_LIKELY(!bz_actor_is_porter(a)))
        return false;
    bz_lock_take(&a->task.lock, a->task.rt->os);
    return true;
}

static void unlock_list(struct bz_actor *a, bool is_locked)
{
    if (BZ_UNLIKELY(is_locked))
        bz_lock_drop(&a->task.lock, a->task.rt->os);
}

static void add(struct bz_actor *a, struct bz_signal *s)
{
    bool is_locked = lock_list(a);
    s->next = a->relations;
    a->relations = s;
    unlock_list(a, is_locked);
}

static bool is_match(const struct bz_signal *s, uint32_t kind, uint32_t index, uint32_t generation,
                     uint64_t ref)
{
    return s->kind == kind && s->ref == ref &&
           (kind == BZ_SIGNAL_WATCHES || kind == BZ_SIGNAL_FAR_WATCHES ||
            (s->peer_index == index && s->peer_generation == generation));
}

/* The place of an entry in the list; at its end if there is none. Of a WATCHES entry the ref alone counts. */
static struct bz_signal **find(struct bz_actor *a, uint32_t kind, uint32_t index,
                               uint32_t generation, uint64_t ref)
{
    struct bz_signal **at = &a->relations;
    while (*at != NULL && !is_match(*at, kind, index, generation, ref))
        at = &(*at)->next;
    return at;
}

/* True if s is a link with that actor of another node; ref 0: any such link. I7 */
static bool is_far_link(const struct bz_signal *s, blitz_actor_id far, uint64_t ref)
{
    return s->kind == BZ_SIGNAL_FAR_LINK && (ref == 0 || s->ref == ref) &&
           s->peer_index == far.index && s->peer_generation == far.generation &&
           s->far_node == far.node && s->far_creation == far.creation;
}

/* The place of such a link; at the end of the list if there is none. */
static struct bz_signal **find_far_link(struct bz_actor *a, blitz_actor_id far, uint64_t ref)
{
    struct bz_signal **at = &a->relations;
    while (*at != NULL && !is_far_link(*at, far, ref))
        at = &(*at)->next;
    return at;
}

/* Take an entry out of the list; NULL if there is none. */
static struct bz_signal *take(struct bz_actor *a, uint32_t kind, uint32_t index,
                              uint32_t generation, uint64_t ref)
{
    bool is_locked = lock_list(a);
    struct bz_signal **at = find(a, kind, index, generation, ref), *s = *at;
    if (s != NULL)
        *at = s->next;
    unlock_list(a, is_locked);
    return s;
}

static bool has(struct bz_actor *a, uint32_t kind, uint32_t index, uint32_t generation,
                uint64_t ref)
{
    bool is_locked = lock_list(a);
    bool is_there = *find(a, kind, index, generation, ref) != NULL;
    unlock_list(a, is_locked);
    return is_there;
}

static void remove_and_free(struct bz_actor *a, uint32_t kind, uint32_t index, uint32_t generation,
                            uint64_t ref)
{
    struct bz_signal *s = take(a, kind, index, generation, ref);
    if (s != NULL)
        bz_letter_free(a->task.rt, s);
}

static blitz_actor_id far_of(const struct bz_signal *s)
{
    return (blitz_actor_id){s->peer_index, s->peer_generation, s->far_node, s->far_creation};
}

/* True if there was such a link. It is removed. */
static bool remove_far_link(struct bz_actor *a, blitz_actor_id far, uint64_t ref)
{
    bool is_locked = lock_list(a);
    struct bz_signal **at = find_far_link(a, far, ref), *s = *at;
    if (s != NULL)
        *at = s->next;
    unlock_list(a, is_locked);
    if (s != NULL)
        bz_letter_free(a->task.rt, s);
    return s != NULL;
}

static bool has_far_link(struct bz_actor *a, blitz_actor_id far, uint64_t ref)
{
    bool is_locked = lock_list(a);
    bool is_there = *find_far_link(a, far, ref) != NULL;
    unlock_list(a, is_locked);
    return is_there;
}

static void forget_name(struct bz_actor *a, const char *text)
{
    bool is_locked = lock_list(a);
    struct bz_signal **at = &a->relations, *s;
    while ((s = *at) != NULL && (s->kind != BZ_SIGNAL_NAME || strcmp(s->reason.text, text) != 0))
        at = &s->next;
    if (s != NULL)
        *at = s->next;
    unlock_list(a, is_locked);
    if (s != NULL)
        bz_letter_free(a->task.rt, s);
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
    blitz_down down = {.ref = what != BLITZ_MSG_EXIT ? s->ref : 0,
                       .who = is_far(s)
                                  ? far_of(s)
                                  : bz_actor_id_make(a->task.rt, s->peer_index, s->peer_generation),
                       .reason = s->reason};
    blitz_msg m = {.what = what, .size = sizeof down, .data = &down, .from = down.who};
    return bz_actor_handle(a, &m);
}

/* The result of a handler as a verdict. */
static bool goes_on(struct bz_actor *a, int rc, blitz_exit_reason *why)
{
    if (rc == 0 && BZ_UNLIKELY(a->task.slot.flags & BZ_ACTOR_HEAP) && !bz_actor_tidy(a))
        rc = blitz_actor_fail(-ENOMEM, "no_memory");
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
    if (bz_mailbox_is_trapping(&a->box))
        return goes_on(a, tell(a, BLITZ_MSG_EXIT, s), why);
    *why = s->reason;
    return s->reason.kind == BLITZ_EXIT_NORMAL;
}

static bool hear_link_exit(struct bz_actor *a, struct bz_signal *s, blitz_exit_reason *why)
{
    if (bz_actor_is_porter(a) && bz_mailbox_is_trapping(&a->box))
        return !has(a, BZ_SIGNAL_LINK, s->peer_index, s->peer_generation, 0) ||
               goes_on(a, tell(a, BZ_MSG_LINK_EXIT, s), why); /* I4 */
    struct bz_signal *mine = take(a, BZ_SIGNAL_LINK, s->peer_index, s->peer_generation, 0);
    if (mine == NULL)
        return true; /* it was unlinked */
    bz_letter_free(a->task.rt, mine);
    return hear_exit(a, s, why);
}

static bool hear_down(struct bz_actor *a, struct bz_signal *s, blitz_exit_reason *why)
{
    if (bz_actor_is_porter(a))
        return !has(a, BZ_SIGNAL_WATCHES, 0, 0, s->ref) ||
               goes_on(a, tell(a, BLITZ_MSG_DOWN, s), why); /* I4 */
    struct bz_signal *mine = take(a, BZ_SIGNAL_WATCHES, 0, 0, s->ref);
    if (mine == NULL)
        return true; /* it was demonitored, or told before */
    bz_letter_free(a->task.rt, mine);
    return goes_on(a, tell(a, BLITZ_MSG_DOWN, s), why);
}

/* The same for actors of other nodes. */
static bool hear_far_exit(struct bz_actor *a, struct bz_signal *s, blitz_exit_reason *why)
{
    if (bz_actor_is_porter(a) && bz_mailbox_is_trapping(&a->box))
        return !has_far_link(a, far_of(s), s->ref) ||
               goes_on(a, tell(a, BZ_MSG_LINK_EXIT, s), why); /* I4 */
    return !remove_far_link(a, far_of(s), s->ref) || hear_exit(a, s, why);
}

static bool hear_far_down(struct bz_actor *a, struct bz_signal *s, blitz_exit_reason *why)
{
    if (bz_actor_is_porter(a))
        return !has(a, BZ_SIGNAL_FAR_WATCHES, 0, 0, s->ref) ||
               goes_on(a, tell(a, BLITZ_MSG_DOWN, s), why); /* I4 */
    struct bz_signal *mine = take(a, BZ_SIGNAL_FAR_WATCHES, 0, 0, s->ref);
    if (mine == NULL)
        return true; /* it was demonitored, or told before */
    bz_letter_free(a->task.rt, mine);
    return goes_on(a, tell(a, BLITZ_MSG_DOWN, s), why);
}

/* True if the signal asks for an answer at the end of its receiver. */
static bool is_kept(const struct bz_signal *s)
{
    return s->kind == BZ_SIGNAL_FAR_LINK || s->kind == BZ_SIGNAL_LINK ||
           s->kind == BZ_SIGNAL_MONITOR || s->kind == BZ_SIGNAL_AWAIT ||
           s->kind == BZ_SIGNAL_NAME || s->kind == BZ_SIGNAL_GROUP;
}

/* Such a request: it becomes an entry, or is withdrawn. A link is there once for each peer. */
static void keep(struct bz_actor *a, struct bz_signal *s)
{
    if (!bz_hearing_try_hear(&s->hearing)) {
        bz_letter_free(a->task.rt, s);
        return;
    }
    if (s->kind == BZ_SIGNAL_LINK)
        remove_and_free(a, BZ_SIGNAL_LINK, s->peer_index, s->peer_generation, 0);
    else if (s->kind == BZ_SIGNAL_FAR_LINK)
        (void)remove_far_link(a, far_of(s), 0);
    add(a, s);
}

/* Handle one signal and free it, unless it is kept as a relation. False: the actor ends of it. */
static bool hear(struct bz_actor *a, struct bz_signal *s, blitz_exit_reason *why)
{
    bool lives = true;
    switch ((enum bz_signal_kind)s->kind) {
    case BZ_SIGNAL_LINK:
    case BZ_SIGNAL_MONITOR:
    case BZ_SIGNAL_AWAIT:
    case BZ_SIGNAL_NAME:
    case BZ_SIGNAL_GROUP:
    case BZ_SIGNAL_FAR_LINK:
        keep(a, s);
        return true;
    case BZ_SIGNAL_UNNAME:
        forget_name(a, s->reason.text);
        break;
    case BZ_SIGNAL_UNGROUP:
        remove_and_free(a, BZ_SIGNAL_GROUP, 0, 0, s->ref);
        break;
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
    case BZ_SIGNAL_UPGRADE:
        return goes_on(a, s->ask->hear(a, s), why);
    case BZ_SIGNAL_STOP:
        *why = s->reason;
        lives = false;
        break;
    case BZ_SIGNAL_FAR_UNLINK:
        (void)remove_far_link(a, far_of(s), s->ref);
        break;
    case BZ_SIGNAL_FAR_EXIT:
        lives = hear_far_exit(a, s, why);
        break;
    case BZ_SIGNAL_FAR_ENDS:
        lives = hear_exit(a, s, why);
        break;
    case BZ_SIGNAL_FAR_DOWN:
        lives = hear_far_down(a, s, why);
        break;
    case BZ_SIGNAL_WATCHES:
    case BZ_SIGNAL_FAR_WATCHES:
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
        } else if (!hear(a, signal, why) || bz_word_is_cancelled(&a->task.word)) { /* I5 */
            *rest = s;
            return false;
        }
    }
    *rest = NULL;
    return true;
}

void bz_signals_bury(struct bz_actor *a, struct bz_signal_link *s)
{
    while (s != NULL) {
        struct bz_signal *signal = BZ_CONTAINER_OF(s, struct bz_signal, link);
        blitz_exit_reason none;
        s = bz_get(&s->next);
        if (is_kept(signal))
            keep(a, signal);
        else if (signal->kind == BZ_SIGNAL_UNLINK || signal->kind == BZ_SIGNAL_DEMONITOR)
            (void)hear(a, signal, &none);
        else if (signal->kind == BZ_SIGNAL_UPGRADE)
            signal->ask->bury(a->task.rt, signal);
        else
            bz_letter_free(a->task.rt, signal);
    }
}

/* A call that will not be answered by its keeper, which may be of another runtime than its caller. */
static blitz_reply_to token_of(const struct bz_signal *s)
{
    return (blitz_reply_to){s->peer_index, (uint32_t)s->ref, s->peer_generation};
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
        (void)blitz_actor_reply_error(token_of(s), -ESRCH);
        bz_letter_free(rt, s);
        return;
    case BZ_SIGNAL_NAME:
        (void)bz_name_remove(rt, s->reason.text, index, generation);
        bz_letter_free(rt, s);
        return;
    case BZ_SIGNAL_GROUP:
        (void)bz_group_remove(rt, s->reason.text, index, generation);
        bz_letter_free(rt, s);
        return;
    case BZ_SIGNAL_UPGRADE:
        s->ask->bury(rt, s);
        return;
    case BZ_SIGNAL_FAR_LINK:
        bz_far_ended(bz_actor_id_make(rt, index, generation), far_of(s), why);
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

/* End the relations that are names and groups, or all. */
static void end_some(struct bz_actor *a, bool all, uint32_t generation,
                     const blitz_exit_reason *why)
{
    for (struct bz_signal **at = &a->relations, *s; (s = *at) != NULL;) {
        if (all || s->kind == BZ_SIGNAL_NAME || s->kind == BZ_SIGNAL_GROUP) {
            *at = s->next;
            end_one(a->task.rt, a->task.slot.index, generation, s, why);
        } else {
            at = &s->next;
        }
    }
}

void bz_relations_unname(struct bz_actor *a)
{
    static const blitz_exit_reason none;
    bool is_locked = lock_list(a);
    end_some(a, false, bz_actor_generation(a), &none);
    unlock_list(a, is_locked);
}

/* An actor that is told of the end finds the names free, and no member in a group: also those that came late. */
void bz_relations_end(struct bz_actor *a, uint32_t generation, const blitz_exit_reason *why,
                      bool has_late)
{
    unlock_list(a, lock_list(a)); /* a task that comes later finds the id dead: I3 */
    if (a->relations == NULL)
        return;
    if (has_late)
        end_some(a, false, generation, why);
    end_some(a, true, generation, why);
}

/* ---- the caller: relating.c ---- */

int bz_relating_begin(struct bz_relating *r)
{
    blitz_actor_id id;
    r->a = bz_actor_self();
    r->is_task = false;
    if (r->a != NULL) {
        r->generation = bz_actor_generation(r->a);
        return 0;
    }
    if (!bz_receiver_self(&id))
        return -EINVAL;
    r->a = bz_actor_find(id);
    if (r->a == NULL || !bz_word_try_ref(&r->a->task.word))
        return -ECANCELED;
    r->is_task = true;
    r->generation = id.generation;
    if (bz_mailbox_is_for(&r->a->box, id.generation))
        return 0;
    bz_relating_end(r);
    return -ECANCELED;
}

void bz_relating_end(struct bz_relating *r)
{
    if (r->is_task)
        bz_task_unref(&r->a->task);
}

blitz_actor_id bz_relating_id(const struct bz_relating *r)
{
    return bz_actor_id_make(r->a->task.rt, r->a->task.slot.index, r->generation);
}

/* I3. Of an actor: true. */
static bool lock_living(const struct bz_relating *r)
{
    if (!r->is_task)
        return true;
    bz_lock_take(&r->a->task.lock, r->a->task.rt->os);
    if (bz_mailbox_is_for(&r->a->box, r->generation))
        return true;
    bz_lock_drop(&r->a->task.lock, r->a->task.rt->os);
    return false;
}

static void unlock_living(const struct bz_relating *r)
{
    if (r->is_task)
        bz_lock_drop(&r->a->task.lock, r->a->task.rt->os);
}

bool bz_relating_is_alive(const struct bz_relating *r)
{
    if (!lock_living(r))
        return false;
    unlock_living(r); /* the end of the id takes the lock before it tells: bz_relations_end() */
    return true;
}

bool bz_relating_add(const struct bz_relating *r, struct bz_signal *s)
{
    if (!lock_living(r))
        return false;
    s->next = r->a->relations;
    r->a->relations = s;
    unlock_living(r);
    return true;
}

static bool is_answered(const struct bz_signal *s)
{
    blitz_reply_to to = token_of(s);
    struct bz_runtime *visited = bz_actor_visit(bz_actor_place_of(to));
    struct bz_runtime *rt = bz_actor_runtime(bz_actor_place_of(to));
    bool is_over = rt == NULL || !bz_ticket_is_open(rt, to);
    bz_actor_leave(visited);
    return is_over;
}

/* Free the kept tokens that are answered. Returns the number of the others. */
static uint32_t forget_answered(struct bz_actor *a)
{
    uint32_t count = 0;
    for (struct bz_signal **at = &a->relations, *s; (s = *at) != NULL;) {
        if (s->kind == BZ_SIGNAL_OWES && is_answered(s)) {
            *at = s->next;
            bz_letter_free(a->task.rt, s);
        } else {
            count += s->kind == BZ_SIGNAL_OWES;
            at = &s->next;
        }
    }
    return count;
}

bool bz_relating_owe(const struct bz_relating *r, struct bz_signal *s)
{
    if (!lock_living(r))
        return false;
    const struct bz_signal *newest = r->a->relations;
    while (newest != NULL && newest->kind != BZ_SIGNAL_OWES)
        newest = newest->next;
    uint32_t owed = newest != NULL ? newest->owed : 0;
    s->owed_max = newest != NULL ? newest->owed_max : OWED_FEW;
    if (owed >= s->owed_max) {
        owed = forget_answered(r->a);
        s->owed_max = 2 * owed > OWED_FEW ? 2 * owed : OWED_FEW;
    }
    s->owed = owed + 1;
    s->next = r->a->relations;
    r->a->relations = s;
    unlock_living(r);
    return true;
}

static struct bz_signal **find_of(struct bz_actor *a, uint32_t kind, blitz_actor_id peer,
                                  uint64_t ref)
{
    return kind == BZ_SIGNAL_FAR_LINK ? find_far_link(a, peer, ref)
                                      : find(a, kind, peer.index, peer.generation, ref);
}

struct bz_signal *bz_relating_take(const struct bz_relating *r, uint32_t kind, blitz_actor_id peer,
                                   uint64_t ref)
{
    if (!lock_living(r))
        return NULL;
    struct bz_signal **at = find_of(r->a, kind, peer, ref), *s = *at;
    if (s != NULL)
        *at = s->next;
    unlock_living(r);
    return s;
}

void bz_relating_aim(const struct bz_relating *r, uint64_t ref, blitz_actor_id far)
{
    if (!lock_living(r))
        return;
    struct bz_signal *s = *find(r->a, BZ_SIGNAL_FAR_WATCHES, 0, 0, ref);
    if (s != NULL) {
        s->peer_index = far.index;
        s->peer_generation = far.generation;
        s->far_creation = far.creation;
    }
    unlock_living(r);
}

bool bz_relating_has(const struct bz_relating *r, uint32_t kind, blitz_actor_id peer, uint64_t ref)
{
    if (!lock_living(r))
        return false;
    bool is_there = *find_of(r->a, kind, peer, ref) != NULL;
    unlock_living(r);
    return is_there;
}

void bz_relating_ask(const struct bz_relating *r, blitz_actor_id other, struct bz_signal *s)
{
    static const blitz_exit_reason noproc = {.kind = BLITZ_EXIT_NOPROC};
    struct bz_runtime *rt = r->a->task.rt;
    bz_relating_sign(r, s);
    if (other.node != 0 || other.creation != rt->creation ||
        !bz_signal_send(rt, other.index, other.generation, s))
        end_one(rt, other.index, other.generation, s, &noproc);
}

bool bz_relating_withdraw(const struct bz_relating *r, const struct bz_signal *mine)
{
    if (mine->its == NULL || r->generation % 2 == 0) /* I6: a dead one's generation is even */
        return false;
    return bz_hearing_try_withdraw(&mine->its->hearing);
}

void bz_relating_tell(const struct bz_relating *r, uint32_t index, uint32_t generation,
                      struct bz_signal *s)
{
    bz_relating_sign(r, s);
    send_or_free(r->a->task.rt, index, generation, s);
}

void bz_relating_sign(const struct bz_relating *r, struct bz_signal *s)
{
    if (!r->is_task) /* the flags of a porter are not its task's */
        r->a->task.slot.flags += BZ_SEND_REDUCTIONS * BZ_ACTOR_REDUCTION;
    s->peer_index = r->a->task.slot.index;
    s->peer_generation = r->generation;
}
