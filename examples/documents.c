/* documents.c - a store of documents as an actor with a private heap: handlers allocate, no call frees anything. */
#include <stdio.h>
#include <string.h>

#include "blitz.h"

/* A document in a search tree. Values are never changed: an update makes new nodes from the root to the document. */
struct doc {
    const struct doc *left, *right;
    char *title;
    long version;
};
BLITZ_VALUE_TYPE(documents_doc, struct doc, left, right, title);

/* The state of the actor. Between two messages its pointers are all that refers to the heap. */
struct store {
    const struct doc *docs;
    long updates;
};
BLITZ_TYPE(documents_store, struct store, docs);

struct title {
    char text[32];
};

enum { PUT, GET };

/* A new tree with the next version of a document; NULL: no memory, and the actor ends behind its handler. */
static const struct doc *put(const struct doc *at, const char *title)
{
    struct doc next = {.version = 1};
    if (at == NULL) {
        next.title = blitz_actor_string(title);
    } else {
        int order = strcmp(title, at->title);
        next = *at;
        next.version += order == 0;
        if (order < 0)
            next.left = put(at->left, title);
        else if (order > 0)
            next.right = put(at->right, title);
    }
    return (const struct doc *)blitz_actor_copy(&documents_doc, 0, &next);
}

BLITZ_HANDLER(on_put, struct store, struct title)
{
    (void)m;
    state->docs = put(state->docs, data->text);
    state->updates++;
    return 0;
}

BLITZ_HANDLER(on_get, struct store, struct title)
{
    const struct doc *at = state->docs;
    int order;
    while (at != NULL && (order = strcmp(data->text, at->title)) != 0)
        at = order < 0 ? at->left : at->right;
    long version = at != NULL ? at->version : 0;
    return blitz_actor_reply(m->reply, &version, sizeof version);
}

static const blitz_handler handlers[] = {BLITZ_ON(PUT, struct title, on_put),
                                         BLITZ_ON(GET, struct title, on_get)};
static const blitz_behaviour documents = {.name = "documents",
                                          .state_bytes = sizeof(struct store),
                                          .handlers = handlers,
                                          .handler_count = 2,
                                          .state_type = &documents_store,
                                          .heap_max = 16 << 20};

static int program(void *arg)
{
    enum { DOCS = 1000, UPDATES = 200000 };
    struct title title;
    blitz_actor_id store;
    long version = 0, sum = 0;
    (void)arg;
    int rc = blitz_actor_spawn(&documents, NULL, NULL, &store);
    for (int i = 0; i < UPDATES && rc == 0; i++) {
        snprintf(title.text, sizeof title.text, "document %d", i * 7919 % DOCS);
        rc = blitz_actor_send(store, PUT, &title, sizeof title);
    }
    for (int i = 0; i < DOCS && rc >= 0; i++) {
        snprintf(title.text, sizeof title.text, "document %d", i);
        rc = blitz_actor_call(store, GET, &title, sizeof title, &version, sizeof version,
                              BLITZ_FOREVER);
        sum += version;
    }
    if (rc >= 0)
        printf("%ld updates of %d documents, all in a heap of at most 16 MiB\n", sum, DOCS);
    return rc >= 0 && sum == UPDATES ? 0 : 1;
}

int main(void)
{
    return blitz_run(program, NULL, NULL);
}
