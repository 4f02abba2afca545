/*
 * coro.c - coroutines for the simulated OS backend: stacks, the switch, and sanitizer support.
 *
 * The switch is not that of src/arch, but the C library's or one of our own (spot.h). Tests of src/arch run under
 * simulation; if the simulator used the same switch, a bug in the switch would look like a bug in the simulator.
 * Rejected: OS threads that pass a baton (10 µs a step, and a schedule that the kernel can perturb).
 *
 * Each coroutine has its own copy of thread state: the self slot, errno and, in test builds, the
 * list of held locks.
 *
 * Sanitizers. AddressSanitizer is told of every stack change, or it takes frames of one stack for
 * overflows of another. ThreadSanitizer gets a fiber per coroutine and is told *not* to treat a
 * switch as synchronization, so that it reports a race of two simulated threads exactly when two
 * real threads would race. src/sim/CMakeLists.txt compiles these files without instrumentation,
 * because all coroutines share the simulator's own data without synchronization. Start and join do
 * synchronize: the creation of a fiber does so by itself. For a join, the ending coroutine releases
 * and its destroyer acquires.
 *
 * I1  Only one coroutine of a run executes; the others are inside bz_sim_coro_switch.
 */
#include "sim/inner.h"

#include <errno.h>

#include "os/self.h"

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif

#if defined(HAS_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
/* Frames that never returned leave ASan poison on the stack, which would affect the next mapping
 * there. */
static void asan_clean(const struct sim_coro *c)
{
    __asan_unpoison_memory_region(c->stack, c->stack_bytes);
}
static void asan_leave(struct sim_coro *from, struct sim_coro *to, enum sim_leave leave)
{
    __sanitizer_start_switch_fiber(leave == SIM_COMES_BACK ? &from->fake_stack : NULL, to->stack,
                                   to->stack_bytes);
}
static void asan_arrive(struct sim_coro *c, struct sim_coro *home)
{
    const void *stack;
    size_t bytes;
    __sanitizer_finish_switch_fiber(c->fake_stack, &stack, &bytes);
    if (home->stack == NULL) { /* the first switch comes from there */
        home->stack = stack;
        home->stack_bytes = bytes;
    }
}
#else
static void asan_clean(const struct sim_coro *c)
{
    (void)c;
}
static void asan_leave(struct sim_coro *from, struct sim_coro *to, enum sim_leave leave)
{
    (void)from;
    (void)to;
    (void)leave;
}
static void asan_arrive(struct sim_coro *c, struct sim_coro *home)
{
    (void)c;
    (void)home;
}
#endif

/* These files are compiled without thread instrumentation, so the build says whether the program
 * is linked with it. */
#if defined(BZ_SIM_TSAN)
#include <sanitizer/tsan_interface.h>
static void *tsan_new(void)
{
    return __tsan_create_fiber(0);
}
static void *tsan_here(void)
{
    return __tsan_get_current_fiber();
}
static void tsan_drop(struct sim_coro *c)
{
    __tsan_acquire(c); /* its effects happen before the joiner's next step */
    __tsan_destroy_fiber(c->own_fiber);
}
static void tsan_switch(struct sim_coro *from, struct sim_coro *to, bool orders)
{
    __tsan_release(from);
    from->fiber = __tsan_get_current_fiber(); /* the caller may run on a fiber of the program */
    __tsan_switch_to_fiber(to->fiber, orders ? 0 : __tsan_switch_to_fiber_no_sync);
}
#else
static void *tsan_new(void)
{
    return NULL;
}
static void *tsan_here(void)
{
    return NULL;
}
static void tsan_drop(struct sim_coro *c)
{
    (void)c;
}
static void tsan_switch(struct sim_coro *from, struct sim_coro *to, bool orders)
{
    (void)from;
    (void)to;
    (void)orders;
}
#endif

/* Valgrind must know the stacks, or it treats a switch as a huge change of one stack pointer. */
#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif
#if defined(VALGRIND_STACK_REGISTER)
static unsigned valgrind_new(const char *stack, size_t bytes)
{
    (void)stack; /* valgrind does not know every CPU: then its macros are empty */
    (void)bytes;
    return (unsigned)VALGRIND_STACK_REGISTER(stack, stack + bytes);
}
static void valgrind_drop(unsigned id)
{
    (void)id; /* likewise */
    VALGRIND_STACK_DEREGISTER(id);
}
#else
static unsigned valgrind_new(const char *stack, size_t bytes)
{
    (void)stack;
    (void)bytes;
    return 0;
}
static void valgrind_drop(unsigned id)
{
    (void)id;
}
#endif

#if defined(BZ_WATCH)
static void use_held(struct sim_coro *c, const struct sim_coro *home)
{
    bz_held_use(c == home ? NULL : &c->held);
}
#else
static void use_held(struct sim_coro *c, const struct sim_coro *home)
{
    (void)c;
    (void)home;
}
#endif

static struct sim_coro *starting_home; /* for the first instruction of a new coroutine, I1 */

static void coro_main(void *arg)
{
    struct sim_coro *c = arg;
    asan_arrive(c, starting_home);
    bz_self_set(NULL);
    bz_self_holds_set(0);
    use_held(c, starting_home);
    c->main(c->arg);
    BZ_CHECK(false, "a simulated thread returned from its last frame");
}

void bz_sim_coro_init(struct sim_coro *c, void *stack, size_t stack_bytes, void (*main)(void *),
                      void *arg)
{
    *c = (struct sim_coro){.main = main, .arg = arg, .stack = stack, .stack_bytes = stack_bytes};
    bz_sim_spot_init(&c->spot, stack, stack_bytes, coro_main, c);
    c->own_fiber = tsan_new();
    c->valgrind_id = valgrind_new(stack, stack_bytes);
    c->fiber = c->own_fiber;
}

void bz_sim_coro_init_home(struct sim_coro *home)
{
    *home = (struct sim_coro){.fiber = tsan_here()};
}

void bz_sim_coro_fini(struct sim_coro *c)
{
    asan_clean(c);
    tsan_drop(c);
    valgrind_drop(c->valgrind_id);
}

BZ_NOINLINE void bz_sim_coro_switch(struct sim_coro *from, struct sim_coro *to,
                                    enum sim_leave leave, struct sim_coro *home)
{
    from->frame = __builtin_frame_address(0);
    from->self = bz_self_get();
    from->holds = bz_self_holds();
    from->saved_errno = errno;
    starting_home = home;
    asan_leave(from, to, leave);
    tsan_switch(from, to, from == home || to == home);
    bz_sim_spot_switch(&from->spot, &to->spot);
    asan_arrive(from, home);
    bz_self_set(from->self);
    bz_self_holds_set(from->holds);
    use_held(from, home);
    errno = from->saved_errno;
}
