/*
 * deque_model.c - the private list and the exposed slot: every job runs once, and the oldest is
 * exposed.
 *
 *   covers: src/queue/deque.h src/queue/deque.c include/blitz/fork.h
 *   needs: src/queue/retake.c src/queue/membarrier.c src/os/lock.c
 *   defines: BZ_DEQUE_SHELF=2 BZ_LOCK_SPINS=1
 *
 * The owner forks and joins with the inline code of fork.h; thieves take the exposed job. `payload`
 * is the data of a job: written before the fork, and accessed by the runner of the job.
 */
#include "model.h"
#include "model_os.h"

/* As fork.h has it. */
#define BLITZ_PEEK_(p) bz_load_relaxed((bz_atomic(uintptr_t) *)(p)) /* relaxed: deque.c [H] */
#define BLITZ_POKE_(p, v) bz_store_release((bz_atomic(uintptr_t) *)(p), (uintptr_t)(v))
#define BLITZ_ORDER_() bz_compiler_barrier()
#include "queue/deque.h"
#include "queue/membarrier.h"
#include "queue/retake.h"

enum { JOBS = 3 };

static struct bz_deque deque;
static struct blitz_job jobs[JOBS];
static bz_shared(int) payload[JOBS];
static int runs[JOBS]; /* how often the payload was touched */
static int stolen, had_back;

static int job_task; /* an address */

static void given_a_deque(void)
{
    bz_deque_init(&deque, false);
    stolen = had_back = 0;
    for (int i = 0; i < JOBS; i++)
        runs[i] = 0;
}

static void run(struct blitz_job *job)
{
    int i = (int)(job - jobs);
    m_assert(bz_get(&payload[i]) == 10 + i); /* written, and not accessed by others */
    bz_set(&payload[i], 20 + i);
    runs[i]++;
}

static void do_fork(int i)
{
    bz_set(&payload[i], 10 + i);
    if (!blitz_push_(&deque.ends, &jobs[i]))
        (void)!bz_deque_share(&deque, &job_task);
}

static void do_join(int i)
{
    if (blitz_pop_(&deque.ends, &jobs[i])) {
        run(&jobs[i]);
        return;
    }
    bool is_mine = bz_deque_take_back(&deque, &jobs[i]);
    (void)!bz_deque_share(&deque, &job_task);
    if (is_mine) {
        had_back++;
        run(&jobs[i]);
    }
}

static void steals_once(void)
{
    struct blitz_job *job = bz_deque_steal(&deque);
    if (job != NULL) {
        m_assert(job->task_ == &job_task);
        run(job);
        stolen++;
    }
}

static void steals_twice(void)
{
    steals_once();
    steals_once();
}

static void each_ran_once(int count)
{
    for (int i = 0; i < count; i++)
        m_assert(runs[i] == 1);
    bz_deque_check(&deque);
}

/* ---- exactly once ---- */

static void forks_and_joins_one(void)
{
    do_fork(0);
    do_join(0);
}

/* deque.c [A]: one job, its owner and two thieves. */
MODEL(deque, bug_03_a_lone_job_is_run_by_one_of_three)
{
    given_a_deque();
    m_threads(forks_and_joins_one, steals_once, steals_once);
    each_ran_once(1);
    m_sometimes(stolen == 1);
    m_sometimes(had_back == 1);
}

static void forks_and_joins_three(void)
{
    for (int i = 0; i < JOBS; i++)
        do_fork(i);
    for (int i = JOBS - 1; i >= 0; i--)
        do_join(i);
}

MODEL(deque, every_job_is_run_once_by_its_owner_or_a_thief)
{
    given_a_deque();
    m_threads(forks_and_joins_three, steals_twice);
    each_ran_once(JOBS);
    m_sometimes(stolen == 0);
    m_sometimes(stolen == 2);
}

/* The slot is filled, emptied and filled again under the eyes of a thief. */
static void forks_and_joins_again(void)
{
    forks_and_joins_one();
    do_fork(1);
    do_join(1);
}

MODEL(deque, a_slot_that_is_used_again_gives_each_job_once)
{
    given_a_deque();
    m_threads(forks_and_joins_again, steals_once, steals_once);
    each_ran_once(2);
}

/* ---- the oldest is always exposed ---- */

/* I3: an empty slot, work to expose, and no attention: the work would never be exposed. */
static void attention_is_not_lost(void)
{
    bool has_private = deque.ends.newest_ != 0 || deque.shelf_head != deque.shelf_tail;
    if (!bz_deque_has_work(&deque) && has_private)
        m_assert(bz_load_relaxed((bz_atomic(uintptr_t) *)&deque.ends.attention_) != 0);
}

static void forks_three(void)
{
    for (int i = 0; i < JOBS; i++)
        do_fork(i);
}

/* deque.c [C]: one thief's attention comes late, when the slot is full again and the next thief is
 * about to empty it. */
MODEL(deque, attention_is_not_lost_between_two_thieves)
{
    given_a_deque();
    m_threads(forks_three, steals_once, steals_once);
    attention_is_not_lost();
    m_sometimes(stolen == 2);
}

MODEL(deque, attention_is_not_lost_to_a_thief_that_comes_twice)
{
    given_a_deque();
    m_threads(forks_three, steals_twice);
    attention_is_not_lost();
}

static void forks_evacuates_and_forks(void)
{
    struct blitz_job *job;
    do_fork(0);
    if ((job = bz_deque_take_oldest(&deque, &job_task)) != NULL)
        run(job);
    do_fork(1);
    do_fork(2);
}

/* deque.c [C]: a thief of the last frame's job is slow; its attention comes when another job is
 * exposed, and perhaps upon that of the thief who has just taken it. */
MODEL(deque, attention_that_comes_late_hides_no_other)
{
    given_a_deque();
    m_threads(forks_evacuates_and_forks, steals_once, steals_once);
    attention_is_not_lost();
    m_sometimes(stolen == 2);
}

static void alerts(void)
{
    bz_deque_alert(&deque);
}

/* deque.c [C]: the monitor's 1 upon a thief's, when nothing was taken by it. */
MODEL(deque, an_alert_hides_no_thief_and_is_answered)
{
    given_a_deque();
    m_threads(forks_three, steals_once, alerts);
    attention_is_not_lost();
    m_sometimes(stolen == 1);
}

static void halts(void)
{
    bz_deque_halt(&deque);
}

/* The same of the taker's word, which it leaves behind where it must not take. */
MODEL(deque, a_halt_hides_no_thief_and_is_answered)
{
    given_a_deque();
    m_threads(forks_three, steals_once, halts);
    attention_is_not_lost();
    m_sometimes(stolen == 1);
}

/* ---- evacuation ---- */

static void forks_and_evacuates(void)
{
    struct blitz_job *job;
    for (int i = 0; i < JOBS; i++)
        do_fork(i);
    while ((job = bz_deque_take_oldest(&deque, &job_task)) != NULL)
        run(job);
    m_assert(bz_deque_is_empty(&deque));
    for (int i = JOBS - 1; i >= 0; i--) /* they have left: a join must not find them */
        m_assert(!blitz_pop_(&deque.ends, &jobs[i]) && !bz_deque_take_back(&deque, &jobs[i]));
}

/* The frame is left while a thief is at the slot: each job goes one way. */
MODEL(deque, an_evacuated_job_is_not_stolen)
{
    given_a_deque();
    m_threads(forks_and_evacuates, steals_twice);
    each_ran_once(JOBS);
    m_sometimes(stolen == 0);
    m_sometimes(stolen == 1);
}

/* ---- all of it is taken from a frame that is long at it ---- */

static struct bz_retake retake;
static struct bz_barrier barrier;
static int fetched; /* jobs the taker got */

static void given_an_owner_in_user_code(void)
{
    given_a_deque();
    bz_barrier_init(&barrier, &m_os);
    bz_retake_init(&retake, &m_os, false);
    bz_store_relaxed(&retake.where, BZ_IN_USER);
    fetched = 0;
}

/* The long ways shake hands, as those of job.c do. */
static void enter(uint32_t *was)
{
    m_assert(bz_retake_enter(&retake, was));
    bz_deque_catch_up(&deque);
}

static void fork_in_user_code(int i)
{
    uint32_t was;
    bz_set(&payload[i], 10 + i);
    if (blitz_push_(&deque.ends, &jobs[i]))
        return;
    enter(&was);
    (void)!bz_deque_share(&deque, &job_task);
    bz_retake_leave(&retake, was);
}

static void join_in_user_code(int i)
{
    uint32_t was;
    if (blitz_pop_(&deque.ends, &jobs[i])) {
        run(&jobs[i]);
        return;
    }
    enter(&was);
    bool is_mine = bz_deque_take_back(&deque, &jobs[i]);
    if (bz_deque_has_private(&deque))
        (void)!bz_deque_share(&deque, &job_task);
    bz_retake_leave(&retake, was);
    if (is_mine)
        run(&jobs[i]);
}

static void takes_all(void)
{
    struct blitz_job *all = NULL, *next;
    bz_retake_ask(&retake);
    bz_deque_halt(&deque);
    bz_barrier_pay(&barrier);
    if (bz_retake_may(&retake))
        all = bz_deque_take_all(&deque, &job_task);
    bz_retake_end(&retake, false);
    for (; all != NULL; all = next, fetched++) {
        next = (struct blitz_job *)all->link_;
        m_assert(all->task_ == &job_task);
        run(all);
    }
}

static void forks_and_joins_two(void)
{
    fork_in_user_code(0);
    fork_in_user_code(1);
    join_in_user_code(1);
    join_in_user_code(0);
}

/* deque.c [H]: whatever the frame is at, each job is its own or the taker's. */
MODEL(deque, a_job_taken_during_user_code_runs_once)
{
    given_an_owner_in_user_code();
    m_threads(forks_and_joins_two, takes_all);
    each_ran_once(2);
    m_sometimes(fetched == 0);
    m_sometimes(fetched == 1);
    m_sometimes(fetched == 2);
}

static void joins_two_and_forks_one(void)
{
    join_in_user_code(1);
    fork_in_user_code(2);
    join_in_user_code(2);
    join_in_user_code(0);
}

/* The same for jobs that no thief has seen yet, so that the owner uses only inline code. */
MODEL(deque, a_list_is_cut_where_it_was_taken)
{
    given_an_owner_in_user_code();
    fork_in_user_code(0);
    fork_in_user_code(1);
    m_threads(joins_two_and_forks_one, takes_all);
    each_ran_once(JOBS);
    m_sometimes(fetched == 0);
    m_sometimes(fetched == 2);
}

static void joins_two_in_user_code(void)
{
    join_in_user_code(1);
    join_in_user_code(0);
}

/* A thief stores its 1 upon the taker's: then the owner does not know of the taker, who must not take. */
MODEL(deque, a_thief_beside_the_taker_takes_the_exposed_job)
{
    given_an_owner_in_user_code();
    fork_in_user_code(0);
    fork_in_user_code(1);
    m_threads(joins_two_in_user_code, takes_all, steals_once);
    each_ran_once(2);
    m_sometimes(stolen == 1 && fetched == 1);
}

static void takes_without_paying(void)
{
    struct blitz_job *all = NULL, *next;
    bz_retake_ask(&retake);
    bz_deque_halt(&deque);
    bz_fence_seqcst(); /* on this side alone */
    if (bz_retake_may(&retake))
        all = bz_deque_take_all(&deque, &job_task);
    bz_retake_end(&retake, false);
    for (; all != NULL; all = next) {
        next = (struct blitz_job *)all->link_;
        run(all);
    }
}

MODEL_FAILS(deque, a_taker_without_a_barrier_takes_a_job_of_the_owner, "data race")
{
    given_an_owner_in_user_code();
    m_threads(forks_and_joins_two, takes_without_paying);
}
