/*
 * proc.c - the holder of a proc.
 *
 *   from     changed by                           how               to
 *   -----    ----------------------------------   ---------------   ------------------------
 *   FREE     a thread that rouses it              adopt: CAS        STARTING
 *   FREE     a machine that wants a proc          regain: CAS       HELD by it
 *   ORPHAN   the monitor, a machine: likewise     CAS               STARTING, HELD
 *   STARTING its starter has a machine for it     give: store       HELD by that
 *   STARTING its starter has none                 abandon: store    ORPHAN
 *   HELD     its machine has nothing to do        lie_down: store   ASLEEP
 *   ASLEEP   its machine wakes                    get_up: CAS       HELD by it
 *   ASLEEP   a machine that wants a proc          regain: CAS       HELD by that; the sleeper leaves
 *   HELD     the monitor, by retake.h             store             STARTING
 *
 * retire.c has the steps of a proc that runs no tasks any more.
 *
 * While it is HELD, only its machine, or the monitor that has asked it, changes the word. While
 * it is STARTING, only its starter does. So those steps are stores. The word names the machine: a proc that has moved
 * on while a thread looked has another word, even if the old machine is in use again. Calls announced by
 * blitz_syscall_enter and hand-offs in progress are recorded in the machine (retake.h), not here.
 *
 * The idle set contains the FREE and the ASLEEP procs. A machine that takes one inherits its place there
 * (idle.c, stay): if a thread has roused that proc meanwhile, the machine counts as searching. Since
 * it continues with a task of its own, it rouses another proc to search.
 *
 * A sleeper whose proc was taken is roused, and finds out before it touches anything. It waits
 * on the proc's poll, where the new holder may sleep soon: a rouse ends all waits there. If the rouse
 * comes while the sleeper is still on its way into the wait, it may sleep on until the next rouse;
 * it holds nothing, and is not counted.
 *
 * [S] lie_down: state release -> regain: CAS acquire   the sleeper's writes to its proc are seen
 */
#include "proc/proc.h"

#include "proc/batch.h"
#include "proc/place.h"
#include "proc/state.h"

/* ---- asleep ---- */

void bz_proc_lie_down(struct bz_machine *m)
{
    bz_os_delay(m->rt->os, BZ_OS_AT_PUBLISH);
    /* [S]; stronger than needed: bz_idle_announce has fenced */
    bz_store_release(&m->proc->state, bz_proc_word(BZ_PROC_ASLEEP, m->index));
}

bool bz_proc_get_up(struct bz_machine *m)
{
    uint32_t word = bz_proc_word(BZ_PROC_ASLEEP, m->index);
    bz_os_delay(m->rt->os, BZ_OS_AT_PUBLISH);
    /* acquire: [S]; stronger than needed: if another machine has held it meanwhile the word has
     * changed, and this fails */
    if (bz_cas_strong_acq_rlx(&m->proc->state, &word, bz_proc_word(BZ_PROC_HELD, m->index)))
        return true;
    bz_machine_hold(m, NULL);
    return false;
}

/* ---- lost and regained ---- */

/* Pass on the duty to search: this machine has a task to run, or no proc. */
static void stop_searching(struct bz_machine *m)
{
    if (!m->is_searching)
        return;
    m->is_searching = false;
    bz_rouse(m->rt, bz_idle_found(&m->rt->idle));
}

void bz_proc_lost(struct bz_machine *m)
{
    bz_machine_hold(m, NULL);
    stop_searching(m);
}

/* Take p from one of the three states without a running machine. */
static bool take(struct bz_machine *m, struct bz_proc *p)
{
    struct bz_runtime *rt = m->rt;
    uint32_t word = bz_load_relaxed(&p->state); /* relaxed: the CAS decides */
    enum bz_proc_state was = bz_proc_state_of(word);
    if (was >= BZ_PROC_HELD || was == BZ_PROC_STARTING ||
        !bz_cas_strong_acq_rlx(&p->state, &word, bz_proc_word(BZ_PROC_HELD, m->index))) /* [S] */
        return false;
    bz_os_delay(rt->os, BZ_OS_AT_PUBLISH);
    bz_machine_hold(m, m->last = p);
    (void)bz_tick_step(&p->tick);      /* something new */
    bz_store_release(&m->is_stray, 0); /* clockwork.c [Q] */
    bz_store_release(&m->is_going, 0); /* clockwork.c [Q] */
    if (was != BZ_PROC_ORPHAN)
        m->is_searching = bz_idle_stay(&rt->idle, p->index, false);
    if (was == BZ_PROC_ASLEEP)
        bz_poll_rouse(&p->poll); /* its sleeper leaves */
    stop_searching(m);
    bz_monitor_woke(m);
    return true;
}

bool bz_proc_regain(struct bz_machine *m)
{
    struct bz_runtime *rt = m->rt;
    if (bz_machine_is_guest(m))
        return false; /* a guest wants no proc: guest.c */
    if (take(m, m->last))
        return true;
    for (unsigned i = 0; bz_idle_sleeping(&rt->idle) > 0 && i < rt->proc_count; i++)
        if (bz_idle_is_asleep(&rt->idle, i) && take(m, &rt->procs[i]))
            return true;
    return false;
}

/* ---- without a machine ---- */

bool bz_proc_adopt(struct bz_proc *p)
{
    uint32_t word = bz_load_relaxed(&p->state); /* relaxed: the CAS decides */
    enum bz_proc_state was = bz_proc_state_of(word);
    return (was == BZ_PROC_FREE || was == BZ_PROC_ORPHAN) &&
           bz_cas_strong_acq_rlx(&p->state, &word, bz_proc_word(BZ_PROC_STARTING, 0)); /* [S] */
}

void bz_proc_give(struct bz_proc *p, struct bz_machine *m)
{
    bz_machine_hold(m, m->last = p);
    /* [S]; stronger than needed: the slot is published, and a thread is started under a lock */
    bz_store_release(&p->state, bz_proc_word(BZ_PROC_HELD, m->index));
}

/* Leave the proc without a machine. Entries that only its machine could run would wait, so move
 * them to the injector. The monitor fires its timers. */
void bz_proc_abandon(struct bz_proc *p)
{
    bz_entry e, out[BZ_PRIVATE_MAX];
    unsigned count = bz_batch_empty(p, out);
    struct bz_entries want_stack = p->want_stack;
    bz_entries_init(&p->want_stack);
    bz_store_release(&p->state, bz_proc_word(BZ_PROC_ORPHAN, 0)); /* [S] */
    while ((e = bz_entries_take(&want_stack)) != 0)
        bz_place_outside(p->rt, e);
    for (unsigned i = 0; i < count; i++)
        bz_place_outside(p->rt, out[i]);
}
