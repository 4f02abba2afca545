/* mpsc.h on real threads: nothing lost, nothing doubled, each pusher's order kept. */
#include "harness.h"

#include <sched.h>

#include "base/mpsc.h"

enum { PUSHERS = 4 };
struct item {
    struct bz_mpsc_node node;
    int pusher;
    uint64_t number;
    struct item *reuse; /* plain: handed over by the queue */
};

static struct bz_mpsc queue;
static struct item *items[PUSHERS];
static uint64_t each;
static bz_atomic(uint64_t) firsts, empties;

static void push_all(int pusher)
{
    for (uint64_t i = 0; i < each; i++) {
        struct item *it = &items[pusher][i];
        it->pusher = pusher;
        it->number = i;
        if (bz_mpsc_push(&queue, &it->node))
            bz_fetch_add_relaxed(&firsts, 1);
    }
}

static void take_all(void)
{
    uint64_t next[PUSHERS] = {0}, left = PUSHERS * each, spells = 0;
    while (left > 0) {
        struct bz_mpsc_node *n = bz_mpsc_take(&queue);
        if (n == NULL) {
            sched_yield();
            continue;
        }
        struct item *it = BZ_CONTAINER_OF(n, struct item, node);
        CHECK_EQ(it->number, next[it->pusher]);
        next[it->pusher]++;
        if (bz_load_relaxed(&n->next) == NULL)
            spells++;               /* the take emptied it: there was nothing to go on with */
        memset(n, 0xee, sizeof *n); /* it is ours: no other thread may access it */
        left--;
    }
    CHECK(bz_mpsc_is_empty(&queue));
    CHECK_EQ(bz_mpsc_check(&queue), 0u);
    bz_store_relaxed(&empties, spells);
}

static void pushers_and_taker(void *arg, int index)
{
    (void)arg;
    if (index < PUSHERS)
        push_all(index);
    else
        take_all();
}

/* Exactly one push for each empty period returned "first": no wake-up is missing or extra. */
TEST(mpsc, four_pushers_one_taker)
{
    each = t_scaled(200000);
    bz_mpsc_init(&queue);
    for (int p = 0; p < PUSHERS; p++)
        CHECK_NOT_NULL(items[p] = calloc(each, sizeof *items[p]));
    t_threads(PUSHERS + 1, pushers_and_taker, NULL);
    CHECK_EQ(bz_load_relaxed(&firsts), bz_load_relaxed(&empties));
    for (int p = 0; p < PUSHERS; p++)
        free(items[p]);
}
