/*
 * binary_scene.h - actors that pass blocks and slices on, and are killed at any time, for simulations and stress.
 *
 * The bytes of each piece are equal, and only its one owner writes them. All cargo is freed with the runtime.
 */
#ifndef T_BINARY_SCENE_H
#define T_BINARY_SCENE_H

#include <errno.h>
#include <string.h>

#include "base/rng.h"
#include "blitz.h"
#include "harness.h"

enum { CARGO_NODES = 6, CARGO_DRIVERS = 3 };
enum { CARGO_CARRY, CARGO_ASK };

struct cargo_hop {
    uint32_t left, dice;
};

static inline blitz_actor_id cargo_node_at(uint32_t dice)
{
    char name[8] = {'n', (char)('0' + dice % CARGO_NODES), 0};
    return blitz_actor_whereis(NULL, name);
}

/* The bytes of a block or a binary are all equal. */
static inline void cargo_check_bytes(const unsigned char *at, size_t size)
{
    for (size_t i = 1; i < size; i++)
        CHECK_EQ(at[i], at[0]);
}

static inline void cargo_pass_block(const blitz_msg *m, struct cargo_hop on)
{
    unsigned char *block = (unsigned char *)blitz_msg_take(m);
    memset(block, (int)(on.dice % 256), blitz_msg_size(block)); /* it is ours alone */
    (void)blitz_actor_send_with(cargo_node_at(on.dice >> 8), CARGO_CARRY, &on, sizeof on,
                                &(blitz_cargo){.move = BLITZ_MOVE(block)});
    blitz_msg_drop(block);
}

static inline void cargo_pass_binary(const blitz_msg *m, struct cargo_hop on)
{
    blitz_binary *part = NULL;
    size_t size = blitz_binary_size(m->binary);
    CHECK_EQ(blitz_binary_slice(m->binary, size / 4, size / 2, &part), 0);
    (void)blitz_actor_send_with(cargo_node_at(on.dice >> 8), CARGO_CARRY, &on, sizeof on,
                                &(blitz_cargo){.binary = part});
    (void)blitz_actor_send_with(cargo_node_at(on.dice >> 12), CARGO_CARRY,
                                &(struct cargo_hop){0, 0}, sizeof on,
                                &(blitz_cargo){.binary = m->binary});
    blitz_binary_unref(part);
}

BLITZ_HANDLER(cargo_on_carry, uint32_t, struct cargo_hop)
{
    struct cargo_hop on = {data->left - 1, data->dice * 2654435761u + ++*state};
    cargo_check_bytes(
        (const unsigned char *)(m->block != NULL ? m->block : blitz_binary_data(m->binary)),
        m->block != NULL ? blitz_msg_size(m->block) : blitz_binary_size(m->binary));
    if (on.dice % 50 == 0)
        return -EIO; /* the cargo is freed behind the failed handler */
    if (data->left == 0)
        return 0;
    if (m->block != NULL)
        cargo_pass_block(m, on);
    else
        cargo_pass_binary(m, on);
    return 0;
}

/* Answer with a slice of what came, to a caller that may have left. */
BLITZ_HANDLER(cargo_on_ask, uint32_t, void)
{
    (void)data, (void)state;
    return blitz_actor_reply_with(m->reply, NULL, 0, &(blitz_cargo){.binary = m->binary});
}

static const blitz_handler cargo_handlers[] = {
    BLITZ_ON(CARGO_CARRY, struct cargo_hop, cargo_on_carry),
    BLITZ_ON_EMPTY(CARGO_ASK, cargo_on_ask)};
static const blitz_behaviour cargo_node = {.name = "node",
                                           .state_bytes = sizeof(uint32_t),
                                           .handlers = cargo_handlers,
                                           .handler_count = 2,
                                           .mailbox_max = 2000};

static inline void cargo_act(uint32_t value)
{
    blitz_actor_id id = cargo_node_at(value >> 3);
    struct cargo_hop cargo_hop = {value % 6, value};
    blitz_binary *b;
    unsigned char *block = (unsigned char *)blitz_msg_alloc(100 + value % 900);
    blitz_arrival got;
    uint64_t timer;
    memset(block, 5, blitz_msg_size(block));
    CHECK_EQ(blitz_binary_copy(block, blitz_msg_size(block), &b), 0);
    switch (value / 64 % 6) {
    case 0:
        (void)blitz_actor_kill(id);
        break;
    case 1:
        (void)blitz_actor_call_with(id, CARGO_ASK, NULL, 0, &(blitz_cargo){.binary = b}, NULL, 0,
                                    &got, blitz_after(value % 3000));
        CHECK(got.binary == NULL || got.binary == b);
        blitz_binary_unref(got.binary);
        break;
    case 2:
        if (blitz_actor_send_after_with(id, CARGO_CARRY, &cargo_hop, sizeof cargo_hop,
                                        &(blitz_cargo){.move = BLITZ_MOVE(block)},
                                        blitz_after(value % 2000), &timer) == 0 &&
            value % 3 == 0)
            (void)blitz_actor_timer_cancel(id, timer);
        break;
    case 3:
        (void)blitz_actor_send_with(id, CARGO_CARRY, &cargo_hop, sizeof cargo_hop,
                                    &(blitz_cargo){.binary = b});
        break;
    default:
        (void)blitz_actor_send_with(id, CARGO_CARRY, &cargo_hop, sizeof cargo_hop,
                                    &(blitz_cargo){.move = BLITZ_MOVE(block)});
    }
    blitz_msg_drop(block);
    blitz_binary_unref(b);
}

struct cargo_scene {
    uint64_t seed;
    int rounds; /* of each driver */
};

static inline int cargo_drive(void *arg)
{
    const struct cargo_scene *s = arg;
    struct bz_rng rng;
    bz_rng_init(&rng, s->seed);
    for (int i = 0; i < s->rounds; i++) {
        cargo_act((uint32_t)bz_rng_next(&rng));
        if (i % 7 == 0)
            blitz_yield();
    }
    return 0;
}

static inline int cargo_play(void *arg)
{
    const struct cargo_scene *s = arg;
    struct cargo_scene part[CARGO_DRIVERS];
    blitz_task *task[CARGO_DRIVERS];
    blitz_child_spec child[CARGO_NODES];
    char name[CARGO_NODES][8];
    blitz_actor_id sup;
    for (int i = 0; i < CARGO_NODES; i++) {
        memcpy(name[i], (char[8]){'n', (char)('0' + i), 0}, 8);
        child[i] = (blitz_child_spec){.id = name[i], .name = name[i], .behaviour = &cargo_node};
    }
    blitz_supervisor_plan plan = {
        .intensity = 1000, .period = 1, .children = child, .child_count = CARGO_NODES};
    blitz_supervisor_counts counts;
    CHECK_EQ(blitz_supervisor_spawn(&plan, NULL, &sup), 0);
    CHECK_EQ(blitz_supervisor_count(sup, &counts), 0); /* its children have begun */
    CHECK_EQ(counts.active, CARGO_NODES);
    for (int i = 0; i < CARGO_DRIVERS; i++) {
        part[i] = (struct cargo_scene){s->seed * 31 + (uint64_t)i, s->rounds};
        CHECK_EQ(blitz_spawn(cargo_drive, &part[i], NULL, &task[i]), 0);
    }
    for (int i = 0; i < CARGO_DRIVERS; i++)
        CHECK_EQ(blitz_task_join(task[i], NULL, BLITZ_FOREVER), 0);
    return 0; /* messages and timers are left to the shutdown */
}

#endif
