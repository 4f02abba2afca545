/*
 * cluster_scene.h - two or three nodes in one process, whose actors and tasks send to, link and watch each other while connections come and go.
 *
 * Each node has two actors, which end and begin again, and one task that receives, which is its watcher. A task of the scene is the
 * weather: it closes connections, makes them, stops nodes and starts them again. The simulated network resets connections and holds
 * directions up. Then the sky clears. Afterwards each node reaches each other one, and every monitor and link of a task is told.
 * Everything else is checked while it happens: cluster_model.h.
 */
#ifndef T_CLUSTER_SCENE_H
#define T_CLUSTER_SCENE_H

#include "sim/network.h"
#include "support/cluster_model.h"

enum { C_ACT, C_LAST, C_ENDING, C_STOPPED };

/* ---- actors ---- */

struct c_actor {
    struct c_player *player;
};

BLITZ_HANDLER(c_on_step, struct c_actor, void)
{
    struct c_player *p = state->player;
    (void)data, (void)m;
    if (p->steps == 0 || atomic_load(&p->scene->phase) != C_ACT)
        return 0;
    p->steps--;
    for (uint32_t i = 1 + c_dice(p, 3); i > 0; i--)
        c_do(p);
    uint32_t dice = c_dice(p, 32);
    if (dice < 8)
        blitz_yield(); /* signals come, and are not heard before the handler ends */
    else if (dice < 16)
        (void)!blitz_sleep(1000u << c_dice(p, 14));
    else if (dice == 16) {
        atomic_store(&p->scene->life[p->life].is_doomed, true);
        return blitz_actor_fail(C_END_CODE + (int)p->life, "by wish");
    }
    return blitz_actor_send(blitz_actor_self(), C_STEP, NULL, 0) == 0 ? 0 : BLITZ_ACTOR_STOP;
}

BLITZ_HANDLER(c_actor_hello, struct c_actor, struct c_hello)
{
    (void)m;
    c_on_hello(state->player, data);
    return 0;
}

BLITZ_HANDLER(c_actor_down, struct c_actor, blitz_down)
{
    (void)m;
    c_on_down(state->player, data);
    return 0;
}

BLITZ_HANDLER(c_actor_exit, struct c_actor, blitz_down)
{
    (void)m;
    c_on_exit(state->player, data);
    return 0;
}

BLITZ_HANDLER(c_actor_gone, struct c_actor, unsigned)
{
    (void)m;
    c_on_gone(state->player, *data);
    return 0;
}

/* The nodes have stopped. */
BLITZ_HANDLER(c_actor_check, struct c_actor, void)
{
    (void)data, (void)m;
    CHECK(c_is_settled(state->player, false));
    return BLITZ_ACTOR_STOP;
}

static const blitz_handler c_handlers[] = {BLITZ_ON_EMPTY(C_STEP, c_on_step),
                                           BLITZ_ON(C_HELLO, struct c_hello, c_actor_hello),
                                           BLITZ_ON(BLITZ_MSG_DOWN, blitz_down, c_actor_down),
                                           BLITZ_ON(BLITZ_MSG_EXIT, blitz_down, c_actor_exit),
                                           BLITZ_ON_EMPTY(C_CHECK, c_actor_check),
                                           BLITZ_ON(C_GONE, unsigned, c_actor_gone)};
static const blitz_behaviour c_behaviour = {.name = "of a cluster",
                                            .state_bytes = sizeof(struct c_actor),
                                            .handlers = c_handlers,
                                            .handler_count = 6,
                                            .messages = c_messages,
                                            .message_count = 1};

/* ---- lives ---- */

/* NULL: there were enough. */
static inline struct c_player *c_begin(struct c_scene *s, unsigned node, unsigned slot)
{
    unsigned life = atomic_fetch_add(&s->count, 1);
    if (life >= C_LIVES)
        return NULL;
    struct c_life *l = &s->life[life];
    l->node = node;
    l->slot = slot;
    l->player.scene = s;
    l->player.life = life;
    l->player.node = node;
    l->player.slot = slot;
    l->player.steps = s->steps;
    bz_rng_init(&l->player.rng, s->seed * 131 + life * 17);
    return &l->player;
}

static inline void c_publish(struct c_player *p, blitz_actor_id id)
{
    struct c_life *l = &p->scene->life[p->life];
    l->id = id;
    atomic_store(&l->is_known, true);
    atomic_store(&p->scene->current[p->node][p->slot], p->life + 1);
}

struct c_keeper {
    struct c_scene *scene;
    unsigned node, slot;
};

/* One actor after the other, under one name. */
static inline int c_keep(void *arg)
{
    struct c_keeper *k = arg;
    char name[16];
    c_name(name, sizeof name, k->node, k->slot);
    for (uint32_t i = 0; i < k->scene->lives_of_a_slot; i++) {
        struct c_player *p = c_begin(k->scene, k->node, k->slot);
        blitz_actor_id id;
        if (p == NULL || atomic_load(&k->scene->phase) != C_ACT)
            break;
        CHECK_EQ(blitz_actor_spawn(&c_behaviour, &(struct c_actor){p},
                                   &(blitz_actor_opts){.name = name, .trap_exit = true}, &id),
                 0);
        c_publish(p, id);
        (void)!blitz_actor_send(id, C_STEP, NULL, 0);
        int rc = blitz_actor_join(id, NULL, BLITZ_FOREVER);
        CHECK(rc == 0 || rc == -ESRCH);
    }
    return 0;
}

/* ---- tasks ---- */

static inline void c_on_term(struct c_player *p, const blitz_msg *m)
{
    _Alignas(16) char payload[BLITZ_MSG_BYTES_MAX];
    const blitz_term_message *row;
    struct c_hello hello;
    blitz_term term;
    CHECK_EQ(blitz_term_check(blitz_binary_data(m->binary), blitz_binary_size(m->binary), NULL,
                              &term, NULL),
             0);
    blitz_term_in in = blitz_term_in_of(term);
    CHECK_EQ(blitz_term_get_message(&in, c_messages, 1, &row, payload, sizeof payload,
                                    &(blitz_term_env){0}),
             0);
    memcpy(&hello, payload, sizeof hello);
    c_on_hello(p, &hello);
}

static inline void c_hear(struct c_player *p, const blitz_msg *m)
{
    if (m->what == BLITZ_MSG_TERM)
        c_on_term(p, m);
    else if (m->what == C_GONE)
        c_on_gone(p, *(const unsigned *)m->data);
    else if (m->what == BLITZ_MSG_DOWN)
        c_on_down(p, m->data);
    else if (m->what == BLITZ_MSG_EXIT)
        c_on_exit(p, m->data);
    else if (m->what == BLITZ_MSG_NODE)
        c_on_node(p, m->data);
    else
        FAIL("a message %u", m->what);
}

static inline void c_listen(struct c_player *p, uint64_t ns)
{
    const blitz_msg *m;
    blitz_deadline until = blitz_after(ns);
    int rc;
    while ((rc = blitz_receive(NULL, NULL, &m, until)) == 0)
        c_hear(p, m);
    CHECK_EQ(rc, -ETIMEDOUT);
}

/* To the task of each other node. */
static inline void c_send_last(struct c_player *p)
{
    struct c_scene *s = p->scene;
    for (unsigned i = 0; i < s->nodes; i++)
        if (i != p->node &&
            !atomic_load(&s->life[atomic_load(&s->current[i][C_ACTORS]) - 1].has_last[p->node]))
            c_send(p, atomic_load(&s->current[i][C_ACTORS]) - 1, true);
}

static inline int c_witness(void *arg)
{
    struct c_keeper *k = arg;
    struct c_scene *s = k->scene;
    char name[16];
    blitz_actor_id id;
    c_name(name, sizeof name, k->node, k->slot);
    CHECK_EQ(blitz_receiver_begin(&(blitz_actor_opts){.name = name, .trap_exit = true}, &id), 0);
    struct c_player *p = c_begin(s, k->node, k->slot);
    c_publish(p, id);
    atomic_fetch_add(&s->ready, 1);
    while (atomic_load(&s->ready) <= s->nodes)
        (void)!blitz_sleep(1000);
    for (; p->steps > 0; p->steps--) {
        c_do(p);
        c_listen(p, c_dice(p, 2) == 0 ? 0 : 1000u << c_dice(p, 14));
    }
    atomic_fetch_add(&s->acted, 1);
    while (atomic_load(&s->phase) == C_ACT)
        c_listen(p, 5 * BLITZ_MS);
    while (atomic_load(&s->phase) == C_LAST) {
        c_send_last(p);
        c_listen(p, 500 * BLITZ_MS);
    }
    bool is_counted = false;
    while (atomic_load(&s->phase) != C_STOPPED) {
        c_listen(p, 5 * BLITZ_MS);
        if (!is_counted && c_is_settled(p, true)) {
            atomic_fetch_add(&s->settled, 1);
            is_counted = true;
        }
    }
    for (int i = 0; i < 1000 && !c_is_settled(p, false); i++)
        c_listen(p, 5 * BLITZ_MS);
    CHECK(c_is_settled(p, false)); /* every monitor was told */
    c_listen(p, BLITZ_MS);
    return 0;
}

/* ---- the weather ---- */

static inline void c_start_node(struct c_scene *s, unsigned i)
{
    blitz_node_opts opts = s->opts;
    opts.listen = &s->place[i].at;
    opts.watcher = s->life[atomic_load(&s->current[i][C_ACTORS]) - 1].id;
    for (;;) {
        int rc = blitz_node_start(c_node_name[i], "monster", &opts, &s->node[i]);
        if (rc == 0)
            return;
        CHECK_EQ(rc, -EADDRINUSE); /* the one before is on its way out */
        CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    }
}

static inline void c_restart(struct c_scene *s, unsigned i)
{
    CHECK_EQ(blitz_rwlock_write(&s->gate, BLITZ_FOREVER), 0);
    blitz_node *n = s->node[i];
    s->node[i] = NULL;
    blitz_node_stop(n);
    c_start_node(s, i);
    blitz_rwlock_write_unlock(&s->gate);
}

static inline void c_change(struct c_scene *s, struct bz_rng *rng)
{
    static const unsigned rates[] = {0, 0, 40, 300, 3000};
    bz_sim_net_weather(
        &(struct bz_sim_net_config){.reset_one_in = rates[bz_rng_below(rng, BZ_ARRAY_LEN(rates))],
                                    .refuse_one_in = bz_rng_below(rng, 3) == 0 ? 3 : 0,
                                    .stall_one_in = rates[bz_rng_below(rng, BZ_ARRAY_LEN(rates))],
                                    .stall_ns = BLITZ_MS << bz_rng_below(rng, 14)});
    (void)s;
}

static inline void c_blow(struct c_scene *s, struct bz_rng *rng)
{
    unsigned i = bz_rng_below(rng, s->nodes),
             j = (i + 1 + bz_rng_below(rng, s->nodes - 1)) % s->nodes;
    switch (bz_rng_below(rng, 8)) {
    case 0:
    case 1:
    case 2:
        (void)blitz_node_disconnect(s->node[i], c_node_name[j]);
        return;
    case 3:
    case 4:
        (void)!blitz_node_connect(s->node[i], c_node_name[j],
                                  blitz_after(1000u << bz_rng_below(rng, 20)));
        return;
    case 5:
        if (s->restarts)
            c_restart(s, i);
        return;
    default:
        c_change(s, rng);
    }
}

static inline int c_weather(void *arg)
{
    struct c_scene *s = arg;
    struct bz_rng rng;
    bz_rng_init(&rng, s->seed * 7 + 3);
    while (atomic_load(&s->acted) < s->nodes) {
        (void)!blitz_sleep(1000u << bz_rng_below(&rng, 16));
        c_blow(s, &rng);
    }
    return 0;
}

/* ---- the whole ---- */

static inline bool c_all_have_last(struct c_scene *s)
{
    for (unsigned i = 0; i < s->nodes; i++)
        for (unsigned j = 0; j < s->nodes; j++)
            if (i != j &&
                !atomic_load(&s->life[atomic_load(&s->current[i][C_ACTORS]) - 1].has_last[j]))
                return false;
    return true;
}

/* Progress: under a clear sky each node reaches each other one. */
static inline void c_reach_all(struct c_scene *s)
{
    static const struct bz_sim_net_config clear;
    bz_sim_net_weather(&clear);
    atomic_store(&s->phase, C_LAST);
    for (int i = 0; i < 2000 && !c_all_have_last(s); i++)
        CHECK_EQ(blitz_sleep(50 * BLITZ_MS), 0);
    CHECK(c_all_have_last(s));
    atomic_store(&s->phase, C_ENDING);
}

/* The actors end, and all that tasks have with them is told over the connections. */
static inline void c_end_actors(struct c_scene *s)
{
    for (unsigned i = 0; i < C_LIVES; i++)
        if (atomic_load(&s->life[i].is_known) && s->life[i].slot != C_ACTORS) {
            atomic_store(&s->life[i].is_doomed, true);
            (void)blitz_actor_kill(s->life[i].id);
        }
    for (int i = 0; i < 2000 && atomic_load(&s->settled) < s->nodes; i++)
        CHECK_EQ(blitz_sleep(50 * BLITZ_MS), 0);
    CHECK_EQ(atomic_load(&s->settled), s->nodes);
}

static inline void c_prepare(struct c_scene *s)
{
    blitz_rwlock_init(&s->gate);
    for (unsigned i = 0; i < C_NODES; i++)
        s->place[i] = (blitz_node_place){c_node_name[i],
                                         blitz_addr_loopback_v4((uint16_t)(C_LISTEN_PORT + i))};
    s->opts.no_epmd = true;
    s->opts.places = s->place;
    s->opts.place_count = s->nodes;
    s->opts.messages = c_messages;
    s->opts.message_count = 1;
}

static inline int c_play(void *arg)
{
    struct c_scene *s = arg;
    struct c_keeper keeper[C_NODES][C_SLOTS];
    blitz_task *task[C_NODES][C_SLOTS], *weather;
    c_prepare(s);
    for (unsigned i = 0; i < s->nodes; i++)
        for (unsigned j = 0; j < C_SLOTS; j++)
            keeper[i][j] = (struct c_keeper){s, i, j};
    for (unsigned i = 0; i < s->nodes; i++)
        CHECK_EQ(blitz_spawn(c_witness, &keeper[i][C_ACTORS], NULL, &task[i][C_ACTORS]), 0);
    while (atomic_load(&s->ready) < s->nodes)
        CHECK_EQ(blitz_sleep(1000), 0);
    for (unsigned i = 0; i < s->nodes; i++)
        c_start_node(s, i);
    atomic_fetch_add(&s->ready, 1); /* the tasks begin */
    for (unsigned i = 0; i < s->nodes; i++)
        for (unsigned j = 0; j < C_ACTORS; j++)
            CHECK_EQ(blitz_spawn(c_keep, &keeper[i][j], NULL, &task[i][j]), 0);
    CHECK_EQ(blitz_spawn(c_weather, s, NULL, &weather), 0);
    CHECK_EQ(blitz_task_join(weather, NULL, BLITZ_FOREVER), 0);
    c_reach_all(s);
    if (s->ends_first)
        c_end_actors(s);
    for (unsigned i = 0; i < s->nodes; i++)
        blitz_node_stop(s->node[i]);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
    atomic_store(&s->phase, C_STOPPED);
    for (unsigned i = 0; i < C_LIVES; i++)
        if (atomic_load(&s->life[i].is_known) && s->life[i].slot != C_ACTORS)
            (void)!blitz_actor_send(s->life[i].id, C_CHECK, NULL, 0);
    for (unsigned i = 0; i < s->nodes; i++)
        for (unsigned j = 0; j < C_SLOTS; j++)
            CHECK_EQ(blitz_task_join(task[i][j], NULL, BLITZ_FOREVER), 0);
    return 0;
}

#endif
