/*
 * The shape of our code, as clang-format must leave it: `tools/lint --only format` looks at this file
 * like at any other, so a change of .clang-format that would reshape it is noticed here first. It is
 * not compiled.
 */
typedef struct blitz_chan blitz_chan;

/*
 * Send one value.
 * Owns:     copies *value before it returns.
 * Suspends: until there is room, the deadline, a cancel or a close. Call from a task.
 * Returns:  0, -EPIPE (closed), -ETIMEDOUT, -ECANCELED. On error nothing was sent.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_chan_send(blitz_chan *c, const void *value,
                                             blitz_deadline until);

struct bz_runq {
    BZ_OWN_LINE bz_atomic(uint32_t) head;          /* advanced by any thread */
    BZ_OWN_LINE bz_atomic(uint32_t) tail;          /* written by the owner */
    bz_atomic(struct bz_task *) slot[BZ_RUNQ_CAP]; /* written by the owner, read by thieves */
    bz_shared(struct bz_task *) hand[BZ_HAND_MAX]; /* the owner's */
};

bool bz_runq_push(struct bz_runq *q, struct bz_task *t)
{
    uint32_t head = bz_load_acquire(&q->head); /* [B] */
    uint32_t tail = bz_load_relaxed(&q->tail); /* relaxed: we are its only writer, I2 */

    BZ_ASSERT(tail - head <= BZ_RUNQ_CAP); /* I1 */
    if (tail - head == BZ_RUNQ_CAP)
        return false;
    bz_store_relaxed(&q->slot[tail % BZ_RUNQ_CAP], t); /* relaxed: [A] publishes it */
    bz_store_release(&q->tail, tail + 1);              /* [A] */
    return true;
}

struct bz_task *bz_runq_take(struct bz_runq *q)
{
    uint32_t head = bz_load_acquire(&q->head); /* [C] */
    for (;;) {
        uint32_t tail = bz_load_acquire(&q->tail); /* [A] */
        if (head == tail)
            return NULL;
        /* relaxed: the slot may be in reuse already; then the CAS fails and we forget it. */
        struct bz_task *t = bz_load_relaxed(&q->slot[head % BZ_RUNQ_CAP]);
        if (bz_cas_weak_rel_acq(&q->head, &head, head + 1)) /* [B] if won, [C] if lost */
            return t;
    }
}

/* A table whose columns carry its meaning keeps them. */
/* clang-format off */
static const struct { uint8_t to, owes; } step[NSTATES][NEVENTS] = {
    [IDLE]     = {[WAKE] = {QUEUED, ENQUEUE}},
    [QUEUED]   = {[WAKE] = {QUEUED, NOTHING},   [RUN]   = {RUNNING, NOTHING}},
    [RUNNING]  = {[WAKE] = {NOTIFIED, NOTHING}, [YIELD] = {QUEUED, ENQUEUE},
                  [PARK] = {IDLE, NOTHING},     [EXIT]  = {DONE, FINISH}},
};
/* clang-format on */

BZ_MUST_USE enum bz_owes bz_task_step(struct bz_task *t, enum bz_event ev)
{
    uint32_t s = bz_load_relaxed(&t->state); /* relaxed: a first guess, the CAS decides */
    for (;;) {
        uint32_t to = step[s][ev].to;
        BZ_CHECK(to != BAD, "task %p: %s while %s", (void *)t, event_name[ev], state_name[s]);
        if (bz_cas_weak_acqrel_rlx(&t->state, &s, to)) /* [T] */
            return step[s][ev].owes;
    }
}

int os_open(struct bz_os *os)
{
    int err = 0;
    BZ_LIST_FOR_EACH (link, &os->list)
        err = err != 0 ? err : keep(link);
    if (err != 0)
        goto close_wake;
    return 0;

close_wake:
    close(os->wake);
    return err;
}

/* A waiter for a value that can no longer come must be woken. */
TEST(chan, close_wakes_a_parked_receiver)
{
    blitz_chan *c = t_rendezvous_of(int);
    struct t_task *rx = t_spawn(receive_one, c);
    t_run_until_parked(rx);

    blitz_chan_close(c);

    CHECK_EQ(t_join(rx), -EPIPE);
}

/* runq.c [A] [B] [C]: an owner and two thieves, in every order the memory model allows. */
MODEL(runq, every_task_is_taken_exactly_once)
{
    m_threads(owner_pushes_three, thief_takes_all, thief_takes_all);
    m_finally(each_task_was_taken_once);
}
