/*
 * windows.h - the functions of the Windows backend, file by file; windows.c puts them into its table.
 *
 * Private to os/windows*.c and their tests. os.h describes each under the name in the table. Windows 10 and later.
 */
#ifndef BZ_OS_WINDOWS_H
#define BZ_OS_WINDOWS_H

#include "os/os.h"

/* windows_clock.c */
uint64_t bz_windows_now(const struct bz_os *os);
uint64_t bz_windows_cpu_time(const struct bz_os *os);
int bz_windows_thread_cpu_time(const struct bz_os *os, const struct bz_os_thread *t,
                               uint64_t *out_ns);

/* windows_word.c */
int bz_windows_wait(const struct bz_os *os, bz_os_word *word, uint32_t expected, uint64_t until_ns);
void bz_windows_wake(const struct bz_os *os, bz_os_word *word, uint32_t count_max);
void bz_windows_relax(const struct bz_os *os, unsigned round);
int bz_windows_barrier_register(const struct bz_os *os);
int bz_windows_barrier(const struct bz_os *os);

/* windows_thread.c */
int bz_windows_thread_start(const struct bz_os *os, struct bz_os_thread *t,
                            const struct bz_os_thread_opts *opts, void (*fn)(void *), void *arg);
int bz_windows_thread_join(const struct bz_os *os, struct bz_os_thread *t);
void bz_windows_thread_detach(const struct bz_os *os, struct bz_os_thread *t);
void bz_windows_thread_quit(const struct bz_os *os, struct bz_os_thread *t);
uint32_t bz_windows_thread_id(const struct bz_os *os);
int bz_windows_cpus(const struct bz_os *os);

/* windows_pages.c */
size_t bz_windows_page_bytes(const struct bz_os *os);
int bz_windows_slab_reserve(const struct bz_os *os, struct bz_os_slab *slab, size_t bytes,
                            size_t align, enum bz_os_slab_flags flags, const char *name);
void bz_windows_slab_release(const struct bz_os *os, struct bz_os_slab *slab);
int bz_windows_slab_guard(const struct bz_os *os, struct bz_os_slab *slab, enum bz_os_guard how,
                          const struct bz_os_guards *where);
int bz_windows_pages_discard(const struct bz_os *os, void *start, size_t bytes);

#endif
