/*
 * binary_view.c - several binaries as pieces for one write.
 *
 * One block: the header, a piece for each part, a reference for each part. A view never refers to another view, so a chain of
 * slices does not grow.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "blitz/binary_view.h"

struct blitz_binary_view {
    size_t size, count;
    size_t bytes; /* of the block */
    blitz_allocator alloc;
    blitz_binary **parts; /* behind the pieces */
    blitz_piece pieces[];
};

static blitz_binary_view *view_alloc(size_t room)
{
    struct bz_machine *m = bz_machine_self();
    const blitz_allocator *from = m != NULL ? &m->rt->alloc : &bz_allocator_libc;
    if (room > SIZE_MAX / 4 / sizeof(blitz_piece))
        return NULL;
    size_t bytes =
        sizeof(blitz_binary_view) + room * (sizeof(blitz_piece) + sizeof(blitz_binary *));
    blitz_binary_view *v = bz_alloc(from, bytes, _Alignof(max_align_t));
    if (v == NULL)
        return NULL;
    *v = (blitz_binary_view){.bytes = bytes, .alloc = *from};
    v->parts = (blitz_binary **)(void *)(v->pieces + room);
    return v;
}

static void add(blitz_binary_view *v, blitz_binary *part, void *data, size_t bytes)
{
    if (bytes == 0)
        return;
    v->pieces[v->count] = (blitz_piece){data, bytes};
    v->parts[v->count++] = blitz_binary_ref(part);
    v->size += bytes;
}

int blitz_binary_view_new(blitz_binary *const *parts, size_t count, blitz_binary_view **out)
{
    size_t all = 0;
    for (size_t i = 0; i < count; i++) {
        if (blitz_binary_size(parts[i]) > SIZE_MAX - all)
            return -EOVERFLOW;
        all += blitz_binary_size(parts[i]);
    }
    blitz_binary_view *v = view_alloc(count);
    if (v == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        add(v, parts[i], (void *)(uintptr_t)blitz_binary_data(parts[i]),
            blitz_binary_size(parts[i]));
    *out = v;
    return 0;
}

int blitz_binary_view_slice(const blitz_binary_view *of, size_t at, size_t size,
                            blitz_binary_view **out)
{
    if (at > of->size || size > of->size - at)
        return -EINVAL;
    blitz_binary_view *v = view_alloc(of->count);
    if (v == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < of->count && size > 0; i++) {
        const blitz_piece *p = &of->pieces[i];
        size_t skip = at < p->bytes ? at : p->bytes;
        size_t take = p->bytes - skip < size ? p->bytes - skip : size;
        add(v, of->parts[i], (char *)p->data + skip, take);
        at -= skip;
        size -= take;
    }
    *out = v;
    return 0;
}

void blitz_binary_view_unref(blitz_binary_view *view)
{
    if (view == NULL)
        return;
    for (size_t i = 0; i < view->count; i++)
        blitz_binary_unref(view->parts[i]);
    blitz_allocator alloc = view->alloc;
    bz_free(&alloc, view, view->bytes);
}

size_t blitz_binary_view_size(const blitz_binary_view *view)
{
    return view->size;
}

const blitz_piece *blitz_binary_view_pieces(const blitz_binary_view *view, size_t *count)
{
    *count = view->count;
    return view->pieces;
}

int blitz_binary_view_flatten(const blitz_binary_view *view, blitz_binary **out)
{
    blitz_binary *b;
    int err = blitz_binary_new(view->size, &b);
    if (err != 0)
        return err;
    char *to = blitz_binary_bytes(b);
    for (size_t i = 0; i < view->count; i++) {
        memcpy(to, view->pieces[i].data, view->pieces[i].bytes);
        to += view->pieces[i].bytes;
    }
    *out = b;
    return 0;
}
