/*
 * self.c - cases that end in every way a case can; self_test.py runs them and checks what is said.
 */
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static volatile bool is_never_set;
static void *volatile kept;

/* ---- passing ---- */

TEST(pass, returns)
{
    CHECK(true);
    CHECK_EQ(2 + 2, 4);
}

TEST(pass, compares_as_mathematics_does)
{
    unsigned long long top = ~0ull;
    const char *text = "text";

    CHECK_LT(-1, 1u);
    CHECK_NE(-1, ~0u);
    CHECK_NE(-1, top);
    CHECK_GT(top, -1);
    CHECK_LE(-5, -5L);
    CHECK_LT((signed char)-5, -4LL);
    CHECK_EQ((unsigned short)7, 7LL);
    CHECK_GT(top, 9223372036854775807LL);
    CHECK_LT(1, 1.5);
    CHECK_GT(1.5f, 1u);
    CHECK_EQ(3, 3.0);
    CHECK_NE(0.0 / 0.0, 0.0 / 0.0);
    CHECK_EQ(true, 1);
    CHECK_NE(text, NULL);
    CHECK_NOT_NULL(text);
    CHECK_NULL(NULL);
    CHECK_STR_EQ(text, "text");
    CHECK_STR_EQ(NULL, NULL);
    CHECK_MEM_EQ(text, "text and more", 4);
}

TEST(pass, notes_are_shown)
{
    t_note("%d things were found", 3);
    t_note("and a second line");
    printf("words that are shown with -v alone\n");
}

TEST(pass, numbers_follow_from_the_seed)
{
    struct t_rng r = t_rng_of(3);
    t_note("seed %llx: %llu %llu", (unsigned long long)t_seed(), (unsigned long long)t_random(),
           (unsigned long long)t_random_below(1000));
    t_note("stream 3: %llu %llu", (unsigned long long)t_rng_next(&r),
           (unsigned long long)t_rng_below(&r, 10));
}

TEST(pass, random_stays_within_its_bounds)
{
    bool is_seen[7] = {false};
    unsigned char bytes[13] = {0};

    for (int i = 0; i < 1000; i++) {
        uint64_t x = t_random_between(10, 16);
        CHECK_GE(x, 10u);
        CHECK_LE(x, 16u);
        is_seen[x - 10] = true;
    }
    for (int i = 0; i < 7; i++)
        CHECK(is_seen[i]);
    CHECK_EQ(t_random_below(1), 0u);
    CHECK_EQ(t_random_between(5, 5), 5u);
    t_random_bytes(bytes, sizeof bytes - 1);
    CHECK_EQ(bytes[12], 0);
}

static _Atomic int started[40];

static void count_start(void *arg, int index)
{
    CHECK_EQ(arg, (void *)started);
    started[index]++;
}

TEST(pass, every_thread_runs_once)
{
    t_threads(40, count_start, started);

    for (int i = 0; i < 40; i++)
        CHECK_EQ(started[i], 1);
    t_threads(1, count_start, started);
    CHECK_EQ(started[0], 2);
}

TEST(pass, scaled_is_at_least_one)
{
    CHECK_EQ(t_scaled(1), 1u);
    CHECK_EQ(t_scaled(0), 1u);
    CHECK_LE(t_scaled(100000), 100000u);
    t_note("a million becomes %llu", (unsigned long long)t_scaled(1000000));
}

static void do_nothing(void *arg, int index)
{
    (void)arg, (void)index;
}

static void abort_with_words(void *words)
{
    fprintf(stderr, "before: %s: after\n", (const char *)words);
    abort();
}

TEST(pass, an_expected_abort_is_none)
{
    CHECK_ABORTS(abort_with_words, (void *)"the words", "the words");
}

TEST(pass, what_it_may_leave_it_leaves)
{
    t_may_leave(T_FDS);
    CHECK_NE(open("/dev/null", O_RDONLY), -1);
}

TEST_LIMIT(pass, has_a_limit_of_its_own, 1000) {}

TEST(pass, input_is_empty)
{
    char c;
    CHECK_EQ(read(STDIN_FILENO, &c, 1), 0);
}

TEST(pass, a_thousand_threads)
{
    t_threads((int)t_scaled(1000), do_nothing, NULL);
}

/* A case that has used up its descriptors is still judged. */
TEST(pass, no_descriptor_is_free)
{
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 3;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_EQ(open("/dev/null", O_RDONLY), -1);
    CHECK_EQ(errno, EMFILE);
}

/* ---- skipping ---- */

TEST(skip, says_why)
{
    t_skip("this machine has %d moons", 0);
}

/* ---- failing checks ---- */

TEST(fail, check)
{
    int answer = 41;
    printf("words before the end\n");
    CHECK(answer == 42);
}

static void says_more(void)
{
    fprintf(stderr, "words after the check\n");
}

TEST(fail, and_says_more)
{
    t_at_failure(says_more);
    CHECK(false);
}

TEST(fail, eq)
{
    int got = 0;
    CHECK_EQ(got, -EPIPE);
}

TEST(fail, eq_unsigned)
{
    CHECK_EQ(4096u, 255);
}

TEST(fail, ne)
{
    CHECK_NE(5, 5);
}

TEST(fail, lt)
{
    CHECK_LT(3, 2);
}

TEST(fail, ge_mixed)
{
    CHECK_GE(-1, 1u);
}

TEST(fail, pointer)
{
    CHECK_NULL((void *)0xbeef);
}

TEST(fail, real)
{
    CHECK_EQ(0.1 + 0.2, 0.3);
}

TEST(fail, boolean)
{
    bool is_open = false;
    CHECK_EQ(is_open, (bool)true);
}

TEST(fail, text)
{
    CHECK_STR_EQ("the quick\tbrown fox", "the quick brown fox");
}

TEST(fail, long_text)
{
    char got[601], want[601];
    memset(got, 'x', 600);
    got[600] = '\0';
    memcpy(want, got, sizeof want);
    got[500] = 'y';
    CHECK_STR_EQ(got, want);
}

TEST(fail, text_missing)
{
    CHECK_STR_EQ(NULL, "something");
}

TEST(fail, bytes)
{
    unsigned char got[100], want[100];
    for (int i = 0; i < 100; i++)
        got[i] = want[i] = (unsigned char)i;
    got[50] = 0xff;
    got[51] = 0xfe;
    CHECK_MEM_EQ(got, want, 100);
}

TEST(fail, words)
{
    FAIL("there were %d of them", 7);
}

TEST(fail, by_seed)
{
    CHECK_EQ(t_random(), 0u);
}

static void fail_in_third(void *arg, int index)
{
    (void)arg;
    t_watch("thread %d of four", index);
    if (index == 2)
        CHECK_EQ(index, -1);
    while (!is_never_set)
        pause();
}

TEST(fail, on_a_thread)
{
    t_threads(4, fail_in_third, NULL);
}

static void fail_at_once(void *arg, int index)
{
    (void)arg;
    CHECK_EQ(index, 1000);
}

TEST(fail, on_all_threads_at_once)
{
    t_threads(8, fail_at_once, NULL);
}

TEST(fail, thread_that_cannot_be_made)
{
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, (size_t)1 << 50);
    pthread_setattr_default_np(&huge);
    t_threads(2, fail_at_once, NULL);
}

static ucontext_t main_context, fiber_context;

static void fiber_body(void)
{
    CHECK_EQ(1, 2);
}

static void on_fiber(void (*body)(void))
{
    size_t size = 64 * 1024;
    char *stack = malloc(size);

    getcontext(&fiber_context);
    fiber_context.uc_stack.ss_sp = stack;
    fiber_context.uc_stack.ss_size = size;
    fiber_context.uc_link = &main_context;
    makecontext(&fiber_context, body, 0);
    swapcontext(&main_context, &fiber_context);
    free(stack);
}

TEST(fail, on_a_foreign_stack)
{
    on_fiber(fiber_body);
}

static void on_signal(int signo, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    CHECK_EQ(signo, 0);
}

TEST(fail, in_a_signal_handler)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    raise(SIGUSR1);
}

TEST(fail, in_a_child_process)
{
    pid_t pid = fork();
    if (pid == 0)
        CHECK_EQ(7, 8);
    waitpid(pid, NULL, 0);
}

static void fail_at_exit(void)
{
    CHECK_EQ(5, 6);
}

TEST(fail, at_exit)
{
    atexit(fail_at_exit);
}

static void return_quietly(void *arg)
{
    (void)arg;
}

TEST(fail, no_abort)
{
    CHECK_ABORTS(return_quietly, NULL, "words");
}

TEST(fail, abort_with_other_words)
{
    CHECK_ABORTS(abort_with_words, (void *)"these", "others");
}

TEST(fail, watched)
{
    t_watch("round %d", 16);
    t_watch("round %d", 17);
    CHECK(false);
}

/* ---- crashing ---- */

static void write_through(int *p)
{
    *(volatile int *)p = 1;
}

TEST(crash, segv)
{
    t_watch("about to crash");
    write_through((int *)(uintptr_t)0xdead0);
}

TEST(crash, aborts)
{
    abort();
}

static void crash_on_fiber(void)
{
    write_through((int *)(uintptr_t)0xf1be0);
}

TEST(crash, on_a_foreign_stack)
{
    on_fiber(crash_on_fiber);
}

/* Frames of a page: TSan keeps a list of callers, which small ones would overflow before the stack. */
static int dig(int depth)
{
    volatile char room[4096];
    room[depth % 4096] = (char)depth;
    return is_never_set ? room[0] : dig(depth + 1) + room[depth % 4095];
}

TEST(crash, stack_overflow)
{
    dig(0);
}

TEST(crash, killed)
{
    kill(getpid(), SIGKILL);
    pause();
}

/* ---- not ending ---- */

static __attribute__((noinline)) void spin_for_ever(void)
{
    while (!is_never_set)
        continue;
}

TEST(hang, spins)
{
    t_watch("the spin");
    spin_for_ever();
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((noinline)) void wait_for_lock(void)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

static void first_spins_others_wait(void *arg, int index)
{
    (void)arg;
    if (index == 0)
        spin_for_ever();
    wait_for_lock();
}

TEST(hang, three_threads)
{
    pthread_mutex_lock(&lock);
    t_threads(3, first_spins_others_wait, NULL);
}

TEST(hang, deaf)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    spin_for_ever();
}

TEST(hang, stopped)
{
    raise(SIGSTOP);
}

TEST(hang, prints_without_end)
{
    for (;;)
        puts("and again, and again, and again, and again, and again, and again, and again");
}

/* ---- leaving early, leaving things ---- */

TEST(exit, quietly)
{
    exit(0);
}

TEST(exit, at_once)
{
    _exit(0);
}

TEST(exit, with_status)
{
    exit(3);
}

static void exit_badly(void)
{
    _exit(5);
}

TEST(exit, badly_after_the_end)
{
    atexit(exit_badly);
}

TEST(leak, fd)
{
    CHECK_NE(open("/dev/null", O_RDONLY), -1);
}

static void *sleep_for_ever(void *arg)
{
    for (;;)
        pause();
    return arg;
}

TEST(leak, thread)
{
    pthread_t id;
    CHECK_EQ(pthread_create(&id, NULL, sleep_for_ever, NULL), 0);
}

TEST(leak, child)
{
    if (fork() == 0)
        sleep_for_ever(NULL);
}

TEST(leak, zombie)
{
    if (fork() == 0)
        _exit(0);
}

TEST(leak, orphan)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (fork() == 0)
            sleep_for_ever(NULL);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

TEST(leak, memory)
{
    kept = malloc(12345);
    kept = NULL;
}

/* ---- for the sanitizers ---- */

TEST(sanitize, heap_use_after_free)
{
    char *volatile p = malloc(10);
    free(p);
    ((volatile char *)p)[3] = 1; /* NOLINT(clang-analyzer-unix.Malloc): what the case is for */
}

TEST(sanitize, overflow)
{
    volatile int most = 2147483647;
    most = most + 1;
}

static int unguarded;

static void add_unguarded(void *arg, int index)
{
    (void)arg, (void)index;
    for (int i = 0; i < 1000; i++)
        unguarded++;
}

TEST(sanitize, data_race)
{
    t_threads(2, add_unguarded, NULL);
}
