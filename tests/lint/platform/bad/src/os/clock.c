/* clock.c - a fixture of the lint tests, and more words to make it an essay. */
#include <time.h>
#include <pthread.h>
