/*
 * processes.c - see processes.h.
 *
 * One thread of a simulation runs at a time, and ThreadSanitizer does not see this file (kernel.c says why). So plain
 * memory would do; the two flags are atomics, relaxed throughout, as a note of what threads share.
 *
 * [K] end_by: signal release -> live: signal acquire   a sleep word
 */
#include "sim/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "io/start_process.h"
#include "io/sys.h"
#include "sim/sim_signals.h"

enum { CHILDREN_MAX = 64, FIRST_PID = 1000 };

struct child {
    struct bz_os_thread thread;
    bz_os_word signal; /* that ends it; 0: none yet */
    bool never, is_deaf;
    int code;
    uint64_t ends_at;
    int tell;                   /* the other end of its pidfd; -1: none */
    bz_atomic(bool) has_ended;  /* relaxed throughout: see above */
    bz_atomic(bool) was_reaped; /* likewise */
    struct bz_child_end end;
};

static struct {
    const struct bz_os *os;
    struct bz_sim_children_config config;
    struct bz_sim_children_books books;
    unsigned count;
    struct child child[CHILDREN_MAX];
} all;

static struct child *child_of(int pid)
{
    BZ_CHECK(pid >= FIRST_PID && pid < FIRST_PID + (int)all.count, "no child %d", pid);
    return &all.child[pid - FIRST_PID];
}

/* ---- a child ---- */

static void live(void *arg)
{
    struct child *c = arg;
    uint64_t one = 1;
    uint64_t until = c->never ? BZ_OS_FOREVER : c->ends_at;
    while (bz_load_acquire(&c->signal) == 0 && bz_os_now(all.os) < until) /* [K] */
        (void)bz_os_wait(all.os, &c->signal, 0, until);
    int signal = (int)bz_load_acquire(&c->signal); /* [K] */
    c->end = (struct bz_child_end){.code = signal == 0 ? c->code : -1, .signal = signal};
    bz_store_relaxed(&c->has_ended, true); /* relaxed: see above */
    if (c->tell >= 0) {
        (void)!bz_sys->write(c->tell, &one, sizeof one);
        bz_sys->close(c->tell);
    }
    (void)bz_sim_raise(SIGCHLD);
}

static int script_of(const struct bz_plan *plan, struct child *c)
{
    const char *name = plan->argv[0];
    *c = (struct child){.tell = -1};
    c->is_deaf = strcmp(name, "deaf") == 0;
    c->never = c->is_deaf || strcmp(name, "never") == 0;
    if (!c->never && (strcmp(name, "exit") != 0 || plan->argv[1] == NULL || plan->argv[2] == NULL))
        return -ENOENT;
    if (!c->never) {
        c->code = atoi(plan->argv[1]);
        c->ends_at = bz_os_now(all.os) + strtoull(plan->argv[2], NULL, 10);
    }
    return 0;
}

static int give_pidfd(struct child *c, int *pidfd)
{
    int fd[2];
    *pidfd = -1;
    if (all.config.has_no_pidfds)
        return 0;
    if (bz_sys->pipe2(fd, O_CLOEXEC | O_NONBLOCK) != 0)
        return -errno;
    *pidfd = fd[0];
    c->tell = fd[1];
    return 0;
}

/* ---- the contract ---- */

static bool is_refused(void)
{
    uint32_t drawn = 1;
    if (all.config.refuse_one_in == 0 || bz_os_entropy(all.os, &drawn, sizeof drawn) != 0 ||
        drawn % all.config.refuse_one_in != 0)
        return false;
    all.books.refused++;
    return true;
}

/* The number is taken after the last point of choice before the thread: other threads start children, too. */
static int sim_start(struct bz_plan *plan, struct bz_child *out)
{
    struct child script;
    plan->step = BZ_START_CLONE;
    if (is_refused())
        return -EAGAIN;
    int err = script_of(plan, &script);
    if (err != 0) {
        plan->step = BZ_START_EXEC;
        return err;
    }
    err = give_pidfd(&script, &out->pidfd);
    if (err != 0)
        return err;
    BZ_CHECK(all.count < CHILDREN_MAX, "a simulation has %d children at most", CHILDREN_MAX);
    struct child *c = &all.child[all.count];
    out->pid = FIRST_PID + (int)all.count++;
    all.books.started++;
    *c = script;
    plan->step = BZ_START_NONE;
    BZ_CHECK(bz_os_thread_start(all.os, &c->thread, NULL, live, c) == 0, "a simulated thread");
    return 0;
}

static int sim_reap(const struct bz_child *of, bool stays, struct bz_child_end *out)
{
    struct child *c = child_of(of->pid);
    if (bz_load_relaxed(&c->was_reaped)) /* relaxed: see above */
        return -ECHILD;
    if (!bz_load_relaxed(&c->has_ended)) /* relaxed: see above */
        return -EAGAIN;
    *out = c->end;
    bz_store_relaxed(&c->was_reaped, !stays); /* relaxed: see above */
    return 0;
}

static void end_by(struct child *c, int signal)
{
    if (bz_load_relaxed(&c->has_ended) ||
        (c->is_deaf && signal != SIGKILL)) /* relaxed: see above */
        return;
    bz_store_release(&c->signal, (uint32_t)signal); /* [K] */
    bz_os_wake(all.os, &c->signal, 1);
}

static int sim_kill(const struct bz_child *of, int signal, bool is_group)
{
    struct child *c = child_of(of->pid);
    (void)is_group;
    BZ_CHECK(!bz_load_relaxed(&c->was_reaped), /* relaxed: see above */
             "signal %d for child %d, which was reaped", signal, of->pid);
    if (signal != 0)
        end_by(c, signal);
    return 0;
}

static bool sim_is_open(int fd)
{
    return fd > 2;
}

static const struct bz_spawn simulated = {.is_simulated = true,
                                          .start = sim_start,
                                          .reap = sim_reap,
                                          .kill = sim_kill,
                                          .is_open = sim_is_open};

void bz_sim_children_begin(const struct bz_os *os, const struct bz_sim_children_config *config)
{
    memset(&all, 0, sizeof all);
    all.os = os;
    all.config = *config;
    bz_spawn = &simulated;
}

void bz_sim_children_kill_all(void)
{
    for (unsigned i = 0; i < all.count; i++)
        end_by(&all.child[i], SIGKILL);
}

struct bz_sim_children_books bz_sim_children_end(void)
{
    for (unsigned i = 0; i < all.count; i++) {
        (void)bz_os_thread_join(all.os, &all.child[i].thread);
        all.books.unreaped += !bz_load_relaxed(&all.child[i].was_reaped); /* relaxed: see above */
    }
    bz_spawn = &bz_spawn_linux;
    return all.books;
}
