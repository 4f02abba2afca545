/*
 * sleepers.h - which threads of the process sleep for ever, unless somebody wakes them?
 *
 * Behind bz_os_others (os/os.h): the Linux keeper enters every thread here that sleeps on a word
 * without a deadline. sleepers.c says how "nobody is left who could wake anybody" is proved of that.
 */
#ifndef BZ_OS_SLEEPERS_H
#define BZ_OS_SLEEPERS_H

#include "os/os.h"

/* One thread that sleeps; in its frame. */
struct bz_sleeper {
    struct bz_sleeper *next, **at; /* the list; guarded by its lock */
    bz_os_word *word;
    uint32_t expected;
};

/* The calling thread is about to do nothing until *word is not `expected` any more, and then leaves. It
 * holds nothing and does nothing in between; to look at the word again is nothing. */
void bz_sleepers_enter(struct bz_sleeper *s, bz_os_word *word, uint32_t expected);
void bz_sleepers_leave(struct bz_sleeper *s);

/* bz_os_others, for the Linux keeper. */
int bz_linux_others(const struct bz_os *os);

#endif
