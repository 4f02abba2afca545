/*
 * Ours. Every case runs in the first task of a runtime with as many procs as were asked for.
 * What each case is: bench/timers.toml. Only public headers: what a user can have.
 */
#include "tasks/ours.h"
#include "timers/late.h"

/* ---- a timer that never fires: made, armed by a poll, cancelled ---- */

struct maker {
    uint64_t ops;
    double *ns;
};

static blitz_poll make_and_cancel(void *state, blitz_cx *cx)
{
    struct maker *m = state;
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < m->ops; i++) {
        blitz_sleep_future f;
        blitz_sleep_until_future_init(&f, blitz_now_roughly() + BLITZ_S + (i % 64) * BLITZ_MS);
        if (f.future.ops->poll(&f.future, cx->waker) == BLITZ_READY)
            bench_die("it cannot have fired");
        f.future.ops->cancel(&f.future);
    }
    *m->ns = (double)(tasks_now_ns() - began);
    return BLITZ_READY;
}

static double case_timer_cancel(uint64_t ops)
{
    double ns = 0;
    struct maker m = {ops, &ns};
    blitz_task *t;
    must(blitz_spawn_poll(make_and_cancel, &m, sizeof m, NULL, &t), "spawn");
    must(blitz_task_join(t, NULL, BLITZ_FOREVER), "join");
    return ns;
}

/* ---- many that do ---- */

struct sleeper {
    blitz_frame frame;
    uint32_t index;
    blitz_sleep_future nap;
};

static blitz_poll sleeper(void *state, blitz_cx *cx)
{
    struct sleeper *s = state;
    int rc;
    BLITZ_BEGIN(&s->frame, cx);
    blitz_sleep_until_future_init(&s->nap, late_due[s->index]);
    BLITZ_AWAIT(rc, &s->nap.future);
    (void)rc;
    late_woke(s->index, bench_now_ns());
    BLITZ_END(0);
}

/* Returns the nanoseconds of making them all. */
static double sleep_all(uint64_t count)
{
    blitz_task **t = late_begin(count, sizeof *t);
    uint64_t began = tasks_now_ns();
    for (uint64_t i = 0; i < count; i++) {
        struct sleeper s = {.frame = {0, 0}, .index = (uint32_t)i};
        late_plan(i);
        must(blitz_spawn_poll(sleeper, &s, sizeof s, NULL, &t[i]), "spawn");
        if (i % LATE_BATCH == LATE_BATCH - 1)
            blitz_yield();
    }
    double ns = (double)(tasks_now_ns() - began);
    for (uint64_t i = 0; i < count; i++)
        must(blitz_task_join(t[i], NULL, BLITZ_FOREVER), "join");
    return ns;
}

static double case_sleeps_late(uint64_t count)
{
    sleep_all(count);
    return late_p99_ms();
}

/* ---- the first of four futures, of which the last is ready ---- */

static double case_first_of_4(uint64_t ops)
{
    blitz_notify n[3] = {BLITZ_NOTIFY_INIT, BLITZ_NOTIFY_INIT, BLITZ_NOTIFY_INIT};
    uint64_t began = tasks_now_ns();
    for (uint64_t done = 0; done < ops; done++) {
        blitz_sync_future f[3];
        blitz_ready_future ready;
        for (int i = 0; i < 3; i++)
            blitz_notify_wait_future_init(&f[i], &n[i]);
        blitz_ready_future_init(&ready, 0);
        if (BLITZ_FIRST_OF(BLITZ_FOREVER, &f[0].future, &f[1].future, &f[2].future,
                           &ready.future) != 3)
            bench_die("another cannot have won");
    }
    return (double)(tasks_now_ns() - began);
}

static const struct tasks_case cases[] = {
    {"timer-cancel", TASKS_PACED, case_timer_cancel, 0},
    {"sleeps-100k-late", TASKS_ONCE, case_sleeps_late, 100000},
    {"sleeps-1m-create", TASKS_FIXED, sleep_all, 1000000},
    {"sleeps-1m-late", TASKS_ONCE, case_sleeps_late, 1000000},
    {"first-of-4", TASKS_PACED, case_first_of_4, 0},
};

int main(int argc, char **argv)
{
    return tasks_main(argc, argv, cases, sizeof cases / sizeof cases[0], ours_start);
}
