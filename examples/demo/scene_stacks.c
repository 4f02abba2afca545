/*
 * scene_stacks.c - a hundred thousand coroutines in a ring, each on its own guarded stack. One more
 * overflows its stack, in a child process, and the report names it.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "demo.h"
#include "support/coro.h"
#include "task/overflow.h"
#include "task/stack.h"

/* ---- the ring --------------------------------------------------------------------------------- */

struct member {
    struct bz_coro coro;
    struct bz_stack *stack;
    struct member *next;
    struct ring *ring;
    uint64_t visits;
};

struct ring {
    struct demo *demo;
    struct bz_stack_pool pool;
    struct bz_stack_cache cache;
    struct member *members;
    uint64_t count, hops, done;
};

static void pass_on(struct bz_coro *c, void *arg)
{
    struct member *me = arg;
    struct ring *r = me->ring;
    for (;;) {
        me->visits++;
        if (++r->done == r->hops)
            bz_coro_yield(c);
        else
            bz_coro_pass(c, &me->next->coro);
    }
}

static bool ring_build(struct ring *r)
{
    for (uint64_t i = 0; i < r->count; i++) {
        struct member *m = &r->members[i];
        if (bz_stack_take(&r->cache, BZ_STACK_64K, &m->stack) != 0)
            return false;
        m->ring = r;
        m->next = &r->members[(i + 1) % r->count];
        bz_coro_init(&m->coro, m->stack->low, bz_stack_top(m->stack), pass_on, m);
        demo_progress(r->demo, i + 1, r->count, "coroutines");
    }
    return true;
}

static void ring_drop(struct ring *r)
{
    for (uint64_t i = 0; i < r->count && r->members[i].stack != NULL; i++) {
        bz_coro_fini(&r->members[i].coro);
        bz_stack_give(&r->cache, r->members[i].stack);
    }
    bz_stack_cache_fini(&r->cache);
    bz_stack_pool_fini(&r->pool);
    free(r->members);
}

static void ring_play(struct demo *d, struct ring *r)
{
    double start = demo_seconds();
    if (!ring_build(r)) {
        demo_cannot(d, "there is no memory for %s stacks", demo_count(r->count));
        return;
    }
    double built = demo_seconds();
    (void)bz_coro_resume(&r->members[0].coro);
    double passed = demo_seconds();

    uint64_t least = r->members[0].visits, most = least;
    for (uint64_t i = 1; i < r->count; i++) {
        uint64_t n = r->members[i].visits;
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    const char *guards = r->members[r->count - 1].stack->guard == BZ_STACK_GUARD_CANARY
                             ? "watched by canaries (this kernel has no room for guards)"
                             : "each with a guard below it";
    demo_result(d, "%s coroutines on stacks of 64 KiB, %s: made in %.2f us each",
                demo_count(r->count), guards, (built - start) * 1e6 / (double)r->count);
    demo_result(d, "%s hops around the ring, from stack to stack: %.1f ns each",
                demo_count(r->hops), (passed - built) * 1e9 / (double)r->hops);
    demo_claim(d, least == most && least * r->count == r->hops,
               "everybody was visited equally often, not %s to %s times", demo_count(least),
               demo_count(most));
}

/* ---- the overflow ----------------------------------------------------------------------------- */

static __attribute__((noinline)) int fall(int depth)
{
    volatile char frame[256];
    frame[depth & 255] = (char)depth;
    return depth < 0 ? 0 : fall(depth + 1) + frame[depth & 255];
}

static void recurse(struct bz_coro *c, void *arg)
{
    (void)c;
    *(int *)arg = fall(1);
}

/* On a thread of ours, because a handler needs an alternate stack to speak from. */
static void overflow(void *arg)
{
    static struct bz_stack_pool pool;
    static struct bz_stack_cache cache;
    struct bz_stack_config config = {.guards = BZ_STACK_GUARDS_REQUIRED};
    struct bz_stack *s;
    struct bz_coro c;
    int result;
    (void)arg;
    if (bz_stack_pool_init(&pool, &config) != 0 || bz_overflow_watch(&pool) != 0)
        _exit(1);
    bz_stack_cache_init(&cache, &pool);
    if (bz_stack_take(&cache, BZ_STACK_64K, &s) != 0)
        _exit(77);
    bz_stack_name(s, "Icarus");
    bz_coro_init(&c, s->low, bz_stack_top(s), recurse, &result);
    (void)bz_coro_resume(&c);
    _exit(2); /* not reached */
}

static void child(int out)
{
    struct rlimit no_core = {0, 0};
    struct bz_os_thread thread;
    setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGSEGV, SIG_DFL);
    dup2(out, STDERR_FILENO);
    if (bz_os_thread_start(&bz_os_system, &thread, NULL, overflow, NULL) == 0)
        bz_os_thread_join(&bz_os_system, &thread);
    _exit(3);
}

static void overflow_play(struct demo *d)
{
    char said[8192];
    size_t length = 0;
    int ends[2], status = 0;
    if (pipe(ends) != 0)
        return;
    pid_t pid = fork();
    if (pid == 0)
        child(ends[1]);
    close(ends[1]);
    for (ssize_t n; (n = read(ends[0], said + length, sizeof said - 1 - length)) > 0;)
        length += (size_t)n;
    said[length] = '\0';
    close(ends[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        demo_result(d, "no guards on this system, so no overflow to catch in the act");
        return;
    }
    char *end = strchr(said, '\n');
    if (end != NULL)
        *end = '\0';
    demo_result(d, "one overflows, in a process of its own, which says before it dies:");
    demo_result(d, "  %s", said);
    demo_claim(d, strstr(said, "stack overflow in fiber \"Icarus\"") != NULL,
               "the overflow is called by its fiber's name");
    demo_claim(d, WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV,
               "and is still the fault that it is");
}

static void play(struct demo *d)
{
    struct ring *r = calloc(1, sizeof *r);
    struct bz_stack_config config = {.guards = BZ_STACK_GUARDS_BEST};
    if (r == NULL || bz_stack_pool_init(&r->pool, &config) != 0)
        abort();
    bz_stack_cache_init(&r->cache, &r->pool);
    r->demo = d;
    r->count = demo_scaled(d, 100000);
    r->hops = r->count * 50;
    r->members = calloc(r->count, sizeof r->members[0]);
    if (r->members == NULL)
        abort();
    ring_play(d, r);
    ring_drop(r);
    free(r);
    overflow_play(d);
}

const struct demo_scene scene_stacks = {
    .name = "stacks",
    .title = "A hundred thousand coroutines in a ring",
    .about = "Each stands on a guarded stack of its own and passes on to the next; and one falls.",
    .play = play,
};
