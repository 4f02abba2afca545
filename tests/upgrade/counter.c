/* A counter, and a book of notes with a private heap, as libraries: see counter.h. */
#include "counter.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
typedef struct PASTE(counter_, VERSION) state_now;

static atomic_long calls; /* of all actors, which run at the same time */

#if defined(FLAW_THREAD_LOCAL)
static _Thread_local long of_thread;
#endif

BLITZ_HANDLER(on_add, state_now, long)
{
    (void)m;
    calls++;
#if defined(FLAW_THREAD_LOCAL)
    of_thread++;
#endif
    state->broken += *data != state->next;
    state->next = *data + 1;
    state->sum += *data;
#if VERSION >= 2
    state->count++;
#endif
    return 0;
}

BLITZ_HANDLER(on_get, state_now, void)
{
    struct counted_by by = {VERSION, state->sum, state->broken, 0, calls};
    (void)data;
#if VERSION >= 2
    by.count = state->count;
#endif
    return blitz_actor_reply(m->reply, &by, sizeof by);
}

static void wait_for(const struct waiting *w)
{
    if (w->begun != NULL)
        blitz_event_set(w->begun);
    (void)!blitz_event_wait(w->until, BLITZ_FOREVER);
}

BLITZ_HANDLER(on_wait, state_now, struct waiting)
{
    (void)state, (void)m;
    wait_for(data);
    return 0;
}

BLITZ_HANDLER(on_fail, state_now, void)
{
    (void)state, (void)data, (void)m;
    return blitz_actor_fail(-EIO, "a reason of the library");
}

BLITZ_HANDLER(on_take_name, state_now, void)
{
    static const char name[] = "a name of the library";
    (void)state, (void)data;
    int rc = blitz_actor_register(name, blitz_actor_self());
    return rc == 0 ? blitz_actor_reply(m->reply, NULL, 0) : blitz_actor_reply_error(m->reply, rc);
}

static int fiber(void *arg)
{
    struct waiting w = *(struct waiting *)arg;
    wait_for(&w);
    return 0;
}

BLITZ_HANDLER(on_start_fiber, state_now, struct waiting *)
{
    (void)state, (void)m;
    return blitz_spawn(fiber, *data, &(blitz_spawn_opts){.name = "of the test"}, NULL);
}

/* An address in the library must not be in a message. */
BLITZ_HANDLER(on_point, state_now, void)
{
    const void *at = &calls;
    (void)state, (void)data, (void)m;
    return blitz_actor_send(blitz_actor_self(), ADD, &at, sizeof at);
}

BLITZ_HANDLER(on_fault, state_now, void)
{
    (void)state, (void)data, (void)m;
    volatile int *nowhere = NULL;
    *nowhere = 1;
    return 0;
}

static const blitz_handler plain_handlers[] = {BLITZ_ON(WAIT, struct waiting, on_wait)};
static const blitz_behaviour plain = {.name = "plain",
                                      .state_bytes = sizeof(state_now),
                                      .handlers = plain_handlers,
                                      .handler_count = 1};

BLITZ_HANDLER(on_spawn_plain, state_now, void)
{
    blitz_actor_id id;
    (void)state, (void)data;
    int rc = blitz_actor_spawn(&plain, NULL, NULL, &id);
    return rc == 0 ? blitz_actor_reply(m->reply, &id, sizeof id)
                   : blitz_actor_reply_error(m->reply, rc);
}

/* ---- changes ---- */

#if VERSION >= 2
#define OLD(n) const struct counter_##n *old = (const struct counter_##n *)old_state
#define TAKE                    \
    state_now *now = new_state; \
    now->sum = old->sum;        \
    now->next = old->next;      \
    now->broken = old->broken;  \
    (void)old_version
#endif

#if VERSION == 1
static int from_2(void *old_state, uint32_t old_version, void *new_state)
{
    const struct counter_2 *old = old_state;
    *(struct counter_1 *)new_state = (struct counter_1){old->sum, old->next, old->broken};
    return old_version == 2 ? 0 : -EINVAL;
}
static int from_3(void *old_state, uint32_t old_version, void *new_state)
{
    const struct counter_3 *old = old_state;
    *(struct counter_1 *)new_state = (struct counter_1){old->sum, old->next, old->broken};
    return old_version == 3 ? 0 : -EINVAL;
}
static const blitz_change changes[] = {{2, from_2}, {3, from_3}};
#elif VERSION == 2
static int from_1(void *old_state, uint32_t old_version, void *new_state)
{
    OLD(1);
    TAKE;
#if defined(FLAW_FAILS)
    if (old->sum >= 100)
        return blitz_actor_fail(-ERANGE, "the sum is too large");
#elif defined(FLAW_SLOW)
    int rc = blitz_sleep_until(blitz_after(BLITZ_S / 20));
    if (rc != 0)
        return rc;
#endif
    return 0;
}
static int from_3(void *old_state, uint32_t old_version, void *new_state)
{
    OLD(3);
    TAKE;
    now->count = old->count;
    return 0;
}
#if defined(FLAW_NO_CHANGE)
static const blitz_change changes[] = {{7, from_1}, {3, from_3}};
#else
static const blitz_change changes[] = {{1, from_1}, {3, from_3}};
#endif
#else
static int from_1(void *old_state, uint32_t old_version, void *new_state)
{
    OLD(1);
    TAKE;
    memset(now->filler, 1, sizeof now->filler);
    return 0;
}
static int from_2(void *old_state, uint32_t old_version, void *new_state)
{
    OLD(2);
    TAKE;
    now->count = old->count;
    return 0;
}
static const blitz_change changes[] = {{1, from_1}, {2, from_2}};
#endif

static const blitz_handler handlers[] = {
    BLITZ_ON(ADD, long, on_add),
    BLITZ_ON_EMPTY(GET, on_get),
    BLITZ_ON(WAIT, struct waiting, on_wait),
    BLITZ_ON_EMPTY(FAIL, on_fail),
    BLITZ_ON_EMPTY(TAKE_NAME, on_take_name),
    BLITZ_ON(START_FIBER, struct waiting *, on_start_fiber),
    BLITZ_ON_EMPTY(POINT, on_point),
    BLITZ_ON_EMPTY(FAULT, on_fault),
    BLITZ_ON_EMPTY(SPAWN_PLAIN, on_spawn_plain),
};

#if defined(FLAW_TERMS)
static const blitz_term_message terms[] = {{0}};
#endif

BLITZ_MAYBE_UNUSED static const blitz_behaviour counter = {
    .name = "counter",
    .version = VERSION,
    .changes = changes,
    .change_count = sizeof changes / sizeof changes[0],
    .state_bytes = sizeof(state_now),
#if defined(FLAW_OTHER_TRAIT)
    .trap_faults = true,
#elif defined(FLAW_TERMS)
    .messages = terms,
    .message_count = 1,
#endif
    .handlers = handlers,
    .handler_count = sizeof handlers / sizeof handlers[0]};

/* The same with faults that end the actor. */
BLITZ_MAYBE_UNUSED static const blitz_behaviour sturdy = {
    .name = "sturdy",
    .version = VERSION,
    .changes = changes,
    .change_count = sizeof changes / sizeof changes[0],
    .state_bytes = sizeof(state_now),
    .trap_faults = true,
    .handlers = handlers,
    .handler_count = sizeof handlers / sizeof handlers[0]};

/* ---- notes: a private heap ---- */

struct note {
    const struct note *next;
    char *text;
};
BLITZ_VALUE_TYPE(test_note, struct note, next, text);

struct notes_1 {
    const struct note *first;
};
/* Version 2 counts them, and remembers the last text. */
struct notes_2 {
    long count;
    const struct note *first;
    char *last;
};

#if VERSION == 1
typedef struct notes_1 notes_now;
BLITZ_TYPE(test_notes_1, struct notes_1, first);
#define NOTES_TYPE test_notes_1
#elif defined(FLAW_OTHER_TYPE)
typedef struct notes_2 notes_now;
BLITZ_TYPE(test_notes_1, struct notes_2, first, last); /* the name of version 1 */
#define NOTES_TYPE test_notes_1
#else
typedef struct notes_2 notes_now;
BLITZ_TYPE(test_notes_2, struct notes_2, first, last);
#define NOTES_TYPE test_notes_2
#endif

BLITZ_HANDLER(on_note, notes_now, long)
{
    char text[24];
    (void)m;
    for (int i = 0; i < 20; i++) /* most of it is garbage at once */
        (void)blitz_actor_string("garbage");
    memset(text, 'a' + (int)(*data % 26), sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct note n = {state->first, blitz_actor_string(text)};
    state->first = blitz_actor_copy(&test_note, 0, &n);
#if VERSION >= 2
    state->count++;
    state->last = n.text;
#endif
    return 0;
}

/* The number of notes, and -1 if one is damaged. */
BLITZ_HANDLER(on_notes, notes_now, void)
{
    struct counted_by by = {.version = VERSION};
    (void)data;
    for (const struct note *n = state->first; n != NULL; n = n->next) {
        by.sum++;
        by.broken += strlen(n->text) != 23 || n->text[0] != n->text[22];
    }
#if VERSION >= 2
    by.count = state->count;
    by.broken += state->last == NULL || strlen(state->last) != 23;
#endif
    return blitz_actor_reply(m->reply, &by, sizeof by);
}

static int notes_change(void *old_state, uint32_t old_version, void *new_state)
{
#if VERSION == 1
    ((struct notes_1 *)new_state)->first = ((struct notes_2 *)old_state)->first;
#else
    const struct notes_1 *old = old_state;
    struct notes_2 *now = new_state;
    now->first = old->first;
    for (const struct note *n = old->first; n != NULL; n = n->next)
        now->count++;
    now->last = blitz_actor_string(old->first != NULL ? old->first->text : "no text");
#if defined(FLAW_STARVES)
    (void)blitz_actor_alloc_tail(&test_note, 1 << 30);
#endif
#endif
    return old_version != 0 ? 0 : -EINVAL;
}

static const blitz_change notes_changes[] = {{3 - (VERSION == 1 ? 1 : 2), notes_change}};
static const blitz_handler notes_handlers[] = {BLITZ_ON(NOTE, long, on_note),
                                               BLITZ_ON_EMPTY(NOTES, on_notes)};
BLITZ_MAYBE_UNUSED static const blitz_behaviour notes = {.name = "notes",
                                                         .version = VERSION,
                                                         .changes = notes_changes,
                                                         .change_count = 1,
                                                         .state_bytes = sizeof(notes_now),
                                                         .state_type = &NOTES_TYPE,
                                                         .heap_verify = true,
#if defined(FLAW_STARVES)
                                                         .heap_max = 1 << 20,
#endif
                                                         .handlers = notes_handlers,
                                                         .handler_count = 2};

/* ---- the table ---- */

#if defined(IN_PROGRAM)
#elif defined(FLAW_NO_TABLE)
BLITZ_API const blitz_behaviour *const counter_but_no_table = &counter;
#elif defined(FLAW_OTHER_ABI)
static const blitz_behaviour *const list[] = {&counter};
BLITZ_API extern const blitz_library blitz_library_table;
const blitz_library blitz_library_table = {BLITZ_LIBRARY_ABI + 1, sizeof(blitz_behaviour),
                                           sizeof(blitz_handler), 1, list};
#else
BLITZ_LIBRARY(&counter, &sturdy, &notes);
#endif

#if defined(FLAW_MISSING)
void a_function_that_is_nowhere(void);
BLITZ_API void calls_it(void);
void calls_it(void)
{
    a_function_that_is_nowhere();
}
#elif defined(FLAW_THREADS)
static void *thread(void *arg)
{
    return arg;
}
BLITZ_API int starts_one(pthread_t *out);
int starts_one(pthread_t *out)
{
    return pthread_create(out, NULL, thread, NULL);
}
#endif
