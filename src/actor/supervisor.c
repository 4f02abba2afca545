/*
 * supervisor.c - a supervisor is an actor whose state is a list of children.
 *
 * It traps exits and is linked to each child, so the end of a child is a message. A restart is a spawn with the same state and
 * name. The children are in a list in the order of their starts; the strategies are walks over it.
 *
 * Ending a child: ask it to stop, wait for its end until its deadline, then kill it. The wait is inside the supervisor's handler,
 * and its mailbox waits with it. The exit message of a child that was ended in this way finds no running child with that id, and
 * is dropped.
 *
 * Restarts are limited: a ring holds the times of the last `intensity` restarts. If the oldest of them is within the period, the
 * next restart is one too many, and the supervisor gives up. That is one comparison, however large the limit is.
 *
 * When the supervisor itself ends, its `exit` ends the children in reverse order. If it was killed or the runtime ends, its waits
 * return at once, and the links and the runtime's own cancel end the children.
 *
 * Management calls pass a pointer to the caller's frame. The caller is shielded while it waits, so the frame stays until the
 * supervisor has answered or died, and a dead supervisor handles nothing.
 *
 * I1  A child that runs has an id; its generation is 0 otherwise.
 */
#include <errno.h>
#include <string.h>

#include "actor/actor.h"
#include "base/list.h"
#include "blitz/supervisor.h"
#include "blitz/task.h"

enum { DEFAULT_INTENSITY = 5, INTENSITY_MAX = 1000 };
enum { DO_START, DO_TERMINATE, DO_RESTART, DO_FORGET, DO_WHICH, DO_COUNT };

struct child {
    struct bz_list in;      /* supervisor.children */
    blitz_child_spec spec;  /* its id and name are the copies below */
    blitz_actor_id running; /* I1 */
    char id[BLITZ_NAME_BYTES_MAX], name[BLITZ_NAME_BYTES_MAX];
    _Alignas(16) unsigned char state[];
};

struct supervisor {
    blitz_allocator alloc;
    struct bz_list children; /* in the order of their starts */
    blitz_strategy strategy;
    unsigned intensity, restart_at, restart_count; /* of the ring */
    blitz_duration period;
    uint64_t restarts;
    blitz_instant ring[]; /* intensity times */
};

/* A management call: in the caller's frame. */
struct order {
    const blitz_child_spec *child;
    const char *id;
    blitz_actor_id found;
    blitz_supervisor_counts counts;
};

/* ---- children ---- */

static size_t child_bytes(const blitz_child_spec *c)
{
    return sizeof(struct child) + (c->state != NULL ? c->behaviour->state_bytes : 0);
}

static struct child *child_of(struct bz_list *in)
{
    return BZ_CONTAINER_OF(in, struct child, in);
}

static bool child_is_bad(const blitz_child_spec *c)
{
    return c->behaviour == NULL || c->id == NULL || strlen(c->id) >= BLITZ_NAME_BYTES_MAX ||
           (c->name != NULL && strlen(c->name) >= BLITZ_NAME_BYTES_MAX);
}

static struct child *child_new(struct supervisor *s, const blitz_child_spec *spec)
{
    struct child *c = bz_alloc(&s->alloc, child_bytes(spec), _Alignof(max_align_t));
    if (c == NULL)
        return NULL;
    *c = (struct child){.spec = *spec};
    bz_list_init(&c->in);
    memcpy(c->id, spec->id, strlen(spec->id) + 1);
    c->spec.id = c->id;
    if (spec->name != NULL) {
        memcpy(c->name, spec->name, strlen(spec->name) + 1);
        c->spec.name = c->name;
    }
    if (spec->state != NULL) {
        memcpy(c->state, spec->state, spec->behaviour->state_bytes);
        c->spec.state = c->state;
    }
    bz_list_push_back(&s->children, &c->in);
    return c;
}

static void child_free(struct supervisor *s, struct child *c)
{
    bz_list_remove(&c->in);
    bz_free(&s->alloc, c, child_bytes(&c->spec));
}

static struct child *find(struct supervisor *s, const char *id)
{
    for (struct bz_list *l = s->children.next; l != &s->children; l = l->next)
        if (strcmp(child_of(l)->id, id) == 0)
            return child_of(l);
    return NULL;
}

static struct child *find_running(struct supervisor *s, blitz_actor_id id)
{
    for (struct bz_list *l = s->children.prev; l != &s->children; l = l->prev)
        if (blitz_actor_id_equal(child_of(l)->running, id))
            return child_of(l);
    return NULL;
}

static bool runs(const struct child *c)
{
    return c->running.generation != 0;
}

/* In the supervisor. */
static int child_start(struct child *c)
{
    blitz_actor_opts opts = {.name = c->spec.name, .link = true};
    return blitz_actor_spawn(c->spec.behaviour, c->spec.state, &opts, &c->running);
}

/* End a child: ask, wait, kill. */
static void child_end(struct child *c)
{
    blitz_duration patience = c->spec.shutdown != 0 ? c->spec.shutdown : 5 * BLITZ_S;
    blitz_actor_id id = c->running;
    c->running = (blitz_actor_id){0, 0, 0, 0};
    if (id.generation == 0 || blitz_actor_stop(id) == -ESRCH)
        return;
    int rc = blitz_actor_join(id, NULL, blitz_after(patience));
    if (rc == 0 || rc == -ESRCH)
        return;
    (void)blitz_actor_kill(id);
    (void)blitz_actor_join(id, NULL, BLITZ_FOREVER);
}

/* End the children from the last down to, and without, `until`. */
static void end_down_to(struct supervisor *s, const struct bz_list *until)
{
    for (struct bz_list *l = s->children.prev, *before; l != until; l = before) {
        before = l->prev;
        child_end(child_of(l));
        if (child_of(l)->spec.restart == BLITZ_TEMPORARY)
            child_free(s, child_of(l));
    }
}

/* ---- restarts ---- */

static int give_up(const char *text)
{
    return blitz_actor_fail(-ELOOP, text);
}

/* Count a restart. False: it is one too many. */
static bool may_restart(struct supervisor *s)
{
    blitz_instant now = blitz_now();
    blitz_instant *oldest = &s->ring[s->restart_at];
    if (s->restart_count == s->intensity && now - *oldest <= s->period)
        return false;
    *oldest = now;
    s->restart_at = (s->restart_at + 1) % s->intensity;
    s->restart_count += s->restart_count < s->intensity;
    s->restarts++;
    return true;
}

/* Start those children from `first` on that do not run; temporary ones that were ended are forgotten. */
static int start_from(struct supervisor *s, struct bz_list *first)
{
    for (struct bz_list *l = first, *next; l != &s->children; l = next) {
        next = l->next;
        if (runs(child_of(l)))
            continue;
        int err = child_start(child_of(l));
        if (err != 0)
            return err;
    }
    return 0;
}

static int restart(struct supervisor *s, struct child *c)
{
    int err;
    if (!may_restart(s))
        return give_up("too many restarts");
    switch (s->strategy) {
    case BLITZ_ONE_FOR_ALL:
        end_down_to(s, &s->children);
        err = start_from(s, s->children.next);
        break;
    case BLITZ_REST_FOR_ONE:
        end_down_to(s, &c->in);
        err = start_from(s, &c->in);
        break;
    default:
        err = child_start(c);
    }
    return err != 0 ? give_up("a child does not start") : 0;
}

static bool is_failure(const blitz_exit_reason *why)
{
    return why->kind != BLITZ_EXIT_NORMAL && why->kind != BLITZ_EXIT_SHUTDOWN;
}

BLITZ_HANDLER(on_exit_signal, struct supervisor *, blitz_down)
{
    struct supervisor *s = *state;
    struct child *c = find_running(s, data->who);
    (void)m;
    if (c == NULL)
        return 0; /* it was ended by us */
    c->running = (blitz_actor_id){0, 0, 0, 0};
    if (c->spec.restart == BLITZ_TEMPORARY) {
        child_free(s, c);
        return 0;
    }
    if (c->spec.restart == BLITZ_TRANSIENT && !is_failure(&data->reason)) {
        if (s->strategy == BLITZ_DYNAMIC)
            child_free(s, c);
        return 0;
    }
    return restart(s, c);
}

/* ---- management ---- */

static int answer(const blitz_msg *m, int rc)
{
    return rc < 0 ? blitz_actor_reply_error(m->reply, rc) : blitz_actor_reply(m->reply, NULL, 0);
}

BLITZ_HANDLER(on_start, struct supervisor *, struct order *)
{
    struct supervisor *s = *state;
    struct order *o = *data;
    if (child_is_bad(o->child))
        return answer(m, -EINVAL);
    if (s->strategy != BLITZ_DYNAMIC && find(s, o->child->id) != NULL)
        return answer(m, -EEXIST);
    struct child *c = child_new(s, o->child);
    int err = c != NULL ? child_start(c) : -ENOMEM;
    if (err != 0 && c != NULL)
        child_free(s, c);
    if (err == 0)
        o->found = c->running;
    return answer(m, err);
}

BLITZ_HANDLER(on_terminate, struct supervisor *, struct order *)
{
    struct supervisor *s = *state;
    struct child *c = find(s, (*data)->id);
    if (c == NULL)
        return answer(m, -ENOENT);
    child_end(c);
    if (c->spec.restart == BLITZ_TEMPORARY || s->strategy == BLITZ_DYNAMIC)
        child_free(s, c);
    return answer(m, 0);
}

BLITZ_HANDLER(on_restart, struct supervisor *, struct order *)
{
    struct child *c = find(*state, (*data)->id);
    if (c == NULL)
        return answer(m, -ENOENT);
    return answer(m, runs(c) ? -EBUSY : child_start(c));
}

BLITZ_HANDLER(on_forget, struct supervisor *, struct order *)
{
    struct child *c = find(*state, (*data)->id);
    if (c == NULL || runs(c))
        return answer(m, c == NULL ? -ENOENT : -EBUSY);
    child_free(*state, c);
    return answer(m, 0);
}

BLITZ_HANDLER(on_which, struct supervisor *, struct order *)
{
    struct child *c = find(*state, (*data)->id);
    if (c != NULL)
        (*data)->found = c->running;
    return answer(m, c != NULL ? 0 : -ENOENT);
}

BLITZ_HANDLER(on_count, struct supervisor *, struct order *)
{
    struct supervisor *s = *state;
    blitz_supervisor_counts counts = {.restarts = s->restarts};
    for (struct bz_list *l = s->children.next; l != &s->children; l = l->next) {
        counts.children++;
        counts.active += runs(child_of(l));
    }
    (*data)->counts = counts;
    return answer(m, 0);
}

/* ---- its life ---- */

static void supervisor_free(struct supervisor *s)
{
    blitz_allocator from = s->alloc;
    while (!bz_list_is_empty(&s->children))
        child_free(s, child_of(s->children.next));
    bz_free(&from, s, sizeof *s + s->intensity * sizeof *s->ring);
}

static int supervisor_init(void *state)
{
    struct supervisor *s = *(struct supervisor **)state;
    blitz_actor_trap_exit(true);
    return start_from(s, s->children.next) != 0 ? give_up("a child does not start") : 0;
}

static void supervisor_exit(void *state, const blitz_exit_reason *why)
{
    struct supervisor *s = *(struct supervisor **)state;
    (void)why;
    end_down_to(s, &s->children);
}

/* Its init may have failed: then links end the children. */
static void supervisor_drop(void *state, void *ctx)
{
    (void)ctx;
    supervisor_free(*(struct supervisor **)state);
}

static const blitz_handler handlers[] = {
    BLITZ_ON(DO_START, struct order *, on_start),
    BLITZ_ON(DO_TERMINATE, struct order *, on_terminate),
    BLITZ_ON(DO_RESTART, struct order *, on_restart),
    BLITZ_ON(DO_FORGET, struct order *, on_forget),
    BLITZ_ON(DO_WHICH, struct order *, on_which),
    BLITZ_ON(DO_COUNT, struct order *, on_count),
    BLITZ_ON(BLITZ_MSG_EXIT, blitz_down, on_exit_signal),
};

static const blitz_behaviour supervising = {.name = "supervisor",
                                            .state_bytes = sizeof(struct supervisor *),
                                            .init = supervisor_init,
                                            .handlers = handlers,
                                            .handler_count = BZ_ARRAY_LEN(handlers),
                                            .exit = supervisor_exit,
                                            .drop = supervisor_drop};

static int add_children(struct supervisor *s, const blitz_supervisor_plan *config)
{
    for (size_t i = 0; i < config->child_count; i++) {
        const blitz_child_spec *c = &config->children[i];
        if (child_is_bad(c) || (s->strategy != BLITZ_DYNAMIC && find(s, c->id) != NULL))
            return -EINVAL;
        if (child_new(s, c) == NULL)
            return -ENOMEM;
    }
    return 0;
}

int blitz_supervisor_spawn(const blitz_supervisor_plan *config, const blitz_actor_opts *opts,
                           blitz_actor_id *out)
{
    struct bz_machine *m = bz_machine_self();
    struct bz_runtime *rt = opts != NULL && opts->runtime != NULL
                                ? (struct bz_runtime *)opts->runtime
                            : m != NULL ? m->rt
                                        : NULL;
    unsigned intensity = config->intensity != 0 ? config->intensity : DEFAULT_INTENSITY;
    if (rt == NULL || intensity > INTENSITY_MAX || config->strategy > BLITZ_DYNAMIC)
        return -EINVAL;
    struct supervisor *s =
        bz_alloc(&rt->alloc, sizeof *s + intensity * sizeof *s->ring, _Alignof(struct supervisor));
    if (s == NULL)
        return -ENOMEM;
    *s = (struct supervisor){.alloc = rt->alloc,
                             .strategy = config->strategy,
                             .intensity = intensity,
                             .period = config->period != 0 ? config->period : 10 * BLITZ_S};
    bz_list_init(&s->children);
    int err = add_children(s, config);
    if (err == 0)
        err = blitz_actor_spawn(&supervising, &s, opts, out);
    if (err != 0)
        supervisor_free(s);
    return err;
}

/* Ask the supervisor. The order is in our frame: nothing but an answer, or the end of the supervisor, ends the wait. */
static int ask(blitz_actor_id supervisor, uint32_t what, struct order *o)
{
    blitz_shield();
    int rc = blitz_actor_call(supervisor, what, &o, sizeof(void *), NULL, 0, BLITZ_FOREVER);
    blitz_unshield();
    return rc;
}

int blitz_supervisor_start(blitz_actor_id supervisor, const blitz_child_spec *child,
                           blitz_actor_id *out)
{
    struct order o = {.child = child};
    int rc = ask(supervisor, DO_START, &o);
    if (rc == 0 && out != NULL)
        *out = o.found;
    return rc;
}

int blitz_supervisor_terminate(blitz_actor_id supervisor, const char *id)
{
    return ask(supervisor, DO_TERMINATE, &(struct order){.id = id});
}

int blitz_supervisor_restart(blitz_actor_id supervisor, const char *id)
{
    return ask(supervisor, DO_RESTART, &(struct order){.id = id});
}

int blitz_supervisor_forget(blitz_actor_id supervisor, const char *id)
{
    return ask(supervisor, DO_FORGET, &(struct order){.id = id});
}

int blitz_supervisor_which(blitz_actor_id supervisor, const char *id, blitz_actor_id *out)
{
    struct order o = {.id = id};
    int rc = ask(supervisor, DO_WHICH, &o);
    if (rc == 0)
        *out = o.found;
    return rc;
}

int blitz_supervisor_count(blitz_actor_id supervisor, blitz_supervisor_counts *out)
{
    struct order o = {.id = NULL};
    int rc = ask(supervisor, DO_COUNT, &o);
    if (rc == 0)
        *out = o.counts;
    return rc;
}
