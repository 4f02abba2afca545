/*
 * blitz/iter_find.h - iterators that may end early: find, any, all, and those that can fail.
 *
 * Part of blitz/iter.h, which has the rules for all definitions. A worker that has found a result tells the others, and
 * they stop after at most 64 more elements. If any result will do, all of them stop. If the first or the last is
 * wanted, only the workers stop whose elements can no longer matter.
 */
#ifndef BLITZ_ITER_FIND_H
#define BLITZ_ITER_FIND_H

#include "blitz/fork.h"
#include "blitz/iter_fold.h"

BLITZ_BEGIN_DECLS

/* The lowest index that has been found so far; UINTPTR_MAX: none. Not for programs. */
struct blitz_first_ {
    uintptr_t at_;
};
BLITZ_API void blitz_first_found_(struct blitz_first_ *first, size_t at);

BLITZ_END_DECLS

/* Return the index found so far; only a hint while the loop runs. Not for programs. */
static inline size_t blitz_first_peek_(struct blitz_first_ *first)
{
    return BLITZ_PEEK_(&first->at_);
}
#define BLITZ_FIRST_PAIR_ (struct blitz_first_ *, first_)
enum { BLITZ_STRIDE_ = 64 }; /* elements between two checks for results of other workers */
static inline size_t blitz_stride_(size_t from, size_t to)
{
    return to - from < BLITZ_STRIDE_ ? to : from + BLITZ_STRIDE_;
}

/* Search from from_ to to_, and return `left` once is_over (of lo_) holds; the index is `index` (of i_). */
#define BLITZ_SEARCH_SPAN_(name, source, holds, is_over, left, index, ...)   \
    BLITZ_EXPR_(name##_holds_, int, source, (holds) ? 1 : 0, __VA_ARGS__)    \
    static BLITZ_INLINE_ int name##_span_(                                   \
        size_t from_, size_t to_, int seg_, struct blitz_first_ *first_,     \
        size_t all_ BLITZ_MAYBE_UNUSED, BLITZ_PARAMS_(__VA_ARGS__))          \
    {                                                                        \
        for (size_t lo_ = from_, hi_; lo_ < to_; lo_ = hi_) {                \
            if (is_over)                                                     \
                return left;                                                 \
            hi_ = blitz_stride_(lo_, to_);                                   \
            for (size_t i_ = lo_; i_ < hi_; i_++)                            \
                if (name##_holds_(index, seg_, BLITZ_NAMES_(__VA_ARGS__))) { \
                    blitz_first_found_(first_, i_);                          \
                    return left;                                             \
                }                                                            \
        }                                                                    \
        return 0;                                                            \
    }
/* name##_run_(&at, ...): return 0 (not found) or 1, and the index; or -errno. */
#define BLITZ_SEARCH_(name, source, walk, ...)                                                   \
    static int name##_chunk_(size_t from_, size_t to_, void *arg_)                               \
    {                                                                                            \
        struct name##_env_ const *env_ = (struct name##_env_ const *)arg_;                       \
        walk(source, name##_span_,                                                               \
             BLITZ_MEMBERS_(BLITZ_FIRST_PAIR_, (size_t, all_), __VA_ARGS__));                    \
    }                                                                                            \
    static int name##_run_(size_t *at_, BLITZ_PARAMS_(__VA_ARGS__), const blitz_par_opts *opts_) \
    {                                                                                            \
        struct blitz_first_ the_ = {UINTPTR_MAX}, *first_ = &the_;                               \
        size_t all_ = BLITZ_SRC_(COUNT, source);                                                 \
        BLITZ_FILL_ENV_(name, BLITZ_FIRST_PAIR_, (size_t, all_), __VA_ARGS__)                    \
        if (BLITZ_SRC_(IS_BAD, source))                                                          \
            return -EINVAL;                                                                      \
        int err_ = blitz_for(all_, name##_chunk_, &env_, opts_);                                 \
        *at_ = the_.at_;                                                                         \
        return err_ < 0 ? err_ : the_.at_ != UINTPTR_MAX;                                        \
    }
#define BLITZ_SEARCH_ENV_(name, ...) \
    BLITZ_ENV_(name, BLITZ_FIRST_PAIR_, (size_t, all_), __VA_ARGS__)
#define BLITZ_SEARCH_ANY_(name, source, holds, ...)                                          \
    BLITZ_SEARCH_ENV_(name, __VA_ARGS__)                                                     \
    BLITZ_SEARCH_SPAN_(name, source, holds, blitz_first_peek_(first_) != UINTPTR_MAX, 1, i_, \
                       __VA_ARGS__)                                                          \
    BLITZ_SEARCH_(name, source, BLITZ_WALK_, __VA_ARGS__)
/* Define a function that returns the index. */
#define BLITZ_FINDER_(name, found, ...)                                          \
    static BLITZ_MAYBE_UNUSED int name(BLITZ_PARAMS_(__VA_ARGS__), size_t *out_, \
                                       const blitz_par_opts *opts_)              \
    {                                                                            \
        size_t at_ = 0;                                                          \
        int is_found_ = name##_run_(&at_, BLITZ_NAMES_(__VA_ARGS__), opts_);     \
        if (is_found_ <= 0)                                                      \
            return is_found_ == 0 ? -ENOENT : is_found_;                         \
        *out_ = found;                                                           \
        return 0;                                                                \
    }                                                                            \
    BLITZ_END_(name)

/*
 * any, all: is an expression true for one element, or for all? With no elements: no for any, yes for all.
 *
 *     BLITZ_ANY_DEFINE(has_nan, BLITZ_EACH(double, x), x != x);
 *  -> int has_nan(const double *x, size_t n, const blitz_par_opts *opts);
 *     BLITZ_ALL_DEFINE(is_sorted, BLITZ_WINDOWS(const int, w, 2), w[0] <= w[1]);
 *
 * Owns:     borrows the arrays until it returns.
 * Suspends: as blitz_for().
 * Returns:  1 (yes), 0 (no), -ECANCELED.
 */
#define BLITZ_ANY_DEFINE(name, source, ...) \
    BLITZ_ANY_(name, source, BLITZ_BODY_(__VA_ARGS__), 0, BLITZ_INPUTS_(source, __VA_ARGS__))
#define BLITZ_ALL_DEFINE(name, source, ...) \
    BLITZ_ANY_(name, source, !(BLITZ_BODY_(__VA_ARGS__)), 1, BLITZ_INPUTS_(source, __VA_ARGS__))
#define BLITZ_ANY_(name, source, holds, is_not, ...)                                            \
    BLITZ_SEARCH_ANY_(name, source, holds, __VA_ARGS__)                                         \
    static BLITZ_MAYBE_UNUSED int name(BLITZ_PARAMS_(__VA_ARGS__), const blitz_par_opts *opts_) \
    {                                                                                           \
        size_t at_ = 0;                                                                         \
        int is_found_ = name##_run_(&at_, BLITZ_NAMES_(__VA_ARGS__), opts_);                    \
        return is_found_ < 0 ? is_found_ : is_found_ != is_not;                                 \
    }                                                                                           \
    BLITZ_END_(name)

/*
 * find_any, find_first, find_last: an index for which an expression is true: any, the lowest, the highest. find_any is
 * the quickest: the first result ends it.
 *
 *     BLITZ_FIND_FIRST_DEFINE(first_above, BLITZ_EACH(double, x), x > limit, (double, limit));
 *  -> int first_above(const double *x, size_t n, double limit, size_t *at, const blitz_par_opts *opts);
 *
 * Owns:     borrows the arrays until it returns.
 * Suspends: as blitz_for().
 * Returns:  0; -ENOENT (there is none), -ECANCELED: *at is not written.
 */
#define BLITZ_FIND_ANY_DEFINE(name, source, ...) \
    BLITZ_FIND_ANY_(name, source, BLITZ_BODY_(__VA_ARGS__), BLITZ_INPUTS_(source, __VA_ARGS__))
#define BLITZ_FIND_ANY_(name, source, holds, ...)       \
    BLITZ_SEARCH_ANY_(name, source, holds, __VA_ARGS__) \
    BLITZ_FINDER_(name, at_, __VA_ARGS__)
#define BLITZ_FIND_FIRST_DEFINE(name, source, ...) \
    BLITZ_FIND_FIRST_(name, source, BLITZ_BODY_(__VA_ARGS__), BLITZ_INPUTS_(source, __VA_ARGS__))
#define BLITZ_FIND_FIRST_(name, source, holds, ...)                                              \
    BLITZ_SEARCH_ENV_(name, __VA_ARGS__)                                                         \
    BLITZ_SEARCH_SPAN_(name, source, holds, blitz_first_peek_(first_) < lo_, 0, i_, __VA_ARGS__) \
    BLITZ_SEARCH_(name, source, BLITZ_WALK_, __VA_ARGS__)                                        \
    BLITZ_FINDER_(name, at_, __VA_ARGS__)
/* find_last searches from the other end: an index is counted from the last. */
#define BLITZ_FIND_LAST_DEFINE(name, source, ...) \
    BLITZ_FIND_LAST_(name, source, BLITZ_BODY_(__VA_ARGS__), BLITZ_INPUTS_(source, __VA_ARGS__))
#define BLITZ_FIND_LAST_(name, source, holds, ...)                                             \
    BLITZ_SEARCH_ENV_(name, __VA_ARGS__)                                                       \
    BLITZ_SEARCH_SPAN_(name, source, holds, blitz_first_peek_(first_) < lo_, 0, all_ - 1 - i_, \
                       __VA_ARGS__)                                                            \
    BLITZ_SEARCH_(name, source, BLITZ_WALK_DOWN_, __VA_ARGS__)                                 \
    BLITZ_FINDER_(name, BLITZ_SRC_(COUNT, source) - 1 - at_, __VA_ARGS__)

/*
 * position: the lowest index of a value, compared by ==.
 *
 *     BLITZ_POSITION_DEFINE(index_of, int);
 *  -> int index_of(const int *in, size_t n, int wanted, size_t *at, const blitz_par_opts *opts);
 *
 * Owns:     borrows the array until it returns.
 * Suspends: as blitz_for().
 * Returns:  as BLITZ_FIND_FIRST_DEFINE.
 */
#define BLITZ_POSITION_DEFINE(name, T)         \
    BLITZ_POSITION_(name, T, BLITZ_EACH(T, x), \
                    BLITZ_INPUTS_(BLITZ_EACH(T, x), x == wanted_, (T, wanted_)))
#define BLITZ_POSITION_(name, T, source, ...)                                                      \
    BLITZ_SEARCH_ENV_(name, __VA_ARGS__)                                                           \
    /* Nothing is said of how often == is evaluated: so whole strides are, which is vectorized. */ \
    static BLITZ_INLINE_ int name##_span_(                                                         \
        size_t from_, size_t to_, int seg_ BLITZ_MAYBE_UNUSED, struct blitz_first_ *first_,        \
        size_t all_ BLITZ_MAYBE_UNUSED, BLITZ_PARAMS_(__VA_ARGS__))                                \
    {                                                                                              \
        size_t i_ = from_;                                                                         \
        for (; to_ - i_ >= BLITZ_STRIDE_ && blitz_first_peek_(first_) >= i_;                       \
             i_ += BLITZ_STRIDE_) {                                                                \
            unsigned any_ = 0;                                                                     \
            for (size_t k_ = 0; k_ < BLITZ_STRIDE_; k_++)                                          \
                any_ |= x_in_[i_ + k_] == wanted_ ? 1u : 0u;                                       \
            if (any_)                                                                              \
                break;                                                                             \
        }                                                                                          \
        for (size_t end_ = blitz_stride_(i_, to_); i_ < end_; i_++)                                \
            if (x_in_[i_] == wanted_) {                                                            \
                blitz_first_found_(first_, i_);                                                    \
                break;                                                                             \
            }                                                                                      \
        return 0;                                                                                  \
    }                                                                                              \
    BLITZ_SEARCH_(name, source, BLITZ_WALK_, __VA_ARGS__)                                          \
    BLITZ_FINDER_(name, at_, __VA_ARGS__)

/*
 * try_for_each: evaluate an expression, an int, for every index, until one is not 0. It returns what the plain loop
 * would have returned: the error of the lowest index that has one. All indexes before that one have been done. Some
 * after it may have been done as well, because other workers stop with a delay.
 *
 *     BLITZ_TRY_FOR_EACH_DEFINE(parse_all, BLITZ_EACH_AT(struct row, r), parse(r));
 *  -> int parse_all(struct row *r, size_t n, const blitz_par_opts *opts);
 *
 * Owns:     borrows the arrays until it returns.
 * Suspends: as blitz_for().
 * Returns:  0, the value of the expression, -ECANCELED.
 */
#define BLITZ_TRY_FOR_EACH_DEFINE(name, source, ...) \
    BLITZ_TRY_FOR_EACH_(name, source, BLITZ_BODY_(__VA_ARGS__), BLITZ_INPUTS_(source, __VA_ARGS__))
#define BLITZ_TRY_FOR_EACH_(name, source, body, ...)                                            \
    BLITZ_ENV_(name, BLITZ_FIRST_PAIR_, __VA_ARGS__)                                            \
    BLITZ_EXPR_(name##_at_, int, source, body, __VA_ARGS__)                                     \
    BLITZ_TRY_SPAN_(name, int, *acc_, name##_at_(i_, seg_, BLITZ_NAMES_(__VA_ARGS__)), (void)0, \
                    __VA_ARGS__)                                                                \
    BLITZ_ZERO_(name, int, acc_, *acc_ = 0, BLITZ_FIRST_PAIR_, __VA_ARGS__)                     \
    BLITZ_MERGE_(name, int, acc_, right_, if (*acc_ == 0) *acc_ = *right_, BLITZ_FIRST_PAIR_,   \
                 __VA_ARGS__)                                                                   \
    BLITZ_REDUCTION_(name, int, source, BLITZ_FIRST_PAIR_, __VA_ARGS__)                         \
    static BLITZ_MAYBE_UNUSED int name(BLITZ_PARAMS_(__VA_ARGS__), const blitz_par_opts *opts_) \
    {                                                                                           \
        struct blitz_first_ first_ = {UINTPTR_MAX};                                             \
        int failed_ = 0;                                                                        \
        int err_ = name##_reduce_(&failed_, &first_, BLITZ_NAMES_(__VA_ARGS__), opts_);         \
        return err_ != 0 ? err_ : failed_;                                                      \
    }                                                                                           \
    BLITZ_END_(name)

/* Try from from_ to to_; `failed` is the error in the accumulator, `then` follows a success. An accumulator with an
 * error is not changed: the rest is behind the error. Not for programs. */
#define BLITZ_TRY_SPAN_(name, Acc, failed, attempt, then, ...)                                     \
    static BLITZ_INLINE_ int name##_span_(size_t from_, size_t to_, int seg_, Acc *acc_,           \
                                          struct blitz_first_ *first_, BLITZ_PARAMS_(__VA_ARGS__)) \
    {                                                                                              \
        for (size_t lo_ = from_, hi_; lo_ < to_ && (failed) == 0; lo_ = hi_) {                     \
            if (blitz_first_peek_(first_) < lo_)                                                   \
                return 0;                                                                          \
            hi_ = blitz_stride_(lo_, to_);                                                         \
            for (size_t i_ = lo_; i_ < hi_; i_++) {                                                \
                int err_ = attempt;                                                                \
                if (err_ != 0) {                                                                   \
                    (failed) = err_;                                                               \
                    blitz_first_found_(first_, i_);                                                \
                    return 0;                                                                      \
                }                                                                                  \
                then;                                                                              \
            }                                                                                      \
        }                                                                                          \
        return 0;                                                                                  \
    }

/*
 * try_reduce: a reduction whose values come from an expression that can fail. It is an int, and 0 means that it has
 * written the value to *v. It ends as try_for_each does.
 *
 *     BLITZ_TRY_REDUCE_DEFINE(total, long, 0, BLITZ_EACH(const char *, s), v, parse_long(s, v), a, b, a + b);
 *  -> int total(const char *const *s, size_t n, long *out, const blitz_par_opts *opts);
 *
 * Owns:     borrows the arrays until it returns.
 * Suspends: as blitz_for().
 * Returns:  0; the value of the expression, -ECANCELED, -ENOMEM (only if ordered): *out is not written.
 */
#define BLITZ_TRY_REDUCE_DEFINE(name, T, identity, source, v, attempt, a, b, ...)            \
    BLITZ_TRY_REDUCE_(name, T, identity, source, v, attempt, a, b, BLITZ_BODY_(__VA_ARGS__), \
                      BLITZ_INPUTS_(source, __VA_ARGS__))
#define BLITZ_TRY_REDUCE_(name, T, identity, source, v, attempt, a, b, combine, ...)              \
    BLITZ_ENV_(name, BLITZ_FIRST_PAIR_, __VA_ARGS__)                                              \
    struct name##_try_ {                                                                          \
        T all_, value_;                                                                           \
        int failed_;                                                                              \
    };                                                                                            \
    static BLITZ_INLINE_ int name##_at_(size_t i BLITZ_MAYBE_UNUSED, int seg_ BLITZ_MAYBE_UNUSED, \
                                        T *v, BLITZ_PARAMS_(__VA_ARGS__))                         \
    {                                                                                             \
        BLITZ_SRC_(BIND, source)                                                                  \
        return attempt;                                                                           \
    }                                                                                             \
    static BLITZ_INLINE_ T name##_both_(T a, T b, BLITZ_PARAMS_(__VA_ARGS__))                     \
    {                                                                                             \
        return combine;                                                                           \
    }                                                                                             \
    BLITZ_TRY_SPAN_(name, struct name##_try_, acc_->failed_,                                      \
                    name##_at_(i_, seg_, &acc_->value_, BLITZ_NAMES_(__VA_ARGS__)),               \
                    acc_->all_ =                                                                  \
                        name##_both_(acc_->all_, acc_->value_, BLITZ_NAMES_(__VA_ARGS__)),        \
                    __VA_ARGS__)                                                                  \
    BLITZ_ZERO_(name, struct name##_try_, acc_, acc_->failed_ = 0;                                \
                acc_->all_ = identity, BLITZ_FIRST_PAIR_, __VA_ARGS__)                            \
    BLITZ_MERGE_(                                                                                 \
        name, struct name##_try_, acc_, right_,                                                   \
        if (acc_->failed_ == 0) {                                                                 \
            acc_->failed_ = right_->failed_;                                                      \
            if (acc_->failed_ == 0)                                                               \
                acc_->all_ = name##_both_(acc_->all_, right_->all_, BLITZ_NAMES_(__VA_ARGS__));   \
        },                                                                                        \
        BLITZ_FIRST_PAIR_, __VA_ARGS__)                                                           \
    BLITZ_REDUCTION_(name, struct name##_try_, source, BLITZ_FIRST_PAIR_, __VA_ARGS__)            \
    static BLITZ_MAYBE_UNUSED int name(BLITZ_PARAMS_(__VA_ARGS__), T *out_,                       \
                                       const blitz_par_opts *opts_)                               \
    {                                                                                             \
        struct blitz_first_ first_ = {UINTPTR_MAX};                                               \
        struct name##_try_ try_;                                                                  \
        int err_ = name##_reduce_(&try_, &first_, BLITZ_NAMES_(__VA_ARGS__), opts_);              \
        if (err_ == 0 && try_.failed_ == 0)                                                       \
            *out_ = try_.all_;                                                                    \
        return err_ != 0 ? err_ : try_.failed_;                                                   \
    }                                                                                             \
    BLITZ_END_(name)

#endif
