/*
 * Peers of OTP 26 and 27, played from bytes. Handshakes and frames have the form in which OTP 25 sends them to a node of ours, and the flags
 * that the documents of the protocol list for 26 and 27. From OTP 26 on, V4_NC and UNLINK_ID are mandatory as well.
 *
 * The numbers are written out, and not taken from the header of the node: a wrong one there must not be right here.
 */
#include "harness.h"

#include "base/compiler.h"
#include "support/node_liar.h"
#include "support/on_each.h"

struct bytes {
    const char *data;
    size_t size;
};
#define BYTES(text)                 \
    {                               \
        (text), sizeof(text "") - 1 \
    }

/* Each flag without which OTP 26 and 27 refuse a node. */
static const uint64_t mandatory[] = {0x4,
                                     0x10,
                                     0x80,
                                     0x100,
                                     0x200,
                                     0x400,
                                     0x800,
                                     0x10000,
                                     0x20000,
                                     0x40000,
                                     0x1000000,
                                     0x2000000,
                                     UINT64_C(0x400000000)};
static const uint64_t mandatory_25_digest = 0x4000000; /* stands for the first eleven of them */

/* The names have 13 bytes. */
#define PUBLISHED "\0\0\0\x0d\x07\xdf\x7f\xbd"
#define HIDDEN "\0\0\0\x0d\x07\xdf\x7f\xbc"
#define CREATION "\x6a\xff\x8e\x12"
#define PID(node) "Xw\x0d" node "\0\0\0\x09\0\0\0\0" CREATION
#define LARGE_PID(node) "Xw\x0d" node "\x0f\xff\xff\xf9\xff\xff\xff\xfe" CREATION
#define REF(node) "Z\0\3w\x0d" node CREATION "\0\0\x23\x5e\xa8\x84\0\1\x97\xed\x59\x70"
#define LARGE_REF(node)                                                                           \
    "Z\0\5w\x0d" node CREATION "\0\0\x23\x5f\xa8\x84\0\1\x97\xed\x59\x70\xff\xff\xff\xfe\x80\0\0" \
    "\1"
/* A pid of ours: 0xee stands for its number, serial and creation. */
#define OURS \
    "Xw\x0b" \
    "a@localhost\xee\xee\xee\xee\xee\xee\xee\xee\xee\xee\xee\xee"

/* The bytes that one version sends, and those that it must get. Frames are without their length. */
struct version {
    const char *title, *node;
    struct bytes name, challenge;
    struct bytes add, sum;                         /* {adder, a@localhost} ! {add, 5, self()} */
    struct bytes large_add, large_sum;             /* the same from a pid with large numbers */
    struct bytes link, unlink, acknowledged;       /* link(Pid), unlink(Pid) */
    struct bytes monitor, call, answer, demonitor; /* gen_server:call({any, a@localhost}, ask) */
    struct bytes spawn, refused;                   /* spawn_request(Node, os, cmd, [], [link]) */
    struct bytes watch, end, down; /* monitor(process, {adder, a@localhost}), exit(Pid, shutdown) */
    struct bytes ours;             /* the message that it gets from us */
};

#define VERSION(title, node, flags)                                                             \
    {                                                                                           \
        title, node, BYTES("\0\x1cN" flags CREATION "\0\x0d" node),                             \
            BYTES("\0\x20N" flags "\x9a\xbc\xde\xf0" CREATION "\0\x0d" node),                   \
            BYTES("p\x83h\4a\6" PID(node) "w\0w\5adder\x83h\3w\3adda\5" PID(node)),             \
            BYTES("p\x83h\3a\2w\0" PID(node) "\x83h\2w\3suma\5"),                               \
            BYTES("p\x83h\4a\6" LARGE_PID(node) "w\0w\5adder\x83h\3w\3adda\2" LARGE_PID(node)), \
            BYTES("p\x83h\3a\2w\0" LARGE_PID(node) "\x83h\2w\3suma\7"),                         \
            BYTES("p\x83h\3a\1" PID(node) OURS), BYTES("p\x83h\4a\043a\4" PID(node) OURS),      \
            BYTES("p\x83h\4a\044a\4" OURS PID(node)),                                           \
            BYTES("p\x83h\4a\x13" PID(node) "w\3any" REF(node)),                                \
            BYTES("p\x83h\4a\6" PID(node) "w\0w\3any\x83h\3w\x09$gen_callh\2" PID(              \
                node) "l\0\0\0\1w\5alias" REF(node) "w\3ask"),                                  \
            BYTES("p\x83h\3a\x21" OURS REF(node) "\x83h\2l\0\0\0\1w\5alias" REF(node) "w\2ok"), \
            BYTES("p\x83h\4a\x14" PID(node) "w\3any" REF(node)),                                \
            BYTES("p\x83h\6a\x1d" REF(node) PID(node)                                           \
                      PID(node) "h\3w\2osw\3cmda\0l\0\0\0\1w\4linkj\x83j"),                     \
            BYTES("p\x83h\5a\x1f" REF(node) PID(node) "a\0w\5undef"),                           \
            BYTES("p\x83h\4a\x13" PID(node) "w\5adder" LARGE_REF(node)),                        \
            BYTES("p\x83h\4a\x08" PID(node) OURS "w\x08shutdown"),                              \
            BYTES("p\x83h\5a\x15w\5adder" PID(node) LARGE_REF(node) "w\x08shutdown"),           \
            BYTES("p\x83h\3a\2w\0" PID(node) "\x83h\2w\3suma\x2a")                              \
    }

static const struct version versions[] = {VERSION("OTP 26", "r26@localhost", PUBLISHED),
                                          VERSION("OTP 26, hidden", "r26@localhost", HIDDEN),
                                          VERSION("OTP 27", "r27@localhost", PUBLISHED),
                                          VERSION("OTP 27, hidden", "r27@localhost", HIDDEN)};

/* md5("monster" and the challenge as decimal text): of 0x72cc74fe, which it sends as the initiator, and of 0x9abcdef0. */
static const unsigned char reply_challenge[] = {0x72, 0xcc, 0x74, 0xfe};
static const char reply_digest[] =
    "\x52\x35\x06\x18\x1d\xef\xcf\x1c\xe1\x1d\xe4\x92\x4b\x5f\xd3\x7a";
static const char challenge_digest[] =
    "\xf4\x44\xf1\xc4\x88\x8f\x46\xe9\xc2\x19\x1e\xcb\xf5\x80\x55\x86";

/* A node of ours as another one sees it: what it offers, and that it is hidden. */
static const char our_flags[] = "\0\0\0\x0d\x07\x07\x4f\xbc";

/* ---- the parts of a conversation ---- */

static void fill_in(char *data, size_t size, const blitz_term_pid *ours)
{
    for (size_t i = 0; i + 12 <= size; i++)
        if (memcmp(data + i, "\xee\xee\xee\xee\xee\xee\xee\xee\xee\xee\xee\xee", 12) == 0) {
            bz_wire32_to((unsigned char *)data + i, ours->id);
            bz_wire32_to((unsigned char *)data + i + 4, ours->serial);
            bz_wire32_to((unsigned char *)data + i + 8, ours->creation);
        }
}

static void say_frame(struct liar *l, struct bytes frame, const blitz_term_pid *ours)
{
    char data[512];
    CHECK_LE(frame.size + 4, sizeof data);
    bz_wire32_to((unsigned char *)data, (uint32_t)frame.size);
    memcpy(data + 4, frame.data, frame.size);
    fill_in(data + 4, frame.size, ours);
    liar_say(l, data, 4 + frame.size);
}

/* The next frame is that one, byte for byte. */
static void hear_frame(struct liar *l, struct bytes want, const blitz_term_pid *ours)
{
    char data[512], got[512];
    size_t size;
    do { /* ticks */
        CHECK_EQ(blitz_tcp_read_exact(l->tcp, got, 4, NULL, t_soon()), 0);
        size = bz_wire32((unsigned char *)got);
    } while (size == 0);
    CHECK_LE(size, sizeof got);
    CHECK_EQ(blitz_tcp_read_exact(l->tcp, got, size, NULL, t_soon()), 0);
    memcpy(data, want.data, want.size);
    fill_in(data, want.size, ours);
    CHECK_EQ(size, want.size);
    for (size_t i = 0; i < size; i++) {
        t_watch("byte %zu", i);
        CHECK_EQ((unsigned char)got[i], (unsigned char)data[i]);
    }
}

/* The handshake, as its initiator. */
static void connects_to_us(struct liar *l, const struct version *v)
{
    unsigned char reply[23] = {0, 21, 'r'};
    liar_dial(l);
    liar_say(l, v->name.data, v->name.size);
    CHECK(liar_hear(l));
    CHECK_EQ(l->bytes, 3u);
    CHECK_EQ(memcmp(l->buf, "sok", 3), 0);
    CHECK(liar_hear(l));
    CHECK_EQ(l->bytes, 19u + 11u);
    CHECK_EQ(l->buf[0], 'N');
    CHECK_EQ(memcmp(l->buf + 1, our_flags, 8), 0);
    CHECK_EQ(bz_wire32(l->buf + 13), t_info(l->w.node[0]).creation);
    CHECK_EQ(memcmp(l->buf + 17,
                    "\0\x0b"
                    "a@localhost",
                    13),
             0);
    memcpy(reply + 3, reply_challenge, 4);
    unsigned char
        whole[BZ_SHAKE_REPLY]; /* our challenge is random, so the digest is not recorded */
    (void)bz_shake_put_reply(whole, 0, T_COOKIE, bz_wire32(l->buf + 9));
    memcpy(reply + 7, whole + 7, 16);
    liar_say(l, reply, sizeof reply);
    CHECK(liar_hear(l));
    CHECK_EQ(l->bytes, 17u);
    CHECK_EQ(l->buf[0], 'a');
    CHECK_EQ(memcmp(l->buf + 1, reply_digest, 16), 0);
}

BLITZ_HANDLER(on_any, void, void)
{
    (void)state;
    return blitz_node_reply_term(m->reply, (blitz_term){(const unsigned char *)"w\2ok", 4});
}

/* ---- it connects to us ---- */

static void converse(struct liar *l, const struct version *v)
{
    static const blitz_handler handlers[] = {BLITZ_ON_EMPTY(BLITZ_MSG_TERM, on_any)};
    static const blitz_behaviour behaviour = {.handlers = handlers, .handler_count = 1};
    blitz_actor_id adder = t_adder("adder"), any;
    blitz_term_pid ours, of_any;
    CHECK_EQ(blitz_actor_spawn(&behaviour, NULL, &(blitz_actor_opts){.name = "any"}, &any), 0);
    CHECK_EQ(blitz_node_pid_of(l->w.node[0], adder, &ours), 0);
    CHECK_EQ(blitz_node_pid_of(l->w.node[0], any, &of_any), 0);
    say_frame(l, v->add, &ours);
    hear_frame(l, v->sum, &ours);
    say_frame(l, v->large_add, &ours);
    hear_frame(l, v->large_sum, &ours);
    say_frame(l, v->link, &ours);
    say_frame(l, v->unlink, &ours);
    hear_frame(l, v->acknowledged, &ours);
    say_frame(l, v->monitor, &of_any);
    say_frame(l, v->call, &of_any);
    hear_frame(l, v->answer, &of_any);
    say_frame(l, v->demonitor, &of_any);
    say_frame(l, v->spawn, &ours);
    hear_frame(l, v->refused, &ours);
    say_frame(l, v->watch, &ours);
    say_frame(l, v->end, &ours);
    hear_frame(l, v->down, &ours);
    CHECK_EQ(blitz_actor_stop(any), 0);
}

static int comes(void *arg)
{
    struct liar l;
    (void)arg;
    liar_init(&l, (blitz_node_opts){0});
    for (size_t i = 0; i < BZ_ARRAY_LEN(versions); i++) {
        t_watch("%s", versions[i].title);
        connects_to_us(&l, &versions[i]);
        converse(&l, &versions[i]);
        liar_hang_up(&l);
        while (t_info(l.w.node[0]).up != 1)
            blitz_yield();
    }
    CHECK_EQ(t_info(l.w.node[0]).refused + t_info(l.w.node[0]).broken, 0u);
    liar_fini(&l);
    return 0;
}

TEST(node_versions, a_peer_of_otp_26_or_27_connects_and_talks)
{
    t_on_each(comes, NULL, 0);
}

/* ---- we connect to it ---- */

struct host {
    struct liar l; /* its node 1 is ours */
    blitz_tcp_listener *listener;
    const struct version *version;
    int rc;
};

static int connects(void *arg)
{
    struct host *h = arg;
    h->rc = blitz_node_connect(h->l.w.node[1], h->version->node, t_soon());
    return 0;
}

static void host_start(struct host *h)
{
    blitz_addr at;
    memset(h, 0, sizeof *h);
    t_nodes_places(&h->l.w);
    h->listener = t_listen(&at);
    h->l.w.place[0] = (blitz_node_place){versions[0].node, at};
    h->l.w.place[1] = (blitz_node_place){versions[2].node, at};
    CHECK_EQ(t_node_start(&h->l.w, 1, T_COOKIE, (blitz_node_opts){0}), 0);
}

static void host_stop(struct host *h)
{
    blitz_tcp_listener_close(h->listener);
    blitz_node_stop(h->l.w.node[1]);
}

/* Accept our connect, and hear its name. */
static blitz_task *meets(struct host *h)
{
    struct liar *l = &h->l;
    blitz_task *task = t_spawn(connects, h);
    CHECK_EQ(blitz_tcp_accept(h->listener, &l->tcp, NULL, t_soon()), 0);
    CHECK(liar_hear(l));
    CHECK_EQ(l->bytes, 15u + 11u);
    CHECK_EQ(l->buf[0], 'N');
    CHECK_EQ(memcmp(l->buf + 1, our_flags, 8), 0);
    CHECK_EQ(bz_wire32(l->buf + 9), t_info(l->w.node[1]).creation);
    CHECK_EQ(memcmp(l->buf + 13,
                    "\0\x0b"
                    "b@localhost",
                    13),
             0);
    return task;
}

/* The handshake behind the status, as its acceptor. */
static void accepts(struct host *h)
{
    struct liar *l = &h->l;
    unsigned char ack[BZ_SHAKE_ACK];
    liar_say(l, h->version->challenge.data, h->version->challenge.size);
    CHECK(liar_hear(l));
    CHECK_EQ(l->bytes, 21u);
    CHECK_EQ(l->buf[0], 'r');
    CHECK_EQ(memcmp(l->buf + 5, challenge_digest, 16), 0);
    liar_say(l, ack, bz_shake_put_ack(ack, T_COOKIE, bz_wire32(l->buf + 1)));
}

static int goes(void *arg)
{
    struct host h;
    blitz_actor_id there;
    (void)arg;
    host_start(&h);
    for (size_t i = 0; i < BZ_ARRAY_LEN(versions); i++) {
        h.version = &versions[i];
        t_watch("%s", h.version->title);
        blitz_task *task = meets(&h);
        if (i % 2 == 0)
            liar_say(&h.l, "\0\3sok", 5);
        else /* it was connecting to us */
            liar_say(&h.l, "\0\x10sok_simultaneous", 18);
        accepts(&h);
        t_join(task);
        CHECK_EQ(h.rc, 0);
        blitz_term_pid pid = {blitz_term_atom_of(h.version->node), 9, 0, 0x6aff8e12};
        CHECK_EQ(blitz_node_id_of(h.l.w.node[1], &pid, &there), 0);
        CHECK_EQ(blitz_actor_send(there, T_SUM, &(struct t_sum){42}, sizeof(struct t_sum)), 0);
        hear_frame(&h.l, h.version->ours, &pid);
        liar_hang_up(&h.l);
        while (t_info(h.l.w.node[1]).up != 0)
            blitz_yield();
    }
    CHECK_EQ(t_info(h.l.w.node[1]).refused + t_info(h.l.w.node[1]).broken, 0u);
    host_stop(&h);
    return 0;
}

TEST(node_versions, we_connect_to_a_peer_of_otp_26_or_27)
{
    t_on_each(goes, NULL, 0);
}

/* ---- flags that are missing ---- */

/* A message of the handshake with other flags. */
static struct bytes with_flags(struct bytes message, uint64_t flags, char *copy)
{
    memcpy(copy, message.data, message.size);
    bz_wire64_to((unsigned char *)copy + 3, flags);
    return (struct bytes){copy, message.size};
}

static uint64_t flags_without(const struct version *v, uint64_t missing)
{
    uint64_t flags = bz_wire64((const unsigned char *)v->name.data + 3);
    CHECK_EQ(flags & missing, missing);
    return flags & ~missing & ~mandatory_25_digest;
}

static int lacks(void *arg)
{
    struct liar l;
    char copy[64];
    (void)arg;
    liar_init(&l, (blitz_node_opts){0});
    for (size_t i = 0; i < BZ_ARRAY_LEN(versions); i++)
        for (size_t k = 0; k < BZ_ARRAY_LEN(mandatory); k++) {
            const struct version *v = &versions[i];
            t_watch("%s without %llx", v->title, (unsigned long long)mandatory[k]);
            liar_dial(&l);
            struct bytes name = with_flags(v->name, flags_without(v, mandatory[k]), copy);
            liar_say(&l, name.data, name.size);
            CHECK(liar_hear(&l));
            CHECK_EQ(l.bytes, 12u);
            CHECK_EQ(memcmp(l.buf, "snot_allowed", 12), 0);
            liar_is_closed(&l);
        }
    CHECK_EQ(t_info(l.w.node[0]).refused, BZ_ARRAY_LEN(versions) * BZ_ARRAY_LEN(mandatory));
    liar_fini(&l);
    return 0;
}

TEST(node_versions, a_peer_that_lacks_one_of_thirteen_flags_is_not_allowed)
{
    t_on_each(lacks, NULL, 0);
}

static int host_lacks(void *arg)
{
    struct host h;
    char copy[64];
    (void)arg;
    host_start(&h);
    for (size_t i = 0; i < BZ_ARRAY_LEN(versions); i++)
        for (size_t k = 0; k < BZ_ARRAY_LEN(mandatory); k++) {
            h.version = &versions[i];
            t_watch("%s without %llx", h.version->title, (unsigned long long)mandatory[k]);
            blitz_task *task = meets(&h);
            liar_say(&h.l, "\0\3sok", 5);
            struct bytes challenge =
                with_flags(h.version->challenge, flags_without(h.version, mandatory[k]), copy);
            liar_say(&h.l, challenge.data, challenge.size);
            liar_is_closed(&h.l);
            t_join(task);
            CHECK_EQ(h.rc, -EPROTO);
        }
    host_stop(&h);
    return 0;
}

TEST(node_versions, we_leave_a_peer_that_lacks_one_of_thirteen_flags)
{
    t_on_each(host_lacks, NULL, 0);
}

/* From OTP 25 on, one flag may stand for the eleven that 25 demands. The other two are needed beside it. */
static int digests(void *arg)
{
    const uint64_t both = mandatory[11] | mandatory[12];
    struct version v = versions[0];
    struct liar l;
    char copy[64];
    (void)arg;
    liar_init(&l, (blitz_node_opts){0});
    v.name = with_flags(v.name, mandatory_25_digest | both, copy);
    connects_to_us(&l, &v);
    converse(&l, &v);
    liar_hang_up(&l);
    for (size_t k = 11; k < 13; k++) {
        liar_dial(&l);
        v.name = with_flags(v.name, mandatory_25_digest | (both & ~mandatory[k]), copy);
        liar_say(&l, v.name.data, v.name.size);
        CHECK(liar_hear(&l));
        CHECK_EQ(memcmp(l.buf, "snot_allowed", 12), 0);
        liar_is_closed(&l);
    }
    while (t_info(l.w.node[0]).up != 1)
        blitz_yield();
    liar_fini(&l);
    return 0;
}

TEST(node_versions, one_flag_stands_for_the_eleven_of_otp_25)
{
    t_on_each(digests, NULL, 0);
}
