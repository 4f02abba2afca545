/*
 * planted.h - bugs that are planted in a net itself: in the model checker, in a test. Bugs of the library are patches
 * beside this file.
 *
 * BZ_BROKEN(n) is true if bug n is active. It is a constant unless broken.h was included first (tools/canaries).
 */
#ifndef BLITZ_PLANTED_H
#define BLITZ_PLANTED_H

#if !defined(BZ_BROKEN)
#define BZ_BROKEN(n) (0 == (n))
#endif

#endif
