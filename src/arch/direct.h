/*
 * direct.h - a system call by its instruction, without the C library.
 *
 * For the two calls that a network program makes for each message. The function of the C library is a cancellation
 * point, with two locked instructions; its syscall() moves seven arguments. Here the compiler puts the arguments where
 * the kernel expects them. BZ_HAS_DIRECT is 0 where there is no such code, and in sanitizer builds, whose library
 * functions tell the sanitizer about the bytes.
 *
 * The result is the kernel's: a negative errno, or the value. errno is not touched.
 */
#ifndef BZ_ARCH_DIRECT_H
#define BZ_ARCH_DIRECT_H

#include "arch/notes.h"
#include "base/compiler.h"

#if defined(__x86_64__) && defined(__linux__) && !defined(__ILP32__) && !BZ_ASAN && !BZ_TSAN

#define BZ_HAS_DIRECT 1

/* The sixth argument is 0, as in recvfrom and sendto without an address. */
static BZ_ALWAYS_INLINE long bz_direct_call(long number, long a, const void *b, unsigned long c,
                                            long d)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = 0;
    register long r9 __asm__("r9") = 0;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

#else
#define BZ_HAS_DIRECT 0
#endif

#endif
