/*
 * scope.c - structured concurrency: no task outlives the block that started it.
 *
 * The program fetches a page and its parts concurrently; a part with its own parts opens a nested
 * scope. If one part fails, the others are cancelled at every depth, and the top scope returns the
 * error. A token cancels from outside, a deadline by time. A function may share its locals with the
 * tasks it starts: they have ended when it returns. All tasks of a page inherit a task-local value, a
 * count of its parts, without an argument for it.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "blitz.h"

struct part {
    unsigned depth, number;
    unsigned bad; /* the number of the part that fails; 0: none */
    unsigned sum; /* the result */
};

/* The count of the page that a task works for. It outlives all of them, so a copy is the same pointer. */
static const blitz_local_key parts_key = {NULL, NULL};
static const blitz_spawn_opts heir = {.inherits = true};

static void *same(void *value, void *ctx)
{
    (void)ctx;
    return value;
}

static int fetch(void *arg)
{
    atomic_uint *parts = blitz_local_get(&parts_key);
    struct part *p = arg, below[2] = {{.sum = 0}, {.sum = 0}};
    blitz_scope s;
    int err = blitz_sleep((1 + p->number % 3) * BLITZ_MS);
    if (err != 0)
        return err;
    if (p->number == p->bad)
        return -EIO;
    p->sum = p->number;
    atomic_fetch_add(parts, 1);
    if (p->depth == 0)
        return 0;
    err = blitz_scope_open(&s, NULL, BLITZ_FOREVER);
    for (unsigned i = 0; err == 0 && i < 2; i++) {
        below[i] = (struct part){p->depth - 1, 2 * p->number + i, p->bad, 0};
        err = blitz_scope_spawn(&s, fetch, &below[i], &heir); /* a local of ours */
    }
    int end = blitz_scope_close(&s);
    if (end == 0)
        p->sum += below[0].sum + below[1].sum;
    return end != 0 ? end : err;
}

static const char *say(int err)
{
    return err == 0 ? "whole" : strerror(-err);
}

/* A page of 15 parts. */
static int page(unsigned bad, blitz_deadline until, blitz_token *token)
{
    struct part root = {3, 1, bad, 0};
    blitz_scope s;
    blitz_scope_opts opts = {.token = token};
    atomic_uint parts = 0;
    int err = blitz_local_set_inherited(&parts_key, &parts, same);
    if (err == 0)
        err = blitz_scope_open(&s, &opts, until);
    if (err != 0)
        return err;
    err = blitz_scope_spawn(&s, fetch, &root, &heir);
    int end = blitz_scope_close(&s);
    (void)blitz_local_set(&parts_key, NULL);
    printf("  %s, sum %u of %u parts\n", say(end), root.sum, atomic_load(&parts));
    return end != 0 ? end : err;
}

static int cancels(void *token)
{
    int err = blitz_sleep(2 * BLITZ_MS);
    blitz_token_cancel(token);
    return err;
}

static int main_task(void *arg)
{
    blitz_token *token;
    blitz_task *t;
    (void)arg;
    puts("all is well:");
    int err = page(0, BLITZ_FOREVER, NULL);
    puts("part 13 fails:");
    if (page(13, BLITZ_FOREVER, NULL) != -EIO)
        err = -1;
    puts("there are 3 ms:");
    if (page(0, blitz_after(3 * BLITZ_MS), NULL) != -ETIMEDOUT)
        err = -1;
    puts("somebody cancels:");
    if (blitz_token_new(NULL, &token) != 0 || blitz_spawn(cancels, token, NULL, &t) != 0)
        return -1;
    if (page(0, BLITZ_FOREVER, token) != -ECANCELED)
        err = -1;
    blitz_task_join(t, NULL, BLITZ_FOREVER);
    blitz_token_unref(token);
    return err;
}

int main(void)
{
    return blitz_run(main_task, NULL, NULL) == 0 ? 0 : 1;
}
