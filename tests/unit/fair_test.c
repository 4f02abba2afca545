/*
 * Hogs on real threads. The scenes are those of support/fair_scenes.h: a hog burns until another
 * task has made progress that a blocking hog would prevent. So a runtime in which hogs block other
 * tasks does not end, and the harness reports it. No time is measured here (bench/fair does that;
 * fair_sim.c in virtual time).
 */
#include "support/fair_calls.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/on_each.h"

static void hog_step(void)
{
    bz_os_relax(&bz_os_system, 0);
}

/* ---- 1 to N hogs on N procs, and two more ---- */

static void beside_hogs(unsigned procs, unsigned hogs)
{
    t_watch("%u hogs on %u procs", hogs, procs);
    CHECK_EQ(blitz_run(others_beside_hogs, (void *)(uintptr_t)hogs,
                       &(blitz_runtime_opts){.procs = procs}),
             0);
}

TEST(fair, beside_1_to_n_endless_loops_on_n_procs_all_other_tasks_run)
{
    for (unsigned procs = 1; procs <= 3; procs++)
        for (unsigned hogs = 1; hogs <= procs; hogs++)
            beside_hogs(procs, hogs);
}

TEST(fair, and_beside_two_more_than_there_are_procs)
{
    for (unsigned procs = 1; procs <= 3; procs++)
        beside_hogs(procs, procs + 2);
}

/* Bug class 45: a limit instead of a mechanism. */
TEST(fair, bug_45_and_beside_many_more_than_there_are_procs)
{
    for (unsigned procs = 1; procs <= 3; procs++)
        beside_hogs(procs, 24);
}

TEST(fair, a_hog_and_another_spawned_together_from_outside)
{
    for (unsigned i = 0, n = (unsigned)t_scaled(30); i < n; i++)
        outside_spawns_a_hog_and_another(&bz_os_system, 1 + i % 3, i % 2 != 0);
}

/* ---- a hog where one would not look for it ---- */

TEST(fair, a_hog_in_a_poll)
{
    t_on_each(scene_poll, NULL, 0);
}

TEST(fair, a_hog_in_the_destructor_of_a_local)
{
    t_on_each(scene_local, NULL, 0);
}

TEST(fair, a_hog_in_the_destructor_of_a_state)
{
    t_on_each(scene_drop_state, NULL, 0);
}

TEST(fair, a_hog_in_the_destructor_of_a_result)
{
    t_on_each(scene_drop_result, NULL, 0);
}

TEST(fair, a_hog_in_a_foreign_waker_that_an_ending_task_wakes)
{
    t_on_each(scene_waker_of_a_join, NULL, 0);
}

TEST(fair, a_hog_in_a_foreign_waker_that_a_timer_wakes)
{
    t_on_each(scene_waker_of_a_timer, NULL, 0);
}

TEST(fair, hogs_in_a_forked_job_and_its_parent)
{
    t_on_each(scene_jobs, NULL, 0);
}

/* ---- other ways to block a thread ---- */

/* Unmarked: the runtime does not know. */
static int reads(void *fd)
{
    char c;
    CHECK_EQ(read(*(int *)fd, &c, 1), 1);
    return c;
}

static int beside_reads(void *arg)
{
    int fd[2];
    blitz_task *t[3];
    (void)arg;
    CHECK_EQ(pipe(fd), 0);
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++)
        t[i] = hog_spawn(reads, &fd[0]);
    others_live();
    CHECK_EQ(write(fd[1], "aaa", 3), 3);
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++)
        CHECK_EQ(hog_join(t[i]), 'a');
    close(fd[0]);
    close(fd[1]);
    return 0;
}

TEST(fair, an_unmarked_read_that_blocks)
{
    t_on_each(beside_reads, NULL, 0);
}

static int locks(void *mutex)
{
    CHECK_EQ(pthread_mutex_lock(mutex), 0);
    return pthread_mutex_unlock(mutex);
}

/* A plain thread holds it, and releases it when all other tasks have made progress. */
struct foreign {
    pthread_mutex_t mutex;
    pthread_barrier_t is_held;
    hog_flag over;
};

static void *holds(void *arg)
{
    struct foreign *f = arg;
    pthread_mutex_lock(&f->mutex);
    pthread_barrier_wait(&f->is_held);
    while (bz_load_acquire(&f->over) == 0) /* pairs with hog_let_go */
        sched_yield();
    pthread_mutex_unlock(&f->mutex);
    return NULL;
}

static int beside_a_foreign_mutex(void *arg)
{
    struct foreign f = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    blitz_task *t[3];
    pthread_t thread;
    (void)arg;
    CHECK_EQ(pthread_barrier_init(&f.is_held, NULL, 2), 0);
    CHECK_EQ(pthread_create(&thread, NULL, holds, &f), 0);
    pthread_barrier_wait(&f.is_held);
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++)
        t[i] = hog_spawn(locks, &f.mutex);
    others_live();
    hog_let_go(&f.over);
    for (size_t i = 0; i < BZ_ARRAY_LEN(t); i++)
        CHECK_EQ(hog_join(t[i]), 0);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&f.is_held);
    return 0;
}

TEST(fair, a_mutex_that_a_plain_thread_holds)
{
    t_on_each(beside_a_foreign_mutex, NULL, 0);
}

/* Page after page, given back and touched again. */
static int faults(void *over)
{
    enum { BYTES = 1 << 20 };
    char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    while (bz_load_acquire((hog_flag *)over) == 0) { /* pairs with hog_let_go */
        for (size_t i = 0; i < BYTES; i += 4096)
            p[i]++;
        CHECK_EQ(madvise(p, BYTES, MADV_DONTNEED), 0);
    }
    return munmap(p, BYTES);
}

static int beside_page_faults(void *arg)
{
    hog_flag over = 0;
    (void)arg;
    blitz_task *other = hog_spawn(faults, &over);
    beside(faults, &over, &over, 0);
    return hog_join(other);
}

TEST(fair, a_storm_of_page_faults)
{
    t_on_each(beside_page_faults, NULL, 0);
}

/* ---- the way back ---- */

TEST(fair, a_task_without_its_proc_may_call_everything)
{
    t_on_each(scene_each_call, NULL, 0);
}

TEST(fair, and_so_may_many_at_once)
{
    t_on_each(scene_all_calls, NULL, 0);
}

TEST(fair, a_poll_that_has_lost_its_proc_may_wait_yield_and_end)
{
    t_on_each(scene_polls_lose_it, NULL, 0);
}

/* Bug class 6, tokio#4730: the blocked worker holds the timers that would end its wait. */
TEST(fair, bug_06_tokio_4730_a_task_waits_by_burning_for_one_that_waits_for_a_timer)
{
    t_on_each(scene_tokio_4730, NULL, 0);
}

/* A runtime that ends while hogs burn: the last of them ends it. */
static int leaves_hogs(void *over)
{
    for (int i = 0; i < 3; i++)
        blitz_task_detach(hog_spawn(hog_main, over));
    lose_proc();
    return 0;
}

static void *lets_go_later(void *over)
{
    hog_let_go(over);
    return NULL;
}

TEST(fair, a_shutdown_with_hogs_times_out_and_is_repeated)
{
    static const unsigned procs[] = {1, 2, 8};
    for (size_t i = 0; i < BZ_ARRAY_LEN(procs); i++) {
        hog_flag over = 0;
        blitz_runtime *rt;
        pthread_t thread;
        t_watch("%u procs", procs[i]);
        CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = procs[i]}, &rt), 0);
        CHECK_EQ(blitz_runtime_block_on(rt, leaves_hogs, &over), 0);
        CHECK_EQ(blitz_runtime_shutdown(rt, blitz_after(BLITZ_MS)), -ETIMEDOUT);
        CHECK_EQ(pthread_create(&thread, NULL, lets_go_later, &over), 0);
        CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(blitz_runtime_unref(rt), 0);
    }
}
