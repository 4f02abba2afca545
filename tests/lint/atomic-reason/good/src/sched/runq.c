/* runq.c - a fixture of the lint tests, and more words to make it an essay. */
int f(struct q *q)
{
    int a = bz_load_acquire(&q->head); /* [A] */
    /* [A]: the slot was written before */
    int b = bz_load_acquire(&q->tail);
    /* relaxed: we are its only writer; and this goes on
     * over two lines */
    bz_store_relaxed(&q->word,
                     a + b);
    bz_store_relaxed(&q->word,
                     a - b); /* relaxed: statistics */
    if (a == 0 &&
        /* the other half is the sleeper's fence in idle.c */
        bz_xchg_seqcst(&q->word, 1) == 0 && /* see above */
        b == 0)
        return 1;
    /* bz_store_release(&q->word, 0) is not code, "bz_load_acquire(x)" neither */
    while (!bz_cas_weak_rel_acq(&q->word, &a, a + 1)) { /* [A] if won, [B] if lost */
        a = 0;
    }
    return bz_load_relaxed(&q->word) + /* a guess, the CAS decides */
           bz_load_relaxed(&q->tail);  /* a guess as well */
}
#define TAKE(q) bz_fetch_sub_acqrel(&(q)->n, 1) /* [C] */
