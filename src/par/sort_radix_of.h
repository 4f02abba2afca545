/*
 * sort_radix_of.h - the radix sort for one width of number. Included only by sort_radix.c, once for
 * each, with KEY, SIGNED, BITS and NAMED defined; sort_radix.c has the essay.
 */

/* The memory may be declared as floating-point numbers. */
typedef KEY __attribute__((may_alias)) NAMED(key);

/* A number x becomes x ^ top, and if it is negative ^ rest, too. */
struct NAMED(flips) {
    KEY top, rest;
};

static inline KEY NAMED(to_key)(KEY x, const struct NAMED(flips) * f)
{
    return x ^ f->top ^ ((KEY)((SIGNED)x >> (BITS - 1)) & f->rest);
}

static inline KEY NAMED(from_key)(KEY k, const struct NAMED(flips) * f)
{
    KEY x = k ^ f->top;
    return x ^ ((KEY)((SIGNED)x >> (BITS - 1)) & f->rest);
}

/* ---- by comparison, for small arrays and without memory ---- */

BLITZ_SORT_INLINE_ int NAMED(number_less)(const void *a, const void *b, void *ctx)
{
    const struct NAMED(flips) *f = ctx;
    return NAMED(to_key)(*(const NAMED(key) *)a, f) < NAMED(to_key)(*(const NAMED(key) *)b, f);
}
FUNCTIONS(NAMED(numbers), sizeof(KEY), 1, NAMED(number_less))
static const struct blitz_sort_kernel_ NAMED(number_kernel) = KERNEL(NAMED(numbers), sizeof(KEY),
                                                                     NAMED(number_less));

BLITZ_SORT_INLINE_ int NAMED(key_less)(const void *a, const void *b, void *ctx)
{
    (void)ctx;
    return *(const NAMED(key) *)a < *(const NAMED(key) *)b;
}
FUNCTIONS(NAMED(keys), sizeof(KEY), 1, NAMED(key_less))
static const struct blitz_sort_kernel_ NAMED(key_kernel) = KERNEL(NAMED(keys), sizeof(KEY),
                                                                  NAMED(key_less));

static const struct blitz_sort_kernel_ *NAMED(kernel)(const struct NAMED(flips) * f)
{
    return f->top == 0 ? &NAMED(key_kernel) : &NAMED(number_kernel);
}

static void NAMED(sort_keys)(NAMED(key) * v, size_t n)
{
    NAMED(key_kernel).sort(v, n, NULL, bz_sort_limit(n + 1), NULL);
}

/* ---- a bucket ---- */

static unsigned NAMED(top_bit)(KEY diff)
{
    return 63 - (unsigned)__builtin_clzll(diff);
}

/* The bits that differ within v. */
static KEY NAMED(differs)(const NAMED(key) * v, size_t n)
{
    KEY diff = 0, first = v[0];
    for (size_t i = 1; i < n; i++)
        diff |= v[i] ^ first;
    return diff;
}

static void NAMED(pass)(const NAMED(key) * from, NAMED(key) * to, size_t n, unsigned shift,
                        uint32_t *place)
{
    for (size_t i = 0; i < n; i++)
        to[place[from[i] >> shift & (BZ_RADIX_VALUES - 1)]++] = from[i];
}

/* Convert counts to positions. */
static void NAMED(places)(uint32_t *count)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < BZ_RADIX_VALUES; i++) {
        uint32_t here = count[i];
        count[i] = sum;
        sum += here;
    }
}

/* Insertion-sort the keys of `from` to `to`; they are nearly sorted, or quicksort takes over
 * (R2). */
static void NAMED(insert)(const NAMED(key) * from, NAMED(key) * to, size_t n)
{
    size_t moves = 0;
    for (size_t i = 0; i < n; i++) {
        KEY x = from[i];
        size_t j = i;
        for (; j > 0 && to[j - 1] > x; j--)
            to[j] = to[j - 1];
        to[j] = x;
        moves += i - j;
        if (moves > 8 * n) {
            memcpy(to + i + 1, from + i + 1, (n - i - 1) * sizeof *to);
            NAMED(sort_keys)(to, n);
            return;
        }
    }
}

/* Sort the keys of `from` into `to`; both are modified. */
static void NAMED(leaf)(NAMED(key) * from, NAMED(key) * to, size_t n)
{
    uint32_t high[BZ_RADIX_VALUES], low[BZ_RADIX_VALUES];
    KEY diff = n <= BZ_RADIX_FEW ? 0 : NAMED(differs)(from, n);
    if (diff == 0) {
        memcpy(to, from, n * sizeof *to);
        if (n > 1 && n <= BZ_RADIX_FEW)
            NAMED(sort_keys)(to, n);
        return;
    }
    unsigned top = NAMED(top_bit)(diff) + 1;
    unsigned high_shift = top > BZ_RADIX_DIGIT ? top - BZ_RADIX_DIGIT : 0;
    unsigned low_shift = top > 2 * BZ_RADIX_DIGIT ? top - 2 * BZ_RADIX_DIGIT : 0;
    memset(high, 0, sizeof high);
    memset(low, 0, sizeof low);
    for (size_t i = 0; i < n; i++) {
        high[from[i] >> high_shift & (BZ_RADIX_VALUES - 1)]++;
        low[from[i] >> low_shift & (BZ_RADIX_VALUES - 1)]++;
    }
    NAMED(places)(high);
    NAMED(places)(low);
    NAMED(pass)(from, to, n, low_shift, low);
    NAMED(pass)(to, from, n, high_shift, high);
    if (low_shift == 0)
        memcpy(to, from, n * sizeof *to);
    else
        NAMED(insert)(from, to, n);
}

/* ---- the whole ---- */

/* One round over n numbers or keys. `at` has (chunks + 1) rows of `values` counts. */
struct NAMED(round) {
    NAMED(key) * v, *other;
    size_t n, chunks, values;
    unsigned shift;
    KEY high;                /* the common bits above the digit, if only the digit differs */
    struct NAMED(flips) in;  /* converts the content of v to keys; nothing in later rounds */
    struct NAMED(flips) out; /* converts keys to the final content of v */
    KEY diff[BZ_SORT_CHUNKS_MAX];
    size_t *at;
    const blitz_allocator *memory;
    bool is_shielded; /* the call's */
};

static int NAMED(find_diff)(size_t i, void *arg)
{
    struct NAMED(round) *r = arg;
    size_t at = bz_sort_part(r->n, r->chunks, i), end = bz_sort_part(r->n, r->chunks, i + 1);
    KEY diff = 0, first = NAMED(to_key)(r->v[0], &r->in);
    for (; at < end; at++)
        diff |= NAMED(to_key)(r->v[at], &r->in) ^ first;
    r->diff[i] = diff;
    return 0;
}

static int NAMED(count)(size_t i, void *arg)
{
    struct NAMED(round) *r = arg;
    size_t at = bz_sort_part(r->n, r->chunks, i), end = bz_sort_part(r->n, r->chunks, i + 1);
    size_t *count = r->at + i * r->values, mask = r->values - 1;
    memset(count, 0, r->values * sizeof *count);
    for (; at < end; at++)
        count[NAMED(to_key)(r->v[at], &r->in) >> r->shift & mask]++;
    return 0;
}

/* Convert counts to positions: the first chunk's first digit, the second chunk's first digit, ...
 * The last row gets the end of each digit. */
static void NAMED(place_all)(struct NAMED(round) * r)
{
    size_t sum = 0;
    for (size_t d = 0; d < r->values; d++) {
        for (size_t i = 0; i < r->chunks; i++) {
            size_t here = r->at[i * r->values + d];
            r->at[i * r->values + d] = sum;
            sum += here;
        }
        r->at[r->chunks * r->values + d] = sum;
    }
}

static int NAMED(distribute)(size_t i, void *arg)
{
    struct NAMED(round) *r = arg;
    size_t at = bz_sort_part(r->n, r->chunks, i), end = bz_sort_part(r->n, r->chunks, i + 1);
    size_t *place = r->at + i * r->values, mask = r->values - 1;
    for (; at < end; at++) {
        KEY k = NAMED(to_key)(r->v[at], &r->in);
        r->other[place[k >> r->shift & mask]++] = k;
    }
    return 0;
}

static void NAMED(flip_back)(const struct NAMED(round) * r, size_t at, size_t end)
{
    if (r->out.top != 0)
        for (; at < end; at++)
            r->v[at] = NAMED(from_key)(r->v[at], &r->out);
}

/* No bit below the digit differs: write elements [at, end) from the counts. */
static int NAMED(write_part)(size_t i, void *arg)
{
    const struct NAMED(round) *r = arg;
    const size_t *ends = r->at + r->chunks * r->values;
    size_t at = bz_sort_part(r->n, r->chunks, i), end = bz_sort_part(r->n, r->chunks, i + 1);
    size_t d = 0;
    for (; at < end; d++)
        for (KEY x = NAMED(from_key)(r->high | (KEY)d, &r->out); at < end && at < ends[d]; at++)
            r->v[at] = x;
    return 0;
}

static int NAMED(sort_round)(struct NAMED(round) * r);

/* Buckets [from, to) of a round. */
struct NAMED(buckets) {
    struct NAMED(round) * of;
    size_t from, to;
};

static int NAMED(sort_bucket)(struct NAMED(round) * r, size_t at, size_t n)
{
    int err = 0;
    BLITZ_POLL();
    if (n > 0 && bz_sort_is_stopped(r->is_shielded)) {
        memcpy(r->v + at, r->other + at, n * sizeof *r->v);
        err = -ECANCELED;
    } else if (n > BZ_RADIX_LEAF) {
        struct NAMED(round) next = {.v = r->v + at, .other = r->other + at, .n = n};
        bz_sort_copy(next.v, r->other + at, n * sizeof *next.v);
        next.memory = r->memory;
        next.is_shielded = r->is_shielded;
        err = NAMED(sort_round)(&next);
    } else if (n > 0) {
        NAMED(leaf)(r->other + at, r->v + at, n);
    }
    NAMED(flip_back)(r, at, at + n);
    return err;
}

static int NAMED(sort_buckets)(void *arg)
{
    struct NAMED(buckets) *b = arg;
    const size_t *ends = b->of->at + b->of->chunks * b->of->values;
    size_t begin = b->from == 0 ? 0 : ends[b->from - 1], end = ends[b->to - 1];
    if (b->to - b->from == 1 || begin == end)
        return NAMED(sort_bucket)(b->of, begin, end - begin);
    size_t middle = b->from + (b->to - b->from) / 2;
    struct NAMED(buckets) left = {b->of, b->from, middle}, right = {b->of, middle, b->to};
    blitz_job job;
    blitz_fork(&job, NAMED(sort_buckets), &right);
    int err = NAMED(sort_buckets)(&left);
    int other = blitz_join(&job);
    return err != 0 ? err : other;
}

static int NAMED(sort_all)(struct NAMED(round) * r)
{
    struct NAMED(buckets) all = {r, 0, r->values};
    (void)!bz_sort_each(r->chunks, NAMED(count), r); /* all always return 0 */
    NAMED(place_all)(r);
    if (bz_sort_is_stopped(r->is_shielded))
        return -ECANCELED;
    if (r->shift == 0) {
        r->high = NAMED(to_key)(r->v[0], &r->in) & ~(KEY)(r->values - 1);
        (void)!bz_sort_each(r->chunks, NAMED(write_part), r);
        return 0;
    }
    (void)!bz_sort_each(r->chunks, NAMED(distribute), r);
    return NAMED(sort_buckets)(&all);
}

static int NAMED(sort_round)(struct NAMED(round) * r)
{
    KEY diff = 0;
    r->chunks = bz_sort_chunks(r->n);
    (void)!bz_sort_each(r->chunks, NAMED(find_diff), r); /* always returns 0 */
    for (size_t i = 0; i < r->chunks; i++)
        diff |= r->diff[i];
    if (diff == 0)
        return 0;
    unsigned top = NAMED(top_bit)(diff) + 1, bits = digit_bits(r->n);
    r->shift = top > bits ? top - bits : 0;
    r->values = (size_t)1 << bits;
    size_t bytes = (r->chunks + 1) * r->values * sizeof *r->at;
    r->at = bz_alloc(r->memory, bytes, BZ_LINE);
    if (r->at == NULL) {
        bool is_ours = bz_sort_shield(r->is_shielded);
        int result = bz_sort_here(NAMED(kernel)(&r->in), r->v, r->n, &r->in);
        if (is_ours)
            blitz_unshield();
        return result;
    }
    int err = NAMED(sort_all)(r);
    bz_free(r->memory, r->at, bytes);
    return err;
}

/* Small enough for one leaf. */
static void NAMED(sort_one)(NAMED(key) * v, NAMED(key) * other, size_t n,
                            const struct NAMED(flips) * f)
{
    struct NAMED(round) r = {.v = v, .out = *f};
    for (size_t i = 0; i < n; i++)
        other[i] = NAMED(to_key)(v[i], f);
    NAMED(leaf)(other, v, n);
    NAMED(flip_back)(&r, 0, n);
}

static int NAMED(sort_radix)(NAMED(key) * v, size_t n, struct NAMED(flips) * f)
{
    const blitz_allocator *memory = bz_sort_allocator();
    NAMED(key) *other = bz_alloc(memory, n * sizeof *other, BZ_LINE);
    int err = 0;
    if (other == NULL)
        return bz_sort_here(NAMED(kernel)(f), v, n, f);
    if (n <= BZ_RADIX_LEAF / 2) {
        NAMED(sort_one)(v, other, n, f);
    } else {
        struct NAMED(round) r = {.v = v, .other = other, .n = n, .in = *f, .out = *f};
        r.memory = memory;
        r.is_shielded = bz_par_is_shielded();
        err = NAMED(sort_round)(&r);
    }
    bz_free(memory, other, n * sizeof *other);
    return err;
}

struct NAMED(call) {
    NAMED(key) * v;
    size_t n;
    const struct NAMED(flips) * flips;
};

static int NAMED(sort_numbers)(void *arg)
{
    struct NAMED(call) *c = arg;
    struct NAMED(flips) flips = *c->flips;
    const struct blitz_sort_kernel_ *k = NAMED(kernel)(&flips);
    if (c->n < BZ_RADIX_MIN)
        return bz_sort_here(k, c->v, c->n, &flips);
    if (bz_sort_is_run(k, c->v, c->n, 0, &flips))
        return 0;
    if (bz_sort_is_run(k, c->v, c->n, 1, &flips)) {
        bz_sort_reverse(c->v, c->n, sizeof *c->v);
        return 0;
    }
    return NAMED(sort_radix)(c->v, c->n, &flips);
}

static int NAMED(sort)(NAMED(key) * v, size_t n, const struct NAMED(flips) * f)
{
    struct NAMED(call) c = {v, n, f};
    int err = bz_sort_check(v, n, sizeof *v);
    return err != 0 ? err : bz_sort_call(n, NAMED(sort_numbers), &c);
}
