/*
 * model.h - tests that hold in every order of events the memory model allows.
 *
 *     static bz_atomic(int) ready;
 *     static bz_shared(int) data;
 *     static void sends(void)    { bz_set(&data, 42); bz_store_release(&ready, 1); }
 *     static void receives(void) { if (bz_load_acquire(&ready)) m_assert(bz_get(&data) == 42); }
 *
 *     MODEL(message, arrives_with_its_flag)
 *     {
 *         m_threads(sends, receives);
 *     }
 *
 * The body runs once per execution: what comes before m_threads sets up, what follows it looks at
 * the end. Everything that two threads share is bz_atomic, bz_shared, or an allocation of m_alloc;
 * such variables are put back to what they were before each execution. Anything else (results that
 * a thread leaves for the end) must be set by the test itself. Code under test is src/ compiled
 * with -DBZ_MODEL. docs/model-checking.md is the guide.
 */
#ifndef MODEL_H
#define MODEL_H

#if defined(M_PLAIN_C11)
#include "model_c11.h" /* the same tests as ordinary programs */
#else

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bz_atomic.h"
#include "blitz/hooks.h"

/* An order kept in a variable. */
#define M_ORDER(o) ((enum m_order)(o))

/* Settings that a test may change, with m_set_...() in its body before m_threads. */
struct m_settings {
    int spurious;   /* failures for no reason (weak CAS, waits) in one execution; 1 */
    int spin_tries; /* times a thread may pass m_relax without news; 0 */
    int livelock;   /* times a thread may pass m_relax at all; 32 */
    int streak;     /* reads without news and without m_relax that make a stuck spin; 24 */
    bool leaks_are_fine;
    bool reuse_memory; /* hand out freed blocks again, the last first */
};
struct m_settings *m_settings(void);

struct m_case {
    const char *noun, *property, *file;
    int line;
    void (*body)(void);
    const char *fails_with; /* NULL, or part of the report it must end with */
    struct m_case *next;
};
void m_enlist(struct m_case *c);

#define M_CASE(noun_, property_, fails_)                                                     \
    static void m_body_##noun_##_##property_(void);                                          \
    static struct m_case m_case_##noun_##_##property_ = {                                    \
        #noun_, #property_, __FILE__, __LINE__, m_body_##noun_##_##property_, fails_, NULL}; \
    __attribute__((constructor)) static void m_enlist_##noun_##_##property_(void)            \
    {                                                                                        \
        m_enlist(&m_case_##noun_##_##property_);                                             \
    }                                                                                        \
    static void m_body_##noun_##_##property_(void)

/* Holds in every execution. */
#define MODEL(noun_, property_) M_CASE(noun_, property_, NULL)
/* Must be found to fail, with a message that contains `text`: the other half of a proof. */
#define MODEL_FAILS(noun_, property_, text_) M_CASE(noun_, property_, text_)

/* Run void functions as threads 1, 2, ... in every order; return when all have returned. */
#define m_threads(...)                                                                          \
    m_threads_run((void (*const[])(void)){__VA_ARGS__},                                         \
                  (int)(sizeof((void (*const[])(void)){__VA_ARGS__}) / sizeof(void (*)(void))), \
                  #__VA_ARGS__)
void m_threads_run(void (*const *fns)(void), int count, const char *names);
/* After m_threads: what must be true at the end. */
#define m_finally(fn) (fn)()
/* Which thread am I: 1, 2, ...; 0 in the body. */
int m_self(void);

#define m_assert(cond) ((cond) ? (void)0 : m_assert_failed(__FILE__, __LINE__, #cond))
__attribute__((noreturn)) void m_assert_failed(const char *file, int line, const char *cond);
/* Not in any execution. */
#define m_never(cond) m_assert(!(cond))
/* In at least one execution; checked when the search is over. */
#define m_sometimes(cond)                                                       \
    do {                                                                        \
        static struct m_goal m_goal_ = {__FILE__, __LINE__, #cond, 0, 0, NULL}; \
        m_goal(&m_goal_, (cond));                                               \
    } while (0)
struct m_goal {
    const char *file;
    int line;
    const char *cond;
    uint64_t seen, asked;
    struct m_goal *next;
};
void m_goal(struct m_goal *g, bool is_reached);

/* This execution is of no interest: forget it. */
__attribute__((noreturn)) void m_ignore(void);

/* In a loop that waits for another thread: until one of the locations read since the last call has
 * a new store, going round again is of no use. */
#define m_relax() m_relax_at(M_SITE(""))
#define m_yield() m_relax_at(M_SITE(""))
void m_relax_at(struct m_site *at);

/* Sleep words, as the operating system gives them. wait: 0 woken, -EAGAIN *word was not `expected`,
 * -ETIMEDOUT (m_word_wait_timed alone: the time may run out at any moment). wake: how many it woke. */
#define m_word_wait(word, expected) m_word_wait_at(word, expected, false, M_SITE(#word))
#define m_word_wait_timed(word, expected) m_word_wait_at(word, expected, true, M_SITE(#word))
#define m_word_wake(word, n) m_word_wake_at(word, n, M_SITE(#word))
int m_word_wait_at(const volatile uint32_t *word, uint32_t expected, bool is_timed,
                   struct m_site *at);
int m_word_wake_at(const volatile uint32_t *word, int n, struct m_site *at);

/* A seq_cst fence in every thread, each at some moment between the call and the return. */
#define m_membarrier() m_membarrier_at(M_SITE(""))
void m_membarrier_at(struct m_site *at);

/* Memory that is watched: touched after free, freed twice, never freed, freed under a reader. */
#define m_alloc(size) m_alloc_at(size, 16, M_SITE(#size))
#define m_free(p) m_free_at(p, M_SITE(#p))
void *m_alloc_at(size_t size, size_t align, struct m_site *at);
void m_free_at(void *p, struct m_site *at);
extern const blitz_allocator m_allocator;

/* A line of your own in the report. */
#define m_note(text, value) m_note_at(text, (uint64_t)(value), M_SITE(text))
void m_note_at(const char *text, uint64_t value, struct m_site *at);

#endif
#endif
