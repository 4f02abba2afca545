/*
 * idle.c - the idle set: no work waits while a proc sleeps, and no proc is roused for nothing.
 *
 * A proc without work searches the queues of the other procs. At most half of the procs search at
 * once, and at most SEARCHERS_MAX, because a crowd of searchers finds only each other's cache lines.
 * A proc that finds no work announces its sleep, and sleeps. A thread that publishes work checks
 * whether it must rouse a proc.
 *
 * The number of searchers and the number of sleepers are in one word, `counts`. So a publisher's check
 * is one load: if no proc sleeps, or a proc searches, there is nothing to do. And a proc that announces
 * its sleep learns in the same step whether another proc still searches. If so, that searcher is
 * responsible for all published work, and the proc just sleeps. The last searcher has to make sure:
 *
 *      publisher                               the last searcher
 *      1  push the work                        1  set my bit; count: one less searches, one more
 *         (compiler barrier)                      sleeps
 *      2  counts: no searcher, a               2  a barrier on every thread
 *         sleeper? rouse one                   3  look at every queue
 *                                                 work? take the bit back : sleep
 *
 * The barrier puts a fence into the publisher. If that fence falls after the push, the last look sees
 * the work. If it falls before the push, the publisher's load also comes after the fence. The load then
 * sees the announcement or a later value. So publishers pay nothing [F]. The later value may be:
 *  - A proc searches. It will stop, in one of two ways. It finds nothing and is the last searcher: then
 *    there is another barrier and another look. The publisher's load did not see this searcher stop, so
 *    the load came before that barrier, and so did the push. Or it finds work: then, if it is the last
 *    searcher and a proc sleeps, it rouses one in its stead, whatever the queues say. If no proc sleeps,
 *    a proc that sleeps later goes through the announcement, and the same argument holds for it.
 *  - No proc sleeps any more: likewise.
 * The whole argument relies on `counts` being one location: after a publisher has read a value there,
 * every later value in its modification order is still to come for this publisher.
 *
 * Fences instead of barriers. A barrier interrupts every CPU of the process. If last looks come more
 * often than about LOOKS_PER_WINDOW in OVER_NS, the runtime goes over to fences in the pushes, which
 * are then cheaper. `counts` has two flags. FENCES tells publishers to fence and check again. TRUSTED
 * tells a proc that goes to sleep that all publishers do so, and that a fence is enough instead of the
 * barrier.
 *  - Going over: set FENCES; a barrier; set TRUSTED. A publisher that has not seen FENCES made its
 *    load, and its push, before its fence of that barrier. So a proc that announces after TRUSTED sees
 *    the push.
 *  - Going back: clear both in one step. A publisher that finds FENCES clear again has read a later
 *    state than every proc that announced under TRUSTED. It sees these procs as asleep, or claimed, or
 *    covered by a searcher that will pay for a barrier. No barrier is needed.
 * One thread at a time changes the flags. A second one could set TRUSTED on the ground of a barrier
 * from before the FENCES it relies on. If the system has no barriers, or in the plain form, both flags
 * are always set. With a single proc only TRUSTED is set: its worker cannot publish while it goes to
 * sleep, and all other threads fence for themselves in published.
 *
 * A searcher that finds work. If it sees more work, it rouses another proc in its stead (found). If it
 * sees none, a thread roused in its stead would most likely search in vain. So it leaves the count like the
 * last searcher above, without a sleep: count one less, a barrier or a fence, a look at every queue (leave).
 * The same argument holds: a publisher that trusted this searcher pushed before the barrier, and the look
 * sees it.
 *
 * Rousing. A publisher *stands in*: it counts itself as a searcher on behalf of the proc that it will
 * rouse, *before* it clears that proc's bit. (If it cleared the bit first, the roused proc could wake by
 * itself, find work and leave a count that it was not in yet.) A stand-in that finds no bit to clear
 * was a searcher that covers no work, and publishers may have trusted it meanwhile. So it leaves the
 * count and looks at the bits again: a proc that announced while it counted has its bit set.
 * Clearing the bit decides which thread rouses: one fetch_and wins.
 *
 * A proc that is wanted for something that only it can do (inbox.h) is roused in the same way, with its
 * own bit instead of any bit.
 *
 * I1  The sleepers in counts are the set bits, but for operations under way: the bit is set before
 *     it is counted, and cleared before it is discounted.
 * I2  A proc whose bit is clear is awake or has been roused; rousing is one-to-one with clearing.
 * I3  The searchers in counts are the procs between search (or being roused) and found (or
 *     announce), and publishers that stand in.
 * I4  A thread that changes counts so that a proc sleeps and no proc searches looks at every queue
 *     after that, or rouses a proc.
 *
 * [F] publisher: work store, compiler barrier or fence, counts load -> announce: counts, barrier or
 *     fence, the look at the queues   the store-buffer pattern, as above
 * [G] announce: bit release -> claim: bit acquire   the sleeper has cleared its sleep word before
 *     the claimer sets it
 * [H] announce: counts release -> stand-in leaving: counts acquire   the stand-in sees the bits of
 *     all procs that counted on it
 */
#include "queue/idle.h"

#include "base/bits.h"
#include "base/check.h"

/* On 64 procs, 32 searchers wait for `counts` and for each other's lines for longer than they search: docs/scaling.md
 * has the figures for 2 to 32. A proc that was roused searches above this limit, too. */
enum { SEARCHERS_MAX = 4 };

enum {
    LOOKS_PER_WINDOW = 64,
    OVER_NS = 32000000, /* in less than this: 2000 a second and more */
    BACK_NS = 128000000 /* in more than this: 500 a second and less */
};

static uint64_t bit_of(unsigned proc)
{
    return UINT64_C(1) << (proc % 64);
}

void bz_idle_init(struct bz_idle *idle, unsigned procs, unsigned awake, struct bz_barrier *barrier,
                  bool has_barrier)
{
    BZ_CHECK(procs >= 1 && procs <= BZ_PROCS_MAX, "%u procs", procs);
    uint64_t counts = (procs - awake) * BZ_IDLE_SLEEPER;
    if (!has_barrier)
        counts |= BZ_IDLE_FENCES | BZ_IDLE_TRUSTED;
    else if (procs == 1)
        counts |= BZ_IDLE_TRUSTED;
    idle->procs = procs;
    bz_atomic_init(&idle->active, procs);
    idle->has_barrier = has_barrier;
    idle->barrier = barrier;
    bz_atomic_init(&idle->counts, counts);
    for (unsigned w = 0; w < BZ_IDLE_WORDS; w++) {
        uint64_t bits = 0;
        for (unsigned p = w * 64; p < w * 64 + 64; p++)
            bits |= p >= awake && p < procs ? bit_of(p) : 0;
        bz_atomic_init(&idle->sleeper[w], bits);
    }
    bz_lock_init_ranked(&idle->mode_lock, BZ_RANK_IDLE);
    bz_atomic_init(&idle->looks, 0);
    bz_atomic_init(&idle->window_ns, bz_os_now(barrier->os));
}

/* ---- the bits ---- */

/* Clear the bit. Return true if this call cleared it: then the caller must adjust the count. */
static bool clear(struct bz_idle *idle, unsigned proc)
{
    uint64_t was = bz_fetch_and_acquire(&idle->sleeper[proc / 64], ~bit_of(proc)); /* [G] */
    return (was & bit_of(proc)) != 0;
}

/* Claim any sleeper; BZ_NOBODY if there is none. */
static int claim_any(struct bz_idle *idle)
{
    for (unsigned w = 0; w * 64 < idle->procs; w++) {
        uint64_t bits = bz_load_relaxed(&idle->sleeper[w]); /* relaxed: clearing decides */
        for (; bits != 0; bits &= bits - 1) {
            unsigned proc = w * 64 + bz_bits_lowest(bits);
            if (clear(idle, proc)) {
                bz_fetch_sub_relaxed(&idle->counts, BZ_IDLE_SLEEPER); /* relaxed: a count, I1 */
                return (int)proc;
            }
        }
    }
    return BZ_NOBODY;
}

static bool has_sleeper(struct bz_idle *idle)
{
    for (unsigned w = 0; w * 64 < idle->procs; w++)
        if (bz_load_relaxed(&idle->sleeper[w]) != 0) /* relaxed: [H] */
            return true;
    return false;
}

/* ---- publishing ---- */

static uint64_t searching(uint64_t counts)
{
    return counts & BZ_IDLE_SEARCHING;
}

static uint64_t sleeping(uint64_t counts)
{
    return counts & BZ_IDLE_SLEEPING;
}

/* Count as the only searcher, on behalf of the proc that will be claimed. Return false if there is a searcher, or
 * if no proc sleeps. */
static bool stand_in(struct bz_idle *idle)
{
    uint64_t counts = bz_load_relaxed(&idle->counts); /* relaxed: [F] */
    do {
        if (sleeping(counts) == 0 || searching(counts) > 0)
            return false; /* all are awake, or a searcher is responsible for the work */
        /* relaxed: a count; what was read is as good as a load, [F] */
    } while (!bz_cas_weak_rlx_rlx(&idle->counts, &counts, counts + BZ_IDLE_SEARCHER));
    return true;
}

/* The caller counts as searching. Claim a sleeper, which then counts in its stead. BZ_NOBODY: no proc is asleep, and
 * the caller no longer counts. */
static int hand_on(struct bz_idle *idle)
{
    for (;;) {
        int proc = claim_any(idle);
        if (proc != BZ_NOBODY)
            return proc;                                       /* the count is its now, I3 */
        bz_fetch_sub_acquire(&idle->counts, BZ_IDLE_SEARCHER); /* [H] */
        if (!has_sleeper(idle) || !stand_in(idle))
            return BZ_NOBODY;
    }
}

int bz_idle_published(struct bz_idle *idle)
{
    bz_fence_seqcst(); /* [F] */
    return stand_in(idle) ? hand_on(idle) : BZ_NOBODY;
}

int bz_idle_wanted(struct bz_idle *idle, unsigned proc)
{
    bz_fence_seqcst(); /* inbox.h [A] */
    if (!bz_idle_is_asleep(idle, proc))
        return BZ_NOBODY;
    bz_fetch_add_relaxed(&idle->counts, BZ_IDLE_SEARCHER); /* relaxed: a count */
    if (clear(idle, proc)) {
        bz_fetch_sub_relaxed(&idle->counts, BZ_IDLE_SLEEPER); /* relaxed: a count, I1 */
        return (int)proc;
    }
    bz_fetch_sub_acquire(&idle->counts, BZ_IDLE_SEARCHER); /* [H] */
    return has_sleeper(idle) && stand_in(idle) ? hand_on(idle) : BZ_NOBODY;
}

/* ---- searching ---- */

bool bz_idle_search(struct bz_idle *idle)
{
    uint64_t counts = bz_load_relaxed(&idle->counts); /* relaxed: a limit, roughly kept */
    if (searching(counts) >= SEARCHERS_MAX ||
        (2 * searching(counts) >= idle->procs && searching(counts) > 0))
        return false;
    bz_fetch_add_relaxed(&idle->counts, BZ_IDLE_SEARCHER); /* relaxed: a count */
    return true;
}

int bz_idle_found(struct bz_idle *idle)
{
    uint64_t counts = bz_fetch_sub_relaxed(&idle->counts, BZ_IDLE_SEARCHER); /* relaxed: a count */
    BZ_ASSERT(searching(counts) > 0);
    if (searching(counts) > 1 || sleeping(counts) == 0)
        return BZ_NOBODY; /* another searcher is left, or no proc sleeps, I4 */
    return stand_in(idle) ? hand_on(idle) : BZ_NOBODY;
}

/* ---- leaving, and going to sleep ---- */

/* Count a last look. Change to fences if last looks are so frequent that fences are cheaper. */
static void count_look(struct bz_idle *idle)
{
    /* relaxed, here and below: statistics; a lost count does not matter */
    uint32_t looks = bz_load_relaxed(&idle->looks) + 1;
    bz_store_relaxed(&idle->looks, looks); /* relaxed: as above */
    if (looks % LOOKS_PER_WINDOW != 0)
        return;
    uint64_t now = bz_os_now(idle->barrier->os);
    uint64_t took = now - bz_load_relaxed(&idle->window_ns); /* relaxed: as above */
    bz_store_relaxed(&idle->window_ns, now);                 /* relaxed: as above */
    if (took < OVER_NS)
        bz_idle_go_over(idle);
    else if (took > BACK_NS)
        bz_idle_go_back(idle);
}

/* Make all pushes so far visible to the caller. It has changed the counts to `counts`, and no proc searches. */
static void order_look(struct bz_idle *idle, uint64_t counts)
{
    if (!(counts & BZ_IDLE_TRUSTED))
        bz_barrier_pay(idle->barrier); /* [F] */
    count_look(idle);
}

bool bz_idle_leave(struct bz_idle *idle)
{
    /* relaxed: a count; the fence follows */
    uint64_t counts = bz_fetch_sub_relaxed(&idle->counts, BZ_IDLE_SEARCHER);
    BZ_ASSERT(searching(counts) > 0);
    counts -= BZ_IDLE_SEARCHER;
    if (searching(counts) > 0 || sleeping(counts) == 0)
        return false;  /* a searcher is responsible, or no proc sleeps, I4 */
    bz_fence_seqcst(); /* [F] */
    order_look(idle, counts);
    return true;
}

bool bz_idle_announce(struct bz_idle *idle, unsigned me, bool was_searching)
{
    uint64_t by = BZ_IDLE_SLEEPER - (was_searching ? BZ_IDLE_SEARCHER : 0);
    uint64_t was = bz_fetch_or_release(&idle->sleeper[me / 64], bit_of(me)); /* [G] */
    BZ_ASSERT(!(was & bit_of(me)));
    (void)was;
    uint64_t counts = bz_fetch_add_release(&idle->counts, by); /* [H] */
    counts += by;
    bz_fence_seqcst(); /* [F], and runtime.c [D] */
    if (searching(counts) > 0)
        return false;
    order_look(idle, counts);
    return true;
}

bool bz_idle_stay(struct bz_idle *idle, unsigned me, bool will_search)
{
    if (!clear(idle, me))
        return true; /* claimed, and counted by the thread that claimed it */
    uint64_t by = BZ_IDLE_SLEEPER - (will_search ? BZ_IDLE_SEARCHER : 0);
    bz_fetch_sub_relaxed(&idle->counts, by); /* relaxed: a count; we are awake, and look */
    return will_search;
}

void bz_idle_take_out(struct bz_idle *idle, unsigned proc)
{
    if (clear(idle, proc))
        bz_fetch_sub_relaxed(&idle->counts, BZ_IDLE_SLEEPER); /* relaxed: a count, I1 */
}

/* ---- fences instead of barriers ---- */

static bool may_change_mode(struct bz_idle *idle)
{
    return idle->has_barrier && idle->procs > 1 && bz_lock_try(&idle->mode_lock);
}

void bz_idle_go_over(struct bz_idle *idle)
{
    if (!may_change_mode(idle))
        return;
    /* relaxed: the barrier orders them */
    if (!(bz_fetch_or_relaxed(&idle->counts, BZ_IDLE_FENCES) & BZ_IDLE_TRUSTED)) {
        bz_barrier_pay(idle->barrier);                       /* [F] */
        bz_fetch_or_relaxed(&idle->counts, BZ_IDLE_TRUSTED); /* relaxed: announce's fence follows */
    }
    bz_lock_drop(&idle->mode_lock, idle->barrier->os);
}

void bz_idle_go_back(struct bz_idle *idle)
{
    if (!may_change_mode(idle))
        return;
    /* relaxed: a reader also has all that came before in counts, and needs no more */
    bz_fetch_and_relaxed(&idle->counts, ~(BZ_IDLE_FENCES | BZ_IDLE_TRUSTED));
    bz_lock_drop(&idle->mode_lock, idle->barrier->os);
}

void bz_idle_review(struct bz_idle *idle, uint64_t now_ns)
{
    uint64_t began = bz_load_relaxed(&idle->window_ns); /* relaxed: statistics */
    if (bz_idle_has_fences(idle) && now_ns > began && now_ns - began > BACK_NS)
        bz_idle_go_back(idle);
}

/* ---- looking at it ---- */

unsigned bz_idle_sleeping(struct bz_idle *idle)
{
    uint64_t counts = bz_load_relaxed(&idle->counts); /* relaxed: a hint */
    return (unsigned)(sleeping(counts) / BZ_IDLE_SLEEPER);
}

unsigned bz_idle_searching(struct bz_idle *idle)
{
    return (unsigned)searching(bz_load_relaxed(&idle->counts)); /* relaxed: a hint */
}

bool bz_idle_all_sleep(struct bz_idle *idle)
{
    unsigned bits = 0;
    for (unsigned w = 0; w * 64 < idle->procs; w++)
        bits += bz_bits_count(bz_load_relaxed(&idle->sleeper[w])); /* relaxed: monitor.c [S] */
    return bits >= bz_load_relaxed(&idle->active); /* relaxed: a proc that retires wakes up */
}

bool bz_idle_has_fences(struct bz_idle *idle)
{
    return (bz_load_relaxed(&idle->counts) & BZ_IDLE_FENCES) != 0; /* relaxed: a hint */
}

bool bz_idle_is_asleep(struct bz_idle *idle, unsigned proc)
{
    return (bz_load_relaxed(&idle->sleeper[proc / 64]) & bit_of(proc)) != 0; /* relaxed: a hint */
}

void bz_idle_check(struct bz_idle *idle)
{
    unsigned bits = 0;
    for (unsigned w = 0; w < BZ_IDLE_WORDS; w++)
        bits += bz_bits_count(bz_load_relaxed(&idle->sleeper[w])); /* relaxed: the set is unused */
    BZ_CHECK(bits == bz_idle_sleeping(idle), "idle set: %u bits, says %u", bits,
             bz_idle_sleeping(idle)); /* I1 */
    BZ_CHECK(bits <= idle->procs, "idle set: %u bits for %u procs", bits, idle->procs);
    BZ_CHECK(bz_idle_searching(idle) <= idle->procs, "idle set: %u of %u procs search",
             bz_idle_searching(idle), idle->procs); /* I3 */
}
