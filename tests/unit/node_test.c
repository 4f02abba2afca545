/* Nodes of one process: they find each other, shake hands, and send. */
#include "harness.h"

#include <inttypes.h>

#include "base/compiler.h"
#include "node/node.h"
#include "support/node_scene.h"
#include "support/on_each.h"
#include "support/refuse_each.h"

/* ---- parts without I/O ---- */

static void check_md5(const char *text, const char *want)
{
    struct bz_md5 m;
    unsigned char digest[BZ_MD5_BYTES];
    char hex[2 * BZ_MD5_BYTES + 1];
    bz_md5_init(&m);
    for (size_t i = 0, n = strlen(text); i < n; i += 7) /* in pieces */
        bz_md5_add(&m, text + i, n - i < 7 ? n - i : 7);
    bz_md5_end(&m, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    CHECK_STR_EQ(hex, want);
}

/* The test suite of RFC 1321. */
TEST(node, md5_is_that_of_the_rfc)
{
    check_md5("", "d41d8cd98f00b204e9800998ecf8427e");
    check_md5("a", "0cc175b9c0f1b6a831c399e269772661");
    check_md5("abc", "900150983cd24fb0d6963f7d28e17f72");
    check_md5("message digest", "f96b697d7cb7938d525a2f31aaf161d0");
    check_md5("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b");
    check_md5("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
              "d174ab98d277d9f5a5611c2c9f419d9f");
    check_md5("12345678901234567890123456789012345678901234567890123456789012345678901234567890",
              "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(node, names_are_two_parts_around_one_at)
{
    static const char *const good[] = {"a@b", "x_1@some-host", "n2@127"};
    static const char *const bad[] = {"",      "a",     "@",     "a@",        "@b",
                                      "a@b@c", "a b@c", "a@b\n", "\xc3\xa4@b"};
    for (size_t i = 0; i < BZ_ARRAY_LEN(good); i++)
        CHECK(bz_node_name_is_good(good[i], strlen(good[i])));
    for (size_t i = 0; i < BZ_ARRAY_LEN(bad); i++)
        CHECK(!bz_node_name_is_good(bad[i], strlen(bad[i])));
}

/* Each message of one side is read by the other; cut off anywhere, it is refused. The bytes are exact, so that a read beyond is seen. */
TEST(node, handshake_messages_come_back_and_are_refused_when_cut)
{
    struct bz_hello me = {.flags = BZ_NODE_OFFERS, .creation = 7, .challenge = 99, .bytes = 3};
    struct bz_hello got;
    unsigned char buf[BZ_SHAKE_MAX];
    memcpy(me.name, "a@b", 4);
    size_t bytes = bz_shake_put_name(buf, &me) - 2;
    CHECK_EQ(bz_shake_get_name(buf + 2, bytes, &got), 0);
    CHECK(got.flags == me.flags && got.creation == 7 && strcmp(got.name, "a@b") == 0);
    for (size_t cut = 0; cut < bytes; cut++) {
        unsigned char *data = malloc(cut + 1);
        CHECK_NOT_NULL(data);
        memcpy(data + 1, buf + 2, cut);
        CHECK_EQ(bz_shake_get_name(data + 1, cut, &got), -EPROTO);
        free(data);
    }
    bytes = bz_shake_put_challenge(buf, &me) - 2;
    CHECK_EQ(bz_shake_get_challenge(buf + 2, bytes, &got), 0);
    CHECK(got.flags == me.flags && got.creation == 7 && got.challenge == 99);
    for (size_t cut = 0; cut < bytes; cut++)
        CHECK_EQ(bz_shake_get_challenge(buf + 2, cut, &got), -EPROTO);
    for (int i = 0; i < BZ_STATUS_UNKNOWN; i++) {
        bytes = bz_shake_put_status(buf, (enum bz_shake_status)i) - 2;
        CHECK_EQ(bz_shake_get_status(buf + 2, bytes), (enum bz_shake_status)i);
        CHECK_EQ(bz_shake_get_status(buf + 2, bytes - 1), BZ_STATUS_UNKNOWN);
    }
}

/* Only the digest of the same cookie and the same challenge is taken. */
TEST(node, a_digest_proves_cookie_and_challenge)
{
    unsigned char buf[BZ_SHAKE_MAX];
    uint32_t theirs;
    size_t bytes = bz_shake_put_reply(buf, 5, "secret", 1234) - 2;
    CHECK_EQ(bz_shake_get_reply(buf + 2, bytes, "secret", 1234, &theirs), 0);
    CHECK_EQ(theirs, 5u);
    CHECK_EQ(bz_shake_get_reply(buf + 2, bytes, "Secret", 1234, &theirs), -EACCES);
    CHECK_EQ(bz_shake_get_reply(buf + 2, bytes, "secret", 1235, &theirs), -EACCES);
    CHECK_EQ(bz_shake_get_reply(buf + 2, bytes - 1, "secret", 1234, &theirs), -EPROTO);
    for (size_t i = 5; i < bytes; i++) {
        buf[2 + i] ^= 0x10;
        CHECK_EQ(bz_shake_get_reply(buf + 2, bytes, "secret", 1234, &theirs), -EACCES);
        buf[2 + i] ^= 0x10;
    }
    bytes = bz_shake_put_ack(buf, "secret", 77) - 2;
    CHECK_EQ(bz_shake_get_ack(buf + 2, bytes, "secret", 77), 0);
    CHECK_EQ(bz_shake_get_ack(buf + 2, bytes, "secret", 78), -EACCES);
}

/* The flags without which Erlang refuses a node: DFLAG_DIST_MANDATORY of OTP 25, and the two more of OTP 26 and 27. */
TEST(node, the_flags_are_those_that_erlang_demands)
{
    static const uint64_t otp_25[] = {0x4,   0x10,    0x80,    0x100,   0x200,    0x400,
                                      0x800, 0x10000, 0x20000, 0x40000, 0x1000000};
    static const uint64_t otp_26[] = {0x2000000, UINT64_C(0x400000000)};
    uint64_t all = 0;
    for (size_t i = 0; i < BZ_ARRAY_LEN(otp_25); i++)
        all |= otp_25[i];
    for (size_t i = 0; i < BZ_ARRAY_LEN(otp_26); i++)
        all |= otp_26[i];
    CHECK_EQ(BZ_NODE_NEEDS, all);
    CHECK_EQ(BZ_NODE_OFFERS & all, all);
    CHECK_EQ(BZ_NODE_OFFERS & 0x802043u, 0u); /* published, the atom caches, fragments */
}

TEST(node, answers_of_epmd_are_read_or_refused_at_every_length)
{
    static const unsigned char alive[] = {118, 0, 1, 2, 3, 4}, old[] = {121, 0, 1, 2};
    static const unsigned char taken[] = {118, 1, 0, 0, 0, 0};
    static const unsigned char port[] = {119, 0, 0x12, 0x34, 77, 0, 0, 6, 0, 5, 0, 1, 'a', 0, 0};
    uint32_t creation;
    uint16_t number;
    size_t used;
    for (size_t n = 0; n < sizeof alive; n++) {
        CHECK_EQ(bz_epmd_read_alive(alive, n, &creation, &used), 0);
        CHECK_EQ(used, 0u);
    }
    CHECK_EQ(bz_epmd_read_alive(alive, sizeof alive, &creation, &used), 0);
    CHECK(used == 6 && creation == 0x01020304);
    CHECK_EQ(bz_epmd_read_alive(old, sizeof old, &creation, &used), 0);
    CHECK(used == 4 && creation == 0x0102);
    CHECK_EQ(bz_epmd_read_alive(taken, sizeof taken, &creation, &used), -EEXIST);
    CHECK_EQ(bz_epmd_read_alive(port, 1, &creation, &used), -EPROTO);
    for (size_t n = 0; n < 10; n++) {
        CHECK_EQ(bz_epmd_read_port(port, n, &number, &used), 0);
        CHECK_EQ(used, 0u);
    }
    CHECK_EQ(bz_epmd_read_port(port, 10, &number, &used), 0);
    CHECK(used == 10 && number == 0x1234);
    CHECK_EQ(bz_epmd_read_port((const unsigned char[]){119, 1}, 2, &number, &used), -EHOSTUNREACH);
    CHECK_EQ(bz_epmd_read_port(alive, 1, &number, &used), -EPROTO);
}

/* ---- starting ---- */

static int starts(void *arg)
{
    struct t_nodes w;
    blitz_node_opts none = {0};
    char longest[300];
    (void)arg;
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    t_nodes_places(&w);
    CHECK_EQ(t_node_start(&w, 0, NULL, none), -EINVAL);
    CHECK_EQ(t_node_start(&w, 0, "", none), -EINVAL);
    CHECK_EQ(t_node_start(&w, 0, longest, none), -EINVAL);
    CHECK_EQ(blitz_node_start("a b", "c", &(blitz_node_opts){.no_epmd = true}, &w.node[0]),
             -EINVAL);
    CHECK_EQ(blitz_node_start(longest, "c", &(blitz_node_opts){.no_epmd = true}, &w.node[0]),
             -EINVAL);
    CHECK_NULL(w.node[0]);
    CHECK_EQ(blitz_node_start("short", "c", &(blitz_node_opts){.no_epmd = true}, &w.node[0]), 0);
    CHECK_NE(t_info(w.node[0]).port, 0);
    CHECK_NE(t_info(w.node[0]).creation, 0u);
    CHECK_STR_EQ(w.node[0]->name, "short@localhost");
    blitz_node_stop(w.node[0]);
    blitz_node_stop(NULL);
    return 0;
}

/* Safe by default: without a cookie nothing listens. */
TEST(node, no_node_starts_without_a_cookie_or_a_good_name)
{
    t_on_each(starts, NULL, 0);
    blitz_node *n = NULL;
    CHECK_EQ(blitz_node_start("a", "c", NULL, &n), -EOPNOTSUPP); /* no task */
}

/* ---- sending ---- */

static int sends(void *arg)
{
    struct t_nodes w;
    blitz_node_opts none = {0};
    (void)arg;
    t_nodes_start(&w, none);
    blitz_actor_id me = t_receiver(), adder = t_adder("adder"), there;
    for (int64_t i = 1, sum = 0; i <= 50; i++) {
        struct t_add add = {i, me};
        sum += i;
        CHECK_EQ(blitz_node_send_name(w.node[0], "adder", t_node_name[1], T_ADD, &add, sizeof add),
                 0);
        CHECK_EQ(t_receive_sum(w.node[0]), sum);
    }
    CHECK(blitz_node_is_connected(w.node[0], t_node_name[1]));
    CHECK(blitz_node_is_connected(w.node[1], t_node_name[0]));
    /* by an id: the pid of b's actor, as a knows it */
    blitz_term_pid pid;
    CHECK_EQ(blitz_node_pid_of(w.node[1], adder, &pid), 0);
    CHECK_EQ(blitz_node_id_of(w.node[0], &pid, &there), 0);
    CHECK_NE(there.node, 0u);
    CHECK(!blitz_actor_id_equal(there, adder));
    CHECK_EQ(blitz_actor_send(there, T_ADD, &(struct t_add){0, me}, sizeof(struct t_add)), 0);
    CHECK_EQ(t_receive_sum(w.node[0]), 1275);
    CHECK_EQ(blitz_actor_try_send(there, T_ADD, &(struct t_add){1, me}, sizeof(struct t_add)), 0);
    CHECK_EQ(t_receive_sum(w.node[0]), 1276);
    CHECK_EQ(blitz_actor_send_until(there, T_ADD, &(struct t_add){1, me}, sizeof(struct t_add),
                                    t_soon()),
             0);
    CHECK_EQ(t_receive_sum(w.node[0]), 1277);
    /* the same life comes back */
    blitz_term_pid again;
    CHECK_EQ(blitz_node_pid_of(w.node[0], there, &again), 0);
    CHECK(again.id == pid.id && again.serial == pid.serial && again.creation == pid.creation);
    CHECK_EQ(blitz_node_id_of(w.node[1], &again, &there), 0);
    CHECK(blitz_actor_id_equal(there, adder));
    again.creation++;
    CHECK_EQ(blitz_node_id_of(w.node[1], &again, &there), -ESRCH);
    CHECK_EQ(blitz_actor_stop(adder), 0);
    t_nodes_stop(&w);
    return 0;
}

/* One handler serves senders here and elsewhere, by name and by id, and answers by the id in the message. */
TEST(node, a_message_reaches_an_actor_of_another_node_and_its_answer_comes_back)
{
    t_on_each(sends, NULL, 0);
}

static int in_order(void *arg)
{
    struct t_nodes w;
    blitz_node_opts none = {0};
    int64_t n = (int64_t)t_scaled(20000);
    blitz_term_pid pid;
    blitz_actor_id me = t_receiver(), there;
    (void)arg;
    t_nodes_start(&w, none);
    CHECK_EQ(blitz_node_pid_of(w.node[1], me, &pid), 0);
    CHECK_EQ(blitz_node_id_of(w.node[0], &pid, &there), 0);
    for (int64_t i = 0, next = 0; next < n;) {
        for (int k = 0; k < 500 && i < n; k++, i++)
            CHECK_EQ(blitz_actor_send(there, T_SUM, &(struct t_sum){i}, sizeof(struct t_sum)), 0);
        for (; next < i; next++)
            CHECK_EQ(t_receive_sum(w.node[1]), next);
    }
    CHECK_EQ(t_info(w.node[0]).sent, (uint64_t)n);
    CHECK_EQ(t_info(w.node[1]).received, (uint64_t)n);
    t_nodes_stop(&w);
    return 0;
}

TEST(node, messages_of_one_sender_come_in_order_and_once)
{
    t_on_each(in_order, NULL, 0);
}

static int blobs(void *arg)
{
    static const size_t sizes[] = {0, 1, 500, 507, 508, 65535, 65536, 1 << 20, 5 << 20};
    struct t_nodes w;
    blitz_node_opts none = {0};
    blitz_term_pid pid;
    blitz_actor_id me = t_receiver(), there;
    _Alignas(16) char payload[BLITZ_MSG_BYTES_MAX];
    const blitz_msg *m;
    (void)arg;
    t_nodes_start(&w, none);
    CHECK_EQ(blitz_node_pid_of(w.node[1], me, &pid), 0);
    CHECK_EQ(blitz_node_id_of(w.node[0], &pid, &there), 0);
    for (size_t i = 0; i < BZ_ARRAY_LEN(sizes); i++) {
        blitz_cargo cargo = {NULL, NULL, NULL};
        CHECK_EQ(blitz_binary_new(sizes[i], &cargo.binary), 0);
        memset(blitz_binary_bytes(cargo.binary), (int)i + 1, sizes[i]);
        CHECK_EQ(blitz_actor_send_with(there, T_BLOB, &(struct t_sum){(int64_t)i},
                                       sizeof(struct t_sum), &cargo),
                 0);
        const blitz_term_message *row = t_receive(w.node[1], payload, &m);
        CHECK(row != NULL && row->what == T_BLOB);
        size_t bytes = blitz_binary_size(m->binary);
        const unsigned char *data = blitz_binary_data(m->binary);
        CHECK_GE(bytes, sizes[i]);
        CHECK(sizes[i] == 0 || (data[bytes - 1] == i + 1 && data[bytes - sizes[i]] == i + 1));
        blitz_binary_unref(cargo.binary);
    }
    t_nodes_stop(&w);
    return 0;
}

TEST(node, binaries_of_every_size_arrive_whole)
{
    t_on_each(blobs, NULL, 0);
}

static int refused(void *arg)
{
    struct t_nodes w;
    blitz_node_opts none = {0};
    blitz_actor_id me = t_receiver(), ghost = {3, 5, 77, 1};
    struct t_sum sum = {1};
    char name[BLITZ_NODE_NAME_MAX];
    (void)arg;
    t_nodes_start(&w, none);
    CHECK_EQ(blitz_actor_send(ghost, T_SUM, &sum, sizeof sum), -ESRCH);
    CHECK_EQ(blitz_node_name_of(77, name, sizeof name), -ESRCH);
    blitz_term_pid pid;
    blitz_actor_id there;
    CHECK_EQ(blitz_node_pid_of(w.node[1], me, &pid), 0);
    CHECK_EQ(blitz_node_id_of(w.node[0], &pid, &there), 0);
    CHECK_EQ(blitz_actor_send(there, T_UNSENT, &sum, sizeof sum), -EOPNOTSUPP);
    CHECK_EQ(blitz_actor_send(there, T_SUM, &sum, 3), -EINVAL);
    CHECK_EQ(blitz_actor_call(ghost, T_SUM, &sum, sizeof sum, NULL, 0, t_soon()), -ESRCH);
    CHECK_EQ(blitz_actor_call(there, T_UNSENT, &sum, sizeof sum, NULL, 0, t_soon()), -EOPNOTSUPP);
    char *block = blitz_msg_alloc(8);
    CHECK_EQ(blitz_actor_send_with(there, T_SUM, &sum, sizeof sum,
                                   &(blitz_cargo){.move = BLITZ_MOVE(block)}),
             -EOPNOTSUPP);
    blitz_msg_drop(block);
    CHECK_EQ(blitz_node_name_of(there.node, name, sizeof name), 0);
    CHECK_STR_EQ(name, t_node_name[1]);
    CHECK_EQ(blitz_node_name_of(there.node, name, 3), -ERANGE);
    CHECK_EQ(blitz_node_send_name(w.node[0], "x", t_node_name[0], T_SUM, &sum, sizeof sum),
             -EINVAL);
    CHECK_EQ(blitz_node_send_name(w.node[0], "x", "nohost", T_SUM, &sum, sizeof sum), -EINVAL);
    CHECK_EQ(blitz_node_send_name(w.node[0], "x", t_node_name[1], T_UNSENT, &sum, sizeof sum),
             -EOPNOTSUPP);
    /* to no one there: dropped and counted */
    CHECK_EQ(blitz_node_send_name(w.node[0], "x", t_node_name[1], T_SUM, &sum, sizeof sum), 0);
    CHECK_EQ(blitz_actor_send(there, T_SUM, &sum, sizeof sum), 0);
    CHECK_EQ(t_receive_sum(w.node[1]), 1);
    CHECK_EQ(t_info(w.node[1]).dropped, 1u);
    blitz_node_stop(w.node[0]);
    CHECK_EQ(blitz_actor_send(there, T_SUM, &sum, sizeof sum), -ESRCH); /* no node sends it */
    blitz_node_stop(w.node[1]);
    return 0;
}

TEST(node, a_message_that_cannot_be_sent_is_refused_with_its_reason)
{
    t_on_each(refused, NULL, 0);
}

/* ---- connecting ---- */

static int connects(void *arg)
{
    struct t_nodes w;
    (void)arg;
    t_nodes_places(&w);
    blitz_actor_id me = t_receiver();
    blitz_node_opts opts = {.watcher = me};
    CHECK_EQ(t_node_start(&w, 0, T_COOKIE, opts), 0);
    CHECK_EQ(blitz_node_connect(w.node[0], t_node_name[1], t_soon()), -ECONNREFUSED);
    CHECK_EQ(blitz_node_connect(w.node[0], "c@localhost", t_soon()), -EHOSTUNREACH);
    CHECK_EQ(blitz_node_connect(w.node[0], t_node_name[0], t_soon()), -EINVAL);
    CHECK_EQ(t_node_start(&w, 1, T_COOKIE, (blitz_node_opts){0}), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(blitz_node_connect(w.node[0], t_node_name[1], t_soon()), 0);
        CHECK_EQ(blitz_node_connect(w.node[0], t_node_name[1], t_soon()), 0); /* it is there */
        blitz_node_event e = t_receive_event();
        CHECK(e.is_up);
        CHECK_EQ(blitz_node_disconnect(w.node[0], t_node_name[1]), 0);
        e = t_receive_event();
        CHECK(!e.is_up && e.reason == 0);
        CHECK_EQ(blitz_node_disconnect(w.node[0], t_node_name[1]), -ENOTCONN);
    }
    CHECK_EQ(blitz_node_connect(w.node[0], t_node_name[1], t_soon()), 0);
    CHECK(t_receive_event().is_up);
    blitz_node_stop(w.node[1]);
    blitz_node_event e = t_receive_event();
    CHECK(!e.is_up && e.reason == -ECONNRESET);
    blitz_node_stop(w.node[0]);
    return 0;
}

/* Up and down are one message each, and in turn. */
TEST(node, connections_come_and_go_and_the_watcher_is_told)
{
    t_on_each(connects, NULL, 0);
}

static int wrong_cookie(void *arg)
{
    struct t_nodes w;
    (void)arg;
    t_nodes_places(&w);
    CHECK_EQ(t_node_start(&w, 0, "one", (blitz_node_opts){0}), 0);
    CHECK_EQ(t_node_start(&w, 1, "two", (blitz_node_opts){0}), 0);
    CHECK_EQ(blitz_node_connect(w.node[0], t_node_name[1], t_soon()), -EACCES);
    CHECK_EQ(blitz_node_connect(w.node[1], t_node_name[0], t_soon()), -EACCES);
    CHECK(!blitz_node_is_connected(w.node[1], t_node_name[0]));
    CHECK_EQ(t_info(w.node[1]).peers, 1u); /* that it asked for itself */
    CHECK_GE(t_info(w.node[1]).refused, 1u);
    /* a message to it is lost, and says so in a count */
    CHECK_EQ(blitz_node_send_name(w.node[0], "x", t_node_name[1], T_SUM, &(struct t_sum){1},
                                  sizeof(struct t_sum)),
             0);
    while (t_info(w.node[0]).lost == 0)
        blitz_yield();
    t_nodes_stop(&w);
    return 0;
}

TEST(node, a_wrong_cookie_is_refused_by_both_sides)
{
    t_on_each(wrong_cookie, NULL, 0);
}

static int allowed(void *arg)
{
    static const char *const only[] = {"c@localhost"};
    struct t_nodes w;
    (void)arg;
    t_nodes_places(&w);
    CHECK_EQ(t_node_start(&w, 0, T_COOKIE, (blitz_node_opts){0}), 0);
    CHECK_EQ(t_node_start(&w, 1, T_COOKIE, (blitz_node_opts){.allowed = only, .allowed_count = 1}),
             0);
    CHECK_EQ(blitz_node_connect(w.node[0], t_node_name[1], t_soon()), -EACCES);
    CHECK_EQ(blitz_node_connect(w.node[1], t_node_name[0], t_soon()), -EACCES);
    t_nodes_stop(&w);
    return 0;
}

TEST(node, only_allowed_nodes_connect)
{
    t_on_each(allowed, NULL, 0);
}

struct crossing {
    struct t_nodes w;
    int rc[2];
};

static int cross(void *arg)
{
    struct crossing *c = arg;
    c->rc[0] = blitz_node_connect(c->w.node[0], t_node_name[1], t_soon());
    return 0;
}

static int cross_back(void *arg)
{
    struct crossing *c = arg;
    c->rc[1] = blitz_node_connect(c->w.node[1], t_node_name[0], t_soon());
    return 0;
}

static int crosses(void *arg)
{
    struct crossing c;
    blitz_actor_id me = t_receiver();
    (void)arg;
    for (uint64_t i = 0, n = t_scaled(100); i < n; i++) {
        t_watch("round %" PRIu64, i);
        t_nodes_start(&c.w, (blitz_node_opts){0});
        blitz_task *a = t_spawn(cross, &c), *b = t_spawn(cross_back, &c);
        t_join(a);
        t_join(b);
        CHECK_EQ(c.rc[0], 0);
        CHECK_EQ(c.rc[1], 0);
        for (int k = 0; k < 2; k++) { /* and both directions carry messages */
            blitz_term_pid pid;
            blitz_actor_id there;
            CHECK_EQ(blitz_node_pid_of(c.w.node[!k], me, &pid), 0);
            CHECK_EQ(blitz_node_id_of(c.w.node[k], &pid, &there), 0);
            CHECK_EQ(blitz_node_connect(c.w.node[k], t_node_name[!k], t_soon()), 0);
        }
        t_nodes_stop(&c.w);
    }
    return 0;
}

/* Two nodes connect to each other at the same time: one connection is left, and both callers have it. */
TEST_LIMIT(node, connects_that_cross_become_one_connection, 120)
{
    t_on_each(crosses, NULL, 0);
}

/* ---- without memory ---- */

/* Start, connect, send and stop; the first error. */
static int life(void *arg)
{
    struct t_nodes w;
    struct t_sum sum = {1};
    (void)arg;
    t_nodes_places(&w);
    int rc = t_node_start(&w, 0, T_COOKIE, (blitz_node_opts){.connect_ns = 500 * BLITZ_MS});
    if (rc == 0)
        rc = t_node_start(&w, 1, T_COOKIE, (blitz_node_opts){.connect_ns = 500 * BLITZ_MS});
    if (rc == 0)
        rc = blitz_node_connect(w.node[0], t_node_name[1], t_soon());
    if (rc == 0)
        rc = blitz_node_send_name(w.node[0], "nobody", t_node_name[1], T_SUM, &sum, sizeof sum);
    while (rc == 0 && t_info(w.node[1]).dropped == 0 &&
           blitz_node_is_connected(w.node[0], t_node_name[1]))
        blitz_yield();
    t_nodes_stop(&w);
    return rc;
}

/* Which error it is depends on the side that has no memory: the other one sees a closed connection. */
static int lives(void *arg)
{
    int rc = life(arg);
    CHECK(rc == 0 || rc == -ENOMEM || rc == -ECONNRESET || rc == -EACCES || rc == -ETIMEDOUT);
    return rc == 0 ? 0 : -ENOMEM;
}

TEST_LIMIT(node, without_memory_a_node_fails_and_leaves_nothing, 240)
{
    t_refuse_each(lives, NULL, false);
    t_refuse_each(lives, NULL, true);
}
