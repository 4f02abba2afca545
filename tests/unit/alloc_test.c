/* alloc.h: the C library's allocator behind the hook. */
#include "harness.h"

#include "base/alloc.h"
#include "blitz.h"
#include "support/net.h"

TEST(alloc, any_alignment_is_kept_for_any_size)
{
    for (size_t align = 1; align <= 65536; align *= 4)
        for (size_t size = 1; size < 70000; size = size * 3 + 1) {
            unsigned char *p = bz_alloc(&bz_allocator_libc, size, align);
            CHECK_NOT_NULL(p);
            CHECK_EQ((uintptr_t)p % align, 0u);
            p[0] = 1;
            p[size - 1] = 2;
            bz_free(&bz_allocator_libc, p, size);
        }
}

TEST(alloc, a_size_that_overflows_is_null_not_small)
{
    volatile size_t most = SIZE_MAX;
    CHECK_NULL(bz_alloc(&bz_allocator_libc, most, 4096));
    CHECK_NULL(bz_alloc(&bz_allocator_libc, most - 10, 64));
}

TEST(alloc, freeing_null_reaches_no_allocator)
{
    bz_free(&(blitz_allocator){NULL, NULL, NULL}, NULL, 8);
}

/* ---- the allocator of a program ---- */

/* Many allocators round the size up to a multiple of the alignment: with an alignment of 0 that is a division by 0, or a
 * block of no size. blitz/hooks.h promises a power of two. */
static void *strict_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    CHECK_GT(size, 0u);
    CHECK_GT(align, 0u);
    CHECK_EQ(align & (align - 1), 0u);
    return bz_alloc(&bz_allocator_libc, size, align);
}

static void strict_free(void *ctx, void *memory, size_t size)
{
    (void)ctx;
    bz_free(&bz_allocator_libc, memory, size);
}

static int uses_the_network(void *arg)
{
    blitz_addr at = blitz_addr_loopback_v4(0);
    blitz_deadline soon = blitz_after(20 * BLITZ_S);
    blitz_tcp *end[2];
    blitz_udp *u;
    char data[4] = "abc";
    (void)arg;
    t_tcp_pair(end);
    CHECK_EQ(blitz_tcp_write(end[0], data, 3, soon), 3);
    CHECK_EQ(blitz_tcp_read(end[1], data, sizeof data, soon), 3);
    t_close_both(end);
    CHECK_EQ(blitz_udp_bind(&at, NULL, &u), 0);
    CHECK_EQ(blitz_udp_local(u, &at), 0);
    blitz_datagram one = {.data = data, .bytes = 3, .addr = at};
    CHECK_EQ(blitz_udp_send_many(u, &one, 1, soon), 1);
    CHECK_EQ(blitz_udp_recv_many(u, &one, 1, soon), 1);
    blitz_udp_close(u);
    return 0;
}

static int uses_a_process(void *arg)
{
    blitz_command *c;
    blitz_output out;
    (void)arg;
    CHECK_EQ(blitz_command_new("true", &c), 0);
    CHECK_EQ(blitz_command_output(c, NULL, &out, blitz_after(20 * BLITZ_S)), 0);
    blitz_output_drop(&out);
    blitz_command_unref(c);
    return 0;
}

TEST(alloc, an_allocator_gets_only_alignments_that_are_powers_of_two)
{
    static const char *const backend[] = {"epoll", "uring", "poll"};
    const blitz_allocator strict = {strict_alloc, strict_free, NULL};
    for (size_t i = 0; i < sizeof backend / sizeof *backend; i++) {
        const blitz_runtime_opts opts = {.procs = 2, .allocator = &strict, .io = backend[i]};
        t_watch("%s", backend[i]);
        CHECK_EQ(blitz_run(uses_the_network, NULL, &opts), 0);
        CHECK_EQ(blitz_run(uses_a_process, NULL, &opts), 0);
    }
}
