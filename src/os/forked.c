/*
 * forked.c - see forked.h.
 *
 * `alive` is ordinary memory: the child has the parent's count. The page is empty in the child. So
 * a count above 0 and an empty page mean that the process was forked while a runtime existed. A
 * child of a process without a runtime has a count of 0. When it makes a runtime, it fills the
 * page.
 *
 * [P] enter: bz_forked_at release -> enter, is_forked: bz_forked_at acquire
 *     the page is mapped and filled before it is used
 */
#define _GNU_SOURCE 1
#include "os/forked.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"

#if !defined(MADV_WIPEONFORK)
#define MADV_WIPEONFORK 18 /* the kernel's, since 4.14 */
#endif

#define WORDS                                                                                 \
    "this process was forked beside a runtime, whose threads are not in it: exec, _exit, or " \
    "fork before the runtime is made"

static bz_forked_word never = 1; /* used if there is no page */
bz_atomic(bz_forked_word *) bz_forked_at = &never;
static bz_atomic(uint32_t) alive; /* runtimes */

/* Map the page, once; without one use a word that never changes. */
static bz_forked_word *page(void)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return &never;
    if (madvise(at, bytes, MADV_WIPEONFORK) == 0)
        return at;
    (void)munmap(at, bytes);
    return &never;
}

void bz_forked_enter(void)
{
    /* [P]; if two threads map a page, both pages work */
    bz_forked_word *at = bz_load_acquire(&bz_forked_at);
    if (at == &never)
        at = page();
    bz_store_relaxed(at, 1);             /* relaxed: only this process and its children read it */
    bz_store_release(&bz_forked_at, at); /* [P] */
    bz_fetch_add_relaxed(&alive, 1);     /* relaxed: likewise */
}

void bz_forked_leave(void)
{
    bz_fetch_sub_relaxed(&alive, 1); /* relaxed: a count */
}

bool bz_forked_confirm(void)
{
    return bz_load_relaxed(&alive) > 0; /* relaxed: a count */
}

void bz_forked_refuse(const char *call)
{
    bz_log_once(BLITZ_LOG_ERROR, "%s: " WORDS, call);
}

void bz_forked_abort(void)
{
    BZ_CHECK(false, WORDS);
    abort();
}
