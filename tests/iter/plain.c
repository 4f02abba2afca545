/*
 * One definition of each iterator, as a program of a user has them: compiled by tests/iter/check as C and
 * as C++, and looked at: what is in the loops?
 */
#include <string.h>

#include "blitz/iter.h"

struct item {
    int key, weight;
};
struct counts {
    size_t of[256];
};
static inline void counts_add(struct counts *to, const struct counts *from)
{
    for (int i = 0; i < 256; i++)
        to->of[i] += from->of[i];
}
static inline int read_number(const char *s, long *v)
{
    *v = s[0];
    return s[0] == 0 ? -EINVAL : 0;
}

BLITZ_FOR_EACH_DEFINE(for_each, BLITZ_EACH_AT(struct item, it), it->weight += it->key);
BLITZ_MAP_DEFINE(map, double, BLITZ_EACH(double, x), x *x + 1.0);
BLITZ_MAP_DEFINE(map_zip, double, BLITZ_ZIP(double, a, double, b), a *b);
BLITZ_MAP_DEFINE(map_zip3, double, BLITZ_ZIP3(double, a, double, b, double, c), a *b + c);
BLITZ_MAP_DEFINE(map_chain, double, BLITZ_CHAIN(double, x), x * 2);
BLITZ_MAP_DEFINE(map_interleave, double, BLITZ_INTERLEAVE(double, x), x * 2);
BLITZ_MAP_DEFINE(map_rev, double, BLITZ_REV(double, x), x * 2);
BLITZ_MAP_DEFINE(map_step, double, BLITZ_STEP(double, x, k), x * 2, (size_t, k));
BLITZ_MAP_DEFINE(map_windows, double, BLITZ_WINDOWS(const double, w, 3), w[0] + w[1] + w[2]);
BLITZ_MAP_DEFINE(map_chunks, double, BLITZ_CHUNKS(const double, c, k), c[0] + (double)c_n,
                 (size_t, k));
BLITZ_MAP_IN_PLACE_DEFINE(axpy, double, y, y + a * x[i], (double, a), (const double *, x));
BLITZ_SCATTER_DEFINE(scatter, int, BLITZ_EACH(size_t, to), to, (int)i);
BLITZ_FILTER_DEFINE(filter, BLITZ_EACH(int, x), x > limit, (int, limit));
BLITZ_FILTER_MAP_DEFINE(filter_map, size_t, BLITZ_CHAIN(int, x), x > 0, i);
BLITZ_PARTITION_DEFINE(partition, BLITZ_EACH(struct item, it), it.key > 0);
BLITZ_OFFSETS_DEFINE(offsets, BLITZ_EACH(struct item, it), (size_t)it.weight);
BLITZ_FLATTEN_DEFINE(flatten, double, BLITZ_EACH(const double *, row), row);
BLITZ_SUM_DEFINE(sum, double, BLITZ_EACH(double, x), x);
BLITZ_SUM_DEFINE(sum_int, int, BLITZ_EACH(int, x), x);
BLITZ_DOT_DEFINE(dot, double);
BLITZ_DOT_DEFINE(dot_float, float);
BLITZ_COUNT_DEFINE(count, BLITZ_EACH(int, x), x > limit, (int, limit));
BLITZ_MIN_DEFINE(min, double, BLITZ_EACH(double, x), x);
BLITZ_MAX_DEFINE(max_int, int, BLITZ_EACH(int, x), x);
BLITZ_MIN_BY_DEFINE(min_by, const char *, a, b, strcmp(a, b) < 0);
BLITZ_MAX_BY_DEFINE(max_by, struct item, a, b, a.key < b.key);
BLITZ_MIN_BY_KEY_DEFINE(min_by_key, int, BLITZ_EACH_AT(const struct item, it), it->key);
BLITZ_MAX_BY_KEY_DEFINE(max_by_key, double, BLITZ_ZIP(double, a, double, b), a - b);
BLITZ_REDUCE_DEFINE(product, double, 1, BLITZ_EACH(double, x), x, a, b, a *b);
BLITZ_FOLD_DEFINE(histogram, struct counts, acc, memset(acc, 0, sizeof *acc),
                  BLITZ_EACH(unsigned char, x), acc->of[x]++, right, counts_add(acc, right));
BLITZ_ANY_DEFINE(any, BLITZ_EACH(double, x), x != x);
BLITZ_ALL_DEFINE(is_sorted, BLITZ_WINDOWS(const int, w, 2), w[0] <= w[1]);
BLITZ_FIND_ANY_DEFINE(find_any, BLITZ_EACH(int, x), x == wanted, (int, wanted));
BLITZ_FIND_FIRST_DEFINE(find_first, BLITZ_CHAIN(int, x), x == wanted, (int, wanted));
BLITZ_FIND_LAST_DEFINE(find_last, BLITZ_CHAIN(int, x), x == wanted, (int, wanted));
BLITZ_POSITION_DEFINE(position, int);
BLITZ_TRY_FOR_EACH_DEFINE(try_for_each, BLITZ_ZIP(int, a, int, b), a > b ? -ERANGE : 0);
BLITZ_TRY_REDUCE_DEFINE(try_reduce, long, 0, BLITZ_EACH(const char *, s), v, read_number(s, v), a,
                        b, a + b);

/* Makes the compiler keep them. */
#define KEEP(fn) (void (*)(void)) fn
extern void (*const kept[])(void);
void (*const kept[])(void) = {
    KEEP(for_each),       KEEP(map),        KEEP(map_zip),   KEEP(map_zip3),     KEEP(map_chain),
    KEEP(map_windows),    KEEP(map_chunks), KEEP(axpy),      KEEP(scatter),      KEEP(filter),
    KEEP(filter_map),     KEEP(partition),  KEEP(offsets),   KEEP(flatten),      KEEP(sum),
    KEEP(sum_int),        KEEP(dot),        KEEP(dot_float), KEEP(count),        KEEP(min),
    KEEP(max_int),        KEEP(min_by),     KEEP(max_by),    KEEP(min_by_key),   KEEP(max_by_key),
    KEEP(product),        KEEP(histogram),  KEEP(any),       KEEP(is_sorted),    KEEP(find_any),
    KEEP(find_first),     KEEP(find_last),  KEEP(position),  KEEP(try_for_each), KEEP(try_reduce),
    KEEP(map_interleave), KEEP(map_rev),    KEEP(map_step),
};
