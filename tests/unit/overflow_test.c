/*
 * The report of an overflow (src/task/overflow.c, src/os/segv.c): which task it was, and that faults,
 * handlers and defaults of the program are not disturbed.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "blitz.h"
#include "os/segv.h"
#include "support/stacks.h"
#include "support/coro.h"
#include "task/overflow.h"

/* ---- a child that faults ---------------------------------------------------------------------- */

struct death {
    int status;
    char said[4096];
};

#if defined(__GNUC__) && !defined(__clang__)
void __gcov_dump(void) __attribute__((weak)); /* there in the build that counts lines */
static void exit_counted(void)
{
    if (__gcov_dump != NULL)
        __gcov_dump();
    _exit(0);
}
#else
static void exit_counted(void)
{
    _exit(0);
}
#endif

/* fn(arg) in a child on a thread of ours, which has an alternate signal stack. */
static struct death death_of(void (*fn)(void *), void *arg)
{
    struct death d = {0};
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0) {
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGSEGV, SIG_DFL); /* the harness's handlers are not what is tested */
        signal(SIGBUS, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        struct bz_os_thread thread;
        if (bz_os_thread_start(&bz_os_system, &thread, NULL, fn, arg) != 0)
            _exit(2);
        bz_os_thread_join(&bz_os_system, &thread);
        exit_counted();
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t n; (n = read(ends[0], d.said + length, sizeof d.said - 1 - length)) > 0;)
        length += (size_t)n;
    close(ends[0]);
    CHECK_EQ(waitpid(child, &d.status, 0), child);
    return d;
}

static BZ_NOINLINE int fall_for_ever(int depth)
{
    volatile char frame[512];
    frame[depth & 511] = (char)depth;
    return depth < 0 ? 0 : fall_for_ever(depth + 1) + frame[depth & 511];
}
static void fall(struct bz_coro *c, void *arg)
{
    (void)c;
    *(int *)arg = fall_for_ever(1);
}

static struct t_stacks t;
static void overflow_a_fiber_named(const char *name)
{
    struct bz_stack *s = t_stack_take(&t, BZ_STACK_64K);
    struct bz_coro c;
    int result;
    bz_stack_name(s, name);
    bz_coro_init(&c, s->low, bz_stack_top(s), fall, &result);
    bz_coro_resume(&c);
}

static void watched_overflow(void *arg)
{
    t_stacks_init(&t, (struct bz_stack_config){0});
    CHECK_EQ(bz_overflow_watch(&t.pool), 0);
    overflow_a_fiber_named(arg);
}

/* ---- ours ------------------------------------------------------------------------------------- */

/* The row's words: a deliberate overflow names its fiber. And the process still dies of it. */
TEST(overflow, bug_32_a_deliberate_overflow_names_its_fiber)
{
    struct death d = death_of(watched_overflow, (void *)(uintptr_t) "the parser of the tale");
    CHECK(WIFSIGNALED(d.status));
    CHECK_EQ(WTERMSIG(d.status), SIGSEGV);
    CHECK(strstr(d.said, "stack overflow in fiber \"the parser of the tale\": address 0x") != NULL);
    CHECK(strstr(d.said, " 64 KiB at 0x") != NULL);
    int frames = 0;
    for (const char *at = d.said; (at = strchr(at, '\n')) != NULL; at++)
        frames++;
    CHECK_GE(frames, 10); /* a line of explanation, the rest is the backtrace */
}

TEST(overflow, of_a_fiber_without_a_name_is_explained_too)
{
    struct death d = death_of(watched_overflow, NULL);
    CHECK_EQ(WTERMSIG(d.status), SIGSEGV);
    CHECK(strstr(d.said, "stack overflow in fiber \"(unnamed)\"") != NULL);
}

static void second_pool_overflow(void *arg)
{
    static struct t_stacks first;
    t_stacks_init(&first, (struct bz_stack_config){0});
    t_stack_take(&first, BZ_STACK_64K);
    CHECK_EQ(bz_overflow_watch(&first.pool), 0);
    watched_overflow(arg);
}

TEST(overflow, is_found_in_whichever_pool_it_happens)
{
    struct death d = death_of(second_pool_overflow, (void *)(uintptr_t) "in the second");
    CHECK(strstr(d.said, "fiber \"in the second\"") != NULL);
}

/* The handler called by hand, as a fault in the guard would: it explains, steps aside and returns. */
static void call_the_handler(void *arg)
{
    struct sigaction ours;
    siginfo_t info = {.si_code = SEGV_MAPERR};
    t_stacks_init(&t, (struct bz_stack_config){0});
    CHECK_EQ(bz_overflow_watch(&t.pool), 0);
    struct bz_stack *s = t_stack_take(&t, BZ_STACK_256K);
    bz_stack_name(s, arg);
    CHECK_EQ(sigaction(SIGSEGV, NULL, &ours), 0);
    info.si_addr = s->low - 1;
    errno = 99;
    ours.sa_sigaction(SIGSEGV, &info, NULL);
    CHECK_EQ(errno, 99);
    CHECK_EQ(sigaction(SIGSEGV, NULL, &ours), 0);
    CHECK(ours.sa_handler == SIG_DFL);
    bz_overflow_unwatch(&t.pool);
    bz_stack_give(&t.cache, s);
    t_stacks_fini(&t);
}

TEST(overflow, the_handler_explains_and_steps_aside)
{
    struct death d = death_of(call_the_handler, (void *)(uintptr_t) "by hand");
    CHECK_EQ(d.status, 0);
    CHECK(strstr(d.said, "stack overflow in fiber \"by hand\"") != NULL);
    CHECK(strstr(d.said, " 256 KiB at 0x") != NULL);
}

/* ---- not ours --------------------------------------------------------------------------------- */

static volatile char *volatile nowhere = (char *)4096; /* never mapped, not NULL */
static void foreign_fault(void *arg)
{
    (void)arg;
    t_stacks_init(&t, (struct bz_stack_config){0});
    CHECK_EQ(bz_overflow_watch(&t.pool), 0);
    *nowhere = 1;
}

TEST(overflow, a_foreign_fault_ends_as_it_would_have_without_us)
{
    struct death d = death_of(foreign_fault, NULL);
    CHECK(WIFSIGNALED(d.status));
    CHECK_EQ(WTERMSIG(d.status), SIGSEGV);
    CHECK_NULL(strstr(d.said, "blitz:")); /* an emulator may have its say */
}

static void sent_signal(void *arg)
{
    (void)arg;
    t_stacks_init(&t, (struct bz_stack_config){0});
    CHECK_EQ(bz_overflow_watch(&t.pool), 0);
    raise(SIGSEGV);
    _exit(3); /* not reached: the default action follows although nothing faults again */
}

TEST(overflow, a_signal_that_was_sent_has_its_default_action)
{
    struct death d = death_of(sent_signal, NULL);
    CHECK(WIFSIGNALED(d.status));
    CHECK_EQ(WTERMSIG(d.status), SIGSEGV);
}

static void on_info(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    _exit(context != NULL && info->si_addr == (void *)nowhere ? 77 : 78);
}
static void on_plain(int signal)
{
    _exit(signal == SIGSEGV ? 79 : 80);
}

static void chained_info(void *arg)
{
    struct sigaction a = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    a.sa_sigaction = on_info;
    sigaction(SIGSEGV, &a, NULL);
    foreign_fault(arg);
}
static void chained_plain(void *arg)
{
    signal(SIGSEGV, on_plain);
    foreign_fault(arg);
}
static void ignored_and_sent(void *arg)
{
    (void)arg;
    signal(SIGSEGV, SIG_IGN);
    t_stacks_init(&t, (struct bz_stack_config){0});
    CHECK_EQ(bz_overflow_watch(&t.pool), 0);
    raise(SIGSEGV);
    _exit(81);
}

TEST(overflow, an_earlier_handler_gets_the_faults_that_are_not_ours)
{
    if (bz_note_on_valgrind())
        t_skip("Valgrind counts the fault as an error, and its exit code wins");
    CHECK_EQ(WEXITSTATUS(death_of(chained_info, NULL).status), 77);
    CHECK_EQ(WEXITSTATUS(death_of(chained_plain, NULL).status), 79);
    CHECK_EQ(WEXITSTATUS(death_of(ignored_and_sent, NULL).status), 81);
}

/* ---- in a runtime ----------------------------------------------------------------------------- */

enum way { CALLED, WAITED, CLAIMED, BIG_STACK, OWN_CLASS };

struct program {
    blitz_runtime_opts config;
    enum way way;
};

static int fall_in_task(void *arg)
{
    if (*(enum way *)arg == WAITED)
        blitz_yield();
    return fall_for_ever(1);
}

static int fall_on_big_stack(void *arg)
{
    return blitz_on_big_stack(fall_in_task, arg, 1 << 20);
}

static int parent_of_the_parser(void *arg)
{
    struct program *p = arg;
    blitz_spawn_opts opts = {.name = "parser",
                             .stack_bytes = p->way == OWN_CLASS ? 1 << 20 : 0,
                             .proc = p->way == CLAIMED ? 0 : BLITZ_ON_PROC(1)};
    blitz_task *task;
    CHECK_EQ(
        blitz_spawn(p->way == BIG_STACK ? fall_on_big_stack : fall_in_task, &p->way, &opts, &task),
        0);
    return blitz_task_join(task, NULL, BLITZ_FOREVER);
}

static void run_program(void *arg)
{
    struct program *p = arg;
    p->config.procs = 2;
    (void)!blitz_run(parent_of_the_parser, p, &p->config);
}

TEST(overflow, bug_32_of_a_task_is_explained_without_being_asked_for)
{
    for (enum way way = CALLED; way <= OWN_CLASS; way++) {
        struct program p = {.way = way};
        t_watch("way %d", (int)way);
        struct death d = death_of(run_program, &p);
        CHECK(WIFSIGNALED(d.status));
        CHECK_EQ(WTERMSIG(d.status), SIGSEGV);
        CHECK(strstr(d.said, "stack overflow in task ") != NULL);
        CHECK(strstr(d.said, "\"parser\": address 0x") != NULL);
        CHECK(strstr(d.said, way >= BIG_STACK ? " 1024 KiB at 0x" : " 256 KiB at 0x") != NULL);
    }
}

static void run_program_with_variable(void *arg)
{
    setenv("BLITZ_NO_OVERFLOW_REPORT", "1", 1);
    run_program(arg);
}

TEST(overflow, of_a_task_is_a_plain_fault_if_no_report_is_wanted)
{
    struct program by_config = {.config = {.no_overflow_report = 1}}, by_variable = {0};
    struct death d = death_of(run_program, &by_config);
    CHECK_EQ(WTERMSIG(d.status), SIGSEGV);
    CHECK_NULL(strstr(d.said, "blitz:"));
    d = death_of(run_program_with_variable, &by_variable);
    CHECK_EQ(WTERMSIG(d.status), SIGSEGV);
    CHECK_NULL(strstr(d.said, "blitz:"));
}

static void on_any_fault(int signal, siginfo_t *info, void *context)
{
    (void)info;
    _exit(context != NULL && signal == SIGSEGV ? 82 : 83);
}

static void run_program_with_handler(void *arg)
{
    struct sigaction a = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    a.sa_sigaction = on_any_fault;
    sigaction(SIGSEGV, &a, NULL);
    run_program(arg);
}

static int fault_elsewhere(void *arg)
{
    (void)arg;
    *nowhere = 1;
    return 0;
}

static void run_fault_with_handler(void *arg)
{
    struct sigaction a = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    a.sa_sigaction = on_info;
    sigaction(SIGSEGV, &a, NULL);
    (void)!blitz_run(fault_elsewhere, arg, NULL);
}

static int installs_its_own(void *arg)
{
    struct sigaction a = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    a.sa_sigaction = on_any_fault;
    sigaction(SIGSEGV, &a, NULL);
    return parent_of_the_parser(arg);
}

static void run_program_that_installs(void *arg)
{
    (void)!blitz_run(installs_its_own, arg, NULL);
}

/* A crash reporter of the program has its say, before and after the runtime was started. */
TEST(overflow, of_a_task_is_explained_and_then_the_program_s_handler_is_called)
{
    struct program p = {.way = WAITED};
    if (bz_note_on_valgrind())
        t_skip("Valgrind counts the fault as an error, and its exit code wins");
    struct death d = death_of(run_program_with_handler, &p);
    CHECK(strstr(d.said, "\"parser\": address 0x") != NULL);
    CHECK_EQ(WEXITSTATUS(d.status), 82);
    CHECK_EQ(WEXITSTATUS(death_of(run_program_that_installs, &p).status), 82);
    CHECK_EQ(WEXITSTATUS(death_of(run_fault_with_handler, NULL).status), 77);
}

static int look_at_handlers(void *arg)
{
    struct sigaction a;
    CHECK_EQ(sigaction(SIGSEGV, NULL, &a), 0);
    *(void **)arg = (void *)(uintptr_t)a.sa_sigaction;
    return 0;
}

TEST(overflow, a_runtime_puts_the_handlers_back)
{
    struct sigaction before, after;
    void *during[2];
    CHECK_EQ(sigaction(SIGSEGV, NULL, &before), 0);
    CHECK_EQ(blitz_run(look_at_handlers, &during[0], NULL), 0);
    CHECK_EQ(
        blitz_run(look_at_handlers, &during[1], &(blitz_runtime_opts){.no_overflow_report = 1}), 0);
    CHECK_EQ(sigaction(SIGSEGV, NULL, &after), 0);
    CHECK_NE(during[0], (void *)(uintptr_t)before.sa_sigaction);
    CHECK_EQ(during[1], (void *)(uintptr_t)before.sa_sigaction);
    CHECK_EQ((void *)(uintptr_t)after.sa_sigaction, (void *)(uintptr_t)before.sa_sigaction);
}

/* ---- asking and leaving ----------------------------------------------------------------------- */

static void *handler_of(int signal)
{
    struct sigaction a;
    CHECK_EQ(sigaction(signal, NULL, &a), 0);
    return a.sa_flags & SA_SIGINFO ? (void *)(uintptr_t)a.sa_sigaction
                                   : (void *)(uintptr_t)a.sa_handler;
}

/* Stacks alone bring no handler; a runtime does. */
TEST(overflow, nothing_is_installed_unless_asked_for_and_nothing_is_left)
{
    void *segv = handler_of(SIGSEGV), *bus = handler_of(SIGBUS);
    t_stacks_init(&t, (struct bz_stack_config){0});
    bz_stack_give(&t.cache, t_stack_take(&t, BZ_STACK_64K));
    CHECK_EQ(handler_of(SIGSEGV), segv);

    CHECK_EQ(bz_overflow_watch(&t.pool), 0);
    CHECK_NE(handler_of(SIGSEGV), segv);
    CHECK_NE(handler_of(SIGBUS), bus);
    CHECK_EQ(bz_overflow_watch(&t.pool), -EALREADY);
    bz_overflow_unwatch(&t.pool);

    CHECK_EQ(handler_of(SIGSEGV), segv);
    CHECK_EQ(handler_of(SIGBUS), bus);
    t_stacks_fini(&t);
}

TEST(overflow, the_handler_goes_with_the_last_pool)
{
    static struct t_stacks other;
    void *segv = handler_of(SIGSEGV);
    t_stacks_init(&t, (struct bz_stack_config){0});
    t_stacks_init(&other, (struct bz_stack_config){0});
    CHECK_EQ(bz_overflow_watch(&t.pool), 0);
    CHECK_EQ(bz_overflow_watch(&other.pool), 0);
    bz_overflow_unwatch(&t.pool);
    CHECK_NE(handler_of(SIGSEGV), segv);
    bz_overflow_unwatch(&other.pool);
    CHECK_EQ(handler_of(SIGSEGV), segv);
    t_stacks_fini(&t);
    t_stacks_fini(&other);
}

static size_t explain_nothing(const void *address, char *text, size_t room)
{
    (void)address, (void)room;
    text[0] = '\0';
    return 0;
}

TEST(overflow, one_watcher_at_a_time)
{
    t_stacks_init(&t, (struct bz_stack_config){0});
    CHECK_EQ(bz_segv_watch(explain_nothing), 0);
    CHECK_EQ(bz_overflow_watch(&t.pool), -EBUSY);
    CHECK(!bz_list_is_linked(&t.pool.watched));
    bz_segv_unwatch();
    CHECK_EQ(bz_overflow_watch(&t.pool), 0);
    bz_overflow_unwatch(&t.pool);
    t_stacks_fini(&t);
}

/* A handler installed after ours stays, and may still forward faults to ours. */
TEST(overflow, a_handler_put_over_ours_is_left_in_place)
{
    struct sigaction theirs = {.sa_handler = on_plain}, ours;
    void *before = handler_of(SIGSEGV);
    t_stacks_init(&t, (struct bz_stack_config){0});
    CHECK_EQ(bz_overflow_watch(&t.pool), 0);
    CHECK_EQ(sigaction(SIGSEGV, &theirs, &ours), 0);

    bz_overflow_unwatch(&t.pool);
    CHECK_EQ(handler_of(SIGSEGV), (void *)(uintptr_t)on_plain);

    sigaction(SIGSEGV, &ours, NULL); /* they leave, and put back what they found */
    CHECK_EQ(bz_overflow_watch(&t.pool), 0);
    bz_overflow_unwatch(&t.pool);
    CHECK_EQ(handler_of(SIGSEGV), before);
    t_stacks_fini(&t);
}

static void fini_while_watched(void *arg)
{
    (void)arg;
    t_stacks_init(&t, (struct bz_stack_config){0});
    CHECK_EQ(bz_overflow_watch(&t.pool), 0);
    bz_stack_pool_fini(&t.pool);
}
static void unwatch_a_stranger(void *arg)
{
    (void)arg;
    t_stacks_init(&t, (struct bz_stack_config){0});
    bz_overflow_unwatch(&t.pool);
}

TEST(overflow, misuse_aborts)
{
    CHECK_ABORTS(fini_while_watched, NULL, "a pool ends while its overflows are watched");
    CHECK_ABORTS(unwatch_a_stranger, NULL, "is not watched");
}
