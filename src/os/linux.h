/*
 * linux.h - the functions of the Linux backend, file by file; linux.c puts them into its table.
 *
 * Private to os/linux*.c and their tests. os.h describes each under the name in the table; this
 * file adds only what the table does not show.
 */
#ifndef BZ_OS_LINUX_H
#define BZ_OS_LINUX_H

#include "os/os.h"

/* linux_clock.c */
uint64_t bz_linux_now(const struct bz_os *os);
uint64_t bz_linux_cpu_time(const struct bz_os *os);
int bz_linux_thread_cpu_time(const struct bz_os *os, const struct bz_os_thread *t,
                             uint64_t *out_ns);

/* linux_word.c */
int bz_linux_wait(const struct bz_os *os, bz_os_word *word, uint32_t expected, uint64_t until_ns);
void bz_linux_wake(const struct bz_os *os, bz_os_word *word, uint32_t count_max);
void bz_linux_relax(const struct bz_os *os, unsigned round);
int bz_linux_barrier_register(const struct bz_os *os);
int bz_linux_barrier(const struct bz_os *os);

/* linux_thread.c */
int bz_linux_thread_start(const struct bz_os *os, struct bz_os_thread *t,
                          const struct bz_os_thread_opts *opts, void (*fn)(void *), void *arg);
int bz_linux_thread_join(const struct bz_os *os, struct bz_os_thread *t);
void bz_linux_thread_detach(const struct bz_os *os, struct bz_os_thread *t);
void bz_linux_thread_quit(const struct bz_os *os, struct bz_os_thread *t);

/* linux_pages.c: sim uses these, too; its pages are real. */
size_t bz_linux_page_bytes(const struct bz_os *os);
int bz_linux_slab_reserve(const struct bz_os *os, struct bz_os_slab *slab, size_t bytes,
                          size_t align, enum bz_os_slab_flags flags, const char *name);
void bz_linux_slab_release(const struct bz_os *os, struct bz_os_slab *slab);
int bz_linux_slab_guard(const struct bz_os *os, struct bz_os_slab *slab, enum bz_os_guard how,
                        const struct bz_os_guards *where);
int bz_linux_pages_discard(const struct bz_os *os, void *start, size_t bytes);
/* Give an anonymous mapping a name in /proc/self/maps, if this kernel can. */
void bz_linux_pages_name(void *start, size_t bytes, const char *name);

/* linux_cpus.c */
int bz_linux_cpus(const struct bz_os *os);

/*
 * The quota part of bz_linux_cpus(): how many CPUs' worth of time the cgroups of this process
 * allow, fractions rounded up; INT_MAX if no quota is set or none can be read. `root` is prepended
 * to /proc/self/cgroup, /proc/self/mountinfo and every mount point found there: "" for the real
 * system, a directory with a test tree in tests. At least 1.
 */
int bz_linux_cpus_quota(const char *root);

/* CPUs in the affinity mask of the calling thread; at least 1. */
int bz_linux_cpus_affinity(void);

/* interrupt.c */
uint32_t bz_linux_thread_id(const struct bz_os *os);
int bz_linux_thread_sleeps(const struct bz_os *os, uint32_t id);
int bz_linux_interrupt_watch(const struct bz_os *os, bz_os_interrupted_fn *fn);
void bz_linux_interrupt_unwatch(const struct bz_os *os);
int bz_linux_thread_interrupt(const struct bz_os *os, uint32_t id);
void bz_linux_interrupt_again(const struct bz_os *os, uint64_t ns);
/* Call at the end of a thread. */
void bz_linux_interrupt_forget(void);

/* linux.c */
int bz_linux_entropy(const struct bz_os *os, void *out, size_t bytes);

#endif
