/* Bridges: a foreign poll loop hands work in, and its descriptor is readable while there are results. */
#include "harness.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "blitz.h"

static blitz_runtime *runtime(unsigned procs)
{
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = procs}, &rt), 0);
    return rt;
}

static void end(blitz_runtime *rt)
{
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

static bool is_readable(blitz_bridge *b, int ms)
{
    struct pollfd p = {.fd = blitz_bridge_fd(b), .events = POLLIN};
    return poll(&p, 1, ms) == 1;
}

static int doubled(void *arg)
{
    int *value = arg;
    if (*value % 3 == 0)
        CHECK_EQ(blitz_sleep((unsigned)(*value % 7) * 100 * BLITZ_US), 0);
    return *value * 2;
}

/* The loop of a program: submit, poll, take. */
static void *loop(void *arg)
{
    enum { MANY = 300 };
    blitz_bridge *b = arg;
    int value[MANY], got = 0;
    blitz_bridge_result r;
    for (int i = 0; i < MANY; i++) {
        value[i] = i;
        CHECK_EQ(blitz_bridge_submit(b, doubled, &value[i], NULL), 0);
    }
    while (got < MANY) {
        CHECK(is_readable(b, -1));
        for (; blitz_bridge_take(b, &r) == 0; got++) {
            CHECK(r.fn == doubled);
            CHECK_EQ(r.result, *(int *)r.arg * 2);
            *(int *)r.arg = -1; /* taken once */
        }
    }
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(value[i], -1);
    CHECK_EQ(blitz_bridge_pending(b), 0u);
    CHECK(!is_readable(b, 0));
    return NULL;
}

TEST(bridge, every_result_makes_it_readable_and_is_taken_once)
{
    for (unsigned procs = 1; procs <= 3; procs++) {
        blitz_runtime *rt = runtime(procs);
        blitz_bridge *b;
        CHECK_EQ(blitz_bridge_new(rt, &b), 0);
        CHECK(!is_readable(b, 0));
        for (long n = t_scaled(20); n > 0; n--)
            loop(b);
        blitz_bridge_unref(b);
        end(rt);
    }
}

TEST(bridge, several_loops_have_bridges_to_one_runtime)
{
    blitz_runtime *rt = runtime(2);
    pthread_t thread[3];
    blitz_bridge *b[3];
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(blitz_bridge_new(rt, &b[i]), 0);
        CHECK_EQ(pthread_create(&thread[i], NULL, loop, b[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
        blitz_bridge_unref(b[i]);
    }
    end(rt);
}

static int waits_for(void *event)
{
    return blitz_event_wait(event, BLITZ_FOREVER);
}

/* The bridge outlives its last reference until its functions have returned. */
TEST(bridge, may_be_given_up_while_functions_run_and_with_results)
{
    blitz_runtime *rt = runtime(2);
    blitz_event event = BLITZ_EVENT_INIT;
    blitz_bridge *b;
    int zero = 0;
    CHECK_EQ(blitz_bridge_new(rt, &b), 0);
    CHECK_EQ(blitz_bridge_submit(b, doubled, &zero, NULL), 0);
    CHECK(is_readable(b, -1));
    CHECK_EQ(blitz_bridge_submit(b, waits_for, &event, NULL), 0);
    CHECK_EQ(blitz_bridge_pending(b), 2u);
    blitz_bridge_unref(blitz_bridge_ref(b));
    blitz_bridge_unref(b);
    blitz_event_set(&event);
    end(rt);
}

TEST(bridge, errors_leave_nothing_behind)
{
    blitz_runtime *rt = runtime(1);
    blitz_bridge *b;
    blitz_bridge_result r;
    CHECK_EQ(blitz_bridge_new(NULL, &b), -EINVAL);
    CHECK_EQ(blitz_bridge_new(rt, NULL), -EINVAL);
    CHECK_EQ(blitz_bridge_new(rt, &b), 0);
    CHECK_EQ(blitz_bridge_submit(b, NULL, NULL, NULL), -EINVAL);
    CHECK_EQ(blitz_bridge_take(b, &r), -EAGAIN);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_bridge_submit(b, doubled, &(int){1}, NULL), -ESHUTDOWN);
    CHECK_EQ(blitz_bridge_pending(b), 0u);
    CHECK(!is_readable(b, 0));
    blitz_bridge_unref(b);
    blitz_bridge_unref(NULL);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}
