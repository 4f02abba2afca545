/*
 * tasks.c - task headers in slabs, and the slabs as the registry.
 *
 * A runtime must be able to find its tasks: to cancel them when it stops, to name those that do not
 * end, to show them in a debugger. A list of them costs a lock, or two locked instructions on
 * lines that all CPUs write, in every spawn and every end. It would be read once in a
 * program's life. Here the memory is the list. The classes are watched (base/slab.h): the first
 * word of a header is its state word, which the slab never touches. 0 references in it mean
 * that the slot holds no live header. A walk goes over all objects of all slabs, takes a reference where there
 * is one (bz_word_try_ref), and shows that task.
 *
 * The walk is correct for three reasons. Every header field is written before bz_word_init publishes the word
 * (word.c [P]). The thread that drops the last reference leaves a word without references, before the object is
 * free. The slab frees no chunk during a walk. If a header is freed and reused between
 * the walker's load and its CAS, it is just another live task.
 *
 * So the last reference must be dropped by a read-modify-write: "I have the only one, so no other thread
 * can get another" is not true here. (An end and the drop of its references are one step, word.c.) There is one
 * exception. In a brief section (queue/retake.h) there is no walk, and a joiner that has run its child drops the last
 * references by a plain store. A walk begins with a barrier and waits for the brief sections of all machines; until
 * its end there are no others.
 *
 * A proc keeps some headers of fibers that ended on it, of any owner, so that a spawn there
 * writes only the new fields. They return to their slabs when its machine goes to sleep.
 *
 * Actors are in slots (slots.h), whose memory stays; the walk visits these, too. Letters are the memory of messages: slabs as
 * those of headers, which no walk visits. A proc keeps some of them, too.
 *
 * Ids come in blocks per proc from one counter of the process, so they are unique, not dense, and
 * not in the order of time.
 *
 * A limit on the number of tasks is exact, and so costs two locked instructions a task; without
 * a limit it costs a compare.
 *
 * The end. A header may outlive its runtime, in a handle or a waker, and then needs its memory and its
 * slab. Counting references of headers to the runtime would be one more shared counter. When the
 * user gives the runtime up, every slab is closed (base/slab.h), which tells how many objects are
 * in use. From then on each free subtracts one from `left`, and the thread that subtracts the last frees
 * the runtime. `left` begins so high that frees before the sum is known cannot end it.
 *
 * I1  A word with references belongs to a header all of whose fields are set.
 * I2  alive, if there is a limit, is the number of tasks counted in and not out, except for
 *     refusals in progress; it is at least that of live.c.
 *
 * [L] free: left acq_rel -> free, close: left acq_rel   all uses of a header come before its memory
 *     goes
 */
#include "life/tasks.h"

#include <errno.h>

#include "base/check.h"
#include "base/unusual.h"
#include "life/stacks.h"
#include "proc/enter.h"
#include "proc/state.h"

static const size_t bytes_of[BZ_TASK_CLASSES] = {128, 192, 256, 384, BZ_TASK_BYTES_MAX};
static const size_t letter_bytes[BZ_LETTER_KINDS] = {64, 128};

enum { ID_BLOCK = 1024 };
static const uint64_t LEFT_OPEN = UINT64_C(1) << 62; /* more than the possible number of objects */

/* Of the process: ids given out in blocks. A line of its own: the linker would put it beside constants that every
 * switch reads (arch/eh.h), and each refill would take that line away from all CPUs. */
static struct {
    BZ_OWN_LINE bz_atomic(uint64_t) used;
} ids;

/* ---- making ---- */

static void home_init(struct bz_task_home *h, const struct bz_slab_class *kind,
                      const struct bz_slab_class *letter_kind)
{
    for (unsigned c = 0; c < BZ_TASK_CLASSES; c++)
        bz_slab_init(&h->slab[c], &kind[c]);
    for (unsigned c = 0; c < BZ_LETTER_KINDS; c++) {
        bz_slab_init(&h->letter[c], &letter_kind[c]);
        h->kept[c] = (struct bz_letter_stash){.first = NULL};
    }
    bz_slot_home_init(&h->slots);
    h->tickets = NULL;
    h->ticket_count = 0;
    h->id_next = h->id_end = 0;
    h->stash.count = 0;
    h->stash.max = 0;
    h->stash.fill = 1;
}

void bz_tasks_init(struct bz_runtime *rt, uint64_t tasks_max)
{
    struct bz_tasks *all = &rt->tasks;
    for (unsigned c = 0; c < BZ_TASK_CLASSES; c++) {
        int err = bz_slab_class_init(&all->kind[c], "task", bytes_of[c], BZ_TASK_ALIGN, &rt->alloc);
        BZ_CHECK(err == 0, "task class %u: %d", c, err);
        bz_slab_class_watch(&all->kind[c]);
        bz_slab_class_hoard(&all->kind[c]);
    }
    for (unsigned c = 0; c < BZ_LETTER_KINDS; c++) {
        int err = bz_slab_class_init(&all->letter_kind[c], "letter", letter_bytes[c], BZ_TASK_ALIGN,
                                     &rt->alloc);
        BZ_CHECK(err == 0, "letter class %u: %d", c, err);
        bz_slab_class_hoard(&all->letter_kind[c]);
    }
    bz_slots_init(&all->slots);
    all->max = tasks_max;
    bz_atomic_init(&all->is_short, 0);
    bz_live_init(&all->live, rt->os, bz_is_plain(rt), &rt->procs[0].tasks.live, sizeof *rt->procs,
                 rt->proc_count);
    bz_lock_init(&all->outside_lock);
    home_init(&all->outside, all->kind, all->letter_kind);
    for (unsigned i = 0; i < rt->proc_count; i++) {
        home_init(&rt->procs[i].tasks, all->kind, all->letter_kind);
        rt->procs[i].tasks.stash.max = tasks_max == 0 && !bz_is_plain(rt) ? BZ_STASH_MAX : 0;
        for (unsigned c = 0; c < BZ_LETTER_KINDS; c++)
            rt->procs[i].tasks.kept[c].max = bz_is_plain(rt) ? 0 : BZ_LETTERS_KEPT;
    }
    bz_atomic_init(&all->alive, 0);
    bz_atomic_init(&all->left, LEFT_OPEN);
}

/* The i-th home: the procs', then the shared one; NULL past it. */
static struct bz_task_home *home_at(struct bz_runtime *rt, unsigned i)
{
    if (i < rt->proc_count)
        return &rt->procs[i].tasks;
    return i == rt->proc_count ? &rt->tasks.outside : NULL;
}

/* Call the function for every slab of the runtime. Returns the sum of its results. */
static uint64_t each_slab(struct bz_runtime *rt, uint64_t (*fn)(struct bz_slab *s))
{
    struct bz_task_home *h;
    uint64_t sum = 0;
    for (unsigned i = 0; (h = home_at(rt, i)) != NULL; i++) {
        for (unsigned c = 0; c < BZ_TASK_CLASSES; c++)
            sum += fn(&h->slab[c]);
        for (unsigned c = 0; c < BZ_LETTER_KINDS; c++)
            sum += fn(&h->letter[c]);
    }
    return sum;
}

/* ---- allocating ---- */

/* The proc of the calling machine, if the machine belongs to this runtime and has a proc; else
 * NULL. Between bz_enter and bz_leave. */
static struct bz_proc *proc_in(const struct bz_runtime *rt)
{
    struct bz_machine *m = bz_machine_in(rt);
    return m != NULL ? m->proc : NULL;
}

static unsigned class_for(size_t bytes)
{
    unsigned c = 0;
    BZ_CHECK(bytes <= BZ_TASK_BYTES_MAX, "a task header of %zu bytes", bytes);
    while (bytes > bytes_of[c])
        c++;
    return c;
}

void bz_task_ids_refill(struct bz_task_home *h)
{
    h->id_next = bz_fetch_add_relaxed(&ids.used, ID_BLOCK) + 1; /* relaxed: uniqueness is enough */
    h->id_end = h->id_next + ID_BLOCK;
}

static uint64_t next_id(struct bz_task_home *h)
{
    if (BZ_UNLIKELY(h->id_next == h->id_end))
        bz_task_ids_refill(h);
    return h->id_next++;
}

static struct bz_task *alloc_in(struct bz_task_home *h, unsigned class)
{
    struct bz_task *t = bz_slab_alloc(&h->slab[class]);
    if (t != NULL)
        t->id = next_id(h);
    return t;
}

static struct bz_task *alloc_outside(struct bz_runtime *rt, unsigned class)
{
    bz_lock_take(&rt->tasks.outside_lock, rt->os);
    struct bz_task *t = alloc_in(&rt->tasks.outside, class);
    bz_lock_drop(&rt->tasks.outside_lock, rt->os);
    return t;
}

struct bz_task *bz_task_alloc(struct bz_runtime *rt, size_t bytes)
{
    uint32_t was;
    unsigned class = class_for(bytes);
    (void)!bz_enter(&was);
    struct bz_proc *p = proc_in(rt);
    struct bz_task *t =
        BZ_LIKELY(p != NULL) ? alloc_in(&p->tasks, class) : alloc_outside(rt, class);
    bz_leave(was);
    return t;
}

uint64_t bz_task_id_next(struct bz_runtime *rt, struct bz_machine *m)
{
    if (m != NULL)
        return next_id(&m->proc->tasks);
    bz_lock_take(&rt->tasks.outside_lock, rt->os);
    uint64_t id = next_id(&rt->tasks.outside);
    bz_lock_drop(&rt->tasks.outside_lock, rt->os);
    return id;
}

void bz_task_stay(struct bz_runtime *rt)
{
    bz_fetch_add_relaxed(&rt->tasks.left, 1); /* relaxed: the end comes later, by other means */
}

void bz_task_left(struct bz_runtime *rt)
{
    if (bz_fetch_sub_acqrel(&rt->tasks.left, 1) == 1) /* [L] */
        rt->mains->release(rt);
}

static void free_in(struct bz_task *t)
{
    struct bz_runtime *rt = t->rt;
    struct bz_proc *p = proc_in(rt);
    BZ_ASSERT(!(bz_load_relaxed(&t->word) & BZ_WORD_REF_MASK)); /* relaxed: it is ours alone */
    if (BZ_LIKELY(p != NULL)) {
        size_t class = (size_t)(bz_slab_kind(t) - rt->tasks.kind);
        bz_slab_free(&p->tasks.slab[class], t);
    } else if (!bz_slab_free_outside(t)) {
        bz_task_left(rt);
    }
}

void bz_task_free(struct bz_task *t)
{
    uint32_t was;
    (void)!bz_enter(&was);
    free_in(t);
    bz_leave(was);
}

static uint64_t rest(struct bz_slab *s)
{
    bz_slab_flush(s);
    bz_slab_collect(s);
    bz_slab_trim(s);
    return 0;
}

BZ_NOINLINE void bz_tasks_return(struct bz_task_home *h, unsigned keep)
{
    while (h->stash.count > keep)
        bz_slab_free(&h->slab[0], h->stash.ready[--h->stash.count]);
}

static void return_letters(struct bz_task_home *h, unsigned kind)
{
    while (h->kept[kind].first != NULL)
        bz_slab_free(&h->letter[kind], bz_letter_take(h, kind));
}

void bz_tasks_rest(struct bz_task_home *h)
{
    bz_tasks_return(h, 0);
    for (unsigned c = 0; c < BZ_LETTER_KINDS; c++)
        return_letters(h, c);
    h->stash.fill = 1;
    for (unsigned c = 0; c < BZ_TASK_CLASSES; c++)
        rest(&h->slab[c]);
    for (unsigned c = 0; c < BZ_LETTER_KINDS; c++)
        rest(&h->letter[c]);
}

/* ---- counting ---- */

/* Count one more, within the limit. I2 */
static bool is_let_in(struct bz_tasks *all)
{
    if (BZ_LIKELY(all->max == 0))
        return true;
    if (bz_fetch_add_relaxed(&all->alive, 1) < all->max) /* relaxed: a count */
        return true;
    bz_fetch_sub_relaxed(&all->alive, 1); /* relaxed: a count */
    return false;
}

static void let_out(struct bz_tasks *all)
{
    if (BZ_UNLIKELY(all->max != 0))
        bz_fetch_sub_relaxed(&all->alive, 1); /* relaxed: a count */
}

int bz_task_enlist(struct bz_task *t)
{
    struct bz_tasks *all = &t->rt->tasks;
    uint32_t was;
    if (!is_let_in(all))
        return -EAGAIN;
    bz_os_delay(t->rt->os, BZ_OS_AT_PUBLISH);
    (void)!bz_enter(&was);
    struct bz_proc *p = proc_in(t->rt);
    bool is_welcome = bz_live_spawn(&all->live, p != NULL ? &p->tasks.live : NULL);
    bz_leave(was);
    if (is_welcome)
        return 0;
    let_out(all);
    return -ESHUTDOWN;
}

void bz_task_strike(struct bz_runtime *rt)
{
    struct bz_proc *p = proc_in(rt);
    let_out(&rt->tasks);
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    bz_live_end(&rt->tasks.live, p != NULL ? &p->tasks.live : NULL);
}

/* ---- finding them all ---- */

static void walk(struct bz_slab *s, const struct bz_os *os, bz_tasks_fn *fn, void *ctx)
{
    struct bz_slab_walk w;
    for (unsigned round = 0; !bz_slab_walk_begin(&w, s); round++)
        bz_os_relax(os, round);
    for (struct bz_task *t; (t = bz_slab_walk_next(&w)) != NULL;)
        if (bz_word_try_ref(&t->word)) { /* I1 */
            fn(t, ctx);
            bz_task_unref(t);
        }
    bz_slab_walk_end(&w);
}

/* From here to bz_unusual_end() no machine changes the word of a task by a plain store: retake.h [W]. */
static void keep_words_still(struct bz_runtime *rt)
{
    bz_unusual_begin();
    if (bz_is_plain(rt))
        return;                   /* there are no brief sections */
    bz_barrier_pay(&rt->barrier); /* retake.h [W] */
    for (unsigned i = bz_machines_count(rt); i-- > 0;) {
        struct bz_machine *m = bz_machines_at(rt, i);
        if (m !=
            bz_machine_self()) /* a check of ours may have failed there: then this is its dump */
            bz_retake_outlast_brief(&m->taken);
    }
}

void bz_tasks_each(struct bz_runtime *rt, bz_tasks_fn *fn, void *ctx)
{
    struct bz_task_home *h;
    keep_words_still(rt);
    for (unsigned i = 0; (h = home_at(rt, i)) != NULL; i++)
        for (unsigned c = 0; c < BZ_TASK_CLASSES; c++)
            walk(&h->slab[c], rt->os, fn, ctx);
    bz_slots_each(&rt->tasks.slots, fn, ctx);
    bz_unusual_end();
}

static uint64_t bytes_in(struct bz_slab *s)
{
    return bz_slab_bytes(s);
}

uint64_t bz_tasks_bytes(struct bz_runtime *rt)
{
    return each_slab(rt, bytes_in) + bz_slots_bytes(&rt->tasks.slots);
}

/* ---- the end ---- */

static uint64_t close_one(struct bz_slab *s)
{
    return bz_slab_close(s);
}

static uint64_t fini_one(struct bz_slab *s)
{
    bz_slab_release(s);
    return 0;
}

static uint64_t used_in(struct bz_slab *s)
{
    return s->used;
}

uint64_t bz_tasks_out(struct bz_runtime *rt)
{
    for (unsigned i = 0; i < rt->proc_count; i++) {
        bz_tasks_rest(&rt->procs[i].tasks);
        bz_slots_rest(&rt->tasks.slots, &rt->procs[i].tasks.slots, rt->os);
    }
    each_slab(rt, rest); /* all batches go home before they are counted */
    return each_slab(rt, used_in) + bz_slots_out(&rt->tasks.slots, rt->os);
}

bool bz_tasks_close(struct bz_runtime *rt)
{
    (void)bz_tasks_out(rt);            /* all batches go home before the first home is closed */
    uint64_t out = bz_slots_close(rt); /* first: dead actors give up late messages */
    out += each_slab(rt, close_one);
    uint64_t less = LEFT_OPEN - out;
    return bz_fetch_sub_acqrel(&rt->tasks.left, less) == less; /* [L] */
}

void bz_tasks_fini(struct bz_runtime *rt)
{
    bz_shortage_ends(rt);
    each_slab(rt, fini_one);
    bz_slots_fini(rt);
}
