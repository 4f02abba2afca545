/*
 * fate_model.c - a call that returns while a shutdown abandons it.
 *
 *   covers: src/thread/fate.h
 *
 * The runtime is memory that goes away once the call is abandoned; the thread's record is freed by the
 * thread, and the abandoner touches it last before that.
 */
#include "model.h"

#include "thread/fate.h"

struct record {
    bz_fate fate;
    bz_shared(int) handle; /* detached by the abandoner */
};

static struct record *record;
static bz_shared(int) *runtime;
static bz_shared(int) left_by; /* written by the caller before it left its call */
static int came_back, ended_alone;

static void returns_from_its_call(void)
{
    bz_set(runtime, 2); /* it rested in the pool, and is on its way out */
    bz_fate_begin(&record->fate);
    if (bz_fate_come_back(&record->fate)) {
        bz_set(runtime, 1); /* it is there: the abandoner waits for us */
        came_back = 1;
        return;
    }
    m_assert(bz_fate_is_abandoned(&record->fate));
    m_assert(bz_get(&left_by) == 1);
    while (!bz_fate_is_gone(&record->fate))
        m_yield();
    m_assert(bz_get(&record->handle) == 2);
    ended_alone = 1;
    m_free(record);
}

static void abandons(void)
{
    bz_set(&left_by, 1);
    while (bz_fate_is_starting(&record->fate))
        m_yield();
    if (!bz_fate_take(&record->fate))
        return;
    bz_set(&record->handle, 2);
    bz_fate_let_go(&record->fate);
    m_free(runtime);
}

/* fate.h [F]: the thread touches the runtime, or the abandoner frees it; never both. */
MODEL(fate, a_call_comes_back_or_is_abandoned)
{
    record = m_alloc(sizeof *record);
    runtime = m_alloc(sizeof *runtime);
    bz_set(runtime, 0);
    bz_set(&record->handle, 0);
    bz_set(&left_by, 0);
    bz_fate_set(&record->fate, true);
    came_back = ended_alone = 0;
    m_threads(returns_from_its_call, abandons);
    m_assert(came_back + ended_alone == 1);
    if (came_back) {
        m_free(record);
        m_free(runtime);
    }
    m_sometimes(came_back == 1);
    m_sometimes(ended_alone == 1);
}
