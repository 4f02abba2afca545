/*
 * blitz/iter_fold.h - iterators that compute one value from all elements: sum, min, reduce and others.
 *
 * Part of blitz/iter.h, which has the rules for all definitions. Only neighbours are combined, in the order of their
 * indexes: an associative operation is enough. Which neighbours are combined first varies. So sums of floating-point
 * numbers differ in their last digits from one run to the next, and from the plain loop, unless opts->is_ordered
 * (blitz/loop.h). blitz_reduce() gives the maximum number of accumulators.
 */
#ifndef BLITZ_ITER_FOLD_H
#define BLITZ_ITER_FOLD_H

#include "blitz/iter_source.h"

/*
 * Define the functions of a blitz_reduction, from zero(acc), span(from, to, seg, acc) and merge(acc, right), and
 * name##_reduce_(&acc, ...), which runs the reduction. Not for programs.
 */
#define BLITZ_REDUCTION_(name, Acc, source, ...)                                      \
    static void name##_init_(void *acc_, void *arg_)                                  \
    {                                                                                 \
        struct name##_env_ const *env_ = (struct name##_env_ const *)arg_;            \
        name##_zero_((Acc *)acc_, BLITZ_MEMBERS_(__VA_ARGS__));                       \
    }                                                                                 \
    static int name##_map_(void *acc_, size_t from_, size_t to_, void *arg_)          \
    {                                                                                 \
        struct name##_env_ const *env_ = (struct name##_env_ const *)arg_;            \
        BLITZ_WALK_(source, name##_span_, (Acc *)acc_, BLITZ_MEMBERS_(__VA_ARGS__));  \
    }                                                                                 \
    static void name##_combine_(void *acc_, const void *right_, void *arg_)           \
    {                                                                                 \
        struct name##_env_ const *env_ = (struct name##_env_ const *)arg_;            \
        name##_merge_((Acc *)acc_, (Acc const *)right_, BLITZ_MEMBERS_(__VA_ARGS__)); \
    }                                                                                 \
    static int name##_reduce_(Acc *result_, BLITZ_PARAMS_(__VA_ARGS__),               \
                              const blitz_par_opts *opts_)                            \
    {                                                                                 \
        static const blitz_reduction how_ = {sizeof(Acc), name##_init_, name##_map_,  \
                                             name##_combine_};                        \
        BLITZ_FILL_ENV_(name, __VA_ARGS__)                                            \
        if (BLITZ_SRC_(IS_BAD, source))                                               \
            return -EINVAL;                                                           \
        return blitz_reduce(BLITZ_SRC_(COUNT, source), &how_, &env_, result_, opts_); \
    }
/* zero and merge of accumulators: each is a statement, of `acc` and of `acc` and `right`. */
#define BLITZ_ZERO_(name, Acc, acc, zero, ...)                                   \
    static BLITZ_INLINE_ void name##_zero_(Acc *acc, BLITZ_PARAMS_(__VA_ARGS__)) \
    {                                                                            \
        zero;                                                                    \
    }
#define BLITZ_MERGE_(name, Acc, acc, right, merge, ...)                 \
    static BLITZ_INLINE_ void name##_merge_(Acc *acc, Acc const *right, \
                                            BLITZ_PARAMS_(__VA_ARGS__)) \
    {                                                                   \
        merge;                                                          \
    }
/* A function that leaves an accumulator in *out if all went well. */
#define BLITZ_REDUCER_(name, Acc, ...)                                         \
    static BLITZ_MAYBE_UNUSED int name(BLITZ_PARAMS_(__VA_ARGS__), Acc *out_,  \
                                       const blitz_par_opts *opts_)            \
    {                                                                          \
        Acc result_;                                                           \
        int err_ = name##_reduce_(&result_, BLITZ_NAMES_(__VA_ARGS__), opts_); \
        if (err_ == 0)                                                         \
            *out_ = result_;                                                   \
        return err_;                                                           \
    }                                                                          \
    BLITZ_END_(name)

/*
 * sum: add up an expression. The sum of no elements is 0. T is a number. Four sums are kept side by side, so that an
 * addition need not wait for the one before.
 *
 *     BLITZ_SUM_DEFINE(energy, double, BLITZ_EACH_AT(const struct body, b), b->mass * b->speed * b->speed / 2);
 *  -> int energy(const struct body *b, size_t n, double *out, const blitz_par_opts *opts);
 *
 * Owns:     borrows the arrays until it returns.
 * Suspends: as blitz_for().
 * Returns:  0; -ECANCELED, -ENOMEM (only if ordered): *out is not written.
 */
#define BLITZ_SUM_DEFINE(name, T, source, ...) \
    BLITZ_SUM_(name, T, source, BLITZ_BODY_(__VA_ARGS__), BLITZ_INPUTS_(source, __VA_ARGS__))
#define BLITZ_SUM_(name, T, source, body, ...)                                         \
    BLITZ_ENV_(name, __VA_ARGS__)                                                      \
    BLITZ_EXPR_(name##_at_, T, source, body, __VA_ARGS__)                              \
    static BLITZ_INLINE_ int name##_span_(size_t from_, size_t to_, int seg_, T *acc_, \
                                          BLITZ_PARAMS_(__VA_ARGS__))                  \
    {                                                                                  \
        T a_ = 0, b_ = 0, c_ = 0, d_ = 0;                                              \
        size_t i_ = from_;                                                             \
        for (; to_ - i_ >= 4; i_ += 4) {                                               \
            a_ = (T)(a_ + name##_at_(i_, seg_, BLITZ_NAMES_(__VA_ARGS__)));            \
            b_ = (T)(b_ + name##_at_(i_ + 1, seg_, BLITZ_NAMES_(__VA_ARGS__)));        \
            c_ = (T)(c_ + name##_at_(i_ + 2, seg_, BLITZ_NAMES_(__VA_ARGS__)));        \
            d_ = (T)(d_ + name##_at_(i_ + 3, seg_, BLITZ_NAMES_(__VA_ARGS__)));        \
        }                                                                              \
        for (; i_ < to_; i_++)                                                         \
            a_ = (T)(a_ + name##_at_(i_, seg_, BLITZ_NAMES_(__VA_ARGS__)));            \
        *acc_ = (T)(*acc_ + (T)((T)(a_ + b_) + (T)(c_ + d_)));                         \
        return 0;                                                                      \
    }                                                                                  \
    BLITZ_ZERO_(name, T, acc_, *acc_ = 0, __VA_ARGS__)                                 \
    BLITZ_MERGE_(name, T, acc_, right_, *acc_ = (T)(*acc_ + *right_), __VA_ARGS__)     \
    BLITZ_REDUCTION_(name, T, source, __VA_ARGS__)                                     \
    BLITZ_REDUCER_(name, T, __VA_ARGS__)

/*
 * dot product of two arrays of numbers.
 *
 *     BLITZ_DOT_DEFINE(dot, double);
 *  -> int dot(const double *a, const double *b, size_t n, double *out, const blitz_par_opts *opts);
 *
 * Owns:     borrows the arrays until it returns.
 * Suspends: as blitz_for().
 * Returns:  as BLITZ_SUM_DEFINE.
 */
#define BLITZ_DOT_DEFINE(name, T) BLITZ_SUM_DEFINE(name, T, BLITZ_ZIP(T, a, T, b), (T)(a * b))

/*
 * count: how many times an expression is true.
 *
 *     BLITZ_COUNT_DEFINE(rising, BLITZ_WINDOWS(const int, w, 2), w[0] < w[1]);
 *  -> int rising(const int *w, size_t n, size_t *out, const blitz_par_opts *opts);
 *
 * Owns:     borrows the arrays until it returns.
 * Suspends: as blitz_for().
 * Returns:  as BLITZ_SUM_DEFINE.
 */
#define BLITZ_COUNT_DEFINE(name, source, ...) \
    BLITZ_COUNT_IF_(name, source, BLITZ_BODY_(__VA_ARGS__), BLITZ_INPUTS_(source, __VA_ARGS__))
#define BLITZ_COUNT_IF_(name, source, body, ...)                                                  \
    BLITZ_ENV_(name, __VA_ARGS__)                                                                 \
    BLITZ_EXPR_(name##_at_, unsigned, source, (body) ? 1 : 0, __VA_ARGS__)                        \
    static BLITZ_INLINE_ int name##_span_(size_t from_, size_t to_, int seg_, size_t *acc_,       \
                                          BLITZ_PARAMS_(__VA_ARGS__))                             \
    {                                                                                             \
        size_t count_ = 0;                                                                        \
        BLITZ_EACH_64_(unsigned some_ = 0,                                                        \
                       some_ += name##_at_(i_, seg_, BLITZ_NAMES_(__VA_ARGS__)), count_ += some_) \
        *acc_ += count_;                                                                          \
        return 0;                                                                                 \
    }                                                                                             \
    BLITZ_ZERO_(name, size_t, acc_, *acc_ = 0, __VA_ARGS__)                                       \
    BLITZ_MERGE_(name, size_t, acc_, right_, *acc_ += *right_, __VA_ARGS__)                       \
    BLITZ_REDUCTION_(name, size_t, source, __VA_ARGS__)                                           \
    BLITZ_REDUCER_(name, size_t, __VA_ARGS__)

/*
 * min, max: the least or the largest value of an expression, compared by <; T is a number. If there is a NaN among
 * them, the result is any of them: for those see BLITZ_MIN_BY_DEFINE.
 *
 *     BLITZ_MAX_DEFINE(worst, double, BLITZ_ZIP(double, a, double, b), fabs(a - b));
 *  -> int worst(const double *a, const double *b, size_t n, double *out, const blitz_par_opts *opts);
 *
 * Owns:     borrows the arrays until it returns.
 * Suspends: as blitz_for().
 * Returns:  0; -ENOENT (there are no elements), -ECANCELED, -ENOMEM (only if ordered): *out is not
 *           written.
 */
#define BLITZ_MIN_DEFINE(name, T, source, ...)                          \
    BLITZ_BEST_(name, T, BLITZ_LESS_, source, BLITZ_BODY_(__VA_ARGS__), \
                BLITZ_INPUTS_(source, __VA_ARGS__))
#define BLITZ_MAX_DEFINE(name, T, source, ...)                               \
    BLITZ_BEST_(name, T, BLITZ_MORE_THAN_, source, BLITZ_BODY_(__VA_ARGS__), \
                BLITZ_INPUTS_(source, __VA_ARGS__))
#define BLITZ_LESS_(a, b) ((a) < (b))
#define BLITZ_MORE_THAN_(a, b) ((b) < (a))
#define BLITZ_BEST_(name, T, beats, source, body, ...)                                           \
    BLITZ_ENV_(name, __VA_ARGS__)                                                                \
    struct name##_best_ {                                                                        \
        T value_;                                                                                \
        int has_;                                                                                \
    };                                                                                           \
    BLITZ_EXPR_(name##_at_, T, source, body, __VA_ARGS__)                                        \
    static BLITZ_INLINE_ void name##_take_(struct name##_best_ *acc_, T value_)                  \
    {                                                                                            \
        if (!acc_->has_ || beats(value_, acc_->value_))                                          \
            acc_->value_ = value_;                                                               \
        acc_->has_ = 1;                                                                          \
    }                                                                                            \
    static BLITZ_INLINE_ int name##_span_(size_t from_, size_t to_, int seg_,                    \
                                          struct name##_best_ *acc_, BLITZ_PARAMS_(__VA_ARGS__)) \
    {                                                                                            \
        if (from_ >= to_)                                                                        \
            return 0;                                                                            \
        T a_ = name##_at_(from_, seg_, BLITZ_NAMES_(__VA_ARGS__)), b_ = a_;                      \
        size_t i_ = from_ + 1;                                                                   \
        for (; to_ - i_ >= 2; i_ += 2) {                                                         \
            T x_ = name##_at_(i_, seg_, BLITZ_NAMES_(__VA_ARGS__));                              \
            T y_ = name##_at_(i_ + 1, seg_, BLITZ_NAMES_(__VA_ARGS__));                          \
            a_ = beats(x_, a_) ? x_ : a_;                                                        \
            b_ = beats(y_, b_) ? y_ : b_;                                                        \
        }                                                                                        \
        for (; i_ < to_; i_++) {                                                                 \
            T x_ = name##_at_(i_, seg_, BLITZ_NAMES_(__VA_ARGS__));                              \
            a_ = beats(x_, a_) ? x_ : a_;                                                        \
        }                                                                                        \
        name##_take_(acc_, beats(b_, a_) ? b_ : a_);                                             \
        return 0;                                                                                \
    }                                                                                            \
    BLITZ_ZERO_(name, struct name##_best_, acc_, acc_->has_ = 0, __VA_ARGS__)                    \
    BLITZ_MERGE_(name, struct name##_best_, acc_, right_,                                        \
                 if (right_->has_) name##_take_(acc_, right_->value_), __VA_ARGS__)              \
    BLITZ_REDUCTION_(name, struct name##_best_, source, __VA_ARGS__)                             \
    static BLITZ_MAYBE_UNUSED int name(BLITZ_PARAMS_(__VA_ARGS__), T *out_,                      \
                                       const blitz_par_opts *opts_)                              \
    {                                                                                            \
        struct name##_best_ best_;                                                               \
        int err_ = name##_reduce_(&best_, BLITZ_NAMES_(__VA_ARGS__), opts_);                     \
        if (err_ != 0 || !best_.has_)                                                            \
            return err_ != 0 ? err_ : -ENOENT;                                                   \
        *out_ = best_.value_;                                                                    \
        return 0;                                                                                \
    }                                                                                            \
    BLITZ_END_(name)

/*
 * min_by_key, max_by_key: the index with the least or the largest key, compared by <; of several, the first. The key is
 * an expression of type K, evaluated once for each index.
 *
 *     BLITZ_MIN_BY_KEY_DEFINE(nearest, double, BLITZ_EACH(struct point, p), distance(p, from), (struct point, from));
 *  -> int nearest(const struct point *p, size_t n, struct point from, size_t *at,
 *                 const blitz_par_opts *opts);
 *
 * Owns:     borrows the arrays until it returns.
 * Suspends: as blitz_for().
 * Returns:  as BLITZ_MIN_DEFINE.
 */
#define BLITZ_MIN_BY_KEY_DEFINE(name, K, source, ...)                      \
    BLITZ_BEST_AT_(name, K, BLITZ_LESS_, source, BLITZ_BODY_(__VA_ARGS__), \
                   BLITZ_INPUTS_(source, __VA_ARGS__))
#define BLITZ_MAX_BY_KEY_DEFINE(name, K, source, ...)                           \
    BLITZ_BEST_AT_(name, K, BLITZ_MORE_THAN_, source, BLITZ_BODY_(__VA_ARGS__), \
                   BLITZ_INPUTS_(source, __VA_ARGS__))
#define BLITZ_BEST_AT_(name, K, beats, source, body, ...)                          \
    BLITZ_ENV_(name, __VA_ARGS__)                                                  \
    static BLITZ_INLINE_ int name##_beats_(K a_, K b_, BLITZ_PARAMS_(__VA_ARGS__)) \
    {                                                                              \
        return beats(a_, b_);                                                      \
    }                                                                              \
    BLITZ_BEST_AT_BY_(name, K, source, body, __VA_ARGS__)

/*
 * min_by, max_by: the index of the least or the largest element of an array; of several, the first. An expression says
 * whether a is less than b. It may get the same element twice, and elements in any order.
 *
 *     BLITZ_MIN_BY_DEFINE(first_name, const char *, a, b, strcmp(a, b) < 0);
 *  -> int first_name(const char *const *in, size_t n, size_t *at, const blitz_par_opts *opts);
 *
 * Owns:     borrows the array until it returns.
 * Suspends: as blitz_for().
 * Returns:  as BLITZ_MIN_DEFINE.
 */
#define BLITZ_MIN_BY_DEFINE(name, T, a, b, ...)             \
    BLITZ_BEST_BY_(name, T, a, b, BLITZ_BODY_(__VA_ARGS__), \
                   BLITZ_INPUTS_(BLITZ_EACH(T, a), __VA_ARGS__))
#define BLITZ_MAX_BY_DEFINE(name, T, a, b, ...)             \
    BLITZ_BEST_BY_(name, T, b, a, BLITZ_BODY_(__VA_ARGS__), \
                   BLITZ_INPUTS_(BLITZ_EACH(T, b), __VA_ARGS__))
#define BLITZ_BEST_BY_(name, T, a, b, less, ...)                                 \
    BLITZ_ENV_(name, __VA_ARGS__)                                                \
    static BLITZ_INLINE_ int name##_beats_(T a, T b, BLITZ_PARAMS_(__VA_ARGS__)) \
    {                                                                            \
        return (less) ? 1 : 0;                                                   \
    }                                                                            \
    BLITZ_BEST_AT_BY_(name, T, BLITZ_EACH(T, a), a, __VA_ARGS__)

#define BLITZ_BEST_AT_BY_(name, K, source, body, ...)                                            \
    struct name##_best_ {                                                                        \
        K key_;                                                                                  \
        size_t at_;                                                                              \
        int has_;                                                                                \
    };                                                                                           \
    BLITZ_EXPR_(name##_at_, K, source, body, __VA_ARGS__)                                        \
    static BLITZ_INLINE_ int name##_span_(size_t from_, size_t to_, int seg_,                    \
                                          struct name##_best_ *acc_, BLITZ_PARAMS_(__VA_ARGS__)) \
    {                                                                                            \
        if (from_ >= to_)                                                                        \
            return 0;                                                                            \
        K best_ = acc_->has_ ? acc_->key_ : name##_at_(from_, seg_, BLITZ_NAMES_(__VA_ARGS__));  \
        size_t at_ = acc_->has_ ? acc_->at_ : from_;                                             \
        for (size_t i_ = acc_->has_ ? from_ : from_ + 1; i_ < to_; i_++) {                       \
            K key_ = name##_at_(i_, seg_, BLITZ_NAMES_(__VA_ARGS__));                            \
            if (name##_beats_(key_, best_, BLITZ_NAMES_(__VA_ARGS__))) {                         \
                best_ = key_;                                                                    \
                at_ = i_;                                                                        \
            }                                                                                    \
        }                                                                                        \
        acc_->key_ = best_;                                                                      \
        acc_->at_ = at_;                                                                         \
        acc_->has_ = 1;                                                                          \
        return 0;                                                                                \
    }                                                                                            \
    BLITZ_ZERO_(name, struct name##_best_, acc_, acc_->has_ = 0, __VA_ARGS__)                    \
    BLITZ_MERGE_(name, struct name##_best_, acc_, right_,                                        \
                 if (right_->has_ &&                                                             \
                     (!acc_->has_ || name##_beats_(right_->key_, acc_->key_,                     \
                                                   BLITZ_NAMES_(__VA_ARGS__)))) *acc_ = *right_, \
                 __VA_ARGS__)                                                                    \
    BLITZ_REDUCTION_(name, struct name##_best_, source, __VA_ARGS__)                             \
    static BLITZ_MAYBE_UNUSED int name(BLITZ_PARAMS_(__VA_ARGS__), size_t *out_,                 \
                                       const blitz_par_opts *opts_)                              \
    {                                                                                            \
        struct name##_best_ best_;                                                               \
        int err_ = name##_reduce_(&best_, BLITZ_NAMES_(__VA_ARGS__), opts_);                     \
        if (err_ != 0 || !best_.has_)                                                            \
            return err_ != 0 ? err_ : -ENOENT;                                                   \
        *out_ = best_.at_;                                                                       \
        return 0;                                                                                \
    }                                                                                            \
    BLITZ_END_(name)

/*
 * reduce: compute a value of type T from each element by one expression, and combine two values by another. `identity`
 * is the value that changes nothing in a combination; it is the result of no elements.
 *
 *     BLITZ_REDUCE_DEFINE(bounds, struct box, box_of_nothing(), BLITZ_EACH(struct point, p), box_of(p),
 *                         a, b, box_around(a, b));
 *  -> int bounds(const struct point *p, size_t n, struct box *out, const blitz_par_opts *opts);
 *
 * Owns:     borrows the arrays until it returns.
 * Suspends: as blitz_for().
 * Returns:  as BLITZ_SUM_DEFINE.
 */
#define BLITZ_REDUCE_DEFINE(name, T, identity, source, value, a, b, ...)            \
    BLITZ_REDUCE_(name, T, identity, source, value, a, b, BLITZ_BODY_(__VA_ARGS__), \
                  BLITZ_INPUTS_(source, __VA_ARGS__))
#define BLITZ_REDUCE_(name, T, identity, source, value, a, b, combine, ...)                    \
    BLITZ_ENV_(name, __VA_ARGS__)                                                              \
    BLITZ_EXPR_(name##_at_, T, source, value, __VA_ARGS__)                                     \
    static BLITZ_INLINE_ T name##_both_(T a, T b, BLITZ_PARAMS_(__VA_ARGS__))                  \
    {                                                                                          \
        return combine;                                                                        \
    }                                                                                          \
    static BLITZ_INLINE_ int name##_span_(size_t from_, size_t to_, int seg_, T *acc_,         \
                                          BLITZ_PARAMS_(__VA_ARGS__))                          \
    {                                                                                          \
        T all_ = *acc_;                                                                        \
        for (size_t i_ = from_; i_ < to_; i_++)                                                \
            all_ = name##_both_(all_, name##_at_(i_, seg_, BLITZ_NAMES_(__VA_ARGS__)),         \
                                BLITZ_NAMES_(__VA_ARGS__));                                    \
        *acc_ = all_;                                                                          \
        return 0;                                                                              \
    }                                                                                          \
    BLITZ_ZERO_(name, T, acc_, *acc_ = identity, __VA_ARGS__)                                  \
    BLITZ_MERGE_(name, T, acc_, right_,                                                        \
                 *acc_ = name##_both_(*acc_, *right_, BLITZ_NAMES_(__VA_ARGS__)), __VA_ARGS__) \
    BLITZ_REDUCTION_(name, T, source, __VA_ARGS__)                                             \
    BLITZ_REDUCER_(name, T, __VA_ARGS__)

/*
 * fold: update an accumulator of any size in place. It has three statements: clear *acc; add the element to *acc; add
 * *right, which covers the indexes that follow, to *acc.
 *
 *     BLITZ_FOLD_DEFINE(histogram, struct counts, acc, counts_clear(acc),
 *                       BLITZ_EACH(unsigned char, x), acc->of[x]++, right, counts_add(acc, right));
 *  -> int histogram(const unsigned char *x, size_t n, struct counts *out, const blitz_par_opts *opts);
 *
 * Owns:     borrows the arrays until it returns; *out is written to while it runs. Accumulators are never copied; for
 *           those over 64 bytes see blitz_reduce().
 * Suspends: as blitz_for().
 * Returns:  0; -ECANCELED, -ENOMEM (only if ordered): *out has some of the indexes.
 */
#define BLITZ_FOLD_DEFINE(name, Acc, acc, zero, source, step, right, ...)            \
    BLITZ_FOLD_(name, Acc, acc, zero, source, step, right, BLITZ_BODY_(__VA_ARGS__), \
                BLITZ_INPUTS_(source, __VA_ARGS__))
#define BLITZ_FOLD_(name, Acc, acc, zero, source, step, right, merge, ...)                         \
    BLITZ_ENV_(name, __VA_ARGS__)                                                                  \
    static BLITZ_INLINE_ void name##_at_(size_t i BLITZ_MAYBE_UNUSED, int seg_ BLITZ_MAYBE_UNUSED, \
                                         Acc *BLITZ_RESTRICT_ acc, BLITZ_PARAMS_(__VA_ARGS__))     \
    {                                                                                              \
        BLITZ_SRC_(BIND, source)                                                                   \
        step;                                                                                      \
    }                                                                                              \
    static BLITZ_INLINE_ int name##_span_(size_t from_, size_t to_, int seg_, Acc *acc_,           \
                                          BLITZ_PARAMS_(__VA_ARGS__))                              \
    {                                                                                              \
        for (size_t i_ = from_; i_ < to_; i_++)                                                    \
            name##_at_(i_, seg_, acc_, BLITZ_NAMES_(__VA_ARGS__));                                 \
        return 0;                                                                                  \
    }                                                                                              \
    BLITZ_ZERO_(name, Acc, acc, zero, __VA_ARGS__)                                                 \
    BLITZ_MERGE_(name, Acc, acc, right, merge, __VA_ARGS__)                                        \
    BLITZ_REDUCTION_(name, Acc, source, __VA_ARGS__)                                               \
    static BLITZ_MAYBE_UNUSED int name(BLITZ_PARAMS_(__VA_ARGS__), Acc *out_,                      \
                                       const blitz_par_opts *opts_)                                \
    {                                                                                              \
        return name##_reduce_(out_, BLITZ_NAMES_(__VA_ARGS__), opts_);                             \
    }                                                                                              \
    BLITZ_END_(name)

#endif
