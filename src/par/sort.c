/*
 * sort.c - the unstable sort: splitting and forking.
 *
 * Quicksort over a kernel (blitz/sort_core.h). First the array is checked for a single run: a
 * rising run is done, a falling one is reversed. Otherwise it is split, one part is forked and the
 * other sorted. A fork that is not stolen costs a nanosecond, so every part above BZ_SORT_LEAF is
 * forked. A first split by one worker would leave the others idle for a third of the time (ten
 * million elements have 23 levels, of which two workers do 22 together). So the first splits, while
 * there are fewer parts than twice the workers, are parallel themselves (sort_wide.c).
 *
 * Rejected: a sample sort through a buffer as large as the array. It saves passes over memory, but
 *           must allocate, which may fail. For numbers, where it pays most, the radix sort is
 *           better (sort_radix.c).
 *
 * S1  Every part is sorted or left alone; so if a sort ends early, the array is a permutation.
 * S2  A split leaves less than 7/8 or uses up one of `limit`. So jobs nest at most log(n) /
 *     log(8/7) + log2(n) deep, 90 frames for ten million elements; in practice about 15.
 */
#include "par/sort.h"

#include <errno.h>

#include "blitz/task.h"
#include "blitz/yield.h"
#include "proc/retire.h"
#include "proc/state.h"

unsigned bz_sort_procs(void)
{
    struct bz_machine *m = bz_machine_self();
    return m != NULL ? bz_procs_active(m->rt) : 1;
}

const blitz_allocator *bz_sort_allocator(void)
{
    struct bz_machine *m = bz_machine_self();
    return m != NULL ? &m->rt->alloc : &bz_allocator_libc;
}

int bz_sort_check(const void *base, size_t n, size_t size)
{
    return size == 0 || n > PTRDIFF_MAX / size || (base == NULL && n > 0) ? -EINVAL : 0;
}

/* Shared by all parts of one call. */
struct whole {
    const struct blitz_sort_kernel_ *k;
    void *ctx;
    size_t wide; /* all workers split longer parts together */
    bool is_shielded;
};

struct part {
    const struct whole *of;
    unsigned char *v;
    size_t n;
    const void *before; /* a lower bound of the part's elements, or NULL */
    unsigned limit;
};

static size_t split(const struct part *p, int are_equal)
{
    const struct blitz_sort_kernel_ *k = p->of->k;
    unsigned char *rest = p->v + k->size;
    if (p->n > p->of->wide)
        return bz_sort_split(k, rest, p->n - 1, p->v, are_equal, p->of->ctx);
    return k->split(rest, p->n - 1, p->v, are_equal, p->of->ctx);
}

static int sort_part(void *arg);

/* Sort both sides of a split whose pivot is in its place. */
static int sort_sides(struct part *p, size_t front)
{
    size_t size = p->of->k->size, back = p->n - 1 - front;
    unsigned char *middle = p->v + front * size;
    bool is_bad = (front < back ? front : back) < p->n / 8;
    unsigned limit = p->limit - is_bad;
    struct part left = {p->of, p->v, front, p->before, limit};
    struct part right = {p->of, middle + size, back, middle, limit};
    blitz_job job;
    blitz_fork(&job, sort_part, front < back ? &right : &left);
    int err = sort_part(front < back ? &left : &right);
    int other = blitz_join(&job);
    return err != 0 ? err : other;
}

static int sort_part(void *arg)
{
    struct part *p = arg;
    const struct blitz_sort_kernel_ *k = p->of->k;
    while (p->n > BZ_SORT_LEAF && p->limit > 0) {
        if (bz_sort_is_stopped(p->of->is_shielded))
            return -ECANCELED;
        BLITZ_POLL();
        blitz_sort_swap_(p->v, k->pivot(p->v, p->n, p->of->ctx), k->size);
        if (p->before == NULL || k->less(p->before, p->v, p->of->ctx)) {
            size_t front = split(p, 0);
            blitz_sort_swap_(p->v, p->v + front * k->size, k->size);
            return sort_sides(p, front);
        }
        size_t equal = 1 + split(p, 1); /* they are in their places */
        p->limit -= equal < p->n / 8;
        p->v += equal * k->size;
        p->n -= equal;
    }
    k->sort(p->v, p->n, p->before, p->limit, p->of->ctx);
    return 0;
}

int bz_sort_here(const struct blitz_sort_kernel_ *k, void *v, size_t n, void *ctx)
{
    if (n < 2 || bz_sort_is_run(k, v, n, 0, ctx))
        return 0;
    if (bz_sort_is_run(k, v, n, 1, ctx)) {
        bz_sort_reverse(v, n, k->size);
        return 0;
    }
    unsigned procs = bz_sort_procs();
    size_t wide = n / (2 * procs);
    struct whole all = {k, ctx, wide < BZ_SORT_CHUNK_MIN ? BZ_SORT_CHUNK_MIN : wide,
                        bz_par_is_shielded()};
    if (procs < 2)
        all.wide = n;
    struct part p = {&all, v, n, NULL, bz_sort_limit(n)};
    return sort_part(&p);
}

struct call {
    const struct blitz_sort_kernel_ *k;
    void *v;
    size_t n;
    void *ctx;
};

static int sort_here(void *arg)
{
    const struct call *c = arg;
    return bz_sort_here(c->k, c->v, c->n, c->ctx);
}

int blitz_sort_with_(const struct blitz_sort_kernel_ *k, void *v, size_t n, void *ctx)
{
    struct call c = {k, v, n, ctx};
    int err = bz_sort_check(v, n, k->size);
    return err != 0 ? err : bz_sort_call(n, sort_here, &c);
}
