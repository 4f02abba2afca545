/* hello.c - which blitz is this, and does it fit the headers it was built with? */
#include <stdio.h>

#include <blitz.h>

int main(void)
{
    if (!blitz_version_ok()) {
        fprintf(stderr, "the library is older than the headers\n");
        return 1;
    }
    printf("hello from blitz %s\n", blitz_version_string());
    return 0;
}
