/*
 * supervised.h - a supervisor and its children, inside: supervisor.c and supervision.c.
 */
#ifndef BZ_ACTOR_SUPERVISED_H
#define BZ_ACTOR_SUPERVISED_H

#include "actor/actor.h"
#include "base/list.h"
#include "blitz/supervisor.h"

/* Messages of a supervisor. Their data may be an address, so they are no numbers that a program uses by chance. */
enum bz_supervisor_does {
    BZ_DO_START = 0x62737500,
    BZ_DO_TERMINATE,
    BZ_DO_RESTART,
    BZ_DO_FORGET,
    BZ_DO_WHICH,
    BZ_DO_COUNT,
    BZ_DO_PRINT,
    BZ_DO_EACH,
    BZ_DO_AGAIN /* the pause before a restart is over; data is `due` */
};

struct bz_supervised {
    struct bz_list in;      /* bz_supervisor.children */
    blitz_child_spec spec;  /* its id and name are the copies below */
    blitz_actor_id running; /* supervisor.c I1 */
    uint64_t due;           /* the restart that it waits for; 0: none */
    char id[BLITZ_NAME_BYTES_MAX], name[BLITZ_NAME_BYTES_MAX];
    _Alignas(16) unsigned char state[];
};

struct bz_supervisor {
    blitz_allocator alloc;
    struct bz_runtime *rt;
    blitz_actor_id parent;   /* that is linked to it since its spawn; zeroed: none */
    struct bz_list children; /* in the order of their starts */
    blitz_strategy strategy;
    unsigned intensity, restart_at, restart_count; /* of the ring */
    blitz_duration period;
    blitz_duration backoff, backoff_max;
    unsigned doublings;     /* of the next pause */
    blitz_instant last_due; /* when the last pause ended, or ends */
    uint64_t dues;          /* pauses so far */
    uint64_t restarts;
    blitz_instant ring[]; /* intensity times */
};

/* An order by the id of a child. It is in the message: the caller may leave before the supervisor reads it. */
struct bz_named {
    char id[BLITZ_NAME_BYTES_MAX];
};

/* An order to print: in the caller's frame, since `print` and its ctx are the caller's anyway. The caller is shielded. */
struct bz_printing {
    blitz_dump_fn print;
    void *ctx;
    unsigned depth; /* of the supervisor in the tree */
};

/* An order to call a function for each child, and for theirs; likewise in the caller's frame. */
struct bz_each {
    void (*fn)(blitz_actor_id id, void *ctx);
    void *ctx;
};

static inline struct bz_supervised *bz_supervised_of(struct bz_list *in)
{
    return BZ_CONTAINER_OF(in, struct bz_supervised, in);
}

static inline bool bz_supervised_runs(const struct bz_supervised *c)
{
    return c->running.generation != 0;
}

/* supervision.c: call fn(id, ctx) for each child that runs, and for those of children that are supervisors. It runs in the supervisors.
 * Returns 0, -ESRCH, -EOPNOTSUPP (it is no supervisor), -EAGAIN, -ENOMEM. */
int bz_supervisor_each(blitz_actor_id supervisor, void (*fn)(blitz_actor_id id, void *ctx),
                       void *ctx);
/* ... in the supervisor. */
int bz_supervisor_show_each(const struct bz_supervisor *s, struct bz_each *o);
/* supervision.c: print a supervisor and its children. In the supervisor. Returns what `print` returned. */
int bz_supervisor_show(const struct bz_supervisor *s, struct bz_printing *o);

#endif
