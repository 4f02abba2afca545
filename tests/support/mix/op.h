/*
 * op.h - an operation that may wait, in all of its forms.
 *
 * A verb is an operation of the public API: as a call, as a future, or as both. `of` and the other
 * fields of the op are its arguments. After a future form, `result` converts the results of the
 * wait and the future into the result of the equivalent call.
 */
#ifndef MIX_OP_H
#define MIX_OP_H

#include "harness.h"

#include "blitz.h"

enum { MIX_CASES = 16, MIX_CROWD = 14, MIX_VALUES = 5, MIX_DATAGRAMS = 4, MIX_BYTES = 600 };

/* A value sent through channels. Small channels carry the first word alone. */
struct mix_value {
    uint64_t id;
    uint64_t twin; /* ~id */
    uint64_t id_again;
};

struct mix_op;

struct mix_verb {
    const char *name;
    int (*call)(struct mix_op *op, blitz_deadline until);
    blitz_future *(*future)(struct mix_op *op);
    int (*result)(struct mix_op *op, int rc);
    bool is_unsure; /* a cancelled future does not say whether it was done: no deadlines */
    bool is_needed; /* its future must be polled: a race or a select may end before it asks */
};

/* A future around another that counts the polls, and knows whether it is ready. */
struct mix_counted {
    blitz_future future;
    blitz_future *inner;
    struct mix_party *party;
    unsigned polls;
    bool is_ready;
};

struct mix_op {
    const struct mix_verb *verb;
    void *of;
    void *with;        /* a mutex; a receiver; a version; a token */
    uint64_t n;        /* permits; values; what was missed; nanoseconds */
    size_t moved;      /* by send_many and recv_many */
    bool is_held;      /* condition: the mutex belongs to this party afterwards */
    bool is_biased;    /* select */
    bool is_statement; /* select: by the statement, if it is a call */
    bool is_now;       /* select: only if it takes no waiting */
    unsigned count;    /* cases, or futures of a crowd */
    void *pointer;     /* of once and promise */
    blitz_permit permit;
    blitz_permits permits;
    struct mix_value value[MIX_CASES];
    blitz_select_case cases[MIX_CASES];
    blitz_joined joined; /* by a join set */
    blitz_addr addr;     /* of a datagram */
    blitz_datagram datagram[MIX_DATAGRAMS];
    unsigned char bytes[MIX_BYTES]; /* of a stream */
    blitz_piece piece[2];
    blitz_fd fd[4];
    char text[2][64]; /* names */
    blitz_file_facts facts;
    blitz_fs_write_opts write;
    blitz_dir_entry entry;
    blitz_walk_entry walked;
    blitz_fs_event event;
    int (*fn)(void *arg); /* of a blocking call; its argument is op->with */
    void (*drop)(void *arg, void *ctx);
    unsigned polled;        /* so often, in the future form */
    int waited;             /* the result of the wait, in the future form */
    blitz_sleep_future nap; /* a case of a select */
    union {
        blitz_chan_future chan;
        blitz_select_future select;
        blitz_sync_future sync;
        blitz_once_future once;
        blitz_oneshot_future oneshot;
        blitz_broadcast_future broadcast;
        blitz_watch_future watch;
        blitz_closed_future closed;
        blitz_watch_wait_for_future wait_for;
        blitz_signal_future signal;
        blitz_process_future process;
        blitz_promise_future promise;
        blitz_join_future join;
        blitz_join_set_future set;
        blitz_token_future token;
        blitz_blocking_future blocking;
        blitz_offload_future offload;
        blitz_sleep_future sleep;
        blitz_net_future net;
        blitz_message_future message;
        blitz_pieces_future pieces;
        blitz_connect_first_future first;
        blitz_rate_future rate;
        blitz_object_pool_future pool;
        blitz_delay_queue_future delay;
        blitz_fs_future fs;
        blitz_actor_send_future actor_send;
        blitz_actor_call_future actor_call;
        blitz_actors_wait_quiet_future quiet;
    } f;
    blitz_sync_future crowd[MIX_CROWD];
    blitz_child child[MIX_CROWD];
    blitz_all all;
};

/* The future that a party waits for. */
struct mix_wait {
    struct mix_counted counted;
    blitz_sleep_future timer;
    blitz_timeout timeout;
    blitz_race race;
    blitz_child child[2];
    blitz_select_case cases[2];
    blitz_select_future select;
    blitz_map_future map;
    blitz_then_future then;
    blitz_defer_future defer;
    blitz_ready_future ready;
    blitz_sleep_future before; /* the first of a then */
    void *box;
    unsigned calls; /* of the function of a map, a then or a defer */
    bool is_second; /* the counted future is the second of a then */
    int form;
    blitz_future *top;
    blitz_deadline until; /* for the party that awaits `top` */
    int outcome;
};

/* ---- channels ---- */

static int mix_send_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_chan_send(op->of, op->value, until);
}
static blitz_future *mix_send_future(struct mix_op *op)
{
    blitz_chan_send_future_init(&op->f.chan, op->of, op->value);
    return &op->f.chan.future;
}
/* A rendezvous may be over although the wait was cancelled: then the result is 0. */
static int mix_chan_result(struct mix_op *op, int rc)
{
    return rc == 0 || op->f.chan.result == 0 ? op->f.chan.result : rc;
}
static const struct mix_verb mix_send = {"send", mix_send_call, mix_send_future, mix_chan_result, 0,
                                         0};

static int mix_recv_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_chan_recv(op->of, op->value, until);
}
static blitz_future *mix_recv_future(struct mix_op *op)
{
    blitz_chan_recv_future_init(&op->f.chan, op->of, op->value);
    return &op->f.chan.future;
}
static const struct mix_verb mix_recv = {"recv", mix_recv_call, mix_recv_future, mix_chan_result, 0,
                                         0};

static int mix_reserve_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_chan_reserve(op->of, &op->permit, until);
}
static blitz_future *mix_reserve_future(struct mix_op *op)
{
    blitz_chan_reserve_future_init(&op->f.chan, op->of, &op->permit);
    return &op->f.chan.future;
}
static const struct mix_verb mix_reserve = {
    "reserve", mix_reserve_call, mix_reserve_future, mix_chan_result, 0, 0};

/* op->count slots. */
static int mix_reserve_many_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_chan_reserve_many(op->of, op->count, &op->permits, until);
}
static blitz_future *mix_reserve_many_future(struct mix_op *op)
{
    blitz_chan_reserve_many_future_init(&op->f.chan, op->of, op->count, &op->permits);
    return &op->f.chan.future;
}
static const struct mix_verb mix_reserve_many = {
    "reserve many", mix_reserve_many_call, mix_reserve_many_future, mix_chan_result, 0, 0};

/* The values lie as close as the channel wants them: op->n is their size. */
static int mix_send_many_call(struct mix_op *op, blitz_deadline until)
{
    char packed[sizeof op->value];
    for (unsigned i = 0; i < op->count; i++)
        memcpy(packed + i * op->n, &op->value[i], op->n);
    return blitz_chan_send_many(op->of, packed, op->count, &op->moved, until);
}
static const struct mix_verb mix_send_many = {"send_many", mix_send_many_call, NULL, NULL, 0, 0};

static int mix_recv_many_call(struct mix_op *op, blitz_deadline until)
{
    char packed[sizeof op->value];
    int rc = blitz_chan_recv_many(op->of, packed, op->count, &op->moved, until);
    for (unsigned i = 0; i < op->moved; i++)
        memcpy(&op->value[i], packed + i * op->n, op->n);
    return rc;
}
static const struct mix_verb mix_recv_many = {"recv_many", mix_recv_many_call, NULL, NULL, 0, 0};

/* ---- select: rc is the case, or an error ---- */

#define MIX_IS(i, kind_) (op->cases[i].kind == BLITZ_SELECT_##kind_)
#define MIX_SENDS(i) (MIX_IS(i, SEND) ? op->cases[i].of : NULL)
#define MIX_RECVS(i) (MIX_IS(i, RECV) ? op->cases[i].of : NULL)
/* clang-format off */
#define MIX_CHAN_SLOT(i)                                                                      \
    blitz_on_send((blitz_chan *)MIX_SENDS(i), &op->value[i], &op->cases[i].error) { rc = i; } \
    blitz_on_recv((blitz_chan *)MIX_RECVS(i), &op->value[i], &op->cases[i].error) { rc = i; }
#define MIX_ANY_SLOT(i)                                                             \
    MIX_CHAN_SLOT(i)                                                                \
    blitz_on_time(MIX_IS(i, TIME) ? op->cases[i].until : BLITZ_FOREVER) { rc = i; } \
    blitz_on_future(MIX_IS(i, FUTURE) ? (blitz_future *)op->cases[i].of : blitz_pending_future()) { rc = i; }
#define MIX_STATEMENT(slot)                     \
    blitz_select(until) {                       \
        slot(0) slot(1) slot(2)                 \
        blitz_on_timeout { rc = -ETIMEDOUT; }   \
        blitz_on_cancel { rc = -ECANCELED; }    \
    }
/* clang-format on */

/* Up to three cases, by the statement. Futures among them would make it another kind of wait. */
static int mix_select_statement(struct mix_op *op, blitz_deadline until)
{
    int rc = -EINVAL;
    bool has_others = false;
    for (unsigned i = op->count; i < 3; i++)
        op->cases[i] = blitz_case_recv(NULL, NULL);
    for (unsigned i = 0; i < 3; i++)
        has_others |= !MIX_IS(i, SEND) && !MIX_IS(i, RECV);
    if (has_others)
        MIX_STATEMENT(MIX_ANY_SLOT)
    else
        MIX_STATEMENT(MIX_CHAN_SLOT)
    return rc;
}
static unsigned mix_select_how(const struct mix_op *op)
{
    return (op->is_biased ? BLITZ_SELECT_BIASED : BLITZ_SELECT_FAIR) |
           (op->is_now ? BLITZ_SELECT_NOW : 0);
}
static int mix_select_call(struct mix_op *op, blitz_deadline until)
{
    if (op->is_statement && op->count <= 3 && !op->is_biased && !op->is_now)
        return mix_select_statement(op, until);
    return blitz_select_wait(op->cases, op->count, mix_select_how(op), until);
}
static blitz_future *mix_select_future(struct mix_op *op)
{
    blitz_select_wait_future_init(&op->f.select, op->cases, op->count, mix_select_how(op));
    return &op->f.select.future;
}
static int mix_select_result(struct mix_op *op, int rc)
{
    return rc == 0 || op->f.select.result >= 0 ? op->f.select.result : rc;
}
static const struct mix_verb mix_select = {
    "select", mix_select_call, mix_select_future, mix_select_result, 0, 0};

/* ---- oneshot, broadcast, watch ---- */

static int mix_oneshot_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_oneshot_recv(op->of, op->value, until);
}
static blitz_future *mix_oneshot_future(struct mix_op *op)
{
    blitz_oneshot_recv_future_init(&op->f.oneshot, op->of, op->value);
    return &op->f.oneshot.future;
}
static int mix_oneshot_result(struct mix_op *op, int rc)
{
    return rc == 0 ? op->f.oneshot.result : rc;
}
static const struct mix_verb mix_oneshot = {
    "oneshot", mix_oneshot_call, mix_oneshot_future, mix_oneshot_result, 0, 0};

static int mix_broadcast_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_broadcast_recv(op->of, op->value, &op->n, until);
}
static blitz_future *mix_broadcast_future(struct mix_op *op)
{
    blitz_broadcast_recv_future_init(&op->f.broadcast, op->of, op->value);
    return &op->f.broadcast.future;
}
static int mix_broadcast_result(struct mix_op *op, int rc)
{
    op->n = rc == 0 ? op->f.broadcast.missed : 0;
    return rc == 0 ? op->f.broadcast.result : rc;
}
static const struct mix_verb mix_broadcast = {
    "broadcast", mix_broadcast_call, mix_broadcast_future, mix_broadcast_result, 0, 0};

static int mix_watch_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_watch_recv(op->of, op->value, op->with, until);
}
static blitz_future *mix_watch_future(struct mix_op *op)
{
    blitz_watch_recv_future_init(&op->f.watch, op->of, op->value, op->with);
    return &op->f.watch.future;
}
static int mix_watch_result(struct mix_op *op, int rc)
{
    return rc == 0 ? op->f.watch.result : rc;
}
static const struct mix_verb mix_watch = {
    "watch", mix_watch_call, mix_watch_future, mix_watch_result, 0, 0};

static int mix_signal_call(struct mix_op *op, blitz_deadline until)
{
    blitz_signal_event event = {0};
    int rc = blitz_signal_recv(op->of, &event, until);
    op->n = rc == 0 ? event.count : 0;
    return rc;
}
static blitz_future *mix_signal_future(struct mix_op *op)
{
    blitz_signal_recv_future_init(&op->f.signal, op->of);
    return &op->f.signal.future;
}
static int mix_signal_result(struct mix_op *op, int rc)
{
    op->n = rc == 0 ? op->f.signal.event.count : 0;
    return rc == 0 ? op->f.signal.result : rc;
}
static const struct mix_verb mix_signal = {
    "signal", mix_signal_call, mix_signal_future, mix_signal_result, 0, 0};

/* op->n: the signal that ended it. A stop has a grace that no child needs. */
static int mix_process_wait_call(struct mix_op *op, blitz_deadline until)
{
    blitz_exit e = {0};
    int rc = blitz_process_wait(op->of, &e, until);
    op->n = (uint64_t)e.signal;
    return rc;
}
static blitz_future *mix_process_wait_future(struct mix_op *op)
{
    blitz_process_wait_future_init(&op->f.process, op->of);
    return &op->f.process.future;
}
static int mix_process_stop_call(struct mix_op *op, blitz_deadline until)
{
    blitz_exit e = {0};
    int rc = blitz_process_stop(op->of, 3600 * BLITZ_S, &e, until);
    op->n = (uint64_t)e.signal;
    return rc;
}
static blitz_future *mix_process_stop_future(struct mix_op *op)
{
    blitz_process_stop_future_init(&op->f.process, op->of, 3600 * BLITZ_S);
    return &op->f.process.future;
}
static int mix_process_result(struct mix_op *op, int rc)
{
    op->n = op->f.process.result == 0 ? (uint64_t)op->f.process.exit.signal : 0;
    return rc == 0 || op->f.process.result == 0 ? op->f.process.result : rc;
}
static const struct mix_verb mix_process_wait = {
    "process wait", mix_process_wait_call, mix_process_wait_future, mix_process_result, 0, 0};
static const struct mix_verb mix_process_stop = {
    "process stop", mix_process_stop_call, mix_process_stop_future, mix_process_result, 0, 1};

/* ---- primitives of sync.h ---- */

static int mix_sync_result(struct mix_op *op, int rc)
{
    return rc == 0 ? op->f.sync.result : rc;
}

#define MIX_SYNC_VERB(verb_, text_, wait_, init_)                                                  \
    static int verb_##_call(struct mix_op *op, blitz_deadline until)                               \
    {                                                                                              \
        return wait_(op->of, until);                                                               \
    }                                                                                              \
    static blitz_future *verb_##_future(struct mix_op *op)                                         \
    {                                                                                              \
        init_(&op->f.sync, op->of);                                                                \
        return &op->f.sync.future;                                                                 \
    }                                                                                              \
    static const struct mix_verb verb_ = {text_, verb_##_call, verb_##_future, mix_sync_result, 0, \
                                          0};

MIX_SYNC_VERB(mix_lock, "lock", blitz_mutex_lock, blitz_mutex_lock_future_init)
MIX_SYNC_VERB(mix_read, "read lock", blitz_rwlock_read, blitz_rwlock_read_future_init)
MIX_SYNC_VERB(mix_write, "write lock", blitz_rwlock_write, blitz_rwlock_write_future_init)
MIX_SYNC_VERB(mix_notify, "notify", blitz_notify_wait, blitz_notify_wait_future_init)
MIX_SYNC_VERB(mix_event, "event", blitz_event_wait, blitz_event_wait_future_init)
MIX_SYNC_VERB(mix_latch, "latch", blitz_latch_wait, blitz_latch_wait_future_init)
MIX_SYNC_VERB(mix_group, "wait group", blitz_wait_group_wait, blitz_wait_group_wait_future_init)

static int mix_barrier_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_barrier_wait(op->of, until);
}
static blitz_future *mix_barrier_future(struct mix_op *op)
{
    blitz_barrier_wait_future_init(&op->f.sync, op->of);
    return &op->f.sync.future;
}
static const struct mix_verb mix_barrier = {
    "barrier", mix_barrier_call, mix_barrier_future, mix_sync_result, true, 0};

static int mix_acquire_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_semaphore_acquire(op->of, (uint32_t)op->n, until);
}
static blitz_future *mix_acquire_future(struct mix_op *op)
{
    blitz_semaphore_acquire_future_init(&op->f.sync, op->of, (uint32_t)op->n);
    return &op->f.sync.future;
}
static const struct mix_verb mix_acquire = {
    "acquire", mix_acquire_call, mix_acquire_future, mix_sync_result, 0, 0};

/* The mutex is held before, and op->is_held says whether it is afterwards. */
static int mix_condition_call(struct mix_op *op, blitz_deadline until)
{
    op->is_held = true;
    return blitz_condition_wait(op->of, op->with, until);
}
static blitz_future *mix_condition_future(struct mix_op *op)
{
    blitz_condition_wait_future_init(&op->f.sync, op->of, op->with);
    return &op->f.sync.future;
}
static int mix_condition_result(struct mix_op *op, int rc)
{
    op->is_held = rc == 0 || op->polled == 0;
    return rc == 0 ? op->f.sync.result : rc;
}
static const struct mix_verb mix_condition = {
    "condition", mix_condition_call, mix_condition_future, mix_condition_result, 0, 0};

/* op->n selects how the value is made, op->with the receiver. */
static int mix_once_make(void *arg, void **value);
static int mix_once_call(struct mix_op *op, blitz_deadline until)
{
    if (op->is_now) /* the cell is that of a lazy */
        return blitz_lazy_get(op->of, &op->pointer, until);
    return blitz_once_get(op->of, mix_once_make, op->with, &op->pointer, until);
}
static blitz_future *mix_once_future(struct mix_op *op)
{
    blitz_once_get_future_init(&op->f.once, op->of, mix_once_make, op->with);
    return &op->f.once.future;
}
static int mix_once_result(struct mix_op *op, int rc)
{
    op->pointer = op->f.once.value;
    return rc == 0 ? op->f.once.result : rc;
}
static const struct mix_verb mix_once = {"once", mix_once_call, mix_once_future, mix_once_result, 0,
                                         0};

/* ---- crowds: one party with several futures of one event, latch or wait group ---- */

static blitz_future *mix_crowd_of(struct mix_op *op)
{
    for (unsigned i = 0; i < op->count; i++)
        op->child[i] = (blitz_child){.future = &op->crowd[i].future};
    CHECK_EQ(blitz_all_init(&op->all, op->child, op->count, BLITZ_COLLECT), 0);
    return &op->all.future;
}
static int mix_crowd_result(struct mix_op *op, int rc)
{
    return rc == 0 ? op->all.result : rc;
}
#define MIX_CROWD_VERB(verb_, text_, init_)                \
    static blitz_future *verb_##_future(struct mix_op *op) \
    {                                                      \
        for (unsigned i = 0; i < op->count; i++)           \
            init_(&op->crowd[i], op->of);                  \
        return mix_crowd_of(op);                           \
    }                                                      \
    static const struct mix_verb verb_ = {text_, NULL, verb_##_future, mix_crowd_result, 0, 0};

MIX_CROWD_VERB(mix_events, "events", blitz_event_wait_future_init)
MIX_CROWD_VERB(mix_latches, "latches", blitz_latch_wait_future_init)
MIX_CROWD_VERB(mix_groups, "wait groups", blitz_wait_group_wait_future_init)

/* ---- promises, tasks, scopes, time ---- */

static int mix_promise_call(struct mix_op *op, blitz_deadline until)
{
    op->pointer = NULL;
    return blitz_promise_await(op->of, &op->pointer, until);
}
static blitz_future *mix_promise_future(struct mix_op *op)
{
    blitz_promise_await_future_init(&op->f.promise, op->of);
    return &op->f.promise.future;
}
static int mix_promise_result(struct mix_op *op, int rc)
{
    op->pointer = rc == 0 ? op->f.promise.value : NULL;
    return rc == 0 ? op->f.promise.result : rc;
}
static const struct mix_verb mix_promise = {
    "promise", mix_promise_call, mix_promise_future, mix_promise_result, 0, 0};

/* op->n is what the task returned. */
static int mix_join_call(struct mix_op *op, blitz_deadline until)
{
    int result = -1;
    int rc = blitz_task_join(op->of, &result, until);
    op->n = (uint64_t)result;
    return rc;
}
static blitz_future *mix_join_future(struct mix_op *op)
{
    if (op->is_biased)
        blitz_task_join_linked_future_init(&op->f.join, op->of);
    else
        blitz_task_join_future_init(&op->f.join, op->of);
    return &op->f.join.future;
}
static int mix_join_result(struct mix_op *op, int rc)
{
    op->n = (uint64_t)op->f.join.value;
    return rc == 0 ? op->f.join.result : rc;
}
static const struct mix_verb mix_join = {"join", mix_join_call, mix_join_future, mix_join_result, 0,
                                         0};

/* op->pointer is what the task returned. */
static int mix_join_ptr_call(struct mix_op *op, blitz_deadline until)
{
    op->pointer = NULL;
    return blitz_task_join_ptr(op->of, &op->pointer, until);
}
static int mix_join_ptr_result(struct mix_op *op, int rc)
{
    op->pointer = rc == 0 && op->f.join.result == 0 ? op->f.join.pointer : NULL;
    return rc == 0 ? op->f.join.result : rc;
}
static const struct mix_verb mix_join_ptr = {
    "join pointer", mix_join_ptr_call, mix_join_future, mix_join_ptr_result, 0, 0};

/* The next member of a join set, into op->joined. */
static int mix_set_next_call(struct mix_op *op, blitz_deadline until)
{
    return op->is_now ? blitz_join_set_try_next(op->of, &op->joined)
                      : blitz_join_set_next(op->of, &op->joined, until);
}
static blitz_future *mix_set_next_future(struct mix_op *op)
{
    blitz_join_set_next_future_init(&op->f.set, op->of);
    return &op->f.set.future;
}
static int mix_set_next_result(struct mix_op *op, int rc)
{
    if (rc == 0 && op->f.set.result == 0)
        op->joined = op->f.set.joined;
    return rc == 0 ? op->f.set.result : rc;
}
static const struct mix_verb mix_set_next = {
    "join set", mix_set_next_call, mix_set_next_future, mix_set_next_result, 0, 0};

static int mix_token_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_token_wait(op->of, until);
}
static blitz_future *mix_token_future(struct mix_op *op)
{
    blitz_token_wait_future_init(&op->f.token, op->of);
    return &op->f.token.future;
}
static int mix_token_result(struct mix_op *op, int rc)
{
    (void)op;
    return rc;
}
static const struct mix_verb mix_token = {
    "token", mix_token_call, mix_token_future, mix_token_result, 0, 0};

/* ---- calls on other threads and stacks: op->fn(op->with), which returns a number above 0 ---- */

static int mix_blocking_call(struct mix_op *op, blitz_deadline until)
{
    (void)until;
    return blitz_blocking(op->fn, op->with);
}
static blitz_future *mix_blocking_future(struct mix_op *op)
{
    blitz_blocking_opts opts = {.drop = op->drop};
    blitz_blocking_future_init(&op->f.blocking, op->fn, op->with, &opts);
    return &op->f.blocking.future;
}
static int mix_blocking_result(struct mix_op *op, int rc)
{
    return rc == 0 ? op->f.blocking.result : rc;
}
static const struct mix_verb mix_blocking = {
    "blocking", mix_blocking_call, mix_blocking_future, mix_blocking_result, 0, 0};

static int mix_in_place_call(struct mix_op *op, blitz_deadline until)
{
    (void)until;
    return blitz_block_in_place(op->fn, op->with);
}
static const struct mix_verb mix_in_place = {"block in place", mix_in_place_call, NULL, NULL, 0, 0};

static int mix_syscall_call(struct mix_op *op, blitz_deadline until)
{
    (void)until;
    blitz_syscall_enter();
    int rc = op->fn(op->with);
    blitz_syscall_leave();
    return rc;
}
static const struct mix_verb mix_syscall = {"system call", mix_syscall_call, NULL, NULL, 0, 0};

static int mix_big_stack_call(struct mix_op *op, blitz_deadline until)
{
    (void)until;
    return blitz_on_big_stack(op->fn, op->with, (size_t)512 << 10);
}
static const struct mix_verb mix_big_stack = {"big stack", mix_big_stack_call, NULL, NULL, 0, 0};

static int mix_close_call(struct mix_op *op, blitz_deadline until)
{
    (void)until;
    return blitz_scope_close(op->of);
}
static blitz_future *mix_close_future(struct mix_op *op)
{
    return &((blitz_scope *)op->of)->future;
}
static int mix_close_result(struct mix_op *op, int rc)
{
    (void)rc;
    return ((blitz_scope *)op->of)->result;
}
static const struct mix_verb mix_close = {
    "scope close", mix_close_call, mix_close_future, mix_close_result, 0, true};

/* Let op->n nanoseconds pass; 0: let others run. */
static int mix_pause_call(struct mix_op *op, blitz_deadline until)
{
    (void)until;
    if (op->n == 0)
        blitz_yield();
    if (op->n % 2 == 1)
        return blitz_sleep_until(blitz_after(op->n));
    return op->n == 0 ? 0 : blitz_sleep(op->n);
}
static blitz_future *mix_pause_future(struct mix_op *op)
{
    blitz_sleep_until_future_init(&op->f.sleep, blitz_after(op->n));
    return &op->f.sleep.future;
}
static int mix_pause_result(struct mix_op *op, int rc)
{
    (void)op;
    return rc;
}
static const struct mix_verb mix_pause = {"pause",          mix_pause_call, mix_pause_future,
                                          mix_pause_result, true,           0};

/* A timer that others may move. */
static int mix_timer_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_await(&((blitz_timer *)op->of)->future, until);
}
static blitz_future *mix_timer_future(struct mix_op *op)
{
    return &((blitz_timer *)op->of)->future;
}
static const struct mix_verb mix_timer = {
    "timer", mix_timer_call, mix_timer_future, mix_pause_result, 0, 0};

/* One tick of an interval. */
static int mix_tick_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_interval_tick(op->of, until);
}
static blitz_future *mix_tick_future(struct mix_op *op)
{
    return &((blitz_interval *)op->of)->future;
}
static const struct mix_verb mix_tick = {
    "tick", mix_tick_call, mix_tick_future, mix_pause_result, 0, 0};

#endif
