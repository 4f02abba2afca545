/* fork.h - a fixture of the lint tests, and more words to make it an essay. */
static inline int f(int *p)
{
    return __atomic_load_n(p, 2);
}
