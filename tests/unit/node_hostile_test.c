/*
 * A peer that lies: handshakes that are cut, wrong or slow, and frames that are none. The connection goes, and nothing else.
 */
#include "harness.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "support/node_liar.h"
#include "support/on_each.h"

/* ---- handshakes ---- */

static int cuts(void *arg)
{
    struct liar l;
    unsigned char name[BZ_SHAKE_MAX];
    (void)arg;
    liar_init(&l, (blitz_node_opts){0});
    size_t bytes = bz_shake_put_name(name, &l.me);
    for (size_t cut = 0; cut < bytes; cut++) {
        liar_dial(&l);
        liar_say(&l, name, cut);
        liar_hang_up(&l);
    }
    for (size_t cut = 0; cut < BZ_SHAKE_REPLY; cut++) {
        uint32_t challenge = liar_reach_challenge(&l);
        (void)bz_shake_put_reply(l.buf, 1, T_COOKIE, challenge);
        liar_say(&l, l.buf, cut);
        liar_hang_up(&l);
    }
    /* the length is right, and the fields are not there */
    for (size_t cut = 0; cut + 2 < bytes; cut++) {
        liar_dial(&l);
        bz_wire16_to(name, (uint16_t)cut);
        liar_say(&l, name, 2 + cut);
        liar_is_closed(&l);
    }
    CHECK_EQ(t_info(l.w.node[0]).peers, 1u); /* no name was kept */
    liar_fini(&l);
    return 0;
}

TEST_LIMIT(node_hostile, a_handshake_cut_off_at_any_byte_leaves_nothing, 120)
{
    t_on_each(cuts, NULL, 0);
}

static void refuses(struct liar *l, const struct bz_hello *hello)
{
    liar_dial(l);
    liar_say(l, l->buf, bz_shake_put_name(l->buf, hello));
    if (liar_hear(l))
        CHECK_EQ(bz_shake_get_status(l->buf, l->bytes), BZ_STATUS_NOT_ALLOWED);
    liar_is_closed(l);
}

static int lies(void *arg)
{
    static const unsigned char longest[] = {0xff, 0xff, 'N'}, empty[] = {0, 0},
                               old[] = {0, 10, 'n', 0, 5, 0, 0, 0, 0, 'a', '@', 'b'};
    struct liar l;
    (void)arg;
    liar_init(&l, (blitz_node_opts){0});
    const struct {
        const unsigned char *data;
        size_t bytes;
    } first[] = {{longest, 3}, {empty, 2}, {old, sizeof old}};
    for (size_t i = 0; i < BZ_ARRAY_LEN(first); i++) {
        liar_dial(&l);
        liar_say(&l, first[i].data, first[i].bytes);
        liar_is_closed(&l);
    }
    for (unsigned bit = 0; bit < 64; bit++) /* each flag that we need */
        if (BZ_NODE_NEEDS >> bit & 1) {
            struct bz_hello hello = l.me;
            hello.flags &= ~((uint64_t)1 << bit | BZ_FLAG_MANDATORY_25_DIGEST);
            refuses(&l, &hello);
        }
    struct bz_hello hello = l.me;
    hello.bytes = (uint16_t)snprintf(hello.name, sizeof hello.name, "%s", t_node_name[0]);
    refuses(&l, &hello); /* our own name */
    hello.bytes = (uint16_t)snprintf(hello.name, sizeof hello.name, "no host");
    refuses(&l, &hello);
    /* every digest but the right one */
    for (int i = 0; i < 17; i++) {
        uint32_t challenge = liar_reach_challenge(&l);
        size_t bytes = bz_shake_put_reply(l.buf, 1, i < 16 ? T_COOKIE : "", challenge);
        if (i < 16)
            l.buf[7 + i] ^= 1;
        liar_say(&l, l.buf, bytes);
        liar_is_closed(&l);
    }
    CHECK_GE(t_info(l.w.node[0]).refused, 17u + 13u);
    liar_fini(&l);
    return 0;
}

TEST_LIMIT(node_hostile, a_handshake_that_lies_is_refused, 120)
{
    t_on_each(lies, NULL, 0);
}

/* A node connects to a liar that accepts. */
struct trap {
    struct liar l;
    blitz_tcp_listener *listener;
    int step, rc;
};

static int connects(void *arg)
{
    struct trap *t = arg;
    t->rc = blitz_node_connect(t->l.w.node[1], "trap@localhost", t_soon());
    return 0;
}

/* The answers up to step, which is wrong. */
static void answer_wrong(struct trap *t)
{
    struct liar *l = &t->l;
    struct bz_hello node, me = l->me;
    uint32_t challenge;
    me.bytes = (uint16_t)snprintf(me.name, sizeof me.name, "%s",
                                  t->step == 2 ? "other@localhost" : "trap@localhost");
    me.flags = t->step == 3 ? 0 : me.flags;
    CHECK(liar_hear(l));
    CHECK_EQ(bz_shake_get_name(l->buf, l->bytes, &node), 0);
    if (t->step == 0)
        return liar_say(l, "\0\4sbad", 6);
    liar_say(l, l->buf,
             bz_shake_put_status(l->buf, t->step == 1 ? BZ_STATUS_NOT_ALLOWED : BZ_STATUS_OK));
    if (t->step == 1)
        return;
    liar_say(l, l->buf, bz_shake_put_challenge(l->buf, &me));
    if (t->step < 4)
        return;
    CHECK(liar_hear(l));
    CHECK_EQ(bz_shake_get_reply(l->buf, l->bytes, T_COOKIE, me.challenge, &challenge), 0);
    size_t bytes = bz_shake_put_ack(l->buf, T_COOKIE, challenge);
    if (t->step == 4)
        l->buf[3] ^= 1;
    liar_say(l, l->buf, t->step == 5 ? bytes - 1 : bytes);
}

static int traps(void *arg)
{
    static const int want[] = {-EPROTO, -EACCES, -EPROTO, -EPROTO, -EACCES, -EACCES};
    struct trap t;
    blitz_addr at;
    (void)arg;
    memset(&t, 0, sizeof t);
    t_nodes_places(&t.l.w);
    t.listener = t_listen(&at);
    t.l.w.place[0] = (blitz_node_place){"trap@localhost", at};
    CHECK_EQ(t_node_start(&t.l.w, 1, T_COOKIE, (blitz_node_opts){0}), 0);
    t.l.me = (struct bz_hello){.flags = BZ_NODE_OFFERS, .creation = 9, .challenge = 4711};
    for (t.step = 0; t.step < (int)BZ_ARRAY_LEN(want); t.step++) {
        blitz_task *task = t_spawn(connects, &t);
        CHECK_EQ(blitz_tcp_accept(t.listener, &t.l.tcp, NULL, t_soon()), 0);
        answer_wrong(&t);
        if (t.step == 5)
            CHECK_EQ(blitz_tcp_shutdown(t.l.tcp, BLITZ_WRITABLE), 0);
        liar_is_closed(&t.l);
        t_join(task);
        t_watch("step %d", t.step);
        CHECK_EQ(t.rc, want[t.step]);
    }
    blitz_tcp_listener_close(t.listener);
    blitz_node_stop(t.l.w.node[1]);
    return 0;
}

TEST(node_hostile, an_acceptor_that_lies_is_refused)
{
    t_on_each(traps, NULL, 0);
}

/* ---- frames ---- */

/* Send bytes as a connected peer. The node must close the connection, as broken. */
static void breaks(struct liar *l, const void *data, size_t bytes)
{
    uint64_t broken = t_info(l->w.node[0]).broken;
    liar_join(l);
    liar_say(l, data, bytes);
    liar_is_closed(l);
    while (t_info(l->w.node[0]).up != 1)
        blitz_yield();
    CHECK_EQ(t_info(l->w.node[0]).broken, broken + 1);
}

#define FRAME(...)                                                                             \
    {                                                                                          \
        (const unsigned char[]){0, 0, 0, sizeof((unsigned char[]){__VA_ARGS__}), __VA_ARGS__}, \
            4 + sizeof((unsigned char[]){__VA_ARGS__})                                         \
    }

static int frames(void *arg)
{
    const struct {
        const unsigned char *data;
        size_t bytes;
    } bad[] = {
        {(const unsigned char[]){0xff, 0xff, 0xff, 0xff}, 4}, /* a length beyond all */
        FRAME('q', 131, 104, 1, 97, 5),                       /* no pass-through */
        FRAME('p'),                                           /* nothing in it */
        FRAME('p', 131),                                      /* no term */
        FRAME('p', 104, 1, 97, 5),                            /* no version */
        FRAME('p', 131, 97, 5),                               /* no tuple */
        FRAME('p', 131, 104, 0),                              /* no number */
        FRAME('p', 131, 104, 1, 97, 99),                      /* an unknown number */
        FRAME('p', 131, 104, 1, 97, 29),                      /* spawn: not offered */
        FRAME('p', 131, 104, 1, 98, 255, 255, 255, 255),      /* minus one */
        FRAME('p', 131, 104, 1, 97, 2),                       /* parts are missing */
        FRAME('p', 131, 104, 3, 97, 2, 97, 1, 97, 1),         /* no pid */
        FRAME('p', 131, 104, 1, 97, 5, 0),                    /* a byte behind it */
        FRAME('p', 131, 104, 255, 97, 5),                     /* parts beyond the end */
        FRAME('p', 131, 108, 255, 255, 255, 255, 97),         /* a list beyond the end */
        FRAME('p', 131, 104, 4, 97, 6, 88, 119, 1, 'x', 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 119, 0,
              119, 1, 'n'), /* a message to a name, without the message */
        FRAME('p', 131, 104, 4, 97, 6, 88, 119, 1, 'x', 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 119, 0,
              119, 1, 'n', 131, 109, 0, 0, 1, 0, 1), /* ... that says more than it has */
    };
    struct liar l;
    (void)arg;
    liar_init(&l, (blitz_node_opts){0});
    for (size_t i = 0; i < BZ_ARRAY_LEN(bad); i++) {
        t_watch("frame %zu", i);
        breaks(&l, bad[i].data, bad[i].bytes);
    }
    liar_fini(&l);
    return 0;
}

TEST(node_hostile, a_frame_that_is_none_ends_its_connection_alone)
{
    t_on_each(frames, NULL, 0);
}

/* A peer may send these to no effect: ticks, messages to no one, controls about pids of others. */
static int harmless(void *arg)
{
    static const unsigned char ok[] = {0,   0, 0,   0, /* a tick */
                                       0,   0, 0,   29, 'p', 131, 104, 4, 97,  6,   88,
                                       119, 1, 'x', 0,  0,   0,   1,   0, 0,   0,   1,
                                       0,   0, 0,   1,  119, 0,   119, 1, 'n', 131, 106};
    struct liar l;
    (void)arg;
    liar_init(&l, (blitz_node_opts){0});
    liar_join(&l);
    for (int i = 0; i < 10; i++)
        liar_say(&l, ok, sizeof ok);
    for (size_t i = 0; i < sizeof ok; i++) /* byte by byte */
        liar_say(&l, ok + i, 1);
    while (t_info(l.w.node[0]).dropped < 11)
        blitz_yield();
    CHECK_EQ(t_info(l.w.node[0]).up, 2u);
    CHECK_EQ(t_info(l.w.node[0]).broken, 0u);
    liar_hang_up(&l);
    while (t_info(l.w.node[0]).up != 1)
        blitz_yield();
    liar_fini(&l);
    return 0;
}

TEST(node_hostile, messages_to_no_one_and_ticks_are_harmless)
{
    t_on_each(harmless, NULL, 0);
}

/* A length is no reason to take memory: the frame grows with its bytes. */
static int grows(void *arg)
{
    static const unsigned char head[] = {7, 0, 0, 0, 'p', 131};
    struct liar l;
    (void)arg;
    liar_init(&l, (blitz_node_opts){0});
    liar_join(&l);
    liar_say(&l, head, sizeof head);
    while (t_info(l.w.node[0]).up != 2)
        blitz_yield();
    liar_hang_up(&l);
    while (t_info(l.w.node[0]).up != 1)
        blitz_yield();
    CHECK_EQ(t_info(l.w.node[0]).broken, 0u);
    liar_fini(&l);
    return 0;
}

TEST(node_hostile, a_large_length_without_bytes_costs_nothing)
{
    t_on_each(grows, NULL, 0);
}

static int silent(void *arg)
{
    struct liar l;
    (void)arg;
    liar_init(&l, (blitz_node_opts){.tick_ns = 400 * BLITZ_MS, .connect_ns = 300 * BLITZ_MS});
    liar_join(&l);
    liar_is_closed(&l); /* it has sent ticks until then */
    liar_dial(&l);
    liar_is_closed(&l); /* not even a name */
    liar_fini(&l);
    return 0;
}

/* The honest peer ticks, and stays. */
TEST(node_hostile, a_silent_peer_is_closed_by_its_time)
{
    t_on_each(silent, NULL, 0);
}

static int slow(void *arg)
{
    struct liar l;
    blitz_binary *b;
    int rc, count = 0;
    (void)arg;
    liar_init(&l, (blitz_node_opts){.queue_high = 1 << 16, .queue_max = 1 << 20});
    liar_join(&l);
    blitz_term_pid pid = {blitz_term_atom_of("liar@localhost"), 1, 1, 9};
    blitz_actor_id there;
    CHECK_EQ(blitz_node_id_of(l.w.node[0], &pid, &there), 0);
    CHECK_EQ(blitz_binary_new(1 << 14, &b), 0);
    memset(blitz_binary_bytes(b), 0, 1 << 14);
    unsigned char *term = malloc(1 << 15);
    size_t bytes;
    blitz_term_out out;
    CHECK_NOT_NULL(term);
    blitz_term_out_init(&out, term, 1 << 15);
    blitz_term_put_binary(&out, blitz_binary_data(b), 1 << 14);
    CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
    /* The liar does not read: the kernel's buffers fill, then the queue. From then on no send is taken. */
    while ((rc = blitz_node_send_term(l.w.node[0], there, (blitz_term){term, bytes},
                                      blitz_after(50 * BLITZ_MS))) == 0)
        count++;
    CHECK_EQ(rc, -ETIMEDOUT);
    CHECK_GE(count, 4);
    while ((rc = blitz_actor_try_send(there, T_SUM, &(struct t_sum){1}, sizeof(struct t_sum))) == 0)
        ;
    CHECK_EQ(rc, -EAGAIN);
    CHECK_EQ(blitz_node_send_term(l.w.node[0], there, (blitz_term){term, 2 << 20}, 0), -EMSGSIZE);
    liar_hang_up(&l);
    while (t_info(l.w.node[0]).up != 1)
        blitz_yield();
    CHECK_GE(t_info(l.w.node[0]).lost, 1u);
    free(term);
    blitz_binary_unref(b);
    liar_fini(&l);
    return 0;
}

TEST(node_hostile, a_peer_that_does_not_read_holds_its_senders_back_alone)
{
    t_on_each(slow, NULL, 0);
}

/* ---- calls within the process ---- */

BLITZ_HANDLER(on_ask, blitz_reply_to, int64_t)
{
    *state = m->reply; /* answered by the test, later */
    return blitz_actor_reply_keep(m->reply);
}

BLITZ_HANDLER(on_answer, blitz_reply_to, void)
{
    (void)m;
    return blitz_actor_reply(*state, &(int64_t){42}, sizeof(int64_t));
}

static int asks_ours(void *arg)
{
    int64_t answer = 0;
    CHECK_EQ(blitz_actor_call(*(const blitz_actor_id *)arg, T_ADD, &(int64_t){1}, sizeof(int64_t),
                              &answer, sizeof answer, t_soon()),
             (int)sizeof answer);
    CHECK_EQ(answer, 42);
    return 0;
}

/* An answer to each reference that a call could have: {ALIAS_SEND, Pid, Ref}, {x, y}; and {SPAWN_REPLY, Ref, Pid, 0, Pid}. */
static void say_guesses(struct liar *l, uint32_t indices, uint32_t generations)
{
    unsigned char frames[512];
    blitz_term_pid me = {blitz_term_atom_of("liar@localhost"), 1, 0, 9};
    blitz_term_ref ref = {blitz_term_atom_of(t_node_name[0]),
                          t_info(l->w.node[0]).creation,
                          3,
                          {0, 0, BZ_REF_OF_A_CALL, 0, 0}};
    for (ref.id[0] = 0; ref.id[0] < indices; ref.id[0]++)
        for (ref.id[1] = 1; ref.id[1] < generations; ref.id[1]++)
            for (int spawns = 0; spawns < 2; spawns++) {
                blitz_term_out out;
                size_t bytes;
                blitz_term_out_init(&out, frames + 5, sizeof frames - 5);
                blitz_term_put_version(&out);
                blitz_term_put_tuple(&out, spawns ? 5 : 3);
                blitz_term_put_int(&out, spawns ? BZ_CONTROL_SPAWN_REPLY : BZ_CONTROL_ALIAS_SEND);
                if (spawns)
                    blitz_term_put_ref(&out, &ref);
                blitz_term_put_pid(&out, &me);
                if (spawns) {
                    blitz_term_put_int(&out, 0);
                    blitz_term_put_pid(&out, &me);
                } else {
                    blitz_term_put_ref(&out, &ref);
                    blitz_term_put_version(&out);
                    blitz_term_put_tuple(&out, 2);
                    blitz_term_put_atom(&out, "x");
                    blitz_term_put_atom(&out, "y");
                }
                CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
                bz_wire32_to(frames, (uint32_t)bytes + 1);
                frames[4] = 'p';
                liar_say(l, frames, 5 + bytes);
            }
}

static int guesses(void *arg)
{
    static const blitz_handler handlers[] = {BLITZ_ON(T_ADD, int64_t, on_ask),
                                             BLITZ_ON_EMPTY(T_SUM, on_answer)};
    static const blitz_behaviour keeper = {
        .state_bytes = sizeof(blitz_reply_to), .handlers = handlers, .handler_count = 2};
    struct liar l;
    blitz_actor_id id;
    (void)arg;
    liar_init(&l, (blitz_node_opts){0});
    CHECK_EQ(blitz_actor_spawn(&keeper, NULL, NULL, &id), 0);
    blitz_task *t = t_spawn(asks_ours, &id);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, t_soon()), 0);
    liar_join(&l);
    say_guesses(&l, 40, 12);
    while (t_info(l.w.node[0]).dropped < 40 * 11) /* the answers by alias reached no call */
        blitz_yield();
    CHECK_EQ(blitz_actor_send(id, T_SUM, NULL, 0), 0);
    t_join(t);
    CHECK_EQ(blitz_actor_stop(id), 0);
    liar_hang_up(&l);
    while (t_info(l.w.node[0]).up != 1)
        blitz_yield();
    liar_fini(&l);
    return 0;
}

TEST(node_hostile, a_peer_cannot_answer_a_call_within_the_process)
{
    t_on_each(guesses, NULL, 0);
}
