/*
 * idle.c - who sleeps.
 *
 * [A] announce, fence, look <-> runq.c [B]   a push is seen, or the pusher sees us
 * [L] push: unlock -> take: lock   the chain, which nothing here orders (os/lock.h)
 */
void announce(void)
{
    bz_fence_seqcst(); /* [A] */
}
