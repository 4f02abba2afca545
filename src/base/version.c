/*
 * version.c - the version of the running library.
 *
 * blitz_abi_0 exists only for its name: inline functions of the headers refer to it. So an object
 * compiled against this interface cannot be linked or started with a library of another interface.
 */
#include "blitz/version.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char blitz_abi_0 = 0;

int blitz_version_number(void)
{
    return BLITZ_VERSION;
}

const char *blitz_version_string(void)
{
    return TEXT(BLITZ_VERSION_MAJOR) "." TEXT(BLITZ_VERSION_MINOR) "." TEXT(BLITZ_VERSION_PATCH);
}
