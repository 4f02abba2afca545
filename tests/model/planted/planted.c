/*
 * planted.c - one bug of each kind the checker catches.
 *
 * Each must be found, or the net has a hole; and each report is quoted in docs/model-checking.md, so
 * that one can learn to read them before one has to. The sections are quoted, too.
 */
#include "model.h"

/* ---- assertion ---- */
static bz_atomic(int) tickets;
static int sold[3];

static void sells_a_ticket(void)
{
    int n = bz_load_relaxed(&tickets);
    bz_store_relaxed(&tickets, n + 1);
    sold[m_self()] = n;
}

MODEL_FAILS(planted, assertion, "sold[1] != sold[2]")
{
    m_threads(sells_a_ticket, sells_a_ticket);
    m_assert(sold[1] != sold[2]);
}

/* ---- stale_read ---- */
static bz_atomic(int) document, is_ready;

static void writes_the_document(void)
{
    bz_store_relaxed(&document, 42);
    bz_store_relaxed(&is_ready, 1);
}

static void reads_the_document(void)
{
    if (bz_load_acquire(&is_ready))
        m_assert(bz_load_relaxed(&document) == 42);
}

MODEL_FAILS(planted, stale_read, "== 42")
{
    m_threads(writes_the_document, reads_the_document);
}

/* ---- data_race ---- */
static bz_atomic(int) has_message;
static bz_shared(int) message;

static void sends(void)
{
    bz_set(&message, 42);
    bz_store_relaxed(&has_message, 1);
}

static void receives(void)
{
    if (bz_load_acquire(&has_message))
        m_assert(bz_get(&message) == 42);
}

MODEL_FAILS(planted, data_race, "data race")
{
    m_threads(sends, receives);
}

/* ---- deadlock ---- */
static bz_atomic(uint32_t) fork_is_taken[2];

static void takes_fork(int i)
{
    while (bz_xchg_acquire(&fork_is_taken[i], 1) == 1)
        m_word_wait(&fork_is_taken[i], 1);
}

static void drops_fork(int i)
{
    bz_store_release(&fork_is_taken[i], 0);
    m_word_wake(&fork_is_taken[i], 1);
}

static void philosopher(void)
{
    int left = m_self() - 1, right = 1 - left;
    takes_fork(left);
    takes_fork(right);
    drops_fork(right);
    drops_fork(left);
}

MODEL_FAILS(planted, deadlock, "deadlock")
{
    m_settings()->spurious = 0;
    m_threads(philosopher, philosopher);
}

/* ---- lost_wakeup ---- */
static bz_atomic(uint32_t) mail;
static bz_atomic(uint32_t) sleepers;

static void waits_for_mail(void)
{
    while (bz_load_acquire(&mail) == 0) {
        bz_fetch_add_relaxed(&sleepers, 1);
        m_word_wait(&mail, 0);
        bz_fetch_sub_relaxed(&sleepers, 1);
    }
}

static void brings_mail(void)
{
    bz_store_release(&mail, 1);
    if (bz_load_relaxed(&sleepers) > 0) /* looked before the sleeper had counted itself? */
        m_word_wake(&mail, 1);
}

MODEL_FAILS(planted, lost_wakeup, "lost wakeup")
{
    m_threads(waits_for_mail, brings_mail);
}

/* ---- livelock ---- */
static bz_atomic(int) wants_in[3];

static void is_too_polite(void)
{
    int me = m_self(), other = 3 - me;
    bz_store_seqcst(&wants_in[me], 1);
    while (bz_load_seqcst(&wants_in[other]) == 1) {
        bz_store_seqcst(&wants_in[me], 0); /* after you */
        m_relax();
        bz_store_seqcst(&wants_in[me], 1); /* then I shall */
    }
    bz_store_seqcst(&wants_in[me], 0);
}

MODEL_FAILS(planted, livelock, "went round 3 times")
{
    m_settings()->livelock = 3;
    m_threads(is_too_polite, is_too_polite);
}

/* ---- endless_wait ---- */
static bz_atomic(int) is_inside[3];

static void never_says_it_is_through(void)
{
    int me = m_self(), other = 3 - me;
    bz_store_seqcst(&is_inside[me], 1);
    while (bz_load_seqcst(&is_inside[other]) == 1)
        m_relax();
}

MODEL_FAILS(planted, endless_wait, "nobody will store")
{
    m_threads(never_says_it_is_through, never_says_it_is_through);
}

/* ---- use_after_free ---- */
struct node {
    bz_shared(int) value;
};
static bz_atomic(struct node *) shared_node;

static void looks_at_the_node(void)
{
    struct node *n = bz_load_acquire(&shared_node);
    if (n != NULL)
        m_assert(bz_get(&n->value) == 7);
}

static void frees_the_node(void)
{
    struct node *n = bz_xchg_acqrel(&shared_node, NULL);
    m_free(n); /* another thread may have got it before */
}

MODEL_FAILS(planted, use_after_free, "use after free")
{
    struct node *n = m_alloc(sizeof *n);
    bz_set(&n->value, 7);
    bz_store_release(&shared_node, n);
    m_threads(looks_at_the_node, frees_the_node);
}

/* ---- double_free ---- */
static bz_atomic(int) references;
static void *counted;

static void drops_a_reference(void)
{
    int n = bz_load_acquire(&references) - 1;
    bz_store_release(&references, n);
    if (n == 0)
        m_free(counted);
}

static void drops_it_after_the_other(void)
{
    while (bz_load_acquire(&references) == 2)
        m_relax();
    bz_store_relaxed(&references, 0);
    m_free(counted);
}

MODEL_FAILS(planted, double_free, "double free")
{
    counted = m_alloc(8);
    bz_store_relaxed(&references, 2);
    m_settings()->leaks_are_fine = true;
    m_threads(drops_a_reference, drops_a_reference, drops_it_after_the_other);
}

/* ---- leak ---- */
static bz_atomic(void *) cache;

static void fills_the_cache(void)
{
    if (bz_load_acquire(&cache) == NULL)
        (void)bz_xchg_acqrel(&cache, m_alloc(8)); /* and what was in it by now? */
}

MODEL_FAILS(planted, leak, "leak")
{
    m_threads(fills_the_cache, fills_the_cache);
    m_free(bz_load_acquire(&cache));
}

/* ---- stuck_spin ---- */
static bz_atomic(int) go;

static void spins_without_yielding(void)
{
    while (bz_load_acquire(&go) == 0)
        ;
}

static void says_go(void)
{
    bz_store_release(&go, 1);
}

MODEL_FAILS(planted, stuck_spin, "spin that never yields")
{
    m_threads(spins_without_yielding, says_go);
}

/* ---- crash ---- */
static bz_atomic(int *) pointer;
static int target;

static void publishes_a_pointer(void)
{
    bz_store_release(&pointer, &target);
}

static void follows_it_unseen(void)
{
    *bz_load_acquire(&pointer) = 1;
}

MODEL_FAILS(planted, crash, "signal")
{
    m_threads(publishes_a_pointer, follows_it_unseen);
}
