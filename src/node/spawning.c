/*
 * spawning.c - actors that peers start, and processes that we start there.
 *
 *     SPAWN_REQUEST ReqId, From, Leader, {Module, Function, Arity}, Options; [Argument, ...]
 *                             <-  SPAWN_REPLY ReqId, To, Flags, Pid     or an atom that says why not
 *
 * A request finds an entry of blitz_node_opts.entries by module, function and arguments, and nothing else. The arguments are the parts of
 * the actor's state. The relay starts the actor (relations.c), so that its first relations and the reply are in order. Options other
 * than link and monitor are hints for Erlang's memory and scheduler, and are skipped.
 *
 * Our request is a call (calling.c): ReqId names a ticket, and a lost connection ends it. ReqId is the reference of the monitor as well. The
 * reader makes the relations before it answers the ticket, because the end of the process may be the next frame.
 *
 * The caller may leave before the answer. A linked process would then have no one above it, so it gets an exit signal, as in Erlang, and the
 * peer's monitor is undone. The ticket decides which of the two it is. The reader promises the answer before it makes the relations. A caller
 * whose time is over waits for an answer that is promised. So it has the relations only if it has the process.
 */
#include <errno.h>
#include <string.h>

#include "actor/relating.h"
#include "node/relations.h"
#include "term/wire.h"

/* ---- requests of peers ---- */

static const blitz_node_entry *find_entry(const blitz_node *n, blitz_term function)
{
    blitz_term_in in = blitz_term_in_of(function);
    blitz_term_atom module, name;
    if (blitz_term_get_this_tuple(&in, 3) != 0 || blitz_term_get_atom(&in, &module) != 0 ||
        blitz_term_get_atom(&in, &name) != 0)
        return NULL;
    for (size_t i = 0; i < n->opts.entry_count; i++) {
        const blitz_node_entry *e = &n->opts.entries[i];
        if (blitz_term_atom_is(module, e->module) && blitz_term_atom_is(name, e->function))
            return e;
    }
    return NULL;
}

/* A list of bytes is encoded as a string. */
static void put_bytes(blitz_term_out *out, blitz_term bytes)
{
    blitz_term_put_tuple(out, (uint32_t)bytes.bytes);
    for (size_t i = 0; i < bytes.bytes; i++)
        blitz_term_put_int(out, bytes.data[i]);
}

/* Write the list of arguments as a tuple. 0, -EINVAL, -ENOSPC. */
static int put_as_tuple(blitz_term_out *out, blitz_term args)
{
    blitz_term_in in = blitz_term_in_of(args);
    blitz_term_item item;
    blitz_term part;
    if (blitz_term_next(&in, &item) != 0)
        return -EINVAL;
    switch (item.kind) {
    case BLITZ_TERM_IS_NIL:
        blitz_term_put_tuple(out, 0);
        return 0;
    case BLITZ_TERM_IS_STRING:
        put_bytes(out, item.as.binary);
        return 0;
    case BLITZ_TERM_IS_LIST:
        blitz_term_put_tuple(out, item.as.count);
        for (uint32_t i = 0; i < item.as.count; i++) {
            if (blitz_term_take(&in, &part) != 0)
                return -EINVAL;
            blitz_term_put_term(out, part);
        }
        return blitz_term_get_nil(&in) == 0 ? 0 : -EINVAL;
    default:
        return -EINVAL;
    }
}

/* Arguments are small: a state has at most as many bytes. Larger ones are refused. */
enum { ARGS_MAX = 4096 };

/* Read the state. 0, -EINVAL. */
static int get_state(blitz_node *n, const blitz_node_entry *e, blitz_term args, void *state)
{
    unsigned char buf[ARGS_MAX];
    blitz_term_out out;
    size_t bytes;
    blitz_term_env env = bz_node_env_known(n);
    blitz_term_out_init(&out, buf, sizeof buf);
    if (put_as_tuple(&out, args) != 0 || blitz_term_out_end(&out, &bytes) != 0)
        return -EINVAL;
    blitz_term_in in = blitz_term_in_of((blitz_term){buf, bytes});
    if (e->args == NULL)
        return blitz_term_get_this_tuple(&in, 0) == 0 ? 0 : -EINVAL;
    return blitz_term_get_struct(&in, e->args, state, &env) == 0 ? 0 : -EINVAL;
}

/* Options are atoms and tuples. */
static bool has_option(blitz_term options, const char *name)
{
    blitz_term_in in = blitz_term_in_of(options);
    uint32_t count, arity;
    blitz_term part;
    if (blitz_term_get_list(&in, &count) != 0)
        return false;
    for (uint32_t i = 0; i < count && blitz_term_take(&in, &part) == 0; i++) {
        blitz_term_in one = blitz_term_in_of(part), head = one;
        if (blitz_term_get_tuple(&head, &arity) == 0 && arity > 0)
            one = head;
        if (blitz_term_get_this_atom(&one, name) == 0)
            return true;
    }
    return false;
}

static bool is_of_peer(const struct bz_session *s, const blitz_term_pid *pid)
{
    const struct bz_peer *p = s->peer;
    return pid->node.bytes == p->bytes && memcmp(pid->node.text, p->name, p->bytes) == 0;
}

int bz_spawning_hear(struct bz_session *s, const struct bz_control *c, blitz_term args)
{
    blitz_node *n = s->node;
    struct bz_their_spawn spawn = {.links = has_option(c->options, "link"),
                                   .watches = has_option(c->options, "monitor")};
    if (!is_of_peer(s, &c->from))
        return -EPROTO;
    const blitz_node_entry *e = find_entry(n, c->function);
    if (e == NULL)
        return bz_relations_refuse_spawn(s, c, "undef");
    spawn.behaviour = e->behaviour;
    if (e->args != NULL) {
        spawn.state = bz_alloc(&n->alloc, e->behaviour->state_bytes, _Alignof(max_align_t));
        if (spawn.state == NULL)
            return bz_relations_refuse_spawn(s, c, "system_limit");
    }
    if (get_state(n, e, args, spawn.state) == 0)
        return bz_relations_spawn(s, c, &spawn);
    bz_free(&n->alloc, spawn.state, e->behaviour->state_bytes);
    return bz_relations_refuse_spawn(s, c, "badarg");
}

bool bz_spawning_is_bad(const blitz_node_opts *opts)
{
    for (size_t i = 0; i < opts->entry_count; i++) {
        const blitz_node_entry *e = &opts->entries[i];
        if (e->module == NULL || e->function == NULL || e->behaviour == NULL ||
            (e->args != NULL && e->args->size != e->behaviour->state_bytes))
            return true;
    }
    return false;
}

/* ---- our requests ---- */

struct spawning {
    blitz_node *n;
    const char *module, *function;
    blitz_term args; /* data NULL: [] */
    uint32_t arity;
    bool links, watches;
    blitz_term_ref ref;
    blitz_term_pid me, leader;
};

/* The number of arguments. -EINVAL: they are no list. */
static int count_args(struct spawning *y)
{
    blitz_term_in in = blitz_term_in_of(y->args);
    blitz_term_item item;
    if (y->args.data == NULL)
        return 0;
    if (blitz_term_next(&in, &item) != 0)
        return -EINVAL;
    if (item.kind == BLITZ_TERM_IS_LIST)
        y->arity = item.as.count;
    else if (item.kind == BLITZ_TERM_IS_STRING)
        y->arity = (uint32_t)item.as.binary.bytes;
    else if (item.kind != BLITZ_TERM_IS_NIL)
        return -EINVAL;
    return 0;
}

static int fill_request(blitz_term_out *out, void *ctx)
{
    const struct spawning *y = ctx;
    uint32_t options = (uint32_t)y->links + y->watches;
    blitz_term_put_version(out);
    blitz_term_put_tuple(out, 6);
    blitz_term_put_int(out, BZ_CONTROL_SPAWN_REQUEST);
    blitz_term_put_ref(out, &y->ref);
    blitz_term_put_pid(out, &y->me);
    blitz_term_put_pid(out, &y->leader);
    blitz_term_put_tuple(out, 3);
    blitz_term_put_atom(out, y->module);
    blitz_term_put_atom(out, y->function);
    blitz_term_put_int(out, y->arity);
    blitz_term_put_list(out, options);
    if (y->links)
        blitz_term_put_atom(out, "link");
    if (y->watches)
        blitz_term_put_atom(out, "monitor");
    if (options > 0)
        blitz_term_put_nil(out);
    blitz_term_put_version(out);
    if (y->args.data != NULL)
        blitz_term_put_term(out, y->args);
    else
        blitz_term_put_nil(out);
    return 0;
}

/* The answer: an id, or the error that is in it. */
static int take_id(const struct bz_ticket *t, blitz_actor_id *out)
{
    if (t->result < 0)
        return t->result;
    memcpy(out, t->data, sizeof *out);
    return 0;
}

/* Send the request of an open ticket and wait for the reply. */
static int request(struct spawning *y, struct bz_far_call *c, blitz_actor_id me,
                   blitz_actor_id *out, blitz_deadline until)
{
    struct bz_frame *f;
    int rc = blitz_node_pid_of(y->n, y->n->relay, &y->leader);
    y->me = y->leader;
    if (rc == 0 && me.generation != 0 && me.creation == y->n->rt->creation)
        rc = blitz_node_pid_of(y->n, me, &y->me);
    if (rc == 0)
        rc = bz_frame_make(y->n, fill_request, y, true, &f);
    if (rc != 0)
        return rc;
    f->call = &c->in;
    rc = bz_peer_send_now(c->peer, f);
    if (rc != 0)
        return rc;
    rc = bz_ticket_wait(c->ticket, until);
    if (rc != 0 && !bz_ticket_give_up(c->ticket)) {
        blitz_shield(); /* a promised answer comes soon */
        rc = bz_ticket_wait(c->ticket, BLITZ_FOREVER);
        blitz_unshield();
    }
    return rc == 0 ? take_id(c->ticket, out) : rc;
}

/* The caller's half of the monitor, before the process exists. */
static int watch(const struct bz_relating *me, const struct bz_peer *p, uint64_t ref)
{
    struct bz_runtime *rt = p->node->rt; /* the caller's, too */
    struct bz_signal *s =
        bz_signal_new_far(rt, BZ_SIGNAL_FAR_WATCHES, (blitz_actor_id){0, 1, p->number, 0});
    if (s == NULL)
        return -ENOMEM;
    s->ref = ref;
    if (bz_relating_add(me, s))
        return 0;
    bz_letter_free(rt, s);
    return -ECANCELED;
}

static void unwatch(const struct bz_relating *me, struct bz_runtime *rt, uint64_t ref)
{
    static const blitz_actor_id any;
    struct bz_signal *s = bz_relating_take(me, BZ_SIGNAL_FAR_WATCHES, any, ref);
    if (s != NULL)
        bz_letter_free(rt, s);
}

/* With an open ticket. `me` is the caller if it wants a relation. */
static int spawn_as(struct spawning *y, struct bz_far_call *c, const struct bz_relating *me,
                    const blitz_node_spawn_opts *opts, blitz_actor_id *out, blitz_deadline until)
{
    uint64_t ref, *monitor = opts->monitor; /* NULL: no monitor */
    bz_calls_ref(y->n, bz_ticket_token(c->ticket), &y->ref);
    (void)bz_relations_ref(y->n, &y->ref, &ref);
    int rc = monitor != NULL ? watch(me, c->peer, ref) : 0;
    if (rc != 0)
        return rc;
    rc = request(y, c, me->a != NULL ? bz_relating_id(me) : blitz_actor_self(), out, until);
    if (monitor == NULL)
        return rc;
    if (rc != 0) {
        unwatch(me, y->n->rt, ref);
        return rc;
    }
    bz_relating_aim(me, ref, *out);
    *monitor = ref;
    return 0;
}

/* It takes the reference. */
static int spawn(struct spawning *y, struct bz_peer *p, const struct bz_relating *me,
                 const blitz_node_spawn_opts *opts, blitz_actor_id *out, blitz_deadline until)
{
    struct bz_far_call c = {.peer = p};
    int rc = -ESRCH;
    bz_list_init(&c.in);
    if (bz_node_enter(y->n)) {
        c.ticket = bz_ticket_open_far(y->n->rt);
        bz_node_leave(y->n);
        rc = c.ticket != NULL ? spawn_as(y, &c, me, opts, out, until) : -ENOMEM;
        bz_peer_lock(p);
        bz_list_remove(&c.in);
        bz_peer_unlock(p);
        if (c.ticket != NULL)
            bz_ticket_close(c.ticket);
    }
    bz_peer_unref(p);
    return rc;
}

int blitz_node_spawn(blitz_node *n, const char *on_node, const char *module, const char *function,
                     blitz_term args, const blitz_node_spawn_opts *opts, blitz_actor_id *out,
                     blitz_deadline until)
{
    static const blitz_node_spawn_opts none;
    const blitz_node_spawn_opts *o = opts != NULL ? opts : &none;
    struct spawning y = {.n = n, .module = module, .function = function, .args = args};
    struct bz_relating me = {NULL, 0, false};
    struct bz_peer *p;
    y.links = o->link;
    y.watches = o->monitor != NULL;
    int rc = count_args(&y);
    if (rc == 0)
        rc = bz_peer_named(n, on_node, &p);
    if (rc != 0)
        return rc;
    if (y.links || y.watches)
        rc = bz_relating_begin(&me);
    if (rc == 0 && me.a != NULL && me.a->task.rt != n->rt) {
        bz_relating_end(&me);
        rc = -EINVAL;
    }
    if (rc != 0) {
        bz_peer_unref(p);
        return rc;
    }
    rc = spawn(&y, p, &me, o, out, until);
    bz_relating_end(&me);
    return rc;
}

int blitz_node_child_start(void *child, blitz_actor_id *out)
{
    static const blitz_node_spawn_opts linked = {.link = true};
    const blitz_node_child *c = child;
    return blitz_node_spawn(c->node, c->on_node, c->module, c->function, c->args, &linked, out,
                            blitz_after(c->within != 0 ? c->within : 5 * BLITZ_S));
}

/* ---- replies ---- */

static int error_of(blitz_term error)
{
    static const struct {
        const char *atom;
        int error;
    } errors[] = {{"undef", -ENOENT}, {"badarg", -EINVAL}, {"system_limit", -EAGAIN}};
    blitz_term_in in = blitz_term_in_of(error);
    for (size_t i = 0; i < BZ_ARRAY_LEN(errors); i++)
        if (blitz_term_get_this_atom(&in, errors[i].atom) == 0)
            return errors[i].error;
    return -EPERM;
}

int bz_spawning_hear_reply(struct bz_session *s, const struct bz_control *c)
{
    blitz_node *n = s->node;
    blitz_term_in in = blitz_term_in_of(c->reason);
    struct bz_spawned y = {.links = (c->id & 1) != 0};
    blitz_reply_to token;
    blitz_term_pid pid;
    if (!bz_calls_token(n, &c->ref, &token))
        return 0; /* no request of ours */
    if (blitz_term_get_pid(&in, &pid) != 0) {
        bz_calls_fail(n, token, error_of(c->reason));
        return 0;
    }
    if (!is_of_peer(s, &pid) || bz_node_id_of(n, &pid, false, &y.far) != 0)
        return -EPROTO;
    if ((c->id & 2) != 0)
        (void)bz_relations_ref(n, &c->ref, &y.ref);
    if (bz_node_id_of(n, &c->to, false, &y.ours) != 0 || y.ours.node != 0)
        y.ours = (blitz_actor_id){0, 0, 0, 0}; /* no actor of ours */
    if (!bz_ticket_promise(n->rt, token)) {
        bz_relations_abandon(s, &y);
        return 0;
    }
    int rc = y.ours.generation != 0 ? bz_relations_spawned(s, &y) : 0;
    bz_ticket_answer(n->rt, token, rc == 0 ? (int)sizeof y.far : rc, &y.far, sizeof y.far);
    return rc;
}
