/* x.c - a queue that nobody may read while somebody writes it. */
int x; /* whoever asks */
