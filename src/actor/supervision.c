/*
 * supervision.c - print a tree of supervisors.
 *
 * A supervisor prints itself and its children, in its own handler, so that the list stands still. A child that is a supervisor is
 * asked to print itself at its place: the parent waits for its answer. A tree has no cycles, so these waits end.
 */
#include <errno.h>
#include <stdio.h>

#include "actor/supervised.h"
#include "blitz/task.h"

enum { LINE_BYTES = 200, DEPTH_MAX = 20 };

static const char *name_of_strategy(blitz_strategy s)
{
    static const char *const names[] = {"one_for_one", "one_for_all", "rest_for_one", "dynamic"};
    return names[s];
}

static const char *name_of_restart(blitz_restart r)
{
    static const char *const names[] = {"permanent", "transient", "temporary"};
    return names[r];
}

static const char *name_of_state(blitz_actor_state s)
{
    static const char *const names[] = {"idle", "scheduled", "running", "waiting", "muted", "dead"};
    return (size_t)s < BZ_ARRAY_LEN(names) ? names[s] : "alive";
}

/* Pass a line on, with its place in the tree and a newline. */
static int put(struct bz_printing *o, unsigned depth, const char *text)
{
    char line[LINE_BYTES + 2 * DEPTH_MAX];
    int indent = 2 * (int)(depth < DEPTH_MAX ? depth : DEPTH_MAX);
    int length = snprintf(line, sizeof line, "%*s%s\n", indent, "", text);
    return o->print(o->ctx, line, (size_t)length);
}

/* Ask a supervisor to print. The order is in our frame: nothing but an answer, or the end of the supervisor, ends the wait. */
static int ask(blitz_actor_id supervisor, struct bz_printing *o)
{
    blitz_shield();
    int rc = blitz_actor_call(supervisor, BZ_DO_PRINT, &o, sizeof(void *), NULL, 0, BLITZ_FOREVER);
    blitz_unshield();
    return rc;
}

static int show_child(struct bz_printing *o, struct bz_supervised *c)
{
    char text[LINE_BYTES];
    blitz_actor_info info;
    if (c->running.node != 0) {
        snprintf(text, sizeof text, "%s: %u.%u of node %u, %s", c->id, c->running.index,
                 c->running.generation, c->running.node, name_of_restart(c->spec.restart));
        return put(o, o->depth + 1, text);
    }
    if (!bz_supervised_runs(c) || blitz_actor_info_get(c->running, &info) != 0) {
        snprintf(text, sizeof text, "%s: %s, %s", c->id,
                 c->due != 0 ? "waits for a restart" : "does not run",
                 name_of_restart(c->spec.restart));
        return put(o, o->depth + 1, text);
    }
    snprintf(text, sizeof text, "%s: \"%s\" %u.%u, %s, %u messages, %s", c->id,
             info.behaviour != NULL ? info.behaviour : "", c->running.index, c->running.generation,
             name_of_state(info.state), info.mailbox, name_of_restart(c->spec.restart));
    int rc = put(o, o->depth + 1, text);
    if (rc < 0 || c->spec.supervisor == NULL)
        return rc;
    struct bz_printing below = {.print = o->print, .ctx = o->ctx, .depth = o->depth + 2};
    rc = ask(c->running, &below);
    return rc == -ESRCH ? 0 : rc; /* it has ended since */
}

int bz_supervisor_show(const struct bz_supervisor *s, struct bz_printing *o)
{
    char text[LINE_BYTES];
    snprintf(text, sizeof text, "supervisor %s, %llu restarts", name_of_strategy(s->strategy),
             (unsigned long long)s->restarts);
    int rc = put(o, o->depth, text);
    for (struct bz_list *l = s->children.next; l != &s->children && rc >= 0; l = l->next)
        rc = show_child(o, bz_supervised_of(l));
    return rc < 0 ? rc : 0;
}

/* ---- each child, for upgrades ---- */

static int ask_each(blitz_actor_id supervisor, struct bz_each *o)
{
    blitz_shield();
    int rc = blitz_actor_call(supervisor, BZ_DO_EACH, &o, sizeof(void *), NULL, 0, BLITZ_FOREVER);
    blitz_unshield();
    return rc < 0 ? rc : 0;
}

int bz_supervisor_show_each(const struct bz_supervisor *s, struct bz_each *o)
{
    int rc = 0;
    for (struct bz_list *l = s->children.next; l != &s->children && rc == 0; l = l->next) {
        const struct bz_supervised *c = bz_supervised_of(l);
        if (!bz_supervised_runs(c) || c->running.node != 0)
            continue;
        o->fn(c->running, o->ctx);
        rc = c->spec.supervisor != NULL ? ask_each(c->running, o) : 0;
        rc = rc == -ESRCH ? 0 : rc; /* it has ended since */
    }
    return rc;
}

int bz_supervisor_each(blitz_actor_id supervisor, void (*fn)(blitz_actor_id id, void *ctx),
                       void *ctx)
{
    return ask_each(supervisor, &(struct bz_each){fn, ctx});
}

int blitz_supervisor_print(blitz_actor_id supervisor, blitz_dump_fn print, void *ctx)
{
    if (print == NULL)
        return -EINVAL;
    return ask(supervisor, &(struct bz_printing){.print = print, .ctx = ctx});
}
