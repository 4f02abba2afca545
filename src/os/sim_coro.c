/*
 * sim_coro.c - coroutines for the simulated keeper: stacks, the switch, and what sanitizers ask.
 *
 * The switch is swapcontext(3). It is slow (a quarter of a microsecond, most of it a system call for
 * the signal mask), and here that does not matter: a simulated step costs more than that anyway, and
 * what it buys is independence. src/arch lies above src/os and tests of src/arch run under
 * simulation; were the simulator built on the switch it helps to test, a bug in the switch would
 * show up as a simulator gone mad. swapcontext also knows shadow stacks and every architecture the C
 * library knows. Rejected: OS threads that hand a baton around (10 µs a step, and a schedule that
 * the kernel can perturb).
 *
 * What belongs to a thread and not to a stack is carried along: the self slot and errno.
 *
 * Sanitizers. AddressSanitizer is told of every stack change, or it takes frames of one stack for
 * overflows of another. ThreadSanitizer gets a fiber per coroutine and is told *not* to take a
 * switch for synchronization, so that two simulated threads race in its eyes exactly when two real
 * ones would; src/os/CMakeLists.txt compiles these files without its instrumentation, because the
 * simulator's own data is shared by all coroutines without any. Start and join do synchronize:
 * creating a fiber does by itself, a join is told by note_end and note_join.
 *
 * I1  Only one coroutine of a run executes, and the others stand inside bz_sim_coro_switch.
 */
#include "os/sim_inner.h"

#include <errno.h>

#include "os/self.h"

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif

/* These files are compiled without thread instrumentation, so the build says whether the program
 * is linked with it. */
#if defined(HAS_ASAN)
#include <sanitizer/common_interface_defs.h>
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
    if (home->stack == NULL) { /* the first arrival of all comes from there */
        home->stack = stack;
        home->stack_bytes = bytes;
    }
}
#else
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
static void tsan_drop(void *fiber)
{
    __tsan_destroy_fiber(fiber);
}
static void tsan_switch(void *fiber, bool orders)
{
    __tsan_switch_to_fiber(fiber, orders ? 0 : __tsan_switch_to_fiber_no_sync);
}
void bz_sim_coro_note_end(void *thread)
{
    __tsan_release(thread);
}
void bz_sim_coro_note_join(void *thread)
{
    __tsan_acquire(thread);
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
static void tsan_drop(void *fiber)
{
    (void)fiber;
}
static void tsan_switch(void *fiber, bool orders)
{
    (void)fiber;
    (void)orders;
}
void bz_sim_coro_note_end(void *thread)
{
    (void)thread;
}
void bz_sim_coro_note_join(void *thread)
{
    (void)thread;
}
#endif

static struct sim_coro *starting_home; /* for the first instruction of a new coroutine, I1 */

/* makecontext passes ints: the pointer comes in two halves. */
static void coro_main(unsigned high, unsigned low)
{
    struct sim_coro *c = (struct sim_coro *)((uintptr_t)high << 32 | (uintptr_t)low);
    asan_arrive(c, starting_home);
    bz_self_set(NULL);
    c->main(c->arg);
    BZ_CHECK(false, "a simulated thread returned from its last frame");
}

void bz_sim_coro_init(struct sim_coro *c, void *stack, size_t stack_bytes, void (*main)(void *),
                      void *arg)
{
    uintptr_t self = (uintptr_t)c;

    *c = (struct sim_coro){.main = main, .arg = arg, .stack = stack, .stack_bytes = stack_bytes};
    getcontext(&c->context);
    c->context.uc_stack.ss_sp = stack;
    c->context.uc_stack.ss_size = stack_bytes;
    c->context.uc_link = NULL;
    makecontext(&c->context, (void (*)(void))coro_main, 2, (unsigned)(self >> 32),
                (unsigned)(self & UINT32_MAX));
    c->fiber = tsan_new();
}

void bz_sim_coro_init_home(struct sim_coro *home)
{
    *home = (struct sim_coro){.fiber = tsan_here()};
}

void bz_sim_coro_fini(struct sim_coro *c)
{
    tsan_drop(c->fiber);
}

BZ_NOINLINE void bz_sim_coro_switch(struct sim_coro *from, struct sim_coro *to,
                                    enum sim_leave leave, struct sim_coro *home)
{
    from->frame = __builtin_frame_address(0);
    from->self = bz_self_get();
    from->saved_errno = errno;
    starting_home = home;
    asan_leave(from, to, leave);
    tsan_switch(to->fiber, from == home || to == home);
    int err = swapcontext(&from->context, &to->context);
    BZ_CHECK(err == 0, "swapcontext: errno %d", errno);
    asan_arrive(from, home);
    bz_self_set(from->self);
    errno = from->saved_errno;
}
