/*
 * Faults in behaviours (src/actor/trap.c): which ones end the actor, which ones the process, and what is left behind.
 *
 * A fault is made by one instruction in assembly, so that no sanitizer reports it before it happens.
 */
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "blitz.h"
#include "os/self.h"

enum { DO, COUNT, LOADED };

/* ---- faults ---- */

#if defined(__x86_64__)
enum { HAS_TRAP = 1 };
static BZ_NOINLINE int segv(void)
{
    int value;
    __asm__ volatile("movl (%1), %0" : "=r"(value) : "r"((uintptr_t)8) : "memory");
    return value & 0;
}
static BZ_NOINLINE int fpe(void)
{
    int quotient = 1;
    __asm__ volatile("cltd\n\tidivl %1" : "+a"(quotient) : "r"(0) : "edx", "cc");
    return quotient & 0;
}
static BZ_NOINLINE int ill(void)
{
    __asm__ volatile("ud2");
    return 0;
}
static int load(const volatile char *at)
{
    int value;
    __asm__ volatile("movzbl (%1), %0" : "=r"(value) : "r"(at) : "memory");
    return value & 0;
}
/* Leave the state of a careless function: the direction flag, a rounding mode, a full x87 stack. */
static int segv_in_disorder(void)
{
    static const unsigned upward = 0x5f80;
    __asm__ volatile(
        "std\n\tldmxcsr %0\n\tfld1\n\tfld1\n\tfld1\n\tfld1\n\tfld1\n\tfld1\n\tfld1\n\tfld1\n\t"
        "movl (%1), %%eax"
        :
        : "m"(upward), "r"((uintptr_t)8)
        : "eax", "memory");
    return 0;
}
#else
enum { HAS_TRAP = 0 };
static int load(const volatile char *at)
{
    return *at & 0;
}
static int segv(void)
{
    return load(NULL);
}
static int fpe(void)
{
    return raise(SIGFPE);
}
static int ill(void)
{
    return raise(SIGILL);
}
static int segv_in_disorder(void)
{
    return segv();
}
#endif

/* Beyond the end of a file. */
static int bus(void)
{
    char name[] = "/tmp/trap_testXXXXXX";
    static char *map;
    if (map == NULL) {
        int fd = mkstemp(name);
        map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
        unlink(name);
        close(fd);
    }
    return load(map);
}

static BZ_NOINLINE int fall_for_ever(int depth)
{
    volatile char frame[512];
    frame[depth & 511] = (char)depth;
    return depth < 0 ? 0 : fall_for_ever(depth + 1) + frame[depth & 511];
}
static int overflow(void)
{
    return fall_for_ever(1) & 0;
}

static int call_null(void)
{
    int (*volatile fn)(void) = NULL;
    return fn() & 0;
}

/* ---- an actor that does what it is told ---- */

typedef int (*deed)(void);

static _Atomic(int) exits, drops, faults_logged;
static blitz_exit_reason last; /* guarded by notes_lock: actors end on several procs */
static char last_log[600];     /* guarded by notes_lock: actors fault on several procs */
static pthread_mutex_t notes_lock = PTHREAD_MUTEX_INITIALIZER;

BLITZ_HANDLER(on_do, long, deed)
{
    (void)m;
    int rc = (*data)();
    ++*state; /* behind the call: this frame stays */
    return rc;
}
BLITZ_HANDLER(on_count, long, void)
{
    (void)data;
    return blitz_actor_reply(m->reply, state, sizeof *state);
}
static int on_loaded(void *state, const blitz_msg *m)
{
    (void)state;
    CHECK((m->binary != NULL) != (m->block != NULL));
    return segv();
}

static void note_exit(void *state, const blitz_exit_reason *why)
{
    (void)state;
    pthread_mutex_lock(&notes_lock);
    last = *why;
    pthread_mutex_unlock(&notes_lock);
    exits++;
}
static void note_drop(void *value, void *ctx)
{
    (void)value, (void)ctx;
    drops++;
}

static const blitz_handler handlers[] = {BLITZ_ON(DO, deed, on_do),
                                         BLITZ_ON_EMPTY(COUNT, on_count),
                                         {LOADED, BLITZ_ANY_SIZE, on_loaded}};

#define DOER                                                                               \
    .name = "doer", .state_bytes = sizeof(long), .handlers = handlers, .handler_count = 3, \
    .exit = note_exit, .drop = note_drop

static const blitz_behaviour doer = {DOER, .trap_faults = true};
static const blitz_behaviour careless = {DOER};

static void hear(void *ctx, blitz_log_level level, const char *message)
{
    (void)ctx;
    if (level == BLITZ_LOG_ERROR && strstr(message, "has faulted") != NULL) {
        pthread_mutex_lock(&notes_lock);
        snprintf(last_log, sizeof last_log, "%s", message);
        pthread_mutex_unlock(&notes_lock);
        faults_logged++;
    }
}

/* Let a new actor do that, and wait for its end. Returns what a call to it has returned. */
static int end_of(const blitz_behaviour *b, deed what)
{
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(b, NULL, NULL, &id), 0);
    CHECK_EQ(blitz_actor_send(id, DO, &what, sizeof what), 0);
    int rc = blitz_actor_call(id, COUNT, NULL, 0, NULL, 0, BLITZ_FOREVER);
    while (rc == -ESRCH && blitz_actor_is_alive(id))
        blitz_yield();
    return rc;
}

static void on_a_runtime(int (*fn)(void *), void *arg)
{
    const blitz_runtime_opts opts = {.procs = 2};
    CHECK_EQ(blitz_log_set(hear, NULL, BLITZ_LOG_WARN), 0);
    CHECK_EQ(blitz_run(fn, arg, &opts), 0);
    CHECK_EQ(blitz_log_set(NULL, NULL, BLITZ_LOG_WARN), 0);
}

/* ---- trapped ---- */

struct kind {
    deed what;
    const char *text;
};

static int try_kind(void *arg)
{
    const struct kind *k = arg;
    int before = exits;
    CHECK_EQ(end_of(&doer, k->what), -ESRCH);
    CHECK_EQ(exits, before + 1);
    CHECK_EQ(last.kind, BLITZ_EXIT_ERROR);
    CHECK_EQ(last.code, -EFAULT);
    CHECK(strncmp(last.text, k->text, strlen(k->text)) == 0);
    CHECK(strstr(last_log, k->text) != NULL);
    CHECK(strstr(last_log, "doer") != NULL);
    CHECK(strstr(last_log, "on_do") != NULL); /* the handler is among the callers */
    return 0;
}

static void traps(deed what, const char *text)
{
    struct kind k = {what, text};
    if (!HAS_TRAP)
        t_skip("no trap on this architecture");
    on_a_runtime(try_kind, &k);
    CHECK_EQ(exits, 1);
    CHECK_EQ(drops, 1);
    CHECK_EQ(faults_logged, 1);
}

TEST(trap, a_read_at_null_ends_the_actor_with_the_address)
{
    traps(segv, "SIGSEGV at 0x8, pc 0x");
}

TEST(trap, a_division_by_zero_ends_the_actor)
{
    traps(fpe, "SIGFPE at 0x");
}

TEST(trap, an_illegal_instruction_ends_the_actor)
{
    traps(ill, "SIGILL at 0x");
}

TEST(trap, a_read_behind_a_mapped_file_ends_the_actor)
{
    traps(bus, "SIGBUS at 0x");
}

TEST(trap, a_stack_overflow_ends_the_actor)
{
    traps(overflow, "SIGSEGV at 0x");
}

TEST(trap, a_call_of_null_ends_the_actor)
{
    traps(call_null, "SIGSEGV at 0x0, pc 0x0");
}

/* The flags and the floating-point state belong to the thread: the next actor must find them in order. */
static int after_disorder(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(end_of(&doer, segv_in_disorder), -ESRCH);
        volatile double third = 1.0 / 3;
        volatile long double one = 1.0L;
        CHECK(third * 3 == 1.0);
        CHECK(one + one == 2.0L);
        char text[64];
        memmove(text, "abcdefghijklmnop", 17);
        CHECK_STR_EQ(text, "abcdefghijklmnop");
    }
    return 0;
}

TEST(trap, the_thread_is_in_order_behind_a_fault)
{
    if (!HAS_TRAP)
        t_skip("no trap on this architecture");
    on_a_runtime(after_disorder, NULL);
}

/* A fork, scope or lock that was closed again does not count. */
static int number(void *arg)
{
    return (int)(intptr_t)arg;
}
static int after_a_scope(void)
{
    blitz_scope scope;
    CHECK_EQ(blitz_scope_open(&scope, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_scope_spawn(&scope, number, NULL, NULL), 0);
    CHECK_EQ(blitz_scope_close(&scope), 0);
    return segv();
}
static int after_a_fork(void)
{
    blitz_job job;
    blitz_fork(&job, number, (void *)7);
    CHECK_EQ(blitz_join(&job), 7);
    return segv();
}
static atomic_bool job_runs, job_may_end;
static int long_job(void *arg)
{
    (void)arg;
    job_runs = true;
    while (!job_may_end)
        blitz_yield();
    return 7;
}
static void fork_stolen(blitz_job *job)
{
    job_runs = job_may_end = false;
    blitz_fork(job, long_job, NULL);
    while (!job_runs)
        blitz_share();
}
static int after_a_stolen_fork(void)
{
    blitz_job job;
    fork_stolen(&job);
    job_may_end = true;
    CHECK_EQ(blitz_join(&job), 7);
    return segv();
}
static int after_a_fork_and_a_wait(void)
{
    blitz_job job;
    blitz_fork(&job, number, (void *)7);
    CHECK_EQ(blitz_sleep(1), 0);
    CHECK_EQ(blitz_join(&job), 7);
    return segv();
}
static blitz_mutex mutex = BLITZ_MUTEX_INIT;
static blitz_rwlock rwlock = BLITZ_RWLOCK_INIT;
static int after_locks(void)
{
    blitz_sync_future f;
    CHECK_EQ(blitz_mutex_lock(&mutex, BLITZ_FOREVER), 0);
    blitz_mutex_unlock(&mutex);
    CHECK_EQ(blitz_mutex_try_lock(&mutex), 0);
    CHECK_EQ(blitz_mutex_try_lock(&mutex), -EAGAIN);
    blitz_mutex_unlock(&mutex);
    blitz_mutex_lock_future_init(&f, &mutex);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    blitz_mutex_unlock(&mutex);
    CHECK_EQ(blitz_rwlock_read(&rwlock, BLITZ_FOREVER), 0);
    blitz_rwlock_read_unlock(&rwlock);
    CHECK_EQ(blitz_rwlock_write(&rwlock, BLITZ_FOREVER), 0);
    blitz_rwlock_downgrade(&rwlock);
    blitz_rwlock_read_unlock(&rwlock);
    blitz_rwlock_read_future_init(&f, &rwlock);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    blitz_rwlock_read_unlock(&rwlock);
    return segv();
}
static int after_a_wait(void)
{
    for (int i = 0; i < 3; i++)
        CHECK_EQ(blitz_sleep(1), 0);
    blitz_yield();
    return segv();
}
static int fault_of_child(void *arg)
{
    (void)arg;
    return segv();
}
static int inside_an_own_job(void)
{
    blitz_job job;
    blitz_fork(&job, fault_of_child, NULL);
    return blitz_join(&job); /* calls it, unless it is stolen */
}

static int try_each(void *arg)
{
    static const deed each[] = {after_a_scope,           after_a_fork, after_a_stolen_fork,
                                after_a_fork_and_a_wait, after_locks,  after_a_wait};
    (void)arg;
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) {
        t_watch("deed %zu", i);
        CHECK_EQ(end_of(&doer, each[i]), -ESRCH);
        CHECK_EQ(last.code, -EFAULT);
    }
    return 0;
}

TEST(trap, what_was_closed_before_a_fault_does_not_count)
{
    if (!HAS_TRAP)
        t_skip("no trap on this architecture");
    on_a_runtime(try_each, NULL);
}

static int try_own_job(void *arg)
{
    (void)arg;
    CHECK_EQ(end_of(&doer, inside_an_own_job), -ESRCH);
    CHECK_EQ(last.code, -EFAULT);
    return 0;
}

/* With one proc no job is stolen. */
TEST(trap, a_job_that_its_own_join_calls_is_part_of_the_handler)
{
    const blitz_runtime_opts opts = {.procs = 1};
    if (!HAS_TRAP)
        t_skip("no trap on this architecture");
    CHECK_EQ(blitz_log_set(hear, NULL, BLITZ_LOG_WARN), 0);
    CHECK_EQ(blitz_run(try_own_job, NULL, &opts), 0);
}

/* ---- init, exit and drop ---- */

static int faulty_init(void *state)
{
    (void)state;
    return segv();
}
static void faulty_exit(void *state, const blitz_exit_reason *why)
{
    note_exit(state, why);
    (void)segv();
}
static void faulty_drop(void *value, void *ctx)
{
    note_drop(value, ctx);
    (void)fpe();
}

static int stop(void)
{
    return BLITZ_ACTOR_STOP;
}

static int try_ends(void *arg)
{
    static const blitz_behaviour bad_init = {DOER, .init = faulty_init, .trap_faults = true};
    static const blitz_behaviour bad_end = {.name = "bad_end",
                                            .state_bytes = sizeof(long),
                                            .handlers = handlers,
                                            .handler_count = 3,
                                            .exit = faulty_exit,
                                            .drop = faulty_drop,
                                            .trap_faults = true};
    blitz_actor_id id;
    (void)arg;
    CHECK_EQ(blitz_actor_spawn(&bad_init, NULL, NULL, &id), 0);
    while (blitz_actor_is_alive(id))
        blitz_yield();
    CHECK_EQ(exits, 0); /* it had not begun */
    CHECK_EQ(drops, 1);
    CHECK_EQ(faults_logged, 1);
    CHECK_EQ(end_of(&bad_end, stop), -ESRCH);
    CHECK_EQ(last.kind, BLITZ_EXIT_NORMAL);
    CHECK_EQ(exits, 1);
    CHECK_EQ(drops, 2);
    CHECK_EQ(faults_logged, 3);
    CHECK_EQ(end_of(&bad_end, segv), -ESRCH);
    CHECK_EQ(faults_logged, 6);
    return 0;
}

TEST(trap, a_fault_in_init_exit_or_drop_ends_that_function)
{
    if (!HAS_TRAP)
        t_skip("no trap on this architecture");
    on_a_runtime(try_ends, NULL);
}

/* ---- cargo, neighbours, supervisors ---- */

static int send_cargo(void *arg)
{
    blitz_actor_id id;
    (void)arg;
    for (int i = 0; i < 10; i++) {
        void *block = blitz_msg_alloc(1000);
        blitz_binary *binary;
        CHECK_NOT_NULL(block);
        CHECK_EQ(blitz_binary_copy("bytes", 6, &binary), 0);
        blitz_cargo cargo = {.binary = i % 2 ? binary : NULL,
                             .move = i % 2 ? NULL : BLITZ_MOVE(block)};
        CHECK_EQ(blitz_actor_spawn(&doer, NULL, NULL, &id), 0);
        CHECK_EQ(blitz_actor_send_with(id, LOADED, NULL, 0, &cargo), 0);
        while (blitz_actor_is_alive(id))
            blitz_yield();
        CHECK_EQ(block == NULL, i % 2 == 0);
        blitz_msg_drop(block);
        blitz_binary_unref(binary);
    }
    return 0;
}

/* AddressSanitizer finds what is not. */
TEST(trap, the_cargo_of_a_message_is_released_behind_a_fault)
{
    if (!HAS_TRAP)
        t_skip("no trap on this architecture");
    on_a_runtime(send_cargo, NULL);
    CHECK_EQ(faults_logged, 10);
}

static int try_many(void *arg)
{
    static const deed each[] = {segv, fpe, ill, call_null, overflow};
    int count = (int)t_scaled(10000);
    blitz_child_spec child = {.id = "doer", .behaviour = &doer};
    blitz_supervisor_plan plan = {
        .children = &child, .child_count = 1, .intensity = 1000, .period = 1};
    blitz_actor_id top, id;
    (void)arg;
    CHECK_EQ(blitz_supervisor_spawn(&plan, NULL, &top), 0);
    for (int i = 0; i < count; i++) {
        const deed *what = &each[i % 100 == 0 ? i / 100 % 5 : i % 4];
        t_watch("fault %d", i);
        int rc;
        do {
            CHECK_EQ(blitz_supervisor_which(top, "doer", &id), 0);
            rc = blitz_actor_send(id, DO, what, sizeof *what);
        } while (rc == -ESRCH);
        CHECK_EQ(rc, 0);
        CHECK_EQ(blitz_actor_call(id, COUNT, NULL, 0, NULL, 0, BLITZ_FOREVER), -ESRCH);
        while (exits <= i)
            blitz_yield();
    }
    CHECK_EQ(exits, count);
    CHECK_EQ(faults_logged, count);
    return blitz_actor_stop(top);
}

TEST_LIMIT(trap, ten_thousand_faults_under_a_supervisor_leave_nothing_behind, 300)
{
    if (!HAS_TRAP)
        t_skip("no trap on this architecture");
    on_a_runtime(try_many, NULL);
    CHECK_GE(drops, exits);
}

/* An operation of a neighbour is in flight while others fault. */
static blitz_tcp *ends[2];
static _Atomic(int) reads;
static int read_in_handler(void)
{
    char byte = 0;
    CHECK_EQ(blitz_tcp_read(ends[0], &byte, 1, BLITZ_FOREVER), 1);
    CHECK_EQ(byte, 'x');
    reads++;
    return 0;
}

static int beside_a_read(void *arg)
{
    blitz_actor_id reader;
    deed what = read_in_handler;
    long count;
    (void)arg;
    CHECK_EQ(blitz_unix_pair(ends), 0);
    CHECK_EQ(blitz_actor_spawn(&doer, NULL, NULL, &reader), 0);
    CHECK_EQ(blitz_actor_send(reader, DO, &what, sizeof what), 0);
    for (int i = 0, n = (int)t_scaled(500); i < n; i++)
        CHECK_EQ(end_of(&doer, i % 2 ? segv : overflow), -ESRCH);
    CHECK_EQ(reads, 0);
    CHECK_EQ(blitz_tcp_write(ends[1], "x", 1, BLITZ_FOREVER), 1);
    CHECK_EQ(blitz_actor_call(reader, COUNT, NULL, 0, &count, sizeof count, BLITZ_FOREVER),
             (int)sizeof count);
    CHECK_EQ(count, 1);
    CHECK_EQ(reads, 1);
    what = segv;
    CHECK_EQ(blitz_actor_send(reader, DO, &what, sizeof what), 0); /* it is trapped, too */
    while (blitz_actor_is_alive(reader))
        blitz_yield();
    blitz_tcp_unref(ends[0]);
    blitz_tcp_unref(ends[1]);
    return 0;
}

TEST_LIMIT(trap, a_receive_in_flight_is_not_disturbed_by_faults_of_others, 120)
{
    if (!HAS_TRAP)
        t_skip("no trap on this architecture");
    on_a_runtime(beside_a_read, NULL);
}

/* ---- not trapped ---- */

/* Run in a child process. Returns its status. */
static int death_of(int (*fn)(void *), void *arg)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0) {
        static const int all[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            signal(all[i], SIG_DFL); /* the harness's handlers are not what is tested */
        close(STDERR_FILENO);
        const blitz_runtime_opts opts = {.procs = 2};
        (void)blitz_run(fn, arg, &opts);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

static int end_of_trapping(void *arg)
{
    (void)end_of(&doer, *(deed *)arg);
    return 0;
}

static void dies_of(deed what, int signal)
{
    if (!HAS_TRAP)
        t_skip("no trap on this architecture");
    int status = death_of(end_of_trapping, &what);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), signal);
}

static int libc_fault(void)
{
    const char *volatile text = (const char *)8;
    volatile size_t length = strlen(text);
    return length == 0;
}
TEST(trap, a_fault_in_the_c_library_ends_the_process)
{
    if (!HAS_TRAP)
        t_skip("no trap on this architecture");
    deed what = libc_fault;
    CHECK_NE(death_of(end_of_trapping, &what), 0);
}

static int malloc_fault(void)
{
    uintptr_t wild = strtoull("123456780000", NULL, 16); /* no constant for compilers and linters */
    void *moved = realloc((void *)wild, 100); /* lint: allow allocator: the fault is in it */
    free(moved);                              /* lint: allow allocator: likewise */
    return 0;
}
TEST(trap, a_fault_in_malloc_ends_the_process)
{
    if (!HAS_TRAP)
        t_skip("no trap on this architecture");
    deed what = malloc_fault;
    CHECK_NE(death_of(end_of_trapping, &what), 0);
}

static int compare_fault(const void *a, const void *b)
{
    (void)a, (void)b;
    return segv();
}
static int callback_of_libc(void)
{
    int numbers[] = {3, 2, 1};
    qsort(numbers, 3, sizeof numbers[0], compare_fault);
    return 0;
}
TEST(trap, a_fault_in_a_callback_of_the_c_library_ends_the_process)
{
    dies_of(callback_of_libc, SIGSEGV);
}

static int in_blitz(void)
{
    blitz_mutex *volatile m = (blitz_mutex *)8;
    int rc = blitz_mutex_try_lock(m);
    return rc & 0;
}
TEST(trap, a_fault_in_blitz_ends_the_process)
{
    if (!HAS_TRAP)
        t_skip("no trap on this architecture");
    deed what = in_blitz;
    CHECK_NE(death_of(end_of_trapping, &what), 0);
}

static int body_fault(size_t from, size_t to, void *arg)
{
    (void)from, (void)to, (void)arg;
    return segv();
}
static int callback_of_blitz(void)
{
    return blitz_for(1, body_fault, NULL, NULL);
}
TEST(trap, a_fault_in_a_callback_of_blitz_ends_the_process)
{
    dies_of(callback_of_blitz, SIGSEGV);
}

static int under_a_fork(void)
{
    blitz_job job;
    blitz_fork(&job, number, NULL);
    (void)segv();
    return blitz_join(&job);
}
TEST(trap, a_fault_under_a_fork_ends_the_process)
{
    dies_of(under_a_fork, SIGSEGV);
}

static int under_a_stolen_fork(void)
{
    blitz_job job;
    fork_stolen(&job);
    (void)segv();
    return blitz_join(&job);
}
TEST(trap, a_fault_under_a_stolen_fork_ends_the_process)
{
    dies_of(under_a_stolen_fork, SIGSEGV);
}

static int under_a_queued_fork(void)
{
    blitz_job job;
    job_may_end = false;
    blitz_fork(&job, long_job, NULL);
    CHECK_EQ(blitz_sleep(1), 0); /* the job leaves the deque */
    (void)segv();
    job_may_end = true;
    return blitz_join(&job);
}
TEST(trap, a_fault_under_a_fork_that_was_queued_ends_the_process)
{
    dies_of(under_a_queued_fork, SIGSEGV);
}

static int faulty_job(void *arg)
{
    (void)arg;
    job_runs = true;
    return segv();
}
static int in_a_stolen_job(void)
{
    blitz_job job;
    job_runs = false;
    blitz_fork(&job, faulty_job, NULL);
    while (!job_runs)
        blitz_share();
    return blitz_join(&job);
}
TEST(trap, a_fault_in_a_stolen_job_ends_the_process)
{
    dies_of(in_a_stolen_job, SIGSEGV);
}

static int in_a_child(void)
{
    blitz_task *child;
    int result;
    CHECK_EQ(blitz_spawn(fault_of_child, NULL, NULL, &child), 0);
    return blitz_task_join(child, &result, BLITZ_FOREVER);
}
TEST(trap, a_fault_in_a_child_that_a_join_runs_ends_the_process)
{
    dies_of(in_a_child, SIGSEGV);
}

static int in_a_scope(void)
{
    blitz_scope scope;
    CHECK_EQ(blitz_scope_open(&scope, NULL, BLITZ_FOREVER), 0);
    (void)segv();
    return blitz_scope_close(&scope);
}
TEST(trap, a_fault_in_a_scope_ends_the_process)
{
    dies_of(in_a_scope, SIGSEGV);
}

/* The child of a fork has the thread of the actor, and no other. vfork() gives it our memory as well. */
static int check_child(pid_t child)
{
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV)
        _exit(1);
    return 0;
}
static int in_a_forked_process(void)
{
    pid_t child = fork();
    return child == 0 ? segv() : check_child(child);
}
static int in_a_vforked_process(void)
{
    pid_t child =
        vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): what the case is for */
    if (child == 0) {
        (void)segv(); /* NOLINT(clang-analyzer-unix.Vfork): likewise */
        _exit(0);
    }
    return check_child(child);
}
static int forks(void *arg)
{
    CHECK_EQ(end_of(&doer, *(deed *)arg), (int)sizeof(long)); /* the parent goes on */
    return 0;
}
TEST(trap, a_fault_in_a_forked_process_ends_that_process)
{
    static deed fork_or_vfork[] = {in_a_forked_process, in_a_vforked_process};
    if (!HAS_TRAP)
        t_skip("no trap on this architecture");
    for (int i = 0; i < 2; i++) {
        int status = death_of(forks, &fork_or_vfork[i]);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), 0);
    }
}

static int with_the_mutex(void)
{
    CHECK_EQ(blitz_mutex_lock(&mutex, BLITZ_FOREVER), 0);
    return segv();
}
TEST(trap, a_fault_with_a_mutex_held_ends_the_process)
{
    dies_of(with_the_mutex, SIGSEGV);
}

static int with_the_rwlock(void)
{
    CHECK_EQ(blitz_rwlock_read(&rwlock, BLITZ_FOREVER), 0);
    return segv();
}
TEST(trap, a_fault_with_an_rwlock_held_ends_the_process)
{
    dies_of(with_the_rwlock, SIGSEGV);
}

static int with_a_lock_of_the_runtime(void)
{
    bz_self_hold();
    return segv();
}
TEST(trap, a_fault_with_a_lock_of_the_runtime_held_ends_the_process)
{
    dies_of(with_a_lock_of_the_runtime, SIGSEGV);
}

static int while_paused(void)
{
    blitz_preempt_pause();
    return segv();
}
TEST(trap, a_fault_in_a_pause_ends_the_process)
{
    dies_of(while_paused, SIGSEGV);
}

static int sent(void)
{
    return raise(SIGFPE);
}
TEST(trap, a_signal_that_was_sent_is_no_fault)
{
    dies_of(sent, SIGFPE);
}

/* Beside an actor that traps. */
static int end_of_careless(void *arg)
{
    CHECK_EQ(end_of(&doer, segv), -ESRCH);
    (void)end_of(&careless, *(deed *)arg);
    return 0;
}
TEST(trap, an_actor_that_did_not_ask_ends_the_process)
{
    deed what = ill;
    if (!HAS_TRAP)
        t_skip("no trap on this architecture");
    int status = death_of(end_of_careless, &what);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGILL);
}

static int fault_of_fiber(void *arg)
{
    CHECK_EQ(end_of(&doer, segv), -ESRCH);
    return (*(deed *)arg)();
}
TEST(trap, a_fiber_that_faults_ends_the_process)
{
    deed what = fpe;
    if (!HAS_TRAP)
        t_skip("no trap on this architecture");
    int status = death_of(fault_of_fiber, &what);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGFPE);
}

/* ---- handlers of the program ---- */

static void leave(int signal, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    _exit(40 + signal);
}

static int with_earlier_handler(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(end_of(&doer, i == 0 ? segv : i == 1 ? fpe : overflow), -ESRCH);
    (void)end_of(&careless, fpe);
    return 0;
}
static int install_and_fault(void *arg)
{
    struct sigaction mine = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    mine.sa_sigaction = leave;
    sigaction(SIGFPE, &mine, NULL);
    return with_earlier_handler(arg);
}
TEST(trap, the_programs_own_handler_gets_the_faults_that_are_not_trapped)
{
    if (!HAS_TRAP)
        t_skip("no trap on this architecture");
    int status = death_of(install_and_fault, NULL);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 40 + SIGFPE);
}

static void *handler_of(int signal)
{
    struct sigaction now;
    CHECK_EQ(sigaction(signal, NULL, &now), 0);
    return (void *)(uintptr_t)now.sa_handler;
}

static int look_at_handlers(void *arg)
{
    void **before = arg;
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(&careless, NULL, NULL, &id), 0);
    CHECK(handler_of(SIGFPE) == before[0]);
    CHECK(handler_of(SIGILL) == before[1]);
    CHECK_EQ(blitz_actor_spawn(&doer, NULL, NULL, &id), 0);
    CHECK(handler_of(SIGFPE) != before[0]);
    CHECK(handler_of(SIGILL) != before[1]);
    return 0;
}

/* A library owns no signal of the program that uses it. */
TEST(trap, handlers_are_installed_only_for_a_behaviour_that_asks)
{
    void *before[] = {handler_of(SIGFPE), handler_of(SIGILL)};
    void *segv_before = handler_of(SIGSEGV);
    if (!HAS_TRAP)
        t_skip("no trap on this architecture");
    on_a_runtime(look_at_handlers, before);
    CHECK(handler_of(SIGFPE) == before[0]);
    CHECK(handler_of(SIGILL) == before[1]);
    CHECK(handler_of(SIGSEGV) == segv_before);
}

static int spawn_elsewhere(void *arg)
{
    blitz_actor_id id;
    *(int *)arg = blitz_actor_spawn(&doer, NULL, NULL, &id);
    return 0;
}
TEST(trap, without_a_trap_a_spawn_says_so)
{
    int rc = 1;
    if (HAS_TRAP)
        t_skip("this architecture has a trap");
    CHECK_EQ(blitz_run(spawn_elsewhere, &rc, NULL), 0);
    CHECK_EQ(rc, -EOPNOTSUPP);
}
