/* Blocks that are sent, dropped or written by a party that does not own them. */
#include "harness.h"

#include <string.h>

#include "arch/notes.h"
#include "blitz.h"
#include "support/alone.h"

enum { SEND_LENT, DROP_LENT, SEND_ANOTHERS, LEND, HANG, NOTE };

struct holder {
    void *held;
};

static unsigned char *block_of(size_t size)
{
    unsigned char *block = (unsigned char *)blitz_msg_alloc(size);
    CHECK_NOT_NULL(block);
    memset(block, 1, size);
    return block;
}

static int send_block(blitz_actor_id to, uint32_t what, unsigned char *block)
{
    return blitz_actor_send_with(to, what, NULL, 0, &(blitz_cargo){.move = BLITZ_MOVE(block)});
}

BLITZ_HANDLER(sends_lent, struct holder, void)
{
    (void)state, (void)data;
    void *block = m->block;
    return blitz_actor_send_with(blitz_actor_self(), NOTE, NULL, 0,
                                 &(blitz_cargo){.move = BLITZ_MOVE(block)});
}

BLITZ_HANDLER(drops_lent, struct holder, void)
{
    (void)state, (void)data;
    blitz_msg_drop(m->block);
    return 0;
}

/* The block of another actor, by a pointer that it should not have. */
BLITZ_HANDLER(sends_anothers, struct holder, void *)
{
    (void)state, (void)m;
    void *block = *data;
    return blitz_actor_send_with(blitz_actor_self(), NOTE, NULL, 0,
                                 &(blitz_cargo){.move = BLITZ_MOVE(block)});
}

BLITZ_HANDLER(lends, struct holder, blitz_actor_id)
{
    (void)m;
    state->held = block_of(10);
    return blitz_actor_send(*data, SEND_ANOTHERS, &state->held, sizeof state->held);
}

BLITZ_HANDLER(hangs, struct holder, void)
{
    (void)state, (void)data, (void)m;
    return blitz_sleep_until(BLITZ_FOREVER);
}

BLITZ_HANDLER(notes, struct holder, void)
{
    (void)state, (void)data, (void)m;
    return 0;
}

static const blitz_handler handlers[] = {BLITZ_ON_EMPTY(SEND_LENT, sends_lent),
                                         BLITZ_ON_EMPTY(DROP_LENT, drops_lent),
                                         BLITZ_ON(SEND_ANOTHERS, void *, sends_anothers),
                                         BLITZ_ON(LEND, blitz_actor_id, lends),
                                         BLITZ_ON_EMPTY(HANG, hangs),
                                         BLITZ_ON_EMPTY(NOTE, notes)};
static const blitz_behaviour bad = {
    .state_bytes = sizeof(struct holder), .handlers = handlers, .handler_count = 6};

static blitz_actor_id spawn_bad(void)
{
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(&bad, NULL, NULL, &id), 0);
    return id;
}

static int misuses(void *what)
{
    blitz_actor_id id = spawn_bad(), other = spawn_bad();
    uint32_t how = *(uint32_t *)what;
    if (how == LEND)
        CHECK_EQ(blitz_actor_send(id, LEND, &other, sizeof other), 0);
    else
        CHECK_EQ(send_block(id, how, block_of(10)), 0);
    return blitz_sleep_until(blitz_after(BLITZ_S));
}

static void run_misuse(void *what)
{
    (void)!blitz_run(misuses, what, NULL);
}

TEST(block, the_block_of_a_message_is_taken_before_it_is_sent_or_dropped)
{
    CHECK_ABORTS(run_misuse, &(uint32_t){SEND_LENT}, "is sent, but its message holds it");
    CHECK_ABORTS(run_misuse, &(uint32_t){DROP_LENT}, "is dropped, but its message holds it");
}

static int sends_twice(void *arg)
{
    blitz_actor_id id = spawn_bad();
    unsigned char *block = block_of(10), *alias = block;
    (void)arg;
    CHECK_EQ(blitz_actor_send(id, HANG, NULL, 0), 0);
    CHECK_EQ(send_block(id, NOTE, block), 0);
    return send_block(id, NOTE, alias);
}

static void run_sends_twice(void *arg)
{
    (void)!t_run_alone(sends_twice, arg);
}

TEST(block, a_block_is_not_sent_twice)
{
    CHECK_ABORTS(run_sends_twice, NULL, "is sent, but it is not owned");
}

/* ---- debug builds ---- */

#if defined(BZ_DEBUG)
TEST(block, the_block_of_another_actor_is_not_sent)
{
    CHECK_ABORTS(run_misuse, &(uint32_t){LEND}, "is sent, but it belongs to actor");
}

static int writes_moved(void *arg)
{
    blitz_actor_id id = spawn_bad();
    unsigned char *block = block_of(10), *alias = block;
    (void)arg;
    CHECK_EQ(send_block(id, NOTE, block), 0);
    *(volatile unsigned char *)&alias[3] = 99;
    return blitz_actor_join(id, NULL, blitz_after(BLITZ_S));
}

static void run_writes_moved(void *arg)
{
    (void)!t_run_alone(writes_moved, arg);
}

/* AddressSanitizer reports the write itself, and ends the process in its own way. */
TEST(block, a_write_to_a_moved_block_is_noticed)
{
    if (BZ_ASAN)
        t_skip("a moved block is poisoned");
    CHECK_ABORTS(run_writes_moved, NULL, "was written to after it was moved");
}
#endif
