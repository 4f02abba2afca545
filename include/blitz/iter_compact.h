/*
 * blitz/iter_compact.h - iterators whose output has another shape: filter, partition, flatten.
 *
 * Part of blitz/iter.h, which has the rules for all definitions. All of them keep the order of the elements. They pass
 * over the elements twice: once to decide about each, once to write it to its place. A body is evaluated in one of the
 * two passes, once for each index.
 */
#ifndef BLITZ_ITER_COMPACT_H
#define BLITZ_ITER_COMPACT_H

#include "blitz/iter_source.h"

BLITZ_BEGIN_DECLS

/* The indexes [0, n_) in blocks of each_ (the last is shorter). Not for programs. */
struct blitz_blocks_ {
    size_t n_, each_, count_;
    size_t *place_;       /* for each block: its count, then the count before it */
    unsigned char *mark_; /* for each index; NULL: none were requested */
    size_t bytes_;        /* of the memory place_ is in */
    blitz_par_opts opts_; /* the caller's, counted in blocks */
};

/* -ENOMEM, or ready: every count is 0. Close it in both cases. Not for programs. */
BLITZ_API int blitz_blocks_open_(struct blitz_blocks_ *b, size_t n, int is_marked,
                                 const blitz_par_opts *opts);
/* Turn counts into places, and return the total. */
BLITZ_API size_t blitz_blocks_sum_(struct blitz_blocks_ *b);
BLITZ_API void blitz_blocks_close_(struct blitz_blocks_ *b);
/* Return the row of `offset` that has the element `at`: the last one that begins there or before. */
BLITZ_API size_t blitz_row_of_(const size_t *offset, size_t rows, size_t at);

BLITZ_END_DECLS

static inline size_t blitz_block_begin_(const struct blitz_blocks_ *b, size_t index)
{
    return index * b->each_;
}
static inline size_t blitz_block_end_(const struct blitz_blocks_ *b, size_t index)
{
    size_t begin = index * b->each_;
    return b->n_ - begin < b->each_ ? b->n_ : begin + b->each_;
}

/* The first pass: span counts in *k_ and leaves marks. */
#define BLITZ_MARK_LOOP_(name, source, span, ...)                                         \
    static int name##_mark_block_(size_t from_, size_t to_, size_t *k_,                   \
                                  struct name##_env_ const *env_)                         \
    {                                                                                     \
        BLITZ_WALK_(source, span, k_, env_->blocks_->mark_, BLITZ_MEMBERS_(__VA_ARGS__)); \
    }                                                                                     \
    static int name##_mark_(size_t from_, size_t to_, void *arg_)                         \
    {                                                                                     \
        struct name##_env_ const *env_ = (struct name##_env_ const *)arg_;                \
        for (size_t b_ = from_; b_ < to_; b_++) {                                         \
            size_t k_ = 0;                                                                \
            name##_mark_block_(blitz_block_begin_(env_->blocks_, b_),                     \
                               blitz_block_end_(env_->blocks_, b_), &k_, env_);           \
            env_->blocks_->place_[b_] = k_;                                               \
        }                                                                                 \
        return 0;                                                                         \
    }

/* The second pass: span continues at place *k_, and stays before end_, which belongs to the next block. */
#define BLITZ_PLACE_LOOP_(name, source, span, ...)                                              \
    static int name##_place_block_(size_t from_, size_t to_, size_t *k_, size_t end_,           \
                                   struct name##_env_ const *env_)                              \
    {                                                                                           \
        BLITZ_WALK_(source, span, k_, end_, env_->blocks_->mark_, BLITZ_MEMBERS_(__VA_ARGS__)); \
    }                                                                                           \
    static int name##_place_(size_t from_, size_t to_, void *arg_)                              \
    {                                                                                           \
        struct name##_env_ const *env_ = (struct name##_env_ const *)arg_;                      \
        for (size_t b_ = from_; b_ < to_; b_++) {                                               \
            size_t k_ = env_->blocks_->place_[b_];                                              \
            name##_place_block_(blitz_block_begin_(env_->blocks_, b_),                          \
                                blitz_block_end_(env_->blocks_, b_), &k_,                       \
                                env_->blocks_->place_[b_ + 1], env_);                           \
        }                                                                                       \
        return 0;                                                                               \
    }

/* Both passes, with the counts added up in between: *total_ is their sum. */
#define BLITZ_TWO_PASSES_(name, source, is_marked, ...)                                      \
    static int name##_run_(size_t *total_, BLITZ_PARAMS_(__VA_ARGS__),                       \
                           const blitz_par_opts *opts_)                                      \
    {                                                                                        \
        struct blitz_blocks_ the_, *blocks_ = &the_;                                         \
        BLITZ_FILL_ENV_(name, BLITZ_BLOCKS_PAIR_, __VA_ARGS__)                               \
        if (BLITZ_SRC_(IS_BAD, source))                                                      \
            return -EINVAL;                                                                  \
        int err_ = blitz_blocks_open_(blocks_, BLITZ_SRC_(COUNT, source), is_marked, opts_); \
        if (err_ == 0)                                                                       \
            err_ = blitz_for(the_.count_, name##_mark_, &env_, &the_.opts_);                 \
        if (err_ == 0) {                                                                     \
            *total_ = blitz_blocks_sum_(blocks_);                                            \
            err_ = blitz_for(the_.count_, name##_place_, &env_, &the_.opts_);                \
        }                                                                                    \
        blitz_blocks_close_(blocks_);                                                        \
        return err_;                                                                         \
    }
#define BLITZ_BLOCKS_PAIR_ (struct blitz_blocks_ *, blocks_)

/* Define a function that returns the number of kept elements. */
#define BLITZ_KEEPER_(name, ...)                                                  \
    static BLITZ_MAYBE_UNUSED int name(BLITZ_PARAMS_(__VA_ARGS__), size_t *kept_, \
                                       const blitz_par_opts *opts_)               \
    {                                                                             \
        size_t total_ = 0;                                                        \
        int err_ = name##_run_(&total_, BLITZ_NAMES_(__VA_ARGS__), opts_);        \
        if (err_ == 0)                                                            \
            *kept_ = total_;                                                      \
        return err_;                                                              \
    }                                                                             \
    BLITZ_END_(name)

/* Mark what holds, and count. */
#define BLITZ_MARK_SPAN_(name, source, holds, ...)                                             \
    BLITZ_EXPR_(name##_holds_, unsigned char, source, (holds) ? 1 : 0, __VA_ARGS__)            \
    static BLITZ_INLINE_ int name##_mark_span_(size_t from_, size_t to_, int seg_, size_t *k_, \
                                               unsigned char *BLITZ_RESTRICT_ mark_,           \
                                               BLITZ_PARAMS_(__VA_ARGS__))                     \
    {                                                                                          \
        size_t count_ = 0;                                                                     \
        BLITZ_EACH_64_(                                                                        \
            unsigned char some_ = 0,                                                           \
            unsigned char is_kept_ = name##_holds_(i_, seg_, BLITZ_NAMES_(__VA_ARGS__));       \
            mark_[i_] = is_kept_; some_ = (unsigned char)(some_ + is_kept_), count_ += some_)  \
        *k_ += count_;                                                                         \
        return 0;                                                                              \
    }                                                                                          \
    BLITZ_MARK_LOOP_(name, source, name##_mark_span_, __VA_ARGS__)

/*
 * filter: the elements for which an expression is true, in their order, without gaps.
 *
 *     BLITZ_FILTER_DEFINE(positive, BLITZ_EACH(double, x), x > 0);
 *  -> int positive(const double *x, size_t n, double *out, size_t *kept, const blitz_par_opts *opts);
 *
 * The source is BLITZ_EACH, BLITZ_CHAIN, BLITZ_INTERLEAVE, BLITZ_REV, BLITZ_STEP or BLITZ_RANGE (which keeps indexes).
 * Owns:     borrows the arrays until it returns. out has room for all kept elements, n to be safe, and does not overlap
 *           the input. Allocates n bytes and a few more, and frees them.
 * Suspends: as blitz_for().
 * Returns:  0: *kept elements are in out; -ENOMEM, -ECANCELED: *kept is not written, and the content of out is
 *           undefined. The inputs are intact in any case.
 */
#define BLITZ_FILTER_DEFINE(name, source, ...)                                      \
    BLITZ_FILTER_(name, BLITZ_SRC_(TYPE, source), source, BLITZ_BODY_(__VA_ARGS__), \
                  BLITZ_INPUTS_(source, __VA_ARGS__),                               \
                  (BLITZ_SRC_(TYPE, source) * BLITZ_RESTRICT_, out_))
#define BLITZ_FILTER_(name, T, source, holds, ...)                                                   \
    BLITZ_ENV_(name, BLITZ_BLOCKS_PAIR_, __VA_ARGS__)                                                \
    BLITZ_MARK_SPAN_(name, source, holds, __VA_ARGS__)                                               \
    BLITZ_EXPR_(name##_at_, T, source, BLITZ_SRC_(VALUE, source), __VA_ARGS__)                       \
    /* Without a branch: what is not kept is overwritten by the next. Ends with the last one kept, \
     * so nothing is written to the next block's places. */ \
    static BLITZ_INLINE_ int name##_place_span_(size_t from_, size_t to_, int seg_, size_t *k_,      \
                                                size_t end_, const unsigned char *mark_,             \
                                                BLITZ_PARAMS_(__VA_ARGS__))                          \
    {                                                                                                \
        size_t at_ = *k_;                                                                            \
        for (size_t i_ = from_; i_ < to_ && at_ < end_; i_++) {                                      \
            out_[at_] = name##_at_(i_, seg_, BLITZ_NAMES_(__VA_ARGS__));                             \
            at_ += mark_[i_];                                                                        \
        }                                                                                            \
        *k_ = at_;                                                                                   \
        return 0;                                                                                    \
    }                                                                                                \
    BLITZ_PLACE_LOOP_(name, source, name##_place_span_, __VA_ARGS__)                                 \
    BLITZ_TWO_PASSES_(name, source, 1, __VA_ARGS__)                                                  \
    BLITZ_KEEPER_(name, __VA_ARGS__)

/*
 * filter_map: where one expression is true, the value of another, which is evaluated only there.
 *
 *     BLITZ_FILTER_MAP_DEFINE(where, size_t, BLITZ_EACH(int, x), x < 0, i);
 *  -> int where(const int *x, size_t n, size_t *out, size_t *kept, const blitz_par_opts *opts);
 *
 * Any source.
 * Owns:     as BLITZ_FILTER_DEFINE.
 * Suspends: as blitz_for().
 * Returns:  as BLITZ_FILTER_DEFINE.
 */
#define BLITZ_FILTER_MAP_DEFINE(name, T, source, holds, ...)            \
    BLITZ_FILTER_MAP_(name, T, source, holds, BLITZ_BODY_(__VA_ARGS__), \
                      BLITZ_INPUTS_(source, __VA_ARGS__), (T * BLITZ_RESTRICT_, out_))
#define BLITZ_FILTER_MAP_(name, T, source, holds, value, ...)                                   \
    BLITZ_ENV_(name, BLITZ_BLOCKS_PAIR_, __VA_ARGS__)                                           \
    BLITZ_MARK_SPAN_(name, source, holds, __VA_ARGS__)                                          \
    BLITZ_EXPR_(name##_at_, T, source, value, __VA_ARGS__)                                      \
    static BLITZ_INLINE_ int name##_place_span_(size_t from_, size_t to_, int seg_, size_t *k_, \
                                                size_t end_, const unsigned char *mark_,        \
                                                BLITZ_PARAMS_(__VA_ARGS__))                     \
    {                                                                                           \
        size_t at_ = *k_;                                                                       \
        for (size_t i_ = from_; i_ < to_ && at_ < end_; i_++)                                   \
            if (mark_[i_])                                                                      \
                out_[at_++] = name##_at_(i_, seg_, BLITZ_NAMES_(__VA_ARGS__));                  \
        *k_ = at_;                                                                              \
        return 0;                                                                               \
    }                                                                                           \
    BLITZ_PLACE_LOOP_(name, source, name##_place_span_, __VA_ARGS__)                            \
    BLITZ_TWO_PASSES_(name, source, 1, __VA_ARGS__)                                             \
    BLITZ_KEEPER_(name, __VA_ARGS__)

/*
 * partition: the elements for which an expression is true, then the others, both in their order.
 *
 *     BLITZ_PARTITION_DEFINE(evens_first, BLITZ_EACH(int, x), x % 2 == 0);
 *  -> int evens_first(const int *x, size_t n, int *out, size_t *kept, const blitz_par_opts *opts);
 *
 * The source is one of those of BLITZ_FILTER_DEFINE. out[*kept] is the first of the others.
 * Owns:     as BLITZ_FILTER_DEFINE, with room in out for all.
 * Suspends: as blitz_for().
 * Returns:  as BLITZ_FILTER_DEFINE.
 */
#define BLITZ_PARTITION_DEFINE(name, source, ...)                                      \
    BLITZ_PARTITION_(name, BLITZ_SRC_(TYPE, source), source, BLITZ_BODY_(__VA_ARGS__), \
                     BLITZ_INPUTS_(source, __VA_ARGS__),                               \
                     (BLITZ_SRC_(TYPE, source) * BLITZ_RESTRICT_, out_))
#define BLITZ_PARTITION_(name, T, source, holds, ...)                                        \
    BLITZ_ENV_(name, BLITZ_BLOCKS_PAIR_, __VA_ARGS__)                                        \
    BLITZ_MARK_SPAN_(name, source, holds, __VA_ARGS__)                                       \
    BLITZ_EXPR_(name##_at_, T, source, BLITZ_SRC_(VALUE, source), __VA_ARGS__)               \
    /* Of the i_ - at_ before i_ that are not kept, each has a place behind all that are. */ \
    static BLITZ_INLINE_ int name##_place_span_(                                             \
        size_t from_, size_t to_, int seg_, size_t *k_, size_t end_ BLITZ_MAYBE_UNUSED,      \
        const unsigned char *mark_, struct blitz_blocks_ *all_, BLITZ_PARAMS_(__VA_ARGS__))  \
    {                                                                                        \
        size_t at_ = *k_, kept_of_all_ = all_->place_[all_->count_];                         \
        for (size_t i_ = from_; i_ < to_; i_++) {                                            \
            size_t other_ = kept_of_all_ + (i_ - at_);                                       \
            size_t which_ =                                                                  \
                (size_t)0 - mark_[i_]; /* all ones, or none: a branch would be guessed */    \
            out_[other_ ^ ((other_ ^ at_) & which_)] =                                       \
                name##_at_(i_, seg_, BLITZ_NAMES_(__VA_ARGS__));                             \
            at_ += mark_[i_];                                                                \
        }                                                                                    \
        *k_ = at_;                                                                           \
        return 0;                                                                            \
    }                                                                                        \
    BLITZ_PLACE_LOOP_(name, source, name##_place_span_, BLITZ_BLOCKS_PAIR_, __VA_ARGS__)     \
    BLITZ_TWO_PASSES_(name, source, 1, __VA_ARGS__)                                          \
    BLITZ_KEEPER_(name, __VA_ARGS__)

/*
 * offsets: offset[i] is the sum of an expression over all indexes before i, offset[n] over all.
 *
 *     BLITZ_OFFSETS_DEFINE(line_offsets, BLITZ_EACH_AT(const struct line, l), l->length);
 *  -> int line_offsets(const struct line *l, size_t n, size_t *offset, const blitz_par_opts *opts);
 *
 * The first half of flattening: it gives the size of the output. The expression is a size_t.
 * Owns:     borrows the arrays until it returns; offset has room for n + 1. Allocates a little, and frees it.
 * Suspends: as blitz_for().
 * Returns:  0; -ENOMEM, -ECANCELED: the content of offset is undefined.
 */
#define BLITZ_OFFSETS_DEFINE(name, source, ...)                                                \
    BLITZ_OFFSETS_(name, source, BLITZ_BODY_(__VA_ARGS__), BLITZ_INPUTS_(source, __VA_ARGS__), \
                   (size_t * BLITZ_RESTRICT_, offset_))
#define BLITZ_OFFSETS_(name, source, size, ...)                                                 \
    BLITZ_ENV_(name, BLITZ_BLOCKS_PAIR_, __VA_ARGS__)                                           \
    BLITZ_EXPR_(name##_at_, size_t, source, size, __VA_ARGS__)                                  \
    static BLITZ_INLINE_ int name##_mark_span_(size_t from_, size_t to_, int seg_, size_t *k_,  \
                                               unsigned char *mark_ BLITZ_MAYBE_UNUSED,         \
                                               BLITZ_PARAMS_(__VA_ARGS__))                      \
    {                                                                                           \
        size_t sum_ = 0;                                                                        \
        for (size_t i_ = from_; i_ < to_; i_++)                                                 \
            sum_ += offset_[i_] = name##_at_(i_, seg_, BLITZ_NAMES_(__VA_ARGS__));              \
        *k_ += sum_;                                                                            \
        return 0;                                                                               \
    }                                                                                           \
    BLITZ_MARK_LOOP_(name, source, name##_mark_span_, __VA_ARGS__)                              \
    static BLITZ_INLINE_ int name##_place_span_(                                                \
        size_t from_, size_t to_, int seg_ BLITZ_MAYBE_UNUSED, size_t *k_,                      \
        size_t end_ BLITZ_MAYBE_UNUSED, const unsigned char *mark_ BLITZ_MAYBE_UNUSED,          \
        BLITZ_PARAMS_(__VA_ARGS__))                                                             \
    {                                                                                           \
        size_t at_ = *k_;                                                                       \
        for (size_t i_ = from_; i_ < to_; i_++) {                                               \
            size_t size_ = offset_[i_];                                                         \
            offset_[i_] = at_;                                                                  \
            at_ += size_;                                                                       \
        }                                                                                       \
        *k_ = at_;                                                                              \
        return 0;                                                                               \
    }                                                                                           \
    BLITZ_PLACE_LOOP_(name, source, name##_place_span_, __VA_ARGS__)                            \
    BLITZ_TWO_PASSES_(name, source, 0, __VA_ARGS__)                                             \
    static BLITZ_MAYBE_UNUSED int name(BLITZ_PARAMS_(__VA_ARGS__), const blitz_par_opts *opts_) \
    {                                                                                           \
        size_t total_ = 0;                                                                      \
        int err_ = name##_run_(&total_, BLITZ_NAMES_(__VA_ARGS__), opts_);                      \
        if (err_ == 0)                                                                          \
            offset_[BLITZ_SRC_(COUNT, source)] = total_;                                        \
        return err_;                                                                            \
    }                                                                                           \
    BLITZ_END_(name)

/*
 * flatten: the elements of all rows, one row after the other. The row of index i begins at an expression (a pointer)
 * and has offset[i + 1] - offset[i] elements, as computed by BLITZ_OFFSETS_DEFINE.
 *
 *     BLITZ_FLATTEN_DEFINE(join_lines, char, BLITZ_EACH_AT(const struct line, l), l->text);
 *  -> int join_lines(const struct line *l, size_t n, const size_t *offset, char *out,
 *                    const blitz_par_opts *opts);
 *
 * The output is divided among the workers, so one very long row does not delay the rest; opts count output elements.
 * The expression may be evaluated several times for a row, and is not evaluated for an empty row. To compute new
 * elements, use the offsets in a for_each:
 *     BLITZ_FOR_EACH_DEFINE(unpack_all, BLITZ_EACH(struct pack, p), unpack(p, out + offset[i]),
 *                           (const size_t *, offset), (char *, out));
 * Owns:     borrows the arrays until it returns; out has room for offset[n] elements, and does not
 *           overlap what is read.
 * Suspends: as blitz_for().
 * Returns:  0, -ECANCELED (some of out is written).
 */
#define BLITZ_FLATTEN_DEFINE(name, T, source, ...)                                                \
    BLITZ_FLATTEN_(name, T, source, BLITZ_BODY_(__VA_ARGS__), BLITZ_INPUTS_(source, __VA_ARGS__), \
                   (size_t const *, offset_), (T * BLITZ_RESTRICT_, out_))
#define BLITZ_FLATTEN_(name, T, source, row, ...)                                               \
    BLITZ_ENV_(name, (size_t, rows_), __VA_ARGS__)                                              \
    BLITZ_EXPR_(name##_at_, T const *, source, row, __VA_ARGS__)                                \
    static BLITZ_INLINE_ void name##_span_(size_t from_, size_t to_, size_t rows_,              \
                                           BLITZ_PARAMS_(__VA_ARGS__))                          \
    {                                                                                           \
        size_t i = blitz_row_of_(offset_, rows_, from_);                                        \
        for (size_t k_ = from_; k_ < to_; i++) {                                                \
            size_t begin_ = offset_[i];                                                         \
            size_t end_ = offset_[i + 1] < to_ ? offset_[i + 1] : to_;                          \
            if (k_ >= end_)                                                                     \
                continue;                                                                       \
            T const *row_ = name##_at_(i, BLITZ_SRC_(SEG, source), BLITZ_NAMES_(__VA_ARGS__));  \
            for (; k_ < end_; k_++)                                                             \
                out_[k_] = row_[k_ - begin_];                                                   \
        }                                                                                       \
    }                                                                                           \
    static int name##_chunk_(size_t from_, size_t to_, void *arg_)                              \
    {                                                                                           \
        struct name##_env_ const *env_ = (struct name##_env_ const *)arg_;                      \
        name##_span_(from_, to_, BLITZ_MEMBERS_((size_t, rows_), __VA_ARGS__));                 \
        return 0;                                                                               \
    }                                                                                           \
    static BLITZ_MAYBE_UNUSED int name(BLITZ_PARAMS_(__VA_ARGS__), const blitz_par_opts *opts_) \
    {                                                                                           \
        size_t rows_ = BLITZ_SRC_(COUNT, source);                                               \
        BLITZ_FILL_ENV_(name, (size_t, rows_), __VA_ARGS__)                                     \
        if (BLITZ_SRC_(IS_BAD, source))                                                         \
            return -EINVAL;                                                                     \
        return blitz_for(offset_[rows_], name##_chunk_, &env_, opts_);                          \
    }                                                                                           \
    BLITZ_END_(name)

#endif
