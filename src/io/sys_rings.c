/*
 * sys_rings.c - the real system calls on rings.
 *
 * By their numbers: no C library has functions for them.
 */
#define _GNU_SOURCE 1
#include "io/sys_rings.h"

#include <sys/mman.h>
#include <unistd.h>

#include "io/uring_abi.h"

static int sys_ring_setup(unsigned entries, struct bz_uring_params *p)
{
    return (int)syscall(BZ_SYS_URING_SETUP, entries, p);
}

static int sys_ring_enter(int fd, unsigned submit, unsigned min, unsigned flags, const void *arg,
                          size_t bytes)
{
    return (int)syscall(BZ_SYS_URING_ENTER, fd, submit, min, flags, arg, bytes);
}

static int sys_ring_register(int fd, unsigned what, void *arg, unsigned count)
{
    return (int)syscall(BZ_SYS_URING_REGISTER, fd, what, arg, count);
}

static void *sys_ring_map(int fd, size_t bytes, uint64_t at)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off_t)at);
    return p != MAP_FAILED ? p : NULL;
}

static void sys_ring_unmap(void *start, size_t bytes)
{
    munmap(start, bytes);
}

const struct bz_sys_rings bz_sys_rings_system = {
    .ring_setup = sys_ring_setup,
    .ring_enter = sys_ring_enter,
    .ring_register = sys_ring_register,
    .ring_map = sys_ring_map,
    .ring_unmap = sys_ring_unmap,
};

const struct bz_sys_rings *bz_sys_rings = &bz_sys_rings_system;
