/*
 * blitz/iter_source.h - the sources of blitz/iter.h: what an iterator runs over.
 *
 * A source is part of a definition. It says what the body sees, and which parameters the function begins with. `i` is
 * the index, a size_t, in every body; `n` below is the number of indexes.
 *
 *   source                       the body sees                   the function begins with
 *   BLITZ_RANGE                  i                               size_t n
 *   BLITZ_EACH(T, x)             T x, a copy of element i        const T *x, size_t n
 *   BLITZ_EACH_AT(T, p)          T *p, where element i is        T *p, size_t n
 *   BLITZ_ZIP(A, a, B, b)        A a, B b: element i of two      const A *a, const B *b, size_t n
 *   BLITZ_ZIP3(A, a, B, b, C, c) and of three                    const A *a, ... *b, ... *c, size_t n
 *   BLITZ_CHAIN(T, x)            T x: of two arrays as if they   const T *first, size_t first_n,
 *                                were one                        const T *second, size_t second_n
 *   BLITZ_INTERLEAVE(T, x)       T x: of two arrays in turn,     const T *first, size_t first_n,
 *                                then the rest of the longer     const T *second, size_t second_n
 *   BLITZ_REV(T, x)              T x: element n - 1 - i          const T *x, size_t n
 *   BLITZ_STEP(T, x, k)          T x: element i * k              const T *x, size_t elements
 *   BLITZ_CHUNKS(T, c, k)        T *c, size_t c_n: the i-th k    T *c, size_t elements
 *                                elements; c_n < k in the last
 *   BLITZ_WINDOWS(T, w, k)       T *w: elements i to i + k - 1   T *w, size_t elements
 *
 * Elements may have any type that can be assigned; for large elements prefer EACH_AT, which does not copy. T of
 * EACH_AT, CHUNKS and WINDOWS may be const: `BLITZ_EACH_AT(const struct body, b)`. Write a type so that a `*` may
 * follow it: for arrays and functions use a typedef. k is an expression: a constant, or made of the function's other
 * parameters. k = 0 is refused with -EINVAL. The number of windows, chunks or steps follows from k and the number of elements.
 * There are none if there are fewer elements than a window has. Writing to overlapping windows is a race: let T be
 * const there.
 *
 * A body that writes through EACH_AT or CHUNKS writes only to its own element or chunk.
 */
#ifndef BLITZ_ITER_SOURCE_H
#define BLITZ_ITER_SOURCE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"
#include "blitz/loop.h"

#define BLITZ_RANGE (range_, 0)
#define BLITZ_EACH(T, x) (each_, T, x)
#define BLITZ_EACH_AT(T, p) (each_at_, T, p)
#define BLITZ_ZIP(A, a, B, b) (zip_, A, a, B, b)
#define BLITZ_ZIP3(A, a, B, b, C, c) (zip3_, A, a, B, b, C, c)
#define BLITZ_CHAIN(T, x) (chain_, T, x)
#define BLITZ_INTERLEAVE(T, x) (interleave_, T, x)
#define BLITZ_REV(T, x) (rev_, T, x)
#define BLITZ_STEP(T, x, k) (step_, T, x, k)
#define BLITZ_CHUNKS(T, c, k) (chunks_, T, c, k)
#define BLITZ_WINDOWS(T, w, k) (windows_, T, w, k)

/*
 * The rest of this file implements the definitions; it is not for programs. A definition is built around one list of
 * *pairs* (type, name), which the source, the operation and the captures contribute. The same list becomes the members
 * of a struct, the parameters of the functions and their arguments. Names that end in an underscore are reserved. Every
 * body is in a function of its own, which is inlined everywhere. So its names cannot clash with ours, and the operation
 * decides where and how often it is evaluated.
 */

#if defined(__GNUC__)
#define BLITZ_INLINE_ inline __attribute__((always_inline))
#define BLITZ_RESTRICT_ __restrict__
#else
#define BLITZ_INLINE_ inline
#define BLITZ_RESTRICT_
#endif

/* ---- lists of pairs ---- */

#define BLITZ_PICK_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, picked, ...) picked
#define BLITZ_COUNT_(...) \
    BLITZ_PICK_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define BLITZ_PASTE_(a, b) BLITZ_PASTE2_(a, b)
#define BLITZ_PASTE2_(a, b) a##b

/* m(pair), m(pair), ... */
#define BLITZ_LIST_(m, ...) BLITZ_PASTE_(BLITZ_LIST_, BLITZ_COUNT_(__VA_ARGS__))(m, __VA_ARGS__)
#define BLITZ_LIST_1(m, p) m p
#define BLITZ_LIST_2(m, p, ...) m p, BLITZ_LIST_1(m, __VA_ARGS__)
#define BLITZ_LIST_3(m, p, ...) m p, BLITZ_LIST_2(m, __VA_ARGS__)
#define BLITZ_LIST_4(m, p, ...) m p, BLITZ_LIST_3(m, __VA_ARGS__)
#define BLITZ_LIST_5(m, p, ...) m p, BLITZ_LIST_4(m, __VA_ARGS__)
#define BLITZ_LIST_6(m, p, ...) m p, BLITZ_LIST_5(m, __VA_ARGS__)
#define BLITZ_LIST_7(m, p, ...) m p, BLITZ_LIST_6(m, __VA_ARGS__)
#define BLITZ_LIST_8(m, p, ...) m p, BLITZ_LIST_7(m, __VA_ARGS__)
#define BLITZ_LIST_9(m, p, ...) m p, BLITZ_LIST_8(m, __VA_ARGS__)
#define BLITZ_LIST_10(m, p, ...) m p, BLITZ_LIST_9(m, __VA_ARGS__)
#define BLITZ_LIST_11(m, p, ...) m p, BLITZ_LIST_10(m, __VA_ARGS__)
#define BLITZ_LIST_12(m, p, ...) m p, BLITZ_LIST_11(m, __VA_ARGS__)
#define BLITZ_LIST_13(m, p, ...) m p, BLITZ_LIST_12(m, __VA_ARGS__)
#define BLITZ_LIST_14(m, p, ...) m p, BLITZ_LIST_13(m, __VA_ARGS__)
#define BLITZ_LIST_15(m, p, ...) m p, BLITZ_LIST_14(m, __VA_ARGS__)
#define BLITZ_LIST_16(m, p, ...) m p, BLITZ_LIST_15(m, __VA_ARGS__)

#define BLITZ_PARAM_(type, name) type name BLITZ_MAYBE_UNUSED
#define BLITZ_NAME_(type, name) name
#define BLITZ_MEMBER_(type, name) env_->name
#define BLITZ_PARAMS_(...) BLITZ_LIST_(BLITZ_PARAM_, __VA_ARGS__)
#define BLITZ_NAMES_(...) BLITZ_LIST_(BLITZ_NAME_, __VA_ARGS__)
#define BLITZ_MEMBERS_(...) BLITZ_LIST_(BLITZ_MEMBER_, __VA_ARGS__)

/* m(pair) m(pair) ... */
#define BLITZ_RUN_(m, ...) BLITZ_PASTE_(BLITZ_RUN_, BLITZ_COUNT_(__VA_ARGS__))(m, __VA_ARGS__)
#define BLITZ_RUN_1(m, p) m p
#define BLITZ_RUN_2(m, p, ...) m p BLITZ_RUN_1(m, __VA_ARGS__)
#define BLITZ_RUN_3(m, p, ...) m p BLITZ_RUN_2(m, __VA_ARGS__)
#define BLITZ_RUN_4(m, p, ...) m p BLITZ_RUN_3(m, __VA_ARGS__)
#define BLITZ_RUN_5(m, p, ...) m p BLITZ_RUN_4(m, __VA_ARGS__)
#define BLITZ_RUN_6(m, p, ...) m p BLITZ_RUN_5(m, __VA_ARGS__)
#define BLITZ_RUN_7(m, p, ...) m p BLITZ_RUN_6(m, __VA_ARGS__)
#define BLITZ_RUN_8(m, p, ...) m p BLITZ_RUN_7(m, __VA_ARGS__)
#define BLITZ_RUN_9(m, p, ...) m p BLITZ_RUN_8(m, __VA_ARGS__)
#define BLITZ_RUN_10(m, p, ...) m p BLITZ_RUN_9(m, __VA_ARGS__)
#define BLITZ_RUN_11(m, p, ...) m p BLITZ_RUN_10(m, __VA_ARGS__)
#define BLITZ_RUN_12(m, p, ...) m p BLITZ_RUN_11(m, __VA_ARGS__)
#define BLITZ_RUN_13(m, p, ...) m p BLITZ_RUN_12(m, __VA_ARGS__)
#define BLITZ_RUN_14(m, p, ...) m p BLITZ_RUN_13(m, __VA_ARGS__)
#define BLITZ_RUN_15(m, p, ...) m p BLITZ_RUN_14(m, __VA_ARGS__)
#define BLITZ_RUN_16(m, p, ...) m p BLITZ_RUN_15(m, __VA_ARGS__)

#define BLITZ_FIELD_(type, name) type name;
#define BLITZ_FIELDS_(...) BLITZ_RUN_(BLITZ_FIELD_, __VA_ARGS__)

/* Split a body and the captures after it: BODY is the body, MORE the captures, each after a comma. */
#define BLITZ_BODY_(...) BLITZ_BODY2_(__VA_ARGS__, 0)
#define BLITZ_BODY2_(body, ...) body
#define BLITZ_MORE_(...) BLITZ_PASTE_(BLITZ_MORE_, BLITZ_COUNT_(__VA_ARGS__))(__VA_ARGS__)
#define BLITZ_MORE_1(body)
#define BLITZ_MORE_2(body, a) , a
#define BLITZ_MORE_3(body, a, b) , a, b
#define BLITZ_MORE_4(body, a, b, c) , a, b, c
#define BLITZ_MORE_5(body, a, b, c, d) , a, b, c, d
#define BLITZ_MORE_6(body, a, b, c, d, e) , a, b, c, d, e
#define BLITZ_MORE_7(body, a, b, c, d, e, f) , a, b, c, d, e, f
#define BLITZ_MORE_8(body, a, b, c, d, e, f, g) , a, b, c, d, e, f, g
#define BLITZ_MORE_9(body, a, b, c, d, e, f, g, h) , a, b, c, d, e, f, g, h

/* The inputs of a function: the parameters of its source, and the captures. */
#define BLITZ_INPUTS_(source, ...) BLITZ_SRC_(PAIRS, source) BLITZ_MORE_(__VA_ARGS__)

/* ---- the properties of a source ---- */

/* Get a property: PAIRS, BIND (the names for the body), COUNT (of indexes), IS_BAD, WALK (see below), SEG (of i). */
#define BLITZ_SRC_(what, source) BLITZ_SRC2_(what, BLITZ_OPEN_ source)
#define BLITZ_OPEN_(...) __VA_ARGS__
#define BLITZ_SRC2_(...) BLITZ_SRC3_(__VA_ARGS__)
#define BLITZ_SRC3_(what, kind, ...) BLITZ_##what##_##kind(__VA_ARGS__)

#define BLITZ_SEEN_(T, x, from) \
    T x = from;                 \
    (void)x;

#define BLITZ_PAIRS_range_(z) (size_t, n_)
#define BLITZ_BIND_range_(z)
#define BLITZ_COUNT_range_(z) n_
#define BLITZ_IS_BAD_range_(z) 0
#define BLITZ_WALK_range_(z) BLITZ_WALK_WHOLE_
#define BLITZ_DOWN_range_(z) BLITZ_WALK_WHOLE_
#define BLITZ_SEG_range_(z) 0
#define BLITZ_TYPE_range_(z) size_t
#define BLITZ_VALUE_range_(z) i

#define BLITZ_PAIRS_each_(T, x) (T const *, x##_in_), (size_t, n_)
#define BLITZ_BIND_each_(T, x) BLITZ_SEEN_(T, x, x##_in_[i])
#define BLITZ_COUNT_each_(T, x) n_
#define BLITZ_IS_BAD_each_(T, x) 0
#define BLITZ_WALK_each_(T, x) BLITZ_WALK_WHOLE_
#define BLITZ_DOWN_each_(T, x) BLITZ_WALK_WHOLE_
#define BLITZ_SEG_each_(T, x) 0
#define BLITZ_TYPE_each_(T, x) T
#define BLITZ_VALUE_each_(T, x) x

#define BLITZ_PAIRS_each_at_(T, p) (T *, p##_in_), (size_t, n_)
#define BLITZ_BIND_each_at_(T, p) BLITZ_SEEN_(T *, p, &p##_in_[i])
#define BLITZ_COUNT_each_at_(T, p) n_
#define BLITZ_IS_BAD_each_at_(T, p) 0
#define BLITZ_WALK_each_at_(T, p) BLITZ_WALK_WHOLE_
#define BLITZ_DOWN_each_at_(T, p) BLITZ_WALK_WHOLE_
#define BLITZ_SEG_each_at_(T, p) 0

#define BLITZ_PAIRS_zip_(A, a, B, b) (A const *, a##_in_), (B const *, b##_in_), (size_t, n_)
#define BLITZ_BIND_zip_(A, a, B, b) BLITZ_SEEN_(A, a, a##_in_[i]) BLITZ_SEEN_(B, b, b##_in_[i])
#define BLITZ_COUNT_zip_(A, a, B, b) n_
#define BLITZ_IS_BAD_zip_(A, a, B, b) 0
#define BLITZ_WALK_zip_(A, a, B, b) BLITZ_WALK_WHOLE_
#define BLITZ_DOWN_zip_(A, a, B, b) BLITZ_WALK_WHOLE_
#define BLITZ_SEG_zip_(A, a, B, b) 0

#define BLITZ_PAIRS_zip3_(A, a, B, b, C, c) (A const *, a##_in_), BLITZ_PAIRS_zip_(B, b, C, c)
#define BLITZ_BIND_zip3_(A, a, B, b, C, c) BLITZ_SEEN_(A, a, a##_in_[i]) BLITZ_BIND_zip_(B, b, C, c)
#define BLITZ_COUNT_zip3_(A, a, B, b, C, c) n_
#define BLITZ_IS_BAD_zip3_(A, a, B, b, C, c) 0
#define BLITZ_WALK_zip3_(A, a, B, b, C, c) BLITZ_WALK_WHOLE_
#define BLITZ_DOWN_zip3_(A, a, B, b, C, c) BLITZ_WALK_WHOLE_
#define BLITZ_SEG_zip3_(A, a, B, b, C, c) 0

#define BLITZ_PAIRS_chain_(T, x) \
    (T const *, x##_in_), (size_t, n_), (T const *, x##_next_), (size_t, next_n_)
#define BLITZ_BIND_chain_(T, x) BLITZ_SEEN_(T, x, seg_ ? x##_next_[i - n_] : x##_in_[i])
#define BLITZ_COUNT_chain_(T, x) (n_ + next_n_)
#define BLITZ_IS_BAD_chain_(T, x) 0
#define BLITZ_WALK_chain_(T, x) BLITZ_WALK_CHAIN_
#define BLITZ_DOWN_chain_(T, x) BLITZ_WALK_CHAIN_DOWN_
#define BLITZ_SEG_chain_(T, x) (i >= n_)
#define BLITZ_TYPE_chain_(T, x) T
#define BLITZ_VALUE_chain_(T, x) x

/* In turn as far as both arrays go, then the rest of the longer one. */
#define BLITZ_PAIRS_interleave_(T, x) BLITZ_PAIRS_chain_(T, x)
#define BLITZ_BIND_interleave_(T, x)                                                      \
    size_t x##_short_ = n_ < next_n_ ? n_ : next_n_;                                      \
    int x##_rest_ = i >= 2 * x##_short_;                                                  \
    T const *x##_from_ = (x##_rest_ ? n_ < next_n_ : (int)(i % 2)) ? x##_next_ : x##_in_; \
    BLITZ_SEEN_(T, x, x##_from_[x##_rest_ ? i - x##_short_ : i / 2])
#define BLITZ_COUNT_interleave_(T, x) (n_ + next_n_)
#define BLITZ_IS_BAD_interleave_(T, x) 0
#define BLITZ_WALK_interleave_(T, x) BLITZ_WALK_WHOLE_
#define BLITZ_DOWN_interleave_(T, x) BLITZ_WALK_WHOLE_
#define BLITZ_SEG_interleave_(T, x) 0
#define BLITZ_TYPE_interleave_(T, x) T
#define BLITZ_VALUE_interleave_(T, x) x

#define BLITZ_PAIRS_rev_(T, x) BLITZ_PAIRS_each_(T, x)
#define BLITZ_BIND_rev_(T, x) BLITZ_SEEN_(T, x, x##_in_[n_ - 1 - i])
#define BLITZ_COUNT_rev_(T, x) n_
#define BLITZ_IS_BAD_rev_(T, x) 0
#define BLITZ_WALK_rev_(T, x) BLITZ_WALK_WHOLE_
#define BLITZ_DOWN_rev_(T, x) BLITZ_WALK_WHOLE_
#define BLITZ_SEG_rev_(T, x) 0
#define BLITZ_TYPE_rev_(T, x) T
#define BLITZ_VALUE_rev_(T, x) x

#define BLITZ_PAIRS_step_(T, x, k) BLITZ_PAIRS_each_(T, x)
#define BLITZ_BIND_step_(T, x, k) BLITZ_SEEN_(T, x, x##_in_[i * (size_t)(k)])
#define BLITZ_COUNT_step_(T, x, k) blitz_chunks_(n_, (size_t)(k))
#define BLITZ_IS_BAD_step_(T, x, k) ((size_t)(k) == 0)
#define BLITZ_WALK_step_(T, x, k) BLITZ_WALK_WHOLE_
#define BLITZ_DOWN_step_(T, x, k) BLITZ_WALK_WHOLE_
#define BLITZ_SEG_step_(T, x, k) 0
#define BLITZ_TYPE_step_(T, x, k) T
#define BLITZ_VALUE_step_(T, x, k) x

#define BLITZ_PAIRS_chunks_(T, c, k) (T *, c##_in_), (size_t, n_)
#define BLITZ_BIND_chunks_(T, c, k)                                       \
    size_t c##_n = blitz_chunk_length_(n_, i * (size_t)(k), (size_t)(k)); \
    (void)c##_n;                                                          \
    BLITZ_SEEN_(T *, c, c##_in_ + i * (size_t)(k))
#define BLITZ_COUNT_chunks_(T, c, k) blitz_chunks_(n_, (size_t)(k))
#define BLITZ_IS_BAD_chunks_(T, c, k) ((size_t)(k) == 0)
#define BLITZ_WALK_chunks_(T, c, k) BLITZ_WALK_WHOLE_
#define BLITZ_DOWN_chunks_(T, c, k) BLITZ_WALK_WHOLE_
#define BLITZ_SEG_chunks_(T, c, k) 0

#define BLITZ_PAIRS_windows_(T, w, k) (T *, w##_in_), (size_t, n_)
#define BLITZ_BIND_windows_(T, w, k) BLITZ_SEEN_(T *, w, w##_in_ + i)
#define BLITZ_COUNT_windows_(T, w, k) blitz_windows_(n_, (size_t)(k))
#define BLITZ_IS_BAD_windows_(T, w, k) ((size_t)(k) == 0)
#define BLITZ_WALK_windows_(T, w, k) BLITZ_WALK_WHOLE_
#define BLITZ_DOWN_windows_(T, w, k) BLITZ_WALK_WHOLE_
#define BLITZ_SEG_windows_(T, w, k) 0

static inline size_t blitz_chunks_(size_t n, size_t each)
{
    size_t whole = each > 0 ? n / each : 0;
    return whole + (whole * each < n);
}
static inline size_t blitz_chunk_length_(size_t n, size_t from, size_t each)
{
    return n - from < each ? n - from : each;
}
static inline size_t blitz_windows_(size_t n, size_t width)
{
    return n < width ? 0 : n - width + 1;
}
/* Clamp `at` to [from, to]. */
static inline size_t blitz_within_(size_t from, size_t to, size_t at)
{
    return at < from ? from : at > to ? to : at;
}

/*
 * Cover the indexes [from_, to_) by calls of span(from, to, seg, ...): one call, or one for each array of a chain, so
 * that no loop has to check which array it is in. Returns from the function that contains it.
 */
#define BLITZ_WALK_(source, span, ...) BLITZ_APPLY_(BLITZ_SRC_(WALK, source), (span, __VA_ARGS__))
#define BLITZ_WALK_DOWN_(source, span, ...) \
    BLITZ_APPLY_(BLITZ_SRC_(DOWN, source), (span, __VA_ARGS__))
#define BLITZ_APPLY_(m, args) m args
#define BLITZ_WALK_WHOLE_(span, ...) return span(from_, to_, 0, __VA_ARGS__)
#define BLITZ_WALK_CHAIN_(span, ...)                   \
    size_t cut_ = blitz_within_(from_, to_, env_->n_); \
    int stop_ = span(from_, cut_, 0, __VA_ARGS__);     \
    return stop_ != 0 ? stop_ : span(cut_, to_, 1, __VA_ARGS__)
#define BLITZ_WALK_CHAIN_DOWN_(span, ...)                   \
    size_t cut_ = blitz_within_(from_, to_, env_->next_n_); \
    int stop_ = span(from_, cut_, 1, __VA_ARGS__);          \
    return stop_ != 0 ? stop_ : span(cut_, to_, 0, __VA_ARGS__)

/* ---- the parts of definitions ---- */

#define BLITZ_ENV_(name, ...)      \
    struct name##_env_ {           \
        BLITZ_FIELDS_(__VA_ARGS__) \
    };

/* env_, filled in. */
#define BLITZ_ASSIGN_(type, name) env_.name = name;
#define BLITZ_FILL_ENV_(name, ...) \
    struct name##_env_ env_;       \
    BLITZ_RUN_(BLITZ_ASSIGN_, __VA_ARGS__)

/* A body that is an expression of type R, as a function of the index. */
#define BLITZ_EXPR_(fn, R, source, body, ...)                                           \
    static BLITZ_INLINE_ R fn(size_t i BLITZ_MAYBE_UNUSED, int seg_ BLITZ_MAYBE_UNUSED, \
                              BLITZ_PARAMS_(__VA_ARGS__))                               \
    {                                                                                   \
        BLITZ_SRC_(BIND, source)                                                        \
        return body;                                                                    \
    }

/* fn(from, to, arg) for blitz_for(): walks by span. */
#define BLITZ_CHUNK_(name, fn, source, span, ...)                          \
    static int fn(size_t from_, size_t to_, void *arg_)                    \
    {                                                                      \
        struct name##_env_ const *env_ = (struct name##_env_ const *)arg_; \
        BLITZ_WALK_(source, span, BLITZ_MEMBERS_(__VA_ARGS__));            \
    }

/*
 * Run `step`, with i_, for all of [from_, to_): in runs of 64, with `begin` before and `end` after each, then one by
 * one. gcc at -O2 vectorizes a loop only if it knows the number of iterations.
 */
#define BLITZ_EACH_64_(begin, step, end)           \
    size_t at64_ = from_;                          \
    for (; to_ - at64_ >= 64; at64_ += 64) {       \
        begin;                                     \
        for (size_t k64_ = 0; k64_ < 64; k64_++) { \
            size_t i_ = at64_ + k64_;              \
            step;                                  \
        }                                          \
        end;                                       \
    }                                              \
    if (at64_ < to_) {                             \
        begin;                                     \
        for (size_t i_ = at64_; i_ < to_; i_++) {  \
            step;                                  \
        }                                          \
        end;                                       \
    }

/* The end of a definition, so that a semicolon belongs there. */
#define BLITZ_END_(name) struct name##_env_

#endif
