/*
 * escape.c - exceptions of C++ and tasks. See escape.h and arch/eh.h.
 *
 * A task's function is called from the loop of a runner, or by the task that joins it. Neither may be
 * unwound. The loop belongs to the worker. The joiner would catch an exception of its child only if it
 * happened to run the child itself. So the search for a handler ends at the frame that called the
 * function. The C++ runtime then calls std::terminate(), whose handler prints the exception, after the
 * line below has named the task. Rejected: turning the exception into a result of the task. A C function
 * cannot catch, and an unexpected exception is a bug.
 */
#include "life/escape.h"

#include "base/log.h"
#include "life/spawn.h"
#include "os/loaded.h"
#include "proc/state.h"

__attribute__((used)) enum bz_eh_reason bz_task_escape(int version, int actions, uint64_t kind,
                                                       void *exception, void *frame)
{
    (void)version;
    (void)kind;
    (void)exception;
    (void)frame;
    if ((actions & BZ_EH_FORCED) || !(actions & BZ_EH_SEARCH))
        return BZ_EH_GO_ON; /* a thread that is cancelled, not an exception */
    struct bz_task *t = bz_task_self();
    if (t != NULL)
        bz_log(BLITZ_LOG_ERROR, "an exception leaves task %llu (%s): the process ends",
               (unsigned long long)t->id, bz_task_name(t));
    return BZ_EH_NO_HANDLER;
}

void bz_escape_init(void)
{
    static const char symbol[] = "__cxa_get_globals";
    bz_eh_init();
    if (bz_eh_is_used())
        return;
    void *found = bz_loaded_symbol("libstdc++.so", symbol);
    if (found == NULL)
        found = bz_loaded_symbol("libc++abi.so", symbol);
    bz_eh_found((bz_eh_globals_fn *)(uintptr_t)found);
}
