/* blitz/trace.h: when it may be called, what it writes, and what becomes of what fails. */
#include "harness.h"

#include <unistd.h>

#include "blitz.h"
#include "proc/state.h"
#include "runtime/runtime.h"
#include "support/alone.h"
#include "support/faults.h"
#include "support/test_alloc.h"

/* The written trace. */
struct text {
    char at[1 << 16];
    size_t used;
    size_t fail_after; /* pieces; 0: never */
    size_t pieces;
};
static struct text written;

static int collect(const void *data, size_t bytes, void *ctx)
{
    struct text *t = ctx;
    t->pieces++;
    if (t->fail_after != 0 && t->pieces >= t->fail_after)
        return -EPIPE;
    CHECK_LT(t->used + bytes, sizeof t->at);
    memcpy(t->at + t->used, data, bytes);
    t->used += bytes;
    t->at[t->used] = '\0';
    return 0;
}

static const char *write_all(blitz_runtime *rt)
{
    written = (struct text){.used = 0};
    CHECK_EQ(blitz_trace_write_to(rt, collect, &written), 0);
    return written.at;
}

static blitz_runtime *runtime(void)
{
    blitz_runtime *rt;
    CHECK_EQ(blitz_runtime_new(&(blitz_runtime_opts){.procs = 1}, &rt), 0);
    return rt;
}

static void end(blitz_runtime *rt)
{
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
}

static int marks(void *arg)
{
    blitz_trace_mark(arg);
    return 0;
}

static void mark(blitz_runtime *rt, const char *text)
{
    CHECK_EQ(blitz_runtime_block_on(rt, marks, (void *)text), 0);
}

TEST(trace, wrong_calls_are_refused)
{
    blitz_runtime *rt = runtime();
    CHECK_EQ(blitz_trace_start(NULL, NULL), -EINVAL);
    CHECK_EQ(blitz_trace_stop(NULL), -EINVAL);
    CHECK_EQ(blitz_trace_write(NULL, "x"), -EINVAL);
    CHECK_EQ(blitz_trace_write(rt, NULL), -EINVAL);
    CHECK_EQ(blitz_trace_write_to(rt, NULL, NULL), -EINVAL);
    CHECK_EQ(blitz_trace_write_to(NULL, collect, NULL), -EINVAL);
    CHECK_EQ(blitz_trace_start(rt, &(blitz_trace_opts){.records = (1 << 24) + 1}), -EINVAL);
    CHECK_EQ(blitz_trace_stop(rt), -EALREADY);
    CHECK_EQ(blitz_trace_write_to(rt, collect, &written), -ENODATA);
    CHECK_EQ(blitz_trace_start(rt, NULL), 0);
    CHECK_EQ(blitz_trace_start(rt, NULL), -EBUSY);
    CHECK_EQ(blitz_trace_write(rt, "/nowhere/at/all"), -ENOENT);
    CHECK_EQ(blitz_trace_stop(rt), 0);
    CHECK_EQ(blitz_trace_stop(rt), -EALREADY);
    end(rt);
}

static int starts_and_stops(void *arg)
{
    (void)arg;
    CHECK_EQ(blitz_trace_start(NULL, NULL), 0);
    blitz_trace_mark("from inside");
    CHECK_EQ(blitz_trace_stop(NULL), 0);
    CHECK_NOT_NULL(strstr(write_all(NULL), "from inside"));
    return 0;
}

TEST(trace, a_task_may_trace_its_own_runtime)
{
    blitz_runtime *rt = runtime();
    CHECK_EQ(blitz_runtime_block_on(rt, starts_and_stops, NULL), 0);
    end(rt);
}

TEST(trace, nothing_is_recorded_but_between_start_and_stop)
{
    blitz_runtime *rt = runtime();
    mark(rt, "before");
    CHECK_EQ(blitz_trace_start(rt, NULL), 0);
    mark(rt, "meanwhile");
    CHECK_EQ(blitz_trace_stop(rt), 0);
    mark(rt, "after");
    const char *text = write_all(rt);
    CHECK_NULL(strstr(text, "before"));
    CHECK_NOT_NULL(strstr(text, "\"name\":\"meanwhile\""));
    CHECK_NULL(strstr(text, "after"));
    end(rt);
}

TEST(trace, a_second_trace_begins_anew)
{
    blitz_runtime *rt = runtime();
    CHECK_EQ(blitz_trace_start(rt, NULL), 0);
    mark(rt, "first");
    CHECK_EQ(blitz_trace_stop(rt), 0);
    CHECK_EQ(blitz_trace_start(rt, NULL), 0);
    mark(rt, "second");
    const char *text = write_all(rt); /* while it is on */
    CHECK_NULL(strstr(text, "\"first\""));
    CHECK_NOT_NULL(strstr(text, "\"second\""));
    CHECK_NOT_NULL(strstr(text, "\"lost\":0"));
    end(rt);
}

static int says_its_number(void *arg)
{
    *(uint64_t *)arg = blitz_task_id(NULL);
    return 0;
}

static int spawns_and_joins(void *arg)
{
    uint64_t *id = arg;
    blitz_task *t;
    id[0] = blitz_task_id(NULL);
    CHECK_EQ(blitz_spawn(says_its_number, &id[1], NULL, &t), 0);
    return blitz_task_join(t, NULL,
                           blitz_after(3600 * BLITZ_S)); /* by its own stack: not claimed */
}

/* An arrow leads from the task that spawns or wakes to the one that was made or woken. */
TEST(trace, a_spawn_and_a_wake_name_the_task_that_made_them)
{
    blitz_runtime *rt = runtime();
    char want[80];
    uint64_t id[2];
    CHECK_EQ(blitz_trace_start(rt, NULL), 0);
    CHECK_EQ(blitz_runtime_block_on(rt, spawns_and_joins, id), 0);
    const char *text = write_all(rt);
    snprintf(want, sizeof want, "\"how\":\"spawn\",\"task\":%llu,\"by\":%llu}",
             (unsigned long long)id[1], (unsigned long long)id[0]);
    CHECK_NOT_NULL(strstr(text, want));
    snprintf(want, sizeof want, "\"how\":\"wake\",\"task\":%llu,\"by\":%llu}",
             (unsigned long long)id[0], (unsigned long long)id[1]);
    CHECK_NOT_NULL(strstr(text, want));
    end(rt);
}

/* The row of the other threads comes last, behind every machine that there is and no other. */
TEST(trace, there_is_a_row_for_each_machine_and_one_for_the_others)
{
    blitz_runtime *rt = runtime();
    char want[80];
    unsigned rows = 0;
    CHECK_EQ(blitz_trace_start(rt, NULL), 0);
    mark(rt, "one");
    const char *text = write_all(rt);
    for (const char *at = text; (at = strstr(at, "\"thread_name\"")) != NULL; at++)
        rows++;
    CHECK_EQ(rows, bz_machines_count((struct bz_runtime *)rt) + 1);
    snprintf(want, sizeof want,
             "\"tid\":0,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%u}", rows);
    CHECK_NOT_NULL(strstr(text, want));
    end(rt);
}

static int marks_often(void *arg)
{
    (void)arg;
    for (int i = 0; i < 1000; i++)
        blitz_trace_mark("often");
    blitz_trace_mark("last");
    return 0;
}

TEST(trace, the_oldest_are_overwritten_and_the_file_says_how_many)
{
    blitz_runtime *rt = runtime();
    CHECK_EQ(blitz_trace_start(rt, &(blitz_trace_opts){.records = 20}), 0); /* 32 */
    CHECK_EQ(blitz_runtime_block_on(rt, marks_often, NULL), 0);
    CHECK_EQ(blitz_trace_stop(rt), 0);
    const char *text = write_all(rt);
    unsigned often = 0;
    for (const char *at = text; (at = strstr(at, "\"often\"")) != NULL; at++)
        often++;
    CHECK_GT(often, 20u);
    CHECK_LT(often, 32u);
    CHECK_NOT_NULL(strstr(text, "\"last\""));
    CHECK_NULL(strstr(text, "\"lost\":0"));
    end(rt);
}

TEST(trace, an_error_of_the_writer_ends_the_writing)
{
    blitz_runtime *rt = runtime();
    CHECK_EQ(blitz_trace_start(rt, NULL), 0);
    CHECK_EQ(blitz_runtime_block_on(rt, marks_often, NULL), 0);
    written = (struct text){.fail_after = 2};
    CHECK_EQ(blitz_trace_write_to(rt, collect, &written), -EPIPE);
    CHECK_EQ(written.pieces, 2u);
    end(rt);
}

/* More names than there is room for: the others are nameless. */
static int marks_all_kinds(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2 * BZ_TRACE_NAMES; i++) {
        char text[80];
        snprintf(text, sizeof text, "mark %d of many, and with a name that is rather too long", i);
        blitz_trace_mark(text);
    }
    blitz_trace_mark("mark 0 of many, and with a name that is rather too long");
    return 0;
}

TEST(trace, names_beyond_the_tables_end_are_left_out)
{
    blitz_runtime *rt = runtime();
    struct bz_trace *t = &((struct bz_runtime *)rt)->trace;
    CHECK_EQ(blitz_trace_start(rt, NULL), 0);
    CHECK_EQ(blitz_runtime_block_on(rt, marks_all_kinds, NULL), 0);
    CHECK_EQ(blitz_trace_stop(rt), 0);
    unsigned used = 0;
    for (unsigned i = 0; i < BZ_TRACE_NAMES; i++)
        if (bz_load_acquire(&t->names[i].key) != 0) {
            used++;
            CHECK_LE(t->names[i].length, BZ_TRACE_NAME_MAX - 1u);
        }
    CHECK_EQ(used, BZ_TRACE_NAMES - 1u);
    end(rt);
}

/* ---- names that are no text ---- */

static void check_name(const char *name, const char *json)
{
    char want[400];
    blitz_runtime *rt = runtime();
    snprintf(want, sizeof want, "\"name\":\"%s\",\"cat\":\"mark\"", json);
    CHECK_EQ(blitz_trace_start(rt, NULL), 0);
    mark(rt, name);
    CHECK_NOT_NULL(strstr(write_all(rt), want));
    end(rt);
}

TEST(trace, any_name_is_valid_json)
{
    check_name("plain", "plain");
    check_name("a \"quote\" and \\", "a \\u0022quote\\u0022 and \\u005c");
    check_name("line\nend\t\x7f", "line\\u000aend\\u0009\\u007f");
    check_name("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    check_name("\xff\xc3", "\\ufffd\\ufffd"); /* no UTF-8, and half of it */
    check_name("\xc0\x80\xed\xa0\x80",
               "\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd"); /* overlong, surrogate */
    check_name("\xf4\x90\x80\x80|\xe0\x80\x80|\xf0\x80\x80\x80",
               "\\ufffd\\ufffd\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd\\ufffd");
}

/* ---- failures ---- */

static int traces(const struct bz_os *os, const blitz_allocator *memory, void *arg)
{
    struct bz_runtime *in;
    (void)arg;
    int err = bz_runtime_new(os, &(blitz_runtime_opts){.procs = 1, .allocator = memory}, &in);
    if (err != 0)
        return err;
    blitz_runtime *rt = (blitz_runtime *)in;
    err = blitz_trace_start(rt, &(blitz_trace_opts){.records = 64});
    if (err == 0) {
        int ran = blitz_runtime_block_on(rt, marks, (void *)"mark");
        written = (struct text){.used = 0};
        err = blitz_trace_write_to(rt, collect, &written);
        if (err == 0)
            err = ran;
        if (err == 0 && strstr(written.at, "\"unrecorded\":0") == NULL)
            err = -ENOMEM; /* there was no memory for a row, and the file says so */
        if (err == 0)
            CHECK_NOT_NULL(strstr(written.at, "\"mark\""));
    }
    CHECK_EQ(blitz_runtime_shutdown(rt, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_runtime_unref(rt), 0);
    return err;
}

TEST(trace, every_failure_returns_an_error_and_leaves_nothing_behind)
{
    FAULTS_EACH(traces, .tolerates = T_FAULT(GUARD) | T_FAULT(BARRIER) | T_FAULT(ENTROPY));
}

/* ---- by the environment ---- */

TEST(trace, the_environment_turns_it_on)
{
    char path[] = "/tmp/blitz-trace-XXXXXX", second[64];
    char text[4096];
    int fd = mkstemp(path);
    CHECK_GE(fd, 0);
    setenv("BLITZ_TRACE", path, 1);
    setenv("BLITZ_TRACE_RECORDS", "64", 1);
    CHECK_EQ(t_run_alone(marks, (void *)"by the environment"), 0);
    CHECK_EQ(t_run_alone(marks, (void *)"once more"), 0);
    ssize_t n = read(fd, text, sizeof text - 1);
    CHECK_GT(n, 0);
    text[n] = '\0';
    CHECK_NOT_NULL(strstr(text, "by the environment"));
    snprintf(second, sizeof second, "%s.2", path);
    CHECK_EQ(access(second, R_OK), 0); /* each runtime has its own */
    CHECK_EQ(unlink(second), 0);
    CHECK_EQ(unlink(path), 0);
    close(fd);
}

TEST(trace, a_number_of_records_that_cannot_be_is_refused)
{
    setenv("BLITZ_TRACE_RECORDS", "3", 1);
    CHECK_EQ(t_run_alone(marks, (void *)"x"), -EINVAL);
}

/* It is not worth failing for: the program runs, and the log says that there is no trace. */
TEST(trace, a_file_that_cannot_be_written_does_not_stop_the_program)
{
    setenv("BLITZ_TRACE", "/nowhere/at/all", 1);
    CHECK_EQ(t_run_alone(marks, (void *)"x"), 0);
}
