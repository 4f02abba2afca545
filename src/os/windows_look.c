/*
 * windows_look.c - os/look.h and os/loaded.h on Windows.
 *
 * A copy of memory that may be unmapped is ReadProcessMemory of the own process. Names of functions are not known without the
 * debug library of the system; an address is named by its file and its distance from the start of it.
 */
#include "os/loaded.h"
#include "os/look.h"

#include <windows.h>

#include <errno.h>
#include <io.h>
#include <stdio.h>
#include <string.h>

int bz_look_copy(void *out, const void *from, size_t bytes)
{
    SIZE_T n = 0;
    return ReadProcessMemory(GetCurrentProcess(), from, out, bytes, &n) && n == bytes ? 0 : -EFAULT;
}

BZ_NOINLINE uintptr_t bz_look_word(const void *at)
{
    /* lint: allow raw-atomic: orders nothing, on purpose; one load, as it stands */
    return *(const volatile uintptr_t *)at;
}

BZ_NOINLINE uint32_t bz_look_half(const void *at)
{
    /* lint: allow raw-atomic: orders nothing, on purpose; one load, as it stands */
    return *(const volatile uint32_t *)at;
}

size_t bz_look_text(char *out, size_t size, const char *from)
{
    enum { STEP = 16 }; /* one read does not cross a page */
    size_t used = 0;
    out[0] = '\0';
    while (from != NULL && used + 1 < size) {
        char part[STEP];
        size_t room = STEP - ((uintptr_t)from + used) % STEP;
        if (room > size - 1 - used)
            room = size - 1 - used;
        if (bz_look_copy(part, from + used, room) != 0)
            break;
        size_t length = strnlen(part, room);
        for (size_t i = 0; i < length; i++)
            out[used++] = part[i] >= ' ' && part[i] < 0x7f ? part[i] : '?';
        out[used] = '\0';
        if (length < room)
            break;
    }
    return used;
}

static HMODULE module_at(const void *at, DWORD flags)
{
    HMODULE found = NULL;
    flags |= GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS;
    return GetModuleHandleExA(flags, (LPCSTR)at, &found) ? found : NULL;
}

bool bz_look_symbol(char *out, size_t size, uintptr_t pc)
{
    char path[MAX_PATH];
    HMODULE file = module_at((const void *)pc, GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT);
    out[0] = '\0';
    if (file == NULL)
        return false;
    DWORD length = GetModuleFileNameA(file, path, sizeof path);
    const char *slash = length > 0 ? strrchr(path, '\\') : NULL;
    snprintf(out, size, "%s+0x%llx", slash != NULL ? slash + 1 : "?",
             (unsigned long long)(pc - (uintptr_t)file));
    return true;
}

int bz_look_say(int fd, const char *text, size_t length)
{
    while (length > 0) {
        int n = _write(fd, text, length < 1u << 20 ? (unsigned)length : 1u << 20);
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        text += n;
        length -= (size_t)n;
    }
    return 0;
}

/* ---- the loader ---- */

void *bz_loaded_hold(void)
{
    static const char here; /* an address in the library of this code */
    return module_at(&here, 0);
}

void bz_loaded_release(void *held)
{
    if (held != NULL)
        FreeLibrary(held);
}

/* Only libraries of other systems are asked for so far. */
void *bz_loaded_symbol(const char *library, const char *symbol)
{
    (void)library;
    (void)symbol;
    return NULL;
}
