/*
 * actors.h - what the actors of one runtime share: tickets and names.
 */
#ifndef BZ_ACTORS_H
#define BZ_ACTORS_H

#include "actor/actor.h"
#include "proc/proc_timer.h"
#include "wait/waiter.h"

enum { BZ_TICKET_SEGMENTS = 20, BZ_TICKET_FIRST = 32, BZ_NAME_BUCKETS = 256 };

/*
 * A ticket: a place to which one answer comes, of a call or a join; or a message that is sent later. Its memory stays, so a
 * late answer finds a ticket, and its generation tells that it is not for the present user. ticket.c has the rules.
 */
struct bz_ticket {
    struct bz_lock lock;
    uint32_t generation;      /* changed by open; guarded by lock, as are the next ones */
    bool is_over;             /* answered, or its owner has left */
    int result;               /* the size of the answer, or an error */
    struct bz_waiter *waiter; /* NULL: its owner does not wait */
    union {
        unsigned char data[BLITZ_MSG_BYTES_MAX];
        blitz_exit_reason reason;
    };
    uint32_t index;           /* constant */
    struct bz_ticket *next;   /* of the free ones; guarded by bz_actors.lock */
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
    bz_atomic(uint64_t) refs; /* of monitors, given out so far */
};

/* ---- tickets ---- */

/* Take a ticket; NULL if there is no memory. Any thread. */
struct bz_ticket *bz_ticket_open(struct bz_runtime *rt);
/* Its owner gives it up; a later answer is dropped. */
void bz_ticket_close(struct bz_ticket *t);
/* Answer. An answer to a ticket that is over is dropped. Any thread. */
void bz_ticket_answer(struct bz_runtime *rt, blitz_reply_to to, int result, const void *data,
                      size_t size);
blitz_reply_to bz_ticket_token(const struct bz_ticket *t);
/* The ticket of a token, or of a later life; NULL: there was never one. */
struct bz_ticket *bz_ticket_at(struct bz_runtime *rt, uint32_t index);
/* Disarm all timers and free the letters; the runtime ends. */
void bz_tickets_end(struct bz_runtime *rt, struct bz_actors *all);

/* A wait for an answer, as a request: park/request.h. */
struct bz_answer {
    struct bz_request request;
    struct bz_ticket *ticket;
};
extern const struct bz_request_ops bz_answering;

/* ---- names ---- */

/* Take a name. generation 0: it is not found before bz_name_show(). */
int bz_name_add(struct bz_runtime *rt, const char *text, uint32_t index, uint32_t generation);
void bz_name_show(struct bz_runtime *rt, const char *text, uint32_t generation);
/* Remove a name, if it is that actor's; generation 0: whose ever it is. True if it was removed. */
bool bz_name_remove(struct bz_runtime *rt, const char *text, uint32_t index, uint32_t generation);
bool bz_name_is_good(const char *text);
void bz_names_end(struct bz_runtime *rt, struct bz_actors *all);

#endif
