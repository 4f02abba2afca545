/*
 * Guards below a stack: each kind, the fallback from one to the next, and overflows.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "support/stacks.h"
#include "support/coro.h"

/* ---- backends that refuse
 * ---------------------------------------------------------------------- */

static int guards_left; /* slabs that still get theirs */
static enum bz_os_guard guard_kind = BZ_OS_GUARD_BEST;
static int refusal = -ENOSYS;

static int guard_some(const struct bz_os *os, struct bz_os_slab *slab, enum bz_os_guard how,
                      const struct bz_os_guards *where)
{
    (void)how;
    if (guards_left-- <= 0)
        return refusal;
    return bz_os_system.slab_guard(os, slab, guard_kind, where);
}

static int reserve_none(const struct bz_os *os, struct bz_os_slab *slab, size_t bytes, size_t align,
                        enum bz_os_slab_flags flags, const char *name)
{
    (void)os, (void)slab, (void)bytes, (void)align, (void)flags, (void)name;
    return -ENOMEM;
}

static struct bz_os os_with_guards(int slabs)
{
    struct bz_os os = bz_os_system;
    os.slab_guard = guard_some;
    guards_left = slabs;
    return os;
}

static int warnings;
static char warning[256];
static void count_warnings(void *ctx, blitz_log_level level, const char *message)
{
    (void)ctx;
    warnings += level == BLITZ_LOG_WARN;
    snprintf(warning, sizeof warning, "%s", message);
}

/* ---- overflowing ------------------------------------------------------------------------------ */

static BZ_NOINLINE int recurse(int depth)
{
    volatile char frame[256];
    frame[depth & 255] = (char)depth;
    return depth < 0 ? 0 : recurse(depth + 1) + frame[depth & 255];
}
static void overflow(struct bz_coro *c, void *arg)
{
    (void)c;
    *(int *)arg = recurse(1);
}

/* How a process ends that overflows a stack of that class. */
static int overflow_status(struct t_stacks *t, enum bz_stack_class class)
{
    pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0) {
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGSEGV, SIG_DFL);
        struct bz_stack *s = t_stack_take(t, class);
        struct bz_coro c;
        int result;
        bz_coro_init(&c, s->low, bz_stack_top(s), overflow, &result);
        bz_coro_resume(&c);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

/* ---- guards ----------------------------------------------------------------------------------- */

TEST(stack_guard, an_overflow_of_any_class_is_a_fault_and_not_a_scribble)
{
    struct t_stacks t;
    t_stacks_init(&t, (struct bz_stack_config){.guards = BZ_STACK_GUARDS_REQUIRED});
    for (int class = 0; class < BZ_STACK_CLASSES; class ++) {
        int status = overflow_status(&t, (enum bz_stack_class) class);
        if (BZ_ASAN || BZ_TSAN)
            CHECK_NE(status, 0); /* they report it themselves and exit */
        else
            CHECK_EQ(WTERMSIG(status), SIGSEGV);
    }
    t_stacks_fini(&t);
}

/* The kernel, too, meets the guard: a buffer that is too long must not reach the neighbour. */
TEST(stack_guard, a_system_call_that_writes_below_the_stack_gets_an_error)
{
    struct t_stacks t;
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(write(ends[1], "0123456789", 10), 10);
    t_stacks_init(&t, (struct bz_stack_config){.guards = BZ_STACK_GUARDS_REQUIRED});
    struct bz_stack *s = t_stack_take(&t, BZ_STACK_64K);
    CHECK_EQ(read(ends[0], s->low - 10, 10), -1);
    CHECK_EQ(errno, EFAULT);
    close(ends[0]);
    close(ends[1]);
    bz_stack_give(&t.cache, s);
    t_stacks_fini(&t);
}

TEST(stack_guard, page_protection_guards_as_well)
{
    struct bz_os os = os_with_guards(1000);
    struct t_stacks t;
    guard_kind = BZ_OS_GUARD_PROTECT;
    t_stacks_init(&t, (struct bz_stack_config){.os = &os});
    struct bz_stack *s = t_stack_take(&t, BZ_STACK_64K);
    CHECK_EQ(s->guard, BZ_STACK_GUARD_PROTECT);
    int status = overflow_status(&t, BZ_STACK_64K);
    CHECK(WIFSIGNALED(status) || BZ_ASAN || BZ_TSAN);
    bz_stack_give(&t.cache, s);
    t_stacks_fini(&t);
}

/* Guards outlive the giving back of pages, or the second user of a stack would have none. */
TEST(stack_guard, guards_are_still_there_after_the_pages_were_given_back)
{
    struct t_stacks t;
    t_stacks_init(&t, (struct bz_stack_config){.guards = BZ_STACK_GUARDS_REQUIRED});
    struct bz_stack *s[40];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 40; i++)
            s[i] = t_stack_take(&t, BZ_STACK_64K);
        for (int i = 0; i < 40; i++)
            bz_stack_give(&t.cache, s[i]);
        bz_stack_cache_fini(&t.cache);
        bz_stack_pool_trim(&t.pool);
    }
    CHECK_NE(overflow_status(&t, BZ_STACK_64K), 0);
    t_stacks_fini(&t);
}

/* ---- required --------------------------------------------------------------------------------- */

TEST(stack_guard, required_and_not_to_be_had_is_an_error_that_leaves_nothing_behind)
{
    struct bz_os os = os_with_guards(1);
    struct t_stacks t;
    struct bz_stack *s[33], *none = NULL;
    t_stacks_init(&t, (struct bz_stack_config){.os = &os, .guards = BZ_STACK_GUARDS_REQUIRED});
    for (int i = 0; i < 32; i++)
        s[i] = t_stack_take(&t, BZ_STACK_64K);
    CHECK_EQ(t.pool.kind[BZ_STACK_64K].slabs, 1u);

    CHECK_EQ(bz_stack_take(&t.cache, BZ_STACK_64K, &none), -ENOSYS);
    refusal = -ENOMEM;
    CHECK_EQ(bz_stack_take(&t.cache, BZ_STACK_64K, &none), -ENOMEM);

    CHECK_NULL(none);
    CHECK_EQ(t.memory.live, 1u);
    guards_left = 1; /* and it is not for ever */
    s[32] = t_stack_take(&t, BZ_STACK_64K);
    for (int i = 0; i < 33; i++)
        bz_stack_give(&t.cache, s[i]);
    t_stacks_fini(&t);
}

TEST(stack_guard, no_memory_for_a_slab_or_its_descriptor_is_an_error)
{
    struct bz_os os = bz_os_system;
    struct t_stacks t;
    struct bz_stack *s = NULL;
    os.slab_reserve = reserve_none;
    t_stacks_init(&t, (struct bz_stack_config){.os = &os});
    CHECK_EQ(bz_stack_take(&t.cache, BZ_STACK_64K, &s), -ENOMEM);
    os.slab_reserve = bz_os_system.slab_reserve;
    t.memory.fail_at = t.memory.calls + 1;
    CHECK_EQ(bz_stack_take(&t.cache, BZ_STACK_64K, &s), -ENOMEM);
    CHECK_EQ(t.memory.live, 0u);
    CHECK_NULL(s);
    CHECK_EQ(bz_stack_take(&t.cache, BZ_STACK_64K, &s), 0);
    bz_stack_give(&t.cache, s);
    t_stacks_fini(&t);
}

/* ---- canaries --------------------------------------------------------------------------------- */

TEST(stack_guard, without_guards_there_are_canaries_and_one_warning)
{
    struct bz_os os = os_with_guards(1);
    struct t_stacks t;
    struct bz_stack *s[200];
    blitz_log_set(count_warnings, NULL, BLITZ_LOG_WARN);
    t_stacks_init(&t, (struct bz_stack_config){.os = &os});
    for (int i = 0; i < 200; i++) {
        s[i] = t_stack_take(&t, BZ_STACK_64K);
        CHECK_EQ(s[i]->guard == BZ_STACK_GUARD_CANARY, i >= 32); /* the second slab has none */
    }
    CHECK_EQ(warnings, 1);
    CHECK(strstr(warning, "canary") != NULL);
    for (int i = 0; i < 200; i++)
        bz_stack_give(&t.cache, s[i]);
    blitz_log_set(NULL, NULL, BLITZ_LOG_WARN);
    t_stacks_fini(&t);
}

static void kill_the_canary_and(void (*then)(struct t_stacks *t, struct bz_stack *s))
{
    struct bz_os os = os_with_guards(0);
    struct t_stacks t;
    t_stacks_init(&t, (struct bz_stack_config){.os = &os});
    struct bz_stack *s = t_stack_take(&t, BZ_STACK_64K);
    bz_stack_name(s, "greedy");
    t_stack_dirty(s, bz_stack_bytes(s));
    then(&t, s);
}
static void park(struct t_stacks *t, struct bz_stack *s)
{
    (void)t;
    bz_stack_trim(s);
}
static void give(struct t_stacks *t, struct bz_stack *s)
{
    bz_stack_give(&t->cache, s);
}
static void die_at_park(void *arg)
{
    (void)arg;
    kill_the_canary_and(park);
}
static void die_at_give(void *arg)
{
    (void)arg;
    kill_the_canary_and(give);
}

TEST(stack_guard, a_dead_canary_names_the_fiber_at_its_next_park)
{
    CHECK_ABORTS(die_at_park, NULL, "stack overflow in fiber \"greedy\"");
    CHECK_ABORTS(die_at_give, NULL, "stack overflow in fiber \"greedy\"");
}

TEST(stack_guard, canaries_survive_reuse_depth_and_the_giving_back_of_pages)
{
    struct bz_os os = os_with_guards(0);
    struct t_stacks t;
    t_stacks_init(&t, (struct bz_stack_config){.os = &os, .idle_max = 8});
    for (int round = 0; round < 30; round++) {
        struct bz_stack *s[100];
        for (int i = 0; i < 100; i++) {
            s[i] = t_stack_take(&t, BZ_STACK_64K);
            CHECK_EQ(s[i]->guard, BZ_STACK_GUARD_CANARY);
            t_stack_dirty(s[i], (size_t)t_random_below(50 << 10));
            bz_stack_trim(s[i]);
        }
        for (int i = 0; i < 100; i++)
            bz_stack_give(&t.cache, s[i]);
        if (round % 5 == 0)
            bz_stack_cache_trim(&t.cache);
        if (round % 7 == 0)
            bz_stack_pool_trim(&t.pool);
        bz_stack_pool_check(&t.pool);
    }
    t_stacks_fini(&t);
}

/* ---- many ------------------------------------------------------------------------------------- */

static int count_maps(void)
{
    char line[512];
    int count = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    CHECK_NOT_NULL(f);
    while (fgets(line, sizeof line, f) != NULL)
        count++;
    fclose(f);
    return count;
}

static bool maps_show(const char *name)
{
    char line[512];
    bool is_shown = false;
    FILE *f = fopen("/proc/self/maps", "r");
    CHECK_NOT_NULL(f);
    while (fgets(line, sizeof line, f) != NULL)
        is_shown |= strstr(line, name) != NULL;
    fclose(f);
    return is_shown;
}

static uint64_t kib_of(const char *file, const char *key)
{
    char line[256];
    uint64_t kib = 0;
    FILE *f = fopen(file, "r");
    CHECK_NOT_NULL(f);
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            kib = strtoull(line + strlen(key), NULL, 10);
    fclose(f);
    return kib;
}

TEST(stack_guard, slabs_have_a_name_in_the_list_of_mappings)
{
    struct t_stacks t;
    t_stacks_init(&t, (struct bz_stack_config){0});
    struct bz_stack *s = t_stack_take(&t, BZ_STACK_256K);
    if (!maps_show("[anon:"))
        t_skip("this kernel names no anonymous mappings");
    CHECK(maps_show("[anon:blitz stacks 256K]"));
    bz_stack_give(&t.cache, s);
    t_stacks_fini(&t);
}

/*
 * An older kernel has page protection only. Stacks beyond what that can guard come with a canary, and
 * the rest of the process still gets mappings.
 */
TEST(stack_guard, bug_32_without_light_guards_many_stacks_leave_mappings_for_others)
{
    enum { OTHERS = 1000 };
    const char *many = getenv("BLITZ_MANY_STACKS");
    uint64_t room = kib_of("/proc/meminfo", "MemAvailable:") / 3 / 5;
    uint64_t count = many != NULL ? strtoull(many, NULL, 10) : t_scaled(100000);
    struct bz_os os = os_with_guards(INT32_MAX);
    struct t_stacks t;
    static void *other[OTHERS];
    uint64_t protected = 0;
    guard_kind = BZ_OS_GUARD_PROTECT;
    count = count < room ? count : room;
    struct bz_stack **s = malloc(count * sizeof *s);
    CHECK_NOT_NULL(s);
    (void)blitz_log_set(count_warnings, NULL, BLITZ_LOG_WARN);
    t_stacks_init(&t, (struct bz_stack_config){.os = &os});
    for (uint64_t i = 0; i < count; i++) {
        s[i] = t_stack_take(&t, BZ_STACK_64K);
        protected += s[i]->guard == BZ_STACK_GUARD_PROTECT;
        CHECK(s[i]->guard == BZ_STACK_GUARD_PROTECT || s[i]->guard == BZ_STACK_GUARD_CANARY);
    }
    t_note("%llu of %llu stacks are guarded by protection, %d mappings",
           (unsigned long long)protected, (unsigned long long)count, count_maps());
    for (int i = 0; i < OTHERS; i++) { /* with other protections each: they do not merge */
        other[i] = mmap(NULL, 4096, i % 2 == 0 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
                        -1, 0);
        CHECK(other[i] != MAP_FAILED);
    }
    for (int i = 0; i < OTHERS; i++)
        munmap(other[i], 4096);
    CHECK_EQ(warnings > 0, protected < count);
    for (uint64_t i = 0; i < count; i++)
        bz_stack_give(&t.cache, s[i]);
    free(s);
    t_stacks_fini(&t);
}

/*
 * Guards by page protection split mappings: the 32,753rd stack fails on default sysctls, and with it
 * every mmap of the process. Ours must not. Three times that many here, four gigabytes' worth with
 * BLITZ_MANY_STACKS=1000000 (make show-ground does).
 */
TEST(stack_guard, bug_32_many_guarded_stacks_fit_on_default_sysctls)
{
    const char *many = getenv("BLITZ_MANY_STACKS");
    uint64_t room = kib_of("/proc/meminfo", "MemAvailable:") / 3 / 5;
    uint64_t count = many != NULL ? strtoull(many, NULL, 10) : t_scaled(100000);
    if (count > room) {
        t_note("memory for %llu stacks only", (unsigned long long)room);
        count = room;
    }
    if (count == 0)
        t_skip("no memory to speak of");
    struct bz_stack **s = malloc(count * sizeof *s);
    struct t_stacks t;
    CHECK_NOT_NULL(s);
    int maps = count_maps();
    t_stacks_init(&t, (struct bz_stack_config){0});
    s[0] = t_stack_take(&t, BZ_STACK_64K);
    if (s[0]->guard != BZ_STACK_GUARD_LIGHT)
        t_skip("no light guards on this kernel: page protection ends at some 24,000");
    for (uint64_t i = 1; i < count; i++) {
        s[i] = t_stack_take(&t, BZ_STACK_64K);
        CHECK_EQ(s[i]->guard, BZ_STACK_GUARD_LIGHT);
    }
    maps = count_maps() - maps;
    t_note("%llu guarded stacks in %d mappings, %.2f KiB each and %.3f KiB of page tables",
           (unsigned long long)count, maps,
           (double)kib_of("/proc/self/status", "VmRSS:") / (double)count,
           (double)kib_of("/proc/self/status", "VmPTE:") / (double)count);
    CHECK_LE(maps, 100);
    for (uint64_t i = 0; i < count; i++)
        bz_stack_give(&t.cache, s[i]);
    free(s);
    t_stacks_fini(&t);
}
