/*
 * sturdy.c - a key-value actor with a million entries in its private heap. A message finds a NULL in it: the actor ends with a
 * fault, the process does not, and the supervisor starts the actor again.
 *
 *     example_sturdy [ENTRIES [FAULTS]]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blitz.h"

/* An entry in a search tree. Entries are never changed: an update makes new ones from the root to the key. */
struct entry {
    const struct entry *left, *right;
    long key, value;
};
BLITZ_VALUE_TYPE(sturdy_entry, struct entry, left, right);

struct store {
    const struct entry *root;
    long entries; /* part of the state that each start begins with */
};
BLITZ_TYPE(sturdy_store, struct store, root);

struct pair {
    long key, value;
};

enum { PUT, GET, DOUBLE };

static const struct entry *make(const struct entry *left, const struct entry *right, long key,
                                long value)
{
    struct entry new_entry = {left, right, key, value};
    return (const struct entry *)blitz_actor_copy(&sturdy_entry, 0, &new_entry);
}

/* The entries [from, to), each key with itself as its value. */
static const struct entry *load(long from, long to)
{
    if (from >= to)
        return NULL;
    long middle = from + (to - from) / 2;
    const struct entry *left = load(from, middle);
    return make(left, load(middle + 1, to), middle, middle);
}

static const struct entry *put(const struct entry *at, const struct pair *p)
{
    if (at == NULL)
        return make(NULL, NULL, p->key, p->value);
    if (p->key < at->key)
        return make(put(at->left, p), at->right, at->key, at->value);
    if (p->key > at->key)
        return make(at->left, put(at->right, p), at->key, at->value);
    return make(at->left, at->right, p->key, p->value);
}

static const struct entry *find(const struct entry *at, long key)
{
    while (at != NULL && at->key != key)
        at = key < at->key ? at->left : at->right;
    return at;
}

/* A start reads the data again, here from nowhere. */
static int begin(void *state)
{
    struct store *s = (struct store *)state;
    s->root = load(0, s->entries);
    return 0;
}

BLITZ_HANDLER(on_put, struct store, struct pair)
{
    (void)m;
    state->root = put(state->root, data);
    return 0;
}

BLITZ_HANDLER(on_get, struct store, long)
{
    const struct entry *at = find(state->root, *data);
    return at != NULL ? blitz_actor_reply(m->reply, &at->value, sizeof at->value)
                      : blitz_actor_reply_error(m->reply, -ENOENT);
}

/* The mistake: it does not ask whether there is such a key. */
BLITZ_HANDLER(on_double, struct store, long)
{
    const struct entry *volatile at = find(state->root, *data);
    long value = 2 * at->value;
    return blitz_actor_reply(m->reply, &value, sizeof value);
}

static const blitz_handler handlers[] = {BLITZ_ON(PUT, struct pair, on_put),
                                         BLITZ_ON(GET, long, on_get),
                                         BLITZ_ON(DOUBLE, long, on_double)};
static const blitz_behaviour store = {.name = "store",
                                      .state_bytes = sizeof(struct store),
                                      .init = begin,
                                      .handlers = handlers,
                                      .handler_count = 3,
                                      .state_type = &sturdy_store,
                                      .trap_faults = true};

static blitz_actor_id find_store(void)
{
    blitz_actor_id id;
    while ((id = blitz_actor_whereis(NULL, "store")).generation == 0)
        (void)!blitz_sleep(BLITZ_MS); /* it is being started again */
    return id;
}

static int ask(unsigned what, long key, long *value)
{
    return blitz_actor_call(find_store(), what, &key, sizeof key, value, sizeof *value,
                            BLITZ_FOREVER);
}

struct plan {
    long entries, faults;
};

static int program(void *arg)
{
    const struct plan *plan = (const struct plan *)arg;
    const struct store first = {.entries = plan->entries};
    const blitz_child_spec child = {
        .id = "store", .name = "store", .behaviour = &store, .state = &first};
    const blitz_supervisor_plan family = {
        .children = &child, .child_count = 1, .intensity = 1000, .period = BLITZ_S};
    blitz_actor_id top;
    long value = 0, faults = 0;
    int rc = blitz_supervisor_spawn(&family, NULL, &top);
    if (rc != 0)
        return rc;
    for (long i = 0; i < plan->faults; i++) {
        struct pair change = {i, -1};
        if (blitz_actor_send(find_store(), PUT, &change, sizeof change) != 0 ||
            ask(GET, i, &value) < 0 || value != -1)
            return 1;
        if (ask(DOUBLE, plan->entries + 7, &value) == -ESRCH) /* there is no such key */
            faults++;
        if (ask(GET, i, &value) < 0 || value != i) /* as it was at the start */
            return 1;
    }
    printf("%ld faults in a store of %ld entries; the last answer is %ld\n", faults, plan->entries,
           value);
    rc = blitz_actor_stop(top);
    return rc == 0 && faults == plan->faults ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct plan plan = {argc > 1 ? strtol(argv[1], NULL, 10) : 1000000,
                        argc > 2 ? strtol(argv[2], NULL, 10) : 3};
#if !defined(__x86_64__)
    puts("faults cannot be trapped on this architecture");
    return 0;
#endif
    return blitz_run(program, &plan, NULL) == 0 ? 0 : 1;
}
