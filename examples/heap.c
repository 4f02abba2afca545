/* heap.c - a store of documents in a private heap: new versions share what did not change, and no call frees anything. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blitz.h"

/* A document in a search tree. Values are never changed: an update makes new nodes from the root to the document. */
struct doc {
    const struct doc *left, *right;
    char *title;
    long version;
};
BLITZ_VALUE_TYPE(doc_type, struct doc, left, right, title);

/* The state of the store. It is outside the heap; its pointers are always roots. */
struct store {
    const struct doc *docs;
    char *last;
};
BLITZ_TYPE(store_type, struct store, docs, last);

static void *need(void *object)
{
    if (object == NULL) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    return object;
}

static const struct doc *put(blitz_heap *heap, const struct doc *at, char *title, long version)
{
    struct doc new = {.title = title, .version = version};
    if (at != NULL) {
        int order = strcmp(title, at->title);
        new = *at;
        if (order < 0)
            new.left = put(heap, at->left, title, version);
        else if (order > 0)
            new.right = put(heap, at->right, title, version);
        else
            new.version = version;
    }
    return (const struct doc *)need(blitz_heap_copy(heap, &doc_type, 0, &new));
}

static long count(const struct doc *at)
{
    return at == NULL ? 0 : 1 + count(at->left) + count(at->right);
}

int main(void)
{
    struct store store = {NULL, NULL};
    blitz_heap *heap;
    if (blitz_heap_new(&(blitz_heap_opts){.root = &store, .root_type = &store_type}, &heap) != 0)
        return 1;
    unsigned next = 1;
    for (long version = 1; version <= 200000; version++) {
        char title[32];
        next = next * 1103515245u + 12345u;
        (void)snprintf(title, sizeof title, "document %03u", (next >> 16) % 1000);
        store.last = (char *)need(blitz_heap_string(heap, title));
        store.docs = put(heap, store.docs, store.last, version);
        if (blitz_heap_tidy(heap, NULL, 0) !=
            0) /* between two requests: nothing else points to the heap */
            return 1;
    }
    blitz_heap_info info;
    if (blitz_heap_collect(heap, NULL, 0) != 0)
        return 1;
    blitz_heap_info_get(heap, &info);
    printf("%ld documents, the last one is '%s'\n", count(store.docs), store.last);
    printf("%zu KiB live, %zu KiB held, %llu collections\n", info.live_bytes / 1024,
           info.held_bytes / 1024, (unsigned long long)info.full + info.minor);
    blitz_heap_unref(heap);
    return 0;
}
