/*
 * split.c - split a range of indexes into chunks and run them on all idle workers.
 *
 * A span larger than a chunk is halved: the upper half is forked, and the lower half is halved
 * again until one chunk is left, which runs. Then the halves are joined, newest first; a half that
 * was not stolen is split in its turn. So one stack runs its chunks from left to right, it has as
 * many pending jobs as there are halvings (at most 64), and an idle worker steals the oldest job,
 * the largest. A span that another stack runs is called a *part*.
 *
 * How large is a chunk? A fork and a join cost a nanosecond or two, so even a chunk of ten
 * nanoseconds would pay for them. The expensive parts are the call of the body (a loop that the
 * compiler optimised for thousands of indexes is slow for three) and the clock. Small chunks give
 * balance: at the end all workers wait for the last chunk, and an error or a cancel waits for the
 * running chunks. 20 us is a good compromise. The number of indexes for 20 us is measured: the
 * first chunk is small, and the time of every chunk determines the size of the next. A part starts
 * with the measurements of its forker.
 *   - Before the first measurement, the span is not halved. The first chunk is split off, and the
 *     whole rest is forked *quietly*: searching workers do not see it, because they would steal it
 *     from a loop that ends in 200 ns. If the loop does not return within about a millisecond, the
 *     monitor exposes the rest (job.c). This ends when, after 2 us, a chunk shows that more than 10
 *     us are left. (Loops of up to 8 indexes are exposed at once: such indexes are probably large.)
 *     A loop of 1000 additions takes three calls of its body, two forks and joins and three clock
 *     reads.
 *   - The first chunk is 4 indexes: they may take a second each. A chunk is at most 16 times as
 *     large as the one before: the first ones may have been cheap by chance. In a long loop a chunk
 *     is at most a 128th of the whole, so that a few expensive indexes among cheap ones do not form
 *     one chunk; but this limit does not make chunks shorter than 2 us.
 *
 * Accumulators (reduce.c). A stack runs its chunks from left to right, so one accumulator serves
 * them
 * all. A part that another stack runs needs its own, and the join combines it. A combine may cost
 * far
 * more than a chunk (it may merge two hash tables), so a loop with accumulators splits by demand:
 *   - A span has a *share*: the number of workers that it is meant for. The whole loop has them
 *     all. A stack *offers* the upper part of a span, with a part of the share and a proportional
 *     part of the indexes, until its own share is 1. So workers that start together get the same
 *     number of indexes each.
 *   - Usually the offer is half of the share. But thieves see one job of a worker at a time, the
 *     next one
 *     after its next chunk. If chunks are long, the stack keeps a share of 1 and offers the rest at
 *     once;
 *     the thief does the same, and all workers start together.
 *   - With a share of 1, a stack runs its first chunk. From then on it offers the upper half of the
 *     rest, and makes the next such offer only after a thief has taken the last one. As long as a
 *     share
 *     is open on any stack there are no such offers, so that thieves take the shares first.
 *   - An offer has a share even if the size of a chunk is not known yet. Otherwise each thief would
 *     keep
 *     its first chunk only and leave the rest to the next one, which would do the same. (So 477
 *     indexes of
 *     a few milliseconds each made 89 to 139 accumulators on 2 workers.)
 *   - The loop has a budget of OFFERS accumulators for each worker. An offer takes one, and a join
 *     that
 *     gets its part back returns it. Near the end of a loop an offer is not worth one: if the span
 *     will
 *     take less than 1/WORTH_PART of the time since the loop began, there is none.
 *   - When the budget is used up, a stack makes another offer only if the work is really uneven:
 *     the span
 *     will take longer than 1/UNEVEN_PART of the time since the loop began.
 *   - How long it will take follows from the recent pace, an average over 1/PACE_PART of that time.
 *     So one
 *     chunk whose thread was preempted does not count as unevenness.
 *   - A loop never has more than OFFERS_MAX accumulators for each worker.
 * If there is no memory for an accumulator, the part is left to its join.
 *
 * Stopping. Each chunk and each halving first checks a flag in the loop. A part that stops returns
 * the reason; a part that did not begin returns 0; joins take the left result first. So the loop
 * returns the reason of the lowest index among those that ran.
 *
 * Rejected: a fixed number of chunks for each worker, split further when stolen (as in Rayon and
 *           TBB). A chunk that has begun cannot be split, and a 16th of a loop may take a second.
 *           Checking for idle workers between small chunks, and forking only then: the fork is
 *           cheaper than the check. A shared counter from which all workers take chunks: neighbours
 *           run on different workers, which costs cache misses and accumulators.
 *
 * I1  A part's span, loop and size are written before its fork and not after.
 * I2  Every index of a span is in exactly one half or one chunk: only cut() and halve() make spans
 *     from a span.
 */
#include "par/split.h"

#include <errno.h>
#include <string.h>

#include "blitz/par.h"
#include "blitz/task.h"
#include "proc/retire.h"
#include "proc/state.h"

enum {
    CHUNK_NS = 20 * 1000,  /* target time of a chunk */
    CHUNK_LEAST_NS = 2000, /* minimum, if the 128th part is less */
    PARTS = 128,           /* of a long loop */
    QUIET_NS = 10 * 1000,  /* a shorter rest is not exposed to other workers */
    FEW = 8, /* so few indexes are probably large, or the caller would not use a parallel loop */
    TURN_NS = 1000 * 1000, /* time after which other tasks may run */
    SKIPS = 63,            /* chunks of fixed size between two clock reads */
    GROWTH = 16,           /* maximum growth from one chunk to the next */
    FIRST_PART = 64,       /* the first chunk is this part of the whole, */
    FIRST_MAX = 4,         /* and at most this many cells */
    OFFERS = 4,            /* accumulators for each worker, if the work is even */
    OFFERS_MAX = 16,       /* accumulators for each worker, for any work */
    WORTH_PART = 32,       /* the essay has these three */
    UNEVEN_PART = 8,
    PACE_PART = 16
};

/* The state of one stack while it runs its part. */
struct run {
    struct bz_loop *loop;
    void *acc;       /* accumulator of all chunks run so far, or NULL */
    size_t size;     /* cells of the next chunk; 0: not known yet */
    uint64_t since;  /* start time of the next chunk; 0: read the clock */
    size_t left;     /* cells not yet run, or run by other stacks */
    bool is_quiet;   /* the rest is small, or not measured yet: do not expose it */
    uint64_t spent;  /* time of measured chunks */
    uint64_t turn;   /* when other tasks last ran */
    uint64_t looked; /* when this was last checked */
    unsigned skips;  /* chunks until the next check */
    unsigned share;  /* workers that the next span is meant for. Reductions only, as all below */
    bool has_run;    /* a chunk */
    double pace;     /* recent ns for each cell; 0: not known yet */
    uint64_t pace_since; /* when this measurement of the pace began; 0: at the next clock read */
    size_t pace_cells;   /* cells run since then */
};

/* A span that was forked. In the forker's frame. */
struct part {
    blitz_job job;
    struct bz_loop *loop; /* I1 */
    struct bz_span span;  /* I1 */
    size_t size;          /* I1; as in struct run */
    double pace;          /* I1; likewise */
    bool is_quiet;        /* forked quietly */
    bool is_offer;  /* it is counted in the loop's `offers`. Reductions only, as the next three */
    bool is_share;  /* it is counted in the loop's `shares`; of an offer */
    unsigned share; /* I1; likewise */
    bz_atomic(int)
        is_taken;      /* 1: another stack runs it. Written by the thief, a hint for the forker */
    bool is_left;      /* the thief had no memory: the join must run it */
    struct bz_acc acc; /* the thief's accumulator */
};

/* ---- spans ---- */

/* The number of rows or columns, whichever is larger. */
static bool is_high(const struct bz_loop *loop, const struct bz_span *s)
{
    return !loop->is_tiled || s->to - s->from >= s->right - s->left;
}

/* Split it in two; the first part has `lines` rows or columns. */
static void part_at(const struct bz_loop *loop, struct bz_span *s, size_t lines,
                    struct bz_span *rest)
{
    *rest = *s;
    if (is_high(loop, s))
        rest->from = s->to = s->from + lines;
    else
        rest->left = s->right = s->left + lines;
}

/* The side that is split, and the other one. */
static size_t side_of(const struct bz_loop *loop, const struct bz_span *s, size_t *across)
{
    size_t rows = s->to - s->from, columns = s->right - s->left;
    bool is_cut_in_rows = is_high(loop, s);
    *across = is_cut_in_rows ? columns : rows;
    return is_cut_in_rows ? rows : columns;
}

/* True if both halves are at least as large as the grain. */
static bool can_halve(const struct bz_loop *loop, const struct bz_span *s)
{
    size_t across, side = side_of(loop, s, &across);
    return side > 1 && side / 2 * across >= loop->grain;
}

/* The number of lines with this many cells, or with the grain if that is more; in one dimension a
 * multiple of the grain. For a span that can be halved. */
static size_t lines_of(const struct bz_loop *loop, const struct bz_span *s, size_t cells)
{
    size_t across, grain = loop->grain;
    if (cells < grain)
        cells = grain;
    if (!loop->is_tiled)
        return grain == 1 ? cells : cells - cells % grain;
    (void)!side_of(loop, s, &across);
    size_t least = (grain - 1) / across + 1, lines = cells / across;
    return lines > least ? lines : least;
}

static void halve(const struct bz_loop *loop, struct bz_span *s, struct bz_span *upper)
{
    part_at(loop, s, lines_of(loop, s, bz_span_cells(s) / 2), upper);
}

/* Split the next chunk off the front, with `size` cells if that is known. Return false if the whole
 * span is one chunk. */
static bool cut(const struct bz_loop *loop, struct bz_span *s, size_t size, struct bz_span *rest)
{
    size_t cells = bz_span_cells(s);
    if (size == 0) {
        size = cells / FIRST_PART < FIRST_MAX ? cells / FIRST_PART : FIRST_MAX;
        size = size < loop->chunk_max ? size : loop->chunk_max;
    }
    if (size >= cells || !can_halve(loop, s))
        return false;
    size = size < cells / 2 ? size : cells / 2; /* so that the rest can be a chunk, too */
    part_at(loop, s, lines_of(loop, s, size), rest);
    return true;
}

/* ---- the size of a chunk ---- */

/* Compute the size of the next chunk from the time of the last. */
static size_t size_after(const struct bz_loop *loop, size_t cells, uint64_t ns)
{
    double per_ns = (double)cells / (double)(ns > 0 ? ns : 1);
    double size = per_ns * CHUNK_NS, grown = (double)cells * GROWTH;
    double part = (double)loop->cells * (1.0 / PARTS), least = per_ns * CHUNK_LEAST_NS;
    part = part > least ? part : least;
    size = size < grown ? size : grown;
    if (size < (double)loop->cells && size > part)
        size = part;
    if (size >= (double)loop->chunk_max)
        return loop->chunk_max;
    return size > (double)loop->grain ? (size_t)size : loop->grain;
}

/* True if no measurement is needed. */
static bool is_fixed(const struct bz_loop *loop)
{
    return loop->chunk_max <= loop->grain;
}

/* ---- running ---- */

bool bz_loop_may_continue(struct bz_loop *loop, int *out)
{
    *out = 0;
    if (bz_loop_is_stopped(loop))
        return false;
    if (!blitz_is_cancelled())
        return true;
    bz_loop_stop(loop);
    *out = -ECANCELED;
    return false;
}

static void learn(struct run *r, size_t cells, uint64_t ns)
{
    r->size = size_after(r->loop, cells, ns);
    r->spent += ns;
    if (r->is_quiet && r->spent > CHUNK_LEAST_NS) /* below this the clock reads dominate */
        r->is_quiet = (double)ns * (double)r->left < (double)cells * QUIET_NS;
}

/* Update the pace at `now`. */
static void measure_pace(struct run *r, uint64_t now)
{
    uint64_t ns = now - r->pace_since;
    if (r->pace_since == 0 || r->pace_cells == 0) {
        r->pace_since = now;
        r->pace_cells = 0;
    } else if (ns > (now - r->loop->began) / PACE_PART) {
        r->pace = (double)ns / (double)r->pace_cells;
        r->pace_since = now;
        r->pace_cells = 0;
    }
}

/* True after a millisecond without a yield. A loop of small unmeasured chunks checks less often. */
static bool is_time(struct run *r)
{
    if (r->skips > 0) {
        r->skips--;
        return false;
    }
    if (r->left == 0)
        return false;
    uint64_t now = r->since != 0 ? r->since : blitz_now();
    if (is_fixed(r->loop))
        r->skips = now - r->looked < CHUNK_NS ? SKIPS : 0;
    r->looked = now;
    if (r->loop->how != NULL)
        measure_pace(r, now);
    if (r->turn == 0)
        r->turn = now;
    if (now - r->turn < TURN_NS)
        return false;
    r->turn = now;
    return true;
}

static int run_body(struct run *r, const struct bz_span *s)
{
    struct bz_loop *loop = r->loop;
    r->left -= bz_span_cells(s);
    r->pace_cells += bz_span_cells(s);
    r->has_run = true;
    if (is_fixed(loop))
        return loop->chunk(loop, s, r->acc);
    uint64_t since = r->since != 0 ? r->since : blitz_now();
    int err = loop->chunk(loop, s, r->acc);
    if (r->left == 0) /* probably the end: no measurement needed */
        return err;
    r->since = blitz_now();
    learn(r, bz_span_cells(s), r->since - since);
    return err;
}

static int run_chunk(struct run *r, const struct bz_span *s)
{
    struct bz_loop *loop = r->loop;
    int err;
    if (!bz_loop_may_continue(loop, &err))
        return err;
    err = run_body(r, s);
    if (err != 0)
        bz_loop_stop(loop);
    bool is_late = is_time(r);
    bz_par_checkpoint(is_late, r->is_quiet);
    if (is_late)
        r->since = 0;
    return err;
}

static int run_span(struct run *r, struct bz_span s);

/* Another stack runs the part. */
static void count_taken(struct part *p)
{
    bz_store_relaxed(&p->is_taken, 1); /* relaxed: a hint */
    if (!p->is_offer)
        bz_fetch_add_relaxed(&p->loop->offers, 1); /* relaxed: counters, here and below */
    else if (p->is_share)
        bz_fetch_sub_relaxed(&p->loop->shares, 1); /* relaxed: likewise */
}

/* The join got the part back. */
static void count_returned(const struct part *p)
{
    if (p->is_offer)
        bz_fetch_sub_relaxed(&p->loop->offers, 1); /* relaxed: counters */
    if (p->is_offer && p->is_share)
        bz_fetch_sub_relaxed(&p->loop->shares, 1); /* relaxed: likewise */
}

/* A thief runs the part, on its own stack and with its own accumulator. */
static int part_main(void *arg)
{
    struct part *p = arg;
    struct bz_loop *loop = p->loop;
    struct run r = {
        .loop = loop, .size = p->size, .left = bz_span_cells(&p->span), .share = p->share};
    r.pace = p->pace;
    if (bz_loop_is_stopped(loop))
        return 0;
    if (loop->how != NULL) {
        count_taken(p);
        p->is_left = !bz_acc_begin(&p->acc, loop->how->bytes);
        if (p->is_left)
            return 0;
        r.acc = p->acc.at;
        loop->how->init(r.acc, loop->arg);
    }
    bool is_ours = bz_loop_shield(loop);
    int err = run_span(&r, p->span);
    if (is_ours)
        blitz_unshield();
    return err;
}

static void fork_part(const struct run *r, struct part *p, bool is_offer)
{
    p->loop = r->loop;
    p->size = r->size;
    p->pace = r->pace;
    p->is_offer = is_offer;
    bz_atomic_init(&p->is_taken, 0);
    p->is_left = false;
    p->acc.at = NULL;
    p->is_quiet = r->is_quiet;
    if (p->is_quiet)
        bz_par_fork_quietly(&p->job, part_main, p);
    else
        blitz_fork(&p->job, part_main, p);
}

/* True if the part was not stolen and the caller must run it. Else it is done. */
static bool is_ours(struct part *p)
{
    return (p->is_quiet && bz_par_take_back(&p->job)) || !blitz_join_begin_(&p->job);
}

/* Combine the result of another stack. */
static void add_up(const struct run *r, struct part *p, bool is_well)
{
    const blitz_reduction *how = r->loop->how;
    if (how == NULL || p->acc.at == NULL)
        return;
    if (is_well)
        bz_acc_add(how, r->acc, p->acc.at, r->loop->arg);
    bz_acc_end(&p->acc, how->bytes);
}

/* Join a part; the span to its left returned `err`. */
static int join_part(struct run *r, struct part *p, int err)
{
    if (is_ours(p)) {
        r->share = p->share;
        if (r->loop->how != NULL)
            count_returned(p);
        return err != 0 ? err : run_span(r, p->span);
    }
    r->since = 0; /* the join may have waited */
    r->pace_since = 0;
    int its = p->job.result_;
    add_up(r, p, err == 0 && its == 0);
    if (err != 0)
        return err;
    return p->is_left ? run_span(r, p->span) : its;
}

/* Run while the chunk size is not known, or little is left. (A row of tiles may be much larger than
 * the chunk: then it is split once more.) */
static int run_quietly(struct run *r, struct bz_span s)
{
    struct part rest;
    size_t size = r->size;
    if (!cut(r->loop, &s, size, &rest.span))
        return run_chunk(r, &s);
    rest.share = r->share;
    fork_part(r, &rest, false);
    bool is_wide = r->loop->is_tiled && size == 0 && bz_span_cells(&s) > FIRST_MAX;
    return join_part(r, &rest, is_wide ? run_quietly(r, s) : run_chunk(r, &s));
}

/* ---- by demand: a loop with accumulators ---- */

/* True if the span will take longer than this part of the time since the loop began. */
static bool is_long(const struct run *r, const struct bz_span *s, double part)
{
    double elapsed = (double)(r->pace_since - r->loop->began);
    return r->pace * (double)bz_span_cells(s) * part > elapsed;
}

/* Take one offer out of the budget. Return false if no part of s should be offered. */
static bool may_offer(const struct run *r, const struct bz_span *s)
{
    struct bz_loop *loop = r->loop;
    bool is_paced = r->pace > 0 && r->pace_since > 0;
    if (bz_span_cells(s) <= r->size || !can_halve(loop, s))
        return false;
    unsigned made = bz_load_relaxed(&loop->offers); /* relaxed: the fetch_add below decides */
    bool is_even = made < loop->offers_even;
    if (is_paced ? !is_long(r, s, is_even ? WORTH_PART : UNEVEN_PART) : !is_even)
        return false;
    if (bz_fetch_add_relaxed(&loop->offers, 1) < loop->offers_max) /* relaxed: a counter */
        return true;
    bz_fetch_sub_relaxed(&loop->offers, 1); /* relaxed: likewise */
    return false;
}

static int run_by_demand(struct run *r, struct bz_span s, unsigned share, const struct part *offer);

/* The share of the next offer. */
static unsigned share_to_offer(const struct run *r, unsigned share)
{
    bool is_slow =
        r->size <= r->loop->grain; /* a chunk takes 20 us or more, or is not measured yet */
    if (share < 2)
        return 1;
    return is_slow ? share - 1 : share / 2;
}

static int offer_upper(struct run *r, struct bz_span s, unsigned share)
{
    struct part upper = {.share = share_to_offer(r, share), .is_share = share > 1};
    unsigned of = share > 1 ? share : 2, ours = of - upper.share;
    part_at(r->loop, &s, lines_of(r->loop, &s, bz_span_cells(&s) / of * ours), &upper.span);
    if (upper.is_share)
        bz_fetch_add_relaxed(&r->loop->shares, 1); /* relaxed: a counter */
    fork_part(r, &upper, true);
    return join_part(r, &upper, run_by_demand(r, s, ours, &upper));
}

/* True if the stack should offer half of the rest. `offer` is its last offer, or NULL. */
static bool is_half_wanted(const struct run *r, const struct part *offer)
{
    if (!r->has_run || bz_load_relaxed(&r->loop->shares) > 0) /* relaxed: a counter */
        return false;
    return offer == NULL || bz_load_relaxed(&offer->is_taken); /* relaxed: a hint */
}

/* Run chunk after chunk. `offer` is the last part that this stack has offered, or NULL. */
static int run_by_demand(struct run *r, struct bz_span s, unsigned share, const struct part *offer)
{
    struct bz_span rest;
    while (!bz_loop_is_stopped(r->loop)) {
        if ((share > 1 || is_half_wanted(r, offer)) && may_offer(r, &s))
            return offer_upper(r, s, share);
        if (!cut(r->loop, &s, r->size, &rest))
            return run_chunk(r, &s);
        int err = run_chunk(r, &s);
        if (err != 0)
            return err;
        s = rest;
    }
    return 0;
}

static int run_span(struct run *r, struct bz_span s)
{
    struct part upper;
    if (bz_loop_is_stopped(r->loop))
        return 0;
    if (r->loop->how != NULL && !r->is_quiet)
        return run_by_demand(r, s, r->share, NULL);
    if (r->is_quiet || r->size == 0)
        return run_quietly(r, s);
    if (bz_span_cells(&s) <= r->size || !can_halve(r->loop, &s))
        return run_chunk(r, &s);
    halve(r->loop, &s, &upper.span);
    fork_part(r, &upper, false);
    return join_part(r, &upper, run_span(r, s));
}

/* ---- a loop ---- */

bool bz_par_is_shielded(void)
{
    struct bz_task *me = bz_task_self();
    /* relaxed: the task's own shields */
    return me != NULL && (bz_load_relaxed(&me->word) & BZ_WORD_SHIELD_MASK) != 0;
}

bool bz_loop_shield(const struct bz_loop *loop)
{
    if (!loop->is_shielded || bz_par_is_shielded())
        return false;
    blitz_shield();
    return true;
}

void bz_loop_init(struct bz_loop *loop, size_t cells, const blitz_par_opts *opts)
{
    loop->cells = cells;
    loop->grain = opts != NULL && opts->grain > 0 ? opts->grain : 1;
    loop->chunk_max = opts != NULL && opts->chunk_max > 0 ? opts->chunk_max : SIZE_MAX;
    if (loop->chunk_max < loop->grain)
        loop->chunk_max = loop->grain;
    loop->is_shielded = bz_par_is_shielded();
    bz_atomic_init(&loop->is_stopped, 0);
}

/* Fill in the budget. Return the number of workers. */
static unsigned begin_offers(struct bz_loop *loop)
{
    struct bz_machine *m = bz_machine_self();
    unsigned workers = m != NULL ? bz_procs_active(m->rt) : 1;
    loop->began = blitz_now();
    loop->offers_even = OFFERS * workers - 1; /* the caller has the first accumulator */
    loop->offers_max = OFFERS_MAX * workers - 1;
    bz_atomic_init(&loop->shares, 0);
    bz_atomic_init(&loop->offers, 0);
    return workers;
}

int bz_loop_run(struct bz_loop *loop, const struct bz_span *whole, void *acc)
{
    struct run r = {.loop = loop, .acc = acc, .left = bz_span_cells(whole)};
    r.is_quiet = !is_fixed(loop) && r.left > FEW;
    r.size = is_fixed(loop) ? loop->grain : 0;
    if (loop->how != NULL) {
        r.share = begin_offers(loop);
        r.since = is_fixed(loop) ? 0 : loop->began; /* saves a clock read */
    }
    return run_span(&r, *whole);
}

/* ---- accumulators ---- */

static const blitz_allocator *allocator_here(void)
{
    struct bz_machine *m = bz_machine_self();
    return m != NULL ? &m->rt->alloc : &bz_allocator_libc;
}

void *bz_par_alloc(size_t bytes)
{
    return bz_alloc(allocator_here(), bytes, _Alignof(max_align_t));
}

void bz_par_free(void *memory, size_t bytes)
{
    bz_free(allocator_here(), memory, bytes);
}

bool bz_acc_begin(struct bz_acc *acc, size_t bytes)
{
    acc->at = acc->small;
    if (bytes > BZ_ACC_SMALL)
        acc->at = bz_par_alloc(bytes);
    return acc->at != NULL;
}

void bz_acc_add(const blitz_reduction *how, void *acc, void *right, void *arg)
{
    how->combine(acc, right, arg);
}

void bz_acc_end(struct bz_acc *acc, size_t bytes)
{
    if (bytes > BZ_ACC_SMALL)
        bz_par_free(acc->at, bytes);
    acc->at = NULL;
}
