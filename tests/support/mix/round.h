/*
 * round.h - one round of a mix: a crowd of random parties on the objects of one scene.
 *
 * A round is made from a seed. Its scene makes one object or a few, and says how many parties there
 * are and which role each of them has. Each party is a fiber, a stackless task, a forked job or a plain
 * thread, as the dice say. Every kind runs the same script: the scene chooses an operation (op.h),
 * the party performs it in a random form (party.h), and the scene books the outcome. At the end the
 * scene compares its books with the object.
 *
 * Two rules keep a correct runtime from hanging:
 *   - Every operation without a deadline can complete as long as the keepers live. A keeper is a party
 *     that is never cancelled and that stays until the work of the round is done.
 *   - A keeper leaves when the counts show that nothing is left to do, not when the last other party leaves. So a wake-up that was lost stays lost, and the round hangs.
 *
 * A program that includes this defines struct mix_thread and the two functions below first.
 */
#ifndef MIX_ROUND_H
#define MIX_ROUND_H

#include "harness.h"

#include <stdarg.h>
#include <sys/types.h>

#include "base/bz_atomic.h"
#include "blitz.h"
#include "support/mix/op.h"

enum { MIX_PARTIES = 20, MIX_POLLS_MAX = 5000, MIX_TEXT = 256 };

/* Start fn(arg) on a plain thread, and wait for its end. */
static void mix_thread_start(struct mix_thread *t, void (*fn)(void *arg), void *arg);
static void mix_thread_join(struct mix_thread *t);

/* ---- counters that several parties change ---- */

struct mix_count {
    bz_atomic(int64_t) n;
};

/* Add, and return the new number. */
static inline int64_t mix_add(struct mix_count *c, int64_t by)
{
    return bz_fetch_add_seqcst(&c->n, by) +
           by; /* seq_cst: books must not add orders of their own */
}
static inline int64_t mix_get(struct mix_count *c)
{
    return bz_load_seqcst(&c->n); /* seq_cst: as above */
}
static inline void mix_set(struct mix_count *c, int64_t to)
{
    bz_store_seqcst(&c->n, to); /* seq_cst: as above */
}

/* ---- parties ---- */

enum mix_kind { MIX_FIBER, MIX_POLLED, MIX_JOB, MIX_THREAD, MIX_KINDS };

static const char *const mix_kind_name[] = {"fiber", "polled", "job", "thread"};

struct mix_party {
    struct mix_round *round;
    unsigned index;
    enum mix_kind kind;
    unsigned role;                 /* the scene's */
    bool is_keeper;                /* it is never cancelled */
    bool is_over;                  /* the script has ended */
    bool is_brisk;                 /* it makes no pauses */
    bool is_idle;                  /* its step is no progress: it waits for another party's */
    bool is_thread;                /* it must be a plain thread */
    uint64_t late_ns;              /* it begins so much later than the others */
    unsigned left;                 /* steps that the scene still wants of it */
    struct t_rng dice;             /* its own generator: its actions depend only on the seed */
    struct mix_count step;         /* for the report: operations begun */
    bz_atomic(const char *) doing; /* for the report: the operation, or NULL */
    bz_atomic(const char *) form;  /* for the report: how it waits */
    struct mix_op op;              /* the operation at hand */
    struct mix_wait wait;          /* its current wait */
    int at;                        /* a stackless task: where it continues */
    uint64_t seen;                 /* activity at the last poll, and polls since */
    unsigned polls;
    uint64_t scratch[8]; /* the scene's */
    blitz_task *task;
    struct mix_thread thread;
};

struct mix_round {
    uint64_t seed;
    blitz_runtime *rt;
    unsigned procs;
    const struct mix_scene *scene;
    struct t_rng dice;
    bool has_deadlines; /* parties may be impatient */
    unsigned cancels;   /* how many tasks are cancelled */
    unsigned kinds;     /* a bit for each kind that may take part */
    unsigned threads;   /* plain threads so far */
    unsigned count;
    struct mix_party party[MIX_PARTIES];
    struct mix_count progress; /* operations that succeeded */
    struct mix_count activity; /* operations that ended */
    struct mix_count is_live;
    struct mix_count boxes; /* made and not dropped */
    char what[MIX_TEXT];    /* the scene's description of its objects */
};

struct mix_scene {
    const char *name;
    unsigned weight;
    void (*make)(struct mix_round *r);
    /* Choose an operation into p->op; no verb if the step needed no waiting. False: the end. */
    bool (*next)(struct mix_party *p);
    void (*done)(struct mix_party *p, int rc); /* rc: what the operation has returned */
    void (*leave)(struct mix_party *p);        /* the script has ended; or NULL */
    void (*check)(struct mix_round *r);        /* all parties have ended */
};

/* ---- dice ---- */

static inline uint64_t mix_die(struct t_rng *dice, uint64_t sides)
{
    return t_rng_below(dice, sides);
}
static inline bool mix_one_in(struct t_rng *dice, uint64_t n)
{
    return t_rng_below(dice, n) == 0;
}
static inline struct t_rng mix_dice_of(uint64_t seed, uint64_t index)
{
    struct t_rng r = {seed ^ (index + 1) * UINT64_C(0x9e3779b97f4a7c15)};
    (void)t_rng_next(&r);
    return r;
}

/* Add a party with that role. */
static inline struct mix_party *mix_join_in(struct mix_round *r, unsigned role, bool is_keeper)
{
    CHECK_LT(r->count, MIX_PARTIES);
    struct mix_party *p = &r->party[r->count];
    memset(p, 0, sizeof *p);
    p->round = r;
    p->index = r->count++;
    p->role = role;
    p->is_keeper = is_keeper;
    p->dice = mix_dice_of(r->seed, p->index);
    return p;
}

/* Add some text to the description of the round. */
__attribute__((format(printf, 2, 3))) static inline void mix_say(struct mix_round *r,
                                                                 const char *format, ...)
{
    size_t used = strlen(r->what);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(r->what + used, sizeof r->what - used, format, args);
    va_end(args);
}

/* An operation of this party begins. */
static inline void mix_begin(struct mix_party *p, const struct mix_verb *verb, void *of)
{
    p->op.verb = verb;
    p->op.of = of;
}

static uint64_t mix_rounds; /* played so far, this one included */

/* Report the round: what it is, and what each party is doing. */
static inline void mix_report(struct mix_round *r)
{
    fprintf(stderr, "round %llu, 0x%llx: %s on %u procs,%s%s %u cancels; %lld operations ended\n",
            (unsigned long long)mix_rounds, (unsigned long long)r->seed, r->scene->name, r->procs,
            r->what, r->has_deadlines ? ", deadlines," : ",", r->cancels,
            (long long)mix_get(&r->activity));
    for (unsigned i = 0; i < r->count; i++) {
        struct mix_party *p = &r->party[i];
        const char *doing = bz_load_relaxed(&p->doing); /* relaxed: for people */
        const char *form = bz_load_relaxed(&p->form);   /* relaxed: for people */
        fprintf(stderr, "  party %u: %s, role %u%s, step %lld: %s%s%s\n", i, mix_kind_name[p->kind],
                p->role, p->is_keeper ? ", keeper" : "", (long long)mix_get(&p->step),
                doing != NULL ? doing : "nothing", form != NULL ? " by " : "",
                form != NULL ? form : "");
    }
}

#endif
