/*
 * ring.c - a ring. bz_ring_push() adds an entry, up to BZ_RING_MAX of them. All functions are bz_ring_*, and the
 * constants BZ_RING_...
 */
enum { BZ_RING_MAX = 8 };
void bz_ring_push(int entry);
