/*
 * consumer.c - a program of somebody who has installed blitz. C11, and C++17 as it stands.
 *
 * Prints the version of the library it runs with; fails if headers and library do not fit.
 */
#include <stdio.h>

#include <blitz.h>

int main(void)
{
    if (blitz_log_set(NULL, NULL, BLITZ_LOG_WARN) != 0)
        return 2;
    if (!blitz_version_ok())
        return 3;
    printf("%s\n", blitz_version_string());
    return 0;
}
