/*
 * ring.c - a ring. bz_ring_psuh() adds an entry, up to BZ_RING_MAXIMUM of them.
 */
enum { BZ_RING_MAX = 8 };
void bz_ring_push(int entry);
