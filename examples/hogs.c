/*
 * hogs.c - four ways to block a worker, none of which delays other tasks.
 *
 * One task loops forever, one blocks in read(2), one waits for a mutex that a plain thread holds,
 * one touches page after page. None of them calls blitz, and there are fewer workers than such
 * tasks. Meanwhile a ticker ticks every 10 ms and a chain of tasks adds up numbers. When these are
 * done they release the four.
 *
 * A worker that runs one task for 10 ms loses its proc, the right to run tasks, to another thread.
 * The task continues on its own thread. When it next waits or ends, that thread goes back to the
 * pool. The cost is a thread for each blocked task, and a delay of 10 ms each time. If a call is
 * known to block, mark it or send it to the pool (blitz/blocking.h). A hot loop can call
 * BLITZ_POLL. docs/what-can-stop-whom.md has the details.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <blitz.h>

enum { TICKS = 50, CHAIN = 100 };

struct scene {
    atomic_int is_over;
    int pipe[2];
    pthread_mutex_t mutex;
};

/* ---- the hogs ---- */

static int loops(void *arg)
{
    struct scene *s = arg;
    while (!atomic_load_explicit(&s->is_over, memory_order_relaxed))
        continue;
    return 0;
}

static int reads(void *arg)
{
    struct scene *s = arg;
    char c;
    return read(s->pipe[0], &c, 1) == 1 ? 0 : -1;
}

static int locks(void *arg)
{
    struct scene *s = arg;
    pthread_mutex_lock(&s->mutex);
    pthread_mutex_unlock(&s->mutex);
    return 0;
}

static int touches(void *arg)
{
    enum { BYTES = 8 << 20 };
    struct scene *s = arg;
    while (!atomic_load_explicit(&s->is_over, memory_order_relaxed)) {
        volatile char *p = malloc(BYTES);
        if (p == NULL)
            return -1;
        for (size_t i = 0; i < BYTES; i += 4096)
            p[i] = 1;
        free((char *)p);
    }
    return 0;
}

/* ---- the other tasks ---- */

static int tick(void *arg)
{
    uint64_t due = blitz_now(), *latest = arg;
    for (int i = 0; i < TICKS; i++) {
        due += 10 * BLITZ_MS;
        if (blitz_sleep_until(due) != 0)
            break; /* cancelled */
        uint64_t late = blitz_now() - due;
        *latest = late > *latest ? late : *latest;
    }
    return 0;
}

static int add_up(void *arg)
{
    int n = *(int *)arg, below = n - 1, sum = 0;
    blitz_task *t;
    if (n == 0)
        return 0;
    if (blitz_spawn(add_up, &below, NULL, &t) != 0)
        return -1;
    blitz_yield();
    blitz_task_join(t, &sum, BLITZ_FOREVER);
    return sum + n;
}

static int everybody(void *arg)
{
    static int (*const hog[])(void *) = {loops, reads, locks, touches};
    enum { HOGS = sizeof hog / sizeof *hog };
    struct scene *s = arg;
    blitz_task *stuck[HOGS], *ticker = NULL, *chain = NULL;
    uint64_t latest = 0;
    int count = CHAIN, sum = 0, wrong = 0, started = 0;
    for (; started < HOGS; started++)
        if (blitz_spawn(hog[started], s, NULL, &stuck[started]) != 0)
            break;
    if (blitz_spawn(tick, &latest, NULL, &ticker) != 0 ||
        blitz_spawn(add_up, &count, NULL, &chain) != 0)
        wrong = 1;
    if (ticker != NULL)
        blitz_task_join(ticker, NULL, BLITZ_FOREVER);
    if (chain != NULL)
        blitz_task_join(chain, &sum, BLITZ_FOREVER);
    printf("beside %d that are stuck: %d ticks every 10 ms, the latest by %.1f ms; 1 to %d is %d\n",
           started, TICKS, (double)latest / 1e6, CHAIN, sum);
    atomic_store(&s->is_over, 1);
    wrong |= write(s->pipe[1], "x", 1) != 1;
    for (int i = 0; i < started; i++) {
        int result = -1;
        blitz_task_join(stuck[i], &result, BLITZ_FOREVER);
        wrong |= result != 0;
    }
    return wrong || sum != CHAIN * (CHAIN + 1) / 2;
}

/* It holds the mutex, and is none of blitz's threads. */
static void *holds(void *arg)
{
    struct scene *s = arg;
    while (!atomic_load(&s->is_over))
        usleep(1000);
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

/* One thread locks and unlocks the mutex, as POSIX requires. */
static void *locks_then_holds(void *arg)
{
    struct scene *s = arg;
    pthread_mutex_lock(&s->mutex);
    atomic_store(&s->is_over, 0);
    return holds(arg);
}

int main(void)
{
    struct scene s = {.is_over = -1, .mutex = PTHREAD_MUTEX_INITIALIZER};
    pthread_t holder;
    if (pipe(s.pipe) != 0 || pthread_create(&holder, NULL, locks_then_holds, &s) != 0) {
        perror("hogs");
        return 1;
    }
    while (atomic_load(&s.is_over) != 0) /* until it holds the mutex */
        usleep(1000);
    int rc = blitz_run(everybody, &s, &(blitz_runtime_opts){.procs = 2});
    atomic_store(&s.is_over, 1);
    pthread_join(holder, NULL);
    if (rc != 0)
        fprintf(stderr, "hogs: something went wrong (%d)\n", rc);
    return rc != 0;
}
