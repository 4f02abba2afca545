/*
 * join_set.c - a crawler: results of finished tasks start new tasks.
 *
 *     join_set [pages]
 *
 * A task fetches each page, at most AT_ONCE at a time. The number of pages is not known at the
 * start: each page links to others. A scope would wait for all tasks. Here the results arrive one
 * by one, in the order in which the tasks end. After enough pages the rest is cancelled.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "blitz.h"

enum { AT_ONCE = 8, LINKS = 3 };

struct page {
    unsigned number;
    unsigned link[LINKS];
};

struct crawl {
    blitz_join_set *set;
    unsigned wanted, seen, failed, cancelled;
    unsigned *queue; /* numbers of pages to be fetched */
    size_t queued, begun, room;
};

/* Simulates a network request. Every seventh page does not exist. */
static int fetch(void *arg)
{
    struct page *p = arg;
    int err = blitz_sleep((1 + p->number * 37 % 10) * BLITZ_MS); /* a cancel ends it here */
    if (err != 0)
        return err;
    for (unsigned i = 0; i < LINKS; i++)
        p->link[i] = p->number * LINKS + i + 1;
    return p->number % 7 == 6 ? -ENOENT : 0;
}

static int begin_some(struct crawl *c)
{
    while (c->begun < c->queued && blitz_join_set_count(c->set) < AT_ONCE) {
        struct page *p = calloc(1, sizeof *p);
        if (p == NULL)
            return -ENOMEM;
        p->number = c->queue[c->begun];
        int err = blitz_join_set_spawn(c->set, fetch, p, p, NULL);
        if (err != 0) {
            free(p);
            return err;
        }
        c->begun++;
    }
    return 0;
}

static void note(struct crawl *c, struct page *p, int result)
{
    if (result == -ECANCELED) {
        c->cancelled++;
    } else if (result != 0) {
        c->failed++;
    } else {
        c->seen++;
        for (unsigned i = 0; i < LINKS && c->queued < c->room; i++)
            c->queue[c->queued++] = p->link[i];
    }
    free(p);
}

static int crawl(struct crawl *c)
{
    blitz_joined end;
    int err = begin_some(c);
    while (err == 0 && (err = blitz_join_set_next(c->set, &end, blitz_after(10 * BLITZ_S))) == 0) {
        note(c, end.key, end.result);
        if (c->seen == c->wanted)
            blitz_join_set_cancel(c->set);
        if (c->seen < c->wanted)
            err = begin_some(c);
    }
    return err == -ENOENT ? 0 : err; /* the set is empty */
}

static int run(void *arg)
{
    struct crawl c = {.wanted = *(unsigned *)arg};
    c.room = (size_t)c.wanted * 4 + 16;
    c.queue = malloc(c.room * sizeof *c.queue);
    int err = c.queue != NULL ? blitz_join_set_new(&c.set) : -ENOMEM;
    if (err == 0) {
        c.queue[c.queued++] = 0;
        err = crawl(&c);
        printf("%u pages, %u do not exist, %u were cancelled\n", c.seen, c.failed, c.cancelled);
        blitz_join_set_unref(c.set);
    }
    free(c.queue);
    return err;
}

int main(int argc, char **argv)
{
    unsigned wanted = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100;
    return blitz_run(run, &wanted, NULL) != 0;
}
