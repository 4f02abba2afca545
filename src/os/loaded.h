/*
 * loaded.h - use the dynamic loader: keep our code in memory, find a function of a library.
 */
#ifndef BZ_LOADED_H
#define BZ_LOADED_H

/*
 * Keep the code of blitz in memory until bz_loaded_release(), even if the library is closed: for
 * threads and signal handlers that may still run it.
 * Returns: the argument for release; NULL if nothing need be kept (the main program, a static
 *          program).
 */
void *bz_loaded_hold(void);

/* Another reference must remain, because this function returns into the library's code. */
void bz_loaded_release(void *held);

/* Find a function of a loaded library whose file name begins with `library` ("libstdc++.so"); or
 * NULL. The library stays loaded from then on. */
void *bz_loaded_symbol(const char *library, const char *symbol);

#endif
