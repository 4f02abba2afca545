/* The epoll backend on a system that refuses to wait for events since the start: files are looked at instead. */
#include "harness.h"

#include <errno.h>

#include "io/poll.h"
#include "io/sys_sets.h"
#include "support/net.h"

static struct bz_sys_sets calls;
static bz_atomic(int) is_refused;

static int wait_or_not(int set, struct epoll_event *events, int room, int ms)
{
    if (!bz_load_relaxed(&is_refused)) /* relaxed: a flag alone */
        return epoll_wait(set, events, room, ms);
    errno = EPERM;
    return -1;
}

/* As on systems that have only millisecond timeouts. */
static int no_fine_wait(int set, struct epoll_event *events, int room, const struct timespec *left)
{
    (void)set, (void)events, (void)room, (void)left;
    errno = ENOSYS;
    return -1;
}

/* Run it as a task; it sets is_refused. The case has a process of its own. */
static void run(int (*fn)(void *arg))
{
    calls = bz_sys_sets_system;
    calls.epoll_wait = wait_or_not;
    calls.epoll_pwait2 = no_fine_wait;
    bz_sys_sets = &calls;
    for (unsigned procs = 1; procs <= 2; procs++) {
        bz_store_relaxed(&is_refused, 0); /* relaxed: no other thread */
        CHECK_EQ(blitz_run(fn, NULL, &(blitz_runtime_opts){.procs = procs, .io = "epoll"}), 0);
    }
}

static int echoes(void *arg)
{
    char byte;
    while (blitz_tcp_read(arg, &byte, 1, BLITZ_FOREVER) == 1)
        CHECK_EQ(blitz_tcp_write_all(arg, &byte, 1, NULL, BLITZ_FOREVER), 0);
    blitz_tcp_close(arg);
    return 0;
}

static int asks_often(void *arg)
{
    blitz_tcp *end[2];
    (void)arg;
    bz_store_relaxed(&is_refused, 1); /* relaxed: a flag alone */
    t_tcp_pair(end);
    blitz_task *peer = t_spawn(echoes, end[1]);
    for (char i = 0; i < 5; i++) {
        char byte = i;
        CHECK_EQ(blitz_tcp_write_all(end[0], &byte, 1, NULL, BLITZ_FOREVER), 0);
        CHECK_EQ(blitz_tcp_read(end[0], &byte, 1, BLITZ_FOREVER), 1);
        CHECK_EQ(byte, i);
    }
    blitz_tcp_close(end[0]);
    return t_join(peer);
}

TEST(epoll, files_are_looked_at_again_and_again)
{
    run(asks_often);
}

static int reads_one(void *arg)
{
    char byte;
    return (int)blitz_tcp_read(arg, &byte, 1, BLITZ_FOREVER);
}

static int wakes_a_crowd(void *arg)
{
    enum { CROWD = BZ_HARVEST_MAX + 10 };
    blitz_tcp *end[CROWD][2];
    blitz_task *reader[CROWD];
    (void)arg;
    bz_store_relaxed(&is_refused, 1); /* relaxed: a flag alone */
    for (int i = 0; i < CROWD; i++) {
        t_tcp_pair(end[i]);
        reader[i] = t_spawn(reads_one, end[i][0]);
    }
    for (int i = CROWD; i-- > 0;) { /* one after the other, so that the others wait meanwhile */
        CHECK_EQ(blitz_tcp_write_all(end[i][1], "x", 1, NULL, BLITZ_FOREVER), 0);
        if (i % 16 == 0)
            CHECK_EQ(t_join(reader[i]), 1);
    }
    for (int i = 0; i < CROWD; i++) {
        if (i % 16 != 0)
            CHECK_EQ(t_join(reader[i]), 1);
        t_close_both(end[i]);
    }
    return 0;
}

TEST(epoll, more_files_than_one_harvest_holds_are_looked_at)
{
    run(wakes_a_crowd);
}
