/*
 * deny.h - make the kernel refuse a system call, for the rest of this process.
 *
 * How code behaves on a kernel that lacks something is tested on the kernel that has it: a seccomp
 * filter answers for it. Each case of the harness is a process of its own, so a filter binds that
 * case only. An error of 0 makes the call succeed without doing anything, which is what qemu-user
 * does with advice it does not know.
 */
#ifndef T_DENY_H
#define T_DENY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"
#include "support/seccomp.h"

/* A leak check needs system calls of its own; after a filter is in place there is none. */
static bool t_has_denied;
int __lsan_is_turned_off(void);
__attribute__((used, visibility("default"))) int __lsan_is_turned_off(void)
{
    return t_has_denied;
}

/* Bind every thread of the process to a filter. */
static inline int t_deny_everywhere(const struct sock_fprog *program)
{
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, program);
}

/* Answer call number `nr` with `err` if its argument `arg` (0 to 5) is `value`; -1: any argument. For every thread
 * there is and will be. */
static inline void t_deny_arg(int nr, int arg, uint32_t value, int err)
{
    size_t at = arg < 0 ? 0 : (size_t)arg;
    uint32_t low = (uint32_t)(offsetof(struct seccomp_data, args) + 8 * at);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((uint32_t)err & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    if (arg < 0)
        code[3].jf = 0; /* any errno */
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    t_has_denied = true;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || t_deny_everywhere(&program) != 0)
        t_skip("seccomp filters are not to be had here: %s", strerror(errno));
}

static inline void t_deny(int nr, int err)
{
    t_deny_arg(nr, -1, 0, err);
}

#endif
