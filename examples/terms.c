/*
 * terms.c - one actor for two kinds of senders: those in this process send structs, others send Erlang terms.
 *
 * The tables say which term a struct is. A message that arrives as bytes is checked, becomes a payload, and goes to the same handlers. In
 * a cluster the bytes come from a connection; here main() makes them, and damages some.
 *
 *     example_terms
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <blitz.h>

enum { DEPOSIT, BALANCE };

struct deposit {
    int64_t cents;
    char from[24];
};
struct balance {
    int64_t cents;
};

/* {deposit, 1200, <<"Ann">>} and the atom balance; the reply is {balance, 1200} */
BLITZ_TERM_STRUCT(deposit_term, struct deposit, "deposit", BLITZ_TERM_INT(struct deposit, cents),
                  BLITZ_TERM_TEXT(struct deposit, from));
BLITZ_TERM_EMPTY(balance_request_term, "balance");
BLITZ_TERM_STRUCT(balance_term, struct balance, "balance", BLITZ_TERM_INT(struct balance, cents));
static const blitz_term_message messages[] = {{DEPOSIT, &deposit_term, NULL},
                                              {BALANCE, &balance_request_term, &balance_term}};
enum { MESSAGES = sizeof messages / sizeof *messages };

/* ---- the actor: it knows nothing of terms ---- */

BLITZ_HANDLER(on_deposit, struct balance, struct deposit)
{
    (void)m;
    printf("  %s pays in %lld\n", data->from, (long long)data->cents);
    state->cents += data->cents;
    return 0;
}

BLITZ_HANDLER(on_balance, struct balance, void)
{
    (void)data;
    return blitz_actor_reply(m->reply, state, sizeof *state);
}

static const blitz_handler handlers[] = {BLITZ_ON(DEPOSIT, struct deposit, on_deposit),
                                         BLITZ_ON_EMPTY(BALANCE, on_balance)};
static const blitz_behaviour account = {.name = "account",
                                        .state_bytes = sizeof(struct balance),
                                        .handlers = handlers,
                                        .handler_count = 2};

/* ---- the senders ---- */

/* Deliver bytes from elsewhere. Returns 0 or the reason why they are refused. */
static int deliver(blitz_actor_id to, const void *bytes, size_t size)
{
    blitz_term term;
    const blitz_term_message *row;
    unsigned char payload[BLITZ_MSG_BYTES_MAX];
    char text[120];
    int rc = blitz_term_check(bytes, size, NULL, &term, NULL);
    if (rc != 0)
        return rc;
    blitz_term_in in = blitz_term_in_of(term);
    rc = blitz_term_get_message(&in, messages, MESSAGES, &row, payload, sizeof payload, NULL);
    (void)blitz_term_print(term, text, sizeof text);
    printf("a term of %zu bytes: %s\n", size, text);
    return rc != 0 ? rc : blitz_actor_send(to, row->what, payload, row->payload->size);
}

static size_t encode(unsigned char *buf, size_t cap, const struct deposit *d)
{
    blitz_term_out out;
    size_t bytes;
    blitz_term_out_init(&out, buf, cap);
    blitz_term_put_version(&out);
    (void)blitz_term_put_message(&out, messages, MESSAGES, DEPOSIT, d, sizeof *d, NULL);
    return blitz_term_out_end(&out, &bytes) == 0 ? bytes : 0;
}

static int run(void *arg)
{
    (void)arg;
    unsigned char buf[128];
    struct balance got = {0};
    struct deposit local = {1200, "Ann"}, remote = {300, "Bj\xc3\xb6rn"};
    blitz_actor_id id;
    int rc = blitz_actor_spawn(&account, NULL, NULL, &id);
    if (rc != 0)
        return rc;
    rc = blitz_actor_send(id, DEPOSIT, &local, sizeof local);
    size_t bytes = encode(buf, sizeof buf, &remote);
    if (rc == 0)
        rc = deliver(id, buf, bytes);
    if (rc != 0)
        return rc;
    if (deliver(id, buf, bytes - 1) != -EPROTO) /* cut off */
        return -EINVAL;
    buf[1] = 109; /* a binary of some hundred million bytes, it says */
    if (deliver(id, buf, bytes) != -EPROTO)
        return -EINVAL;
    puts("damaged bytes: refused");
    rc = blitz_actor_call(id, BALANCE, NULL, 0, &got, sizeof got, blitz_after(10 * BLITZ_S));
    if (rc < 0)
        return rc;
    printf("the balance is %lld\n", (long long)got.cents);
    (void)blitz_actor_stop(id);
    return got.cents == 1500 ? 0 : -EINVAL;
}

int main(void)
{
    int rc = blitz_run(run, NULL, NULL);
    if (rc != 0)
        printf("failed: %s\n", strerror(-rc));
    return rc == 0 ? 0 : 1;
}
