/*
 * stand_in.c - hear of the end of a child without a pidfd.
 *
 * A pipe takes the place of the pidfd: it becomes readable when the child has ended. So a wait is the same in both
 * cases. The thread that hears signals (signal/service.h) writes the byte: after signals have arrived, it asks whether
 * the child has ended, and leaves it unreaped. It asks for each child, because the kernel merges SIGCHLDs. An earlier
 * handler of SIGCHLD is called as well.
 *
 * Rejected: a thread that waits for the child: one for each child, and no means to end it. A pipe whose other end the
 *           child holds: its own children would inherit it.
 *
 * I1  The stand-in watches SIGCHLD and is a hearer before it asks for the first time: an end after that is heard.
 */
#include <errno.h>
#include <signal.h>

#include "io/raw.h"
#include "os/signals.h"
#include "process/process.h"

static void ask(struct bz_hearer *h)
{
    struct bz_stand_in *s = BZ_CONTAINER_OF(h, struct bz_stand_in, hearer);
    struct bz_child_end end;
    uint64_t one = 1;
    if (s->is_told || bz_spawn->reap(&s->child, true, &end) == -EAGAIN)
        return;
    s->is_told = true;
    (void)bz_raw_write(s->write, &one, sizeof one); /* the pipe is empty */
}

static int hear_of(struct bz_stand_in *s)
{
    int err = bz_signals_watch(SIGCHLD, true);
    if (err != 0)
        return err;
    s->hearer.hear = ask;
    err = bz_hearer_add(&s->hearer);
    if (err != 0)
        bz_signals_unwatch(SIGCHLD, true);
    else
        bz_hearers_renew(); /* the thread asks, whether a signal arrives or not: I1 */
    return err;
}

int bz_stand_in_begin(struct bz_stand_in *s, const struct bz_child *c)
{
    int fd[2];
    int err = bz_raw_pipe(fd);
    if (err != 0)
        return err;
    *s = (struct bz_stand_in){.child = *c, .read = fd[0], .write = fd[1]};
    err = hear_of(s);
    if (err == 0)
        return 0;
    bz_raw_close(fd[0]);
    bz_raw_close(fd[1]);
    s->read = -1;
    return err;
}

void bz_stand_in_end(struct bz_stand_in *s)
{
    if (s->read < 0)
        return;
    bz_hearer_remove(&s->hearer);
    bz_signals_unwatch(SIGCHLD, true);
    bz_raw_close(s->read);
    bz_raw_close(s->write);
    s->read = -1;
}
