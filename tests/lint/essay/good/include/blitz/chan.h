/*
 * blitz/chan.h - pass values between tasks, in order, from any to any.
 */
