/*
 * ring.c - a ring. rign.h has the contract.
 *
 * os/ring.c explains the rest.
 */
int ring(void);
