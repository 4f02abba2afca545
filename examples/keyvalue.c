/*
 * keyvalue.c - a supervised key-value server whose worker crashes, and is started again.
 *
 * Two actors. The store keeps the values; it is small and does nothing dangerous. The worker parses requests, and one kind of
 * request makes it crash. Their supervisor starts the worker again under the same name, so clients find it by name. The store
 * lives on, and nothing is lost.
 *
 *     example_keyvalue
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <blitz.h>

enum { KEYS = 8 };

/* ---- the store ---- */

enum { PUT, GET };

struct pair {
    char key[16];
    long value;
};

struct store {
    struct pair pairs[KEYS];
    int count;
};

static struct pair *find(struct store *s, const char *key)
{
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->pairs[i].key, key) == 0)
            return &s->pairs[i];
    return NULL;
}

BLITZ_HANDLER(on_put, struct store, struct pair)
{
    struct pair *p = find(state, data->key);
    if (p == NULL && state->count == KEYS)
        return blitz_actor_reply_error(m->reply, -ENOSPC);
    if (p == NULL)
        p = &state->pairs[state->count++];
    *p = *data;
    return blitz_actor_reply(m->reply, NULL, 0);
}

BLITZ_HANDLER(on_get, struct store, struct pair)
{
    struct pair *p = find(state, data->key);
    if (p == NULL)
        return blitz_actor_reply_error(m->reply, -ENOENT);
    return blitz_actor_reply(m->reply, &p->value, sizeof p->value);
}

static const blitz_handler store_handlers[] = {BLITZ_ON(PUT, struct pair, on_put),
                                               BLITZ_ON(GET, struct pair, on_get)};
static const blitz_behaviour store = {.name = "store",
                                      .state_bytes = sizeof(struct store),
                                      .handlers = store_handlers,
                                      .handler_count = 2};

/* ---- the worker: "put KEY VALUE", "get KEY", and a line that it cannot handle ---- */

enum { LINE };

struct line {
    char text[48];
};

static int handle_line(const char *text, long *value)
{
    struct pair p = {.value = 0};
    blitz_actor_id to = blitz_actor_whereis(NULL, "store");
    if (sscanf(text, "put %15s %ld", p.key, &p.value) == 2)
        return blitz_actor_call(to, PUT, &p, sizeof p, NULL, 0, blitz_after(BLITZ_S));
    if (sscanf(text, "get %15s", p.key) == 1)
        return blitz_actor_call(to, GET, &p, sizeof p, value, sizeof *value, blitz_after(BLITZ_S));
    return -EBADMSG;
}

BLITZ_HANDLER(on_line, int, struct line)
{
    long value = 0;
    ++*state;
    int rc = handle_line(data->text, &value);
    if (rc == -EBADMSG)
        return blitz_actor_fail(rc, "cannot parse"); /* it crashes; its caller gets -ESRCH */
    if (rc < 0)
        return blitz_actor_reply_error(m->reply, rc);
    return blitz_actor_reply(m->reply, &value, sizeof value);
}

static const blitz_handler worker_handlers[] = {BLITZ_ON(LINE, struct line, on_line)};
static const blitz_behaviour worker = {
    .name = "worker", .state_bytes = sizeof(int), .handlers = worker_handlers, .handler_count = 1};

/* ---- a client ---- */

/* Ask the worker that lives now. */
static int ask(const char *text, long *value)
{
    struct line line = {""};
    blitz_actor_id to;
    strncpy(line.text, text, sizeof line.text - 1);
    while ((to = blitz_actor_whereis(NULL, "worker")).generation == 0)
        blitz_yield(); /* it is being started */
    int rc =
        blitz_actor_call(to, LINE, &line, sizeof line, value, sizeof *value, blitz_after(BLITZ_S));
    printf("%-16s %s\n", text, rc < 0 ? strerror(-rc) : "ok");
    return rc < 0 ? rc : 0;
}

static int program(void *arg)
{
    blitz_child_spec children[] = {{.id = "store", .behaviour = &store, .name = "store"},
                                   {.id = "worker", .behaviour = &worker, .name = "worker"}};
    blitz_supervisor_plan opts = {
        .strategy = BLITZ_REST_FOR_ONE, .children = children, .child_count = 2};
    blitz_supervisor_counts counts;
    blitz_actor_id supervisor;
    long value = 0;
    (void)arg;
    if (blitz_supervisor_spawn(&opts, NULL, &supervisor) != 0)
        return 1;
    int rc = ask("put apples 3", &value);
    if (rc == 0 && ask("nonsense", &value) != -ESRCH)
        rc = 1;
    if (rc == 0)
        rc = ask("get apples", &value);
    if (blitz_supervisor_count(supervisor, &counts) == 0)
        printf("apples: %ld, restarts: %llu\n", value, (unsigned long long)counts.restarts);
    return rc != 0 || value != 3;
}

int main(void)
{
    return blitz_run(program, NULL, NULL);
}
