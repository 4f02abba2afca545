/*
 * scene_ring.c - a bounded ring between two and two threads, against a ring under a mutex.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "support/mpmc.h"
#include "demo.h"

enum { SIDE = 2, CAPACITY = 1024, BURST = 256 };

struct pass {
    bool is_ours;
    struct bz_mpmc ring;
    pthread_mutex_t lock;
    void *cell[CAPACITY];      /* guarded by lock */
    uint64_t push_at, take_at; /* guarded by lock */
    uint64_t each;
    _Atomic uint64_t taken, sum;
};

static bool push(struct pass *p, void *value)
{
    if (p->is_ours)
        return bz_mpmc_push(&p->ring, value);
    pthread_mutex_lock(&p->lock);
    bool has_room = p->push_at - p->take_at < CAPACITY;
    if (has_room)
        p->cell[p->push_at++ % CAPACITY] = value;
    pthread_mutex_unlock(&p->lock);
    return has_room;
}

static bool take(struct pass *p, void **value)
{
    if (p->is_ours)
        return bz_mpmc_take(&p->ring, value);
    pthread_mutex_lock(&p->lock);
    bool has_one = p->push_at != p->take_at;
    if (has_one)
        *value = p->cell[p->take_at++ % CAPACITY];
    pthread_mutex_unlock(&p->lock);
    return has_one;
}

static void taker(struct pass *p)
{
    uint64_t sum = 0, unsaid = 0, total = SIDE * p->each;
    for (;;) {
        void *value;
        if (take(p, &value)) {
            sum += (uintptr_t)value;
            if (++unsaid < BURST)
                continue;
        } else {
            sched_yield();
        }
        p->taken += unsaid;
        unsaid = 0;
        if (p->taken == total)
            break;
    }
    p->sum += sum;
}

static void everybody(void *arg, int index)
{
    struct pass *p = arg;
    if (index >= SIDE) {
        taker(p);
        return;
    }
    for (uint64_t i = 1; i <= p->each; i++)
        while (!push(p, (void *)(uintptr_t)i))
            sched_yield();
}

static double run(struct demo *d, struct pass *p, bool is_ours)
{
    p->is_ours = is_ours;
    p->taken = 0;
    p->sum = 0;
    double start = demo_seconds();
    demo_threads(d, 2 * SIDE, everybody, p, &p->taken, SIDE * p->each,
                 is_ours ? "items" : "items (mutex)");
    demo_claim(d, p->sum == SIDE * (p->each * (p->each + 1) / 2), "items lost or doubled");
    return demo_seconds() - start;
}

static void play(struct demo *d)
{
    static struct pass p;
    p.each = demo_scaled(d, 10000000);
    pthread_mutex_init(&p.lock, NULL);
    if (bz_mpmc_init(&p.ring, CAPACITY, &bz_allocator_libc) != 0) {
        demo_claim(d, false, "no memory for the ring");
        return;
    }
    double ours = run(d, &p, true), theirs = run(d, &p, false);
    demo_result(d, "%s items from %d to %d threads in %.2f s (%.0f ns each), each exactly once",
                demo_count(SIDE * p.each), SIDE, SIDE, ours, ours * 1e9 / (double)(SIDE * p.each));
    demo_result(d, "a ring under a mutex: %.2f s, %.1f times as long", theirs, theirs / ours);
    bz_mpmc_fini(&p.ring);
}

const struct demo_scene scene_ring = {
    "ring", "A ring that many share",
    "Two threads push and two take through 1024 cells; a cell knows whose turn it is.", play};
