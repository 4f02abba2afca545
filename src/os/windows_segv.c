/*
 * windows_segv.c - os/segv.h on Windows: a vectored handler explains an access violation before it ends the process.
 *
 * The handler runs on the stack of the fault. After a stack overflow there may be no room for it; then the system ends the process
 * without a word. Traps are not there: a fault is never turned into a jump.
 */
#include "os/segv.h"

#include <windows.h>

#include <errno.h>
#include <io.h>

#include "base/bz_atomic.h"
#include "base/check.h"

static bz_atomic(bz_segv_explain *)
    watcher; /* [W] watch release -> handler acquire: its data is there */
static void *handle;

static LONG CALLBACK on_exception(EXCEPTION_POINTERS *what)
{
    const EXCEPTION_RECORD *record = what->ExceptionRecord;
    bz_segv_explain *explain = bz_load_acquire(&watcher); /* [W] */
    bool is_fault = record->ExceptionCode == EXCEPTION_ACCESS_VIOLATION ||
                    record->ExceptionCode == EXCEPTION_STACK_OVERFLOW;
    char text[512];
    if (explain == NULL || !is_fault || record->NumberParameters < 2)
        return EXCEPTION_CONTINUE_SEARCH;
    size_t length = explain((const void *)record->ExceptionInformation[1], text, sizeof text);
    if (length > 0)
        (void)!_write(2, text, (unsigned)length);
    return EXCEPTION_CONTINUE_SEARCH;
}

int bz_segv_watch(bz_segv_explain *explain)
{
    if (handle != NULL)
        return -EBUSY;
    handle = AddVectoredExceptionHandler(1, on_exception);
    if (handle == NULL)
        return -ENOMEM;
    bz_store_release(&watcher, explain); /* [W] */
    return 0;
}

void bz_segv_unwatch(void)
{
    bz_store_release(&watcher, NULL); /* [W] */
    if (handle != NULL)
        RemoveVectoredExceptionHandler(handle);
    handle = NULL;
}

int bz_segv_trap(bz_segv_trap_fn *trap)
{
    (void)trap;
    return -EOPNOTSUPP;
}

void bz_segv_untrap(void) {}

void bz_segv_go_on(const struct bz_segv_fault *fault, uintptr_t pc, uintptr_t sp)
{
    BZ_CHECK(false, "a trap at 0x%llx, on a system without traps: pc 0x%llx, sp 0x%llx",
             (unsigned long long)fault->pc, (unsigned long long)pc, (unsigned long long)sp);
}

void bz_segv_walk(const struct bz_segv_fault *fault, bz_segv_visit *visit, void *ctx)
{
    (void)visit(fault->pc, ctx);
}

const char *bz_segv_name(int signal)
{
    (void)signal;
    return "a fault";
}
