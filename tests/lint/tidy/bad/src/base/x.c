#include <stdlib.h>
#include <string.h>

int f(char *p)
{
    free(p);
    return p[0];
}

char *g(const char *s)
{
    return malloc(strlen(s + 1));
}
