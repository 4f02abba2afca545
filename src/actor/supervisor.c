/*
 * supervisor.c - a supervisor is an actor whose state is a list of children.
 *
 * It traps exits and is linked to each child, so the end of a child is a message. The failure of the actor that has started it with
 * a link is one as well, and ends it. A restart is a spawn with the same state and
 * name. The children are in a list in the order of their starts; the strategies are walks over it.
 *
 * Ending a child: ask it to stop, wait for its end until its deadline, then kill it. The wait is inside the supervisor's handler,
 * and its mailbox waits with it. The exit message of a child that was ended in this way finds no running child with that id, and
 * is dropped.
 *
 * Restarts are limited: a ring holds the times of the last `intensity` restarts. If the oldest of them is within the period, the
 * next restart is one too many, and the supervisor gives up. That is one comparison, however large the limit is.
 *
 * When the supervisor itself ends, its `exit` ends the children in reverse order. If it was killed or the runtime ends, it does not
 * wait for a child that it has asked: it kills the child. If its `init` fails, it ends the children that it has started.
 *
 * A back-off pauses before a restart. The other children that the strategy names are ended at once. A message to the supervisor
 * itself ends the pause, and its number tells which children still wait for it: a child may have been started, ended or
 * forgotten by hand meanwhile. The pause doubles while a child fails within the period after the last one.
 *
 * A child with a `start` of the program may be of another node. It is linked and joined as every other one. Its restart may be refused, by a node
 * that has gone. So a refusal is a failure of the child and not of the supervisor: it is counted, and tried again after the pause.
 *
 * A management call is a call with everything in the message: the id of a child, or a block with a whole child. So its caller may
 * leave at any time. It must be able to: a child may ask its supervisor, which waits for the end of that child. Then the kill at
 * the child's deadline ends both waits. A child that ends itself in this way is answered first, and ends without a kill.
 *
 * Rejected: an order in the frame of the caller, which is shielded meanwhile. The kill does not end such a wait, and both sides
 * waited for ever.
 *
 * Rejected: a supervisor that was killed and leaves its children to their links. Its successor starts while they are on their way to
 * their end, and finds their names taken.
 *
 * I1  A child that runs has an id; its generation is 0 otherwise.
 * I2  A supervisor that ends has no child that lives.
 */
#include <errno.h>
#include <string.h>

#include "actor/actors.h"
#include "actor/supervised.h"
#include "blitz/binary.h"
#include "blitz/task.h"

enum { DEFAULT_INTENSITY = 5, INTENSITY_MAX = 1000, DOUBLINGS_MAX = 20 };

/* ---- children ---- */

static size_t child_bytes(const blitz_child_spec *c)
{
    return sizeof(struct bz_supervised) + (c->state != NULL ? c->behaviour->state_bytes : 0);
}

static bool child_is_bad(const blitz_child_spec *c)
{
    if ((c->behaviour != NULL) + (c->supervisor != NULL) + (c->start != NULL) != 1 ||
        (c->behaviour == NULL && c->state != NULL) || (c->start != NULL && c->name != NULL))
        return true;
    if (c->behaviour != NULL && c->behaviour->state_bytes > BLITZ_ACTOR_STATE_MAX)
        return true;
    return c->id == NULL || strlen(c->id) >= BLITZ_NAME_BYTES_MAX || c->restart > BLITZ_TEMPORARY ||
           (c->name != NULL && !bz_name_is_good(c->name));
}

/* Copy a child into child_bytes() of memory, with all that it points to but its behaviour. */
static void child_fill(struct bz_supervised *c, const blitz_child_spec *spec)
{
    *c = (struct bz_supervised){.spec = *spec};
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
}

/* A behaviour with a number may be one of a library, which goes: the child has the runtime's copy. Returns as blitz_behaviour_register(). */
static int child_know(struct bz_runtime *rt, struct bz_supervised *c)
{
    struct bz_version *v;
    if (c->spec.behaviour == NULL || c->spec.behaviour->version == 0)
        return 0;
    int err =
        bz_actors_make(rt) != NULL ? bz_version_know(rt, c->spec.behaviour, NULL, &v) : -ENOMEM;
    if (err == 0)
        c->spec.behaviour = &v->b;
    return err;
}

/* True if the child has a state for its start of a certain version. */
static bool child_keeps(const struct bz_supervised *c)
{
    return c->spec.state != NULL && c->spec.behaviour->version != 0;
}

static int child_new(struct bz_supervisor *s, const blitz_child_spec *spec,
                     struct bz_supervised **out)
{
    struct bz_supervised *c = bz_alloc(&s->alloc, child_bytes(spec), _Alignof(max_align_t));
    if (c == NULL)
        return -ENOMEM;
    child_fill(c, spec);
    int err = child_know(s->rt, c);
    if (err != 0) {
        bz_free(&s->alloc, c, child_bytes(spec));
        return err;
    }
    if (child_keeps(c))
        bz_version_keep(s->rt, c->spec.behaviour, true);
    bz_list_push_back(&s->children, &c->in);
    *out = c;
    return 0;
}

static void child_free(struct bz_supervisor *s, struct bz_supervised *c)
{
    bz_list_remove(&c->in);
    if (child_keeps(c))
        bz_version_keep(s->rt, c->spec.behaviour, false);
    bz_free(&s->alloc, c, child_bytes(&c->spec));
}

static struct bz_supervised *find(struct bz_supervisor *s, const char *id)
{
    for (struct bz_list *l = s->children.next; l != &s->children; l = l->next)
        if (strcmp(bz_supervised_of(l)->id, id) == 0)
            return bz_supervised_of(l);
    return NULL;
}

static struct bz_supervised *find_running(struct bz_supervisor *s, blitz_actor_id id)
{
    for (struct bz_list *l = s->children.prev; l != &s->children; l = l->prev)
        if (blitz_actor_id_equal(bz_supervised_of(l)->running, id))
            return bz_supervised_of(l);
    return NULL;
}

/* In the supervisor. */
static int child_start(struct bz_supervised *c)
{
    blitz_actor_opts opts = {.name = c->spec.name, .link = true};
    c->due = 0;
    if (c->spec.start != NULL)
        return c->spec.start(c->spec.start_ctx, &c->running);
    if (c->spec.supervisor != NULL)
        return blitz_supervisor_spawn(c->spec.supervisor, &opts, &c->running);
    const blitz_behaviour *b = c->spec.behaviour;
    return b->version != 0 ? bz_spawn_newest(b->name, b->version, c->spec.state, &opts, &c->running)
                           : blitz_actor_spawn(b, c->spec.state, &opts, &c->running);
}

/* Wait for the end of a child that was killed, also in a supervisor that was killed: I2. The join may lack memory. */
static void await_end(blitz_actor_id id)
{
    blitz_shield();
    if (blitz_actor_join(id, NULL, BLITZ_FOREVER) == -ENOMEM)
        while (blitz_actor_is_alive(id))
            blitz_yield();
    blitz_unshield();
}

/* End a child: ask, wait, kill. */
static void child_end(struct bz_supervised *c)
{
    blitz_duration patience = c->spec.shutdown != 0 ? c->spec.shutdown : 5 * BLITZ_S;
    /* A supervisor has the time that its own children have. */
    bool is_patient = c->spec.supervisor != NULL && c->spec.shutdown == 0;
    blitz_actor_id id = c->running;
    c->due = 0;
    c->running = (blitz_actor_id){0, 0, 0, 0};
    int rc = id.generation != 0 ? blitz_actor_stop(id) : -ESRCH;
    if (rc == 0) /* else it was not asked: no memory */
        rc = blitz_actor_join(id, NULL, is_patient ? BLITZ_FOREVER : blitz_after(patience));
    if (rc == 0 || rc == -ESRCH)
        return;
    (void)blitz_actor_kill(id);
    await_end(id);
}

/* End the children from the last down to, and without, `until`. */
static void end_down_to(struct bz_supervisor *s, const struct bz_list *until)
{
    for (struct bz_list *l = s->children.prev, *before; l != until; l = before) {
        before = l->prev;
        child_end(bz_supervised_of(l));
        if (bz_supervised_of(l)->spec.restart == BLITZ_TEMPORARY)
            child_free(s, bz_supervised_of(l));
    }
}

/* ---- restarts ---- */

static int give_up(const char *text)
{
    return blitz_actor_fail(-ELOOP, text);
}

/* Count a restart. False: it is one too many. */
static bool may_restart(struct bz_supervisor *s)
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

/* Start those children from `first` on that do not run. NULL, or the first one that does not start. */
static struct bz_supervised *start_from(struct bz_supervisor *s, struct bz_list *first)
{
    for (struct bz_list *l = first; l != &s->children; l = l->next)
        if (!bz_supervised_runs(bz_supervised_of(l)) && child_start(bz_supervised_of(l)) != 0)
            return bz_supervised_of(l);
    return NULL;
}

/* The first child that a failure of `c` concerns. */
static struct bz_list *first_of(struct bz_supervisor *s, struct bz_supervised *c)
{
    return s->strategy == BLITZ_ONE_FOR_ALL ? s->children.next : &c->in;
}

static bool is_alone(const struct bz_supervisor *s)
{
    return s->strategy != BLITZ_ONE_FOR_ALL && s->strategy != BLITZ_REST_FOR_ONE;
}

/* Start what a failure of `c` has ended, and `c`. NULL, or the one that does not start. */
static struct bz_supervised *start_again(struct bz_supervisor *s, struct bz_supervised *c)
{
    if (!is_alone(s))
        return start_from(s, first_of(s, c));
    return child_start(c) != 0 ? c : NULL;
}

/* The same after a pause: until then they wait for it. Those that are ended or started by hand meanwhile do not. */
static void wait_all(struct bz_supervisor *s, struct bz_supervised *c, uint64_t due)
{
    c->due = due;
    for (struct bz_list *l = first_of(s, c); l != &s->children && !is_alone(s); l = l->next)
        if (!bz_supervised_runs(bz_supervised_of(l)))
            bz_supervised_of(l)->due = due;
}

/* The pause before the next restart; 0: none. */
static blitz_duration pause_of(struct bz_supervisor *s)
{
    blitz_instant now = blitz_now();
    if (s->backoff == 0)
        return 0;
    if (now > s->last_due && now - s->last_due > s->period)
        s->doublings = 0;
    bool is_longest = s->backoff > s->backoff_max >> s->doublings; /* the product may overflow */
    blitz_duration pause = is_longest ? s->backoff_max : s->backoff << s->doublings;
    s->doublings += s->doublings < DOUBLINGS_MAX && !is_longest;
    s->last_due = now + pause;
    return pause;
}

/* End what the strategy names, and pause or start. *failed: the child that does not start, or NULL. */
static int restart_once(struct bz_supervisor *s, struct bz_supervised *c,
                        struct bz_supervised **failed)
{
    *failed = NULL;
    if (!may_restart(s))
        return give_up("too many restarts");
    if (s->strategy == BLITZ_ONE_FOR_ALL)
        end_down_to(s, &s->children);
    else if (s->strategy == BLITZ_REST_FOR_ONE)
        end_down_to(s, &c->in);
    blitz_duration pause = pause_of(s);
    if (pause == 0) {
        *failed = start_again(s, c);
        return 0;
    }
    uint64_t due = ++s->dues;
    wait_all(s, c, due);
    int err = blitz_actor_send_after(blitz_actor_self(), BZ_DO_AGAIN, &due, sizeof due,
                                     blitz_after(pause), NULL);
    return err != 0 ? give_up("no memory for a restart") : 0;
}

/* A `start` that refuses is a failure of its child. */
static int restart(struct bz_supervisor *s, struct bz_supervised *c)
{
    int rc;
    do
        rc = restart_once(s, c, &c);
    while (rc == 0 && c != NULL && c->spec.start != NULL);
    return rc == 0 && c != NULL ? give_up("a child does not start") : rc;
}

/* A pause is over: start those that still wait for it. */
BLITZ_HANDLER(on_again, struct bz_supervisor *, uint64_t)
{
    struct bz_supervisor *s = *state;
    (void)m;
    for (struct bz_list *l = s->children.next; l != &s->children; l = l->next) {
        struct bz_supervised *c = bz_supervised_of(l);
        if (c->due != *data || child_start(c) == 0)
            continue;
        return c->spec.start != NULL ? restart(s, c) : give_up("a child does not start");
    }
    return 0;
}

static bool is_failure(const blitz_exit_reason *why)
{
    return why->kind != BLITZ_EXIT_NORMAL && why->kind != BLITZ_EXIT_SHUTDOWN;
}

BLITZ_HANDLER(on_exit_signal, struct bz_supervisor *, blitz_down)
{
    struct bz_supervisor *s = *state;
    struct bz_supervised *c = find_running(s, data->who);
    (void)m;
    if (c == NULL && blitz_actor_id_equal(data->who, s->parent))
        return data->reason.kind != BLITZ_EXIT_NORMAL ? blitz_actor_exit(&data->reason) : 0;
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

/* The message has a block: a child. */
BLITZ_HANDLER(on_start, struct bz_supervisor *, void)
{
    struct bz_supervisor *s = *state;
    (void)data;
    if (m->block == NULL)
        return answer(m, -EINVAL); /* not from blitz_supervisor_start() */
    const blitz_child_spec *spec = &((struct bz_supervised *)m->block)->spec;
    if (s->strategy != BLITZ_DYNAMIC && find(s, spec->id) != NULL)
        return answer(m, -EEXIST);
    struct bz_supervised *c = NULL;
    int err = child_new(s, spec, &c);
    if (err == 0)
        err = child_start(c);
    if (err == 0)
        return blitz_actor_reply(m->reply, &c->running, sizeof c->running);
    if (c != NULL)
        child_free(s, c);
    return answer(m, err);
}

BLITZ_HANDLER(on_terminate, struct bz_supervisor *, struct bz_named)
{
    struct bz_supervisor *s = *state;
    struct bz_supervised *c = find(s, data->id);
    if (c == NULL)
        return answer(m, -ENOENT);
    bool is_itself = bz_supervised_runs(c) && blitz_actor_id_equal(m->from, c->running);
    if (is_itself)
        (void)answer(m, 0); /* it ends when its handler returns */
    child_end(c);
    if (c->spec.restart == BLITZ_TEMPORARY || s->strategy == BLITZ_DYNAMIC)
        child_free(s, c);
    return is_itself ? 0 : answer(m, 0);
}

BLITZ_HANDLER(on_restart, struct bz_supervisor *, struct bz_named)
{
    struct bz_supervised *c = find(*state, data->id);
    if (c == NULL)
        return answer(m, -ENOENT);
    return answer(m, bz_supervised_runs(c) ? -EBUSY : child_start(c));
}

BLITZ_HANDLER(on_forget, struct bz_supervisor *, struct bz_named)
{
    struct bz_supervised *c = find(*state, data->id);
    if (c == NULL || bz_supervised_runs(c))
        return answer(m, c == NULL ? -ENOENT : -EBUSY);
    child_free(*state, c);
    return answer(m, 0);
}

BLITZ_HANDLER(on_which, struct bz_supervisor *, struct bz_named)
{
    struct bz_supervised *c = find(*state, data->id);
    return c != NULL ? blitz_actor_reply(m->reply, &c->running, sizeof c->running)
                     : answer(m, -ENOENT);
}

BLITZ_HANDLER(on_count, struct bz_supervisor *, void)
{
    struct bz_supervisor *s = *state;
    blitz_supervisor_counts counts = {.restarts = s->restarts};
    (void)data;
    for (struct bz_list *l = s->children.next; l != &s->children; l = l->next) {
        counts.children++;
        counts.active += bz_supervised_runs(bz_supervised_of(l));
    }
    return blitz_actor_reply(m->reply, &counts, sizeof counts);
}

BLITZ_HANDLER(on_each, struct bz_supervisor *, struct bz_each *)
{
    return answer(m, bz_supervisor_show_each(*state, *data));
}

BLITZ_HANDLER(on_print, struct bz_supervisor *, struct bz_printing *)
{
    return answer(m, bz_supervisor_show(*state, *data));
}

/* ---- its life ---- */

static void supervisor_free(struct bz_supervisor *s)
{
    blitz_allocator from = s->alloc;
    while (!bz_list_is_empty(&s->children))
        child_free(s, bz_supervised_of(s->children.next));
    bz_free(&from, s, sizeof *s + s->intensity * sizeof *s->ring);
}

static int supervisor_init(void *state)
{
    struct bz_supervisor *s = *(struct bz_supervisor **)state;
    blitz_actor_trap_exit(true);
    if (start_from(s, s->children.next) == NULL)
        return 0;
    end_down_to(s, &s->children); /* I2: `exit` is not called */
    return give_up("a child does not start");
}

static void supervisor_exit(void *state, const blitz_exit_reason *why)
{
    struct bz_supervisor *s = *(struct bz_supervisor **)state;
    (void)why;
    end_down_to(s, &s->children);
}

static void supervisor_drop(void *state, void *ctx)
{
    (void)ctx;
    supervisor_free(*(struct bz_supervisor **)state);
}

static const blitz_handler handlers[] = {
    BLITZ_ON_EMPTY(BZ_DO_START, on_start),
    BLITZ_ON(BZ_DO_TERMINATE, struct bz_named, on_terminate),
    BLITZ_ON(BZ_DO_RESTART, struct bz_named, on_restart),
    BLITZ_ON(BZ_DO_FORGET, struct bz_named, on_forget),
    BLITZ_ON(BZ_DO_WHICH, struct bz_named, on_which),
    BLITZ_ON_EMPTY(BZ_DO_COUNT, on_count),
    BLITZ_ON(BZ_DO_PRINT, struct bz_printing *, on_print),
    BLITZ_ON(BZ_DO_EACH, struct bz_each *, on_each),
    BLITZ_ON(BZ_DO_AGAIN, uint64_t, on_again),
    BLITZ_ON(BLITZ_MSG_EXIT, blitz_down, on_exit_signal),
};

static const blitz_behaviour supervising = {.name = "supervisor",
                                            .state_bytes = sizeof(struct bz_supervisor *),
                                            .init = supervisor_init,
                                            .handlers = handlers,
                                            .handler_count = BZ_ARRAY_LEN(handlers),
                                            .exit = supervisor_exit,
                                            .drop = supervisor_drop};

static int add_children(struct bz_supervisor *s, const blitz_supervisor_plan *config)
{
    for (size_t i = 0; i < config->child_count; i++) {
        const blitz_child_spec *c = &config->children[i];
        if (child_is_bad(c) || (s->strategy != BLITZ_DYNAMIC && find(s, c->id) != NULL))
            return -EINVAL;
        struct bz_supervised *made;
        int err = child_new(s, c, &made);
        if (err != 0)
            return err;
    }
    return 0;
}

int blitz_supervisor_spawn(const blitz_supervisor_plan *config, const blitz_actor_opts *opts,
                           blitz_actor_id *out)
{
    static const blitz_actor_id none;
    struct bz_machine *m = bz_machine_self();
    struct bz_runtime *rt = opts != NULL && opts->runtime != NULL
                                ? (struct bz_runtime *)opts->runtime
                            : m != NULL ? m->rt
                                        : NULL;
    unsigned intensity = config->intensity != 0 ? config->intensity : DEFAULT_INTENSITY;
    if (rt == NULL || intensity > INTENSITY_MAX || config->strategy > BLITZ_DYNAMIC)
        return -EINVAL;
    struct bz_supervisor *s = bz_alloc(&rt->alloc, sizeof *s + intensity * sizeof *s->ring,
                                       _Alignof(struct bz_supervisor));
    if (s == NULL)
        return -ENOMEM;
    *s = (struct bz_supervisor){.alloc = rt->alloc,
                                .rt = rt,
                                .parent = opts != NULL && opts->link ? blitz_actor_self() : none,
                                .strategy = config->strategy,
                                .intensity = intensity,
                                .period = config->period != 0 ? config->period : 10 * BLITZ_S,
                                .backoff = config->backoff,
                                .backoff_max =
                                    config->backoff_max != 0 ? config->backoff_max : 30 * BLITZ_S};
    bz_list_init(&s->children);
    int err = add_children(s, config);
    if (err == 0)
        err = blitz_actor_spawn(&supervising, &s, opts, out);
    if (err != 0)
        supervisor_free(s);
    return err;
}

/* ---- the caller ---- */

/* The result of a call whose reply has `size` bytes. */
static int result_of(int rc, size_t size)
{
    return rc == (int)size ? 0 : rc < 0 ? rc : -EINVAL; /* the other is no supervisor */
}

/* Order something about a child. Its id is in the message. */
static int order(blitz_actor_id supervisor, enum bz_supervisor_does what, const char *id, void *out,
                 size_t out_size)
{
    struct bz_named named = {""};
    size_t length = strnlen(id, sizeof named.id);
    if (length == sizeof named.id)
        return -ENOENT; /* no child has an id of that length */
    memcpy(named.id, id, length);
    return result_of(
        blitz_actor_call(supervisor, what, &named, sizeof named, out, out_size, BLITZ_FOREVER),
        out_size);
}

/* The same by a caller elsewhere: a message must not keep a pointer into a library. */
static int child_know_there(blitz_actor_id supervisor, struct bz_supervised *c)
{
    if (c->spec.behaviour == NULL || c->spec.behaviour->version == 0)
        return 0;
    struct bz_runtime *visited = bz_actor_visit(supervisor);
    struct bz_runtime *rt = bz_actor_runtime(supervisor);
    int err = rt != NULL ? child_know(rt, c) : -ESRCH;
    bz_actor_leave(visited);
    return err;
}

int blitz_supervisor_start(blitz_actor_id supervisor, const blitz_child_spec *child,
                           blitz_actor_id *out)
{
    blitz_actor_id found;
    if (child_is_bad(child))
        return -EINVAL;
    struct bz_supervised *c = blitz_msg_alloc(child_bytes(child));
    if (c == NULL)
        return -ENOMEM;
    child_fill(c, child);
    int rc = child_know_there(supervisor, c);
    if (rc != 0) {
        blitz_msg_drop(c);
        return rc;
    }
    rc = blitz_actor_call_with(supervisor, BZ_DO_START, NULL, 0,
                               &(blitz_cargo){.move = BLITZ_MOVE(c)}, &found, sizeof found, NULL,
                               BLITZ_FOREVER);
    blitz_msg_drop(c); /* it was not sent */
    rc = result_of(rc, sizeof found);
    if (rc == 0 && out != NULL)
        *out = found;
    return rc;
}

int blitz_supervisor_terminate(blitz_actor_id supervisor, const char *id)
{
    return order(supervisor, BZ_DO_TERMINATE, id, NULL, 0);
}

int blitz_supervisor_restart(blitz_actor_id supervisor, const char *id)
{
    return order(supervisor, BZ_DO_RESTART, id, NULL, 0);
}

int blitz_supervisor_forget(blitz_actor_id supervisor, const char *id)
{
    return order(supervisor, BZ_DO_FORGET, id, NULL, 0);
}

int blitz_supervisor_which(blitz_actor_id supervisor, const char *id, blitz_actor_id *out)
{
    blitz_actor_id found;
    int rc = order(supervisor, BZ_DO_WHICH, id, &found, sizeof found);
    if (rc == 0)
        *out = found;
    return rc;
}

int blitz_supervisor_count(blitz_actor_id supervisor, blitz_supervisor_counts *out)
{
    blitz_supervisor_counts counts;
    int rc = result_of(
        blitz_actor_call(supervisor, BZ_DO_COUNT, NULL, 0, &counts, sizeof counts, BLITZ_FOREVER),
        sizeof counts);
    if (rc == 0)
        *out = counts;
    return rc;
}
