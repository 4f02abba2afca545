/*
 * sort_strings.c - sort strings in the order of strcmp.
 *
 * To compare two strings, both must be loaded from memory, and a string sort mostly waits for these
 * loads. So eight bytes of each string are loaded once and sorted with the pointer, as a number
 * that has the same order. Strings that agree in them are a *group*: the next eight bytes of its
 * strings are loaded, and so on. So a common prefix (a path, a date) is read once, eight bytes at a
 * time, instead of in every comparison. Small groups are sorted by strcmp. Without memory for the
 * numbers the pointers are sorted by strcmp.
 *
 * T1  head: bytes from the highest down, 0 after the string's end. Its lowest byte is 0 exactly if
 *     the
 *     string ends within it; then strings with equal heads are equal.
 * T2  The largest subgroup of a group is processed in a loop, and the others, at most half as long,
 *     by calls. So calls nest at most log2(n) deep for strings of any length.
 */
#include "par/sort.h"

#include <errno.h>
#include <string.h>

enum { FEW = 16, RANGE = 2048 };

struct string {
    uint64_t head; /* T1 */
    char *text;
};

/* Strings that agree in `depth` bytes; their heads are the eight after them. */
struct group {
    struct string *v;
    size_t n, depth;
    bool is_shielded; /* the call's */
};

static inline int head_less(const struct string *a, const struct string *b)
{
    return a->head < b->head;
}

static inline int text_less(char *const *a, char *const *b)
{
    return strcmp(*a, *b) < 0;
}

typedef char *string_text;
BLITZ_SORT_DEFINE(sort_heads, struct string, head_less);
BLITZ_SORT_DEFINE(sort_texts, string_text, text_less);

/* ---- heads ---- */

static uint64_t head_of(const char *text)
{
    uint64_t head = 0;
    for (int i = 0; i < 8; i++) {
        head = head << 8 | (unsigned char)*text;
        text += *text != '\0';
    }
    return head;
}

struct pass {
    struct group g;
    size_t parts;
};

static int fetch_part(size_t i, void *arg)
{
    const struct pass *p = arg;
    size_t end = bz_sort_part(p->g.n, p->parts, i + 1);
    for (size_t at = bz_sort_part(p->g.n, p->parts, i); at < end; at++)
        p->g.v[at].head = head_of(p->g.v[at].text + p->g.depth);
    return 0;
}

static void fetch_heads(const struct group *g)
{
    struct pass p = {*g, bz_sort_pieces(g->n)};
    (void)!bz_sort_each(p.parts, fetch_part, &p); /* always returns 0 */
}

/* ---- groups ---- */

/* The end of the range with the same head as v[i]; the heads are sorted. */
static size_t equal_end(const struct string *v, size_t i, size_t n)
{
    size_t step = 1, from = i; /* v[from] is in the range */
    while (from + step < n && v[from + step].head == v[i].head) {
        from += step;
        step *= 2;
    }
    for (; step > 0; step /= 2)
        if (from + step < n && v[from + step].head == v[i].head)
            from += step;
    return from + 1;
}

static bool goes_on(const struct string *s)
{
    return (s->head & 0xff) != 0; /* T1 */
}

/* The largest group of more than FEW; n is 0 if there is none. */
static struct group largest(const struct group *g)
{
    struct group most = {NULL, FEW, g->depth + 8, g->is_shielded};
    for (size_t i = 0, end; i < g->n; i = end) {
        end = equal_end(g->v, i, g->n);
        if (end - i > most.n && goes_on(&g->v[i])) {
            most.v = g->v + i;
            most.n = end - i;
        }
    }
    most.n = most.v == NULL ? 0 : most.n;
    return most;
}

static BZ_ALWAYS_INLINE int less_from(const void *a, const void *b, void *ctx)
{
    size_t depth = *(const size_t *)ctx;
    return strcmp(((const struct string *)a)->text + depth,
                  ((const struct string *)b)->text + depth) < 0;
}

static BZ_NOINLINE void sort_few(struct group *g)
{
    for (size_t i = 1; i < g->n; i++)
        blitz_sort_insert_((unsigned char *)g->v, i, sizeof *g->v, 1, less_from, &g->depth);
}

static int sort_group(struct group *g);

/* Sort the groups of [from, to), except the one that begins at `but`. */
struct range {
    const struct group *of;
    const struct string *but;
    size_t from, to;
};

static int sort_some(const struct range *r)
{
    int err = 0;
    struct string *v = r->of->v;
    for (size_t i = r->from, end; i < r->to && err == 0; i = end) {
        struct group next = {v + i, 0, r->of->depth + 8, r->of->is_shielded};
        end = equal_end(v, i, r->to);
        next.n = end - i;
        if (next.n == 1 || !goes_on(&v[i]) || &v[i] == r->but)
            continue;
        if (next.n <= FEW) {
            sort_few(&next);
        } else {
            fetch_heads(&next);
            err = sort_group(&next);
        }
    }
    return err;
}

static int sort_range(void *arg)
{
    struct range *r = arg;
    const struct string *v = r->of->v;
    size_t middle = r->from + (r->to - r->from) / 2;
    if (r->to - r->from > RANGE)
        middle = equal_end(v, middle, r->to);
    if (r->to - r->from <= RANGE || middle == r->to)
        return sort_some(r);
    struct range left = {r->of, r->but, r->from, middle}, right = {r->of, r->but, middle, r->to};
    blitz_job job;
    blitz_fork(&job, sort_range, &right);
    int err = sort_range(&left);
    int other = blitz_join(&job);
    return err != 0 ? err : other;
}

static int sort_group(struct group *g)
{
    for (;;) {
        bool is_ours = bz_sort_shield(g->is_shielded);
        int err = sort_heads(g->v, g->n);
        if (is_ours)
            blitz_unshield();
        if (err != 0)
            return err;
        struct group most = largest(g);
        struct range all = {g, most.v, 0, g->n};
        err = sort_range(&all);
        if (err != 0 || most.n == 0)
            return err;
        fetch_heads(&most); /* T2 */
        *g = most;
    }
}

/* ---- the whole ---- */

struct call {
    char **v;
    size_t n, parts;
    struct string *strings;
};

static int take_part(size_t i, void *arg)
{
    const struct call *c = arg;
    size_t end = bz_sort_part(c->n, c->parts, i + 1);
    for (size_t at = bz_sort_part(c->n, c->parts, i); at < end; at++)
        c->strings[at] = (struct string){head_of(c->v[at]), c->v[at]};
    return 0;
}

static int give_part(size_t i, void *arg)
{
    const struct call *c = arg;
    size_t end = bz_sort_part(c->n, c->parts, i + 1);
    for (size_t at = bz_sort_part(c->n, c->parts, i); at < end; at++)
        c->v[at] = c->strings[at].text;
    return 0;
}

static int sort_with_memory(void *arg)
{
    struct call *c = arg;
    const blitz_allocator *memory = bz_sort_allocator();
    c->parts = bz_sort_pieces(c->n);
    c->strings = bz_alloc(memory, c->n * sizeof *c->strings, 16);
    if (c->strings == NULL)
        return sort_texts(c->v, c->n);
    struct group all = {c->strings, c->n, 0, bz_par_is_shielded()};
    (void)!bz_sort_each(c->parts, take_part, c); /* both always return 0 */
    int err = sort_group(&all);
    (void)!bz_sort_each(c->parts, give_part, c);
    bz_free(memory, c->strings, c->n * sizeof *c->strings);
    return err;
}

int blitz_sort_strings(char **v, size_t n)
{
    struct call c = {v, n, 0, NULL};
    int err = bz_sort_check(v, n, sizeof(struct string));
    return err != 0 || n < 2 ? err : bz_sort_call(n, sort_with_memory, &c);
}
