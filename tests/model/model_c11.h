/*
 * model_c11.h - model tests as ordinary C11 programs: <stdatomic.h> underneath, real threads.
 *
 * With -DM_PLAIN_C11 (and without -DBZ_MODEL) model.h is this: MODEL, m_threads, m_assert and
 * m_never mean what they say, on POSIX threads, a few times each in a process of its own. That
 * proves little; it shows that the tests are plain C11, which another checker for it could read as
 * well. m_sometimes is not checked (a few runs need not show it), and a MODEL_FAILS is not run.
 */
#ifndef MODEL_C11_H
#define MODEL_C11_H

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bz_atomic.h"

#define M_ORDER(o) ((memory_order)(o))
#define M_RUNS 10

struct m_case {
    const char *noun, *property;
    void (*body)(void);
    bool must_fail;
    struct m_case *next;
};
static struct m_case *m_cases;
static _Thread_local int m_lane;

#define M_CASE(noun_, property_, fails_)                                          \
    static void m_body_##noun_##_##property_(void);                               \
    static struct m_case m_case_##noun_##_##property_ = {                         \
        #noun_, #property_, m_body_##noun_##_##property_, fails_, NULL};          \
    __attribute__((constructor)) static void m_enlist_##noun_##_##property_(void) \
    {                                                                             \
        m_case_##noun_##_##property_.next = m_cases;                              \
        m_cases = &m_case_##noun_##_##property_;                                  \
    }                                                                             \
    static void m_body_##noun_##_##property_(void)
#define MODEL(noun_, property_) M_CASE(noun_, property_, false)
#define MODEL_FAILS(noun_, property_, text_) M_CASE(noun_, property_, true)

#define m_assert(cond)                                                         \
    do {                                                                       \
        if (!(cond)) {                                                         \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #cond); \
            _exit(1);                                                          \
        }                                                                      \
    } while (0)
#define m_never(cond) m_assert(!(cond))
#define m_sometimes(cond) ((void)(cond))
#define m_finally(fn) (fn)()
#define m_relax() sched_yield()
#define m_self() m_lane

struct m_start {
    void (*fn)(void);
    int lane;
};

static inline void *m_thread_main(void *arg)
{
    const struct m_start *s = arg;
    m_lane = s->lane;
    s->fn();
    return NULL;
}

static inline void m_threads_run(void (*const *fns)(void), int count)
{
    pthread_t thread[8];
    struct m_start start[8];
    for (int i = 0; i < count; i++) {
        start[i] = (struct m_start){fns[i], i + 1};
        if (pthread_create(&thread[i], NULL, m_thread_main, &start[i]) != 0)
            abort();
    }
    for (int i = 0; i < count; i++)
        pthread_join(thread[i], NULL);
}
#define m_threads(...)                                  \
    m_threads_run((void (*const[])(void)){__VA_ARGS__}, \
                  (int)(sizeof((void (*const[])(void)){__VA_ARGS__}) / sizeof(void (*)(void))))

/* One run in a process of its own: the variables are as they were at the start. */
static inline bool m_run_once(const struct m_case *c)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        c->body();
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(void)
{
    int passed = 0, failed = 0;
    for (const struct m_case *c = m_cases; c != NULL; c = c->next) {
        bool is_good = true;
        for (int i = 0; i < M_RUNS && !c->must_fail; i++)
            is_good = is_good && m_run_once(c);
        if (!is_good)
            printf("FAIL %s.%s\n", c->noun, c->property);
        passed += is_good;
        failed += !is_good;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}

#endif
