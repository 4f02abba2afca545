/*
 * broken.h - every planted bug in one build, and the environment chooses which one is there.
 *
 * Builds with -DBLITZ_BREAK=ON read this before each of their sources; no other build knows of it.
 * BLITZ_BROKEN=n is read before main, once in every source file that there is: a file of the library,
 * of the harness and of the model checker may then be linked in any company. Without it no bug is
 * there, and what the nets say of that build is what they say of the tree.
 */
#ifndef BLITZ_BROKEN_H
#define BLITZ_BROKEN_H

#include <stdlib.h>

__attribute__((unused)) static int bz_broken_now; /* written before main alone */

__attribute__((constructor)) static void bz_broken_choose(void)
{
    const char *chosen = getenv("BLITZ_BROKEN");
    bz_broken_now = chosen != NULL ? atoi(chosen) : 0;
}

#define BZ_BROKEN(n) (bz_broken_now == (n))

#endif
