/*
 * send.c - sends.
 *
 * The blocking form is written apart: it takes 120 instructions
 * instead of 100 (20 %).
 */
