/*
 * detector.c - find circles of actors that hold only each other, and end them.
 *
 * The detector is an actor. It is told of suspects (reach.c): actors that hold others and have come to rest, or have lost a reference
 * but not the last one. A circle that is left alone has such a member. Now and then the detector makes a pass:
 *
 *     ask        Each suspect, when it is idle, collects its heap and reports the actors that it holds. Then these are asked, if
 *                they hold others, and so on. A report says "held" if a name, a group or a link holds the actor.
 *     judge      Count for each reporter how many of its references the other reporters hold. One that has more than these is alive,
 *                and so are all actors that it holds. The rest is garbage, in groups that do not hold each other.
 *     confirm    Each member of a group is asked whether it agrees to end. It agrees if it has handled nothing since its report. A
 *                member that handles something later spares its group. So does a reference made from an id.
 *     end        All have agreed, and the group is not spared: it is condemned. All members end.
 *
 * Why this is right. A member holds the same references from its report to its end, because only it changes its heap, and it has not
 * run. At publish() its count is what other members hold, so nothing else holds it at that moment. From there on a reference
 * can only come from a member that runs, or from an id. Both spare the group, under the lock under which it is condemned. A message that
 * came before publish() is in the mailbox, or was handled: then the member does not agree.
 *
 * Nothing is stopped. An actor is asked by a bell, which takes no memory and wakes no other. One that is busy answers when it comes
 * to rest. The pass does not wait for it: after a time it counts as alive, and becomes a suspect again at its rest.
 *
 * Memory. Nodes and reports are allocated. A pass that lacks memory judges nothing that it has not seen, and lists its suspects again. So
 * does one in which an actor lacked memory to collect: the dead holders in its heap still hold others. A pass without memory for the
 * tick that ends it waits for no suspect.
 *
 * The pause between two passes is 10 ms. It doubles up to 640 ms while passes find nothing. The time of a pass is 100 ms. It doubles, up
 * to a thousand times as much, while passes exceed it: or a large circle on a slow machine would never be looked at as a whole.
 *
 * Rejected: a report at each rest (Pony's way; an actor would collect and send for each message); a pass that traces from all roots
 * (tasks and threads hold references, and they cannot be asked).
 *
 * I1  A block with a node is kept: bit 34 of reach.h.
 * I2  A node is ASKED if and only if its block is_asked, or is in the list of reports.
 * I3  bz_actors.reach_lock guards the groups, and in a block the fields that reaching.h names.
 */
#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "actor/reaching.h"
#include "actor/send.h"

uint64_t bz_detect_pause_ns = 10000000, bz_detect_limit_ns = 100000000;

enum { NODES_FIRST = 32, PAUSE_FACTOR = 64, LIMIT_FACTOR = 1024, TICK = 0 };
#define NO_NODE UINT32_MAX

enum node_kind { NODE_LIVE, NODE_ASKED, NODE_BLOCKED };

struct node {
    blitz_reference *r; /* I1 */
    struct bz_report *report;
    enum node_kind kind;
    uint32_t inside; /* references of it that other nodes hold */
    uint32_t parent; /* of its group, while groups are made */
    uint32_t next;   /* in a list of nodes: of the live ones to look at, or of a group */
    struct bz_circle *group;
};

enum phase { PHASE_IDLE, PHASE_ASKING, PHASE_CONFIRMING };

/* The state of the actor. */
struct detector {
    struct bz_runtime *rt;
    struct node *nodes;
    uint32_t count, room;
    struct bz_circle *groups;
    uint32_t group_count;
    enum phase phase;
    uint32_t asked; /* nodes that are */
    uint64_t pass;
    bool is_armed, is_due; /* the tick before a pass is on its way; has come */
    bool is_expired;       /* the pass takes too long */
    bool has_failed, has_found, has_limit;
    uint64_t limit; /* the tick at which the pass expires: has_limit */
    uint64_t pause_ns, limit_factor;
};
BLITZ_PLAIN_TYPE(bz_detector_type, struct detector);

/* ---- the lock ---- */

static struct bz_references *lock(struct detector *d)
{
    struct bz_actors *all = bz_actors_of(d->rt);
    bz_lock_take(&all->reach_lock, d->rt->os);
    return &all->references;
}

static void unlock(struct detector *d)
{
    bz_lock_drop(&bz_actors_of(d->rt)->reach_lock, d->rt->os);
}

/* ---- nodes ---- */

/* Make room for one more node. False: no memory. */
static bool reserve(struct detector *d)
{
    if (d->count < d->room)
        return true;
    uint32_t room = d->room > 0 ? d->room * 2 : NODES_FIRST;
    struct node *nodes = bz_alloc(&d->rt->alloc, room * sizeof *nodes, _Alignof(struct node));
    if (nodes == NULL)
        return false;
    if (d->count > 0)
        memcpy(nodes, d->nodes, d->count * sizeof *nodes);
    bz_free(&d->rt->alloc, d->nodes, d->room * sizeof *nodes);
    d->nodes = nodes;
    d->room = room;
    return true;
}

/* Add a node for a block that is kept. Its index. */
static uint32_t add(struct detector *d, blitz_reference *r)
{
    d->nodes[d->count] = (struct node){.r = r, .kind = NODE_LIVE};
    r->node = ++d->count;
    return d->count - 1;
}

/* List a block again: a later pass looks at it. */
static void suspect_again(blitz_reference *r)
{
    if (bz_reach_suspect(&r->reach))
        bz_reference_list(r);
}

/* Ask the actor of a new node for a report, if it is alive and may hold others. */
static void ask(struct detector *d, uint32_t index)
{
    blitz_reference *r = d->nodes[index].r;
    if (d->is_expired) { /* too late: it would not be waited for */
        suspect_again(r);
        return;
    }
    struct bz_references *t = lock(d);
    bool is_asked = bz_reference_find(t, r->id) == r && bz_reach_holds(&r->reach);
    if (is_asked) {
        r->is_asked = true;                 /* I2 */
        bz_store_relaxed(&r->is_wanted, 1); /* relaxed: the bell publishes it */
    }
    unlock(d);
    if (!is_asked)
        return;
    d->nodes[index].kind = NODE_ASKED;
    d->asked++;
    bz_reference_ring(r);
}

/* ---- ask ---- */

static void begin(struct detector *d)
{
    struct bz_references *t = lock(d);
    blitz_reference *r = t->suspects, *next;
    t->suspects = NULL;
    unlock(d);
    d->pass++;
    d->phase = PHASE_ASKING;
    d->is_due = d->is_expired = d->has_failed = d->has_found = false;
    for (; r != NULL; r = next) {
        next = r->next_suspect;
        if (!reserve(d)) {
            d->has_failed = true;
            bz_reference_list(r); /* it has its bit */
            continue;
        }
        bz_reach_keep_suspect(&r->reach); /* I1 */
        ask(d, add(d, r));
    }
}

/* The node of a held actor, which may be new; or NO_NODE. */
static uint32_t target_of(struct detector *d, const struct bz_edge *e)
{
    blitz_actor_id id = bz_actor_id_make(d->rt, e->index, e->generation);
    if (!reserve(d)) {
        d->has_failed = true;
        return NO_NODE;
    }
    struct bz_references *t = lock(d);
    blitz_reference *r = bz_reference_find(t, id);
    if (r != NULL && r->node == 0)
        bz_reach_keep(&r->reach); /* I1 */
    unlock(d);
    if (r == NULL)
        return NO_NODE;
    if (r->node != 0)
        return r->node - 1;
    uint32_t index = add(d, r);
    ask(d, index);
    return index;
}

static void take_report(struct detector *d, blitz_reference *r)
{
    uint32_t index = r->node - 1;
    struct bz_report *report = r->report;
    r->report = NULL;
    d->asked--;
    d->nodes[index].kind = report != NULL ? NODE_BLOCKED : NODE_LIVE;
    d->nodes[index].report = report;
    d->has_failed |= r->has_failed;
    for (uint32_t i = 0; report != NULL && i < report->count; i++)
        report->edge[i].index = target_of(d, &report->edge[i]); /* it may move the nodes */
}

static void take_reports(struct detector *d)
{
    struct bz_references *t = lock(d);
    blitz_reference *r = t->reports, *next;
    t->reports = NULL;
    unlock(d);
    for (; r != NULL; r = next) {
        next = r->next_report;
        take_report(d, r);
    }
}

/* The pass takes too long: those that have not answered count as alive. They become suspects at their rest. */
static void give_up_asking(struct detector *d)
{
    for (uint32_t i = 0; i < d->count; i++) {
        struct node *n = &d->nodes[i];
        (void)lock(d);
        bool is_late = n->kind == NODE_ASKED && n->r->is_asked;
        if (is_late) {
            n->r->is_asked = false; /* I2 */
            n->r->is_missed = true;
        }
        unlock(d);
        if (is_late) {
            n->kind = NODE_LIVE;
            d->asked--;
        }
    }
    take_reports(d); /* I2: the rest is in the list */
}

/* ---- judge ---- */

static struct node *held_by(struct detector *d, const struct node *n, uint32_t i)
{
    uint32_t to = n->report->edge[i].index;
    return to != NO_NODE && d->nodes[to].kind == NODE_BLOCKED ? &d->nodes[to] : NULL;
}

static uint32_t edges_of(const struct node *n)
{
    return n->report != NULL ? n->report->count : 0;
}

static void count_inside(struct detector *d)
{
    for (uint32_t k = 0; k < d->count; k++)
        for (uint32_t i = 0; i < edges_of(&d->nodes[k]); i++) {
            struct node *to = held_by(d, &d->nodes[k], i);
            if (to != NULL)
                to->inside++;
        }
}

/* Nodes that others hold as well are alive, and all that they hold. */
static void spread_life(struct detector *d)
{
    uint32_t first = NO_NODE;
    for (uint32_t k = 0; k < d->count; k++) {
        struct node *n = &d->nodes[k];
        uint32_t count = bz_reach_count(bz_reach_look(&n->r->reach));
        if (n->kind != NODE_BLOCKED || count == n->inside)
            continue;
        if (count < n->inside)
            suspect_again(n->r); /* a reporter has let it go since: its report is out of date */
        n->kind = NODE_LIVE;
        n->next = first;
        first = k;
    }
    while (first != NO_NODE) {
        const struct node *n = &d->nodes[first];
        first = n->next;
        for (uint32_t i = 0; i < edges_of(n); i++) {
            struct node *to = held_by(d, n, i);
            if (to == NULL)
                continue;
            to->kind = NODE_LIVE;
            to->next = first;
            first = (uint32_t)(to - d->nodes);
        }
    }
}

static uint32_t root_of(struct detector *d, uint32_t k)
{
    while (d->nodes[k].parent != k) {
        d->nodes[k].parent = d->nodes[d->nodes[k].parent].parent;
        k = d->nodes[k].parent;
    }
    return k;
}

/* Join the nodes that hold each other. Returns the number of garbage nodes. */
static uint32_t join_garbage(struct detector *d)
{
    uint32_t garbage = 0;
    for (uint32_t k = 0; k < d->count; k++)
        d->nodes[k].parent = k;
    for (uint32_t k = 0; k < d->count; k++) {
        if (d->nodes[k].kind != NODE_BLOCKED)
            continue;
        garbage++;
        for (uint32_t i = 0; i < edges_of(&d->nodes[k]); i++) {
            const struct node *to = held_by(d, &d->nodes[k], i);
            if (to != NULL)
                d->nodes[root_of(d, (uint32_t)(to - d->nodes))].parent = root_of(d, k);
        }
    }
    return garbage;
}

/* Make the groups. False: no memory. */
static bool make_groups(struct detector *d, uint32_t garbage)
{
    d->groups = bz_alloc(&d->rt->alloc, garbage * sizeof *d->groups, _Alignof(struct bz_circle));
    if (d->groups == NULL)
        return false;
    d->group_count = garbage;
    uint32_t made = 0;
    for (uint32_t k = 0; k < d->count; k++)
        if (d->nodes[k].kind == NODE_BLOCKED && d->nodes[k].parent == k) {
            d->groups[made] = (struct bz_circle){.pass = d->pass, .first = NO_NODE};
            d->nodes[k].group = &d->groups[made++];
        }
    for (uint32_t g = made; g < garbage; g++)
        d->groups[g] = (struct bz_circle){.is_done = true, .first = NO_NODE};
    for (uint32_t k = 0; k < d->count; k++)
        if (d->nodes[k].kind == NODE_BLOCKED) {
            struct bz_circle *g = d->nodes[root_of(d, k)].group;
            d->nodes[k].group = g;
            d->nodes[k].next = g->first;
            g->first = k;
            g->open++;
        }
    return true;
}

/* ---- confirm ---- */

/* True if no other holder has come. Under the lock. */
static bool is_unchanged(struct detector *d, const struct bz_circle *g)
{
    for (uint32_t k = g->first; k != NO_NODE; k = d->nodes[k].next) {
        uint64_t word = bz_reach_look(&d->nodes[k].r->reach);
        if ((word & BZ_REACH_CLOSED) || bz_reach_count(word) != d->nodes[k].inside)
            return false;
    }
    return true;
}

static void ring_members(struct detector *d, const struct bz_circle *g)
{
    for (uint32_t k = g->first; k != NO_NODE; k = d->nodes[k].next)
        bz_reference_ring(d->nodes[k].r);
}

/* The group does not end as it is. A part of it may be garbage still: a member that was spared need not hold the others. */
static void suspect_members(struct detector *d, const struct bz_circle *g)
{
    for (uint32_t k = g->first; k != NO_NODE; k = d->nodes[k].next)
        suspect_again(d->nodes[k].r);
}

/* Ask the members of a group whether they agree. */
static void publish(struct detector *d, struct bz_circle *g)
{
    (void)lock(d);
    bool is_good = is_unchanged(d, g);
    g->is_done = !is_good;
    for (uint32_t k = g->first; is_good && k != NO_NODE; k = d->nodes[k].next) {
        d->nodes[k].r->group = g;
        bz_store_relaxed(&d->nodes[k].r->is_wanted, 1); /* relaxed: the bell publishes it */
    }
    unlock(d);
    if (is_good)
        ring_members(d, g);
    else
        suspect_members(d, g);
}

/* Condemn the group if all have agreed, or let it go. It may also be open still. Under the lock. */
static bool condemn(struct detector *d, struct bz_circle *g)
{
    bool is_condemned = !g->is_spared && g->open == 0;
    g->is_done = is_condemned || g->is_spared || d->is_expired;
    for (uint32_t k = g->first; g->is_done && k != NO_NODE; k = d->nodes[k].next) {
        blitz_reference *r = d->nodes[k].r;
        r->group = NULL;
        r->is_condemned = is_condemned;
        if (is_condemned)
            bz_store_relaxed(&r->is_wanted, 1); /* relaxed: the bell publishes it */
    }
    return is_condemned;
}

/* Returns whether all groups are done. */
static bool settle(struct detector *d)
{
    bool is_over = true;
    for (uint32_t i = 0; i < d->group_count; i++) {
        struct bz_circle *g = &d->groups[i];
        if (g->is_done)
            continue;
        (void)lock(d);
        bool is_condemned = condemn(d, g);
        unlock(d);
        is_over &= g->is_done;
        d->has_found |= is_condemned;
        if (is_condemned)
            ring_members(d, g);
        else if (g->is_done)
            suspect_members(d, g);
    }
    return is_over;
}

/* ---- a pass ---- */

static void forget_nodes(struct detector *d)
{
    for (uint32_t k = 0; k < d->count; k++) {
        blitz_reference *r = d->nodes[k].r;
        bz_report_free(d->rt, d->nodes[k].report);
        r->node = 0;
        if (bz_reach_forget(&r->reach, BZ_REACH_KEPT)) /* I1 */
            bz_reference_free(r);
    }
    d->count = 0;
    bz_free(&d->rt->alloc, d->nodes, d->room * sizeof *d->nodes);
    bz_free(&d->rt->alloc, d->groups, d->group_count * sizeof *d->groups);
    d->nodes = NULL;
    d->groups = NULL;
    d->room = d->group_count = 0;
}

static void finish(struct detector *d)
{
    for (uint32_t k = 0; d->has_failed && k < d->count; k++)
        suspect_again(d->nodes[k].r);
    forget_nodes(d);
    if (d->has_limit)
        (void)blitz_actor_timer_cancel(blitz_actor_self(), d->limit);
    d->has_limit = false;
    d->phase = PHASE_IDLE;
    d->limit_factor = !d->is_expired                   ? 1
                      : d->limit_factor < LIMIT_FACTOR ? d->limit_factor * 2
                                                       : LIMIT_FACTOR;
    uint64_t longest = bz_detect_pause_ns * PAUSE_FACTOR;
    d->pause_ns = d->has_found ? bz_detect_pause_ns : d->pause_ns * 2;
    if (d->pause_ns > longest)
        d->pause_ns = longest;
}

/* All have reported. */
static void judge(struct detector *d)
{
    count_inside(d);
    spread_life(d);
    uint32_t garbage = join_garbage(d);
    if (garbage > 0 && make_groups(d, garbage)) {
        d->phase = PHASE_CONFIRMING;
        for (uint32_t i = 0; i < d->group_count; i++)
            if (!d->groups[i].is_done)
                publish(d, &d->groups[i]);
        return;
    }
    d->has_failed |= garbage > 0;
    finish(d);
}

/* ---- time ---- */

/* Send a tick to ourselves. False: no memory. */
static bool tick_later(uint64_t pass, uint64_t ns, uint64_t *timer)
{
    return blitz_actor_send_after(blitz_actor_self(), TICK, &pass, sizeof pass,
                                  blitz_after((blitz_duration)ns), timer) == 0;
}

BLITZ_HANDLER(on_tick, struct detector, uint64_t)
{
    (void)m;
    if (*data == 0) {
        state->is_due = true;
        state->is_armed = false;
    } else if (*data == state->pass) {
        state->is_expired = true;
    }
    return 0;
}

/* True if a pass may begin now. Otherwise a tick will come. Without memory for a tick the detector sleeps. */
static bool is_time(struct detector *d)
{
    if (d->pause_ns < bz_detect_pause_ns)
        d->pause_ns = bz_detect_pause_ns;
    uint64_t pause = d->has_failed ? d->pause_ns + BLITZ_MS : d->pause_ns;
    if (d->is_due || pause == 0)
        return true;
    if (!d->is_armed && !tick_later(0, pause, NULL))
        return blitz_sleep((blitz_duration)pause) == 0;
    d->is_armed = true;
    return false;
}

static void go_on(struct detector *d)
{
    if (d->phase == PHASE_ASKING) {
        take_reports(d);
        if (d->is_expired)
            give_up_asking(d);
        if (d->asked == 0)
            judge(d);
    }
    if (d->phase == PHASE_CONFIRMING && settle(d))
        finish(d);
}

static void step(struct bz_actor *a)
{
    struct detector *d = bz_actor_state(a);
    d->rt = a->task.rt;
    if (d->phase != PHASE_IDLE) {
        go_on(d);
        if (d->phase != PHASE_IDLE)
            return;
    }
    const struct bz_references *t = lock(d);
    bool has_suspects = t->suspects != NULL;
    unlock(d);
    if (!has_suspects || !is_time(d))
        return;
    begin(d);
    if (d->limit_factor == 0)
        d->limit_factor = 1;
    uint64_t limit = bz_detect_limit_ns * d->limit_factor;
    d->has_limit = limit != 0 && tick_later(d->pass, limit, &d->limit);
    if (limit != 0 && !d->has_limit) /* no memory for the tick: a suspect may never answer */
        d->is_expired = d->has_failed = true;
    go_on(d); /* no suspect may be left to ask */
    if (d->phase == PHASE_IDLE)
        bz_detector_ring(d->rt); /* more may have come */
}

/* ---- birth and death ---- */

/* From here on each rest of the detector is a step. */
static int detector_init(void *state)
{
    (void)state;
    (*bz_reference_at(bz_actor_self()))->step = step;
    return 0;
}

/* The runtime ends, perhaps in a pass. Members that wait for its end forget it. */
static void detector_drop(void *state, void *ctx)
{
    struct detector *d = state;
    (void)ctx;
    if (d->rt == NULL)
        return;
    struct bz_references *t = lock(d);
    for (uint32_t k = 0; k < d->count; k++) {
        blitz_reference *r = d->nodes[k].r;
        r->is_asked = false; /* I2: no report comes from here on */
        r->group = NULL;
    }
    blitz_reference *r = t->reports;
    t->reports = NULL;
    unlock(d);
    for (; r != NULL; r = r->next_report) {
        bz_report_free(d->rt, r->report);
        r->report = NULL;
    }
    forget_nodes(d);
}

static const blitz_handler handlers[] = {BLITZ_ON(TICK, uint64_t, on_tick)};
static const blitz_behaviour detector = {.name = "detector",
                                         .state_bytes = sizeof(struct detector),
                                         .handlers = handlers,
                                         .handler_count = BZ_ARRAY_LEN(handlers),
                                         .init = detector_init,
                                         .drop = detector_drop,
                                         .state_type = &bz_detector_type,
                                         .end_unreachable = true};

int bz_detector_begin(struct bz_runtime *rt, const blitz_behaviour *b)
{
    struct bz_actors *all = bz_actors_of(rt);
    blitz_reference *made;
    if (b == &detector)
        return 0;
    bz_lock_take(&all->reach_lock, rt->os);
    bool has_one = all->references.detector != NULL;
    bz_lock_drop(&all->reach_lock, rt->os);
    if (has_one)
        return 0;
    int err = blitz_reference_spawn(&detector, NULL,
                                    &(blitz_actor_opts){.runtime = (blitz_runtime *)rt}, &made);
    if (err != 0)
        return err;
    bz_lock_take(&all->reach_lock, rt->os);
    bool is_first = all->references.detector == NULL;
    if (is_first)
        all->references.detector = made;
    bz_lock_drop(&all->reach_lock, rt->os);
    if (!is_first)
        blitz_reference_unref(made); /* another thread was first: ours ends */
    return 0;
}
