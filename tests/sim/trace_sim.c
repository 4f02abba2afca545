/*
 * blitz/trace.h in virtual time: a known program leaves a known trace, to the nanosecond, for every
 * seed; on several procs every trace is complete and consistent.
 */
#include "support/sim.h"

#include "blitz.h"
#include "proc/state.h"
#include "runtime/runtime.h"

/* ---- the trace, as short lines ---- */

struct text {
    char json[1 << 18];
    size_t used;
    char lines[4096];
    size_t length;
};

static int collect(const void *data, size_t bytes, void *ctx)
{
    struct text *t = ctx;
    CHECK_LT(t->used + bytes, sizeof t->json);
    memcpy(t->json + t->used, data, bytes);
    t->used += bytes;
    t->json[t->used] = '\0';
    return 0;
}

/* The value of a field in one event; "" if it has none. */
static const char *field(const char *event, const char *name, char out[64])
{
    char key[32];
    const char *end = strchr(event, '\n');
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(event, key);
    out[0] = '\0';
    if (at == NULL || (end != NULL && at > end))
        return out;
    at += strlen(key);
    at += *at == '"';
    size_t n = strcspn(at, "\",}");
    snprintf(out, 64, "%.*s", (int)(n < 63 ? n : 63), at);
    return out;
}

/* Whole microseconds: reading the clock takes some nanoseconds there. */
static unsigned long us(const char *text)
{
    return strtoul(text, NULL, 10);
}

/* Slices, arrows and marks: when, what, for how long, and how it ended. */
static void shorten(struct text *t)
{
    t->length = 0;
    t->lines[0] = '\0';
    for (const char *at = t->json; (at = strstr(at, "\n{\"ph\":\"")) != NULL; at++) {
        char ts[64], name[64], dur[64], then[64], why[64];
        const char *event = at + 1;
        char kind = event[7];
        if (kind == 'M' || strcmp(field(event, "cat", name), "machine") == 0)
            continue;
        field(event, "name", name);
        field(event, "then", then);
        if (kind == 's')
            field(event, "how", name);
        t->length += (size_t)snprintf(t->lines + t->length, sizeof t->lines - t->length,
                                      "%lu %c %s", us(field(event, "ts", ts)), kind, name);
        if (*then != '\0')
            t->length +=
                (size_t)snprintf(t->lines + t->length, sizeof t->lines - t->length, " %lu %s %s",
                                 us(field(event, "dur", dur)), then, field(event, "for", why));
        t->length += (size_t)snprintf(t->lines + t->length, sizeof t->lines - t->length, "\n");
        CHECK_LT(t->length, sizeof t->lines);
    }
}

/* ---- the known program ---- */

static int child(void *arg)
{
    (void)arg;
    bz_sim_burn(2 * BLITZ_US);
    blitz_trace_mark("half");
    bz_sim_burn(3 * BLITZ_US);
    return 0;
}

static int sleeps(void *arg)
{
    (void)arg;
    bz_sim_burn(BLITZ_US);
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    bz_sim_burn(BLITZ_US);
    return 0;
}

static blitz_task *spawn(int (*fn)(void *), const char *name)
{
    blitz_task *t;
    CHECK_EQ(blitz_spawn(fn, NULL, &(blitz_spawn_opts){.name = name}, &t), 0);
    return t;
}

static int known(void *arg)
{
    struct text *t = arg;
    CHECK_EQ(blitz_trace_start(NULL, NULL), 0);
    blitz_task *claimed = spawn(child, "claimed");
    bz_sim_burn(10 * BLITZ_US);
    CHECK_EQ(blitz_task_join(claimed, NULL, BLITZ_FOREVER), 0);
    blitz_task *sleeper = spawn(sleeps, "sleeper");
    CHECK_EQ(blitz_task_join(sleeper, NULL, blitz_after(BLITZ_S)), 0);
    bz_sim_burn(5 * BLITZ_US);
    CHECK_EQ(blitz_trace_stop(NULL), 0);
    CHECK_EQ(blitz_trace_write_to(NULL, collect, t), 0);
    return 0;
}

struct scene {
    unsigned procs;
    int (*fn)(void *);
    bool is_plain;
    unsigned tasks; /* that it had */
    struct text text;
};

static void play(const struct bz_os *os, void *arg)
{
    struct scene *s = arg;
    struct bz_runtime *in;
    CHECK_EQ(bz_runtime_new(os, &(blitz_runtime_opts){.procs = s->procs}, &in), 0);
    blitz_runtime *rt = (blitz_runtime *)in;
    s->is_plain = bz_is_plain(in);
    if (s->fn != known)
        CHECK_EQ(blitz_trace_start(rt, NULL), 0);
    s->tasks = (unsigned)blitz_runtime_block_on(rt, s->fn, &s->text);
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    if (s->fn != known)
        CHECK_EQ(blitz_trace_write_to(rt, collect, &s->text), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

static struct scene scene;

static void trace(unsigned procs, int (*fn)(void *), uint64_t seed)
{
    scene = (struct scene){.procs = procs, .fn = fn};
    t_watch("simulation seed 0x%llx", (unsigned long long)seed);
    CHECK_EQ(bz_sim_run(&(struct bz_sim_config){.seed = seed}, play, &scene, NULL), 0);
    shorten(&scene.text);
}

/* In builds with delay points, which take time, only the order is known. */
static const char *what_is_known(const char *lines, char out[4096])
{
    size_t n = 0;
    for (; *lines != '\0'; lines++)
#if defined(BZ_DELAY) || defined(BZ_DEBUG)
        if (*lines < '0' || *lines > '9')
#endif
            out[n++] = *lines;
    out[n] = '\0';
    return out;
}

TEST(trace, a_known_program_leaves_a_known_trace)
{
    char got[4096], want[4096];
    for (uint64_t i = 0, n = 5 + t_scaled(50); i < n; i++) {
        trace(1, known, t_random());
        if (scene.is_plain)
            t_skip("no claims in the plain form");
        what_is_known("0 s spawn\n"
                      "10 f wake\n"
                      "12 i half\n"
                      "10 X claimed 5 ends \n"
                      "15 s spawn\n"
                      "0 X main 15 waits join\n"
                      "15 f wake\n"
                      "15 X sleeper 1 waits sleep\n"
                      "1016 X timer\n"
                      "1016 s timer\n"
                      "1016 f wake\n"
                      "1016 X sleeper 1 ends \n"
                      "1017 X wake\n"
                      "1017 s wake\n"
                      "1017 f wake\n"
                      "1017 X main 5 goes on \n",
                      want);
        CHECK_STR_EQ(what_is_known(scene.text.lines, got), want);
    }
}

/* ---- on several procs ---- */

static int leaf(void *arg)
{
    (void)arg;
    bz_sim_burn(20 * BLITZ_US);
    blitz_yield();
    return blitz_sleep(30 * BLITZ_US);
}

static int crowd(void *arg)
{
    enum { N = 12 };
    blitz_task *t[N];
    (void)arg;
    for (int i = 0; i < N; i++)
        t[i] = spawn(leaf, "leaf");
    for (int i = 0; i < N; i++)
        CHECK_EQ(blitz_task_join(t[i], NULL, BLITZ_FOREVER), 0);
    return N + 1;
}

static unsigned count(const char *in, const char *what)
{
    unsigned n = 0;
    for (const char *at = in; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

/* Every spawned task runs and ends once; every arrow ends where a run begins; no slice is left
 * open. */
TEST(trace, the_books_balance_on_any_number_of_procs)
{
    unsigned steals = 0;
    for (uint64_t i = 0, n = 10 + t_scaled(100); i < n; i++) {
        trace(1 + (unsigned)t_random_below(3), crowd, t_random());
        const char *json = scene.text.json;
        CHECK_EQ(count(json, "\"how\":\"spawn\""), scene.tasks);
        CHECK_EQ(count(json, "\"then\":\"ends\""), scene.tasks);
        CHECK_EQ(count(json, "{\"ph\":\"s\""), count(json, "{\"ph\":\"f\""));
        CHECK_EQ(count(json, "\"for\":\"sleep\""), scene.tasks - 1);
        /* Machines that sleep may still do so; tasks do not run any more. */
        CHECK_EQ(count(json, "goes on") + count(json, "\"then\":\"\"}"),
                 count(json, "\"name\":\"asleep\""));
        steals += count(json, "\"steal\"");
    }
    CHECK_GT(steals, 0u);
}
