/*
 * mallocs.h - count every call of malloc and its relatives that the library or the test makes, or make one fail.
 *
 * The linker renames the calls (--wrap, tests/unit/CMakeLists.txt has the list of programs), so this works in
 * a static link and under sanitizers, too. The C library's own calls are not counted. Include it in one file
 * of a program.
 */
#ifndef T_MALLOCS_H
#define T_MALLOCS_H

#include <stdint.h>
#include <stdlib.h>

#include "base/bz_atomic.h"

static bz_atomic(uint64_t) t_mallocs_; /* calls so far, on all threads */

/* Return the number of calls so far. */
static inline uint64_t t_count_mallocs(void)
{
    return bz_load_relaxed(&t_mallocs_); /* relaxed: a count */
}

static inline void t_mallocs_add_(void)
{
    bz_fetch_add_relaxed(&t_mallocs_, 1); /* relaxed: a count */
}

static bz_atomic(uint64_t) t_malloc_fails_; /* the number of the call that fails; 0: none */

/* Make the n-th malloc from now on fail; 0: none. */
static inline void t_fail_malloc(uint64_t n)
{
    bz_store_relaxed(&t_malloc_fails_, n == 0 ? 0 : t_count_mallocs() + n); /* relaxed: a count */
}

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
extern void *__real_malloc(size_t size);
extern void *__real_calloc(size_t count, size_t size);
extern void *__real_realloc(void *old, size_t size);
extern void *__real_aligned_alloc(size_t align, size_t size);
extern int __real_posix_memalign(void **out, size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
int __wrap_posix_memalign(void **out, size_t align, size_t size);

void *__wrap_malloc(size_t size)
{
    t_mallocs_add_();
    uint64_t fails = bz_load_relaxed(&t_malloc_fails_); /* relaxed: a count */
    return fails != 0 && t_count_mallocs() == fails ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    t_mallocs_add_();
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    t_mallocs_add_();
    return __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
    t_mallocs_add_();
    return __real_aligned_alloc(align, size);
}

int __wrap_posix_memalign(void **out, size_t align, size_t size)
{
    t_mallocs_add_();
    return __real_posix_memalign(out, align, size);
}
/* NOLINTEND(bugprone-reserved-identifier) */

#endif
