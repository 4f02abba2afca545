/* Who asks must hold the lock. */
int x;
/*
 * What is left is freed.
 */
int y; /* whoever comes first */
