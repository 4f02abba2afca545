/* idle.c - a fixture of the lint tests, and more words to make it an essay. */
/* as runq.c [A] says, but not as runq.c [Z] does */
