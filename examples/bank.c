/*
 * bank.c - accounts as actors: money that moves between them is never lost, although the clerks crash.
 *
 * Each account is an actor, so its balance needs no lock. A clerk moves money with two calls, and may crash between them. So the
 * first call gives the money to a transfer, an entry in the source account, and only the second call's success ends the entry. The
 * auditor adds balances and open transfers: the sum holds at any time at which no clerk works.
 *
 *     example_bank [TRANSFERS]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <blitz.h>

enum { ACCOUNTS = 10, CLERKS = 4, START = 1000 };
enum { TAKE, PUT, SETTLE, TOTAL };

struct account {
    long balance, open; /* `open` was taken, and has not arrived yet */
};

BLITZ_HANDLER(on_take, struct account, long)
{
    if (state->balance < *data)
        return blitz_actor_reply_error(m->reply, -ENOSPC);
    state->balance -= *data;
    state->open += *data;
    return blitz_actor_reply(m->reply, NULL, 0);
}

BLITZ_HANDLER(on_put, struct account, long)
{
    state->balance += *data;
    return blitz_actor_reply(m->reply, NULL, 0);
}

BLITZ_HANDLER(on_settle, struct account, long)
{
    state->open -= *data;
    return blitz_actor_reply(m->reply, NULL, 0);
}

BLITZ_HANDLER(on_total, struct account, void)
{
    (void)data;
    long total = state->balance + state->open;
    return blitz_actor_reply(m->reply, &total, sizeof total);
}

static const blitz_handler handlers[] = {BLITZ_ON(TAKE, long, on_take), BLITZ_ON(PUT, long, on_put),
                                         BLITZ_ON(SETTLE, long, on_settle),
                                         BLITZ_ON_EMPTY(TOTAL, on_total)};
static const blitz_behaviour account = {.name = "account",
                                        .state_bytes = sizeof(struct account),
                                        .handlers = handlers,
                                        .handler_count = 4};

/* ---- clerks ---- */

enum { MOVE };

struct transfer {
    blitz_actor_id from, to;
    long amount;
    bool crashes; /* between the two calls */
};

static int call(blitz_actor_id id, uint32_t what, long amount)
{
    return blitz_actor_call(id, what, &amount, sizeof amount, NULL, 0, BLITZ_FOREVER);
}

BLITZ_HANDLER(on_move, int, struct transfer) /* NOLINT(readability-non-const-parameter) */
{
    (void)state;
    int rc = call(data->from, TAKE, data->amount);
    if (rc == 0 && data->crashes)
        return blitz_actor_fail(-EIO, "tripped over the carpet"); /* the money stays in `open` */
    if (rc == 0)
        rc = call(data->to, PUT, data->amount);
    if (rc == 0)
        rc = call(data->from, SETTLE, data->amount);
    return rc < 0 ? blitz_actor_reply_error(m->reply, rc) : blitz_actor_reply(m->reply, NULL, 0);
}

static const blitz_handler clerk_handlers[] = {BLITZ_ON(MOVE, struct transfer, on_move)};
static const blitz_behaviour clerk = {
    .name = "clerk", .state_bytes = sizeof(int), .handlers = clerk_handlers, .handler_count = 1};

/* ---- the program ---- */

static int move(blitz_actor_id clerks, const struct transfer *t, unsigned which)
{
    char id[16];
    blitz_actor_id found;
    snprintf(id, sizeof id, "clerk %u", which);
    int rc = blitz_supervisor_which(clerks, id, &found);
    if (rc != 0)
        return rc;
    return blitz_actor_call(found, MOVE, t, sizeof *t, NULL, 0, BLITZ_FOREVER);
}

static int program(void *arg)
{
    long transfers = *(long *)arg, crashes = 0, sum = 0;
    blitz_actor_id accounts[ACCOUNTS], clerks;
    struct account start = {START, 0};
    char ids[CLERKS][16];
    blitz_child_spec children[CLERKS];
    for (int i = 0; i < ACCOUNTS; i++)
        if (blitz_actor_spawn(&account, &start, NULL, &accounts[i]) != 0)
            return 1;
    for (unsigned i = 0; i < CLERKS; i++) {
        snprintf(ids[i], sizeof ids[i], "clerk %u", i);
        children[i] = (blitz_child_spec){.id = ids[i], .behaviour = &clerk};
    }
    blitz_supervisor_plan opts = {
        .intensity = 1000, .period = BLITZ_MS, .children = children, .child_count = CLERKS};
    if (blitz_supervisor_spawn(&opts, NULL, &clerks) != 0)
        return 1;
    for (long i = 0; i < transfers; i++) {
        struct transfer t = {accounts[i % ACCOUNTS], accounts[(i * 7 + 3) % ACCOUNTS], i % 50,
                             i % 20 == 7};
        crashes += move(clerks, &t, (unsigned)i % CLERKS) == -ESRCH;
    }
    for (int i = 0; i < ACCOUNTS; i++) {
        long total = 0;
        if (blitz_actor_call(accounts[i], TOTAL, NULL, 0, &total, sizeof total, BLITZ_FOREVER) < 0)
            return 1;
        sum += total;
    }
    printf("%ld transfers, %ld crashes, the sum is %ld\n", transfers, crashes, sum);
    return sum == (long)ACCOUNTS * START ? 0 : 1;
}

int main(int argc, char **argv)
{
    long transfers = argc > 1 ? atol(argv[1]) : 10000;
    return blitz_run(program, &transfers, NULL);
}
