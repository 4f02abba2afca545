/* The heap of an actor and other parties: receives in flight when it is killed, jobs, handlers that do not return. */
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "blitz.h"
#include "support/event.h"
#include "support/keepers.h"
#include "support/on_each.h"

enum { READ, LEND, FORK, COLLECT, LATE, IN_TIME };

struct buffer {
    long length;
    char bytes[64];
};
BLITZ_PLAIN_TYPE(actor_pin_buffer, struct buffer);

struct store {
    struct buffer *last;
};
BLITZ_TYPE(actor_pin_store, struct store, last);

/* ---- a read of the runtime ---- */

static int reads; /* how the read of the handler ended */

BLITZ_HANDLER(on_read, struct store, blitz_tcp *)
{
    (void)m;
    blitz_pin *pin;
    state->last = (struct buffer *)blitz_actor_alloc(&actor_pin_buffer);
    struct buffer *b = state->last;
    CHECK_EQ(blitz_pin_new(blitz_actor_heap(), b, &pin), 0);
    reads = (int)blitz_tcp_read(*data, b->bytes, sizeof b->bytes, BLITZ_FOREVER);
    if (reads > 0)
        CHECK_EQ(b->bytes[0], 'x');
    blitz_pin_unref(pin);
    return 0;
}

/* ---- a receive of a foreign thread, which no cancel reaches ---- */

struct loan {
    int fd; /* a blocking socket */
    struct buffer *buffer;
    blitz_pin *pin;
    struct t_event is_lent;
};

static void *receive(void *arg)
{
    struct loan *l = arg;
    t_event_set(&l->is_lent);
    ssize_t n = recv(l->fd, l->buffer->bytes, sizeof l->buffer->bytes, MSG_WAITALL);
    CHECK_EQ(n, (ssize_t)sizeof l->buffer->bytes);
    for (size_t i = 0; i < sizeof l->buffer->bytes; i++)
        CHECK_EQ(l->buffer->bytes[i], 'k');
    blitz_pin_unref(l->pin);
    return NULL;
}

static pthread_t receiver;

BLITZ_HANDLER(on_lend, struct store, struct loan *)
{
    (void)m;
    struct loan *l = *data;
    for (int i = 0; i < 100; i++)
        CHECK_NOT_NULL(blitz_actor_string("garbage"));
    l->buffer = state->last = (struct buffer *)blitz_actor_alloc(&actor_pin_buffer);
    CHECK_EQ(blitz_pin_new(blitz_actor_heap(), l->buffer, &l->pin), 0);
    CHECK_EQ(pthread_create(&receiver, NULL, receive, l), 0);
    return 0;
}

/* ---- jobs ---- */

static int uses_the_heap(void *heap)
{
    return heap != NULL ? blitz_heap_alloc(heap, &actor_pin_buffer) != NULL
                        : blitz_actor_string("in a job") != NULL;
}

/* While the handler waits, its job leaves the frame, and a worker runs it. */
BLITZ_HANDLER(on_fork, struct store, blitz_heap *)
{
    (void)state, (void)m;
    blitz_job job;
    void *heap = *data != NULL ? blitz_actor_heap() : NULL;
    (void)blitz_actor_heap();
    blitz_fork(&job, uses_the_heap, heap);
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0);
    return blitz_join(&job) < 0;
}

static int waits(void *event)
{
    t_event_await(event);
    return 0;
}

BLITZ_HANDLER(on_collect, struct store, void)
{
    (void)data, (void)m, (void)state;
    struct t_event e;
    blitz_job job;
    void *local = blitz_actor_string("local");
    t_event_init(&e, &bz_os_system);
    blitz_fork(&job, waits, &e);
    CHECK_EQ(blitz_sleep(BLITZ_MS), 0); /* the job has left the frame */
    CHECK_EQ(BLITZ_ACTOR_COLLECT(&local), 0);
    t_event_set(&e);
    return blitz_join(&job);
}

/* ---- handlers that do not return ---- */

struct late {
    struct t_event is_full, may_return;
};

BLITZ_HANDLER(on_late, struct store, struct late *)
{
    (void)m, (void)state;
    for (int i = 0; i < 20000; i++)
        CHECK_NOT_NULL(blitz_actor_string("a text of about thirty bytes"));
    t_event_set(&(*data)->is_full);
    t_event_await(&(*data)->may_return);
    return 0;
}

BLITZ_HANDLER(on_in_time, struct store, void)
{
    (void)data, (void)state;
    return blitz_actor_reply(m->reply, NULL, 0);
}

static const blitz_handler handlers[] = {
    BLITZ_ON(READ, blitz_tcp *, on_read),   BLITZ_ON(LEND, struct loan *, on_lend),
    BLITZ_ON(FORK, blitz_heap *, on_fork),  BLITZ_ON_EMPTY(COLLECT, on_collect),
    BLITZ_ON(LATE, struct late *, on_late), BLITZ_ON_EMPTY(IN_TIME, on_in_time)};
static const blitz_behaviour behaviour = {.name = "pinner",
                                          .state_bytes = sizeof(struct store),
                                          .state_type = &actor_pin_store,
                                          .handlers = handlers,
                                          .handler_count = 6};

static blitz_actor_id spawn(void)
{
    blitz_actor_id id;
    CHECK_EQ(blitz_actor_spawn(&behaviour, NULL, NULL, &id), 0);
    return id;
}

static void kill_and_join(blitz_actor_id id)
{
    CHECK_EQ(blitz_actor_kill(id), 0);
    int rc = blitz_actor_join(id, NULL, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);
}

/* ---- the tests ---- */

static int killed_while_it_reads(void *arg)
{
    (void)arg;
    for (int round = 0; round < 20; round++) {
        blitz_tcp *end[2];
        blitz_actor_info info;
        CHECK_EQ(blitz_unix_pair(end), 0);
        blitz_actor_id id = spawn();
        CHECK_EQ(blitz_actor_send(id, READ, &end[0], sizeof end[0]), 0);
        while (blitz_actor_info_get(id, &info) == 0 && info.state != BLITZ_ACTOR_WAITING)
            blitz_yield();
        if (round % 2) /* the bytes come beside the kill */
            CHECK_EQ(blitz_tcp_write_all(end[1], "x", 1, NULL, BLITZ_FOREVER), 0);
        kill_and_join(id);
        CHECK(reads == -ECANCELED || (reads == 1 && round % 2));
        if (round % 2 == 0)
            CHECK_EQ(blitz_tcp_write_all(end[1], "late", 4, NULL, BLITZ_FOREVER), 0);
        blitz_tcp_close(end[0]);
        blitz_tcp_close(end[1]);
    }
    return 0;
}

/* The kernel may have the address of the object when the kill comes. */
TEST(actor_pin, kill_with_a_receive_in_flight_into_a_pinned_object)
{
    t_on_keepers(killed_while_it_reads, NULL);
}

static int killed_while_it_lends(void *arg)
{
    (void)arg;
    for (int round = 0; round < 10; round++) {
        int fd[2];
        char bytes[sizeof((struct buffer){0}).bytes];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
        struct loan loan = {.fd = fd[0]}, *l = &loan;
        t_event_init(&loan.is_lent, &bz_os_system);
        blitz_actor_id id = spawn();
        CHECK_EQ(blitz_actor_send(id, LEND, &l, sizeof l), 0);
        t_event_await(&loan.is_lent);
        kill_and_join(id);
        memset(bytes, 'k', sizeof bytes);
        CHECK_EQ(write(fd[1], bytes, sizeof bytes), (ssize_t)sizeof bytes);
        CHECK_EQ(pthread_join(receiver, NULL), 0);
        close(fd[0]);
        close(fd[1]);
    }
    return 0;
}

/* The actor and its heap are gone, and the thread still receives into the object. */
TEST(actor_pin, a_pinned_object_outlives_its_actor_until_the_completion)
{
    t_on_each(killed_while_it_lends, NULL, 0);
}

static int late_and_back(void *arg)
{
    struct late late, *l = &late;
    blitz_actor_info info;
    (void)arg;
    t_event_init(&late.is_full, &bz_os_system);
    t_event_init(&late.may_return, &bz_os_system);
    blitz_actor_id id = spawn();
    CHECK_EQ(blitz_actor_info_get(id, &info), 0);
    CHECK(!info.heap_is_late);
    CHECK_EQ(blitz_actor_send(id, LATE, &l, sizeof l), 0);
    t_event_await(&late.is_full);
    CHECK_EQ(blitz_actor_info_get(id, &info), 0);
    CHECK(info.heap_is_late);
    t_event_set(&late.may_return);
    CHECK_EQ(blitz_actor_call(id, IN_TIME, NULL, 0, NULL, 0, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_actor_info_get(id, &info), 0);
    CHECK(!info.heap_is_late);
    kill_and_join(id);
    return 0;
}

/* Nothing is collected while a handler runs or waits, so an operator must see which one fills memory. */
TEST(actor_pin, a_handler_that_allocates_much_and_does_not_return_shows_in_the_info)
{
    t_on_each(late_and_back, NULL, 0);
}

#if defined(BZ_DEBUG)

static int send_what(void *arg)
{
    blitz_heap *flag = (blitz_heap *)&spawn; /* not NULL */
    blitz_heap *none = NULL;
    blitz_actor_id id = spawn();
    const int *what = arg;
    CHECK_EQ(blitz_actor_send(id, (uint32_t)(what[0]),
                              what[0] == FORK ? (what[1] ? &flag : &none) : NULL,
                              what[0] == FORK ? sizeof flag : 0),
             0);
    return blitz_actor_join(id, NULL, BLITZ_FOREVER);
}

static void run_what(void *arg)
{
    (void)blitz_run(send_what, arg, &(blitz_runtime_opts){.procs = 2});
}

/* Two threads in one heap would damage it in silence. */
TEST(actor_pin, a_job_on_another_worker_that_uses_the_heap_is_named)
{
    int by_name[] = {FORK, 0}, by_pointer[] = {FORK, 1};
    CHECK_ABORTS(run_what, by_name, "uses its heap on another worker");
    CHECK_ABORTS(run_what, by_pointer, "is used by a task that is not the actor");
}

/* The job has addresses of objects. */
TEST(actor_pin, a_collection_beside_an_open_job_is_named)
{
    int what[] = {COLLECT, 0};
    CHECK_ABORTS(run_what, what, "collects in its heap, and has not joined 1 jobs");
}

#endif
