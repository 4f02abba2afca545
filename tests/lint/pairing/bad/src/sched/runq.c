/*
 * runq.c - a queue whose promises are not kept.
 *
 * [A] push: tail release -> take: tail acquire   the slot is filled before it can be taken
 * [B] take: head release -> push: head acquire   the slot is read before it is filled again
 * [C] nobody cites this one: release -> acquire
 * [E] push: store tail, fence, then load sleepers   the other half is gone
 */
void push(struct q *q)
{
    bz_store_release(&q->tail, 1);              /* [A] */
    bz_store_relaxed(&q->slot, 2);              /* relaxed: [A] publishes it */
    int head = bz_load_acquire(&q->head);       /* [B] */
    bz_store_release(&q->word, slot[N] + head); /* [D] */
    bz_fence_seqcst();                          /* [E] */
}
