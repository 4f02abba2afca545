/*
 * stackless.c - five thousand tasks of about a hundred bytes each, without stacks.
 *
 * Three kinds. *Sleepers* take ten naps each, all at the same time. *Parents* spawn a task and join
 * it with a deadline. And a *ring* passes a token round: each member waits for its turn; its
 * neighbour holds its waker. An ordinary fiber starts them and adds up their results.
 */
#include <stdio.h>

#include <blitz.h>

enum { SLEEPERS = 3000, NAPS = 10, PARENTS = 1000, RING = 1000, ROUNDS = 5 };

/* ---- sleepers ---- */

struct sleeper {
    blitz_frame frame; /* where the next poll continues: every state begins with one */
    int left;
    blitz_sleep_future nap;
};

static blitz_poll sleeper(void *state, blitz_cx *cx)
{
    struct sleeper *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    for (me->left = NAPS; me->left > 0; me->left--) {
        BLITZ_SLEEP(rc, &me->nap, 2 * BLITZ_MS);
        if (rc < 0)
            BLITZ_RETURN(rc); /* cancelled */
    }
    BLITZ_END(NAPS);
}

/* ---- parents ---- */

struct parent {
    blitz_frame frame;
    blitz_task *task;
    blitz_join_future child;
    blitz_sleep_future timer;
};

static int child(void *arg)
{
    (void)arg;
    return blitz_sleep(10 * BLITZ_MS) == 0 ? 1 : 0;
}

static blitz_poll parent(void *state, blitz_cx *cx)
{
    struct parent *me = state;
    int rc;
    BLITZ_BEGIN(&me->frame, cx);
    if (blitz_spawn(child, NULL, NULL, &me->task) != 0)
        BLITZ_RETURN(0);
    blitz_task_join_future_init(&me->child, me->task);
    BLITZ_AWAIT_UNTIL(rc, &me->child.future, &me->timer, blitz_after(BLITZ_MS));
    if (rc != 0) /* not within a millisecond, so wait for as long as it takes */
        BLITZ_JOIN(rc, &me->child, me->task);
    BLITZ_END(rc == 0 ? me->child.value : 0);
}

/* ---- a ring ---- */

struct seat {
    blitz_waker waker; /* the waker of this member */
    int has_token;
};
static struct seat ring[RING];

struct member {
    blitz_frame frame;
    int me, round;
};

/* On one proc, so that the ring needs no lock: only one member runs at a time. */
static blitz_poll member(void *state, blitz_cx *cx)
{
    struct member *s = state;
    BLITZ_BEGIN(&s->frame, cx);
    ring[s->me].waker = blitz_waker_clone(cx->waker);
    for (s->round = 0; s->round < ROUNDS; s->round++) {
        BLITZ_WAIT_FOR(ring[s->me].has_token);
        ring[s->me].has_token = 0;
        struct seat *next = &ring[(s->me + 1) % RING];
        next->has_token = 1;
        blitz_waker_wake_by_ref(&next->waker);
    }
    blitz_waker_drop(&ring[s->me].waker);
    BLITZ_END(ROUNDS);
}

/* ---- all of them ---- */

static blitz_task *task[SLEEPERS + PARENTS];

static int spawn_all(void)
{
    int n = 0;
    for (int i = 0; i < SLEEPERS + PARENTS; i++) {
        struct sleeper s = {.left = 0};
        struct parent p = {.task = NULL};
        int err = i < SLEEPERS ? blitz_spawn_poll(sleeper, &s, sizeof s, NULL, &task[n])
                               : blitz_spawn_poll(parent, &p, sizeof p, NULL, &task[n]);
        n += err == 0;
    }
    return n;
}

static int sum_of(blitz_task **t, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        int result = 0;
        blitz_task_join(t[i], &result, BLITZ_FOREVER); /* without a deadline it always ends */
        sum += result;
    }
    return sum;
}

static int sleep_and_join(void *arg)
{
    (void)arg;
    return sum_of(task, spawn_all());
}

static int pass_a_token(void *arg)
{
    static blitz_task *t[RING];
    int n = 0;
    (void)arg;
    for (; n < RING; n++) {
        struct member s = {.me = n};
        if (blitz_spawn_poll(member, &s, sizeof s, NULL, &t[n]) != 0)
            break;
    }
    ring[0].has_token = 1; /* no member has started: this task has the only proc */
    return sum_of(t, n);
}

int main(void)
{
    uint64_t start = blitz_now();
    int sum = blitz_run(sleep_and_join, NULL, NULL);
    if (sum < 0)
        goto failed;
    printf("%d sleepers took %d naps, %d parents saw their children off: %.1f ms\n", SLEEPERS,
           sum - PARENTS, PARENTS, (double)(blitz_now() - start) / 1e6);
    start = blitz_now();
    sum = blitz_run(pass_a_token, NULL, &(blitz_runtime_opts){.procs = 1});
    if (sum < 0)
        goto failed;
    printf("a token went %d times round a ring of %d, %d steps: %.1f ms\n", ROUNDS, RING, sum,
           (double)(blitz_now() - start) / 1e6);
    return 0;
failed:
    fprintf(stderr, "stackless: error %d\n", -sum);
    return 1;
}
