/*
 * sleepers.c - the proof that no other thread can act any more.
 *
 * Claim. Assume that the kernel counts n threads in this process, and that the list holds the n - 1
 * threads other than the caller, each with its word unchanged. Assume that the lock of the list was
 * held from before the count until after the last check. Then no thread but the caller will ever
 * run again, unless the caller wakes it.
 *
 * Proof. No thread enters or leaves the list while its lock is held. So the n - 1 threads exist
 * throughout, the caller is not among them, and at the moment of the count there was no other
 * thread. Each of them leaves only when its word has changed. A sleeping thread cannot change a
 * word, there are no other threads, and only threads start threads. So the words stay unchanged. A
 * thread that was woken and has not left the list yet has a changed word, because a waker changes
 * the word first (os.h). A word that was changed and changed back (a lock that another thread took
 * meanwhile) makes no difference: its sleeper checks it and sleeps again.
 *
 * The claim excludes signal handlers that call blitz (which they must not), other processes that
 * share our memory, and debuggers; blitz/dump.h documents this. It counts as able to act: every
 * thread that is blocked elsewhere, in a read, a join, a mutex or a timed sleep, and threads that
 * are just ending. So the only possible error is a missed deadlock.
 *
 * The cost: a sleep without a deadline takes the lock twice, some 20 ns beside a futex call of a
 * microsecond or more. It is a separate spin lock, because the runtime's locks sleep on words. The
 * count is read from /proc under it, some 20 us, when a runtime becomes idle.
 *
 * Rejected: counting sleepers in one number (a thread that was woken and has not run yet would
 *           count as asleep: a false alarm); reading the system call of each thread
 *           (/proc/self/task/.../syscall needs privileges, and does not show wakes in progress).
 *
 * I1  The list holds exactly the threads between enter and leave.
 *
 * [A] leave the lock: release -> take it: acquire   the list
 */
#include "os/sleepers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bz_atomic(uint32_t) is_locked;
static struct bz_sleeper *sleepers; /* guarded by is_locked */

static void list_lock(void)
{
    for (unsigned round = 0; bz_xchg_acquire(&is_locked, 1) != 0; round++) /* [A] */
        bz_os_relax(&bz_os_system, round);
}

static void list_unlock(void)
{
    bz_store_release(&is_locked, 0); /* [A] */
}

void bz_sleepers_enter(struct bz_sleeper *s, bz_os_word *word, uint32_t expected)
{
    s->word = word;
    s->expected = expected;
    s->at = &sleepers;
    list_lock();
    s->next = sleepers;
    if (s->next != NULL)
        s->next->at = &s->next;
    sleepers = s; /* I1 */
    list_unlock();
}

void bz_sleepers_leave(struct bz_sleeper *s)
{
    list_lock();
    *s->at = s->next; /* I1 */
    if (s->next != NULL)
        s->next->at = s->at;
    list_unlock();
}

/* The kernel's count of threads, or -ENOSYS: field 20 of /proc/self/stat. Field 2, the program's
 * name, may contain any character; it ends at the last bracket. */
static int count_threads(void)
{
    char text[512];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -ENOSYS;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < 20; field++)
        at = strchr(at + 1, ' ');
    return at != NULL ? atoi(at + 1) : -ENOSYS;
}

/* The number of listed threads whose word is unchanged. */
static int count_unchanged(void)
{
    int count = 0;
    for (struct bz_sleeper *s = sleepers; s != NULL; s = s->next)
        count += bz_load_acquire(s->word) == s->expected; /* os.h: the word's own */
    return count;
}

int bz_linux_others(const struct bz_os *os)
{
    (void)os;
    list_lock();
    int threads = count_threads();
    int others = threads > 0 ? threads - 1 - count_unchanged() : -ENOSYS;
    list_unlock();
    return others;
}
