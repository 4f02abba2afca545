/*
 * op.c - the logic of every operation on a connection, as a sequence of needs.
 *
 * An operation goes as far as it can, and says what it needs next: a turn, bytes from the stream
 * below, or that bytes are written there. A driver does that and steps again with the outcome. There
 * are two drivers: tls_calls.c waits on a stack, tls_future.c in polls. So the logic exists once, and
 * knows neither deadlines nor cancels: for it they are outcomes like any other error.
 *
 * Reads have the read turn, writes the write turn, for the whole operation; a handshake has both.
 * The order is: read turn, write turn. A write that is stuck (engine.c) takes the read turn only
 * if it is free.
 *
 * Bytes that OpenSSL has encrypted must be sent, in this order, or the connection is lost. So a write
 * accepts new bytes only when all earlier ones are sent. If its wait ends early, the rest stays in
 * `sending`, and the next operation that writes sends it first. A read sends it too, as far as that
 * is possible at once. It must not wait for it: if both sides did, and neither read, both would
 * wait forever.
 *
 * A server of TLS 1.3 is done when the client is, and has only tickets left to send. It does not
 * wait for that: its client may not read before it has something to say.
 *
 * I4  An operation that is over has no turn.
 */
#include <errno.h>
#include <string.h>

#include "tls/tls.h"

void bz_tls_op_init(struct bz_tls_op *op, enum bz_tls_kind kind, blitz_tls *tls, void *data,
                    size_t bytes)
{
    *op = (struct bz_tls_op){.tls = tls, .kind = (uint8_t)kind, .user = data, .user_bytes = bytes};
}

static bool is_early(int64_t err)
{
    return err == -ETIMEDOUT || err == -ECANCELED;
}

/* ---- needs ---- */

static enum bz_tls_need over(struct bz_tls_op *op, int64_t result)
{
    blitz_tls *tls = op->tls;
    op->result = result;
    if (op->has_write_turn)
        blitz_semaphore_release(&tls->writing, 1);
    if (op->has_read_turn) {
        blitz_semaphore_release(&tls->reading, 1);
        bz_tls_engine_unstick(tls);
    }
    op->has_read_turn = op->has_write_turn = false;
    return BZ_TLS_NOTHING;
}

static enum bz_tls_need needs_input(struct bz_tls_op *op)
{
    op->data = bz_tls_engine_room(op->tls, &op->bytes);
    return op->data != NULL ? BZ_TLS_INPUT : over(op, -ENOMEM);
}

/* There are bytes to send. */
static enum bz_tls_need needs_output(struct bz_tls_op *op)
{
    struct bz_tls_bytes *b = &op->tls->sending;
    op->data = b->data + b->at;
    op->bytes = b->end - b->at;
    return BZ_TLS_OUTPUT;
}

/* The result if the operation ends early or by an error of the stream. */
static enum bz_tls_need gives_up(struct bz_tls_op *op, int64_t err)
{
    if (op->has_verdict && op->verdict != 0)
        return over(op, op->verdict); /* the alert could not be sent */
    if (op->kind == BZ_TLS_WRITE && op->done > 0 && is_early(err))
        return over(op, (int64_t)op->done);
    return over(op, err);
}

/* Send what can be sent without waiting. The caller has the write turn. */
static void sends_some(blitz_tls *tls)
{
    int64_t n = 1;
    while (n > 0 && bz_tls_engine_output(tls)) {
        struct bz_tls_bytes *b = &tls->sending;
        n = blitz_writer_write(tls->over.out, b->data + b->at, b->end - b->at, 0);
        b->at += n > 0 ? (size_t)n : 0;
    }
}

/* Send so without the write turn, before a read waits. If another operation has the turn, that one sends. */
static void tries_output(blitz_tls *tls)
{
    if (blitz_semaphore_try_acquire(&tls->writing, 1) != 0)
        return;
    sends_some(tls);
    bz_tls_engine_trim(tls);
    blitz_semaphore_release(&tls->writing, 1);
}

/* ---- operations ---- */

static enum bz_tls_need goes_on_handshake(struct bz_tls_op *op)
{
    blitz_tls *tls = op->tls;
    if (!op->has_read_turn)
        return BZ_TLS_READ_TURN;
    if (!op->has_write_turn)
        return BZ_TLS_WRITE_TURN;
    for (;;) {
        if (op->has_verdict && op->verdict == 0 && bz_tls_engine_owes_tickets(tls))
            sends_some(tls);
        else if (bz_tls_engine_output(tls))
            return needs_output(op);
        if (op->has_verdict)
            return over(op, op->verdict);
        enum bz_tls_went went = bz_tls_engine_handshake(tls);
        if (went == BZ_TLS_NEEDS_INPUT && !bz_tls_engine_output(tls))
            return needs_input(op);
        op->has_verdict = went != BZ_TLS_NEEDS_INPUT;
        op->verdict = went == BZ_TLS_DONE ? 0 : bz_tls_engine_dead(tls);
    }
}

static enum bz_tls_need ends_read(struct bz_tls_op *op, enum bz_tls_went went)
{
    bool is_exact = op->kind == BZ_TLS_READ_EXACT;
    if (went == BZ_TLS_DONE)
        return over(op, is_exact ? 0 : (int64_t)op->done);
    tries_output(op->tls); /* perhaps an alert */
    if (went == BZ_TLS_IS_OVER)
        return over(op, is_exact ? -EPIPE : 0);
    return over(op, bz_tls_engine_dead(op->tls));
}

static enum bz_tls_need goes_on_read(struct bz_tls_op *op)
{
    if (!op->has_read_turn)
        return BZ_TLS_READ_TURN;
    for (;;) {
        size_t got = 0;
        enum bz_tls_went went =
            bz_tls_engine_read(op->tls, op->user + op->done, op->user_bytes - op->done, &got);
        op->done += got;
        if (went == BZ_TLS_NEEDS_INPUT) {
            tries_output(op->tls);
            return needs_input(op);
        }
        if (went != BZ_TLS_DONE || op->kind == BZ_TLS_READ || op->done == op->user_bytes)
            return ends_read(op, went);
    }
}

/* OpenSSL wants the rest of a message first. */
static enum bz_tls_need goes_on_stuck(struct bz_tls_op *op)
{
    if (!op->has_read_turn && blitz_semaphore_try_acquire(&op->tls->reading, 1) == 0)
        op->has_read_turn = true;
    return op->has_read_turn ? needs_input(op) : BZ_TLS_PROGRESS;
}

static bool wants_more(const struct bz_tls_op *op)
{
    return op->done == 0 || (op->kind == BZ_TLS_WRITE_ALL && op->done < op->user_bytes);
}

static enum bz_tls_need goes_on_write(struct bz_tls_op *op)
{
    if (!op->has_write_turn)
        return BZ_TLS_WRITE_TURN;
    for (;;) {
        if (bz_tls_engine_output(op->tls))
            return needs_output(op);
        if (!wants_more(op))
            return over(op, op->kind == BZ_TLS_WRITE ? (int64_t)op->done : 0);
        size_t put = 0, left = op->user_bytes - op->done;
        enum bz_tls_went went = bz_tls_engine_write(
            op->tls, op->user + op->done, left < BZ_TLS_WRITE_MAX ? left : BZ_TLS_WRITE_MAX, &put);
        op->done += put;
        if (went == BZ_TLS_NEEDS_INPUT)
            return goes_on_stuck(op);
        if (went != BZ_TLS_DONE)
            return over(op, went == BZ_TLS_IS_OVER ? -EPIPE : bz_tls_engine_dead(op->tls));
    }
}

static enum bz_tls_need goes_on_end(struct bz_tls_op *op)
{
    if (!op->has_write_turn)
        return BZ_TLS_WRITE_TURN;
    if (bz_tls_engine_output(op->tls))
        return needs_output(op);
    enum bz_tls_went went = op->kind == BZ_TLS_END ? bz_tls_engine_end(op->tls) : BZ_TLS_DONE;
    if (went == BZ_TLS_NEEDS_INPUT)
        return goes_on_stuck(op);
    if (went != BZ_TLS_DONE)
        return over(op, bz_tls_engine_dead(op->tls));
    return bz_tls_engine_output(op->tls) ? needs_output(op) : over(op, 0);
}

static enum bz_tls_need goes_on(struct bz_tls_op *op)
{
    switch (op->kind) {
    case BZ_TLS_HANDSHAKE:
        return goes_on_handshake(op);
    case BZ_TLS_READ:
    case BZ_TLS_READ_EXACT:
        return goes_on_read(op);
    case BZ_TLS_WRITE:
    case BZ_TLS_WRITE_ALL:
        return goes_on_write(op);
    default:
        return goes_on_end(op);
    }
}

/* ---- outcomes ---- */

/* Account for the outcome of the last need. Return 0, or the error that ends the operation. */
static int64_t takes(struct bz_tls_op *op, int64_t got)
{
    blitz_tls *tls = op->tls;
    if (got < 0) {
        if (op->need == BZ_TLS_INPUT && !is_early(got))
            bz_tls_engine_dies(tls, (int)got, "a read of the stream below failed");
        if (op->need == BZ_TLS_OUTPUT && !is_early(got))
            bz_tls_engine_deaf(tls, (int)got, "a write to the stream below failed");
        return got;
    }
    op->has_read_turn = op->has_read_turn || op->need == BZ_TLS_READ_TURN;
    op->has_write_turn = op->has_write_turn || op->need == BZ_TLS_WRITE_TURN;
    if (op->need == BZ_TLS_INPUT)
        bz_tls_engine_filled(tls, (size_t)got);
    if (op->need == BZ_TLS_OUTPUT)
        tls->sending.at += (size_t)got;
    return 0;
}

/* The first step: is there anything to do, and may it be done? */
static bool is_settled(struct bz_tls_op *op)
{
    bool is_read = op->kind == BZ_TLS_READ || op->kind == BZ_TLS_READ_EXACT;
    bool is_bytes = is_read || op->kind == BZ_TLS_WRITE || op->kind == BZ_TLS_WRITE_ALL;
    int err = is_bytes && op->user == NULL && op->user_bytes > 0
                  ? -EINVAL
                  : bz_tls_engine_error(op->tls, !is_read, op->kind != BZ_TLS_HANDSHAKE);
    op->result = err;
    return err != 0 || (is_bytes && op->user_bytes == 0);
}

/*
 * Go on with the outcome of the last need; `got` is ignored at the first step. Return the next
 * need; BZ_TLS_NOTHING: the operation is over, and op->result and op->done are set.
 */
enum bz_tls_need bz_tls_op_step(struct bz_tls_op *op, int64_t got)
{
    enum bz_tls_need need;
    if (op->need == BZ_TLS_NOTHING) {
        need = is_settled(op) ? BZ_TLS_NOTHING : goes_on(op);
    } else {
        int64_t err = takes(op, got);
        need = err == 0 ? goes_on(op) : gives_up(op, err);
    }
    op->need = (uint8_t)need;
    return need;
}
