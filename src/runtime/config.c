/*
 * config.c - read the settings once, with a message for every wrong value.
 *
 * Every number is found in the same way: the field of the runtime options if it is not 0, else the
 * environment variable if it is set and not empty, else the default. So a program that sets a field
 * cannot be overridden, and a program that does not can be tuned from outside. An invalid value is
 * refused and never changed into a valid one: a user who writes BLITZ_PROCS=O8 wants to be told. If the
 * field is set, the variable is not read and not checked.
 *
 * Sizes may end in K, M or G; counts as well, which does no harm.
 *
 * An unknown variable that begins with our prefix is logged once, with the nearest name that exists.
 * Otherwise BLITZ_PROC=4 would be as silent as no variable at all.
 */
#include "runtime/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "queue/idle.h"

enum { THREADS_MAX = 512 };

struct number {
    const char *env, *field;
    uint64_t min, max;
    const char *range; /* min and max, for people */
};

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

static const struct number procs = {"BLITZ_PROCS", "procs", 1, BZ_PROCS_MAX,
                                    "1 to " TEXT(BZ_PROCS_MAX)};
static const struct number procs_max = {"BLITZ_PROCS_MAX", "procs_max", 1, BZ_PROCS_MAX,
                                        "1 to " TEXT(BZ_PROCS_MAX)};
static const struct number stack = {"BLITZ_STACK", "stack_bytes", 1, 8 << 20,
                                    "bytes, 1 to 8M (K and M may be used)"};
static const struct number tasks = {"BLITZ_TASKS_MAX", "tasks_max", 1, UINT64_C(1) << 40,
                                    "1 to 1024G"};
static const struct number threads = {"BLITZ_THREADS_MAX", "threads_max", 2, 65536, "2 to 64K"};
static const struct number trace = {"BLITZ_TRACE_RECORDS", "", 16, 1 << 24, "16 to 16M"};
static const struct number no_rotation = {"BLITZ_NO_ROTATION", "no_rotation", 0, 1, "0 or 1"};
static const struct number burning = {"BLITZ_BURNING_MAX", "burning_max", 1, 1 << 20, "1 to 1M"};
static const struct number quit = {"BLITZ_DUMP_ON_SIGQUIT", "dump_on_sigquit", 0, 1, "0 or 1"};
static const struct number quiet = {"BLITZ_NO_OVERFLOW_REPORT", "no_overflow_report", 0, 1,
                                    "0 or 1"};
static const struct number plain = {"BLITZ_PLAIN", "", 0, 1, "0 or 1"};

/* Digits and at most one of K, M, G, and nothing else. */
static bool parse(const char *text, uint64_t *out)
{
    uint64_t n = 0;
    unsigned shift = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (n > (UINT64_MAX - 9) / 10)
            return false;
        n = n * 10 + (uint64_t)(*at - '0');
    }
    if (at == text)
        return false;
    if (*at == 'K' || *at == 'M' || *at == 'G')
        shift = *at == 'K' ? 10 : *at == 'M' ? 20 : 30, at++;
    *out = n << shift;
    return *at == '\0' && n <= UINT64_MAX >> shift;
}

static int read_env(const struct number *what, const char *text, uint64_t *out)
{
    uint64_t n = 0;
    if (!parse(text, &n) || n < what->min || n > what->max) {
        bz_log(BLITZ_LOG_ERROR, "%s=%s: must be %s", what->env, text, what->range);
        return -EINVAL;
    }
    *out = n;
    return 0;
}

/* Replace *out, which is the default, by the value of the field or of the variable. */
static int read_number(const struct number *what, uint64_t field, uint64_t *out)
{
    if (field == 0) {
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): a concurrent setenv cannot be prevented */
        const char *text = getenv(what->env);
        return text != NULL && *text != '\0' ? read_env(what, text, out) : 0;
    }
    if (field < what->min || field > what->max) {
        bz_log(BLITZ_LOG_ERROR, "config.%s = %llu: must be %s", what->field,
               (unsigned long long)field, what->range);
        return -EINVAL;
    }
    *out = field;
    return 0;
}

/* Require at least one thread more than the procs need. */
static int read_threads(struct bz_settings *s, uint64_t field)
{
    uint64_t n = s->procs_max < THREADS_MAX / 2 ? THREADS_MAX : 2 * s->procs_max;
    int err = read_number(&threads, field, &n);
    if (err != 0)
        return err;
    if (n <= s->procs_max) {
        bz_log(BLITZ_LOG_ERROR, "threads_max = %llu: must be more than the %u procs",
               (unsigned long long)n, s->procs_max);
        return -EINVAL;
    }
    s->threads_max = (unsigned)n;
    return 0;
}

/* Without a wish there is no room for more procs: a runtime of one proc is faster if it stays one. */
static int read_procs_max(struct bz_settings *s, uint64_t field)
{
    uint64_t n = s->procs;
    int err = read_number(&procs_max, field, &n);
    if (err != 0)
        return err;
    if (n < s->procs) {
        bz_log(BLITZ_LOG_ERROR, "procs_max = %llu: must be at least the %u procs",
               (unsigned long long)n, s->procs);
        return -EINVAL;
    }
    s->procs_max = (unsigned)n;
    return 0;
}

static const char *const io_names[] = {"best",  "none",   "epoll", "poll",
                                       "uring", "kqueue", "iocp"}; /* enum bz_io_kind */

static int read_io(struct bz_settings *s, const char *field)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a concurrent setenv cannot be prevented */
    const char *name = field != NULL ? field : getenv("BLITZ_IO");
    s->io = BZ_IO_BEST;
    if (name == NULL || *name == '\0')
        return 0;
    for (size_t i = 0; i < BZ_ARRAY_LEN(io_names); i++) {
        if (strcmp(name, io_names[i]) == 0) {
            s->io = (enum bz_io_kind)i;
            return 0;
        }
    }
    bz_log(BLITZ_LOG_ERROR, "%s%s: must be best, epoll, iocp, kqueue, poll, uring or none",
           field != NULL ? "config.io = " : "BLITZ_IO=", name);
    return -EINVAL;
}

/* ---- variables that do not exist ---- */

enum { PREFIX = 6 }; /* bytes that all names begin with */

/* Variables that a program may set. */
static const char *const variables[] = {
    "BLITZ_PROCS",       "BLITZ_STACK",       "BLITZ_THREADS_MAX",     "BLITZ_TASKS_MAX",
    "BLITZ_BURNING_MAX", "BLITZ_IO",          "BLITZ_TRACE",           "BLITZ_TRACE_RECORDS",
    "BLITZ_PLAIN",       "BLITZ_NO_ROTATION", "BLITZ_DUMP_ON_SIGQUIT", "BLITZ_NO_OVERFLOW_REPORT",
    "BLITZ_REDUCTIONS",  "BLITZ_PROCS_MAX"};

/* Variables of our own tests and tools: the names without the prefix. */
static const char *const of_tools[] = {"TEST_",  "SIM_",  "MIX_",    "BENCH_",  "BROKEN",
                                       "ROUNDS", "START", "BARE_",   "BUDGET_", "MIRROR",
                                       "MODEL",  "MANY_", "TURNS_S", "STILL"};

/* Return how many letters must be inserted, removed or replaced; names of more than 32 letters are not compared. */
static unsigned distance(const char *a, size_t a_bytes, const char *b)
{
    enum { MOST = 32 };
    size_t b_bytes = strlen(b);
    unsigned row[MOST + 1];
    if (a_bytes > MOST || b_bytes > MOST)
        return MOST;
    for (size_t k = 0; k <= b_bytes; k++)
        row[k] = (unsigned)k;
    for (size_t i = 0; i < a_bytes; i++) {
        unsigned corner = row[0]++;
        for (size_t k = 0; k < b_bytes; k++) {
            unsigned above = row[k + 1], least = above < row[k] ? above : row[k];
            unsigned exchanged = corner + (a[i] != b[k]);
            row[k + 1] = least + 1 < exchanged ? least + 1 : exchanged;
            corner = above;
        }
    }
    return row[b_bytes];
}

static void judge(const char *name, size_t bytes)
{
    const char *nearest = NULL;
    unsigned best = 5; /* a greater distance is not a typing error */
    for (size_t i = 0; i < BZ_ARRAY_LEN(of_tools); i++)
        if (strncmp(name + PREFIX, of_tools[i], strlen(of_tools[i])) == 0)
            return;
    for (size_t i = 0; i < BZ_ARRAY_LEN(variables); i++) {
        unsigned d = distance(name, bytes, variables[i]);
        if (d == 0)
            return;
        if (d < best) {
            best = d;
            nearest = variables[i];
        }
    }
    if (nearest != NULL)
        bz_log(BLITZ_LOG_WARN, "%.*s: no such variable; did you mean %s?", (int)bytes, name,
               nearest);
    else
        bz_log(BLITZ_LOG_WARN, "%.*s: no such variable; blitz(7) lists them", (int)bytes, name);
}

void bz_settings_judge_environment(const char *const *all)
{
    for (; all != NULL && *all != NULL; all++)
        if (strncmp(*all, variables[0], PREFIX) == 0)
            judge(*all, strcspn(*all, "="));
}

extern char **environ; /* the C library's */

/* Check the environment once a process: the messages would repeat. */
static void judge_environment(void)
{
    static bz_atomic(int) is_judged;
    if (!bz_xchg_relaxed(&is_judged, 1)) /* relaxed: guards nothing but itself */
        bz_settings_judge_environment((const char *const *)environ);
}

int bz_settings_read(struct bz_settings *s, const struct bz_os *os, const blitz_runtime_opts *c)
{
    uint64_t n = 0;
    judge_environment();
    int err = read_number(&procs, c->procs, &n);
    if (err != 0)
        return err;
    s->procs = n != 0 ? (unsigned)n : (unsigned)bz_os_cpus(os);
    if (s->procs > BZ_PROCS_MAX)
        s->procs = BZ_PROCS_MAX; /* a machine with more CPUs than that */
    if ((err = read_procs_max(s, c->procs_max)) != 0 ||
        (err = read_threads(s, c->threads_max)) != 0)
        return err;
    n = bz_stack_class_bytes(BZ_STACK_256K);
    if ((err = read_number(&stack, c->stack_bytes, &n)) != 0)
        return err;
    s->stack_class = bz_stack_class_for(n);
    s->tasks_max = 0;
    if ((err = read_number(&tasks, c->tasks_max, &s->tasks_max)) != 0)
        return err;
    n = s->threads_max;
    if ((err = read_number(&burning, c->burning_max, &n)) != 0)
        return err;
    s->burning_max = (unsigned)n;
    n = 0;
    if ((err = read_number(&quit, (uint64_t)c->dump_on_sigquit, &n)) != 0)
        return err;
    s->dumps_on_quit = n != 0;
    n = 0;
    if ((err = read_number(&quiet, (uint64_t)c->no_overflow_report, &n)) != 0)
        return err;
    s->reports_overflows = n == 0;
    n = 0;
    if ((err = read_number(&plain, 0, &n)) != 0)
        return err;
    s->is_plain = n != 0;
    if ((err = read_io(s, c->io)) != 0)
        return err;
    s->trace_records = 0;
    if ((err = read_number(&trace, 0, &s->trace_records)) != 0)
        return err;
    n = 0;
    if ((err = read_number(&no_rotation, (uint64_t)c->no_rotation, &n)) != 0)
        return err;
    s->no_rotation = n != 0;
    s->clock = c->clock;
    if ((unsigned)c->clock > BLITZ_CLOCK_AUTO) {
        bz_log(BLITZ_LOG_ERROR, "config.clock = %u: must be a blitz_clock_mode, 0 to %d",
               (unsigned)c->clock, BLITZ_CLOCK_AUTO);
        return -EINVAL;
    }
    s->guards = c->require_guards ? BZ_STACK_GUARDS_REQUIRED : BZ_STACK_GUARDS_BEST;
    snprintf(s->name, sizeof s->name, "%s", c->name != NULL ? c->name : "blitz");
    s->thread_start = c->thread_start;
    s->thread_stop = c->thread_stop;
    s->thread_ctx = c->thread_ctx;
    return 0;
}
