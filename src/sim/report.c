/*
 * report.c - report all simulated threads after an error.
 *
 *     simulation: deadlock after 1.000250000 s, step 815, seed 0x2a, random walk, hash 0x91c4...
 *       thread 0 main: joins thread 1 worker since 0.000000000 s
 *         #0 0x55d0c1a3 main_waits+0x42
 *       thread 1 worker: asleep on word 0x7f.. (holds 0) for ever, since 0.000250000 s
 *         #0 ...
 *
 * Stacks are walked by frame pointers, which our build keeps (-fno-omit-frame-pointer): each frame
 * holds the caller's frame pointer and the return address. The walk checks each step: a pointer
 * that leaves the stack or does not go up ends it. Names come from dladdr, which knows exported
 * symbols; others are shown as program+offset, which addr2line turns into a line. The report runs
 * on the caller's own stack after the threads have stopped, so it may use much stack.
 */
#include "sim/inner.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FRAMES_MAX 24

/* The positions of the caller's frame pointer and the return address in a frame, in words. */
#if defined(__riscv)
#define FRAME_CALLER (-2)
#define FRAME_RETURN (-1)
#else
#define FRAME_CALLER 0
#define FRAME_RETURN 1
#endif

BZ_PRINTF(2, 3) static void say(struct bz_sim *sim, const char *format, ...)
{
    char line[400];
    va_list args;

    va_start(args, format);
    int n = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    size_t length = n < 0 ? 0 : (size_t)n < sizeof line - 1 ? (size_t)n : sizeof line - 2;
    if (sim->config.report != NULL) {
        sim->config.report(sim->config.report_ctx, line);
        return;
    }
    line[length++] = '\n';
    ssize_t ignored = write(STDERR_FILENO, line, length);
    (void)ignored;
}

static const char *end_name(int err)
{
    switch (err) {
    case -EDEADLK:
        return "deadlock";
    case -ELOOP:
        return "endless spinning";
    case -ETIME:
        return "more steps than allowed";
    default:
        return "threads left unjoined";
    }
}

/* A time of the run as seconds and nanoseconds since its start, for "%" PRIu64 ".%09" PRIu64. */
#define SINCE_START(sim, at_ns) \
    ((at_ns) - (sim)->start_ns) / 1000000000, ((at_ns) - (sim)->start_ns) % 1000000000
#define SECONDS "%" PRIu64 ".%09" PRIu64 " s"

static void say_state(struct bz_sim *sim, const struct sim_thread *t)
{
    char head[64];

    snprintf(head, sizeof head, "  thread %u %s:", t->id, t->name);
    switch (t->state) {
    case SIM_ASLEEP:
        if (t->until_ns == BZ_OS_FOREVER)
            say(sim, "%s asleep on word %p for ever, since " SECONDS, head, (void *)t->word,
                SINCE_START(sim, t->since_ns));
        else
            say(sim, "%s asleep on word %p until " SECONDS ", since " SECONDS, head,
                (void *)t->word, SINCE_START(sim, t->until_ns), SINCE_START(sim, t->since_ns));
        break;
    case SIM_BURNING:
        say(sim, "%s burning, %" PRIu64 " ns to go, since " SECONDS, head, t->burn_ns,
            SINCE_START(sim, t->since_ns));
        break;
    case SIM_JOINING:
        say(sim, "%s joins thread %u %s, since " SECONDS, head, t->joins->id, t->joins->name,
            SINCE_START(sim, t->since_ns));
        break;
    case SIM_DONE:
        say(sim, "%s has ended and was not joined", head);
        break;
    case SIM_READY:
        if (t == sim->current && t->spins > 0)
            say(sim, "%s runs, %u turns into a spin", head, t->spins);
        else
            say(sim, "%s can run", head);
        break;
    }
}

static void say_frame(struct bz_sim *sim, int number, uintptr_t at)
{
    Dl_info info;

    if (dladdr((void *)(at - 1), &info) == 0) { /* -1: inside the call, not after it */
        say(sim, "    #%d %p", number, (void *)at);
    } else if (info.dli_sname != NULL) {
        say(sim, "    #%d %p %s+0x%" PRIxPTR, number, (void *)at, info.dli_sname,
            at - (uintptr_t)info.dli_saddr);
    } else {
        const char *slash = strrchr(info.dli_fname, '/');
        say(sim, "    #%d %p %s+0x%" PRIxPTR, number, (void *)at,
            slash != NULL ? slash + 1 : info.dli_fname, at - (uintptr_t)info.dli_fbase);
    }
}

static void say_stack(struct bz_sim *sim, const struct sim_thread *t)
{
    uintptr_t low = (uintptr_t)t->coro.stack, high = low + t->coro.stack_bytes;
    uintptr_t frame = (uintptr_t)t->coro.frame;

    for (int i = 0; i < FRAMES_MAX; i++) {
        if (frame < low + 2 * sizeof(uintptr_t) || frame > high - 2 * sizeof(uintptr_t) ||
            frame % sizeof(uintptr_t) != 0)
            return;
        const uintptr_t *words = (const uintptr_t *)frame;
        uintptr_t caller = words[FRAME_CALLER], back = words[FRAME_RETURN];
        if (back == 0)
            return;
        say_frame(sim, i, back);
        if (caller <= frame)
            return;
        frame = caller;
    }
}

void bz_sim_report(struct bz_sim *sim)
{
    say(sim,
        "simulation: %s after " SECONDS ", step %" PRIu64 ", seed 0x%" PRIx64
        ", %s, hash 0x%016" PRIx64,
        end_name(sim->end), SINCE_START(sim, sim->now_ns), sim->result.steps, sim->config.seed,
        sim->mode == BZ_SIM_PRIORITY ? "priorities" : "random walk", sim->result.hash);
    BZ_LIST_FOR_EACH (node, &sim->threads) {
        say_state(sim, SIM_THREAD_OF(node));
        say_stack(sim, SIM_THREAD_OF(node));
    }
}
