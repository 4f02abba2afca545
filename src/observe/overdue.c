/*
 * overdue.c - the tasks that delay a shutdown.
 *
 * A task that ignores its cancel keeps blitz_run() from returning. Without a message in the log the program
 * just hangs. So a shutdown names such tasks after a second, and again every ten seconds: id, name,
 * what the task does now, and where.
 *
 * The place is the first frame outside the library, if the task is off its stack and the walk finds one.
 * A task that runs has no frames to walk; the function it began in is logged instead.
 *
 * Only the first few tasks are named: a program with a million tasks would flood its log. The last line
 * counts the others.
 */
#include "observe/overdue.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "life/spawn.h"
#include "observe/dump.h"
#include "observe/view.h"
#include "os/look.h"
#include "proc/state.h"

enum { NAMED_MAX = 10, SYMBOL_MAX = 160 };

struct overdue {
    uint64_t count;
    char waited[BZ_SPAN_MAX];
};

static bool is_ours(const char *symbol)
{
    return strncmp(symbol, "bz_", 3) == 0 || strncmp(symbol, "blitz_", 6) == 0;
}

/* Find the first frame that is not the library's. False: there is none. */
static bool find_frame(const struct bz_view *v, char *out, size_t size)
{
    for (unsigned i = 0; i < v->depth; i++)
        if (bz_look_symbol(out, size, v->pc[i] - (i > 0)) && !is_ours(out))
            return true;
    return false;
}

/* ", at serve+0x12 (server)", or ", begun in serve+0x0 (server)"; empty if neither is known. */
static void say_place(char *out, size_t size, struct bz_task *t, const struct bz_view *v)
{
    char symbol[SYMBOL_MAX];
    out[0] = '\0';
    if (find_frame(v, symbol, sizeof symbol))
        snprintf(out, size, ", at %s", symbol);
    else if (t->ops->begun_in != NULL && bz_look_symbol(symbol, sizeof symbol, t->ops->begun_in(t)))
        snprintf(out, size, ", begun in %s", symbol);
}

static void say_task(struct bz_task *t, void *ctx)
{
    struct overdue *o = ctx;
    struct bz_view v;
    char place[SYMBOL_MAX + 16];
    if ((t->traits & BZ_TASK_ANONYMOUS) || bz_word_is_complete(&t->word) || o->count++ >= NAMED_MAX)
        return;
    bz_view_take(&v, t, true);
    say_place(place, sizeof place, t, &v);
    bool waits = v.state == BZ_VIEW_WAITING;
    bz_log(BLITZ_LOG_WARN, "shutdown: task %llu (%s) has not ended after %s: %s%s%s%s",
           (unsigned long long)t->id, bz_task_name(t), o->waited, bz_view_state_name(v.state),
           waits ? " for " : "", waits ? v.what : "", place);
}

void bz_overdue_say(struct bz_runtime *rt, uint64_t waited_ns)
{
    struct overdue o = {.count = 0};
    bz_span_text(o.waited, waited_ns);
    bz_tasks_each(rt, say_task, &o);
    if (o.count > NAMED_MAX)
        bz_log(BLITZ_LOG_WARN, "shutdown: %llu more tasks have not ended",
               (unsigned long long)(o.count - NAMED_MAX));
}
