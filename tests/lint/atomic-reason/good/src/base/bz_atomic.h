/* bz_atomic.h - a fixture of the lint tests, and more words to make it an essay. */
#define bz_load_twice(p) bz_load_relaxed(p)
