/* The delay queue: its heap against a sorted list, and its calls at their edges. tests/sim/rate_sim.c has its times. */
#include "harness.h"
#include "support/bell.h"
#include "support/on_each.h"

#include <stdlib.h>

#include "chan/delay_heap.h"

/* ---- the heap ---- */

enum { ENTRIES = 300 };

struct model {
    struct {
        uint64_t key, when, order, value;
        bool is_in;
    } entry[ENTRIES];
    uint64_t order;
};

static int first_in(const struct model *m)
{
    int first = -1;
    for (int i = 0; i < ENTRIES; i++)
        if (m->entry[i].is_in && (first < 0 || m->entry[i].when < m->entry[first].when ||
                                  (m->entry[i].when == m->entry[first].when &&
                                   m->entry[i].order < m->entry[first].order)))
            first = i;
    return first;
}

static void make_room(struct bz_delay_heap *h)
{
    uint32_t capacity = h->capacity > 0 ? 2 * h->capacity : 1;
    void *block = malloc(bz_delay_heap_bytes(h, capacity));
    CHECK_NOT_NULL(block);
    free(bz_delay_heap_grow(h, capacity, block));
}

static void heap_step(struct bz_delay_heap *h, struct model *m)
{
    int i = (int)(t_random() % ENTRIES), first = first_in(m);
    uint64_t when = t_random() % 50, value = t_random(), got = 0;
    switch (t_random() % 5) {
    case 0:
    case 1:
        CHECK_EQ(bz_delay_heap_move(h, m->entry[i].key, when), m->entry[i].is_in);
        if (!m->entry[i].is_in) {
            if (bz_delay_heap_is_full(h))
                make_room(h);
            m->entry[i].key = bz_delay_heap_insert(h, &value, when);
            m->entry[i].value = value;
            m->entry[i].is_in = true;
        }
        m->entry[i].when = when;
        m->entry[i].order = m->order++;
        break;
    case 2:
        CHECK_EQ(bz_delay_heap_remove(h, m->entry[i].key, &got), m->entry[i].is_in);
        CHECK(!m->entry[i].is_in || got == m->entry[i].value);
        m->entry[i].is_in = false;
        break;
    default:
        if (first < 0)
            break;
        CHECK_EQ(bz_delay_heap_first(h), m->entry[first].when);
        bz_delay_heap_take(h, &got);
        CHECK_EQ(got, m->entry[first].value);
        m->entry[first].is_in = false;
    }
}

TEST(delay_heap, behaves_as_a_sorted_list)
{
    struct bz_delay_heap h;
    static struct model m;
    bz_delay_heap_init(&h, sizeof(uint64_t));
    for (long n = t_scaled(20000); n > 0; n--) {
        heap_step(&h, &m);
        if (n % 64 == 0)
            bz_delay_heap_check(&h);
    }
    bz_delay_heap_check(&h);
    free(h.slot);
}

/* ---- the queue ---- */

static blitz_delay_queue *queue(void)
{
    blitz_delay_queue *q;
    CHECK_EQ(blitz_delay_queue_new(sizeof(int), &q), 0);
    return q;
}

TEST(delay_queue, values_come_in_the_order_of_their_times)
{
    blitz_delay_queue *q = queue();
    int got = 0;
    blitz_instant now = blitz_now();
    CHECK_EQ(blitz_delay_queue_try_recv(q, &got), -EAGAIN);
    for (int i = 0; i < 100; i++) /* 37 has no common factor with 100 */
        CHECK_EQ(blitz_delay_queue_insert(q, &i, now - (unsigned)(i * 37 % 100), NULL), 0);
    CHECK_EQ(blitz_delay_queue_length(q), 100u);
    uint64_t last = 0;
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(blitz_delay_queue_recv(q, &got, 0), 0);
        CHECK_GE(now - (unsigned)(got * 37 % 100), last);
        last = now - (unsigned)(got * 37 % 100);
    }
    CHECK_EQ(blitz_delay_queue_try_recv(q, &got), -EAGAIN);
    blitz_delay_queue_unref(q);
}

TEST(delay_queue, equal_times_keep_the_order_of_inserts)
{
    blitz_delay_queue *q = queue();
    int got = 0;
    for (int i = 0; i < 50; i++)
        CHECK_EQ(blitz_delay_queue_insert(q, &i, 1, NULL), 0);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(blitz_delay_queue_try_recv(q, &got), 0);
        CHECK_EQ(got, i);
    }
    blitz_delay_queue_unref(q);
}

TEST(delay_queue, an_entry_can_be_moved_and_removed_until_it_is_received)
{
    blitz_delay_queue *q = queue();
    blitz_delay_key a, b;
    int got = 0, one = 1, two = 2;
    CHECK_EQ(blitz_delay_queue_insert(q, &one, BLITZ_FOREVER, &a), 0);
    CHECK_EQ(blitz_delay_queue_insert(q, &two, 1, &b), 0);
    CHECK_EQ(blitz_delay_queue_move(q, b, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_delay_queue_try_recv(q, &got), -EAGAIN);
    CHECK_EQ(blitz_delay_queue_move(q, a, 0), 0);
    CHECK_EQ(blitz_delay_queue_try_recv(q, &got), 0);
    CHECK_EQ(got, 1);
    CHECK_EQ(blitz_delay_queue_move(q, a, 0), -ENOENT);
    CHECK_EQ(blitz_delay_queue_remove(q, a, NULL), -ENOENT);
    CHECK_EQ(blitz_delay_queue_remove(q, b, &got), 0);
    CHECK_EQ(got, 2);
    CHECK_EQ(blitz_delay_queue_remove(q, 12345, NULL), -ENOENT);
    CHECK_EQ(blitz_delay_queue_length(q), 0u);
    blitz_delay_queue_unref(q);
}

TEST(delay_queue, after_a_close_the_rest_is_received_and_then_the_end)
{
    blitz_delay_queue *q = queue();
    int got = 0, one = 1;
    CHECK_EQ(blitz_delay_queue_insert(q, &one, 1, NULL), 0);
    blitz_delay_queue_close(q);
    CHECK_EQ(blitz_delay_queue_insert(q, &one, 1, NULL), -EPIPE);
    CHECK_EQ(blitz_delay_queue_recv(q, &got, 0), 0);
    CHECK_EQ(blitz_delay_queue_try_recv(q, &got), -EPIPE);
    CHECK_EQ(blitz_delay_queue_recv(q, &got, BLITZ_FOREVER), -EPIPE);
    blitz_delay_queue_unref(q);
}

static blitz_poll ask(blitz_future *f, struct t_bell *b)
{
    blitz_waker w = t_bell_waker(b);
    return f->ops->poll(f, &w);
}

/* The leader leaves; the next receiver leads. An insert before the first entry, and a close, ring the leader. */
TEST(delay_queue, a_change_of_the_first_entry_wakes_the_first_receiver)
{
    blitz_delay_queue *q = queue();
    blitz_delay_queue_future a, b;
    struct t_bell bell = {0}, other = {0};
    int x = 0, y = 0, one = 1;
    CHECK_EQ(blitz_delay_queue_insert(q, &one, BLITZ_FOREVER, NULL), 0);
    blitz_delay_queue_recv_future_init(&a, q, &x);
    blitz_delay_queue_recv_future_init(&b, q, &y);
    CHECK_EQ(ask(&a.future, &bell), BLITZ_PENDING);
    CHECK_EQ(ask(&b.future, &other), BLITZ_PENDING);
    a.future.ops->cancel(&a.future);
    CHECK_EQ(bell.holders, 0);
    CHECK_EQ(ask(&b.future, &other), BLITZ_PENDING);
    int before = other.rung;
    CHECK_EQ(blitz_delay_queue_insert(q, &(int){2}, 1, NULL), 0);
    CHECK_GT(other.rung, before);
    CHECK_EQ(ask(&b.future, &other), BLITZ_READY);
    CHECK_EQ(other.holders, 0); /* the timer has forgotten it */
    CHECK_EQ(y, 2);
    blitz_delay_queue_recv_future_init(&a, q, &x);
    CHECK_EQ(ask(&a.future, &bell), BLITZ_PENDING);
    CHECK_EQ(blitz_delay_queue_remove(q, UINT64_C(1) << 32, NULL), 0);
    CHECK_EQ(ask(&a.future, &bell), BLITZ_PENDING);
    before = bell.rung;
    blitz_delay_queue_close(q);
    CHECK_GT(bell.rung, before);
    CHECK_EQ(ask(&a.future, &bell), BLITZ_READY);
    CHECK_EQ(blitz_future_output(&a.future), -EPIPE);
    CHECK_EQ(bell.holders + other.holders, 0);
    blitz_delay_queue_unref(q);
}

TEST(delay_queue, values_of_more_than_half_of_all_memory_are_refused)
{
    blitz_delay_queue *q;
    CHECK_EQ(blitz_delay_queue_new(PTRDIFF_MAX / 2 + 1, &q), -EINVAL);
    CHECK_EQ(blitz_delay_queue_new(PTRDIFF_MAX / 2, &q), 0);
    blitz_delay_queue_unref(q);
}

TEST(delay_queue, values_of_no_size)
{
    blitz_delay_queue *q;
    CHECK_EQ(blitz_delay_queue_new(SIZE_MAX, &q), -EINVAL);
    CHECK_EQ(blitz_delay_queue_new(0, NULL), -EINVAL);
    CHECK_EQ(blitz_delay_queue_new(0, &q), 0);
    CHECK_EQ(blitz_delay_queue_insert(q, NULL, 1, NULL), 0);
    CHECK_EQ(blitz_delay_queue_recv(q, NULL, 0), 0);
    blitz_delay_queue_unref(blitz_delay_queue_ref(q));
    blitz_delay_queue_unref(q);
    blitz_delay_queue_unref(NULL);
}

static int gives_up(void *arg)
{
    int got;
    CHECK_EQ(blitz_delay_queue_recv(arg, &got, 0), -ETIMEDOUT);
    CHECK_EQ(blitz_delay_queue_recv(arg, &got, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    return 0;
}

TEST(delay_queue, a_deadline_receives_nothing)
{
    blitz_delay_queue *q = queue();
    CHECK_EQ(blitz_delay_queue_insert(q, &(int){1}, BLITZ_FOREVER, NULL), 0);
    CHECK_EQ(gives_up(q), 0);
    t_on_each(gives_up, q, 0);
    CHECK_EQ(blitz_delay_queue_length(q), 1u);
    blitz_delay_queue_unref(q);
}
