/*
 * actors.h - what the actors of one runtime share: tickets, names, groups, and lists of muted senders.
 */
#ifndef BZ_ACTORS_H
#define BZ_ACTORS_H

#include "actor/actor.h"
#include "actor/cargo.h"
#include "actor/pressure.h"
#include "actor/reaching.h"
#include "actor/upgrading.h"
#include "actor/wait_quiet.h"
#include "proc/proc_timer.h"
#include "wait/waiter.h"

enum {
    BZ_TICKET_SEGMENTS = 20,
    BZ_TICKET_FIRST = 32,
    BZ_NAME_BUCKETS = 256,
    BZ_GROUP_BUCKETS = 64
};

/*
 * A ticket: a place to which one answer comes, of a call or a join; or a message that is sent later. Its memory stays, so a
 * late answer finds a ticket, and its generation tells that it is not for the present user. ticket.c has the rules.
 */
enum bz_ticket_far {
    BZ_TICKET_NEAR,    /* answered within the process */
    BZ_TICKET_FAR,     /* its answer comes from another node */
    BZ_TICKET_PROMISED /* ... and is being made */
};

struct bz_ticket {
    struct bz_lock lock;
    uint32_t generation;      /* changed by close; guarded by lock, as are the next ones */
    bool is_over;             /* answered, or its owner has left */
    int result;               /* the size of the answer, or an error */
    enum bz_cargo_kind cargo; /* of the answer: the ticket's, until its owner takes it */
    void *piece;              /* ... if there is one */
    struct bz_waiter *waiter; /* NULL: its owner does not wait */
    union {
        unsigned char data[BLITZ_MSG_BYTES_MAX];
        blitz_exit_reason reason;
    };
    uint32_t index;         /* constant */
    struct bz_ticket *next; /* of the free ones: a proc's, or guarded by bz_actors.lock */
    bool is_spent;          /* its timer has fired: open changes the generation. Its owner's */
    bool is_never;          /* it has no timer: its message waits for a cancel. Its owner's */
    bool is_outside; /* its owner keeps the memory of the runtime: life/tasks.h. Its owner's */
    uint8_t far;     /* enum bz_ticket_far; guarded by lock once its token is known */
    struct bz_runtime *rt;    /* constant */
    struct bz_timer timer;    /* of a message that is sent later */
    struct bz_letter *letter; /* ... which the timer owns; NULL: none */
    uint32_t to_index;        /* ... and its receiver */
};

struct bz_name {
    struct bz_name *next; /* in its bucket; guarded by bz_actors.lock, as the rest */
    uint32_t index, generation;
    char text[BLITZ_NAME_BYTES_MAX];
};

struct bz_actors {
    struct bz_lock lock;
    bz_atomic(struct bz_ticket *) segment[BZ_TICKET_SEGMENTS]; /* written under lock */
    uint32_t made; /* tickets; guarded by lock, as the rest */
    struct bz_ticket *free;
    struct bz_name *bucket[BZ_NAME_BUCKETS];
    struct bz_group *group[BZ_GROUP_BUCKETS]; /* groups.c */
    bz_atomic(uint64_t) refs;                 /* of monitors and memberships, given out so far */
    struct bz_lock muting;                    /* guards the next one */
    struct bz_pressure pressure[BZ_PRESSURES];
    struct bz_lock quiet_lock; /* guards the next one: wait_quiet.c */
    struct bz_list quiet;      /* waiters */
    struct bz_lock reach_lock; /* guards the next one: reach.c */
    struct bz_references references;
    struct bz_versions versions; /* upgrade.c */
    bz_atomic(uint32_t) traps;   /* 1: an actor of it traps faults, or has trapped: trap.c */
};

/* ---- tickets ---- */

/* Take a ticket; NULL if there is no memory. Any thread. */
struct bz_ticket *bz_ticket_open(struct bz_runtime *rt);
/* The same for an owner that waits for the answer, perhaps longer than the runtime exists. */
struct bz_ticket *bz_ticket_open_to_wait(struct bz_runtime *rt);
/* The same, for an answer of another node. */
struct bz_ticket *bz_ticket_open_far(struct bz_runtime *rt);
/* Its owner gives it up; a later answer is dropped. */
void bz_ticket_close(struct bz_ticket *t);
/* Answer. An answer to a ticket that is over is dropped. Any thread. */
void bz_ticket_answer(struct bz_runtime *rt, blitz_reply_to to, int result, const void *data,
                      size_t size);
/* The same with cargo. False: it was dropped, and the cargo is still the caller's. */
BZ_MUST_USE bool bz_ticket_answer_with(struct bz_runtime *rt, blitz_reply_to to, int result,
                                       const void *data, size_t size, enum bz_cargo_kind kind,
                                       void *piece);
/* True if the token is not answered yet, and its caller has not left. */
bool bz_ticket_is_open(struct bz_runtime *rt, blitz_reply_to to);
/* True if it is open, and its answer comes from another node. */
bool bz_ticket_is_far(struct bz_runtime *rt, blitz_reply_to to);
/* Such an answer follows, and its making has effects. True: the owner takes it, even if its time is over. False: it has left. */
BZ_MUST_USE bool bz_ticket_promise(struct bz_runtime *rt, blitz_reply_to to);
/* Take no answer from here on. False: there is one, or it is promised. */
BZ_MUST_USE bool bz_ticket_give_up(struct bz_ticket *t);
blitz_reply_to bz_ticket_token(const struct bz_ticket *t);
/* The ticket of a token, or of a later life; NULL: there was never one. */
struct bz_ticket *bz_ticket_at(struct bz_runtime *rt, uint32_t index);
/* Disarm all timers and free the letters; the runtime ends. */
void bz_tickets_end(struct bz_runtime *rt, struct bz_actors *all);
/* Free the tickets: their owners have left. */
void bz_tickets_fini(struct bz_runtime *rt, void *actors);

/* A wait for an answer, as a request: park/request.h. */
struct bz_answer {
    struct bz_request request;
    struct bz_ticket *ticket;
};
extern const struct bz_request_ops bz_answering;
/* Wait on a stack: call.c. 0: the ticket has the answer. */
BZ_MUST_USE int bz_ticket_wait(struct bz_ticket *t, blitz_deadline until);

/* ---- names ---- */

/* Take a name. generation 0: it is not found before bz_name_show(). */
int bz_name_add(struct bz_runtime *rt, const char *text, uint32_t index, uint32_t generation);
void bz_name_show(struct bz_runtime *rt, const char *text, uint32_t generation);
/* Remove a name, if it is that actor's; generation 0: it was not shown. True if it was removed. */
bool bz_name_remove(struct bz_runtime *rt, const char *text, uint32_t index, uint32_t generation);
bool bz_name_is_good(const char *text);
void bz_names_end(struct bz_runtime *rt, struct bz_actors *all);

/* The hash of a name or of a group: FNV-1a. */
static inline uint32_t bz_name_hash(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

/* ---- groups ---- */

/* Remove an actor from a group. Returns the ref of its membership; 0: it was no member. */
uint64_t bz_group_remove(struct bz_runtime *rt, const char *text, uint32_t index,
                         uint32_t generation);
void bz_groups_end(struct bz_runtime *rt, struct bz_actors *all);

#endif
