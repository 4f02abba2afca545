/*
 * sleepers.h - the threads of the process that sleep without a deadline.
 *
 * Used by bz_os_others (os/os.h): the Linux backend lists every thread that sleeps on a word
 * without a deadline. sleepers.c proves from the list that no thread is left to wake another.
 */
#ifndef BZ_OS_SLEEPERS_H
#define BZ_OS_SLEEPERS_H

#include "os/os.h"

/* A sleeping thread; in its stack frame. */
struct bz_sleeper {
    struct bz_sleeper *next, **at; /* the list; guarded by its lock */
    bz_os_word *word;
    uint32_t expected;
};

/* Enter the list before sleeping until *word is not `expected` any more; then leave. In between the
 * thread holds no lock and does nothing but check the word. */
void bz_sleepers_enter(struct bz_sleeper *s, bz_os_word *word, uint32_t expected);
void bz_sleepers_leave(struct bz_sleeper *s);

/* bz_os_others of the Linux backend. */
int bz_linux_others(const struct bz_os *os);

#endif
