/* send.c - sends. */
