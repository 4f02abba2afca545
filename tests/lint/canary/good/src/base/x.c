#define BZ_BROKEN(n) (BZ_BREAK == (n))
int f(void)
{
    return BZ_BROKEN(8) ? 1 : T_BROKEN(9);
}
