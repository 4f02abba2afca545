/*
 * slab_end.h - the end of a slab whose objects are all free. The library closes its slabs (bz_slab_close), because
 * objects of a runtime may outlive it.
 */
#ifndef T_SLAB_END_H
#define T_SLAB_END_H

#include "base/check.h"
#include "base/slab.h"
#include "base/slab_chunk.h"

/*
 * Destroy a slab. Its owner has flushed, and no thread frees to it any more.
 * Returns: 0, or the number of objects still in use: their chunks are not freed, and leak.
 */
static inline size_t t_slab_fini(struct bz_slab *s)
{
    for (unsigned i = 0; i < BZ_SLAB_HOMES; i++)
        BZ_CHECK(s->batch[i].home == NULL, "slab of %s not flushed", s->kind->name);
    bz_slab_collect(s);
    if (s->current != NULL) {
        bz_list_push_front(&s->partial, &s->current->in);
        s->current = NULL;
    }
    BZ_LIST_FOR_EACH_SAFE (link, &s->partial)
        if (bz_slab_chunk_in(link)->used == 0)
            bz_slab_chunk_free(s, bz_slab_chunk_in(link));
    return s->used;
}

#endif
