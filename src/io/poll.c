/*
 * poll.c - shared by all backends with files: the count of attached files.
 */
#include "io/poll.h"

#include <errno.h>

int bz_poll_attach(struct bz_poll *poll, struct bz_file *f)
{
    if (poll->ops->attach == NULL)
        return -ENOSYS;
    int err = poll->ops->attach(poll, f);
    if (err != 0)
        return err;
    f->poll = poll;
    /* relaxed: for the first file the machine that sleeps on the word is roused */
    if (bz_fetch_add_relaxed(&poll->attached, 1) == 0)
        bz_poll_rouse(poll);
    return 0;
}

/* In between both polls know the file: an event may be heard twice, which does no harm. */
void bz_poll_move(struct bz_poll *to, struct bz_file *f)
{
    struct bz_poll *from = f->poll;
    if (!to->ops->moves || bz_poll_attach(to, f) != 0)
        return;
    from->ops->detach(from, f);
    bz_fetch_sub_relaxed(&from->attached, 1); /* relaxed: a wait without events is harmless */
}

void bz_poll_detach(struct bz_poll *poll, struct bz_file *f)
{
    poll->ops->detach(poll, f);
    f->poll = NULL;
    bz_fetch_sub_relaxed(&poll->attached, 1); /* relaxed: a wait without events is harmless */
}

void bz_sleep_instead(struct bz_poll *poll, uint64_t ns, uint64_t until_ns)
{
    uint64_t soon = bz_os_now(poll->os) + ns;
    (void)bz_os_wait(poll->os, &poll->roused, 0, soon < until_ns ? soon : until_ns);
}
