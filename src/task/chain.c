/*
 * chain.c - check the invariant of a chain of entries. The design is in chain.h.
 */
#include "task/chain.h"

void bz_entries_check(const struct bz_entries *c)
{
    size_t count = 0;
    bz_entry last = 0;
    for (bz_entry e = c->first; e != 0; e = bz_get(bz_entry_link(e))) {
        last = e;
        count++;
        BZ_CHECK(count <= c->count, "entries %p: more than the %zu it says", (const void *)c,
                 c->count);
    }
    BZ_CHECK(count == c->count, "entries %p: %zu links, says %zu", (const void *)c, count,
             c->count);
    BZ_CHECK(last == c->last, "entries %p: ends at %zx, says %zx", (const void *)c, (size_t)last,
             (size_t)c->last); /* I1 */
}
