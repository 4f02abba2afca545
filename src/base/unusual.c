/*
 * unusual.c - the counter of unusual.h.
 *
 * It is one for the process and not one for each runtime, because the address of a global is a constant in the code of
 * every fast path. A runtime's own counter would cost a load to find it. Nearly all processes have one runtime.
 */
#include "base/unusual.h"

bz_atomic(uint32_t) bz_unusual;
