/*
 * blitz/iter_map.h - iterators that process every element, or compute a new one from it.
 *
 * Part of blitz/iter.h, which has the rules for all definitions.
 */
#ifndef BLITZ_ITER_MAP_H
#define BLITZ_ITER_MAP_H

#include "blitz/iter_source.h"

/*
 * for_each: a statement, or a block in braces, for every index.
 *
 *     BLITZ_FOR_EACH_DEFINE(move_all, BLITZ_EACH_AT(struct body, b), b->at += b->speed * dt, (double, dt));
 *  -> int move_all(struct body *b, size_t n, double dt, const blitz_par_opts *opts);
 *
 * The statement may be a call. If it is long, put it into an inline function.
 * Owns:     borrows the arrays until it returns.
 * Suspends: as blitz_for().
 * Returns:  0, -ECANCELED (some elements were done, others not).
 */
#define BLITZ_FOR_EACH_DEFINE(name, source, ...) \
    BLITZ_FOR_EACH_(name, source, BLITZ_BODY_(__VA_ARGS__), BLITZ_INPUTS_(source, __VA_ARGS__))
#define BLITZ_FOR_EACH_(name, source, body, ...)                                                   \
    BLITZ_ENV_(name, __VA_ARGS__)                                                                  \
    static BLITZ_INLINE_ void name##_at_(size_t i BLITZ_MAYBE_UNUSED, int seg_ BLITZ_MAYBE_UNUSED, \
                                         BLITZ_PARAMS_(__VA_ARGS__))                               \
    {                                                                                              \
        BLITZ_SRC_(BIND, source)                                                                   \
        body;                                                                                      \
    }                                                                                              \
    static BLITZ_INLINE_ int name##_span_(size_t from_, size_t to_, int seg_,                      \
                                          BLITZ_PARAMS_(__VA_ARGS__))                              \
    {                                                                                              \
        for (size_t i_ = from_; i_ < to_; i_++)                                                    \
            name##_at_(i_, seg_, BLITZ_NAMES_(__VA_ARGS__));                                       \
        return 0;                                                                                  \
    }                                                                                              \
    BLITZ_LOOP_(name, source, __VA_ARGS__)

/* A function that is one blitz_for() over name##_span_. */
#define BLITZ_LOOP_(name, source, ...)                                                          \
    BLITZ_CHUNK_(name, name##_chunk_, source, name##_span_, __VA_ARGS__)                        \
    static BLITZ_MAYBE_UNUSED int name(BLITZ_PARAMS_(__VA_ARGS__), const blitz_par_opts *opts_) \
    {                                                                                           \
        BLITZ_FILL_ENV_(name, __VA_ARGS__)                                                      \
        if (BLITZ_SRC_(IS_BAD, source))                                                         \
            return -EINVAL;                                                                     \
        return blitz_for(BLITZ_SRC_(COUNT, source), name##_chunk_, &env_, opts_);               \
    }                                                                                           \
    BLITZ_END_(name)

/*
 * map: out[i] = an expression.
 *
 *     BLITZ_MAP_DEFINE(squares, double, BLITZ_EACH(float, x), (double)x * x);
 *  -> int squares(const float *x, size_t n, double *out, const blitz_par_opts *opts);
 *     BLITZ_MAP_DEFINE(slopes, double, BLITZ_WINDOWS(const double, w, 2), w[1] - w[0]);
 *     BLITZ_MAP_DEFINE(fill, int, BLITZ_RANGE, value, (int, value));
 *
 * Owns:     borrows the arrays until it returns; out has room for an element for each index, and does
 *           not overlap what the body reads.
 * Suspends: as blitz_for().
 * Returns:  0, -ECANCELED (some of out is written).
 */
#define BLITZ_MAP_DEFINE(name, T, source, ...)                                                \
    BLITZ_MAP_(name, T, source, BLITZ_BODY_(__VA_ARGS__), BLITZ_INPUTS_(source, __VA_ARGS__), \
               (T * BLITZ_RESTRICT_, out_))
#define BLITZ_MAP_(name, T, source, body, ...)                                              \
    BLITZ_ENV_(name, __VA_ARGS__)                                                           \
    BLITZ_EXPR_(name##_at_, T, source, body, __VA_ARGS__)                                   \
    static BLITZ_INLINE_ int name##_span_(size_t from_, size_t to_, int seg_,               \
                                          BLITZ_PARAMS_(__VA_ARGS__))                       \
    {                                                                                       \
        BLITZ_EACH_64_((void)0, out_[i_] = name##_at_(i_, seg_, BLITZ_NAMES_(__VA_ARGS__)), \
                       (void)0)                                                             \
        return 0;                                                                           \
    }                                                                                       \
    BLITZ_LOOP_(name, source, __VA_ARGS__)

/*
 * map_in_place: replace every element x by an expression of it.
 *
 *     BLITZ_MAP_IN_PLACE_DEFINE(axpy, double, y, y + a * x[i], (double, a), (const double *, x));
 *  -> int axpy(double *y, size_t n, double a, const double *x, const blitz_par_opts *opts);
 *
 * Owns:     borrows the array until it returns; the body reads nothing else of it.
 * Suspends: as blitz_for().
 * Returns:  0, -ECANCELED (some elements are new, others old).
 */
#define BLITZ_MAP_IN_PLACE_DEFINE(name, T, x, ...) \
    BLITZ_MAP_IN_PLACE_(name, T, x, BLITZ_BODY_(__VA_ARGS__), (size_t, n_)BLITZ_MORE_(__VA_ARGS__))
#define BLITZ_MAP_IN_PLACE_(name, T, x, body, ...)                                                \
    BLITZ_ENV_(name, (T * BLITZ_RESTRICT_, x##_in_), __VA_ARGS__)                                 \
    static BLITZ_INLINE_ T name##_at_(size_t i BLITZ_MAYBE_UNUSED, T x BLITZ_MAYBE_UNUSED,        \
                                      BLITZ_PARAMS_(__VA_ARGS__))                                 \
    {                                                                                             \
        return body;                                                                              \
    }                                                                                             \
    static BLITZ_INLINE_ int name##_span_(size_t from_, size_t to_, int seg_ BLITZ_MAYBE_UNUSED,  \
                                          T *BLITZ_RESTRICT_ x##_in_, BLITZ_PARAMS_(__VA_ARGS__)) \
    {                                                                                             \
        BLITZ_EACH_64_((void)0,                                                                   \
                       x##_in_[i_] = name##_at_(i_, x##_in_[i_], BLITZ_NAMES_(__VA_ARGS__)),      \
                       (void)0)                                                                   \
        return 0;                                                                                 \
    }                                                                                             \
    BLITZ_LOOP_(name, BLITZ_EACH(T, x), (T * BLITZ_RESTRICT_, x##_in_), __VA_ARGS__)

/*
 * scatter: out[an expression] = another expression. Each index must have a place of its own: two indexes with the same
 * place are a race.
 *
 *     BLITZ_SCATTER_DEFINE(invert, size_t, BLITZ_EACH(size_t, to), to, i);
 *  -> int invert(const size_t *to, size_t n, size_t *out, size_t places, const blitz_par_opts *opts);
 *
 * Owns:     borrows the arrays until it returns; out has room for `places` elements, and does not
 *           overlap what the bodies read. Places without an index are not touched.
 * Suspends: as blitz_for().
 * Returns:  0, -ERANGE (a place is not less than `places`: it is not written to, others may be),
 *           -ECANCELED.
 */
#define BLITZ_SCATTER_DEFINE(name, T, source, place, ...)                           \
    BLITZ_SCATTER_(name, T, source, place, BLITZ_BODY_(__VA_ARGS__),                \
                   BLITZ_INPUTS_(source, __VA_ARGS__), (T * BLITZ_RESTRICT_, out_), \
                   (size_t, places_))
#define BLITZ_SCATTER_(name, T, source, place, value, ...)                         \
    BLITZ_ENV_(name, __VA_ARGS__)                                                  \
    BLITZ_EXPR_(name##_place_, size_t, source, place, __VA_ARGS__)                 \
    BLITZ_EXPR_(name##_at_, T, source, value, __VA_ARGS__)                         \
    static BLITZ_INLINE_ int name##_span_(size_t from_, size_t to_, int seg_,      \
                                          BLITZ_PARAMS_(__VA_ARGS__))              \
    {                                                                              \
        for (size_t i_ = from_; i_ < to_; i_++) {                                  \
            size_t place_at_ = name##_place_(i_, seg_, BLITZ_NAMES_(__VA_ARGS__)); \
            if (place_at_ >= places_)                                              \
                return -ERANGE;                                                    \
            out_[place_at_] = name##_at_(i_, seg_, BLITZ_NAMES_(__VA_ARGS__));     \
        }                                                                          \
        return 0;                                                                  \
    }                                                                              \
    BLITZ_LOOP_(name, source, __VA_ARGS__)

BLITZ_BEGIN_DECLS

/*
 * Copy n elements of `bytes` each.
 * Owns:     borrows both until it returns; they do not overlap.
 * Suspends: as blitz_for().
 * Returns:  0, -ECANCELED (some are copied), -EINVAL (bytes is 0, or n * bytes too large).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_copy(void *to, const void *from, size_t n, size_t bytes,
                                        const blitz_par_opts *opts);

/*
 * Set each of n elements of `bytes` bytes to a copy of *value.
 * Owns:     borrows both until it returns; *value does not lie in the array.
 * Suspends: as blitz_for().
 * Returns:  as blitz_copy().
 */
BLITZ_API BLITZ_SUSPENDS int blitz_fill(void *to, size_t n, const void *value, size_t bytes,
                                        const blitz_par_opts *opts);

BLITZ_END_DECLS

#endif
