/*
 * text.h - where the code of blitz is in a static program.
 *
 * In a static program the functions of blitz and those of the program are in one segment. A signal handler that must know whose
 * function an address is in (os/interrupt.h, bz_code_is_ours) needs the borders. So each source file of the library says where
 * its part of .text begins, and its part of .text.unlikely, which has the cold functions. It does so by two distances of 4 bytes
 * in a read-only section. The linker joins these sections, and they need no relocation when the program starts.
 *
 * A file's functions come behind its first byte of .text, in sections of their own. Linkers put the members of an archive side by
 * side and behind the program's own objects. So the code of blitz is between the first and the last of these borders, and a
 * little behind the last one (os/code.c).
 */
#ifndef BZ_TEXT_H
#define BZ_TEXT_H

#if defined(__x86_64__) && defined(__ELF__) && defined(BLITZ_BUILDING) && !defined(BZ_MODEL)

#if defined(__clang__)
#define BZ_TEXT_COLD ".text.unlikely."
#else
#define BZ_TEXT_COLD ".text.unlikely"
#endif
#define BZ_TEXT_BORDER(section)                   \
    ".pushsection " section ",\"ax\",@progbits\n" \
    "7701:\n"                                     \
    ".popsection\n"                               \
    ".pushsection bz_text,\"a\",@progbits\n"      \
    ".balign 4\n"                                 \
    ".long 7701b - .\n"                           \
    ".popsection\n"

__asm__(BZ_TEXT_BORDER(".text") BZ_TEXT_BORDER(BZ_TEXT_COLD));

#endif
#endif
