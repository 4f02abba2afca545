int g(void)
{
    return T_BROKEN(9);
}
