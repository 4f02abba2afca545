/*
 * workers.c - a pool of workers, limited by a semaphore, and joined at the end.
 *
 * A hundred jobs arrive, each its own fiber: fibers are cheap. The resource that they use is
 * expensive, so a semaphore admits four at a time. A wait group waits for all, a mutex guards their
 * sum, and the first user opens a lazy value. The last job has a deadline that it misses. The
 * output does not depend on the schedule.
 */
#include <errno.h>
#include <stdio.h>

#include <blitz.h>

enum { JOBS = 100, AT_ONCE = 4 };

static blitz_semaphore seats = BLITZ_SEMAPHORE_INIT(AT_ONCE);
static blitz_wait_group running = BLITZ_WAIT_GROUP_INIT;

static blitz_mutex mutex = BLITZ_MUTEX_INIT;
static int inside, most, sum; /* guarded by mutex */

/* ---- the resource: the first job opens it ---- */

static int open_table(void *arg, void **value)
{
    static int table[JOBS];
    (void)arg;
    for (int i = 0; i < JOBS; i++)
        table[i] = i + 1;
    *value = table;
    return blitz_sleep(BLITZ_MS); /* this may wait; the other jobs wait for it */
}

static blitz_lazy table = BLITZ_LAZY_INIT(open_table, NULL);

/* ---- a job ---- */

static void add(int value, int who)
{
    if (blitz_mutex_lock(&mutex, BLITZ_FOREVER) != 0)
        return;
    inside += who;
    most = inside > most ? inside : most;
    sum += value;
    blitz_mutex_unlock(&mutex);
}

static int work(int number)
{
    void *numbers;
    int err = blitz_lazy_get(&table, &numbers, BLITZ_FOREVER);
    if (err != 0)
        return err;
    add(0, 1);
    err = blitz_sleep(100 * BLITZ_US); /* as if it used something */
    add(((int *)numbers)[number], -1);
    return err;
}

static int job(void *arg)
{
    int err = blitz_semaphore_acquire(&seats, 1, BLITZ_FOREVER);
    if (err == 0) {
        err = work((int)(intptr_t)arg);
        blitz_semaphore_release(&seats, 1);
    }
    blitz_wait_group_done(&running);
    return err;
}

/* ---- the day ---- */

static int day(void *arg)
{
    (void)arg;
    for (intptr_t i = 0; i < JOBS; i++) {
        blitz_wait_group_add(&running, 1);
        int err = blitz_spawn(job, (void *)i, NULL, NULL);
        if (err != 0)
            return err;
    }
    int err = blitz_wait_group_wait(&running, BLITZ_FOREVER);
    if (err != 0)
        return err;
    printf("%d jobs, never more than %d at once, sum %d\n", JOBS, most, sum);

    /* All permits are taken and will not be released: the deadline ends the wait, and no permit is
     * taken. */
    err = blitz_semaphore_acquire(&seats, AT_ONCE, BLITZ_FOREVER);
    if (err != 0)
        return err;
    err = blitz_semaphore_acquire(&seats, 1, blitz_after(BLITZ_MS));
    printf("one more: %s\n", err == -ETIMEDOUT ? "no seat within a millisecond" : "?");
    return most <= AT_ONCE && sum == JOBS * (JOBS + 1) / 2 && err == -ETIMEDOUT ? 0 : 1;
}

int main(void)
{
    return blitz_run(day, NULL, NULL);
}
