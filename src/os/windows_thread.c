/*
 * windows_thread.c - threads, and the number of CPUs.
 *
 * A thread starts suspended if it has an affinity, so that it never runs on another CPU. It sets its own name, because the
 * function that does it is found at run time: Windows 10 before version 1607 has none, and a name does not matter.
 *
 * There are no signals, so a thread has no alternate stack. A handler of exceptions runs on the stack of the fault.
 *
 * A mask of CPUs is one word: the CPUs of the group of processors in which the process started, at most 64. Threads without a mask may
 * run in the other groups from Windows 11 on; the number of CPUs does not count those.
 *
 * I1  The fields of *t that the thread reads are written before the thread is resumed. Only the starter reads `native`.
 */
#include "os/windows.h"

#include <windows.h>

#include <errno.h>
#include <process.h>
#include <string.h>

typedef HRESULT(WINAPI *set_description_fn)(HANDLE thread, const wchar_t *text);

static void set_name(const char *name)
{
    wchar_t wide[BZ_OS_NAME_MAX];
    size_t length = 0;
    HMODULE kernel = GetModuleHandleA("kernel32.dll");
    FARPROC found = kernel != NULL ? GetProcAddress(kernel, "SetThreadDescription") : NULL;
    if (found == NULL)
        return;
    for (; name[length] != '\0'; length++)
        wide[length] = (wchar_t)(unsigned char)name[length];
    wide[length] = L'\0';
    ((set_description_fn)(uintptr_t)found)(GetCurrentThread(), wide);
}

static unsigned __stdcall thread_main(void *arg)
{
    struct bz_os_thread *t = arg;
    if (t->is_named)
        set_name(t->name);
    t->fn(t->arg);
    return 0;
}

/* Returns 0 and the mask, or -EINVAL. No affinity: the mask is 0. */
static int mask_of(const struct bz_os_thread_opts *opts, DWORD_PTR *mask)
{
    DWORD_PTR ours, all;
    *mask = 0;
    if (opts->affinity == NULL)
        return 0;
    if (opts->affinity_words == 0 || !GetProcessAffinityMask(GetCurrentProcess(), &ours, &all))
        return -EINVAL;
    *mask = (DWORD_PTR)opts->affinity[0] & ours;
    return *mask != 0 ? 0 : -EINVAL;
}

static int error_of(int err)
{
    return err == ENOMEM || err == EAGAIN || err == EINVAL ? -err : -EAGAIN;
}

int bz_windows_thread_start(const struct bz_os *os, struct bz_os_thread *t,
                            const struct bz_os_thread_opts *opts, void (*fn)(void *), void *arg)
{
    static const struct bz_os_thread_opts defaults;
    unsigned flags = 0;
    DWORD_PTR mask;

    (void)os;
    if (opts == NULL)
        opts = &defaults;
    int err = mask_of(opts, &mask);
    if (err != 0)
        return err;
    if (opts->stack_bytes > UINT32_MAX / 2)
        return -EINVAL; /* the start takes 32 bits */
    *t = (struct bz_os_thread){
        .fn = fn, .arg = arg, .is_named = opts->name != NULL, .is_prompt = opts->is_prompt};
    if (opts->name != NULL)
        memcpy(t->name, opts->name, strnlen(opts->name, BZ_OS_NAME_MAX - 1));
    if (opts->stack_bytes > 0)
        flags |= STACK_SIZE_PARAM_IS_A_RESERVATION;
    if (mask != 0)
        flags |= CREATE_SUSPENDED;
    uintptr_t native =
        _beginthreadex(NULL, (unsigned)opts->stack_bytes, thread_main, t, flags, NULL); /* I1 */
    if (native == 0)
        return error_of(errno);
    t->native = native;
    if (mask != 0) {
        SetThreadAffinityMask((HANDLE)native, mask);
        ResumeThread((HANDLE)native);
    }
    return 0;
}

int bz_windows_thread_join(const struct bz_os *os, struct bz_os_thread *t)
{
    HANDLE thread = (HANDLE)t->native;
    (void)os;
    if (GetThreadId(thread) == GetCurrentThreadId())
        return -EDEADLK;
    DWORD err = WaitForSingleObject(thread, INFINITE);
    BZ_CHECK(err == WAIT_OBJECT_0, "join of thread %s: error %lu", t->name, GetLastError());
    CloseHandle(thread);
    return 0;
}

void bz_windows_thread_detach(const struct bz_os *os, struct bz_os_thread *t)
{
    (void)os;
    CloseHandle((HANDLE)t->native);
}

void bz_windows_thread_quit(const struct bz_os *os, struct bz_os_thread *t)
{
    (void)os;
    (void)t; /* nothing is left of it */
}

uint32_t bz_windows_thread_id(const struct bz_os *os)
{
    (void)os;
    return GetCurrentThreadId();
}

int bz_windows_cpus(const struct bz_os *os)
{
    DWORD_PTR ours = 0, all = 0;
    (void)os;
    if (!GetProcessAffinityMask(GetCurrentProcess(), &ours, &all) || ours == 0)
        return 1;
    return __builtin_popcountll(ours);
}
