/*
 * harness.h - tests that read like specifications.
 *
 *     // A queue that reorders values breaks every protocol above it.
 *     TEST(queue, takes_values_in_push_order)
 *     {
 *         struct queue q = t_queue_of(3);     // given
 *         int first = queue_take(&q);         // when
 *         CHECK_EQ(first, 1);                 // then
 *     }
 *
 * Every case runs in a process of its own, so one crash is one failure. A failed check ends that
 * process with the place, both values and the command that repeats it. It does not return and does
 * not jump, so it may be used on any thread, on any stack with some 6 KiB left, in a signal handler
 * and in a child process of the case. A case passes when its body returns and has left nothing
 * behind: no thread, no child process, no file descriptor and, where LeakSanitizer looks, no
 * memory. A case that outlives its time limit is ended with a dump of all its stacks. Randomness
 * comes from t_random() alone: the seed is printed with every failure and given back with --seed.
 *
 *     test_queue                      run all cases
 *     test_queue queue.takes_*        run those that match
 *     test_queue --list               name them
 *     test_queue --seed=0x2a          with that seed
 *     test_queue --repeat=100         each that often, with seeds of their own
 *     test_queue --help               the rest
 *
 * docs/testing.md says more.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct t_case {
    const char *noun, *property, *file;
    int line;
    void (*body)(void);
    struct t_case *next;
    unsigned limit_s; /* 0: the common limit */
};
void t_register(struct t_case *c);

#define TEST(noun_, property_) TEST_LIMIT(noun_, property_, 0)

/* A slow case: `seconds` instead of the common time limit (60 s; more under a sanitizer, as there). */
#define TEST_LIMIT(noun_, property_, seconds_)                                                 \
    static void t_body_##noun_##_##property_(void);                                            \
    static struct t_case t_case_##noun_##_##property_ = {.noun = #noun_,                       \
                                                         .property = #property_,               \
                                                         .file = __FILE__,                     \
                                                         .line = __LINE__,                     \
                                                         .body = t_body_##noun_##_##property_, \
                                                         .limit_s = (seconds_)};               \
    __attribute__((constructor)) static void t_enlist_##noun_##_##property_(void)              \
    {                                                                                          \
        t_register(&t_case_##noun_##_##property_);                                             \
    }                                                                                          \
    static void t_body_##noun_##_##property_(void)

/*
 * One value as the checks compare and print it; made by T_VALUE from any integer, pointer, bool or
 * floating number. Comparisons are those of mathematics, whatever the types: -1 is less than 1u.
 */
struct t_value {
    enum { T_SIGNED, T_UNSIGNED, T_BOOL, T_POINTER, T_DOUBLE } kind;
    union {
        long long s;
        unsigned long long u;
        const void *p;
        double d;
    };
};
static inline struct t_value t_signed(long long v)
{
    return (struct t_value){T_SIGNED, {.s = v}};
}
static inline struct t_value t_unsigned(unsigned long long v)
{
    return (struct t_value){T_UNSIGNED, {.u = v}};
}
static inline struct t_value t_bool(bool v)
{
    return (struct t_value){T_BOOL, {.u = v}};
}
static inline struct t_value t_pointer(const volatile void *v)
{
    return (struct t_value){T_POINTER, {.u = (uintptr_t)v}};
}
static inline struct t_value t_double(double v)
{
    return (struct t_value){T_DOUBLE, {.d = v}};
}
/* clang-format off */
#define T_VALUE(x)                                                                                 \
    _Generic((x), float: t_double, double: t_double, _Bool: t_bool,                                \
             unsigned char: t_unsigned, unsigned short: t_unsigned, unsigned: t_unsigned,          \
             unsigned long: t_unsigned, unsigned long long: t_unsigned,                            \
             char: t_signed, signed char: t_signed, short: t_signed, int: t_signed,                \
             long: t_signed, long long: t_signed, default: t_pointer)(x)
/* clang-format on */

enum t_op { T_EQ, T_NE, T_LT, T_LE, T_GT, T_GE };

#define T_NORETURN __attribute__((noreturn, cold))
#if defined(__MINGW32__) /* whose plain printf has no %z */
#define T_PRINTF(at, first) __attribute__((format(gnu_printf, at, first)))
#else
#define T_PRINTF(at, first) __attribute__((format(printf, at, first)))
#endif

/* Behind the checks. The comparison is inline: a check that holds costs a stress loop nothing. */
bool t_holds_mixed(enum t_op op, struct t_value a, struct t_value b);
T_NORETURN void t_check_failed(const char *file, int line, const char *text);
T_NORETURN void t_compare_failed(enum t_op op, struct t_value got, struct t_value want,
                                 const char *file, int line, const char *got_text,
                                 const char *want_text);
void t_compare_text(const char *got, const char *want, const char *file, int line,
                    const char *got_text, const char *want_text);
void t_compare_bytes(const void *got, const void *want, size_t size, const char *file, int line,
                     const char *got_text, const char *want_text);
T_NORETURN void t_fail(const char *file, int line, const char *format, ...) T_PRINTF(3, 4);

static inline bool t_holds(enum t_op op, struct t_value a, struct t_value b)
{
    if (a.kind != b.kind || a.kind == T_DOUBLE)
        return t_holds_mixed(op, a, b);
    bool less = a.kind == T_SIGNED ? a.s < b.s : a.u < b.u;
    bool same = a.u == b.u;
    switch (op) {
    case T_EQ:
        return same;
    case T_NE:
        return !same;
    case T_LT:
        return less;
    case T_LE:
        return less || same;
    case T_GT:
        return !less && !same;
    default:
        return !less;
    }
}
static inline void t_check(bool ok, const char *file, int line, const char *text)
{
    if (!ok)
        t_check_failed(file, line, text);
}
static inline void t_compare(enum t_op op, struct t_value got, struct t_value want,
                             const char *file, int line, const char *got_text,
                             const char *want_text)
{
    if (!t_holds(op, got, want))
        t_compare_failed(op, got, want, file, line, got_text, want_text);
}

/* The texts are taken here, where macros in the arguments are not yet replaced by what they stand for. */
#define T_COMPARE(op, got, want, got_text, want_text) \
    t_compare(op, T_VALUE(got), T_VALUE(want), __FILE__, __LINE__, got_text, want_text)

#define CHECK(cond) t_check(!!(cond), __FILE__, __LINE__, #cond)
#define CHECK_EQ(got, want) T_COMPARE(T_EQ, got, want, #got, #want)
#define CHECK_NE(got, want) T_COMPARE(T_NE, got, want, #got, #want)
#define CHECK_LT(got, want) T_COMPARE(T_LT, got, want, #got, #want)
#define CHECK_LE(got, want) T_COMPARE(T_LE, got, want, #got, #want)
#define CHECK_GT(got, want) T_COMPARE(T_GT, got, want, #got, #want)
#define CHECK_GE(got, want) T_COMPARE(T_GE, got, want, #got, #want)
#define CHECK_STR_EQ(got, want) t_compare_text(got, want, __FILE__, __LINE__, #got, #want)
#define CHECK_MEM_EQ(got, want, size) \
    t_compare_bytes(got, want, size, __FILE__, __LINE__, #got, #want)
#define CHECK_NULL(p) T_COMPARE(T_EQ, (const void *)(p), (const void *)NULL, #p, "NULL")
#define CHECK_NOT_NULL(p) T_COMPARE(T_NE, (const void *)(p), (const void *)NULL, #p, "NULL")
#define FAIL(...) t_fail(__FILE__, __LINE__, __VA_ARGS__)

/*
 * fn(arg), run in a child process, must end it by abort() and say `says` on standard output or
 * error: how a broken invariant is tested. Call it while the case has one thread.
 */
#define CHECK_ABORTS(fn, arg, says) \
    t_check_aborts(fn, arg, says, __FILE__, __LINE__, #fn "(" #arg ")")
void t_check_aborts(void (*fn)(void *), void *arg, const char *says, const char *file, int line,
                    const char *text);

#if defined(_WIN32)
/* Behind CHECK_ABORTS and DIES, where there is no fork. True: run the statement that must abort, then _exit(0). */
bool t_dies_here(void);
/* The process that ran it must have aborted and said so. */
void t_dies_elsewhere(const char *says, const char *file, int line, const char *text);
#endif

/* This machine cannot show the property; say why. Ends the case as skipped. */
T_NORETURN void t_skip(const char *format, ...) T_PRINTF(1, 2);

/* A line that is shown with the case's result (figures, what was found). */
void t_note(const char *format, ...) T_PRINTF(1, 2);

/*
 * Set the activity of this thread ("round %d, seed %llx"): replaces the last one and is shown if
 * the case fails, crashes or hangs. A quarter of a microsecond; safe from any thread.
 */
void t_watch(const char *format, ...) T_PRINTF(1, 2);

/* The case means to leave these behind; say why in a comment. */
enum { T_THREADS = 1, T_CHILDREN = 2, T_FDS = 4, T_MEMORY = 8 };
void t_may_leave(unsigned what);

/*
 * Call fn when a check fails, on the thread that failed and before the case ends: to print, on standard
 * error, what the case was about. Not called for a crash, a report of a sanitizer or a time limit.
 */
void t_at_failure(void (*fn)(void));

/*
 * The seed of this run, and numbers that follow from it. t_random is safe from any thread, but
 * only repeatable from one: give threads generators of their own, by t_rng_of(index), which is a
 * function of the seed and the index alone.
 */
uint64_t t_seed(void);
uint64_t t_random(void);
uint64_t t_random_below(uint64_t limit);                  /* 0 .. limit - 1; limit > 0 */
uint64_t t_random_between(uint64_t first, uint64_t last); /* both included */
void t_random_bytes(void *into, size_t size);

struct t_rng {
    uint64_t state;
};
struct t_rng t_rng_of(uint64_t index);
uint64_t t_rng_next(struct t_rng *r);
uint64_t t_rng_below(struct t_rng *r, uint64_t limit);

/* How much to do: `full` normally, less under a sanitizer, valgrind or with --quick; at least 1. */
uint64_t t_scaled(uint64_t full);

/* Does valgrind run us? For what it cannot show: see support/sanitizers.h. */
bool t_under_valgrind(void);

/* Run fn(arg, 0), ..., fn(arg, n - 1) on n threads that all start together; return when all have
 * returned. A thread that cannot be made fails the case. */
void t_threads(int n, void (*fn)(void *arg, int index), void *arg);

#endif
