/* Private heaps of actors: what the state reaches survives, the rest goes; limits, ends, and misuse. */
#include "harness.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "blitz.h"
#include "support/on_each.h"

enum { ADD, SUM, FILL, INSIDE, LOOK, WAIT, REFUSE };

struct item {
    const struct item *next;
    char *text;
    long number;
};
BLITZ_VALUE_TYPE(actor_heap_item, struct item, next, text);

struct list {
    const struct item *first;
    long count;
};
BLITZ_TYPE(actor_heap_list, struct list, first);

/* Some garbage, and an item that stays. */
BLITZ_HANDLER(on_add, struct list, long)
{
    (void)m;
    char text[32];
    for (int i = 0; i < 20; i++)
        CHECK_NOT_NULL(blitz_actor_string("garbage"));
    snprintf(text, sizeof text, "number %ld", *data);
    struct item item = {state->first, blitz_actor_string(text), *data};
    state->first = (const struct item *)blitz_actor_copy(&actor_heap_item, 0, &item);
    CHECK_NOT_NULL(state->first);
    state->count++;
    return 0;
}

BLITZ_HANDLER(on_sum, struct list, void)
{
    long sum = 0, count = 0;
    (void)data;
    for (const struct item *at = state->first; at != NULL; at = at->next, count++) {
        char text[32];
        snprintf(text, sizeof text, "number %ld", at->number);
        CHECK_STR_EQ(at->text, text);
        sum += at->number;
    }
    CHECK_EQ(count, state->count);
    return blitz_actor_reply(m->reply, &sum, sizeof sum);
}

/* Allocate until there is no more; and go on as if nothing had happened. */
BLITZ_HANDLER(on_fill, struct list, void)
{
    (void)data, (void)m, (void)state;
    while (blitz_actor_string("a text that fills the heap") != NULL)
        ;
    return 0;
}

/* More than the limit in all, and little at a time. */
BLITZ_HANDLER(on_inside, struct list, long)
{
    struct item local = {NULL, blitz_actor_string("kept"), *data};
    const struct item *mine = (const struct item *)blitz_actor_copy(&actor_heap_item, 0, &local);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 200; i++)
            CHECK_NOT_NULL(blitz_actor_string("dropped in the same handler"));
        CHECK_EQ(BLITZ_ACTOR_COLLECT(&mine), 0);
        CHECK_STR_EQ(mine->text, "kept");
    }
    CHECK_EQ(mine->number, *data);
    (void)state;
    return blitz_actor_reply(m->reply, &mine->number, sizeof mine->number);
}

BLITZ_HANDLER(on_look, struct list, void)
{
    blitz_heap_info info;
    (void)data, (void)state;
    blitz_heap_info_get(blitz_actor_heap(), &info);
    return blitz_actor_reply(m->reply, &info, sizeof info);
}

/* Nothing is collected while a handler waits. */
BLITZ_HANDLER(on_wait, struct list, void)
{
    (void)data, (void)state, (void)m;
    char *text = blitz_actor_string("only a frame points here");
    for (int i = 0; i < 1000; i++)
        CHECK_NOT_NULL(blitz_actor_string("garbage"));
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    CHECK_STR_EQ(text, "only a frame points here");
    return 0;
}

static atomic_bool refuses; /* the allocator of a_heap_that_cannot_be_made */

BLITZ_HANDLER(on_refuse, struct list, void)
{
    (void)data, (void)state, (void)m;
    refuses = true;
    CHECK_NULL(blitz_actor_heap());
    CHECK_NULL(blitz_actor_string("text"));
    refuses = false;
    return 0;
}

static const blitz_handler handlers[] = {
    BLITZ_ON(ADD, long, on_add),       BLITZ_ON_EMPTY(SUM, on_sum),   BLITZ_ON_EMPTY(FILL, on_fill),
    BLITZ_ON(INSIDE, long, on_inside), BLITZ_ON_EMPTY(LOOK, on_look), BLITZ_ON_EMPTY(WAIT, on_wait),
    BLITZ_ON_EMPTY(REFUSE, on_refuse)};

#define LIST                                                                                      \
    .name = "list", .state_bytes = sizeof(struct list), .handlers = handlers, .handler_count = 7, \
    .state_type = &actor_heap_list

static blitz_actor_id spawn(const blitz_behaviour *b)
{
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(b, NULL, NULL, &id), 0);
    return id;
}

static void add(blitz_actor_id id, long from, long to)
{
    for (long i = from; i < to; i++)
        CHECK_EQ(blitz_actor_send(id, ADD, &i, sizeof i), 0);
}

static long sum_of(blitz_actor_id id)
{
    long sum = -1;
    CHECK_EQ(blitz_actor_call(id, SUM, NULL, 0, &sum, sizeof sum, BLITZ_FOREVER), (int)sizeof sum);
    return sum;
}

static blitz_heap_info info_of(blitz_actor_id id)
{
    blitz_heap_info info = {.full = 0};
    CHECK_EQ(blitz_actor_call(id, LOOK, NULL, 0, &info, sizeof info, BLITZ_FOREVER),
             (int)sizeof info);
    return info;
}

static void end(blitz_actor_id id)
{
    CHECK_EQ(blitz_actor_stop(id), 0);
    int rc = blitz_actor_join(id, NULL, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH); /* it may be gone already */
}

/* Send a message that ends the actor. Returns why it ended. */
static blitz_exit_reason end_by(blitz_actor_id id, uint32_t what)
{
    const blitz_msg *m;
    blitz_down down;
    uint64_t ref;
    CHECK_EQ(blitz_receiver_begin(NULL, NULL), 0);
    CHECK_EQ(blitz_actor_monitor(id, &ref), 0);
    CHECK_EQ(blitz_actor_send(id, what, NULL, 0), 0);
    CHECK_EQ(blitz_receive(NULL, NULL, &m, BLITZ_FOREVER), 0);
    CHECK_EQ(m->what, BLITZ_MSG_DOWN);
    memcpy(&down, m->data, sizeof down);
    CHECK_EQ(blitz_receiver_end(NULL), 0);
    return down.reason;
}

/* ---- survivors ---- */

static int keeps_its_list(void *arg)
{
    const blitz_behaviour *b = arg;
    blitz_actor_id id = spawn(b), other = spawn(b);
    add(id, 0, 1000);
    add(other, 1000, 1100);
    CHECK_EQ(sum_of(id), 1000 * 999 / 2);
    CHECK_EQ(sum_of(other), 100 * 1000 + 100 * 99 / 2);
    blitz_heap_info info = info_of(id);
    CHECK_GT(info.full + info.minor, 0); /* garbage of 20,000 strings went */
    CHECK_LT(info.held_bytes, (size_t)1 << 20);
    end(id);
    end(other);
    return 0;
}

TEST(actor_heap, what_the_state_reaches_survives_and_the_rest_goes)
{
    static const blitz_behaviour plain = {LIST};
    t_on_each(keeps_its_list, (void *)&plain, 0);
}

TEST(actor_heap, a_heap_that_is_checked_collects_after_each_message)
{
    static const blitz_behaviour checked = {LIST, .heap_verify = true};
    t_on_each(keeps_its_list, (void *)&checked, 0);
}

/* ---- a state in a block of its own ---- */

struct wide {
    char name[8000];
    const struct item *first;
};
BLITZ_TYPE(actor_heap_wide, struct wide, first);

BLITZ_HANDLER(on_wide_add, struct wide, long)
{
    (void)m;
    struct item item = {state->first, blitz_actor_string("wide"), *data};
    state->first = (const struct item *)blitz_actor_copy(&actor_heap_item, 0, &item);
    memset(state->name, 'x', sizeof state->name);
    return 0;
}

BLITZ_HANDLER(on_wide_sum, struct wide, void)
{
    long sum = 0;
    (void)data;
    for (const struct item *at = state->first; at != NULL; at = at->next)
        sum += at->number;
    return blitz_actor_reply(m->reply, &sum, sizeof sum);
}

static int wide_state(void *arg)
{
    static const blitz_handler wide_handlers[] = {BLITZ_ON(ADD, long, on_wide_add),
                                                  BLITZ_ON_EMPTY(SUM, on_wide_sum)};
    static const blitz_behaviour wide = {.state_bytes = sizeof(struct wide),
                                         .handlers = wide_handlers,
                                         .handler_count = 2,
                                         .state_type = &actor_heap_wide,
                                         .heap_verify = true};
    (void)arg;
    blitz_actor_id id = spawn(&wide);
    add(id, 0, 100);
    CHECK_EQ(sum_of(id), 100 * 99 / 2);
    end(id);
    return 0;
}

TEST(actor_heap, a_large_state_is_a_root_too)
{
    t_on_each(wide_state, NULL, 0);
}

/* ---- limits ---- */

static int starves(void *arg)
{
    static const blitz_behaviour small = {LIST, .heap_max = 64 << 10};
    (void)arg;
    blitz_actor_id id = spawn(&small), neighbour = spawn(&small);
    long number = 7;
    add(id, 0, 10);
    add(neighbour, 0, 10);
    CHECK_EQ(sum_of(id), 45);
    CHECK_EQ(blitz_actor_call(neighbour, INSIDE, &number, sizeof number, &number, sizeof number,
                              BLITZ_FOREVER),
             (int)sizeof number); /* 300 KiB in one handler */
    CHECK_EQ(number, 7);
    blitz_exit_reason why = end_by(id, FILL);
    CHECK_EQ(why.kind, BLITZ_EXIT_ERROR);
    CHECK_EQ(why.code, -ENOMEM);
    CHECK_STR_EQ(why.text, "no_memory");
    CHECK_EQ(sum_of(neighbour), 45);
    end(neighbour);
    return 0;
}

TEST(actor_heap, an_actor_past_its_limit_ends_and_its_neighbour_does_not)
{
    t_on_each(starves, NULL, 0);
}

static int waits_inside(void *arg)
{
    static const blitz_behaviour checked = {LIST, .heap_verify = true};
    (void)arg;
    blitz_actor_id id[20];
    for (int i = 0; i < 20; i++) {
        id[i] = spawn(&checked);
        CHECK_EQ(blitz_actor_send(id[i], WAIT, NULL, 0), 0);
        add(id[i], 0, 10);
    }
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(sum_of(id[i]), 45);
        if (i % 2 == 0)
            end(id[i]);
        else
            CHECK_EQ(blitz_actor_kill(id[i]), 0);
    }
    return 0;
}

TEST(actor_heap, nothing_moves_while_a_handler_waits)
{
    t_on_each(waits_inside, NULL, 0);
}

/* ---- without memory ---- */

static void *alloc_or_not(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    size = (size + align - 1) / align * align;
    return refuses ? NULL : aligned_alloc(align, size);
}

static void give_back(void *ctx, void *memory, size_t size)
{
    (void)ctx, (void)size;
    free(memory);
}

static int without_memory(void *arg)
{
    static const blitz_behaviour plain = {LIST};
    (void)arg;
    blitz_actor_id id = spawn(&plain);
    CHECK_EQ(sum_of(id), 0); /* it runs, and has no heap yet */
    blitz_exit_reason why = end_by(id, REFUSE);
    CHECK_EQ(why.code, -ENOMEM);
    CHECK_STR_EQ(why.text, "no_memory");
    id = spawn(&plain);
    add(id, 0, 100);
    CHECK_EQ(sum_of(id), 100 * 99 / 2);
    end(id);
    return 0;
}

TEST(actor_heap, a_heap_that_cannot_be_made_ends_the_actor)
{
    static const blitz_allocator allocator = {alloc_or_not, give_back, NULL};
    CHECK_EQ(
        blitz_run(without_memory, NULL, &(blitz_runtime_opts){.procs = 1, .allocator = &allocator}),
        0);
}

/* ---- misuse ---- */

BLITZ_HANDLER(on_none, void, void)
{
    (void)state, (void)data;
    int is_null = blitz_actor_heap() == NULL && blitz_actor_string("text") == NULL &&
                  blitz_actor_alloc(&actor_heap_list) == NULL &&
                  blitz_actor_alloc_tail(&actor_heap_list, 0) == NULL;
    return blitz_actor_reply(m->reply, &is_null, sizeof is_null);
}

static int without_a_type(void *arg)
{
    static const blitz_handler none_handlers[] = {BLITZ_ON_EMPTY(0, on_none)};
    static const blitz_behaviour none = {.handlers = none_handlers, .handler_count = 1};
    static const blitz_behaviour wrong = {.state_bytes = 8, .state_type = &actor_heap_list};
    blitz_actor_id id;
    int is_null = 0;
    (void)arg;
    CHECK_NULL(blitz_actor_heap());
    CHECK_NULL(blitz_actor_string("in a fiber"));
    CHECK_EQ(blitz_actor_spawn(&wrong, NULL, NULL, &id), -EINVAL);
    id = spawn(&none);
    for (int i = 0; i < 2; i++) { /* it goes on */
        CHECK_EQ(blitz_actor_call(id, 0, NULL, 0, &is_null, sizeof is_null, BLITZ_FOREVER),
                 (int)sizeof is_null);
        CHECK(is_null);
    }
    end(id);
    return 0;
}

TEST(actor_heap, a_task_without_a_heap_gets_null)
{
    CHECK_NULL(blitz_actor_heap());
    t_on_each(without_a_type, NULL, 0);
}

/* ---- news of ends ---- */

enum { NEWS = 200, WATCH = 100 };

static const blitz_behaviour watched = {.name = "watched"};

/* Watch the actors whose ids follow. */
BLITZ_HANDLER(on_watch, struct list, blitz_actor_id)
{
    uint64_t ref;
    (void)m, (void)state;
    return blitz_actor_monitor(*data, &ref);
}

/* Garbage, and a count. */
BLITZ_HANDLER(on_down, struct list, blitz_down)
{
    (void)m, (void)data;
    for (int i = 0; i < 200; i++)
        CHECK_NOT_NULL(blitz_actor_string("garbage of some length, that nothing keeps"));
    state->count++;
    return 0;
}

BLITZ_HANDLER(on_count, struct list, void)
{
    (void)data;
    return blitz_actor_reply(m->reply, &state->count, sizeof state->count);
}

/* Allocate until there is no more, and go on. */
BLITZ_HANDLER(on_full_down, struct list, blitz_down)
{
    (void)m, (void)data;
    CHECK_EQ(++state->count, 1); /* no second one */
    while (blitz_actor_string("a text that fills the heap") != NULL)
        ;
    return 0;
}

static void watch(blitz_actor_id id, blitz_actor_id *peer, int count)
{
    for (int i = 0; i < count; i++) {
        CHECK_EQ(blitz_actor_spawn(&watched, NULL, NULL, &peer[i]), 0);
        CHECK_EQ(blitz_actor_send(id, WATCH, &peer[i], sizeof peer[i]), 0);
    }
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
}

static int hears_of_many(void *arg)
{
    static const blitz_handler hearing[] = {BLITZ_ON(WATCH, blitz_actor_id, on_watch),
                                            BLITZ_ON(BLITZ_MSG_DOWN, blitz_down, on_down),
                                            BLITZ_ON_EMPTY(SUM, on_count)};
    static const blitz_behaviour b = {.state_bytes = sizeof(struct list),
                                      .handlers = hearing,
                                      .handler_count = 3,
                                      .state_type = &actor_heap_list,
                                      .heap_max = 1 << 20};
    blitz_actor_id id = spawn(&b), peer[NEWS];
    (void)arg;
    watch(id, peer, NEWS);
    for (int i = 0; i < NEWS; i++)
        CHECK_EQ(blitz_actor_kill(peer[i]), 0);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(sum_of(id), NEWS);
    end(id);
    return 0;
}

/* Only messages led to a collection. */
TEST(actor_heap, news_of_ends_are_messages_and_collect)
{
    t_on_each(hears_of_many, NULL, 0);
}

static int starves_by_news(void *arg)
{
    static const blitz_handler hearing[] = {BLITZ_ON(WATCH, blitz_actor_id, on_watch),
                                            BLITZ_ON(BLITZ_MSG_DOWN, blitz_down, on_full_down)};
    static const blitz_behaviour b = {.state_bytes = sizeof(struct list),
                                      .handlers = hearing,
                                      .handler_count = 2,
                                      .state_type = &actor_heap_list,
                                      .heap_max = 1 << 16};
    blitz_actor_id id = spawn(&b), peer[4];
    blitz_exit_reason why;
    (void)arg;
    watch(id, peer, 4);
    blitz_actor_join_future f;
    blitz_actor_join_future_init(&f, id, &why);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(blitz_actor_kill(peer[i]), 0);
    CHECK_EQ(blitz_await(&f.future, BLITZ_FOREVER), 0);
    CHECK_EQ(f.result, 0);
    CHECK_EQ(why.kind, BLITZ_EXIT_ERROR);
    CHECK_EQ(why.code, -ENOMEM);
    CHECK_STR_EQ(why.text, "no_memory");
    return 0;
}

/* An actor that went on after such a failure would handle the next message with the NULL that it has stored. */
TEST(actor_heap, an_allocation_that_fails_in_news_of_an_end_ends_the_actor)
{
    CHECK_EQ(blitz_run(starves_by_news, NULL, &(blitz_runtime_opts){.procs = 1}), 0);
}

#if defined(BZ_DEBUG)

/* ---- pointers in messages ---- */

enum way { BY_SEND, BY_CARGO, BY_REPLY, BY_TIMER, BY_REPLY_CARGO, BY_SPAWN, TO_THE_MIDDLE, WAYS };

struct leak {
    uint64_t number;
    void *pointer;
};

static const blitz_behaviour leaker;

BLITZ_HANDLER(on_leak, struct list, enum way)
{
    struct item item = {state->first, NULL, 7};
    state->first = (const struct item *)blitz_actor_copy(&actor_heap_item, 0, &item);
    struct leak l = {1, (void *)(uintptr_t)state->first};
    blitz_actor_id other, me = blitz_actor_self();
    struct list copy = *state;
    switch (*data) {
    case BY_SEND:
        return blitz_actor_send(me, ADD + 10, &l, sizeof l);
    case BY_CARGO:
        return blitz_actor_send_with(me, ADD + 10, &l, sizeof l, &(blitz_cargo){.binary = NULL});
    case BY_REPLY:
        return blitz_actor_reply(m->reply, &l, sizeof l);
    case BY_REPLY_CARGO:
        return blitz_actor_reply_with(m->reply, &l, sizeof l, &(blitz_cargo){.binary = NULL});
    case BY_TIMER:
        return blitz_actor_send_after(me, ADD + 10, &l, sizeof l, blitz_after(1), NULL);
    case BY_SPAWN:
        return blitz_actor_spawn(&leaker, &copy, NULL, &other);
    case TO_THE_MIDDLE:
        l.pointer = (char *)l.pointer + sizeof(void *);
        return blitz_actor_send(me, ADD + 10, &l, sizeof l);
    default:
        return -EINVAL;
    }
}

static const blitz_handler leak_handlers[] = {BLITZ_ON(ADD, enum way, on_leak)};
static const blitz_behaviour leaker = {.name = "leaker",
                                       .state_bytes = sizeof(struct list),
                                       .state_type = &actor_heap_list,
                                       .handlers = leak_handlers,
                                       .handler_count = 1,
                                       .heap_verify = true};

static int send_leak(void *arg)
{
    blitz_actor_id id = spawn(&leaker);
    struct leak l;
    (void)blitz_actor_call(id, ADD, arg, sizeof(enum way), &l, sizeof l, BLITZ_FOREVER);
    end(id);
    return 0;
}

static void leak(void *arg)
{
    (void)blitz_run(send_leak, arg, &(blitz_runtime_opts){.procs = 1});
}

/* The receiver would follow it into a heap that is not its own, and that moves. */
TEST(actor_heap, a_pointer_in_what_is_sent_is_named)
{
    for (enum way w = BY_SEND; w < WAYS; w++)
        CHECK_ABORTS(leak, &w, "a pointer to an object of its heap, of the type actor_heap_item");
}

#endif
