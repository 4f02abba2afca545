/*
 * scene_talk.c - a thousand pairs of fibers, each pair in conversation.
 *
 * One fiber sends a number and waits for the answer; the other waits for the number and answers.
 * Both are plain loops with blocking calls, and at any time nearly two thousand fibers wait in one.
 * Two threads do the same through a mutex and a condition, which shows the cost of waiting in the
 * kernel.
 */
#include <pthread.h>
#include <stdlib.h>

#include "../cell.h"
#include "demo.h"

enum { PAIRS = 1000, THREAD_ROUNDS = 2000, BURST = 256 };

struct pair {
    struct cell there, back;
    long rounds;
    _Atomic uint64_t *said;
    blitz_task *asks, *answers;
};

static int ask(void *arg)
{
    struct pair *p = arg;
    long answer = 0;
    for (long i = 0; i < p->rounds; i++) {
        if (cell_send(&p->there, i) != 0 || cell_receive(&p->back, &answer) != 0)
            return 1;
        if (answer != i + 1)
            return 1;
        if ((i + 1) % BURST == 0)
            *p->said += 2 * BURST;
    }
    *p->said += 2 * (uint64_t)(p->rounds % BURST);
    return 0;
}

static int answer(void *arg)
{
    struct pair *p = arg;
    long n = 0;
    for (long i = 0; i < p->rounds; i++)
        if (cell_receive(&p->there, &n) != 0 || cell_send(&p->back, n + 1) != 0)
            return 1;
    return 0;
}

static bool pairs_start(blitz_runtime *rt, struct pair *pairs, long rounds, _Atomic uint64_t *said)
{
    blitz_spawn_opts opts = {.runtime = rt};
    for (int i = 0; i < PAIRS; i++) {
        struct pair *p = &pairs[i];
        cell_init(&p->there);
        cell_init(&p->back);
        p->rounds = rounds;
        p->said = said;
        if (blitz_spawn(answer, p, &opts, &p->answers) != 0 ||
            blitz_spawn(ask, p, &opts, &p->asks) != 0)
            return false;
    }
    return true;
}

static int pairs_end(struct pair *pairs)
{
    int wrong = 0;
    for (int i = 0; i < PAIRS; i++) {
        int a = 1, b = 1;
        blitz_task_join(pairs[i].asks, &a, BLITZ_FOREVER);
        blitz_task_join(pairs[i].answers, &b, BLITZ_FOREVER);
        wrong += a != 0 || b != 0;
        cell_fini(&pairs[i].there);
        cell_fini(&pairs[i].back);
    }
    return wrong;
}

/* ---- the same between two threads ---- */

struct phone {
    pthread_mutex_t lock;
    pthread_cond_t rings;
    long number; /* even: to be answered; guarded by lock */
    _Atomic uint64_t said;
};

static void on_the_phone(void *arg, int index)
{
    struct phone *p = arg;
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < THREAD_ROUNDS; i++) {
        while (p->number % 2 != index)
            pthread_cond_wait(&p->rings, &p->lock);
        p->number++;
        p->said++;
        pthread_cond_signal(&p->rings);
    }
    pthread_mutex_unlock(&p->lock);
}

static double thread_ns(struct demo *d)
{
    static struct phone p = {.lock = PTHREAD_MUTEX_INITIALIZER, .rings = PTHREAD_COND_INITIALIZER};
    double start = demo_seconds();
    demo_threads(d, 2, on_the_phone, &p, &p.said, UINT64_C(2) * THREAD_ROUNDS,
                 "messages (threads)");
    return (demo_seconds() - start) * 1e9 / (2 * THREAD_ROUNDS);
}

static void play(struct demo *d)
{
    struct pair *pairs = calloc(PAIRS, sizeof *pairs);
    _Atomic uint64_t said = 0;
    long rounds = (long)demo_scaled(d, 5000);
    uint64_t total = 2 * (uint64_t)rounds * PAIRS;
    blitz_runtime *rt;
    if (pairs == NULL || blitz_runtime_new(NULL, &rt) != 0) {
        demo_claim(d, false, "no runtime");
        free(pairs);
        return;
    }
    double start = demo_seconds();
    if (pairs_start(rt, pairs, rounds, &said)) {
        demo_watch(d, &said, total, "messages");
        int wrong = pairs_end(pairs);
        double ns = (demo_seconds() - start) * 1e9 / (double)total;
        demo_claim(d, wrong == 0, "%d conversations went wrong", wrong);
        demo_result(d, "%s fibers said %s things to each other, %.0f ns each",
                    demo_count(2 * (uint64_t)PAIRS), demo_count(total), ns);
        double threads = thread_ns(d);
        demo_result(d, "two threads, a mutex and a condition: %.0f ns each, %.0f times as long",
                    threads, threads / ns);
    } else {
        demo_claim(d, false, "no memory for the fibers");
    }
    blitz_runtime_shutdown(rt, BLITZ_FOREVER);
    (void)!blitz_runtime_unref(rt); /* it was shut down */
    free(pairs);
}

const struct demo_scene scene_talk = {
    "talk", "A thousand conversations",
    "Two thousand fibers, each a plain loop that blocks in the middle, and nobody blocks a thread.",
    play};
