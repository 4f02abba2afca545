/*
 * seccomp.h - what a filter of system calls consists of: the kernel's interface.
 *
 * The kernel's own headers say it. They may be missing: musl comes without them.
 */
#ifndef T_SECCOMP_H
#define T_SECCOMP_H

#if __has_include(<linux/seccomp.h>)
#include <linux/filter.h>
#include <linux/seccomp.h>
#else
#include <stdint.h>

struct sock_filter {
    uint16_t code;
    uint8_t jt, jf;
    uint32_t k;
};
struct sock_fprog {
    unsigned short len;
    struct sock_filter *filter;
};
struct seccomp_data {
    int nr;
    uint32_t arch;
    uint64_t instruction_pointer;
    uint64_t args[6];
};
#define BPF_LD 0x00
#define BPF_JMP 0x05
#define BPF_RET 0x06
#define BPF_W 0x00
#define BPF_ABS 0x20
#define BPF_JEQ 0x10
#define BPF_K 0x00
#define BPF_STMT(code, k)               \
    {                                   \
        (unsigned short)(code), 0, 0, k \
    }
#define BPF_JUMP(code, k, jt, jf)         \
    {                                     \
        (unsigned short)(code), jt, jf, k \
    }
#define SECCOMP_SET_MODE_FILTER 1
#define SECCOMP_FILTER_FLAG_TSYNC 1
#define SECCOMP_RET_ERRNO 0x00050000u
#define SECCOMP_RET_ALLOW 0x7fff0000u
#define SECCOMP_RET_DATA 0x0000ffffu
#endif

#endif
