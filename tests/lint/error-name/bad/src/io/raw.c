/* raw.c - a fixture of the lint tests, and more words to make it an essay. */
int f(void) { return errno == EWOULDBLOCK; }
