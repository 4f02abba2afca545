/* op.h - a fixture of the lint tests. */
static int wait_call(struct mix_op *op, blitz_deadline until)
{
    blitz_gate_wait_future_init(&op->f, op->of);
    return blitz_gate_wait(op->of, until) + blitz_gate_pass(op->of, until);
}
