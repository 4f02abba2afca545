/* Threads and clocks of the Linux backend. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "support/deny.h"
#include "support/sanitizers.h"
#include "support/tasks.h"
#include "harness.h"
#include "os/os.h"
#include "os/self.h"

#define MS UINT64_C(1000000)

static const struct bz_os *os = &bz_os_system;

/* A thread that notes what it finds, then stays until told to go. */
struct witness {
    struct bz_os_thread thread;
    bz_os_word go;
    atomic_int tid;
    void *self, *stack_low;
    size_t stack_bytes;
    cpu_set_t cpus;
    sigset_t blocked;
    stack_t sigstack;
};

static void witness_main(void *arg)
{
    struct witness *w = arg;
    pthread_attr_t attr;
    w->self = bz_self_get();
    bz_self_set(w);
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstack(&attr, &w->stack_low, &w->stack_bytes);
    pthread_attr_destroy(&attr);
    sched_getaffinity(0, sizeof w->cpus, &w->cpus);
    pthread_sigmask(SIG_BLOCK, NULL, &w->blocked);
    sigaltstack(NULL, &w->sigstack);
    atomic_store(&w->tid, t_tid());
    while (atomic_load(&w->go) == 0)
        bz_os_wait(os, &w->go, 0, BZ_OS_FOREVER);
}

static void witness_start(struct witness *w, const struct bz_os_thread_opts *opts)
{
    memset(w, 0, sizeof *w);
    CHECK_EQ(bz_os_thread_start(os, &w->thread, opts, witness_main, w), 0);
    while (atomic_load(&w->tid) == 0)
        sched_yield();
}

static void witness_end(struct witness *w)
{
    atomic_store(&w->go, 1);
    bz_os_wake(os, &w->go, 1);
    CHECK_EQ(bz_os_thread_join(os, &w->thread), 0);
}

static void name_of(int tid, char *name, size_t room)
{
    CHECK(t_task_read(tid, "comm", name, room));
    name[strcspn(name, "\n")] = '\0';
}

/* ---- attributes of a thread ---- */

TEST(os_thread, runs_its_function_and_is_joined)
{
    struct witness w;
    witness_start(&w, NULL);
    CHECK_NE(atomic_load(&w.tid), t_tid());
    witness_end(&w);
}

/* `ps -L` and gdb show who is who. */
TEST(os_thread, shows_its_name)
{
    struct witness w;
    char name[32];
    witness_start(&w, &(struct bz_os_thread_opts){.name = "blitz-7"});
    name_of(atomic_load(&w.tid), name, sizeof name);
    CHECK_STR_EQ(name, "blitz-7");
    witness_end(&w);
}

TEST(os_thread, a_long_name_is_cut)
{
    struct witness w;
    char name[32];
    witness_start(&w, &(struct bz_os_thread_opts){.name = "0123456789abcdefghij"});
    name_of(atomic_load(&w.tid), name, sizeof name);
    CHECK_STR_EQ(name, "0123456789abcde");
    witness_end(&w);
}

TEST(os_thread, without_a_name_it_has_the_starters)
{
    struct witness w;
    char mine[32], its[32];
    name_of(t_tid(), mine, sizeof mine);
    witness_start(&w, NULL);
    name_of(atomic_load(&w.tid), its, sizeof its);
    CHECK_STR_EQ(its, mine);
    witness_end(&w);
}

TEST(os_thread, starts_without_a_self_and_keeps_its_own)
{
    struct witness w;
    int me;
    bz_self_set(&me);
    witness_start(&w, NULL);
    CHECK_NULL(w.self);
    witness_end(&w);
    CHECK_EQ(bz_self_get(), (void *)&me);
}

TEST(os_thread, runs_on_the_cpus_it_was_given_only)
{
    cpu_set_t ours;
    CHECK_EQ(sched_getaffinity(0, sizeof ours, &ours), 0);
    for (int cpu = 0; cpu < 64; cpu++) {
        if (!CPU_ISSET(cpu, &ours))
            continue;
        uint64_t mask[3] = {UINT64_C(1) << cpu, 0, 0};
        struct witness w;
        witness_start(&w, &(struct bz_os_thread_opts){.affinity = mask, .affinity_words = 3});
        CHECK_EQ(CPU_COUNT(&w.cpus), 1);
        CHECK(CPU_ISSET(cpu, &w.cpus));
        witness_end(&w);
    }
}

TEST(os_thread, without_an_affinity_it_has_the_starters)
{
    cpu_set_t ours;
    struct witness w;
    CHECK_EQ(sched_getaffinity(0, sizeof ours, &ours), 0);
    witness_start(&w, NULL);
    CHECK(CPU_EQUAL(&w.cpus, &ours));
    witness_end(&w);
}

TEST(os_thread, has_the_stack_it_was_promised)
{
    static const size_t sizes[] = {1, 4096, 65536, 100001, 1 << 20, 64 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct witness w;
        witness_start(&w, &(struct bz_os_thread_opts){.stack_bytes = sizes[i]});
        CHECK_GE(w.stack_bytes, sizes[i]);
        CHECK_LE(w.stack_bytes, sizes[i] + (1 << 20)); /* and not the default of 8 MiB */
        witness_end(&w);
    }
}

TEST(os_thread, inherits_blocked_signals)
{
    sigset_t block;
    struct witness w;
    sigemptyset(&block);
    sigaddset(&block, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &block, NULL);
    witness_start(&w, NULL);
    CHECK(sigismember(&w.blocked, SIGUSR2));
    CHECK(!sigismember(&w.blocked, SIGUSR1));
    witness_end(&w);
}

/* ---- alternate signal stacks ---- */

TEST(os_thread, bug_34_every_thread_has_a_signal_stack_that_fits_this_cpu)
{
    struct witness w;
    witness_start(&w, NULL);
    CHECK_EQ(w.sigstack.ss_flags & SS_DISABLE, 0);
    CHECK_GE(w.sigstack.ss_size, (size_t)getauxval(AT_MINSIGSTKSZ) + 32768);
    CHECK_GE((char *)w.sigstack.ss_sp, (char *)w.thread.sigstack);
    t_note("AT_MINSIGSTKSZ %lu, signal stack %zu", getauxval(AT_MINSIGSTKSZ), w.sigstack.ss_size);
    witness_end(&w);
}

static atomic_uintptr_t handler_frame;
static void on_its_own_stack(int sig)
{
    char here;
    (void)sig;
    atomic_store(&handler_frame, (uintptr_t)&here);
}

TEST(os_thread, bug_34_a_handler_runs_on_the_signal_stack)
{
    t_skip_if_signals_are_deferred();
    struct sigaction act = {.sa_handler = on_its_own_stack, .sa_flags = SA_ONSTACK};
    struct witness w;
    CHECK_EQ(sigaction(SIGUSR1, &act, NULL), 0);
    witness_start(&w, &(struct bz_os_thread_opts){.stack_bytes = 16384});
    CHECK_EQ(pthread_kill((pthread_t)w.thread.native, SIGUSR1), 0);
    while (atomic_load(&handler_frame) == 0)
        sched_yield();
    uintptr_t low = (uintptr_t)w.sigstack.ss_sp;
    CHECK_GE(atomic_load(&handler_frame), low);
    CHECK_LT(atomic_load(&handler_frame), low + w.sigstack.ss_size);
    witness_end(&w);
}

/* A handler that needs too much must not write into whatever lies below. */
TEST(os_thread, a_signal_stack_ends_in_a_guard)
{
    struct witness w;
    witness_start(&w, NULL);
    char *below = (char *)w.sigstack.ss_sp - 1;
    CHECK(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, (uintptr_t)below & ~(uintptr_t)4095) != 0);
    CHECK_EQ(errno, EFAULT);
    witness_end(&w);
}

/* ---- results ---- */

static int maps(void)
{
    int lines = 0, c;
    FILE *f = fopen("/proc/self/maps", "r");
    CHECK_NOT_NULL(f);
    while ((c = getc(f)) != EOF)
        lines += c == '\n';
    fclose(f);
    return lines;
}

TEST(os_thread, a_joined_thread_leaves_nothing)
{
    t_skip_if_mappings_are_not_ours();
    struct witness w;
    for (int i = 0; i < 8; i++) { /* let the C library fill its caches */
        witness_start(&w, NULL);
        witness_end(&w);
    }
    int before = maps();
    for (int i = 0; i < 64; i++) {
        witness_start(&w, NULL);
        witness_end(&w);
        CHECK_NULL(w.thread.sigstack);
    }
    CHECK_LE(maps(), before);
}

static void nothing(void *arg)
{
    (void)arg;
}

static void a_refused_start_leaves_nothing(const struct bz_os_thread_opts *opts, int want)
{
    t_skip_if_mappings_are_not_ours();
    struct bz_os_thread t;
    CHECK_EQ(bz_os_thread_start(os, &t, opts, nothing, NULL), want);
    int before = maps(); /* the C library has cached a stack now, and will use it again */
    for (int i = 0; i < 8; i++)
        CHECK_EQ(bz_os_thread_start(os, &t, opts, nothing, NULL), want);
    CHECK_LE(maps(), before);
}

TEST(os_thread, bug_30_a_limit_on_threads_is_an_error)
{
    t_deny(SYS_clone3, EAGAIN);
    t_deny(SYS_clone, EAGAIN);
    a_refused_start_leaves_nothing(NULL, -EAGAIN);
}

TEST(os_thread, an_affinity_without_cpus_is_an_error)
{
    uint64_t none[2] = {0, 0};
    uint64_t absent[16] = {[15] = UINT64_C(1) << 63};
    a_refused_start_leaves_nothing(
        &(struct bz_os_thread_opts){.affinity = none, .affinity_words = 2}, -EINVAL);
    a_refused_start_leaves_nothing(
        &(struct bz_os_thread_opts){.affinity = absent, .affinity_words = 16}, -EINVAL);
}

TEST(os_thread, an_absurd_stack_is_an_error)
{
    a_refused_start_leaves_nothing(&(struct bz_os_thread_opts){.stack_bytes = SIZE_MAX}, -EINVAL);
}

TEST(os_thread, no_memory_for_a_signal_stack_is_an_error)
{
    struct bz_os_thread t;
    t_deny_arg(SYS_mprotect, 2, PROT_NONE, ENOMEM);
    a_refused_start_leaves_nothing(NULL, -ENOMEM);
    t_deny(SYS_mmap, ENOMEM);
    CHECK_EQ(bz_os_thread_start(os, &t, NULL, nothing, NULL), -ENOMEM);
}

static atomic_int self_join;
static void joins_itself(void *arg)
{
    struct witness *w = arg;
    while (atomic_load(&w->go) == 0)
        bz_os_wait(os, &w->go, 0, BZ_OS_FOREVER);
    atomic_store(&self_join, bz_os_thread_join(os, &w->thread));
}

TEST(os_thread, a_thread_that_joins_itself_gets_an_error)
{
    static struct witness w;
    CHECK_EQ(bz_os_thread_start(os, &w.thread, NULL, joins_itself, &w), 0);
    witness_end(&w);
    CHECK_EQ(atomic_load(&self_join), -EDEADLK);
}

/* ---- clocks ---- */

TEST(os_thread, time_never_goes_back)
{
    uint64_t last = bz_os_now(os);
    for (int i = 0; i < 100000; i++) {
        uint64_t now = bz_os_now(os);
        CHECK_GE(now, last);
        last = now;
    }
    CHECK_LT(last, BZ_OS_FOREVER);
}

static volatile uint64_t sink;
static void burn_cpu(uint64_t ns)
{
    uint64_t until = bz_os_cpu_time(os) + ns;
    while (bz_os_cpu_time(os) < until)
        sink++;
}

static void burns(void *arg)
{
    burn_cpu(20 * MS);
    witness_main(arg);
}

/* This is how the monitor tells a task that burns from one that blocks. */
TEST(os_thread, a_burning_thread_uses_cpu_time_and_a_sleeping_one_does_not)
{
    struct witness burner = {0}, sleeper;
    uint64_t burnt, slept, later;
    CHECK_EQ(bz_os_thread_start(os, &burner.thread, NULL, burns, &burner), 0);
    witness_start(&sleeper, NULL);
    while (atomic_load(&burner.tid) == 0)
        sched_yield();
    CHECK(t_until_asleep(atomic_load(&sleeper.tid)));

    CHECK_EQ(bz_os_thread_cpu_time(os, &burner.thread, &burnt), 0);
    CHECK_EQ(bz_os_thread_cpu_time(os, &sleeper.thread, &slept), 0);
    burn_cpu(5 * MS);
    CHECK_EQ(bz_os_thread_cpu_time(os, &sleeper.thread, &later), 0);

    CHECK_GE(burnt, 20 * MS);
    CHECK_EQ(later, slept);
    witness_end(&burner);
    witness_end(&sleeper);
}

TEST(os_thread, the_cpu_time_of_an_ended_thread_is_an_error)
{
    struct witness w;
    uint64_t used = 7;
    witness_start(&w, NULL);
    int tid = atomic_load(&w.tid);
    atomic_store(&w.go, 1);
    bz_os_wake(os, &w.go, 1);
    t_until_gone(tid);
    CHECK_EQ(bz_os_thread_cpu_time(os, &w.thread, &used), -ESRCH);
    CHECK_EQ(used, (uint64_t)7);
    CHECK_EQ(bz_os_thread_join(os, &w.thread), 0);
}

/* ---- randomness ---- */

static void entropy_is_random(void)
{
    unsigned char a[4096] = {0}, b[4096] = {0};
    size_t zero = 0;
    CHECK_EQ(bz_os_entropy(os, a, sizeof a), 0);
    CHECK_EQ(bz_os_entropy(os, b, sizeof b), 0);
    CHECK(memcmp(a, b, sizeof a) != 0);
    for (size_t i = 0; i < sizeof a; i++)
        zero += a[i] == 0;
    CHECK_LT(zero, (size_t)100); /* 16 expected: every part was filled */
    CHECK_EQ(bz_os_entropy(os, a, 0), 0);
}

TEST(os_entropy, fills_every_byte)
{
    entropy_is_random();
}

TEST(os_entropy, comes_from_the_device_where_the_call_is_missing)
{
    t_deny(SYS_getrandom, ENOSYS);
    entropy_is_random();
}

TEST(os_entropy, comes_from_the_device_when_the_pool_is_not_ready)
{
    t_deny(SYS_getrandom, EAGAIN);
    entropy_is_random();
}

/* The filters below match no other call than the one meant: a coverage build still reads and writes
 * its counts when the case ends. */
TEST(os_entropy, a_system_without_any_says_so)
{
    char out[16];
    t_deny(SYS_getrandom, ENOSYS);
    t_deny_arg(SYS_openat, 2, O_RDONLY | O_CLOEXEC, EACCES);
#if defined(SYS_open) /* musl's open() */
    t_deny_arg(SYS_open, 1, O_RDONLY | O_CLOEXEC | O_LARGEFILE, EACCES);
#endif
    CHECK_EQ(bz_os_entropy(os, out, sizeof out), -EIO);
}

TEST(os_entropy, a_device_that_fails_is_an_error)
{
    char out[77];
    t_deny(SYS_getrandom, ENOSYS);
    t_deny_arg(SYS_read, 2, sizeof out, EIO);
    CHECK_EQ(bz_os_entropy(os, out, sizeof out), -EIO);
}
