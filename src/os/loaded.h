/*
 * loaded.h - what the dynamic loader knows: keep our code in memory, find a function of a library.
 */
#ifndef BZ_LOADED_H
#define BZ_LOADED_H

/*
 * Keep the code of blitz in memory until bz_loaded_release(), whatever is unloaded: for threads and
 * signal handlers that may still be in it.
 * Returns: what release takes; NULL if nothing need be kept (the main program, a static program).
 */
void *bz_loaded_hold(void);

/* Somebody else's reference must remain: the code that returns from here is the library's. */
void bz_loaded_release(void *held);

/* A function of a library that is loaded and whose file name begins so ("libstdc++.so"); or NULL. The
 * library stays from then on. */
void *bz_loaded_symbol(const char *library, const char *symbol);

#endif
