/* Slabs of pages and guards in them, on the real kernel and on lesser ones played by a filter. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/deny.h"
#include "support/sanitizers.h"
#include "harness.h"
#include "os/os.h"

#define MIB ((size_t)1 << 20)

static const struct bz_os *os = &bz_os_system;

static size_t page(void)
{
    return bz_os_page_bytes(os);
}

static struct bz_os_slab slab_of(size_t bytes)
{
    struct bz_os_slab slab;
    CHECK_EQ(bz_os_slab_reserve(os, &slab, bytes, 0, BZ_OS_SLAB_SMALL_PAGES, "t"), 0);
    return slab;
}

/* Does a system call refuse to write there? True of guards. */
static bool refuses(const void *p)
{
    return syscall(SYS_clock_gettime, CLOCK_MONOTONIC, p) != 0 && errno == EFAULT;
}

/* Resident bytes of this process. */
static size_t resident(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    CHECK_NOT_NULL(f);
    CHECK_EQ(fscanf(f, "%*d %ld", &pages), 1);
    fclose(f);
    return (size_t)pages * page();
}

/* How many lines of /proc/self/maps there are, and whether one contains `text`. */
static int maps(const char *text, bool *has)
{
    char line[512];
    int count = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    CHECK_NOT_NULL(f);
    if (has != NULL)
        *has = false;
    while (fgets(line, sizeof line, f) != NULL) {
        count++;
        if (text != NULL && strstr(line, text) != NULL)
            *has = true;
    }
    fclose(f);
    return count;
}

static bool light_is_here(void)
{
    struct bz_os_slab slab = slab_of(page());
    struct bz_os_guards g = {0, 0, page(), 1};
    int kind = bz_os_slab_guard(os, &slab, BZ_OS_GUARD_LIGHT, &g);
    bz_os_slab_release(os, &slab);
    return kind == BZ_OS_GUARD_LIGHT;
}

/* The signal that a read at `p` ends a child with, and the address it was told. */
static int *shared_pipe;
static void on_fault(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    ssize_t n = write(shared_pipe[1], &info->si_addr, sizeof info->si_addr);
    _exit(n == (ssize_t)sizeof info->si_addr ? 42 : 1);
}
static void *fault_address_of_touching(volatile char *p)
{
    int ends[2];
    void *told = NULL;
    CHECK_EQ(pipe(ends), 0);
    shared_pipe = ends;
    pid_t child = fork();
    if (child == 0) {
        struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
        sigaction(SIGSEGV, &act, NULL);
        sigaction(SIGBUS, &act, NULL);
        *p = 1;
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    if (WEXITSTATUS(status) == 42)
        CHECK_EQ(read(ends[0], &told, sizeof told), (ssize_t)sizeof told);
    close(ends[0]);
    close(ends[1]);
    return told;
}

/* ---- slabs ---- */

/* The unit of everything below. */
TEST(os_pages, page_is_a_power_of_two)
{
    CHECK_GE(page(), (size_t)4096);
    CHECK_EQ(page() & (page() - 1), (size_t)0);
}

/* A runtime may reserve for its worst case: only what is touched may cost. */
TEST(os_pages, a_slab_costs_memory_only_where_it_is_touched)
{
    struct bz_os_slab slab = slab_of(64 * MIB);
    size_t before = resident();

    for (size_t at = 0; at < 64 * MIB; at += MIB)
        slab.base[at] = 1;

    size_t grown = resident() - before;
    CHECK_LE(grown, MIB); /* 64 pages, and not 64 huge ones */
    bz_os_slab_release(os, &slab);
}

TEST(os_pages, a_slab_starts_zeroed_and_is_writable_to_the_last_byte)
{
    struct bz_os_slab slab = slab_of(4 * page());
    for (size_t i = 0; i < slab.bytes; i++)
        CHECK_EQ(slab.base[i], 0);
    memset(slab.base, 0x5a, slab.bytes);
    CHECK_EQ(slab.base[slab.bytes - 1], 0x5a);
    bz_os_slab_release(os, &slab);
    CHECK_NULL(slab.base);
    CHECK_EQ(slab.bytes, (size_t)0);
}

/* Stack control blocks are found by masking addresses. */
TEST(os_pages, alignment_is_honoured_and_leaves_nothing_behind)
{
    t_skip_under_valgrind("maps memory of its own meanwhile");
    t_skip_if_mappings_are_not_ours();
    for (size_t align = page(); align <= 64 * MIB; align *= 4) {
        struct bz_os_slab slab;
        int before = maps(NULL, NULL);
        CHECK_EQ(bz_os_slab_reserve(os, &slab, 3 * page(), align, BZ_OS_SLAB_PLAIN, NULL), 0);
        CHECK_EQ((uintptr_t)slab.base % align, (uintptr_t)0);
        CHECK_LE(maps(NULL, NULL), before + 1);
        memset(slab.base, 1, slab.bytes);
        bz_os_slab_release(os, &slab);
        CHECK_LE(maps(NULL, NULL), before);
    }
}

TEST(os_pages, nonsense_is_refused_and_leaves_the_slab_alone)
{
    struct bz_os_slab slab = {(char *)7, 7, 7};
    CHECK_EQ(bz_os_slab_reserve(os, &slab, 0, 0, BZ_OS_SLAB_PLAIN, NULL), -EINVAL);
    CHECK_EQ(bz_os_slab_reserve(os, &slab, page() + 1, 0, BZ_OS_SLAB_PLAIN, NULL), -EINVAL);
    CHECK_EQ(bz_os_slab_reserve(os, &slab, page(), 3 * page(), BZ_OS_SLAB_PLAIN, NULL), -EINVAL);
    CHECK_EQ(bz_os_slab_reserve(os, &slab, SIZE_MAX - page() + 1, 0, BZ_OS_SLAB_PLAIN, NULL),
             -ENOMEM);
    CHECK_EQ(bz_os_slab_reserve(os, &slab, SIZE_MAX - page() + 1, MIB, BZ_OS_SLAB_PLAIN, NULL),
             -ENOMEM);
    CHECK_EQ(slab.base, (char *)7);
    CHECK_EQ(slab.bytes, (size_t)7);
}

/* /proc/self/maps should show the owner of the memory. */
TEST(os_pages, a_slab_has_its_name_in_the_list_of_mappings)
{
    struct bz_os_slab slab;
    bool has;
    CHECK_EQ(bz_os_slab_reserve(os, &slab, page(), 0, BZ_OS_SLAB_PLAIN, "blitz-name-test"), 0);
    maps("[anon:blitz-name-test]", &has);
    if (!has)
        t_skip("this kernel does not name anonymous mappings");
    bz_os_slab_release(os, &slab);
    maps("blitz-name-test", &has);
    CHECK(!has);
}

/* A name is a courtesy: a kernel without it must not cost us the slab. */
TEST(os_pages, a_kernel_without_names_still_gives_slabs)
{
    t_deny(SYS_prctl, EINVAL);
    struct bz_os_slab slab = slab_of(page());
    slab.base[0] = 1;
    bz_os_slab_release(os, &slab);
}

TEST(os_pages, discarded_pages_read_as_zero_and_cost_nothing)
{
    struct bz_os_slab slab = slab_of(8 * MIB);
    memset(slab.base, 1, slab.bytes);
    size_t full = resident();

    CHECK_EQ(bz_os_pages_discard(os, slab.base + MIB, 7 * MIB), 0);

    CHECK_LE(resident() + 6 * MIB, full);
    CHECK_EQ(slab.base[MIB - 1], 1);
    CHECK_EQ(slab.base[MIB], 0);
    CHECK_EQ(slab.base[slab.bytes - 1], 0);
    bz_os_slab_release(os, &slab);
}

TEST(os_pages, discarding_foreign_pages_is_an_error)
{
    t_skip_if_emulated("discards what is not there");
    struct bz_os_slab slab = slab_of(page());
    char *gone = slab.base;
    CHECK_EQ(bz_os_pages_discard(os, slab.base + 1, page()), -EINVAL);
    bz_os_slab_release(os, &slab);
    CHECK_EQ(bz_os_pages_discard(os, gone, page()), -ENOMEM);
}

TEST(os_pages, a_full_address_space_is_an_error_and_not_a_crash)
{
    t_skip_if_emulated("does not limit its guest's address space");
    struct rlimit before, tight;
    struct bz_os_slab slab;
    CHECK_EQ(getrlimit(RLIMIT_AS, &before), 0);
    tight = (struct rlimit){1, before.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_AS, &tight), 0);
    int err = bz_os_slab_reserve(os, &slab, 64 * MIB, 64 * MIB, BZ_OS_SLAB_PLAIN, "t");
    CHECK_EQ(setrlimit(RLIMIT_AS, &before), 0);
    CHECK_EQ(err, -ENOMEM);
}

/* ---- guards ---- */

static void guards_do_their_work(enum bz_os_guard how)
{
    struct bz_os_slab slab = slab_of(64 * page());
    memset(slab.base, 1, slab.bytes);
    struct bz_os_guards g = {page(), 16 * page(), 2 * page(), 4};

    CHECK_EQ(bz_os_slab_guard(os, &slab, how, &g), (int)how);

    for (size_t p = 0; p < 64; p++) {
        bool is_guard = p % 16 == 1 || p % 16 == 2;
        CHECK_EQ(refuses(slab.base + p * page()), is_guard);
    }
    for (size_t at = 0; at < 2 * page(); at += page() / 2 - 1) /* the exact address is reported */
        CHECK_EQ(fault_address_of_touching(slab.base + 17 * page() + at),
                 (void *)(slab.base + 17 * page() + at));
    CHECK_NULL(fault_address_of_touching(slab.base + 17 * page() - 1));
    CHECK_NULL(fault_address_of_touching(slab.base + 19 * page()));

    CHECK_EQ(bz_os_pages_discard(os, slab.base, slab.bytes), 0); /* a cached stack is cleaned */
    CHECK(refuses(slab.base + 17 * page()));
    CHECK(refuses(slab.base + 18 * page()));
    CHECK_EQ(slab.base[0], 0);
    bz_os_slab_release(os, &slab);
}

TEST(os_pages, light_guards_fault_exactly_and_survive_a_discard)
{
    if (!light_is_here())
        t_skip("no MADV_GUARD_INSTALL on this kernel");
    guards_do_their_work(BZ_OS_GUARD_LIGHT);
}

TEST(os_pages, protect_guards_fault_exactly_and_survive_a_discard)
{
    guards_do_their_work(BZ_OS_GUARD_PROTECT);
}

TEST(os_pages, light_guards_split_no_mapping)
{
    if (!light_is_here())
        t_skip("no MADV_GUARD_INSTALL on this kernel");
    struct bz_os_slab slab = slab_of(64 * MIB);
    struct bz_os_guards g = {0, 16 * page(), page(), 64 * MIB / (16 * page())};
    int before = maps(NULL, NULL);

    CHECK_EQ(bz_os_slab_guard(os, &slab, BZ_OS_GUARD_BEST, &g), BZ_OS_GUARD_LIGHT);

    CHECK_LE(maps(NULL, NULL), before);
    for (size_t i = 0; i < g.count; i++) /* batches have edges: look at every one */
        CHECK(refuses(slab.base + i * g.stride));
    CHECK(!refuses(slab.base + g.stride - page()));
    CHECK_EQ(slab.protect_guards, 0u);
    bz_os_slab_release(os, &slab);
}

TEST(os_pages, one_guard_needs_no_stride)
{
    struct bz_os_slab slab = slab_of(2 * page());
    struct bz_os_guards g = {page(), 0, page(), 1};
    CHECK_GT(bz_os_slab_guard(os, &slab, BZ_OS_GUARD_BEST, &g), 0);
    CHECK(!refuses(slab.base));
    CHECK(refuses(slab.base + page()));
    bz_os_slab_release(os, &slab);
}

TEST(os_pages, guards_that_do_not_fit_are_refused_whole)
{
    struct bz_os_slab slab = slab_of(16 * page());
    size_t p = page();
    struct bz_os_guards bad[] = {
        {0, 4 * p, p, 5},            /* one too many */
        {16 * p, 0, p, 1},           /* begins at the end */
        {15 * p, 0, 2 * p, 1},       /* ends after it */
        {17 * p, 0, p, 1},           /* begins after it */
        {1, 4 * p, p, 2},            /* not at a page */
        {0, 4 * p, p + 1, 2},        /* not whole pages */
        {0, 4 * p + 1, p, 2},        /* not every so many pages */
        {0, p, 2 * p, 2},            /* one over the other */
        {0, 4 * p, 0, 2},            /* nothing */
        {0, 4 * p, p, 0},            /* none */
        {0, SIZE_MAX - p + 1, p, 2}, /* wraps */
        {0, p, p, SIZE_MAX},
        {0, p, SIZE_MAX - p + 1, 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQ(bz_os_slab_guard(os, &slab, BZ_OS_GUARD_BEST, &bad[i]), -EINVAL);
        CHECK_EQ(bz_os_slab_guard(os, &slab, BZ_OS_GUARD_PROTECT, &bad[i]), -EINVAL);
    }
    struct bz_os_guards good = {0, 5 * p, p, 4};
    CHECK_EQ(bz_os_slab_guard(os, &slab, (enum bz_os_guard)9, &good), -EINVAL);
    for (size_t i = 0; i < 16; i++)
        CHECK(!refuses(slab.base + i * p));
    CHECK_GT(bz_os_slab_guard(os, &slab, BZ_OS_GUARD_BEST, &good), 0); /* the last just fits */
    bz_os_slab_release(os, &slab);
}

/* An emulator answers advice it does not know with success. Guards must not be believed in. */
TEST(os_pages, a_kernel_that_only_says_yes_to_light_guards_gets_protect_guards)
{
    t_deny_arg(SYS_madvise, 2, 102, 0);
    struct bz_os_slab slab = slab_of(8 * page());
    struct bz_os_guards g = {0, 4 * page(), page(), 2};

    CHECK_EQ(bz_os_slab_guard(os, &slab, BZ_OS_GUARD_LIGHT, &g), -ENOSYS);
    CHECK_EQ(bz_os_slab_guard(os, &slab, BZ_OS_GUARD_BEST, &g), BZ_OS_GUARD_PROTECT);

    CHECK(refuses(slab.base));
    CHECK_EQ(slab.protect_guards, 2u);
    bz_os_slab_release(os, &slab);
}

TEST(os_pages, a_kernel_without_light_guards_gets_protect_guards)
{
    t_deny_arg(SYS_madvise, 2, 102, EINVAL);
    guards_do_their_work(BZ_OS_GUARD_PROTECT);
    struct bz_os_slab slab = slab_of(page());
    struct bz_os_guards g = {0, 0, page(), 1};
    CHECK_EQ(bz_os_slab_guard(os, &slab, BZ_OS_GUARD_BEST, &g), BZ_OS_GUARD_PROTECT);
    bz_os_slab_release(os, &slab);
}

static void light_guards_are_placed_without_batches(void)
{
    if (!light_is_here())
        t_skip("no MADV_GUARD_INSTALL on this kernel");
    struct bz_os_slab slab = slab_of(1024 * page());
    struct bz_os_guards g = {page(), 2 * page(), page(), 512};
    CHECK_EQ(bz_os_slab_guard(os, &slab, BZ_OS_GUARD_BEST, &g), BZ_OS_GUARD_LIGHT);
    for (size_t p = 0; p < 1024; p++)
        CHECK_EQ(refuses(slab.base + p * page()), p % 2 == 1);
    bz_os_slab_release(os, &slab);
}

TEST(os_pages, without_batches_light_guards_are_placed_one_by_one)
{
    t_deny(SYS_process_madvise, ENOSYS);
    light_guards_are_placed_without_batches();
}

TEST(os_pages, batches_that_only_say_yes_are_not_believed)
{
    t_deny(SYS_process_madvise, 0);
    light_guards_are_placed_without_batches();
}

static struct bz_os_slab slab_with_one_light_guard(void)
{
    if (!light_is_here())
        t_skip("no MADV_GUARD_INSTALL on this kernel");
    struct bz_os_slab slab = slab_of(16 * page());
    struct bz_os_guards first = {0, 0, page(), 1};
    CHECK_EQ(bz_os_slab_guard(os, &slab, BZ_OS_GUARD_LIGHT, &first), BZ_OS_GUARD_LIGHT);
    return slab;
}

/* The caller wanted guards on all its stacks and uses canaries on all of them. */
TEST(os_pages, light_guards_that_fail_for_want_of_memory_leave_the_slab_as_it_was)
{
    struct bz_os_slab slab = slab_with_one_light_guard();
    struct bz_os_guards rest = {4 * page(), 4 * page(), page(), 3};
    t_deny(SYS_process_madvise, ENOMEM);
    t_deny_arg(SYS_madvise, 2, 102, ENOMEM);

    CHECK_EQ(bz_os_slab_guard(os, &slab, BZ_OS_GUARD_BEST, &rest), -ENOMEM);

    CHECK(refuses(slab.base));
    for (size_t p = 1; p < 16; p++)
        CHECK(!refuses(slab.base + p * page()));
}

/* Locked memory (mlockall) takes no light guards. */
TEST(os_pages, locked_pages_get_protect_guards)
{
    if (!light_is_here())
        t_skip("no MADV_GUARD_INSTALL on this kernel");
    struct bz_os_slab slab = slab_of(16 * page());
    struct bz_os_guards g = {0, 4 * page(), page(), 4};
    if (syscall(SYS_mlock, slab.base, slab.bytes) != 0) /* a sanitizer's mlock does nothing */
        t_skip("mlock: %s", strerror(errno));
    CHECK_EQ(bz_os_slab_guard(os, &slab, BZ_OS_GUARD_LIGHT, &g), -ENOSYS);
    CHECK_EQ(bz_os_slab_guard(os, &slab, BZ_OS_GUARD_BEST, &g), BZ_OS_GUARD_PROTECT);
    CHECK(refuses(slab.base + 12 * page()));
    bz_os_slab_release(os, &slab);
}

TEST(os_pages, protect_guards_that_fail_half_way_are_taken_back)
{
    struct bz_os_slab slab = slab_of(16 * page());
    struct bz_os_guards g = {0, 4 * page(), page(), 4};
    t_deny_arg(SYS_mprotect, 0, (uint32_t)(uintptr_t)(slab.base + 8 * page()), ENOMEM);

    CHECK_EQ(bz_os_slab_guard(os, &slab, BZ_OS_GUARD_PROTECT, &g), -ENOMEM);

    for (size_t p = 0; p < 16; p++)
        CHECK(!refuses(slab.base + p * page()));
    CHECK_EQ(slab.protect_guards, 0u);
}

/* A sandbox that forbids mprotect: no guards, and the caller gets an error. */
TEST(os_pages, a_system_without_any_guards_says_so)
{
    t_deny_arg(SYS_madvise, 2, 102, EINVAL);
    t_deny(SYS_mprotect, EPERM);
    struct bz_os_slab slab = slab_of(16 * page());
    struct bz_os_guards g = {0, 4 * page(), page(), 4};
    CHECK_EQ(bz_os_slab_guard(os, &slab, BZ_OS_GUARD_BEST, &g), -ENOSYS);
    bz_os_slab_release(os, &slab);
}

TEST(os_pages, more_guards_than_any_process_may_have_are_refused_at_once)
{
    t_skip_under_valgrind("has no room for a reservation of that size");
    struct bz_os_slab slab = slab_of((size_t)64 << 30);
    struct bz_os_guards g = {0, 2 * page(), page(), slab.bytes / (2 * page())};
    CHECK_EQ(bz_os_slab_guard(os, &slab, BZ_OS_GUARD_PROTECT, &g), -ENOMEM);
    CHECK_EQ(slab.protect_guards, 0u);
    bz_os_slab_release(os, &slab);
}

/* A process that is out of mappings cannot even map a stack: leave it some. */
TEST(os_pages, protect_guards_stop_before_the_limit_on_mappings)
{
    t_skip_under_valgrind("can follow fewer mappings than the kernel allows");
    struct bz_os_slab slab = slab_of(64 * MIB * (page() / 4096));
    size_t batch = 1024, placed = 0;
    int kind;
    struct bz_os_guards g = {0, 2 * page(), page(), batch};
    struct bz_os_slab many[64];
    size_t slabs = 0;
    bz_os_slab_release(os, &slab);

    for (;;) {
        CHECK_LT(slabs, sizeof many / sizeof many[0]);
        many[slabs] = slab_of(2 * batch * page());
        kind = bz_os_slab_guard(os, &many[slabs], BZ_OS_GUARD_PROTECT, &g);
        if (kind < 0)
            break;
        CHECK_EQ(many[slabs].protect_guards, (uint32_t)batch);
        slabs++;
        placed += batch;
    }

    CHECK_EQ(kind, -ENOMEM);
    CHECK_GE(placed, batch);
    for (size_t i = 0; i < batch; i++) /* all or none */
        CHECK(!refuses(many[slabs].base + i * g.stride));
    CHECK_EQ(many[slabs].protect_guards, 0u);
    struct bz_os_slab other = slab_of(page()); /* the rest of the program still runs */
    bz_os_slab_release(os, &other);

    bz_os_slab_release(os, &many[0]); /* released memory can be reserved again */
    CHECK_EQ(bz_os_slab_guard(os, &many[slabs], BZ_OS_GUARD_PROTECT, &g), BZ_OS_GUARD_PROTECT);
    for (size_t i = 1; i <= slabs; i++)
        bz_os_slab_release(os, &many[i]);
    t_note("%zu protect guards before the limit", placed);
}
