/* list.c - a fixture of the lint tests, and more words to make it an essay. */
/* TODO: the rest */
int x; // FIXME
