int f(const char *p)
{
    return p[0];
}
