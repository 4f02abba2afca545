/* kernel.c - a fixture of the lint tests, and more words to make it an essay. */
#include <sys/eventfd.h>
