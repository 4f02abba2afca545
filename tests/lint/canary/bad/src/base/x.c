/* BZ_BROKEN(7) in a comment plants nothing. */
int f(void)
{
    return BZ_BROKEN(8) ? 1 : 0;
}
