/*
 * scene_millions.c - a million tasks that wait, in a hundred and some bytes each.
 *
 * A stackless task is a struct and a function. These wait for their number to be called: the first
 * poll leaves a waker at the counter, the second takes the number. The counter then calls all of
 * them, in an order that is not theirs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <blitz.h>

#include "demo.h"

struct seat {
    blitz_waker waker;
    _Atomic long number; /* 0: not called yet */
};

struct hall {
    uint64_t count;
    struct seat *seats;
    _Atomic uint64_t waiting, served, sum;
    uint64_t bytes; /* the memory of a waiting task */
};

struct guest { /* the state of a task: its position */
    blitz_frame frame;
    struct seat *seat;
    struct hall *hall;
};

static blitz_poll wait_to_be_called(void *state, blitz_cx *cx)
{
    struct guest *me = state;
    BLITZ_BEGIN(&me->frame, cx);
    me->seat->waker = blitz_waker_clone(cx->waker);
    me->hall->waiting++;
    BLITZ_WAIT_FOR(me->seat->number != 0);
    me->hall->sum += (uint64_t)me->seat->number;
    me->hall->served++;
    BLITZ_END(0);
}

/* Resident memory, in bytes. */
static uint64_t memory(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL)
        return 0;
    if (fscanf(f, "%*s %lu", &pages) != 1)
        pages = 0;
    fclose(f);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int fill(struct hall *h)
{
    uint64_t before = memory();
    for (uint64_t i = 0; i < h->count; i++) {
        struct guest guest = {.seat = &h->seats[i], .hall = h};
        int err = blitz_spawn_poll(wait_to_be_called, &guest, sizeof guest, NULL, NULL);
        if (err != 0)
            return err;
        if (i % 256 == 255)
            blitz_yield();
    }
    while (h->waiting < h->count)
        blitz_yield();
    h->bytes = h->count > 0 ? (memory() - before) / h->count : 0;
    return 0;
}

/* Call the tasks in strides, so that neighbours in memory are not called one after the other. */
static void call_all(struct hall *h)
{
    uint64_t stride = h->count / 3 * 2 + 1, at = 0;
    while (stride % 2 == 0 || h->count % stride == 0)
        stride++;
    for (uint64_t i = 0; i < h->count; i++, at = (at + stride) % h->count) {
        h->seats[at].number = (long)i + 1;
        blitz_waker_wake(&h->seats[at].waker);
    }
}

struct evening {
    struct hall hall;
    double filled_s, served_s;
};

static int run(void *arg)
{
    struct evening *e = arg;
    struct hall *h = &e->hall;
    double start = demo_seconds();
    int err = fill(h);
    double filled = demo_seconds();
    if (err != 0)
        return err;
    call_all(h);
    while (h->served < h->count)
        blitz_yield();
    e->filled_s = filled - start;
    e->served_s = demo_seconds() - filled;
    return 0;
}

static void play(struct demo *d)
{
    struct evening e = {.hall = {.count = demo_scaled(d, 1000000)}};
    struct hall *h = &e.hall;
    double n = (double)h->count;
    h->seats = malloc(h->count * sizeof *h->seats);
    if (h->seats == NULL) {
        demo_cannot(d, "there is no memory for %s seats", demo_count(h->count));
        return;
    }
    memset(h->seats, 1, h->count * sizeof *h->seats); /* in memory before that is measured */
    for (uint64_t i = 0; i < h->count; i++)
        h->seats[i] = (struct seat){.number = 0};
    demo_progress(d, 0, 1, "million");
    int err = blitz_run(run, &e, NULL);
    demo_claim(d, err == 0, "error %d", -err);
    demo_claim(d, err != 0 || h->sum == h->count * (h->count + 1) / 2,
               "every number was called once, not %s in all", demo_count(h->sum));
    if (err == 0) {
        demo_result(d, "%s tasks wait, in %s bytes each: %.0f ns to start one and let it wait",
                    demo_count(h->count), demo_count(h->bytes), e.filled_s * 1e9 / n);
        demo_result(d, "each woken once, in another order, and ended: %.0f ns",
                    e.served_s * 1e9 / n);
    }
    free(h->seats);
}

const struct demo_scene scene_millions = {
    "millions", "A million that wait",
    "Stackless tasks: a struct and a function, written like straight code.", play};
