/* op.h - a fixture of the lint tests: it names blitz_gate_pass in a comment, and that does not count. */
static int wait_call(struct mix_op *op, blitz_deadline until)
{
    return blitz_gate_wait(op->of, until);
}
