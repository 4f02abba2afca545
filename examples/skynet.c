/*
 * skynet.c - a million tasks that add up.
 *
 * A task for more than one number starts ten tasks with a tenth each and adds up their results; a
 * task for a single number returns it. That is 1,111,111 tasks for a million numbers, and the sum
 * must be 499,999,500,000.
 *
 * Most of them never need their own stack: if a task has not started when it is joined, its joiner
 * calls it like a function. Idle workers steal the rest.
 *
 *     example_skynet [NUMBERS]     a power of ten (default 1000000)
 */
#include <stdio.h>
#include <stdlib.h>

#include <blitz.h>

enum { CHILDREN = 10 };

struct node {
    long first, size; /* of the numbers to add */
    long sum;
};

static int add_up(void *arg)
{
    struct node *me = arg, child[CHILDREN];
    blitz_task *task[CHILDREN];
    int started = 0, err = 0;
    if (me->size == 1) {
        me->sum = me->first;
        return 0;
    }
    for (int i = 0; i < CHILDREN && err == 0; i++) {
        long size = me->size / CHILDREN;
        child[i] = (struct node){.first = me->first + i * size, .size = size};
        err = blitz_spawn(add_up, &child[i], NULL, &task[i]);
        started += err == 0;
    }
    me->sum = 0;
    for (int i = 0; i < started; i++) {
        int result = 0;
        blitz_task_join(task[i], &result, BLITZ_FOREVER); /* children live in our frame: join all */
        me->sum += child[i].sum;
        err = err != 0 ? err : result;
    }
    return err;
}

static int is_power_of_ten(long n)
{
    while (n >= 10 && n % 10 == 0)
        n /= 10;
    return n == 1;
}

int main(int argc, char **argv)
{
    struct node root = {.size = argc > 1 ? atol(argv[1]) : 1000000};
    if (!is_power_of_ten(root.size)) {
        fprintf(stderr, "usage: %s [NUMBERS, a power of ten]\n", argv[0]);
        return 2;
    }
    uint64_t began = blitz_now();
    int err = blitz_run(add_up, &root, NULL);
    if (err != 0) {
        fprintf(stderr, "skynet: error %d\n", -err);
        return 1;
    }
    printf("0 to %ld add up to %ld, after %.1f ms\n", root.size - 1, root.sum,
           (double)(blitz_now() - began) / 1e6);
    return root.sum == root.size * (root.size - 1) / 2 ? 0 : 1;
}
