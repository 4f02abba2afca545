/*
 * readylist_model.c - a child that was woken is polled; wakers outlive the list.
 *
 *   covers: src/wait/readylist.c src/wait/readylist.h
 *   needs: src/os/lock.c
 *   defines: BZ_LOCK_SPINS=1
 *
 * The parent is a thread that polls and sleeps on a word which its waker sets, as in await.c. What is
 * explored is the order of wakes, polls and the close, and memory that is touched after it was freed.
 */
#include "model.h"

#include "model_os.h"
#include "proc/state.h"
#include "wait/readylist.h"
#include "wait/waker.h"
#include "waker_toy.h"

static void *watched_alloc(void *ctx, size_t size, size_t align)
{
    return m_allocator.alloc(ctx, size, align);
}

static void watched_free(void *ctx, void *memory, size_t size)
{
    m_allocator.free(ctx, memory, size);
}

const blitz_allocator bz_allocator_libc = {watched_alloc, watched_free, NULL};
static bz_os_word rung;
static bz_atomic(int) holders;

/* The parent is a plain thread. */
void *bz_self_get_slow(void)
{
    return NULL;
}

const struct bz_os *bz_os_here(void)
{
    return &m_os;
}

const struct bz_os *bz_waker_by(const blitz_waker *w, uint64_t when)
{
    (void)w;
    (void)when;
    return &m_os;
}

static void ring_clone(void *data)
{
    (void)data;
    bz_fetch_add_relaxed(&holders, 1);
}

static void ring_wake_by_ref(void *data)
{
    (void)data;
    bz_store_release(&rung, 1);
    m_word_wake(&rung, 1);
}

static void ring_drop(void *data)
{
    (void)data;
    bz_fetch_sub_relaxed(&holders, 1);
}

static void ring_wake(void *data)
{
    ring_wake_by_ref(data);
    ring_drop(data);
}

static const blitz_waker_ops ring = {ring_clone, ring_wake, ring_wake_by_ref, ring_drop};
static const blitz_waker parent = {&ring, NULL};
static struct bz_readylist *list;
static blitz_waker child[2];
static bz_atomic(int) is_set[2];
static int seen[2];

/* Two children that were polled once and are not ready. */
static void given_two_children(void)
{
    bz_atomic_init(&rung, 0);
    bz_atomic_init(&holders, 0);
    m_settings()->spurious = 0;
    m_settings()->spin_tries = 1; /* a lock gives up spinning, and sleeps */
    list = bz_readylist_new(2, &parent);
    m_assert(list != NULL);
    bz_readylist_begin(list, &parent);
    for (size_t i = 0; i < 2; i++) {
        blitz_waker w = bz_readylist_waker(bz_readylist_at(list, i));
        child[i] = blitz_waker_clone(&w);
        bz_atomic_init(&is_set[i], 0);
        seen[i] = 0;
    }
    bz_readylist_end(list, &parent);
}

static void set(int i)
{
    bz_store_relaxed(&is_set[i], 1); /* relaxed: the wake publishes it */
    blitz_waker_wake(&child[i]);
}

static void sets_the_first(void)
{
    set(0);
}

static void sets_the_second(void)
{
    set(1);
}

/* Poll until both were seen. A wake that is lost makes this wait for ever, which the checker reports. */
static void polls(void)
{
    for (;;) {
        bz_readylist_begin(list, &parent);
        for (struct bz_ready_entry *e; (e = bz_readylist_next(list)) != NULL;) {
            size_t i = bz_readylist_index(e);
            seen[i] += bz_load_relaxed(&is_set[i]); /* relaxed: the wake has published it */
        }
        if (seen[0] > 0 && seen[1] > 0)
            break;
        bz_readylist_end(list, &parent);
        while (!bz_load_acquire(&rung))
            m_word_wait(&rung, 0);
        bz_store_release(&rung, 0);
    }
    bz_readylist_close(list);
}

static void closes(void)
{
    bz_readylist_close(list);
}

MODEL(readylist, a_child_that_is_woken_is_polled_once)
{
    given_two_children();
    m_threads(sets_the_first, sets_the_second, polls);
    m_assert(seen[0] == 1 && seen[1] == 1);
    m_assert(bz_load_relaxed(&holders) == 0);
}

MODEL(readylist, wakers_outlive_the_list)
{
    given_two_children();
    m_threads(sets_the_first, closes, sets_the_second);
    m_assert(bz_load_relaxed(&holders) == 0);
}
