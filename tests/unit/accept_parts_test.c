/*
 * Requirements for parts of the scheduler, checked from inside. Machines and procs refer to each
 * other, tasks have their own stacks, a proc that is never idle still polls its files, and a
 * program without files opens none.
 */
#include "harness.h"
#include "support/alone.h"
#include "support/holder.h"
#include "support/on_each.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bz_atomic.h"
#include "blitz.h"
#include "block/io.h"
#include "observe/view.h"
#include "os/look.h"
#include "proc/enter.h"
#include "proc/fresh.h"
#include "proc/place.h"
#include "proc/state.h"
#include "sched/loop.h"

/* ---- machines and procs ---- */

/* In the runtime, where the proc cannot be taken. False: it was taken before. */
static bool look_around(void)
{
    uint32_t was;
    struct bz_machine *m = bz_enter(&was);
    if (m != NULL) {
        struct bz_proc *p = m->proc;
        uint32_t word = bz_load_relaxed(&p->state); /* relaxed: ours */
        CHECK_LT(m->index, bz_machines_count(m->rt));
        CHECK(bz_machines_at(m->rt, m->index) == m);
        CHECK_LT(p->index, m->rt->proc_count);
        CHECK(&m->rt->procs[p->index] == p);
        CHECK(p->rt == m->rt);
        CHECK_EQ(bz_proc_state_of(word), BZ_PROC_HELD);
        CHECK(t_proc_holder(p) == m);
        CHECK(!m->is_searching); /* that was over before we ran */
    }
    bz_leave(was);
    return m != NULL;
}

static int looks_around(void *arg)
{
    (void)arg;
    int seen = 0;
    for (int i = 0; i < 100; i++) {
        seen += look_around();
        blitz_yield();
    }
    return seen;
}

static int all_look_around(void *arg)
{
    enum { N = 16 };
    blitz_task *t[N];
    int seen = 0;
    (void)arg;
    for (unsigned i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(looks_around, NULL, NULL, &t[i]), 0);
    for (unsigned i = 0; i < N; i++) {
        int result = 0;
        CHECK_EQ(blitz_task_join(t[i], &result, BLITZ_FOREVER), 0);
        seen += result;
    }
    CHECK_GT(seen, 0);
    return 0;
}

TEST(accept, a_machine_and_its_proc_name_each_other)
{
    t_on_each(all_look_around, NULL, 0);
}

/* ---- whose stack, whose task ---- */

static bool is_on_a_stack_of_the_pool(const void *address)
{
    char *low;
    return bz_stack_pool_find(&bz_machine_self()->rt->stacks, address, &low) != NULL;
}

static int stands_on_its_own(void *arg)
{
    char here = 0;
    struct bz_machine *m = bz_machine_self();
    blitz_task *me = arg != NULL ? *(blitz_task **)arg : NULL;
    CHECK(m->runner != NULL);
    CHECK(is_on_a_stack_of_the_pool(&here));
    CHECK(m->g0.sp != NULL); /* where the thread stood when it went over to ours */
    CHECK(!is_on_a_stack_of_the_pool(m->g0.sp));
    CHECK(m->current != NULL);
    CHECK(me == NULL || m->current == (struct bz_task *)me);
    return 0;
}

/* As a hook of the thread: before the first task, or after the last. */
static void nobody_runs(void *ctx)
{
    (void)ctx;
    CHECK(bz_task_self() == NULL);
    CHECK(bz_machine_self() == NULL);
}

static int each_on_its_own(void *arg)
{
    blitz_task *t;
    (void)arg;
    CHECK_EQ(stands_on_its_own(NULL), 0);
    CHECK_EQ(blitz_spawn(stands_on_its_own, &t, NULL, &t), 0);
    CHECK_EQ(blitz_task_join(t, NULL, blitz_after(60 * BLITZ_S)),
             0); /* with a deadline: not claimed */
    return 0;
}

/* Only the start and end of the loop use the thread's own stack; no task runs there. */
TEST(accept, tasks_run_on_stacks_of_ours_and_the_threads_own_runs_none)
{
    blitz_runtime_opts config = {
        .procs = 2, .thread_start = nobody_runs, .thread_stop = nobody_runs};
    CHECK_EQ(blitz_run(each_on_its_own, NULL, &config), 0);
}

/* ---- which worker runs a task ---- */

struct seen {
    bz_atomic(int) runs, may_end;
};

static int runs_until_told(void *arg)
{
    struct seen *s = arg;
    bz_store_release(&s->runs, 1);            /* look_for_machines */
    while (bz_load_relaxed(&s->may_end) == 0) /* relaxed: a flag */
        ;
    return 0;
}

static int parks(void *arg)
{
    (void)arg;
    return blitz_sleep_until(BLITZ_FOREVER);
}

/* How many machines have it as their current task. */
static unsigned machines_with(struct bz_runtime *rt, blitz_task *t)
{
    unsigned found = 0;
    for (unsigned i = 0; i < bz_machines_count(rt); i++)
        found += bz_look_word(&bz_machines_at(rt, i)->current) == (uintptr_t)t;
    return found;
}

static int look_for_machines(void *arg)
{
    struct bz_runtime *rt = bz_machine_self()->rt;
    struct seen s = {0};
    blitz_task *running, *parked;
    struct bz_view v;
    (void)arg;
    CHECK_EQ(blitz_spawn(parks, NULL, NULL, &parked), 0);
    CHECK_EQ(blitz_spawn(runs_until_told, &s, NULL, &running), 0);
    do { /* this task lives on: a hog may have this proc for a while */
        blitz_yield();
        bz_view_take(&v, (struct bz_task *)parked, false);
    } while (bz_load_acquire(&s.runs) == 0 || v.state != BZ_VIEW_WAITING); /* runs_until_told */

    CHECK_EQ(machines_with(rt, running), 1u);
    CHECK_EQ(machines_with(rt, blitz_task_current()), 1u);
    CHECK_EQ(machines_with(rt, parked), 0u);
    CHECK_EQ(v.proc, BZ_VIEW_NOWHERE);
    bz_view_take(&v, (struct bz_task *)running, false);
    CHECK_EQ(v.state, BZ_VIEW_RUNNING);
    CHECK_GE(v.proc, 0);
    CHECK_LT(v.proc, (int)rt->proc_count);

    bz_store_relaxed(&s.may_end, 1); /* relaxed: a flag */
    CHECK_EQ(blitz_task_join(running, NULL, BLITZ_FOREVER), 0);
    blitz_task_cancel(parked);
    CHECK_EQ(blitz_task_join(parked, NULL, BLITZ_FOREVER), 0);
    return 0;
}

/* A task that runs is the current one of exactly one machine; a task that waits is on none. */
TEST(accept, a_running_task_has_one_machine_and_a_waiting_one_has_none)
{
    CHECK_EQ(blitz_run(look_for_machines, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}

/* ---- thieves ---- */

/* Search with a ring that is full and a second proc that has nothing. */
static void search_with_a_full_ring(struct bz_machine *m)
{
    struct bz_runq *ring = &m->proc->ring;
    unsigned count = bz_runq_count(ring);
    uint64_t steals = bz_load_relaxed(&m->proc->counters.steals); /* relaxed: ours */
    CHECK_GT(count, 0u);
    for (int i = 0; i < 50; i++)
        CHECK_EQ(bz_search(m), 0u);
    CHECK_EQ(bz_runq_count(ring), count);
    CHECK_EQ(bz_load_relaxed(&m->proc->counters.steals), steals); /* relaxed: ours */
    if (m->is_searching) {                                        /* as find.c leaves the state */
        m->is_searching = false;
        bz_rouse(m->rt, bz_idle_found(&m->rt->idle));
    }
}

static int searches(void *arg)
{
    enum { N = 20 };
    struct seen s = {0};
    blitz_task *t[N], *hog;
    uint32_t was;
    (void)arg;
    CHECK_EQ(blitz_spawn(runs_until_told, &s, &(blitz_spawn_opts){.proc = BLITZ_ON_PROC(1)}, &hog),
             0);
    while (bz_load_acquire(&s.runs) == 0) /* runs_until_told: the other proc is busy */
        blitz_yield();
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(parks, NULL, NULL, &t[i]), 0);
    struct bz_machine *m = bz_enter(&was);
    CHECK_NOT_NULL(m);
    bz_fresh_publish(m);
    search_with_a_full_ring(m);
    bz_leave(was);
    bz_store_relaxed(&s.may_end, 1); /* relaxed: a flag */
    CHECK_EQ(blitz_task_join(hog, NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < N; i++) {
        blitz_task_cancel(t[i]);
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    }
    return 0;
}

/* A worker that takes half of its own ring for stolen would run some tasks twice, or leave them out. */
TEST(accept, a_searcher_takes_nothing_from_its_own_ring)
{
    t_hold_procs(); /* the hog keeps its proc, and we keep ours */
    CHECK_EQ(blitz_run(searches, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}

/* As a thief that has claimed the `count` oldest entries and is about to copy them: runq.c. */
static void claim(struct bz_runq *ring, unsigned count)
{
    uint64_t real = bz_runq_real(bz_load_relaxed(&ring->head));       /* relaxed: no other thread */
    bz_store_relaxed(&ring->head, bz_runq_pack(count, real + count)); /* relaxed: likewise */
}

/* It has copied them out, into the injector, and lets the slots go. */
static void finish_copy(struct bz_runtime *rt, struct bz_runq *ring, uint64_t from, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        bz_injector_push(&rt->injector, bz_get(bz_runq_slot(ring, from + i)));
    uint64_t real = bz_runq_real(bz_load_relaxed(&ring->head)); /* relaxed: no other thread */
    bz_store_relaxed(&ring->head, bz_runq_pack(0, real));       /* relaxed: likewise */
}

enum { CLAIMED = 5, SPILLED = 128 };

/* In the runtime: fill the ring, and push one more while a thief copies. */
static void push_beside_a_thief(struct bz_machine *m, blitz_task **t, int *n)
{
    struct bz_runq *ring = &m->proc->ring;
    while (bz_runq_count(ring) < BZ_RUNQ_CAP) {
        CHECK_EQ(blitz_spawn(parks, NULL, NULL, &t[(*n)++]), 0);
        bz_fresh_publish(m);
    }
    size_t before = bz_injector_length(&m->rt->injector);
    uint64_t from = bz_runq_real(bz_load_relaxed(&ring->head)); /* relaxed: ours */
    claim(ring, CLAIMED);
    CHECK_EQ(blitz_spawn(parks, NULL, NULL, &t[(*n)++]), 0); /* drives one out of the next slot */
    bz_fresh_publish(m);
    CHECK_EQ(bz_injector_length(&m->rt->injector) - before, SPILLED + 1u);
    CHECK_EQ(bz_runq_count(ring), BZ_RUNQ_CAP - CLAIMED - SPILLED);
    finish_copy(m->rt, ring, from, CLAIMED);
}

static int spills_beside_a_thief(void *arg)
{
    static blitz_task *t[BZ_RUNQ_CAP + 10];
    struct seen s = {0};
    blitz_task *hog;
    uint32_t was;
    int n = 0;
    (void)arg;
    CHECK_EQ(blitz_spawn(runs_until_told, &s, &(blitz_spawn_opts){.proc = BLITZ_ON_PROC(1)}, &hog),
             0);
    while (bz_load_acquire(&s.runs) == 0) /* runs_until_told: the other proc is busy */
        blitz_yield();
    struct bz_machine *m = bz_enter(&was);
    CHECK_NOT_NULL(m);
    push_beside_a_thief(m, t, &n);
    bz_leave(was);
    bz_store_relaxed(&s.may_end, 1); /* relaxed: a flag */
    CHECK_EQ(blitz_task_join(hog, NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < n; i++) {
        blitz_task_cancel(t[i]);
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    }
    return 0;
}

/* Slots claimed by a thief must not be overwritten, so the spill makes no room and the new task
 * goes to the injector, behind the spilled ones. */
TEST(accept, a_push_beside_a_thief_at_work_goes_to_the_injector)
{
    t_hold_procs(); /* the hog keeps its proc, and we keep ours */
    CHECK_EQ(blitz_run(spills_beside_a_thief, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}

/* ---- ids ---- */

static int ids_beyond_32_bits(void *arg)
{
    enum { N = 6 };
    struct seen s = {.may_end = 1};
    blitz_task *t[N];
    struct bz_task_home *home = &bz_machine_self()->last->tasks;
    (void)arg;
    home->id_next = UINT64_C(0xfffffffe); /* as if so many had been spawned */
    home->id_end = home->id_next + N;
    for (unsigned i = 0; i < N; i++)
        CHECK_EQ(blitz_spawn(runs_until_told, &s, NULL, &t[i]), 0);
    for (unsigned i = 0; i < N; i++) {
        CHECK_EQ(blitz_task_id(t[i]), UINT64_C(0xfffffffe) + i);
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    }
    return 0;
}

/* A server that spawns a million tasks a second needs more than an hour's worth of ids. */
TEST(accept, ids_have_64_bits)
{
    CHECK_EQ(sizeof(blitz_task_id(NULL)), 8u);
    CHECK_EQ(t_run_alone(ids_beyond_32_bits, NULL), 0);
}

/* ---- lines ---- */

/* Thieves write the head, the owner the tail: each on a cache line of its own, with the slots, which
 * are the owner's to write, behind the tail. */
TEST(accept, the_ends_of_a_ring_stand_on_lines_of_their_own)
{
    size_t head = offsetof(struct bz_runq, head), tail = offsetof(struct bz_runq, tail);
    CHECK_EQ(head % BZ_LINE, 0u);
    CHECK_EQ(tail % BZ_LINE, 0u);
    CHECK_NE(head / BZ_LINE, tail / BZ_LINE);
    CHECK_GT(offsetof(struct bz_runq, slot), tail);
}

/* ---- how many ---- */

static int procs_here(void *arg)
{
    (void)arg;
    return (int)bz_machine_self()->rt->proc_count;
}

TEST(accept, there_are_as_many_procs_as_cpus_the_process_may_use)
{
    unsetenv("BLITZ_PROCS");
    CHECK_EQ(blitz_run(procs_here, NULL, NULL), bz_os_cpus(&bz_os_system));
}

/* ---- I/O beside tasks that never end ---- */

struct line {
    int fd[2];
    bz_atomic(int) is_over;
    blitz_stats before, after;
};

static int yields_until_over(void *arg)
{
    struct line *l = arg;
    while (!bz_load_relaxed(&l->is_over)) /* relaxed: a flag */
        blitz_yield();
    return 0;
}

static int answers(void *arg)
{
    struct line *l = arg;
    char byte;
    for (;;) {
        CHECK(blitz_fd_wait(l->fd[1], BLITZ_FD_READ, BLITZ_FOREVER) & BLITZ_FD_READ);
        if (read(l->fd[1], &byte, 1) != 1)
            return 0;
        CHECK_EQ(write(l->fd[1], &byte, 1), 1);
    }
}

/* Ask and wait for the answer, `n` times; each side is woken by the poll. */
static void ask_and_hear(struct line *l, int n)
{
    char byte = 'x';
    for (int i = 0; i < n; i++) {
        CHECK_EQ(write(l->fd[0], &byte, 1), 1);
        CHECK(blitz_fd_wait(l->fd[0], BLITZ_FD_READ, BLITZ_FOREVER) & BLITZ_FD_READ);
        CHECK_EQ(read(l->fd[0], &byte, 1), 1);
    }
}

enum { ASKED = 200, YIELDERS = 3 };

static int asks_beside_yielders(void *arg)
{
    struct line *l = arg;
    blitz_task *t[YIELDERS], *answering;
    CHECK_EQ(blitz_spawn(answers, l, NULL, &answering), 0);
    for (int i = 0; i < YIELDERS; i++)
        CHECK_EQ(blitz_spawn(yields_until_over, l, NULL, &t[i]), 0);
    ask_and_hear(l, ASKED / 10);
    bz_store_relaxed(&l->is_over, 1); /* relaxed: a flag */
    for (int i = 0; i < YIELDERS; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(shutdown(l->fd[0], SHUT_WR), 0);
    CHECK_EQ(blitz_task_join(answering, NULL, BLITZ_FOREVER), 0);
    return 0;
}

static void on_a_line(int (*fn)(void *), struct line *l)
{
    bz_atomic_init(&l->is_over, 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, l->fd), 0);
    CHECK_EQ(t_run_alone(fn, l), 0);
    close(l->fd[0]);
    close(l->fd[1]);
}

/* The ring is never empty, so no machine sleeps in the poll; no task runs for long, so the monitor
 * has no reason to help. */
TEST(accept, a_proc_that_is_never_idle_hears_of_its_files)
{
    struct line l;
    on_a_line(asks_beside_yielders, &l);
}

static int asks_alone(void *arg)
{
    struct line *l = arg;
    blitz_task *answering;
    CHECK_EQ(blitz_spawn(answers, l, NULL, &answering), 0);
    CHECK_EQ(blitz_stats_read(NULL, &l->before), 0);
    ask_and_hear(l, ASKED);
    CHECK_EQ(blitz_stats_read(NULL, &l->after), 0);
    CHECK_EQ(shutdown(l->fd[0], SHUT_WR), 0);
    CHECK_EQ(blitz_task_join(answering, NULL, BLITZ_FOREVER), 0);
    return 0;
}

/* Not through the queue for all. The monitor polls for a stalled proc, and queues tasks there; that
 * must be the exception. */
TEST(accept, a_file_waiter_resumes_on_the_proc_that_polled_the_event)
{
    struct line l;
    on_a_line(asks_alone, &l);
    uint64_t injected = l.after.injected - l.before.injected;
    t_note("%llu of %d wakes went through the injector", (unsigned long long)injected, 2 * ASKED);
    CHECK_LT(injected, ASKED);
    CHECK_GE(l.after.parked - l.before.parked, ASKED); /* they did wait */
}

/* The worker has a file to poll, and always a task to run. */
static int works_beside_a_file(void *arg)
{
    struct line *l = arg;
    blitz_task *t[YIELDERS], *answering;
    CHECK_EQ(blitz_spawn(answers, l, NULL, &answering), 0);
    ask_and_hear(l, 1); /* the file is in the poll now, and `answering` waits there */
    for (int i = 0; i < YIELDERS; i++)
        CHECK_EQ(blitz_spawn(yields_until_over, l, NULL, &t[i]), 0);
    blitz_yield();
    CHECK_EQ(blitz_stats_read(NULL, &l->before), 0);
    for (int i = 0; i < 2000; i++)
        blitz_yield();
    CHECK_EQ(blitz_stats_read(NULL, &l->after), 0);
    bz_store_relaxed(&l->is_over, 1); /* relaxed: a flag */
    for (int i = 0; i < YIELDERS; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(shutdown(l->fd[0], SHUT_WR), 0);
    CHECK_EQ(blitz_task_join(answering, NULL, BLITZ_FOREVER), 0);
    return 0;
}

/* A wait in the poll while tasks are ready would hold up all of them. */
TEST(accept, a_worker_that_has_work_does_not_wait_for_files)
{
    struct line l;
    on_a_line(works_beside_a_file, &l);
    CHECK_EQ(l.after.sleeps - l.before.sleeps, 0u);
    CHECK_GE(l.after.yielded - l.before.yielded, 2000u);
}

static int uses_no_file(void *arg)
{
    struct bz_runtime *rt = bz_machine_self()->rt;
    (void)arg;
    for (int i = 0; i < 10; i++)
        CHECK_EQ(blitz_sleep(BLITZ_US), 0);
    for (unsigned i = 0; i < rt->proc_count; i++) {
        CHECK(!bz_poll_is_used(&rt->procs[i].poll));
        CHECK(bz_load_relaxed(&rt->procs[i].poll.own) ==
              NULL); /* relaxed: no other thread uses it */
    }
    return 0;
}

/* A poll without files is not called, and costs no descriptor. */
TEST(accept, a_proc_without_files_has_no_poll_to_ask)
{
    CHECK_EQ(blitz_run(uses_no_file, NULL, &(blitz_runtime_opts){.procs = 2}), 0);
}
