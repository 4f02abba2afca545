/*
 * version.c - what the running library says of itself.
 *
 * blitz_abi_0 exists for its name: headers' inline functions refer to it, so an object compiled
 * against this interface cannot be linked or started with a library of another.
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
