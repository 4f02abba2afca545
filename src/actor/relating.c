/*
 * relating.c - links, monitors and exit signals, by their caller.
 *
 * The caller is an actor, or a task that receives: relating.h treats both alike. A caller changes its own side at once and asks the
 * other by a signal; relate.c has the rules and the other side.
 *
 * All memory is taken before anything changes. So a call that fails has done nothing.
 */
#include "actor/relating.h"

#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "actor/far.h"
#include "life/handle.h"

/* ---- links and monitors ---- */

/* The two sides of a relation with `other`. A caller that is a task has a third part: its id may end between the two. Then the end has
 * told `other` before it was asked, and the task tells it again. */
struct sides {
    struct bz_signal *mine, *its, *late;
};

static struct bz_signal *new_for(struct bz_runtime *rt, enum bz_signal_kind kind,
                                 blitz_actor_id other)
{
    struct bz_signal *s = bz_signal_new(rt, kind);
    if (s != NULL) {
        s->peer_index = other.index;
        s->peer_generation = other.generation;
    }
    return s;
}

static void free_sides(struct bz_runtime *rt, struct sides *s)
{
    struct bz_signal *all[] = {s->mine, s->its, s->late};
    for (size_t i = 0; i < BZ_ARRAY_LEN(all); i++)
        if (all[i] != NULL)
            bz_letter_free(rt, all[i]);
}

/* A relation of kind `mine` here and `its` there, which `late` ends there. False: no memory. */
static bool make_sides(const struct bz_relating *me, blitz_actor_id other, enum bz_signal_kind mine,
                       enum bz_signal_kind its, enum bz_signal_kind late, struct sides *s)
{
    struct bz_runtime *rt = me->a->task.rt;
    s->mine = new_for(rt, mine, other);
    s->its = new_for(rt, its, other);
    s->late = me->is_task ? new_for(rt, late, other) : NULL;
    if (s->mine != NULL && s->its != NULL && (s->late != NULL || !me->is_task))
        return true;
    free_sides(rt, s);
    return false;
}

/* The other was asked for its side. If our id has ended by now, its end may have been first. */
static void tell_late(const struct bz_relating *me, blitz_actor_id other, struct bz_signal *late)
{
    if (late == NULL)
        return;
    if (bz_relating_is_alive(me)) {
        bz_letter_free(me->a->task.rt, late);
        return;
    }
    late->reason = (blitz_exit_reason){.kind = BLITZ_EXIT_NOPROC};
    bz_relating_tell(me, other.index, other.generation, late);
}

/* Our id has ended while `mine` was out of its list, so its end has not told `other`. The entry itself tells: relate.c I6. */
static void end_again(const struct bz_relating *me, blitz_actor_id other, struct sides *s)
{
    s->mine->kind = BZ_SIGNAL_LINK_EXIT;
    s->mine->reason = (blitz_exit_reason){.kind = BLITZ_EXIT_NOPROC};
    bz_relating_tell(me, other.index, other.generation, s->mine);
    s->mine = NULL;
}

/* Keep our side, and ask the other for its side. is_again: `mine` was in the list before, and the other knows it. */
static int relate(const struct bz_relating *me, blitz_actor_id other, struct sides *s,
                  bool is_again)
{
    s->mine->its = me->is_task || is_again ? NULL : s->its; /* relate.c I6 */
    if (!bz_relating_add(me, s->mine)) {
        if (is_again)
            end_again(me, other, s);
        free_sides(me->a->task.rt, s);
        return -ECANCELED;
    }
    bz_relating_ask(me, other, s->its);
    tell_late(me, other, s->late);
    return 0;
}

/* A relation with an actor of another node: our side, and the node knows the rest. */
static int relate_far(const struct bz_relating *me, blitz_actor_id other, enum bz_signal_kind mine,
                      enum bz_far_relation what, uint64_t ref)
{
    static const blitz_exit_reason noproc = {.kind = BLITZ_EXIT_NOPROC};
    struct bz_runtime *rt = me->a->task.rt;
    struct bz_signal *s = bz_signal_new_far(rt, mine, other);
    if (s == NULL)
        return -ENOMEM;
    s->ref = ref;
    if (!bz_relating_add(me, s)) {
        bz_letter_free(rt, s);
        return -ECANCELED;
    }
    int rc = bz_far_relate(what, bz_relating_id(me), other, ref);
    if (rc == 0 && what == BZ_FAR_LINK && me->is_task && !bz_relating_is_alive(me))
        bz_far_ended(bz_relating_id(me), other,
                     &noproc); /* its end may have told before the link was made */
    if (rc != 0 && (s = bz_relating_take(me, mine, other, ref)) != NULL)
        bz_letter_free(rt, s);
    return rc;
}

/* A number for a relation. */
static uint64_t number(const struct bz_relating *me)
{
    /* relaxed: uniqueness is enough */
    return bz_fetch_add_relaxed(&bz_actors_of(me->a->task.rt)->refs, 1) + 1;
}

/* Once for each peer: a link that is there gets the number of the new one. The node may know that it is lost. relate.c I7 */
static int link_far(const struct bz_relating *me, blitz_actor_id other)
{
    static const blitz_exit_reason noproc = {.kind = BLITZ_EXIT_NOPROC};
    struct bz_signal *old = bz_relating_take(me, BZ_SIGNAL_FAR_LINK, other, 0);
    int rc = relate_far(me, other, BZ_SIGNAL_FAR_LINK, BZ_FAR_LINK, number(me));
    if (old == NULL || (rc != 0 && bz_relating_add(me, old)))
        return rc;
    if (rc != 0)
        bz_far_ended(bz_relating_id(me), other, &noproc); /* the end of the id has not told it */
    bz_letter_free(me->a->task.rt, old);
    return rc;
}

static void unlink_far(const struct bz_relating *me, blitz_actor_id other)
{
    struct bz_signal *s = bz_relating_take(me, BZ_SIGNAL_FAR_LINK, other, 0);
    if (s == NULL)
        return;
    bz_letter_free(me->a->task.rt, s);
    (void)!bz_far_relate(BZ_FAR_UNLINK, bz_relating_id(me), other, 0); /* else it ends by itself */
}

static int link(const struct bz_relating *me, blitz_actor_id other)
{
    struct sides s;
    if (other.node != 0)
        return link_far(me, other);
    if (blitz_actor_id_equal(other, bz_relating_id(me)))
        return -EINVAL;
    if (!make_sides(me, other, BZ_SIGNAL_LINK, BZ_SIGNAL_LINK, BZ_SIGNAL_LINK_EXIT, &s))
        return -ENOMEM;
    struct bz_signal *old = bz_relating_take(me, BZ_SIGNAL_LINK, other, 0); /* once for each peer */
    if (old != NULL) { /* the other may point to it: relate.c I6 */
        bz_letter_free(me->a->task.rt, s.mine);
        s.mine = old;
    }
    return relate(me, other, &s, old != NULL);
}

/* End a relation whose entry was taken out: withdraw the request, or tell the other. */
static void unrelate(const struct bz_relating *me, struct bz_signal *s, enum bz_signal_kind how)
{
    uint32_t to = s->peer_index, to_generation = s->peer_generation;
    if (bz_relating_withdraw(me, s)) {
        bz_letter_free(me->a->task.rt, s);
        return;
    }
    s->kind = how;
    bz_relating_tell(me, to, to_generation, s);
}

int blitz_actor_link(blitz_actor_id other)
{
    struct bz_relating me;
    int rc = bz_relating_begin(&me);
    if (rc != 0)
        return rc;
    rc = link(&me, other);
    bz_relating_end(&me);
    return rc;
}

int blitz_actor_unlink(blitz_actor_id other)
{
    struct bz_relating me;
    int rc = bz_relating_begin(&me);
    if (rc != 0)
        return rc;
    if (other.node != 0)
        unlink_far(&me, other);
    struct bz_signal *s = other.node == 0 ? bz_relating_take(&me, BZ_SIGNAL_LINK, other, 0) : NULL;
    if (s != NULL)
        unrelate(&me, s, BZ_SIGNAL_UNLINK);
    bz_relating_end(&me);
    return 0;
}

bool blitz_actor_trap_exit(bool traps)
{
    struct bz_relating me;
    if (bz_relating_begin(&me) != 0)
        return false;
    bool was = bz_mailbox_trap(&me.a->box, traps); /* our reference keeps it ours */
    bz_relating_end(&me);
    return was;
}

static int monitor_far(const struct bz_relating *me, blitz_actor_id other, uint64_t *ref)
{
    uint64_t mine = number(me);
    int rc = relate_far(me, other, BZ_SIGNAL_FAR_WATCHES, BZ_FAR_MONITOR, mine);
    if (rc == 0)
        *ref = mine;
    return rc;
}

static bool demonitor_far(const struct bz_relating *me, uint64_t ref)
{
    static const blitz_actor_id any; /* the ref alone counts */
    struct bz_signal *s = bz_relating_take(me, BZ_SIGNAL_FAR_WATCHES, any, ref);
    if (s == NULL)
        return false;
    blitz_actor_id other = {s->peer_index, s->peer_generation, s->far_node, s->far_creation};
    bz_letter_free(me->a->task.rt, s);
    (void)!bz_far_relate(BZ_FAR_DEMONITOR, bz_relating_id(me), other, ref); /* else it is stale */
    return true;
}

static int monitor(const struct bz_relating *me, blitz_actor_id other, uint64_t *ref)
{
    struct sides s;
    if (other.node != 0)
        return monitor_far(me, other, ref);
    if (!make_sides(me, other, BZ_SIGNAL_WATCHES, BZ_SIGNAL_MONITOR, BZ_SIGNAL_DEMONITOR, &s))
        return -ENOMEM;
    uint64_t mine = number(me);
    s.mine->ref = s.its->ref = mine;
    if (s.late != NULL)
        s.late->ref = mine;
    int rc = relate(me, other, &s, false);
    if (rc == 0)
        *ref = mine;
    return rc;
}

int blitz_actor_monitor(blitz_actor_id other, uint64_t *ref)
{
    struct bz_relating me;
    int rc = ref != NULL ? bz_relating_begin(&me) : -EINVAL;
    if (rc != 0)
        return rc;
    rc = monitor(&me, other, ref);
    bz_relating_end(&me);
    return rc;
}

int blitz_actor_demonitor(uint64_t ref)
{
    static const blitz_actor_id any; /* the ref alone counts */
    struct bz_relating me;
    int rc = bz_relating_begin(&me);
    if (rc != 0)
        return rc;
    struct bz_signal *s = bz_relating_take(&me, BZ_SIGNAL_WATCHES, any, ref);
    rc = s != NULL || demonitor_far(&me, ref) ? 0 : -ESRCH;
    if (s != NULL)
        unrelate(&me, s, BZ_SIGNAL_DEMONITOR);
    bz_relating_end(&me);
    return rc;
}

/* ---- reply tokens ---- */

static int keep(const struct bz_relating *me, blitz_reply_to to)
{
    struct bz_signal *s = bz_signal_new(me->a->task.rt, BZ_SIGNAL_OWES);
    if (s == NULL)
        return -ENOMEM;
    s->peer_index = to.index;
    s->peer_generation = to.creation;
    s->ref = to.generation;
    if (bz_relating_owe(me, s))
        return 0;
    bz_letter_free(me->a->task.rt, s);
    return -ECANCELED;
}

int blitz_actor_reply_keep(blitz_reply_to to)
{
    struct bz_relating me;
    int rc = to.generation != 0 ? bz_relating_begin(&me) : -EINVAL;
    if (rc != 0)
        return rc;
    rc = keep(&me, to);
    bz_relating_end(&me);
    return rc;
}

/* ---- ending others, and oneself ---- */

static int kill(blitz_actor_id id)
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

int blitz_actor_kill(blitz_actor_id id)
{
    static const blitz_exit_reason killed = {.kind = BLITZ_EXIT_KILLED};
    if (id.node != 0)
        return bz_far_end(blitz_actor_self(), id, &killed);
    struct bz_runtime *visited = bz_actor_visit(id);
    int rc = kill(id);
    bz_actor_leave(visited);
    return rc;
}

/* The calling actor, or the task that receives, is the sender if it is of that runtime. */
static void sign(struct bz_signal *s, const struct bz_runtime *rt)
{
    const struct bz_task *t = bz_task_self();
    if (t == NULL || t->rt != rt || (t->ops->kind != bz_actor_kind && t->locals == NULL))
        return;
    blitz_actor_id me = blitz_actor_self();
    s->peer_index = me.index;
    s->peer_generation = me.generation;
}

static int send_as(blitz_actor_id id, enum bz_signal_kind kind, const blitz_exit_reason *why)
{
    struct bz_actor *a = bz_actor_find(id);
    if (a == NULL)
        return -ESRCH;
    struct bz_runtime *rt = a->task.rt;
    struct bz_signal *s = bz_signal_new(rt, kind);
    if (s == NULL)
        return -ENOMEM;
    s->reason = *why;
    s->reason.text[BLITZ_EXIT_TEXT_MAX - 1] = '\0';
    sign(s, rt);
    if (bz_signal_send(rt, id.index, id.generation, s))
        return 0;
    bz_letter_free(rt, s);
    return -ESRCH;
}

static int send_exit(blitz_actor_id id, enum bz_signal_kind kind, const blitz_exit_reason *why)
{
    if (id.node != 0)
        return bz_far_end(blitz_actor_self(), id, why);
    struct bz_runtime *visited = bz_actor_visit(id);
    int rc = send_as(id, kind, why);
    bz_actor_leave(visited);
    return rc;
}

int blitz_actor_stop(blitz_actor_id id)
{
    static const blitz_exit_reason shutdown = {.kind = BLITZ_EXIT_SHUTDOWN};
    return bz_actor_end(id, &shutdown);
}

int bz_actor_end(blitz_actor_id id, const blitz_exit_reason *why)
{
    return send_exit(id, BZ_SIGNAL_STOP, why);
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
    s->next = me->relations; /* an actor of its own, not a porter */
    me->relations = s;
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
