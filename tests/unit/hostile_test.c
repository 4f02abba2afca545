/* Values that a program may copy, receive or leave uninitialized: any bytes are answered, and no
 * function reads past the value it is given. */
#include "harness.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"
#include "blitz/addr.h"
#include "io/sockaddr.h"
#include "support/net.h"
#include "support/on_each.h"

/* ---- memory that ends at a page which cannot be read ---- */

struct edge {
    char *base;
    size_t page;
};

static struct edge edge_new(void)
{
    struct edge e = {.page = (size_t)sysconf(_SC_PAGESIZE)};
    e.base = mmap(NULL, 2 * e.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(e.base != MAP_FAILED);
    CHECK_EQ(mprotect(e.base + e.page, e.page, PROT_NONE), 0);
    return e;
}

static void edge_free(struct edge *e)
{
    CHECK_EQ(munmap(e->base, 2 * e->page), 0);
}

/* A copy of the value whose last byte is the last one that can be read. */
static void *at_edge(struct edge *e, const void *value, size_t bytes)
{
    return memcpy(e->base + e->page - bytes, value, bytes);
}

static void random_bytes(void *out, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)out)[i] = (uint8_t)t_random();
}

/* Any bytes; three of four have a kind that exists, and half of them a length near the limit. */
static blitz_addr random_addr(void)
{
    blitz_addr a;
    random_bytes(&a, sizeof a);
    if (t_random() % 4 != 0)
        a.kind = (uint8_t)(t_random() % 5);
    if (t_random() % 2 == 0)
        a.bytes = (uint8_t)(BLITZ_ADDR_NAME_MAX - 2 + t_random() % 5);
    return a;
}

/* ---- addresses ---- */

static int sign(int n)
{
    return (n > 0) - (n < 0);
}

/* The second address differs from the first in little, so that a comparison reads far into both. */
static void compare_two(struct edge *ea, struct edge *eb)
{
    blitz_addr x = random_addr(), y = x;
    if (t_random() % 2 == 0)
        y.bytes = (uint8_t)t_random();
    if (t_random() % 4 == 0)
        y.is.name[t_random() % BLITZ_ADDR_NAME_MAX] ^= 1;
    const blitz_addr *a = at_edge(ea, &x, sizeof x), *b = at_edge(eb, &y, sizeof y);
    int order = blitz_addr_compare(a, b);
    CHECK_EQ(sign(blitz_addr_compare(b, a)), -sign(order));
    CHECK_EQ(blitz_addr_is_equal(a, b), order == 0);
    CHECK_EQ(blitz_addr_compare(a, a), 0);
    CHECK(blitz_addr_is_equal(b, b));
}

TEST(hostile, bug_48_comparing_addresses_of_any_bytes_stays_inside_them)
{
    struct edge a = edge_new(), b = edge_new();
    for (uint64_t i = 0; i < t_scaled(200000); i++)
        compare_two(&a, &b);
    edge_free(&a);
    edge_free(&b);
}

/* Three addresses of any bytes are in one order: a sort of addresses from peers ends. */
TEST(hostile, bug_48_the_order_of_addresses_of_any_bytes_is_total)
{
    for (uint64_t i = 0; i < t_scaled(200000); i++) {
        blitz_addr a = random_addr(), b = a, c = a;
        b.bytes = (uint8_t)t_random();
        c.bytes = (uint8_t)t_random();
        c.is.name[t_random() % BLITZ_ADDR_NAME_MAX] ^= (char)(t_random() % 2);
        if (blitz_addr_compare(&a, &b) <= 0 && blitz_addr_compare(&b, &c) <= 0)
            CHECK_LE(blitz_addr_compare(&a, &c), 0);
    }
}

static void ask_all(const blitz_addr *a)
{
    static bool (*const questions[])(const blitz_addr *) = {
        blitz_addr_is_v4,        blitz_addr_is_v6,         blitz_addr_is_unix,
        blitz_addr_is_abstract,  blitz_addr_is_loopback,   blitz_addr_is_any,
        blitz_addr_is_multicast, blitz_addr_is_link_local, blitz_addr_is_private,
        blitz_addr_is_v4_mapped};
    for (size_t i = 0; i < BZ_ARRAY_LEN(questions); i++)
        (void)questions[i](a);
    (void)blitz_addr_port(a);
    blitz_addr plain = blitz_addr_unmap(a);
    (void)plain;
}

TEST(hostile, bug_48_every_question_to_an_address_of_any_bytes_is_answered)
{
    struct edge e = edge_new();
    for (uint64_t i = 0; i < t_scaled(200000); i++) {
        char text[BLITZ_ADDR_TEXT_MAX + 1];
        struct bz_sockname s;
        blitz_addr x = random_addr(), *a = at_edge(&e, &x, sizeof x);
        ask_all(a);
        text[BLITZ_ADDR_TEXT_MAX] = '!';
        int n = blitz_addr_print(a, text, BLITZ_ADDR_TEXT_MAX);
        CHECK_LT(n, BLITZ_ADDR_TEXT_MAX);
        CHECK_EQ(text[BLITZ_ADDR_TEXT_MAX], '!');
        if (n >= 0)
            CHECK_EQ(strnlen(text, sizeof text) <= (size_t)n, 1);
        CHECK_LE(bz_sockaddr_of(a, &s), (int)sizeof s);
        (void)bz_sockaddr_family(a);
        (void)blitz_addr_set_port(a, 1);
    }
    edge_free(&e);
}

/* The reverse: addresses as the system, or something that plays it, writes them. */
TEST(hostile, bug_48_a_system_address_of_any_bytes_and_length_becomes_a_valid_one)
{
    for (uint64_t i = 0; i < t_scaled(200000); i++) {
        static const sa_family_t families[] = {AF_INET, AF_INET6, AF_UNIX, AF_UNSPEC};
        struct bz_sockname s;
        blitz_addr a;
        random_bytes(&s, sizeof s);
        sa_family_t family = families[t_random() % BZ_ARRAY_LEN(families)];
        memcpy(&s, &family, sizeof family); /* it comes first, on Linux */
        bz_sockaddr_to(&s, (uint32_t)(t_random() % (2 * sizeof s)), &a);
        CHECK_LE(a.kind, BLITZ_ADDR_UNIX);
        CHECK_LE(a.bytes, BLITZ_ADDR_NAME_MAX);
        ask_all(&a);
    }
}

/* ---- calls that take an address ---- */

/* Never one to which a packet could go: a family the socket is not of, or an invalid one. */
static blitz_addr useless_addr(void)
{
    blitz_addr a = random_addr();
    if (a.kind == BLITZ_ADDR_V4 || a.kind == BLITZ_ADDR_V6)
        a.kind = (uint8_t)(5 + t_random() % 250);
    if (a.kind == BLITZ_ADDR_UNIX)
        a.bytes = (uint8_t)(BLITZ_ADDR_NAME_MAX + 1 + t_random() % 147);
    return a;
}

static void send_to(blitz_udp *u, const blitz_addr *a)
{
    char byte = 0;
    blitz_datagram d = {.data = &byte, .bytes = 1, .addr = *a};
    blitz_message_future to;
    CHECK_LT(blitz_udp_send_to(u, "x", 1, a, 0), 0);
    blitz_udp_send_to_future_init(&to, u, "x", 1, a);
    CHECK_EQ(blitz_await(&to.future, BLITZ_FOREVER), 0);
    CHECK_LT(to.result, 0);
    if (a->kind != BLITZ_ADDR_NONE)
        CHECK_LT(blitz_udp_send_many(u, &d, 1, 0), 0);
    CHECK_LT(blitz_udp_join(u, a, 0), 0);
    CHECK_LT(blitz_udp_leave(u, a, 0), 0);
}

static int network_calls(void *arg)
{
    struct edge *e = arg;
    blitz_addr here = blitz_addr_loopback_v4(0);
    blitz_udp *u;
    CHECK_EQ(blitz_udp_bind(&here, NULL, &u), 0);
    for (uint64_t i = 0; i < t_scaled(2000); i++) {
        int errors[2];
        blitz_addr x[2] = {useless_addr(), useless_addr()}, *a = at_edge(e, x, sizeof x);
        blitz_tcp_listener *l;
        blitz_tcp *t;
        blitz_udp *other;
        blitz_net_future f;
        CHECK_LT(blitz_tcp_listen(&a[1], NULL, &l), 0);
        CHECK_LT(blitz_tcp_connect(&a[1], &t, 0), 0);
        CHECK_LT(blitz_tcp_connect_first(a, 2, errors, &t, blitz_after(BLITZ_S)), 0);
        blitz_tcp_connect_future_init(&f, &a[1]);
        CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
        CHECK_LT(f.result, 0);
        CHECK_LT(blitz_udp_bind(&a[1], NULL, &other), 0);
        CHECK_LT(blitz_udp_connect(u, &a[1]), 0);
        send_to(u, &a[1]);
    }
    blitz_udp_close(u);
    return 0;
}

TEST(hostile, bug_48_network_calls_refuse_addresses_of_any_bytes)
{
    struct edge e = edge_new();
    t_on_each(network_calls, &e, 0);
    edge_free(&e);
}

/* ---- options ---- */

static int nothing(void *arg)
{
    (void)arg;
    return 7;
}

static int count_indexes(size_t from, size_t to, void *arg)
{
    (void)__atomic_fetch_add((size_t *)arg, to - from, __ATOMIC_RELAXED);
    return 0;
}

/* Small, near a power of two, near the largest: the numbers at which sizes wrap. */
static uint64_t random_number(void)
{
    uint64_t near = (uint64_t)1 << t_random() % 64;
    switch (t_random() % 3) {
    case 0:
        return t_random() % 10;
    case 1:
        return near - 2 + t_random() % 4;
    default:
        return UINT64_MAX - t_random() % 10;
    }
}

static int options_calls(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < t_scaled(2000); i++) {
        blitz_spawn_opts how = {.proc = (unsigned)random_number(), .stack_bytes = random_number()};
        blitz_par_opts split = {.grain = random_number(), .chunk_max = random_number()};
        size_t sum = 0, n = t_random() % 1000;
        blitz_task *t;
        int result = 0, err = blitz_spawn(nothing, NULL, &how, &t);
        t_watch("proc %u, stack %zu, n %zu, grain %zu, chunk %zu", how.proc, how.stack_bytes, n,
                split.grain, split.chunk_max);
        if (err == 0) {
            CHECK_EQ(blitz_task_join(t, &result, BLITZ_FOREVER), 0);
            CHECK_EQ(result, 7);
        }
        CHECK_EQ(blitz_for(n, count_indexes, &sum, &split), 0);
        CHECK_EQ(sum, n);
    }
    return 0;
}

TEST(hostile, bug_48_options_of_any_numbers_are_refused_or_obeyed)
{
    t_on_each(options_calls, NULL, 0);
}
