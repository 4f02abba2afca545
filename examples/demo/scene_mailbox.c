/*
 * scene_mailbox.c - an actor's inbox: four threads push, one takes.
 *
 * The same messages go through blitz's intrusive queue and through a list under a mutex, the usual
 * hand-written solution.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/mpsc.h"
#include "demo.h"

enum { SENDERS = 4, BURST = 256 };

struct letter {
    struct bz_mpsc_node node;
    struct letter *next; /* the mutex queue's link */
    uint32_t sender, number;
};

struct post {
    bool is_ours;
    struct bz_mpsc inbox;
    pthread_mutex_t lock;
    struct letter *first, *last; /* guarded by lock */
    struct letter *letters[SENDERS];
    uint32_t each;
    _Atomic uint64_t received;
    uint64_t out_of_order;
};

static void post_push(struct post *p, struct letter *l)
{
    if (p->is_ours) {
        bz_mpsc_push(&p->inbox, &l->node);
        return;
    }
    l->next = NULL;
    pthread_mutex_lock(&p->lock);
    if (p->last != NULL)
        p->last->next = l;
    else
        p->first = l;
    p->last = l;
    pthread_mutex_unlock(&p->lock);
}

static struct letter *post_take(struct post *p)
{
    if (p->is_ours) {
        struct bz_mpsc_node *n = bz_mpsc_take(&p->inbox);
        return n != NULL ? BZ_CONTAINER_OF(n, struct letter, node) : NULL;
    }
    pthread_mutex_lock(&p->lock);
    struct letter *l = p->first;
    if (l != NULL && (p->first = l->next) == NULL)
        p->last = NULL;
    pthread_mutex_unlock(&p->lock);
    return l;
}

static void receive_all(struct post *p)
{
    uint32_t next[SENDERS] = {0};
    uint64_t count = 0, total = (uint64_t)SENDERS * p->each;
    while (count < total) {
        struct letter *l = post_take(p);
        if (l == NULL) {
            sched_yield();
            continue;
        }
        p->out_of_order += l->number != next[l->sender]++;
        if (++count % BURST == 0 || count == total)
            p->received = count;
    }
}

static void everybody(void *arg, int index)
{
    struct post *p = arg;
    if (index == SENDERS) {
        receive_all(p);
        return;
    }
    for (uint32_t i = 0; i < p->each; i++) {
        struct letter *l = &p->letters[index][i];
        l->sender = (uint32_t)index;
        l->number = i;
        post_push(p, l);
    }
}

static double deliver(struct demo *d, struct post *p, bool is_ours)
{
    uint64_t total = (uint64_t)SENDERS * p->each;
    p->is_ours = is_ours;
    p->received = 0;
    double start = demo_seconds();
    demo_threads(d, SENDERS + 1, everybody, p, &p->received, total,
                 is_ours ? "messages" : "messages (mutex)");
    return demo_seconds() - start;
}

static void play(struct demo *d)
{
    static struct post p;
    p.each = (uint32_t)demo_scaled(d, 1000000);
    bz_mpsc_init(&p.inbox);
    pthread_mutex_init(&p.lock, NULL);
    for (int i = 0; i < SENDERS; i++)
        if ((p.letters[i] = calloc(p.each, sizeof(struct letter))) == NULL)
            demo_claim(d, false, "no memory for the letters");
    uint64_t total = (uint64_t)SENDERS * p.each;

    deliver(d, &p, true); /* touches the memory for both */
    double ours = deliver(d, &p, true), theirs = deliver(d, &p, false);

    demo_claim(d, p.out_of_order == 0, "%s messages out of order", demo_count(p.out_of_order));
    demo_claim(d, bz_mpsc_is_empty(&p.inbox), "a message was left behind");
    demo_result(d, "%s messages from %d threads in %.2f s (%.0f ns each), in order, none lost",
                demo_count(total), SENDERS, ours, ours * 1e9 / (double)total);
    demo_result(d, "a list under a mutex: %.2f s, %.1f times as long", theirs, theirs / ours);
    for (int i = 0; i < SENDERS; i++)
        free(p.letters[i]);
}

const struct demo_scene scene_mailbox = {
    "mailbox", "Four threads, one inbox",
    "Any number of senders, no lock: a push is one exchange and one store.", play};
