/* runq.c - a fixture of the lint tests, and more words to make it an essay. */
int f(struct q *q)
{
    int a = bz_load_acquire(&q->head);
    /* this comment speaks for the declaration below, not for what follows it */
    int b = 0;
    bz_store_relaxed(&q->tail, a + b);
    bz_store_release(&q->tail, a); /* publish */
    bz_store_relaxed(&q->tail, b); /* relaxed */
    if (a == 0)
        return bz_xchg_acqrel(&q->word, 1);

    /* A paragraph that is followed by a blank line belongs to nobody. */

    bz_fence_seqcst();
    return 0;
}
#define TAKE(q) bz_fetch_sub_acqrel(&(q)->n, 1)
