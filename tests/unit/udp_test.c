/* Datagrams: whole or not at all, one or many, to one, to a group. */
#include "harness.h"

#include <net/if.h>
#include <unistd.h>

#include "base/compiler.h"
#include "blitz/udp.h"
#include "support/keepers.h"
#include "support/net.h"
#include "support/on_each.h"
#include "support/sanitizers.h"

static blitz_deadline soon(void)
{
    return blitz_after(20 * BLITZ_S);
}

static blitz_udp *bound(blitz_addr *at)
{
    blitz_udp *u;
    *at = blitz_addr_loopback_v4(0);
    CHECK_EQ(blitz_udp_bind(at, NULL, &u), 0);
    CHECK_EQ(blitz_udp_local(u, at), 0);
    return u;
}

static int to_and_from(void *arg)
{
    blitz_addr at[2], from;
    blitz_udp *u[2] = {bound(&at[0]), bound(&at[1])};
    char data[8] = "";
    (void)arg;
    CHECK_EQ(blitz_udp_send_to(u[0], "hello", 5, &at[1], soon()), 5);
    CHECK_EQ(blitz_udp_send_to(u[0], "", 0, &at[1], soon()), 0);
    CHECK_EQ(blitz_udp_send_to(u[0], "a long datagram", 15, &at[1], soon()), 15);
    CHECK_EQ(blitz_udp_send_to(u[0], "next", 4, &at[1], soon()), 4);
    CHECK_EQ(blitz_udp_recv_from(u[1], data, sizeof data, &from, soon()), 5);
    CHECK_MEM_EQ(data, "hello", 5);
    CHECK(blitz_addr_is_equal(&from, &at[0]));
    CHECK_EQ(blitz_udp_recv_from(u[1], data, sizeof data, &from, soon()), 0); /* an empty one */
    CHECK_EQ(blitz_udp_recv_from(u[1], data, sizeof data, NULL, soon()), 15); /* it was cut */
    CHECK_MEM_EQ(data, "a long d", 8);
    CHECK_EQ(blitz_udp_recv(u[1], data, sizeof data, soon()), 4); /* and its rest is gone */
    CHECK_EQ(blitz_udp_recv(u[1], data, sizeof data, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    blitz_udp_close(u[0]);
    blitz_udp_close(u[1]);
    return 0;
}

TEST(udp, a_datagram_arrives_whole_or_says_that_it_was_cut)
{
    t_on_each(to_and_from, NULL, 0);
}

static int connected(void *arg)
{
    blitz_addr at[3], peer;
    blitz_udp *u[3] = {bound(&at[0]), bound(&at[1]), bound(&at[2])};
    char data[8];
    (void)arg;
    CHECK_EQ(blitz_udp_send(u[0], "x", 1, soon()), -EDESTADDRREQ);
    CHECK_EQ(blitz_udp_connect(u[0], &at[1]), 0);
    CHECK_EQ(blitz_udp_peer(u[0], &peer), 0);
    CHECK(blitz_addr_is_equal(&peer, &at[1]));
    CHECK_EQ(blitz_udp_send_to(u[2], "other", 5, &at[0], soon()), 5); /* no receiver */
    CHECK_EQ(blitz_udp_send(u[0], "x", 1, soon()), 1);
    CHECK_EQ(blitz_udp_recv(u[1], data, sizeof data, soon()), 1);
    CHECK_EQ(blitz_udp_send_to(u[1], "yy", 2, &at[0], soon()), 2);
    CHECK_EQ(blitz_udp_recv(u[0], data, sizeof data, soon()), 2);
    blitz_udp_close(u[1]); /* the "port unreachable" error comes late */
    CHECK_EQ(blitz_udp_send(u[0], "x", 1, soon()), 1);
    CHECK_EQ(blitz_udp_recv(u[0], data, sizeof data, soon()), -ECONNREFUSED);
    CHECK_EQ(blitz_udp_connect(u[0], NULL), 0);
    CHECK_EQ(blitz_udp_peer(u[0], &peer), -ENOTCONN);
    blitz_udp_close(u[0]);
    blitz_udp_close(u[2]);
    return 0;
}

TEST(udp, connected_it_hears_one_peer_only)
{
    t_on_each(connected, NULL, 0);
}

static int many(void *arg)
{
    enum { COUNT = 20 };
    blitz_addr at[2];
    blitz_udp *u[2] = {bound(&at[0]), bound(&at[1])};
    blitz_datagram out[COUNT], in[BLITZ_DATAGRAMS_MAX];
    char sent[COUNT], got[BLITZ_DATAGRAMS_MAX][4];
    int n = 0;
    (void)arg;
    for (int i = 0; i < COUNT; i++) {
        sent[i] = (char)i;
        out[i] = (blitz_datagram){.data = &sent[i], .bytes = 1, .addr = at[1]};
    }
    CHECK_EQ(blitz_udp_send_many(u[0], out, COUNT, soon()), COUNT);
    while (n < COUNT) {
        for (int i = 0; i < BLITZ_DATAGRAMS_MAX; i++)
            in[i] = (blitz_datagram){.data = got[i], .bytes = sizeof got[i]};
        int some = blitz_udp_recv_many(u[1], in, BLITZ_DATAGRAMS_MAX, soon());
        CHECK_GT(some, 0);
        for (int i = 0; i < some; i++) {
            CHECK_EQ(in[i].bytes, 1u);
            CHECK_EQ(got[i][0], n + i);
            CHECK(blitz_addr_is_equal(&in[i].addr, &at[0]));
        }
        n += some;
    }
    CHECK_EQ(n, COUNT);
    CHECK_EQ(blitz_udp_recv_many(u[1], in, 1, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_udp_recv_many(u[1], in, 0, 0), -EINVAL);
    CHECK_EQ(blitz_udp_recv_many(u[1], in, BLITZ_DATAGRAMS_MAX + 1, 0), -EINVAL);
    out[0].data = NULL;
    CHECK_EQ(blitz_udp_send_many(u[0], out, 1, 0), -EINVAL);
    blitz_udp_close(u[0]);
    blitz_udp_close(u[1]);
    return 0;
}

TEST(udp, many_go_in_one_call)
{
    t_on_each(many, NULL, 0);
}

static int receives(void *arg)
{
    char data[8];
    return (int)blitz_udp_recv(arg, data, sizeof data, BLITZ_FOREVER);
}

static int cancels(void *arg)
{
    blitz_addr at[2];
    blitz_udp *u[2] = {bound(&at[0]), bound(&at[1])};
    blitz_net_future f, g;
    char data[8];
    (void)arg;
    blitz_task *task = t_spawn(receives, u[1]);
    t_until_waits(task);
    blitz_task_cancel(task);
    CHECK_EQ(t_join(task), -ECANCELED);
    CHECK_EQ(blitz_udp_connect(u[0], &at[1]), 0);
    blitz_udp_recv_future_init(&f, u[1], data, sizeof data);
    CHECK_EQ(blitz_await(&f.future, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_udp_wait(u[1], BLITZ_READABLE, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(blitz_udp_wait(u[1], 0, soon()), -EINVAL);
    CHECK_EQ(blitz_udp_wait(NULL, BLITZ_READABLE, soon()), -EINVAL);
    blitz_udp_send_future_init(&g, u[0], "abc", 3);
    CHECK_EQ(blitz_await(&g.future, soon()), 0);
    CHECK_EQ(g.result, 3);
    CHECK_EQ(blitz_udp_wait(u[1], BLITZ_READABLE, soon()), 0);
    CHECK_EQ(blitz_udp_wait(u[1], BLITZ_WRITABLE, soon()), 0);
    blitz_udp_wait_future_init(&f, u[1], BLITZ_READABLE);
    CHECK_EQ(blitz_await(&f.future, soon()), 0);
    blitz_udp_recv_future_init(&f, u[1], data, sizeof data);
    CHECK_EQ(blitz_await(&f.future, soon()), 0);
    CHECK_EQ(f.result, 3); /* nothing was lost to those who left */
    task = t_spawn(receives, u[1]);
    t_until_waits(task);
    blitz_udp *kept = blitz_udp_ref(u[1]);
    blitz_udp_close(u[1]);
    CHECK_EQ(t_join(task), -EBADF);
    CHECK_EQ(blitz_udp_recv(kept, data, sizeof data, soon()), -EBADF);
    blitz_udp_unref(kept);
    blitz_udp_close(u[0]);
    return 0;
}

TEST(udp, bug_21_a_receive_that_is_given_up_takes_no_datagram)
{
    t_on_each(cancels, NULL, 0);
}

/* ---- groups ---- */

/* ---- sends that wait ---- */

enum { FLOOD = 300, FLOOD_BYTES = 24 };

struct flood {
    blitz_udp *u[2];
    blitz_addr to;
    unsigned kind; /* of the sends */
};

/* Return a socket at an address of the abstract name space. */
static blitz_udp *bound_unix(int number, blitz_addr *at)
{
    char name[64];
    blitz_udp *u;
    int n = snprintf(name, sizeof name, "blitz-udp-%d-%d", (int)getpid(), number);
    CHECK_EQ(blitz_addr_abstract(name, (size_t)n, at), 0);
    CHECK_EQ(blitz_udp_bind(at, NULL, &u), 0);
    return u;
}

static int64_t send_one(struct flood *f, const char *data)
{
    blitz_net_future net;
    blitz_message_future message;
    switch (f->kind) {
    case 0:
        return blitz_udp_send(f->u[0], data, FLOOD_BYTES, soon());
    case 1:
        return blitz_udp_send_to(f->u[0], data, FLOOD_BYTES, &f->to, soon());
    case 2:
        blitz_udp_send_future_init(&net, f->u[0], data, FLOOD_BYTES);
        CHECK_EQ(blitz_await(&net.future, soon()), 0);
        return net.result;
    default:
        blitz_udp_send_to_future_init(&message, f->u[0], data, FLOOD_BYTES, &f->to);
        CHECK_EQ(blitz_await(&message.future, soon()), 0);
        return message.result;
    }
}

static int send_a_flood(void *flood)
{
    char data[FLOOD_BYTES] = "a datagram that waits";
    for (int i = 0; i < FLOOD; i++)
        CHECK_EQ(send_one(flood, data), FLOOD_BYTES);
    return 0;
}

/* The system takes a few datagrams, then the sender waits for the receiver. */
static int flood(void *arg)
{
    struct flood f;
    blitz_task *sender;
    char data[FLOOD_BYTES + 1];
    (void)arg;
    for (f.kind = 0; f.kind < 4; f.kind++) {
        blitz_addr from;
        f.u[0] = bound_unix(0, &from);
        f.u[1] = bound_unix(1, &f.to);
        CHECK_EQ(blitz_udp_connect(f.u[0], &f.to), 0);
        CHECK_EQ(blitz_spawn(send_a_flood, &f, NULL, &sender), 0);
        for (int i = 0; i < FLOOD; i++) {
            CHECK_EQ(blitz_udp_recv(f.u[1], data, sizeof data, soon()), FLOOD_BYTES);
            CHECK_STR_EQ(data, "a datagram that waits");
            if (i % 30 == 0)
                CHECK_EQ(blitz_sleep(BLITZ_MS), 0); /* the sender fills the queue meanwhile */
        }
        CHECK_EQ(blitz_task_join(sender, NULL, BLITZ_FOREVER), 0);
        blitz_udp_close(f.u[0]);
        blitz_udp_close(f.u[1]);
    }
    return 0;
}

/* Linux 6.18 sends an empty datagram if a send in a ring has to wait for room. */
TEST(udp, a_datagram_that_waits_for_room_arrives_whole)
{
    t_on_keepers(flood, NULL);
}

static int groups(void *arg)
{
    blitz_addr at = blitz_addr_any_v4(0), group;
    blitz_udp *in, *out;
    char data[8];
    uint32_t loopback = if_nametoindex("lo");
    (void)arg;
    CHECK_EQ(blitz_udp_bind(&at, &(blitz_udp_opts){.is_addr_shared = true}, &in), 0);
    CHECK_EQ(blitz_udp_local(in, &at), 0);
    group = blitz_addr_v4(239, 255, 77, 1, blitz_addr_port(&at));
    int err = blitz_udp_join(in, &group, loopback);
    if (err == -ENODEV || err == -EADDRNOTAVAIL)
        t_skip("no groups on the loopback interface here");
    if (err == -ENOPROTOOPT) /* qemu-user 7.2 */
        t_skip_if_emulated("does not know the option that joins a group");
    CHECK_EQ(err, 0);
    CHECK_EQ(blitz_udp_join(in, &group, loopback), -EADDRINUSE);
    out = bound(&at);
    CHECK_EQ(blitz_udp_set_group_interface(out, loopback), 0);
    CHECK_EQ(blitz_udp_set_group_ttl(out, 0), 0); /* it stays on this host */
    CHECK_EQ(blitz_udp_set_group_loop(out, true), 0);
    CHECK_EQ(blitz_udp_send_to(out, "group", 5, &group, soon()), 5);
    CHECK_EQ(blitz_udp_recv(in, data, sizeof data, soon()), 5);
    CHECK_EQ(blitz_udp_leave(in, &group, loopback), 0);
    CHECK_EQ(blitz_udp_leave(in, &group, loopback), -EADDRNOTAVAIL);
    CHECK_EQ(blitz_udp_join(in, &at, loopback), -EINVAL); /* not a group */
    blitz_udp_close(in);
    blitz_udp_close(out);
    return 0;
}

TEST(udp, group_members_receive_datagrams_to_the_group)
{
    CHECK_EQ(blitz_run(groups, NULL, NULL), 0);
}

static int options(void *arg)
{
    blitz_addr at, everybody = blitz_addr_v4(255, 255, 255, 255, 9);
    blitz_udp *u = bound(&at), *other;
    (void)arg;
    CHECK_EQ(blitz_udp_send_to(u, "x", 1, &everybody, soon()), -EACCES); /* not allowed yet */
    CHECK_EQ(blitz_udp_set_broadcast(u, true), 0);
    CHECK_EQ(blitz_udp_set_ttl(u, 3), 0);
    CHECK_EQ(blitz_udp_set_ttl(u, 0), -EINVAL);
    CHECK_EQ(blitz_udp_set_group_ttl(u, 256), -EINVAL);
    CHECK_EQ(blitz_udp_set_buffers(u, 10000, 10000), 0);
    CHECK_EQ(blitz_udp_error(u), 0);
    CHECK_EQ(blitz_udp_bind(&at, NULL, &other), -EADDRINUSE);
    CHECK_EQ(blitz_udp_bind(NULL, NULL, &other), -EINVAL);
    CHECK_EQ(blitz_udp_send_to(u, "x", 1, NULL, 0), -EINVAL);
    CHECK_EQ(blitz_udp_recv(NULL, NULL, 0, 0), -EINVAL);
    blitz_fd fd = BLITZ_NO_FD;
    CHECK_EQ(blitz_udp_release(u, NULL), -EINVAL);
    CHECK_EQ(blitz_udp_release(NULL, &fd), -EINVAL);
    CHECK_EQ(fd, BLITZ_NO_FD);
    CHECK_EQ(blitz_udp_release(u, &fd), 0);
    blitz_tcp *t;
    CHECK_EQ(blitz_tcp_adopt(fd, &t), -EINVAL); /* it is no stream */
    CHECK_EQ(blitz_udp_adopt(fd, &u), 0);
    blitz_udp_close(u);
    blitz_udp_close(NULL);
    return 0;
}

TEST(udp, options_and_bad_input)
{
    CHECK_EQ(blitz_run(options, NULL, NULL), 0);
}
