/*
 * other_abi.c - stands in for a libblitz.so.0 of another binary interface: the functions are there,
 * the symbol blitz_abi_0 is not. The install check sees to it that no program starts with it.
 */
int blitz_version_number(void);
const char *blitz_version_string(void);
int blitz_log_set(void (*fn)(void *, int, const char *), void *ctx, int max);

int blitz_version_number(void)
{
    return 9999999;
}

const char *blitz_version_string(void)
{
    return "999.99.99";
}

int blitz_log_set(void (*fn)(void *, int, const char *), void *ctx, int max)
{
    (void)fn;
    (void)ctx;
    (void)max;
    return 0;
}
