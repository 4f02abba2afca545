/*
 * poll_null.c - the backend without I/O operations: a poll that is only a sleep word.
 *
 * A runtime sleeps in it until its first I/O operation, and on systems without another backend. The
 * wait is a wait on poll->roused itself, so the guarantee is that of os/os.h: a wake after the
 * change of the word is never lost.
 */
#include "io/poll.h"

static int null_wait(struct bz_poll *poll, uint64_t until_ns, struct bz_reaped *reaped)
{
    (void)reaped;
    int err = bz_os_wait(poll->os, &poll->roused, 0, until_ns);
    return err == -ETIMEDOUT ? err : 0; /* -EAGAIN: it has been roused already */
}

static void null_kick(struct bz_poll *poll)
{
    /* a machine that lost the proc may sleep here, too */
    bz_os_wake(poll->os, &poll->roused, UINT32_MAX);
}

static void null_reap(struct bz_poll *poll, struct bz_reaped *reaped)
{
    (void)poll;
    (void)reaped;
}

static void null_fini(struct bz_poll *poll)
{
    poll->ops = NULL;
}

static const struct bz_poll_ops null_ops = {
    .name = "none",
    .wait = null_wait,
    .reap = null_reap,
    .kick = null_kick,
    .fini = null_fini,
};

void bz_poll_null_init(struct bz_poll *poll, const struct bz_os *os)
{
    poll->ops = &null_ops;
    poll->os = os;
    poll->files = NULL;
    bz_atomic_init(&poll->own, NULL);
    bz_atomic_init(&poll->attached, 0);
    bz_atomic_init(&poll->heir, NULL);
    bz_atomic_init(&poll->roused, 0);
}
