/*
 * hello.c - ten tasks that wait at the same time.
 *
 * Each sleeps for ten milliseconds; together they take ten, not a hundred, on any number of CPUs,
 * because a waiting task uses no CPU time.
 */
#include <stdio.h>

#include <blitz.h>

enum { TASKS = 10 };

static int square(void *arg)
{
    int n = *(int *)arg;
    int err = blitz_sleep(10 * BLITZ_MS);
    return err != 0 ? err : n * n;
}

static int sum_of_squares(void *arg)
{
    blitz_task *task[TASKS];
    int input[TASKS], sum = 0, started = 0;
    (void)arg;
    for (int i = 0; i < TASKS; i++) {
        input[i] = i;
        if (blitz_spawn(square, &input[i], NULL, &task[i]) != 0)
            break;
        started++;
    }
    for (int i = 0; i < started; i++) {
        int result = 0;
        blitz_task_join(task[i], &result, BLITZ_FOREVER); /* without a deadline it always ends */
        sum += result;
    }
    return started == TASKS ? sum : -1;
}

int main(void)
{
    uint64_t start = blitz_now();
    int sum = blitz_run(sum_of_squares, NULL, NULL);
    if (sum < 0) {
        fprintf(stderr, "hello: error %d\n", -sum);
        return 1;
    }
    printf("blitz %s: the squares of 0 to %d sum up to %d, after %.1f ms\n", blitz_version_string(),
           TASKS - 1, sum, (double)(blitz_now() - start) / 1e6);
    return 0;
}
