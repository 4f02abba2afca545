/*
 * sleepers.c - the proof that nobody is left who could act.
 *
 * Claim: if the kernel counts n threads in this process, and n - 1 others than the caller are in the
 * list, each with its word unchanged, and the lock of the list was held from before the count until
 * after the last look, then no thread but the caller will ever do anything again, unless the caller
 * wakes it.
 *
 * Why. Nobody enters or leaves the list while its lock is held, so those n - 1 exist throughout, the
 * caller is not among them, and at the moment of the count there was nobody else. Each of them has its
 * word unchanged; it leaves only when the word has changed, and who could change it? One of those
 * that sleep cannot, and there are no others; new threads come from threads. So the words stay.
 * A thread that was woken and has not left the list yet shows by its word: whoever wakes changes the
 * word first (os.h). A word that was changed and changed back (a lock that another took meanwhile) is
 * unchanged in what matters: its sleeper will look, and sleep again.
 *
 * What the claim leaves out, and blitz/dump.h says so: signal handlers that call into blitz, which they
 * must not; other processes that share our memory; debuggers. What it counts as able to act: every
 * thread that is blocked anywhere else, in a read, a join, a mutex, a sleep of ours with a deadline; and
 * threads that are just ending. So it errs on one side only.
 *
 * The cost: a sleep without a deadline takes and drops the lock twice, some 20 ns beside a futex call
 * of a microsecond and more. It is a spin lock of its own, since the runtime's locks sleep on words.
 * The count is read from /proc under it, some 20 us, which happens when a runtime falls idle.
 *
 * Rejected: counting sleepers in one number (a thread that was woken and has not run yet would count
 * as asleep: a false alarm); asking the kernel what each thread is blocked in (/proc/self/task/.../syscall
 * needs rights, and says nothing of wakes under way).
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
        bz_os_relax(&bz_os_linux, round);
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

/* How many threads the kernel counts, or -ENOSYS: field 20 of /proc/self/stat. The second, the program's
 * name, may hold anything, but it is the last in brackets. */
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

/* How many of those in the list sleep on a word that nobody has changed. */
static int count_unchanged(void)
{
    int count = 0;
    for (struct bz_sleeper *s = sleepers; s != NULL; s = s->next)
        count +=
            bz_load_acquire(s->word) == s->expected || BZ_BROKEN(100); /* os.h: the word's own */
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
