/*
 * blitz/sort_core.h - the implementation of BLITZ_SORT_DEFINE. Not for programs: include blitz/sort.h.
 *
 * This is the sequential half of the unstable sort, written once over bytes. Every function takes the size of an
 * element and a `less`, and is inlined into functions that know both as constants. So a copy becomes a register move,
 * and a comparison an instruction. The parallel half is in the library (src/par/sort.c). It calls this half through a
 * table of functions, a *kernel*, for a few thousand elements at a time.
 *
 * The algorithm is a quicksort:
 *   - The partition has no branch that depends on a comparison: the elements move through a hole, and a count grows by
 *     the result of the comparison.
 *   - Pieces of up to 32 elements are sorted by a network of four and by merges without such branches.
 *   - If a pivot equals the one before it, all elements equal to it are gathered. That makes few distinct values cheap.
 *   - After log2(n) bad pivots a heapsort takes over, so that n log n is the worst case.
 *   - Elements of more than 32 bytes are moved as little as possible: their partition notes the elements on the wrong
 *     side and swaps them, and their small sort is an insertion sort.
 *
 * C1  No result of `less` takes an index out of bounds or a loop past its end: every loop counts.
 * C2  For any results of `less`, the array stays a permutation of the input. Elements are swapped, rotated, or merged
 *     from a copy that stays whole until a check shows that the merge has used each element once.
 */
#ifndef BLITZ_SORT_CORE_H
#define BLITZ_SORT_CORE_H

#include <stddef.h>
#include <stdint.h>

#include "blitz/api.h"

BLITZ_BEGIN_DECLS

/* Return not 0 if a comes before b. `ctx` is the caller's. */
typedef int blitz_less_fn_(const void *a, const void *b, void *ctx);

/*
 * A sequential sort for one type.
 *   sort   sorts n elements, none of which is less than *before (NULL: not known); after `limit` bad pivots by heapsort
 *   split  moves the elements less than the pivot (are_equal: those that are not greater) to the front; returns how
 *   many run    returns the length of the first run that never falls (falls: that falls strictly)
 *   pivot  returns an element that is likely in the middle
 */
struct blitz_sort_kernel_ {
    size_t size;
    blitz_less_fn_ *less;
    void (*sort)(void *v, size_t n, const void *before, unsigned limit, void *ctx);
    size_t (*split)(void *v, size_t n, const void *pivot, int are_equal, void *ctx);
    size_t (*run)(const void *v, size_t n, int falls, void *ctx);
    void *(*pivot)(void *v, size_t n, void *ctx);
};

BLITZ_API BLITZ_SUSPENDS int blitz_sort_with_(const struct blitz_sort_kernel_ *k, void *v, size_t n,
                                              void *ctx);

#if defined(__GNUC__)
#define BLITZ_SORT_INLINE_ static inline __attribute__((always_inline))
#define BLITZ_SORT_NOINLINE_ static BLITZ_MAYBE_UNUSED __attribute__((noinline))
#define BLITZ_SORT_COPY_(to, from, size) __builtin_memcpy(to, from, size)
#else
#define BLITZ_SORT_INLINE_ static inline
#define BLITZ_SORT_NOINLINE_ static
#define BLITZ_SORT_COPY_(to, from, size) blitz_sort_bytes_(to, from, size)
static inline void blitz_sort_bytes_(void *to, const void *from, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
}
#endif

/* Up to this size an element is copied rather than used in place; constants in every kernel. */
#define BLITZ_SORT_SLOT_ 32
#if defined(__GNUC__)
#define BLITZ_SORT_FITS_(type) (sizeof(type) <= BLITZ_SORT_SLOT_ && __alignof__(type) <= 16)
#else
#define BLITZ_SORT_FITS_(type) 0
#endif
/* The size, where it is known to be that small; a compiler without optimization cannot know. */
#define BLITZ_SORT_FIT_(size) ((size) < BLITZ_SORT_SLOT_ ? (size) : BLITZ_SORT_SLOT_)
/* Pieces up to this length are sorted by the small sort. */
#define BLITZ_SORT_SMALL_ 32
#define BLITZ_SORT_PIVOTS_ 81
#define BLITZ_SORT_BLOCK_ 64

typedef unsigned char blitz_byte_;

/* One element, aligned for every type whose alignment is 16 or less. */
typedef union blitz_slot_ {
    blitz_byte_ at[BLITZ_SORT_SLOT_];
    uint64_t words_[BLITZ_SORT_SLOT_ / 8];
}
#if defined(__GNUC__)
__attribute__((aligned(16), may_alias))
#endif
blitz_slot_;

/* ---- moving elements ---- */

/* Swap two elements of any size, piece by piece. */
BLITZ_SORT_INLINE_ void blitz_sort_swap_(blitz_byte_ *a, blitz_byte_ *b, size_t size)
{
    blitz_slot_ t;
    if (a == b)
        return;
    /* NOLINTBEGIN(clang-analyzer-unix.cstring.NullArg): there are elements to swap */
    while (size > BLITZ_SORT_SLOT_) {
        BLITZ_SORT_COPY_(t.at, a, BLITZ_SORT_SLOT_);
        BLITZ_SORT_COPY_(a, b, BLITZ_SORT_SLOT_);
        BLITZ_SORT_COPY_(b, t.at, BLITZ_SORT_SLOT_);
        a += BLITZ_SORT_SLOT_, b += BLITZ_SORT_SLOT_, size -= BLITZ_SORT_SLOT_;
    }
    BLITZ_SORT_COPY_(t.at, a, size);
    BLITZ_SORT_COPY_(a, b, size);
    BLITZ_SORT_COPY_(b, t.at, size);
    /* NOLINTEND(clang-analyzer-unix.cstring.NullArg) */
}

/* Move *last to *first, and the others one place on: column by column, as wide as a slot. */
BLITZ_SORT_INLINE_ void blitz_sort_rotate_(blitz_byte_ *first, blitz_byte_ *last, size_t size)
{
    for (size_t at = 0; at < size; at += BLITZ_SORT_SLOT_) {
        size_t wide = size - at < BLITZ_SORT_SLOT_ ? size - at : BLITZ_SORT_SLOT_;
        blitz_slot_ t;
        BLITZ_SORT_COPY_(t.at, last + at, wide);
        for (blitz_byte_ *p = last; p > first; p -= size)
            BLITZ_SORT_COPY_(p + at, p + at - size, wide);
        BLITZ_SORT_COPY_(first + at, t.at, wide);
    }
}

/* ---- a few elements ---- */

/* Insert v[i] into v[0] to v[i - 1], which are sorted. */
BLITZ_SORT_INLINE_ void blitz_sort_insert_(blitz_byte_ *v, size_t i, size_t size, int is_small,
                                           blitz_less_fn_ *less, void *ctx)
{
    blitz_byte_ *p = v + i * size, *q = p;
    if (is_small) {
        blitz_slot_ t;
        BLITZ_SORT_COPY_(t.at, p, BLITZ_SORT_FIT_(size));
        for (; q > v && less(t.at, q - size, ctx); q -= size)
            BLITZ_SORT_COPY_(q, q - size, size);
        BLITZ_SORT_COPY_(q, t.at, BLITZ_SORT_FIT_(size));
    } else {
        while (q > v && less(p, q - size, ctx))
            q -= size;
        blitz_sort_rotate_(q, p, size);
    }
}

BLITZ_SORT_INLINE_ size_t blitz_sort_choose_(int c, size_t yes, size_t no)
{
    return no ^ ((yes ^ no) & (size_t) - (ptrdiff_t)c);
}

/* Copy v[0..4) in order to `to`, which does not overlap v. Each of the four is copied once (C2). */
BLITZ_SORT_INLINE_ void blitz_sort_four_(const blitz_byte_ *v, blitz_byte_ *to, size_t size,
                                         blitz_less_fn_ *less, void *ctx)
{
    size_t ab = less(v + size, v, ctx) != 0, cd = less(v + 3 * size, v + 2 * size, ctx) != 0;
    size_t a = ab * size, b = (ab ^ 1) * size, c = (2 + cd) * size, d = (2 + (cd ^ 1)) * size;
    int ca = less(v + c, v + a, ctx) != 0, db = less(v + d, v + b, ctx) != 0;
    size_t least = blitz_sort_choose_(ca, c, a), most = blitz_sort_choose_(db, b, d);
    size_t x = blitz_sort_choose_(ca, a, blitz_sort_choose_(db, c, b));
    size_t y = blitz_sort_choose_(db, d, blitz_sort_choose_(ca, b, c));
    int yx = less(v + y, v + x, ctx) != 0;
    BLITZ_SORT_COPY_(to, v + least, size);
    BLITZ_SORT_COPY_(to + size, v + blitz_sort_choose_(yx, y, x), size);
    BLITZ_SORT_COPY_(to + 2 * size, v + blitz_sort_choose_(yx, x, y), size);
    BLITZ_SORT_COPY_(to + 3 * size, v + most, size);
}

/*
 * Merge the sorted halves v[0..n/2) and v[n/2..n) to `to`, from both ends at once: n/2 steps each, so that no step has
 * to check for an end (C1). If the comparisons contradict each other, an element may be left out and another may come
 * twice; then v is copied to `to` unchanged (C2).
 */
BLITZ_SORT_INLINE_ void blitz_sort_merge_(const blitz_byte_ *v, size_t n, blitz_byte_ *to,
                                          size_t size, blitz_less_fn_ *less, void *ctx)
{
    size_t half = n / 2;
    size_t l = 0, r = half * size, l_last = (half - 1) * size, r_last = (n - 1) * size;
    blitz_byte_ *front = to, *back = to + (n - 1) * size;
    for (size_t i = 0; i < half; i++) {
        int c = less(v + r, v + l, ctx) != 0;
        BLITZ_SORT_COPY_(front, v + blitz_sort_choose_(c, r, l), size);
        r += (size_t)c * size, l += (size_t)(c ^ 1) * size;
        front += size;
        c = less(v + r_last, v + l_last, ctx) != 0;
        BLITZ_SORT_COPY_(back, v + blitz_sort_choose_(c, l_last, r_last), size);
        l_last -= (size_t)c * size, r_last -= (size_t)(c ^ 1) * size;
        back -= size;
    }
    if (n % 2 != 0) {
        size_t c = l == l_last + size;
        BLITZ_SORT_COPY_(front, v + blitz_sort_choose_((int)c, r, l), size);
        r += c * size, l += (c ^ 1) * size;
    }
    if (l != l_last + size || r != r_last + size)
        BLITZ_SORT_COPY_(to, v, n * size);
}

/* Sort up to BLITZ_SORT_SMALL_ elements of up to BLITZ_SORT_SLOT_ bytes. */
BLITZ_SORT_INLINE_ void blitz_sort_small_(blitz_byte_ *v, size_t n, size_t size, int is_small,
                                          blitz_less_fn_ *less, void *ctx)
{
    if (!is_small || n < 8) {
        for (size_t i = 1; i < n; i++)
            blitz_sort_insert_(v, i, size, is_small, less, ctx);
        return;
    }
    size = BLITZ_SORT_FIT_(size);
    blitz_slot_ room[BLITZ_SORT_SMALL_], eight[8];
    blitz_byte_ *part = room[0].at;
    for (size_t from = 0, to = n / 2; from < n; from = to, to = n, part += (n / 2) * size) {
        size_t has = 4;
        blitz_sort_four_(v + from * size, n < 16 ? part : eight[0].at, size, less, ctx);
        if (n >= 16) {
            has = 8;
            blitz_sort_four_(v + (from + 4) * size, eight[0].at + 4 * size, size, less, ctx);
            blitz_sort_merge_(eight[0].at, 8, part, size, less, ctx);
        }
        for (; has < to - from; has++) {
            BLITZ_SORT_COPY_(part + has * size, v + (from + has) * size, size);
            blitz_sort_insert_(part, has, size, is_small, less, ctx);
        }
    }
    blitz_sort_merge_(room[0].at, n, v, size, less, ctx);
}

/* ---- the steps of the quicksort ---- */

BLITZ_SORT_INLINE_ blitz_byte_ *blitz_sort_middle_(blitz_byte_ *a, blitz_byte_ *b, blitz_byte_ *c,
                                                   blitz_less_fn_ *less, void *ctx)
{
    int ab = less(a, b, ctx) != 0, ac = less(a, c, ctx) != 0;
    if (ab != ac)
        return a;
    return (less(b, c, ctx) != 0) != ab ? c : b;
}

/* Return the median of three, of three such medians, and so on: of 3 to 81 elements, depending on n. */
BLITZ_SORT_INLINE_ blitz_byte_ *blitz_sort_pivot_(blitz_byte_ *v, size_t n, size_t size,
                                                  blitz_less_fn_ *less, void *ctx)
{
    blitz_byte_ *p[BLITZ_SORT_PIVOTS_];
    size_t many = n < 64 ? 3 : n < 1024 ? 9 : n < 16384 ? 27 : BLITZ_SORT_PIVOTS_;
    size_t step = n / many;
    for (size_t i = 0; i < many; i++)
        p[i] = v + (step * i + step / 2) * size;
    for (; many > 1; many /= 3)
        for (size_t i = 0; i < many / 3; i++)
            p[i] = blitz_sort_middle_(p[i], p[i + many / 3], p[i + 2 * (many / 3)], less, ctx);
    return p[0];
}

/* True if x belongs to the front. */
BLITZ_SORT_INLINE_ int blitz_sort_front_(const void *x, const void *pivot, int are_equal,
                                         blitz_less_fn_ *less, void *ctx)
{
    return are_equal ? !less(pivot, x, ctx) : less(x, pivot, ctx) != 0;
}

/* Before `hole` lie the elements for the front, up to `count`, then the others. The first element is in `in_hand`. */
BLITZ_SORT_INLINE_ size_t blitz_sort_split_small_(blitz_byte_ *v, size_t n, const void *pivot,
                                                  int are_equal, size_t size, blitz_less_fn_ *less,
                                                  void *ctx)
{
    blitz_slot_ in_hand, by;
    blitz_byte_ *count = v, *hole = v, *end = v + n * size;
    BLITZ_SORT_COPY_(by.at, pivot, size);
    BLITZ_SORT_COPY_(in_hand.at, v, size);
    for (blitz_byte_ *x = v + size; x < end; x += size) {
        size_t c = (size_t)blitz_sort_front_(x, by.at, are_equal, less, ctx);
        BLITZ_SORT_COPY_(hole, count, size);
        BLITZ_SORT_COPY_(count, x, size);
        hole = x;
        count += c * size;
    }
    size_t c = (size_t)blitz_sort_front_(in_hand.at, by.at, are_equal, less, ctx);
    BLITZ_SORT_COPY_(hole, count, size);
    BLITZ_SORT_COPY_(count, in_hand.at, size);
    return (size_t)(count - v) / size + c;
}

/* Note the places in v[0..n), or from v[0] down, of the elements on the wrong side; return how many. */
BLITZ_SORT_INLINE_ size_t blitz_sort_wrong_(const blitz_byte_ *v, size_t n, int is_back,
                                            blitz_byte_ *at, const void *pivot, int are_equal,
                                            size_t size, blitz_less_fn_ *less, void *ctx)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        const blitz_byte_ *x = is_back ? v - i * size : v + i * size;
        at[count] = (blitz_byte_)i;
        count += (size_t)(blitz_sort_front_(x, pivot, are_equal, less, ctx) == is_back);
    }
    return count;
}

/*
 * Partition large elements. Check a block at either end, note the elements on the wrong side, and swap them in pairs.
 * So the results are added up instead of branched on, and elements on the right side are not moved. The range from l to
 * r holds the noted blocks, `l_wide` and `r_wide` long. Between them are the elements that are not yet checked.
 */
BLITZ_SORT_INLINE_ size_t blitz_sort_split_large_(blitz_byte_ *v, size_t n, const void *pivot,
                                                  int are_equal, size_t size, blitz_less_fn_ *less,
                                                  void *ctx)
{
    blitz_byte_ l_at[BLITZ_SORT_BLOCK_], r_at[BLITZ_SORT_BLOCK_];
    size_t l = 0, r = n, l_n = 0, r_n = 0, l_next = 0, r_next = 0, l_wide = 0, r_wide = 0;
    for (size_t more; (more = r - l - l_wide - r_wide) > 0;) {
        if (l_n == 0) {
            l_wide = r_n == 0 ? more - more / 2 : more;
            l_wide = l_wide < BLITZ_SORT_BLOCK_ ? l_wide : BLITZ_SORT_BLOCK_;
            l_n =
                blitz_sort_wrong_(v + l * size, l_wide, 0, l_at, pivot, are_equal, size, less, ctx);
            l_next = 0, more -= l_wide;
        }
        if (r_n == 0 && more > 0) {
            r_wide = more < BLITZ_SORT_BLOCK_ ? more : BLITZ_SORT_BLOCK_;
            r_n = blitz_sort_wrong_(v + (r - 1) * size, r_wide, 1, r_at, pivot, are_equal, size,
                                    less, ctx);
            r_next = 0;
        }
        for (; l_n > 0 && r_n > 0; l_n--, r_n--)
            blitz_sort_swap_(v + (l + l_at[l_next++]) * size, v + (r - 1 - r_at[r_next++]) * size,
                             size);
        l += l_n == 0 ? l_wide : 0, l_wide = l_n == 0 ? 0 : l_wide;
        r -= r_n == 0 ? r_wide : 0, r_wide = r_n == 0 ? 0 : r_wide;
    }
    size_t end = r; /* one block may be left: move its wrong elements to its other end */
    while (l_n > 0)
        blitz_sort_swap_(v + (l + l_at[l_next + --l_n]) * size, v + --r * size, size);
    for (; r_n > 0; l++)
        blitz_sort_swap_(v + (end - 1 - r_at[r_next + --r_n]) * size, v + l * size, size);
    return l_wide > 0 ? r : l;
}

BLITZ_SORT_INLINE_ size_t blitz_sort_split_(blitz_byte_ *v, size_t n, const void *pivot,
                                            int are_equal, size_t size, int is_small,
                                            blitz_less_fn_ *less, void *ctx)
{
    if (n == 0)
        return 0;
    if (is_small)
        return blitz_sort_split_small_(v, n, pivot, are_equal, BLITZ_SORT_FIT_(size), less, ctx);
    return blitz_sort_split_large_(v, n, pivot, are_equal, size, less, ctx);
}

BLITZ_SORT_INLINE_ void blitz_sort_sift_(blitz_byte_ *v, size_t i, size_t n, size_t size,
                                         blitz_less_fn_ *less, void *ctx)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && less(v + child * size, v + (child + 1) * size, ctx))
            child++;
        if (!less(v + i * size, v + child * size, ctx))
            return;
        blitz_sort_swap_(v + i * size, v + child * size, size);
    }
}

BLITZ_SORT_INLINE_ void blitz_sort_heap_(blitz_byte_ *v, size_t n, size_t size,
                                         blitz_less_fn_ *less, void *ctx)
{
    for (size_t i = n / 2; i-- > 0;)
        blitz_sort_sift_(v, i, n, size, less, ctx);
    for (size_t i = n; i-- > 1;) {
        blitz_sort_swap_(v, v + i * size, size);
        blitz_sort_sift_(v, 0, i, size, less, ctx);
    }
}

BLITZ_SORT_INLINE_ size_t blitz_sort_run_(const blitz_byte_ *v, size_t n, int falls, size_t size,
                                          blitz_less_fn_ *less, void *ctx)
{
    size_t i = 1;
    if (falls)
        while (i < n && less(v + i * size, v + (i - 1) * size, ctx))
            i++;
    else
        while (i < n && !less(v + i * size, v + (i - 1) * size, ctx))
            i++;
    return i < n ? i : n;
}

/*
 * The main loop: split, sort the shorter part by a call of `sort` itself, and continue with the longer one. So calls
 * nest no deeper than log2(n). A split is bad if less than an eighth is on one side. A gathering of equal elements that
 * gathers few is bad, too; otherwise a contradictory `less` could make it gather one element at a time.
 */
BLITZ_SORT_INLINE_ void blitz_sort_quick_(void *base, size_t n, const void *before, unsigned limit,
                                          const struct blitz_sort_kernel_ *k, int is_small,
                                          void (*few)(void *v, size_t n, void *ctx),
                                          void (*heap)(void *v, size_t n, void *ctx), void *ctx)
{
    blitz_byte_ *v = (blitz_byte_ *)base;
    size_t size = k->size, small = is_small ? BLITZ_SORT_SMALL_ : 16;
    while (n > small && limit > 0) {
        blitz_sort_swap_(v, (blitz_byte_ *)k->pivot(v, n, ctx), size);
        if (before != NULL && !k->less(before, v, ctx)) {
            size_t equal = 1 + k->split(v + size, n - 1, v, 1, ctx);
            limit -= equal < n / 8;
            v += equal * size, n -= equal;
            continue;
        }
        size_t front = k->split(v + size, n - 1, v, 0, ctx), back = n - 1 - front;
        blitz_byte_ *middle = v + front * size;
        blitz_sort_swap_(v, middle, size);
        limit -= (front < back ? front : back) < n / 8;
        if (front < back) {
            k->sort(v, front, before, limit, ctx);
            before = middle, v = middle + size, n = back;
        } else {
            k->sort(middle + size, back, middle, limit, ctx);
            n = front;
        }
    }
    if (n <= small)
        few(v, n, ctx);
    else
        heap(v, n, ctx);
}

/* Define the functions of a kernel, in which `less` is inlined. `bytes` may be an expression of ctx. */
#define BLITZ_SORT_FUNCTIONS_(name, bytes, is_small, less)                                         \
    BLITZ_SORT_NOINLINE_ void name##_few_(void *v, size_t n, void *ctx)                            \
    {                                                                                              \
        blitz_sort_small_((blitz_byte_ *)v, n, bytes, is_small, less, ctx);                        \
    }                                                                                              \
    BLITZ_SORT_NOINLINE_ void name##_heap_(void *v, size_t n, void *ctx)                           \
    {                                                                                              \
        blitz_sort_heap_((blitz_byte_ *)v, n, bytes, less, ctx);                                   \
    }                                                                                              \
    BLITZ_SORT_NOINLINE_ size_t name##_split_(void *v, size_t n, const void *pivot, int are_equal, \
                                              void *ctx)                                           \
    {                                                                                              \
        if (are_equal)                                                                             \
            return blitz_sort_split_((blitz_byte_ *)v, n, pivot, 1, bytes, is_small, less, ctx);   \
        return blitz_sort_split_((blitz_byte_ *)v, n, pivot, 0, bytes, is_small, less, ctx);       \
    }                                                                                              \
    BLITZ_SORT_NOINLINE_ size_t name##_run_(const void *v, size_t n, int falls, void *ctx)         \
    {                                                                                              \
        return blitz_sort_run_((const blitz_byte_ *)v, n, falls, bytes, less, ctx);                \
    }                                                                                              \
    BLITZ_SORT_NOINLINE_ void *name##_pivot_(void *v, size_t n, void *ctx)                         \
    {                                                                                              \
        return blitz_sort_pivot_((blitz_byte_ *)v, n, bytes, less, ctx);                           \
    }                                                                                              \
    BLITZ_SORT_NOINLINE_ void name##_sort_(void *v, size_t n, const void *before, unsigned limit,  \
                                           void *ctx)                                              \
    {                                                                                              \
        const struct blitz_sort_kernel_ k = BLITZ_SORT_KERNEL_(name, bytes, less);                 \
        blitz_sort_quick_(v, n, before, limit, &k, is_small, name##_few_, name##_heap_, ctx);      \
    }
#define BLITZ_SORT_KERNEL_(name, bytes, less)                                \
    {                                                                        \
        bytes, less, name##_sort_, name##_split_, name##_run_, name##_pivot_ \
    }

BLITZ_END_DECLS

#endif
