/*
 * first_of_many.c - query many servers, take the first answer, and leave no task running.
 *
 *     first_of_many [mirrors]
 *
 * Each mirror is a task with its own delay; the race is over their joins. These joins are pinned: a
 * loser is cancelled and waited for. So when the race ends, every task has ended, and its result is
 * known. One mirror fails at once. An error also wins a race, so the race is repeated without that
 * mirror.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "blitz.h"

struct mirror {
    unsigned ms;
    int is_broken;
    blitz_join_future end;
    int was_tried;
};

static int fetch(void *arg)
{
    struct mirror *m = arg;
    if (m->is_broken)
        return -ECONNREFUSED;
    int err = blitz_sleep(m->ms * BLITZ_MS); /* a cancel ends it here */
    return err != 0 ? err : (int)m->ms;
}

/* One race over the mirrors that are left. Returns the winner's index, or an error. */
static int race(struct mirror *mirror, blitz_child *child, unsigned count)
{
    blitz_race r;
    for (unsigned i = 0; i < count; i++) {
        blitz_task *t;
        int err = blitz_spawn(fetch, &mirror[i], NULL, &t);
        if (err != 0)
            exit(1);
        blitz_task_join_linked_future_init(&mirror[i].end, t);
        child[i].future = &mirror[i].end.future;
    }
    int err = blitz_race_init(&r, child, count);
    if (err == 0)
        err = blitz_await(&r.future, blitz_after(10 * BLITZ_S));
    return err != 0 ? err : (int)r.winner;
}

/* Repeat the race until a mirror succeeds. */
static int first_answer(struct mirror *mirror, blitz_child *child, unsigned count)
{
    unsigned left = count, cancelled = 0;
    for (unsigned i = 0; i < count; i++)
        mirror[i] = (struct mirror){.ms = 5 + (i * 37) % 100, .is_broken = i == count / 2};
    int winner;
    while ((winner = race(mirror, child, left)) >= 0 && mirror[winner].end.value < 0) {
        printf("mirror %d failed, %u are left\n", winner, left - 1);
        mirror[winner] = mirror[--left];
    }
    for (unsigned i = 0; i < left; i++)
        cancelled += mirror[i].end.value == -ECANCELED;
    printf("the first of %u answered after %d ms; %u were cancelled, none is left running\n", left,
           winner < 0 ? winner : mirror[winner].end.value, cancelled);
    return winner < 0 ? winner : 0;
}

static int main_task(void *arg)
{
    unsigned count = *(unsigned *)arg;
    struct mirror *mirror = calloc(count, sizeof *mirror);
    blitz_child *child = calloc(count, sizeof *child);
    int err = -ENOMEM;
    if (mirror != NULL && child != NULL)
        err = first_answer(mirror, child, count);
    free(mirror);
    free(child);
    return err;
}

int main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100;
    if (count < 2)
        count = 2;
    return blitz_run(main_task, &count, NULL) == 0 ? 0 : 1;
}
