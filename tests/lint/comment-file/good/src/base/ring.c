/*
 * ring.c - a ring: base/ring.c. See <stdio.h>, stdint.h, and NOUN_test.c for a test.
 */
int ring(void);
