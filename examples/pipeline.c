/*
 * pipeline.c - back-pressure: three stages, of which the last is the slowest.
 *
 * A reader sends lines to `parse`, which sends to `enrich`, which sends to `store`. The store takes longest. When its mailbox is
 * longer than its high mark, `enrich` is muted; when that of `enrich` is too long, `parse` is muted; in the end the reader waits
 * in its send. No stage knows about the others, and no mailbox grows much beyond the mark.
 *
 *     example_pipeline [LINES]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <blitz.h>

enum { LINE };
enum { STAGES = 3, MARK = 200 };

struct stage {
    blitz_actor_id next; /* zeroed: the last */
    unsigned work;
    long lines; /* to come */
};

static blitz_event done; /* the store has all lines */

struct line {
    long number;
    unsigned value;
};

static unsigned burn(unsigned value, unsigned work)
{
    for (unsigned i = 0; i < work; i++)
        value = value * 1664525u + 1013904223u;
    return value;
}

BLITZ_HANDLER(on_line, struct stage, struct line)
{
    (void)m;
    struct line out = {data->number, burn(data->value, state->work)};
    if (state->next.generation != 0)
        return blitz_actor_send(state->next, LINE, &out, sizeof out); /* may mute this stage */
    if (--state->lines == 0)
        blitz_event_set(&done);
    return 0;
}

static const blitz_handler handlers[] = {BLITZ_ON(LINE, struct line, on_line)};
static const blitz_behaviour stages[STAGES] = {
    {.name = "parse",
     .handlers = handlers,
     .handler_count = 1,
     .state_bytes = sizeof(struct stage),
     .mailbox_high = MARK},
    {.name = "enrich",
     .handlers = handlers,
     .handler_count = 1,
     .state_bytes = sizeof(struct stage),
     .mailbox_high = MARK},
    {.name = "store",
     .handlers = handlers,
     .handler_count = 1,
     .state_bytes = sizeof(struct stage),
     .mailbox_high = MARK},
};

/* ---- looking ---- */

struct watch {
    blitz_actor_id stage[STAGES];
    unsigned longest;
};

static const char *state_name(blitz_actor_state s)
{
    static const char *const names[] = {"idle", "scheduled", "running", "waiting", "muted", "dead"};
    return names[s];
}

/* Print the stages a few times, and keep the length of the longest mailbox. */
static int watch(void *arg)
{
    struct watch *w = arg;
    for (int round = 0; !blitz_event_is_set(&done); round++) {
        for (int i = 0; i < STAGES; i++) {
            blitz_actor_info info;
            if (blitz_actor_info_get(w->stage[i], &info) != 0)
                return 1;
            w->longest = info.mailbox > w->longest ? info.mailbox : w->longest;
            if (round % 20 == 0)
                printf("  %s: %u, %s%s", info.behaviour, info.mailbox, state_name(info.state),
                       i == STAGES - 1 ? "\n" : "");
        }
        (void)!blitz_event_wait(&done, blitz_after(BLITZ_MS));
    }
    return 0;
}

/* ---- the program ---- */

static int program(void *arg)
{
    long lines = *(long *)arg, waits = 0;
    static struct watch w;
    blitz_task *watcher;
    blitz_actor_id next = {0, 0, 0, 0};
    blitz_event_init(&done);
    for (unsigned i = STAGES; i-- > 0; next = w.stage[i]) {
        struct stage s = {next, 500 + 4000 * i, lines};
        if (blitz_actor_spawn(&stages[i], &s, NULL, &w.stage[i]) != 0)
            return 1;
    }
    if (blitz_spawn(watch, &w, NULL, &watcher) != 0)
        return 1;
    for (long i = 0; i < lines; i++) {
        struct line l = {i, (unsigned)i};
        int rc = blitz_actor_try_send(w.stage[0], LINE, &l, sizeof l);
        if (rc == -EAGAIN) { /* the first stage is overloaded: wait */
            waits++;
            rc = blitz_actor_send(w.stage[0], LINE, &l, sizeof l);
        }
        if (rc != 0)
            return 1;
    }
    if (blitz_event_wait(&done, BLITZ_FOREVER) != 0 ||
        blitz_task_join(watcher, NULL, BLITZ_FOREVER) != 0)
        return 1;
    printf("%ld lines; the reader waited %ld times; the longest mailbox had %u messages\n", lines,
           waits, w.longest);
    return w.longest < 10 * MARK ? 0 : 1;
}

int main(int argc, char **argv)
{
    long lines = argc > 1 ? atol(argv[1]) : 50000;
    return blitz_run(program, &lines, NULL);
}
