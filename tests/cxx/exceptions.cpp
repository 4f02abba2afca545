/* See exceptions.h. */
#include "cxx/exceptions.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "blitz.h"

namespace
{

/* ---- what is wrong ---- */

std::atomic<bool> is_wrong;
ex_scene *scene;

void wrong(const char *format, ...)
{
    if (is_wrong.exchange(true))
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(scene->wrong, sizeof scene->wrong, format, args);
    va_end(args);
}

/* ---- waiting ---- */

struct Random {
    uint64_t state;
    uint64_t next()
    {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return state >> 33;
    }
};

std::atomic<uint64_t> migrations, done;
blitz_mutex mutex;

int child(void *arg);

void wait_once(Random &r)
{
    switch (r.next() % 4) {
    case 0:
        (void)!blitz_sleep_until(blitz_after(r.next() % 50 * BLITZ_US));
        break;
    case 1:
        (void)!blitz_mutex_lock(&mutex, BLITZ_FOREVER);
        blitz_yield();
        blitz_mutex_unlock(&mutex);
        break;
    default:
        blitz_yield();
    }
}

void wait(Random &r)
{
    long before = syscall(SYS_gettid);
    wait_once(r);
    if (syscall(SYS_gettid) != before)
        migrations++;
}

/* ---- exceptions ---- */

struct Tag : std::runtime_error {
    uint64_t task, number;
    Tag(uint64_t of, uint64_t n)
        : std::runtime_error("tag " + std::to_string(of) + "." + std::to_string(n)), task(of),
          number(n)
    {
    }
};

void expect(const char *where, const Tag &got, uint64_t task, uint64_t number)
{
    if (got.task != task || got.number != number)
        wrong("%s: task %llu got %s instead of %llu", where, (unsigned long long)task, got.what(),
              (unsigned long long)number);
}

void expect_current(const char *where, uint64_t task, uint64_t number)
{
    std::exception_ptr now = std::current_exception();
    if (!now) {
        wrong("%s: no current exception", where);
        return;
    }
    try {
        std::rethrow_exception(now);
    } catch (const Tag &t) {
        expect(where, t, task, number);
    } catch (...) {
        wrong("%s: a stranger is current", where);
    }
}

void expect_none(const char *where)
{
    if (std::current_exception())
        wrong("%s: an exception is current", where);
    if (std::uncaught_exceptions() != 0)
        wrong("%s: %d uncaught exceptions", where, std::uncaught_exceptions());
}

/* Waits while the exception passes it. */
struct Passed {
    Random &random;
    int before = std::uncaught_exceptions();
    explicit Passed(Random &r) : random(r) {}
    ~Passed()
    {
        for (int i = 0; i < 2; i++) {
            if (std::uncaught_exceptions() != before + 1)
                wrong("unwinding: %d uncaught exceptions, not %d", std::uncaught_exceptions(),
                      before + 1);
            wait(random);
        }
    }
};

void throw_past(Random &r, uint64_t task, uint64_t number)
{
    Passed passed(r);
    throw Tag(task, number);
}

void nest(Random &r, uint64_t task, uint64_t number)
{
    try {
        throw_past(r, task, number);
    } catch (const Tag &outer) {
        wait(r);
        expect("nested", outer, task, number);
        try {
            wait(r);
            throw;
        } catch (const Tag &again) {
            wait(r);
            expect("rethrown inside", again, task, number);
        }
        wait(r);
        expect_current("nested, current", task, number);
    }
}

/* ---- other stacks ---- */

struct Call {
    Random *random;
    uint64_t task, number;
    std::exception_ptr passed;
};

/* A call on another stack, in a catch block: `throw;` throws what the caller handles. */
int on_big_stack(void *arg)
{
    Call *c = static_cast<Call *>(arg);
    expect_current("big stack", c->task, c->number);
    try {
        wait(*c->random);
        throw;
    } catch (const Tag &t) {
        wait(*c->random);
        expect("big stack, rethrown", t, c->task, c->number);
    }
    nest(*c->random, c->task, c->number + 3);
    wait(*c->random);
    return 0;
}

/* A child begins with no exception, whoever runs it; it may throw what it was given. */
int child(void *arg)
{
    Call *c = static_cast<Call *>(arg);
    Random r = {c->number};
    expect_none("child");
    try {
        std::rethrow_exception(c->passed);
    } catch (const Tag &t) {
        wait(r);
        expect("given to a child", t, c->task, c->number);
        nest(r, c->task, c->number + 4);
        expect_current("given to a child, current", c->task, c->number);
    }
    expect_none("child at its end");
    return 0;
}

void join_child(Random &r, uint64_t task, uint64_t number)
{
    Call c = {&r, task, number, std::current_exception()};
    blitz_task *t;
    if (blitz_spawn(child, &c, nullptr, &t) != 0)
        return;
    if (r.next() % 2 == 0)
        wait(r);
    (void)!blitz_task_join(t, nullptr, BLITZ_FOREVER);
}

void one_round(Random &r, uint64_t task, uint64_t number)
{
    try {
        throw_past(r, task, number);
    } catch (const Tag &t) {
        wait(r);
        expect("caught", t, task, number);
        nest(r, task, number + 1);
        join_child(r, task, number);
        if (r.next() % 4 == 0) {
            Call c = {&r, task, number, nullptr};
            (void)!blitz_on_big_stack(on_big_stack, &c, 1 << 20);
        }
        wait(r);
        expect_current("current", task, number);
        try {
            throw;
        } catch (const Tag &again) {
            wait(r);
            expect("rethrown", again, task, number);
        }
    }
    wait(r);
    expect_none("between");
}

struct Party {
    uint64_t id;
};

int party(void *arg)
{
    uint64_t id = static_cast<Party *>(arg)->id;
    Random r = {scene->seed ^ id * 0x9e3779b97f4a7c15u};
    expect_none("begin");
    for (unsigned i = 0; i < scene->rounds && !is_wrong; i++, done++)
        one_round(r, id, (uint64_t)i * 10);
    return 0;
}

int parties(void *)
{
    blitz_task *t[64];
    Party p[64];
    unsigned n = scene->tasks < 64 ? scene->tasks : 64;
    for (unsigned i = 0; i < n; i++) {
        p[i].id = i + 1;
        if (blitz_spawn(party, &p[i], nullptr, &t[i]) != 0)
            wrong("no task to be had");
    }
    for (unsigned i = 0; i < n; i++)
        (void)!blitz_task_join(t[i], nullptr, BLITZ_FOREVER);
    return 0;
}

void run(ex_scene *s)
{
    blitz_runtime_opts config = {};
    config.procs = s->procs;
    int err = blitz_run(parties, nullptr, &config);
    if (err != 0)
        wrong("blitz_run: %d", err);
}

void begin(ex_scene *s)
{
    scene = s;
    s->wrong[0] = '\0';
    is_wrong = false;
    migrations = 0;
    done = 0;
    blitz_mutex_init(&mutex);
}

void end(ex_scene *s)
{
    s->done = done;
    s->migrations = migrations;
}

/* ---- escaping ---- */

int lost(void *)
{
    blitz_yield();
    throw std::runtime_error("lost");
}

void *lost_pointer(void *arg)
{
    lost(arg);
    return nullptr;
}

blitz_poll lost_poll(void *, blitz_cx *)
{
    throw std::runtime_error("lost");
}

int lost_on_big_stack(void *)
{
    return blitz_on_big_stack(lost, nullptr, 1 << 20);
}

/* Forked, and made to leave the deque: it runs on its own, whoever joins it. */
int lost_job(void *)
{
    blitz_job job;
    blitz_fork(&job, lost, nullptr);
    (void)!blitz_sleep_until(blitz_after(BLITZ_MS));
    return blitz_join(&job);
}

int start(enum ex_escape how, blitz_task **t)
{
    blitz_spawn_opts opts = {};
    opts.name = "parser";
    switch (how) {
    case EX_POINTER:
        return blitz_spawn_ptr(lost_pointer, nullptr, &opts, t);
    case EX_POLL:
        return blitz_spawn_poll(lost_poll, nullptr, 0, &opts, t);
    case EX_BIG_STACK:
        return blitz_spawn(lost_on_big_stack, nullptr, &opts, t);
    case EX_JOB:
        return blitz_spawn(lost_job, nullptr, &opts, t);
    case EX_ELSEWHERE:
        opts.proc = BLITZ_ON_PROC(1);
        break;
    default:
        break;
    }
    return blitz_spawn(lost, nullptr, &opts, t);
}

/* It would catch, if the child's exception came this way. */
int parent(void *arg)
{
    try {
        blitz_task *t;
        if (start(*static_cast<enum ex_escape *>(arg), &t) == 0)
            (void)!blitz_task_join(t, nullptr, BLITZ_FOREVER);
    } catch (const std::exception &e) {
        fprintf(stderr, "the parent caught %s\n", e.what());
    }
    return 0;
}

int wait_a_little(void *)
{
    Random r = {scene->seed};
    expect_none("guest");
    nest(r, 77, 7);
    return 0;
}

} // namespace

void ex_mix(ex_scene *s)
{
    begin(s);
    run(s);
    end(s);
}

void ex_thread(ex_scene *s)
{
    begin(s);
    try {
        throw Tag(1000, 1);
    } catch (const Tag &) {
        run(s);
        expect_current("after blitz_run", 1000, 1);
        for (unsigned i = 0; i < s->rounds; i++)
            (void)!blitz_par_run(nullptr, wait_a_little, nullptr);
        expect_current("after blitz_par_run", 1000, 1);
        try {
            throw;
        } catch (const Tag &t) {
            expect("thread", t, 1000, 1);
        }
    }
    expect_none("thread at its end");
    end(s);
    (void)!blitz_par_end();
}

void ex_escape(enum ex_escape how)
{
    blitz_runtime_opts config = {};
    config.procs = 2;
    (void)!blitz_run(parent, &how, &config);
}
