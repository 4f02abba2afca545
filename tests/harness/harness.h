/*
 * harness.h - tests that read like specifications.
 *
 *     // Whoever asks first is served first.
 *     TEST(queue, takes_in_the_order_of_pushes)
 *     {
 *         struct queue q = t_queue_of(3);     // given
 *         int first = queue_take(&q);         // when
 *         CHECK_EQ(first, 1);                 // then
 *     }
 *
 * Every case runs in a process of its own, so one crash is one failure. A failed check ends that
 * process with the place, both values and the command that repeats it; it does not return and does
 * not jump, so it may be used on any thread and on any stack. A case passes when its body returns.
 * A case that outlives its time limit is ended with a dump of all its stacks. Randomness comes from
 * t_random() alone: the seed is printed with every failure and given back with --seed.
 *
 *     test_queue                      run all cases
 *     test_queue queue.takes_*        run those that match
 *     test_queue --list               name them
 *     test_queue --seed=0x2a          with that seed
 *     test_queue --repeat=100         each that often, with seeds of their own
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
};
void t_register(struct t_case *c);

#define TEST(noun_, property_)                                                               \
    static void t_body_##noun_##_##property_(void);                                          \
    static struct t_case t_case_##noun_##_##property_ = {                                    \
        #noun_, #property_, __FILE__, __LINE__, t_body_##noun_##_##property_, NULL};         \
    __attribute__((constructor)) static void t_enlist_##noun_##_##property_(void)            \
    {                                                                                        \
        t_register(&t_case_##noun_##_##property_);                                           \
    }                                                                                        \
    static void t_body_##noun_##_##property_(void)

/* One value as the checks print it; made by T_VALUE from any integer, pointer, bool or double. */
struct t_value {
    enum { T_SIGNED, T_UNSIGNED, T_POINTER, T_DOUBLE } kind;
    union {
        long long s;
        unsigned long long u;
        const void *p;
        double d;
    };
};
static inline struct t_value t_signed(long long v) { return (struct t_value){T_SIGNED, {.s = v}}; }
static inline struct t_value t_unsigned(unsigned long long v) { return (struct t_value){T_UNSIGNED, {.u = v}}; }
static inline struct t_value t_pointer(const volatile void *v) { return (struct t_value){T_POINTER, {.p = (const void *)v}}; }
static inline struct t_value t_double(double v) { return (struct t_value){T_DOUBLE, {.d = v}}; }
#define T_VALUE(x)                                                                           \
    _Generic((x), float: t_double, double: t_double,                                         \
             _Bool: t_unsigned, unsigned char: t_unsigned, unsigned short: t_unsigned,       \
             unsigned: t_unsigned, unsigned long: t_unsigned, unsigned long long: t_unsigned,\
             char: t_signed, signed char: t_signed, short: t_signed, int: t_signed,          \
             long: t_signed, long long: t_signed, default: t_pointer)(x)

enum t_op { T_EQ, T_NE, T_LT, T_LE, T_GT, T_GE };
void t_check(bool ok, const char *file, int line, const char *text);
void t_compare(enum t_op op, struct t_value got, struct t_value want, const char *file, int line,
               const char *got_text, const char *want_text);
void t_compare_text(const char *got, const char *want, const char *file, int line,
                    const char *got_text, const char *want_text);
void t_compare_bytes(const void *got, const void *want, size_t size, const char *file, int line,
                     const char *got_text, const char *want_text);
void t_fail(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));

#define CHECK(cond) t_check(!!(cond), __FILE__, __LINE__, #cond)
#define CHECK_EQ(got, want) t_compare(T_EQ, T_VALUE(got), T_VALUE(want), __FILE__, __LINE__, #got, #want)
#define CHECK_NE(got, want) t_compare(T_NE, T_VALUE(got), T_VALUE(want), __FILE__, __LINE__, #got, #want)
#define CHECK_LT(got, want) t_compare(T_LT, T_VALUE(got), T_VALUE(want), __FILE__, __LINE__, #got, #want)
#define CHECK_LE(got, want) t_compare(T_LE, T_VALUE(got), T_VALUE(want), __FILE__, __LINE__, #got, #want)
#define CHECK_GT(got, want) t_compare(T_GT, T_VALUE(got), T_VALUE(want), __FILE__, __LINE__, #got, #want)
#define CHECK_GE(got, want) t_compare(T_GE, T_VALUE(got), T_VALUE(want), __FILE__, __LINE__, #got, #want)
#define CHECK_STR_EQ(got, want) t_compare_text(got, want, __FILE__, __LINE__, #got, #want)
#define CHECK_MEM_EQ(got, want, size) t_compare_bytes(got, want, size, __FILE__, __LINE__, #got, #want)
#define CHECK_NULL(p) CHECK_EQ((const void *)(p), (const void *)NULL)
#define CHECK_NOT_NULL(p) CHECK_NE((const void *)(p), (const void *)NULL)
#define FAIL(...) t_fail(__FILE__, __LINE__, __VA_ARGS__)

/* This machine cannot show the property; say why. Ends the case as skipped. */
void t_skip(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* A line that is shown with the case's result (figures, what was found). */
void t_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The seed of this run, and numbers that follow from it. t_random is safe from any thread, but
 * only repeatable from one: give threads generators of their own, seeded from it. */
uint64_t t_seed(void);
uint64_t t_random(void);
uint64_t t_random_below(uint64_t limit);

/* How much to do: `full` normally, less under a sanitizer or with --quick; at least 1. */
uint64_t t_scaled(uint64_t full);

/* Run fn(arg, 0), ..., fn(arg, n - 1) on n threads that all start together; return when all have. */
void t_threads(int n, void (*fn)(void *arg, int index), void *arg);

#endif
