/* What happens if the ring is full? The push fails. */
int x; /* the caller, who holds the lock */
