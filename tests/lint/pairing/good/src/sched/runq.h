/*
 * runq.h - a queue, half of it inline: a promise may span header and source.
 *
 * [A] push: tail release -> take: tail acquire   the slot is filled before it can be taken
 */
static inline int take(struct q *q)
{
    return bz_load_acquire(&q->tail); /* [A] */
}
