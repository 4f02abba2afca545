/*
 * No memory for promises, boxes, tokens, scopes and waiters: each allocation is refused in turn,
 * nothing is lost and nothing hangs.
 *
 * They allocate by malloc. The linker passes the calls of this program and of the library to
 * __wrap_malloc (--wrap), which refuses the n-th call on a thread when it is told to.
 */
#include "harness.h"
#include "support/probe.h"

#include <pthread.h>

#include "blitz.h"

static _Thread_local int refuse_at; /* the n-th call from here returns NULL; 0: none */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
    if (refuse_at > 0 && --refuse_at == 0) {
        errno = ENOMEM;
        return NULL;
    }
    return __real_malloc(size);
}

TEST(future_fault, no_memory_for_a_promise_a_box_or_a_token_is_an_error)
{
    blitz_promise *p = NULL;
    blitz_completer *c = NULL;
    blitz_token *root = NULL, *child = NULL;
    refuse_at = 1;
    CHECK_EQ(blitz_promise_new(NULL, &p, &c), -ENOMEM);
    CHECK(p == NULL && c == NULL);
    refuse_at = 1;
    CHECK_NULL(blitz_box_new(64, NULL));
    for (int n = 1; n <= 2; n++) { /* the tree, and its root */
        refuse_at = n;
        CHECK_EQ(blitz_token_new(NULL, &root), -ENOMEM);
        CHECK_NULL(root);
    }
    CHECK_EQ(blitz_token_new(NULL, &root), 0);
    refuse_at = 1;
    CHECK_EQ(blitz_token_new(root, &child), -ENOMEM);
    CHECK_NULL(child);
    blitz_token_unref(root);
}

static void *completes_soon(void *completer)
{
    CHECK_EQ(blitz_completer_complete(completer, completer), 0);
    blitz_completer_unref(completer);
    return NULL;
}

/* A plain thread without memory for its waker polls periodically. */
TEST(future_fault, a_thread_without_memory_for_a_waker_still_completes)
{
    for (int i = 0; i < 5; i++) {
        blitz_promise *p;
        blitz_completer *c;
        pthread_t thread;
        void *value = NULL;
        CHECK_EQ(blitz_promise_new(NULL, &p, &c), 0);
        CHECK_EQ(pthread_create(&thread, NULL, completes_soon, c), 0);
        refuse_at = 1;
        CHECK_EQ(blitz_promise_await(p, &value, BLITZ_FOREVER), 0);
        refuse_at = 0;
        CHECK(value == c);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        blitz_promise_unref(p);
    }
}

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* A spawn that fails is not counted: the scope closes. */
static int scope_without_memory(void *arg)
{
    blitz_scope s;
    (void)arg;
    CHECK_EQ(blitz_scope_open(&s, NULL, BLITZ_FOREVER), 0);
    refuse_at = 1; /* the node of one with a stack of its own */
    CHECK_EQ(blitz_scope_spawn(&s, nothing, NULL, &(blitz_spawn_opts){.stack_bytes = 1 << 20}),
             -ENOMEM);
    refuse_at = 0;
    CHECK_EQ(blitz_scope_spawn(&s, nothing, NULL, NULL), 0);
    CHECK_EQ(blitz_scope_spawn(&s, nothing, NULL, &(blitz_spawn_opts){.proc = 1000}), -EINVAL);
    CHECK_EQ(blitz_scope_close(&s), 0);
    return 0;
}

TEST(future_fault, a_scope_that_cannot_spawn_says_so_and_closes)
{
    CHECK_EQ(blitz_run(scope_without_memory, NULL, &(blitz_runtime_opts){.procs = 1}), 0);
}

/* ---- a box without a task to complete it ---- */

static int dropped;

static void count_drop(void *memory, void *ctx)
{
    (void)ctx;
    (void)memory;
    dropped++;
}

static void *sets_soon(void *probe)
{
    t_probe_set(probe, 0);
    return NULL;
}

/* On a plain thread there is no runtime to see a pinned one out: the cancel waits itself. */
TEST(future_fault, a_pinned_box_without_a_runtime_is_waited_for)
{
    struct t_probe *inside = blitz_box_new(sizeof *inside, &(blitz_box_opts){.drop = count_drop});
    pthread_t thread;
    dropped = 0;
    CHECK_NOT_NULL(inside);
    t_probe_init(inside, &bz_os_system, BLITZ_PINNED);
    blitz_future *f = blitz_box_future(inside);
    blitz_waker none = {NULL, NULL};
    CHECK_EQ(f->ops->poll(f, &none), BLITZ_PENDING);
    CHECK_EQ(pthread_create(&thread, NULL, sets_soon, inside), 0);
    f->ops->cancel(f);
    CHECK_EQ(dropped, 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}
