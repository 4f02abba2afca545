#define BZ_BROKEN(n) (BZ_BREAK == (n))
int g(void)
{
    return T_BROKEN(9);
}
