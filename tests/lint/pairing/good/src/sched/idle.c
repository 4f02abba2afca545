/*
 * idle.c - who sleeps.
 *
 * [A] announce, fence, look <-> runq.c [B]   a push is seen, or the pusher sees us
 */
void announce(void)
{
    bz_fence_seqcst(); /* [A] */
}
