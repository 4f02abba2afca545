/* bz_atomic.h - a fixture of the lint tests, and more words to make it an essay. */
#include <stdatomic.h>
#define BZ_A_LOAD(p, o) atomic_load_explicit(p, o)
