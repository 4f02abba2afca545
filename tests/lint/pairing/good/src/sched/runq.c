/*
 * runq.c - the other half.
 *
 * I1  slot[N] and array[A] in prose are no citations.
 *
 * [B] push: store tail, fence, load sleepers <-> idle.c [A]: announce, fence, look
 * [C] take: head release -> take: head acquire   one CAS is both halves
 */
void push(struct q *q, int head)
{
    bz_store_release(&q->tail, 1); /* [A] */
    bz_fence_seqcst();             /* [B] */
    while (!bz_cas_weak_rel_acq(&q->head, &head, head + 1)) /* [C] won or lost */
        ;
}

/*
 * The life of a task.
 * [T] Every step is an acq_rel CAS, even from a state to itself.
 */
void step(struct task *t, int s)
{
    bz_cas_strong_acqrel_rlx(&t->state, &s, 1); /* [T] */
}
