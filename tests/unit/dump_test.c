/* blitz/dump.h: the state of all tasks, even if no worker responds. */
#include "harness.h"

#include <fcntl.h>
#include <unistd.h>

#include "blitz.h"
#include "observe/dump.h"
#include "sim/fault.h"
#include "proc/state.h"
#include "runtime/runtime.h"
#include "support/alone.h"
#include "support/deny.h"
#include "support/dumped.h"
#include "support/event.h"
#include "support/sanitizers.h"
#include "wait/wait.h"

static struct t_dumped seen;

/* ---- content of a dump ---- */

/* A fiber that waits for a test to let it go. */
static int waits(void *event)
{
    t_event_await(event);
    return 0;
}

static int sleeps_long(void *arg)
{
    (void)arg;
    return blitz_sleep(3600 * BLITZ_S) == -ECANCELED ? 0 : 1;
}

static int joins(void *task)
{
    return blitz_task_join(task, NULL, BLITZ_FOREVER);
}

static blitz_task *spawn(int (*fn)(void *), void *arg, const char *name)
{
    blitz_task *t;
    CHECK_EQ(blitz_spawn(fn, arg, &(blitz_spawn_opts){.name = name}, &t), 0);
    return t;
}

/* On one proc: all that were spawned run until they wait. */
static void until_they_wait(void)
{
    for (int i = 0; i < 10; i++)
        blitz_yield();
}

static blitz_poll until_cancelled(void *state, blitz_cx *cx)
{
    (void)state;
    (void)cx;
    return blitz_is_cancelled() ? BLITZ_READY : BLITZ_PENDING;
}

static int shows_each_kind_of_wait(void *arg)
{
    char want[64];
    struct t_event event;
    (void)arg;
    t_event_init(&event, bz_machine_self()->rt->os);
    blitz_task *sleeper = spawn(sleeps_long, NULL, "sleeper");
    unsigned long long id = blitz_task_id(sleeper);
    blitz_task_ref(sleeper);
    blitz_task *joiner = spawn(joins, sleeper, "joiner");
    blitz_task *waiter = spawn(waits, &event, "waiter"), *poll;
    blitz_spawn_opts named = {.name = "poll"};
    CHECK_EQ(blitz_spawn_poll(until_cancelled, NULL, 0, &named, &poll), 0);
    until_they_wait();

    t_dump(&seen, NULL, 0);

    snprintf(want, sizeof want, "task %llu \"sleeper\" (fiber): waiting: sleep for ", id);
    const char *line = t_dump_line(&seen, want);
    CHECK(strstr(line, ", deadline in 59 min") < strchr(line, '\n'));
    snprintf(want, sizeof want, "\"joiner\" (fiber): waiting: join of task %llu", id);
    CHECK(t_dump_has(&seen, want));
    CHECK(t_dump_has(&seen, "\"waiter\" (fiber): waiting: event"));
    CHECK(t_dump_has(&seen, "\"poll\" (poll): waiting: wake"));
    CHECK(t_dump_has(&seen, "\"main\" (fiber): running on proc 0"));
    CHECK(t_dump_has(&seen, "runtime \"blitz\": 1 procs"));
    CHECK(t_dump_has(&seen, "proc 0: running task"));
    CHECK(t_dump_has(&seen, "timer in"));

    blitz_task_cancel(sleeper);
    blitz_task_cancel(poll);
    CHECK_EQ(blitz_task_join(poll, NULL, BLITZ_FOREVER), 0);
    t_event_set(&event);
    CHECK_EQ(blitz_task_join(joiner, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_task_join(waiter, NULL, BLITZ_FOREVER), 0);
    blitz_task_detach(sleeper);
    return 0;
}

TEST(dump, a_task_is_shown_with_its_wait)
{
    CHECK_EQ(t_run_alone(shows_each_kind_of_wait, NULL), 0);
}

static int shows_the_place(void *arg)
{
    char want[64];
    blitz_task *t;
    (void)arg;
    blitz_spawn_opts opts = {.name = BLITZ_HERE};
    snprintf(want, sizeof want, "dump_test.c:%d", __LINE__ - 1);
    CHECK_STR_EQ(opts.name + strlen(opts.name) - strlen(want), want);
    opts.name += strlen(opts.name) - strlen(want); /* a compiler may give the whole path */
    CHECK_EQ(blitz_spawn(sleeps_long, NULL, &opts, &t), 0);
    until_they_wait();

    t_dump(&seen, NULL, 0);

    snprintf(want, sizeof want, "\"%s\" (fiber): waiting: sleep", opts.name);
    CHECK(t_dump_has(&seen, want));
    blitz_task_cancel(t);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

TEST(dump, a_task_can_be_named_after_the_place_of_its_spawn)
{
    CHECK_EQ(t_run_alone(shows_the_place, NULL), 0);
}

/* ---- other kinds of waits ---- */

static struct {
    blitz_chan *empty, *full;
    blitz_mutex mutex;
} things;

static int receives(void *arg)
{
    int value;
    (void)arg;
    return blitz_chan_recv(things.empty, &value, BLITZ_FOREVER) == -ECANCELED ? 0 : 1;
}

static int sends(void *arg)
{
    (void)arg;
    return blitz_chan_send(things.full, &(int){2}, BLITZ_FOREVER) == -ECANCELED ? 0 : 1;
}

static int locks(void *arg)
{
    (void)arg;
    return blitz_mutex_lock(&things.mutex, BLITZ_FOREVER) == -ECANCELED ? 0 : 1;
}

static int selects(void *arg)
{
    int value, err = 0;
    (void)arg;
    blitz_select(BLITZ_FOREVER)
    {
        blitz_on_recv(things.empty, &value, &err) return 1;
    }
    return 0;
}

static int shows_each_thing(void *arg)
{
    static const struct {
        int (*fn)(void *);
        const char *name, *what;
    } kind[] = {{receives, "receives", "receive"},
                {sends, "sends", "send"},
                {locks, "locks", "mutex of task"},
                {selects, "selects", "select"}};
    blitz_task *t[BZ_ARRAY_LEN(kind)];
    char want[64];
    (void)arg;
    CHECK_EQ(blitz_chan_new(sizeof(int), 1, NULL, &things.empty), 0);
    CHECK_EQ(blitz_chan_new(sizeof(int), 1, NULL, &things.full), 0);
    CHECK_EQ(blitz_chan_send(things.full, &(int){1}, BLITZ_FOREVER), 0);
    blitz_mutex_init(&things.mutex);
    CHECK_EQ(blitz_mutex_lock(&things.mutex, BLITZ_FOREVER), 0);
    for (size_t i = 0; i < BZ_ARRAY_LEN(kind); i++)
        t[i] = spawn(kind[i].fn, NULL, kind[i].name);
    until_they_wait();

    t_dump(&seen, NULL, 0);

    for (size_t i = 0; i < BZ_ARRAY_LEN(kind); i++) {
        snprintf(want, sizeof want, "\"%s\" (fiber): waiting: %s ", kind[i].name, kind[i].what);
        CHECK(t_dump_has(&seen, want));
        blitz_task_cancel(t[i]);
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    }
    blitz_mutex_unlock(&things.mutex);
    blitz_chan_unref(things.empty);
    blitz_chan_unref(things.full);
    return 0;
}

TEST(dump, receive_send_lock_and_select_are_named)
{
    CHECK_EQ(t_run_alone(shows_each_thing, NULL), 0);
}

/* ---- other states ---- */

static int returns(void *arg)
{
    (void)arg;
    return 0;
}

static int shows_other_states(void *arg)
{
    (void)arg;
    blitz_task *ended = spawn(returns, NULL, "ended");
    until_they_wait();
    blitz_task *fresh = spawn(returns, NULL, "fresh");
    blitz_task *asked = spawn(sleeps_long, NULL, "asked");
    blitz_task_cancel(asked);

    t_dump(&seen, NULL, BLITZ_DUMP_ENDED);
    CHECK(t_dump_has(&seen, "\"ended\" (fiber): ended"));
    CHECK(t_dump_has(&seen, "\"fresh\" (fiber): new"));
    CHECK(t_dump_has(&seen, "\"asked\" (fiber): new, cancelled"));
    t_dump(&seen, NULL, 0);
    CHECK(strstr(seen.text, "\"ended\"") == NULL);

    blitz_task_join(ended, NULL, BLITZ_FOREVER);
    blitz_task_join(fresh, NULL, BLITZ_FOREVER);
    blitz_task_join(asked, NULL, BLITZ_FOREVER);
    return 0;
}

TEST(dump, a_task_that_is_new_cancelled_or_ended_says_so)
{
    CHECK_EQ(t_run_alone(shows_other_states, NULL), 0);
}

/* ---- a future that is gone ---- */

static blitz_sleep_future far_away; /* awaited by the task below */

static int awaits(void *arg)
{
    (void)arg;
    return blitz_await(&far_away.future, BLITZ_FOREVER) == -ECANCELED ? 0 : 1;
}

static int shows_a_future_that_is_gone(void *arg)
{
    static const uintptr_t stale[] = {0, 1, 0x7, 0xa5a5a5a5a5a5a5a5u, UINTPTR_MAX};
    (void)arg;
    blitz_sleep_until_future_init(&far_away, blitz_after(3600 * BLITZ_S));
    const blitz_future_ops *ops = far_away.future.ops;
    blitz_task *t = spawn(awaits, NULL, "awaits");
    until_they_wait();
    t_dump(&seen, NULL, 0);
    CHECK(t_dump_has(&seen, "\"awaits\" (fiber): waiting: sleep"));
    uintptr_t wait = bz_load_relaxed(&((struct bz_task *)t)->wait); /* relaxed: it stays parked */
    struct bz_host *frame = (struct bz_host *)(wait - BZ_WAIT_FUTURE); /* NOLINT: tagged */
    for (size_t i = 0; i < BZ_ARRAY_LEN(stale); i++) {
        frame->as.ops = (const blitz_future_ops *)stale[i]; /* NOLINT: as a frame in reuse */
        t_dump(&seen, NULL, 0);
        CHECK(t_dump_has(&seen, "\"awaits\" (fiber): waiting: await"));
    }
    frame->as.ops = ops;
    blitz_task_cancel(t);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

/* A dump reads the frame of a running task: any word in it may be stale. */
TEST(dump, believes_no_pointer_in_the_frame_of_a_task)
{
    CHECK_EQ(t_run_alone(shows_a_future_that_is_gone, NULL), 0);
}

/* ---- equal tasks ---- */

enum { MANY = 1000 };

static int counts_equal_ones(void *arg)
{
    static blitz_task *t[MANY];
    struct t_event event;
    (void)arg;
    t_event_init(&event, bz_machine_self()->rt->os);
    for (int i = 0; i < MANY; i++)
        t[i] = spawn(sleeps_long, NULL, "many");
    blitz_task *other = spawn(waits, &event, "many");
    until_they_wait();

    t_dump(&seen, NULL, 0);
    CHECK(t_dump_has(&seen, "1000 tasks \"many\" (fiber): waiting: sleep for "));
    CHECK(t_dump_has(&seen, "\"many\" (fiber): waiting: event"));
    CHECK_LT(seen.lines, 10);
    t_dump(&seen, NULL, BLITZ_DUMP_ALL);
    CHECK_GT(seen.lines, MANY);

    t_event_set(&event);
    blitz_task_join(other, NULL, BLITZ_FOREVER);
    for (int i = 0; i < MANY; i++) {
        blitz_task_cancel(t[i]);
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    }
    return 0;
}

TEST(dump, a_thousand_equal_waits_are_one_line_unless_all_are_asked_for)
{
    CHECK_EQ(t_run_alone(counts_equal_ones, NULL), 0);
}

/* More kinds of tasks than the table has room for are counted, not lost and not written over others. */
static int counts_unequal_ones(void *arg)
{
    static char name[600][24];
    blitz_task *t[600];
    (void)arg;
    for (int i = 0; i < 600; i++) {
        snprintf(name[i], sizeof name[i], "kind-%d", i);
        t[i] = spawn(sleeps_long, NULL, name[i]);
    }
    until_they_wait();
    t_dump(&seen, NULL, 0);
    CHECK(t_dump_has(&seen, "88 tasks more, unlike these"));
    for (int i = 0; i < 600; i++) {
        blitz_task_cancel(t[i]);
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    }
    return 0;
}

TEST(dump, tasks_that_do_not_fit_the_table_are_counted)
{
    CHECK_EQ(t_run_alone(counts_unequal_ones, NULL), 0);
}

/* ---- ages ---- */

static int looks_at_ages(void *arg)
{
    (void)arg;
    blitz_task *old = spawn(sleeps_long, NULL, "old");
    (void)!blitz_sleep(30 * BLITZ_MS);
    blitz_task *young = spawn(sleeps_long, NULL, "young");
    until_they_wait();

    t_dump(&seen, NULL, 0);

    const char *line = strstr(t_dump_line(&seen, "\"old\""), "deadline in 59 min");
    CHECK_NOT_NULL(line);
    unsigned ms[2] = {0, 0};
    char unit[2][8] = {"", ""};
    CHECK_EQ(sscanf(line, "deadline in 59 min, %u %2s", &ms[0], unit[0]), 2);
    line = strstr(t_dump_line(&seen, "\"young\""), "min, ");
    CHECK_NOT_NULL(line);
    CHECK_EQ(sscanf(line, "min, %u %2s", &ms[1], unit[1]), 2);
    CHECK(strcmp(unit[0], "ms") != 0 || strcmp(unit[1], "ms") != 0 || ms[0] > ms[1]);
    if (strcmp(unit[0], "ms") == 0) /* not so if we were kept waiting for seconds */
        CHECK_GE(ms[0], 20);

    blitz_task_cancel(old);
    blitz_task_cancel(young);
    blitz_task_join(old, NULL, BLITZ_FOREVER);
    blitz_task_join(young, NULL, BLITZ_FOREVER);
    return 0;
}

TEST(dump, a_task_says_how_old_it_is)
{
    CHECK_EQ(t_run_alone(looks_at_ages, NULL), 0);
}

/* ---- frames ---- */

BZ_NOINLINE static int stands_here(struct t_event *event)
{
    t_event_await(event);
    return 1;
}

BZ_NOINLINE static int called_this(void *event)
{
    return stands_here(event) - 1;
}

/* Is one of the addresses of the frames that follow `line` in the function that begins at fn? */
static bool has_frame_in(const char *line, uintptr_t fn)
{
    unsigned long long pc;
    int at = 0;
    line = strchr(line, '\n') + 1;
    while (sscanf(line, " #%*d 0x%llx %n", &pc, &at) == 1) {
        if (pc > fn && pc < fn + 400)
            return true;
        line = strchr(line, '\n') + 1;
    }
    return false;
}

static int shows_frames(void *arg)
{
    struct t_event event;
    (void)arg;
    t_event_init(&event, bz_machine_self()->rt->os);
    blitz_task *t = spawn(called_this, &event, "stands");
    blitz_task *fresh;
    until_they_wait();
    fresh = spawn(returns, NULL, "fresh");

    t_dump(&seen, NULL, BLITZ_DUMP_FRAMES);
    const char *line = t_dump_line(&seen, "\"stands\"");
    if (t_under_valgrind() || t_is_emulated())
        t_skip("memory of others cannot be copied here");
    CHECK(has_frame_in(line, (uintptr_t)stands_here));
    CHECK(has_frame_in(line, (uintptr_t)called_this));
    CHECK_NULL(strstr(seen.text, "(no frames)")); /* one has frames, one runs, one has not begun */

    t_event_set(&event);
    blitz_task_join(t, NULL, BLITZ_FOREVER);
    blitz_task_join(fresh, NULL, BLITZ_FOREVER);
    return 0;
}

TEST(dump, frames_show_where_a_task_waits_and_its_callers)
{
    CHECK_EQ(t_run_alone(shows_frames, NULL), 0);
}

/* ---- no worker responds ---- */

static bz_atomic(int) hogs_run, hogs_end;

static int hogs(void *arg)
{
    (void)arg;
    bz_fetch_add_relaxed(&hogs_run, 1);     /* relaxed: a count */
    while (bz_load_relaxed(&hogs_end) == 0) /* relaxed: a flag; no call into blitz, on purpose */
        continue;
    return 0;
}

/* A dump that needs a worker to help it never comes when it is needed most. */
TEST(dump, works_while_every_proc_is_hogged)
{
    blitz_runtime *rt;
    blitz_task *hog[2], *behind[20];
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 2}, &rt), 0);
    blitz_spawn_opts opts = {.runtime = rt, .name = "hog"};
    for (int i = 0; i < 2; i++) {
        opts.proc = (unsigned)i + 1;
        CHECK_EQ(blitz_spawn(hogs, NULL, &opts, &hog[i]), 0);
    }
    while (bz_load_relaxed(&hogs_run) < 2) /* relaxed: a count */
        continue;
    opts = (blitz_spawn_opts){.runtime = rt, .name = "behind"};
    for (int i = 0; i < 20; i++)
        CHECK_EQ(blitz_spawn(returns, NULL, &opts, &behind[i]), 0);

    t_dump(&seen, rt, BLITZ_DUMP_FRAMES);

    CHECK(t_dump_has(&seen, "\"hog\" (fiber): running"));
    const char *first =
        strstr(seen.text, "\"hog\" (fiber): running"); /* on their procs, or without */
    CHECK_NOT_NULL(first);
    CHECK_NOT_NULL(strstr(first + 1, "\"hog\" (fiber): running"));

    bz_store_relaxed(&hogs_end, 1); /* relaxed: a flag */
    for (int i = 0; i < 2; i++)
        CHECK_EQ(blitz_task_join(hog[i], NULL, BLITZ_FOREVER), 0);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(blitz_task_join(behind[i], NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

/* ---- refused system calls ---- */

static int shows_a_sleeper(void *arg)
{
    unsigned flags = *(unsigned *)arg;
    blitz_task *t = spawn(sleeps_long, NULL, NULL);
    until_they_wait();
    t_dump(&seen, NULL, flags);
    blitz_task_cancel(t);
    return blitz_task_join(t, NULL, BLITZ_FOREVER);
}

/* In a sandbox memory cannot be copied, not even our own. The rest of the dump is still printed. */
TEST(dump, works_without_permission_to_read_memory)
{
    unsigned flags = BLITZ_DUMP_FRAMES;
    t_deny(SYS_process_vm_readv, EPERM);
    CHECK_EQ(t_run_alone(shows_a_sleeper, &flags), 0);
    CHECK(t_dump_has(&seen, "(fiber): waiting: (not readable)"));
    CHECK(t_dump_has(&seen, "(no frames)"));
}

static int refuse_the_third(void *calls, const char *line, size_t length)
{
    (void)line;
    (void)length;
    return ++*(int *)calls == 3 ? -EPIPE : 0;
}

static int is_stopped(void *arg)
{
    int calls = 0;
    (void)arg;
    CHECK_EQ(blitz_dump_to(NULL, refuse_the_third, &calls, 0), -EPIPE);
    CHECK_EQ(calls, 3);
    return 0;
}

TEST(dump, returns_the_error_of_its_writer)
{
    CHECK_EQ(t_run_alone(is_stopped, NULL), 0);
}

TEST(dump, a_wrong_argument_is_refused)
{
    blitz_runtime *rt;
    CHECK_EQ(blitz_dump(NULL, 2, 0), -EINVAL); /* no task calls, so there is no runtime */
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1}, &rt), 0);
    CHECK_EQ(blitz_dump(rt, 2, 8), -EINVAL);
    CHECK_EQ(blitz_dump_to(rt, NULL, NULL, 0), -EINVAL);
    CHECK_EQ(blitz_dump(rt, -1, 0), -EBADF);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

TEST(dump, goes_to_a_file)
{
    char text[4096];
    int fds[2];
    blitz_runtime *rt;
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1, .name = "filed"}, &rt), 0);
    CHECK_EQ(blitz_dump(rt, fds[1], 0), 0);
    ssize_t n = read(fds[0], text, sizeof text - 1);
    CHECK_GT(n, 0);
    text[n] = '\0';
    CHECK_NOT_NULL(strstr(text, "runtime \"filed\": 1 procs"));
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    close(fds[0]);
    close(fds[1]);
}

/* Without pages for its table a dump has a small one: less is grouped, nothing fails. */
TEST(dump, makes_do_with_a_small_table)
{
    struct bz_fault fault;
    struct bz_runtime *rt;
    char name[9][24];
    blitz_task *t[9];
    bz_fault_init(&fault, &bz_os_system, NULL, &(struct bz_fault_plan){.kind = BZ_FAULT_RESERVE});
    CHECK_EQ(bz_runtime_new(&fault.os, &(blitz_runtime_opts){.procs = 1}, &rt), 0);
    blitz_spawn_opts opts = {.runtime = (blitz_runtime *)rt};
    for (int i = 0; i < 9; i++) {
        snprintf(name[i], sizeof name[i], "k%d", i);
        opts.name = name[i];
        CHECK_EQ(blitz_spawn(sleeps_long, NULL, &opts, &t[i]), 0);
    }
    for (int i = 0; i < 9; i++) /* all tasks wait: no task needs a stack any more */
        while (bz_load_acquire(&((struct bz_task *)t[i])->wait) == 0) /* acquire: see above */
            bz_os_relax(&bz_os_system, 100);
    fault.plan.nth = bz_load_relaxed(&fault.calls) + 1; /* relaxed: a count */
    t_dump(&seen, (blitz_runtime *)rt, 0);
    CHECK_EQ(bz_fault_failed(&fault), BZ_FAULT_RESERVE);
    CHECK(t_dump_has(&seen, "tasks more, unlike these: ask for all"));
    for (int i = 0; i < 9; i++) {
        blitz_task_cancel(t[i]);
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    }
    CHECK_EQ(blitz_runtime_shutdown((blitz_runtime *)rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref((blitz_runtime *)rt), 0);
}

TEST(dump, a_stretch_of_time_is_readable)
{
    char text[BZ_SPAN_MAX];
    CHECK_STR_EQ(bz_span_text(text, 999), "999 ns");
    CHECK_STR_EQ(bz_span_text(text, 8400000), "8400 us");
    CHECK_STR_EQ(bz_span_text(text, 84000000), "84 ms");
    CHECK_STR_EQ(bz_span_text(text, 2100000000), "2.1 s");
    CHECK_STR_EQ(bz_span_text(text, UINT64_C(3600) * 1000000000), "60 min");
    CHECK_STR_EQ(bz_span_text(text, UINT64_C(86400) * 1000000000), "24 h");
}
