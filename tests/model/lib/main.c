/*
 * main.c - a program of model tests: which to run, for how long, and what to print.
 *
 *     model_NAME                       run all
 *     model_NAME mp.* sb.relaxed       those that match
 *     model_NAME --list                name them
 *     model_NAME CASE --replay=aab1b   one execution, as a failure printed it; under gdb,
 *                                      `break m_replay_step if step == 7` stops before step 7
 *     --budget=SECONDS                 for each test (default 20)
 *     --bound=N                        at most N deferrals in an execution, and no more than that
 *     --whole                          completely or not at all: nothing is said of what the budget cuts
 *     --random --seed=N                random schedules only
 *     --all-orders                     without the reduction: slow, the same executions
 *     --distinct                       count an execution only if it is not one seen before
 *     --repeat=N                       search each test N times: to measure the speed
 *     --fail-fast                      stop at the first test that fails
 *     --report                         print the failures that were expected, too
 *
 * A test is searched completely if the budget allows. Otherwise bounds 0, 1, 2, ... are tried
 * within half of the budget, and random schedules (PCT: random priorities, lowered at a few random
 * steps) fill the rest. The line of the test then shows the bound reached, and where most of the
 * branching was.
 */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"

static struct {
    double budget;
    int bound, repeat;
    uint64_t seed;
    const char *replay;
    bool is_random, is_whole, all_orders, report, list, fail_fast, distinct;
    const char *program;
} opt = {.budget = 20, .bound = M_NONE, .seed = 1};

static struct m_case *cases;
static struct m_goal *goals;
static double started;

void m_enlist(struct m_case *c)
{
    struct m_case **end = &cases;
    while (*end != NULL)
        end = &(*end)->next;
    *end = c;
}

void m_goal(struct m_goal *g, bool is_reached)
{
    if (g->asked++ == 0) {
        g->next = goals;
        goals = g;
    }
    g->seen += is_reached;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* CPU time: others on the machine do not count */
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void progress(const struct m_case *c)
{
    static int tty = -1;
    if (tty < 0)
        tty = isatty(STDERR_FILENO);
    if (tty)
        fprintf(stderr, "\r%s.%s: %" PRIu64 " executions, %" PRIu64 " pruned, %.0f s \033[K",
                c->noun, c->property, m.executions, m.pruned, now() - started);
}

static void progress_end(void)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
}

static void count(enum m_end end)
{
    m.executions += end == M_END_COMPLETE && (!opt.distinct || m_digest_is_new());
    m.pruned += end == M_END_PRUNED;
}

/* One search from the start, until a failure, the end, or the time. */
static enum m_end search(const struct m_case *c, double until)
{
    int rounds = 0;
    m.nodes = 0;
    m.bound_hit = false;
    for (uint64_t i = 1;; i++) {
        enum m_end end = m_execute(c->body);
        count(end);
        if (end == M_END_FAILED)
            return end;
        if (m.found_barrier && !m.uses_barrier) {
            m.uses_barrier = true; /* now we know: begin again, with its decisions */
            m.nodes = 0;
            m.executions = m.pruned = 0;
            continue;
        }
        if (!m_backtrack() && ++rounds >= opt.repeat)
            return M_END_COMPLETE;
        if (i % 1024 == 0 && now() > until)
            return M_END_NONE;
        if (i % 65536 == 0)
            progress(c);
    }
}

static void random_plan(uint64_t run)
{
    m.rng = (opt.seed * 0x9E3779B97F4A7C15u) ^ ((run + 1) * 0xBF58476D1CE4E5B9u);
    m.rng = m.rng == 0 ? 1 : m.rng;
    for (int i = 0; i < 8; i++)
        m.change_point[i] = i < 3 ? (int)(m_random() % (unsigned)(m.longest + 1)) : M_NONE;
}

static enum m_end random_runs(const struct m_case *c, double until)
{
    m.mode = M_RANDOM;
    for (uint64_t i = 0;; i++) {
        random_plan(i);
        enum m_end end = m_execute(c->body);
        count(end);
        if (end == M_END_FAILED)
            return end;
        if (i % 256 == 0 && now() > until)
            return M_END_NONE;
        if (i % 65536 == 65535)
            progress(c);
    }
}

/* Bounds 0, 1, ...; the last that was searched to its end, or M_NONE. */
static enum m_end search_bounds(const struct m_case *c, double until, int *reached)
{
    *reached = M_NONE;
    for (m.bound = 0;; m.bound++) {
        enum m_end end = search(c, until);
        if (end != M_END_COMPLETE)
            return end;
        *reached = m.bound;
        if (!m.bound_hit)
            return M_END_COMPLETE;
    }
}

static void reset(void)
{
    m.mode = M_SEARCH;
    m_digest_reset();
    m.executions = m.pruned = m.inconsistent = 0;
    m.uses_barrier = m.found_barrier = m.found_sc = false;
    m.always_defer = opt.all_orders;
    m.bound = opt.bound;
    m.longest = 0;
    for (; m.branching != NULL; m.branching = m.branching->next)
        m.branching->branches = 0;
    for (; goals != NULL; goals = goals->next)
        goals->asked = goals->seen = 0;
}

/* Where the branching is, most first. */
static void print_explosion(void)
{
    for (int k = 0; k < 3; k++) {
        struct m_site *most = NULL;
        for (struct m_site *s = m.branching; s != NULL; s = s->next)
            if (most == NULL || s->branches > most->branches)
                most = s;
        if (most == NULL || most->branches == 0)
            return;
        printf("     %s %s:%d  %s  (%" PRIu64 " branchings)\n",
               k == 0 ? "most of it at" : "          and", m_file_name(most->file), most->line,
               most->expr, most->branches);
        most->branches = 0;
    }
}

static bool goals_missed(void)
{
    for (struct m_goal *g = goals; g != NULL; g = g->next) {
        if (g->seen != 0)
            continue;
        m.fault = M_FAULT_NEVER_SEEN;
        m.fault_at = NULL;
        snprintf(m.fault_text, sizeof m.fault_text, "%s   %s:%d", g->cond, m_file_name(g->file),
                 g->line);
        return true;
    }
    return false;
}

static enum m_end explore(const struct m_case *c, char *verdict, size_t size)
{
    int reached = opt.bound;
    enum m_end end = M_END_NONE;
    snprintf(verdict, size, "random");
    if (opt.is_random)
        m_execute(c->body); /* how long is one, and does it use a membarrier? */
    else
        end = search(c, started + opt.budget * (opt.bound == M_NONE && !opt.is_whole ? 0.4 : 1));
    if (end == M_END_FAILED)
        return end;
    if (end == M_END_COMPLETE) {
        snprintf(verdict, size, m.bound_hit ? "bound %d" : "complete", opt.bound);
        return end;
    }
    if (opt.is_whole) {
        snprintf(verdict, size, "too large");
        return end;
    }
    if (!opt.is_random && opt.bound == M_NONE)
        end = search_bounds(c, started + opt.budget * 0.7, &reached);
    if (end == M_END_FAILED)
        return end;
    if (reached != M_NONE)
        snprintf(verdict, size, "bound %d", reached);
    m.uses_barrier = m.found_barrier;
    return random_runs(c, started + opt.budget);
}

/* As the report will print it: also the ground on which an expected failure is recognised. */
static bool is_expected(const struct m_case *c)
{
    char whole[600];
    snprintf(whole, sizeof whole, "%s: %s", m_fault_name(m.fault), m.fault_text);
    return m.fault != M_FAULT_NONE && m.fault != M_FAULT_NEVER_SEEN &&
           strstr(whole, c->fails_with) != NULL;
}

static bool run_case(const struct m_case *c)
{
    char verdict[64], name[128];
    started = now();
    reset();
    enum m_end end = explore(c, verdict, sizeof verdict);
    bool is_cut = opt.is_whole && end == M_END_NONE;
    progress_end();
    if (!is_cut && end != M_END_FAILED && goals_missed())
        end = M_END_FAILED;
    if (!is_cut && end != M_END_FAILED && c->fails_with != NULL) {
        m.fault = M_FAULT_NEVER_SEEN;
        m.fault_at = NULL;
        snprintf(m.fault_text, sizeof m.fault_text, "the failure \"%s\"", c->fails_with);
        end = M_END_FAILED;
    }
    bool is_good = is_cut || (c->fails_with != NULL ? is_expected(c) : end != M_END_FAILED);
    if (end == M_END_FAILED && (!is_good || opt.report))
        m_report(c, opt.program);
    if (end == M_END_FAILED)
        snprintf(verdict, sizeof verdict, is_good ? "fails, as it must" : "FAILED");
    snprintf(name, sizeof name, "%s.%s", c->noun, c->property);
    double seconds = now() - started;
    printf("%s %-64s %9" PRIu64 " %9" PRIu64 "  %-17s %6.2f s", is_good ? "ok  " : "FAIL", name,
           m.executions, m.pruned, verdict, seconds);
    printf(seconds > 0.1 ? "  %.0f/s\n" : "\n", (double)m.executions / seconds);
    if (strncmp(verdict, "complete", 8) != 0 && end != M_END_FAILED)
        print_explosion();
    fflush(stdout);
    return is_good;
}

static bool replay_case(const struct m_case *c)
{
    static struct m_step script[M_EVENTS_MAX];
    reset();
    m.script_length = m_script_parse(opt.replay, script, M_EVENTS_MAX);
    if (m.script_length < 0) {
        fprintf(stderr, "%s: --replay=%s is not one of ours\n", opt.program, opt.replay);
        exit(2);
    }
    m.script = script;
    m.mode = M_REPLAY;
    enum m_end end = m_execute(c->body);
    if (end == M_END_FAILED)
        m_report(c, opt.program);
    else
        printf("%s.%s: this execution does not fail\n", c->noun, c->property);
    return end != M_END_FAILED;
}

static bool is_wanted(const struct m_case *c, char **patterns)
{
    char name[256];
    snprintf(name, sizeof name, "%s.%s", c->noun, c->property);
    if (*patterns == NULL)
        return true;
    for (; *patterns != NULL; patterns++)
        if (fnmatch(*patterns, name, 0) == 0)
            return true;
    return false;
}

static void usage(FILE *out)
{
    fprintf(
        out,
        "usage: %s [PATTERN...] [--list] [--budget=SECONDS] [--bound=N] [--repeat=N] "
        "[--random] [--seed=N]\n"
        "       [--whole] [--all-orders] [--distinct] [--fail-fast] [--report] [--replay=STEPS]\n",
        opt.program);
}

static bool take_option(const char *a)
{
    if (strcmp(a, "--list") == 0)
        opt.list = true;
    else if (strcmp(a, "--random") == 0)
        opt.is_random = true;
    else if (strcmp(a, "--whole") == 0)
        opt.is_whole = true;
    else if (strcmp(a, "--all-orders") == 0)
        opt.all_orders = true;
    else if (strcmp(a, "--distinct") == 0)
        opt.distinct = true;
    else if (strcmp(a, "--fail-fast") == 0)
        opt.fail_fast = true;
    else if (strcmp(a, "--report") == 0)
        opt.report = true;
    else if (strncmp(a, "--budget=", 9) == 0)
        opt.budget = atof(a + 9);
    else if (strncmp(a, "--bound=", 8) == 0)
        opt.bound = atoi(a + 8);
    else if (strncmp(a, "--repeat=", 9) == 0)
        opt.repeat = atoi(a + 9);
    else if (strncmp(a, "--seed=", 7) == 0)
        opt.seed = strtoull(a + 7, NULL, 0);
    else if (strncmp(a, "--replay=", 9) == 0)
        opt.replay = a + 9;
    else
        return false;
    return true;
}

static char **take_options(int argc, char **argv)
{
    int kept = 0;
    opt.program = m_file_name(argv[0]);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            usage(stdout);
            exit(0);
        }
        if (argv[i][0] != '-') {
            argv[kept++] = argv[i];
        } else if (!take_option(argv[i])) {
            fprintf(stderr, "%s: unknown option %s\n", opt.program, argv[i]);
            usage(stderr);
            exit(2);
        }
    }
    argv[kept] = NULL;
    return argv;
}

int main(int argc, char **argv)
{
    char **patterns = take_options(argc, argv);
    int passed = 0, failed = 0;
    m.engine.sp = NULL;
    for (const struct m_case *c = cases; c != NULL; c = c->next) {
        if (!is_wanted(c, patterns))
            continue;
        if (opt.list) {
            printf("%s.%s\n", c->noun, c->property);
            passed++;
            continue;
        }
        bool is_good = opt.replay != NULL ? replay_case(c) : run_case(c);
        passed += is_good;
        failed += !is_good;
        if (failed > 0 && opt.fail_fast)
            break;
    }
    if (passed + failed == 0) {
        fprintf(stderr, "%s: no test matches\n", opt.program);
        return 2;
    }
    if (!opt.list)
        printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
